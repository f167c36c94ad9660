"""The wikis of all projects: followed in the background of a worker or a server, and what there is to tell of them."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import socket
from pathlib import Path

import structlog

from everkept.api.base import Parts
from everkept.capture.redaction import cleaned
from everkept.deliver.git import GitMissing
from everkept.deliver.report import WikiReport, read_report
from everkept.deliver.wiki import ERASURE, SETTLE_S, ProjectWiki
from everkept.deliver.wiki_home import WikiHome
from everkept.errors import EverkeptError
from everkept.store.wiki_pages import WikiState, has_pages, project_is_erased, wiki_states

log = structlog.get_logger("everkept.wiki")


class WikiProjector:
    """Projects every project with pages to `<home>/wiki/<project>`. One `step` at a time."""

    def __init__(self, parts: Parts, home: Path, *, program: str = "git", settle_s: float = SETTLE_S) -> None:
        self._store = parts.store
        self._home = WikiHome(home / "wiki")
        self._program = program
        self._settle_s = settle_s
        self._owner = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._wikis: dict[str, ProjectWiki] = {}
        self.waiting: dict[str, str] = {}
        """{project: why its wiki does not follow right now}; every project under "" where there is no git."""

    async def step(self) -> int:
        """Take in edits and project what is new, in every project; how much there was to do. Never raises for one."""
        return await asyncio.to_thread(self.step_now)

    def step_now(self) -> int:
        """As `step`, in this thread."""
        done = self._home.remove_erased(lambda identity: self._store.read_now(project_is_erased, identity))
        if shutil.which(self._program) is None:
            self._wait("", GitMissing().message)
            return done
        self.waiting.pop("", None)
        for state in self._store.read_now(wiki_states):
            done += self._step_of(state)
        return done

    def _step_of(self, state: WikiState) -> int:
        try:
            wiki = self._wiki(state)
            done = 0 if wiki is None else wiki.step(state)
        except (EverkeptError, OSError) as error:  # of this project; the next step tries again, the others go on
            self._wait(state.name, str(error))
            return 0
        self.waiting.pop(state.name, None)
        return done

    def _wiki(self, state: WikiState) -> ProjectWiki | None:
        """None while the project has no page."""
        known = self._wikis.get(state.identity)
        if known is not None and (known.folder / ".git" / "config").is_file():
            return known
        folder = self._home.find(state.identity)
        if folder is None:
            if not self._store.read_now(has_pages, state.project):
                return None
            folder = self._home.make(state.identity, state.name, {ERASURE: str(state.erasure)}, self._program)
        wiki = ProjectWiki(self._store, state.project, folder, owner=self._owner, clean=cleaned,
                           program=self._program, settle_s=self._settle_s)  # fmt: skip
        self._wikis[state.identity] = wiki
        return wiki

    def _wait(self, project: str, why: str) -> None:
        if self.waiting.get(project) != why:
            self.waiting[project] = why
            log.warning("a wiki does not follow", project=project or "every project", why=why)


def wiki_reports(home: Path) -> list[WikiReport]:
    """What there is to tell of each wiki: attention, edits that were not taken in, remotes out of reach of erasing."""
    found = [read_report(place) for place, _ in WikiHome(home / "wiki").repositories()]
    return [report for report in found if report is not None]
