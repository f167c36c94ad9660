"""Erasing: shown first, then hidden at once and destroyed by lineage."""

from __future__ import annotations

import asyncio
import secrets

from everkept.api import views as v
from everkept.api.base import Cases
from everkept.api.draining import Drain, drain_all
from everkept.api.erasing_aside import aside_of, forget_aside
from everkept.api.wiki import WikiProjector
from everkept.capture.spool import Spool
from everkept.capture.start_packs import forget_packs
from everkept.domain.erase import EventTarget, ProjectTarget, StreamTarget, SubjectTarget, Target
from everkept.domain.ids import parse_event_id, parse_row_id
from everkept.errors import InvalidInput, NotFound
from everkept.store.connection import Connection
from everkept.store.erase import Erasure, erase, find_erasure
from everkept.store.projects import DEFAULT_PROJECT, ensure_project, find_subject
from everkept.store.residue import plan_erase
from everkept.store.sessions import find_session
from everkept.store.streams import events_at, get_thread

ASIDE = "records set aside"
DRAIN_S = 10.0
"""How long an erase takes in what waits, before it begins."""
WAIT_S = 10.0
POLL_S = 0.05


class Erasing(Cases):
    async def erase(
        self,
        *,
        event: str | None = None,
        thread: str | None = None,
        session: str | None = None,
        subject: str | None = None,
        project: str | None = None,
        dry_run: bool = False,
    ) -> v.ErasePlan:
        """From the return on nothing of it is found; `residue` is None while the worker still destroys the rest."""
        wanted = {"event": event, "thread": thread, "session": session, "subject": subject, "project": project}
        given = [(word, name) for word, name in wanted.items() if name is not None]
        if len(given) != 1:
            raise InvalidInput(
                "name exactly one of event, thread, session, subject or project to erase",
                field="scope",
                given=dict(given),
            )
        word, name = given[0]
        await self._require_unmerged()
        if word != "thread" and not dry_run:
            await self._take_in_what_waits()
        target = await self._store.read(self._target, word, name)
        scope = f"{word} {name}"
        aside = await aside_of(self._parts, self._project_id, target)
        if dry_run:
            rows = dict(await self._store.read(plan_erase, self._project_id, target))
            rows |= {ASIDE: len(aside.own)} if aside.own else {}
            return v.ErasePlan(scope=scope, rows=rows, residue=None, dry_run=True, set_aside=len(aside.possible))
        erasure = await self._write(erase, self._project_id, target)
        await asyncio.to_thread(forget_packs, self._settings.home)
        forgotten = await forget_aside(self._settings.home, aside)
        if word == "project" and name == DEFAULT_PROJECT:
            await self._whole.write(ensure_project, DEFAULT_PROJECT, secrets.token_bytes(32))
        now = await self._outcome(erasure.id)
        return v.ErasePlan(
            scope=scope, rows=now.destroyed | ({ASIDE: forgotten} if forgotten else {}),
            residue=now.residue if now.done_at is not None else None, dry_run=False, unclean=now.unclean,
            set_aside=len(aside.possible),
        )  # fmt: skip

    async def _outcome(self, erasure: int) -> Erasure:
        """As it stands once it is done, or as long as anybody waits for it."""
        until = self._parts.clock.monotonic_s() + WAIT_S
        while True:
            now = await self._store.read(find_erasure, erasure)
            assert now is not None
            if now.done_at is not None:
                if (self._settings.home / "wiki").is_dir():
                    await WikiProjector(self._parts, self._settings.home).step()  # no word stays in its history either
                # A start pack that was being made when the erase began was written after it.
                await asyncio.to_thread(forget_packs, self._settings.home)
            if now.done_at is not None or self._parts.clock.monotonic_s() >= until:
                return now
            await asyncio.sleep(POLL_S)

    async def _take_in_what_waits(self) -> None:
        """What hooks have left in the spool of this home belongs to what is erased, and goes with it."""
        spool = Spool(self._settings.home)
        if await asyncio.to_thread(spool.names):
            await drain_all(Drain(self._parts, spool), within_s=DRAIN_S)

    def _target(self, conn: Connection, word: str, name: str) -> Target:
        match word:
            case "event":
                stream, seq = parse_event_id(name)
                if not events_at(conn, self._project_id, [(stream, seq)]):
                    raise NotFound(f"there is no event {name}", id=name)
                return EventTarget(stream=stream, seq=seq)
            case "thread":
                return StreamTarget(stream=get_thread(conn, self._project_id, name).id)
            case "session":
                row = find_session(conn, self._project_id, parse_row_id("ses", name))
                if row is None:
                    raise NotFound(f"there is no session {name}", id=name)
                return StreamTarget(stream=row.stream)
            case "subject":
                found = find_subject(conn, self._project_id, name)
                if found is None:
                    raise NotFound(f"there is no subject {name!r}", subject=name)
                return SubjectTarget(subject=found)
            case _:
                if name != self._project.name:
                    raise InvalidInput(
                        f"this is project {self._project.name!r}; open {name!r} to erase it", field="project"
                    )
                return ProjectTarget()
