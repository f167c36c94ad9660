"""The one way in for what coding agents did, whoever tells it: hooks, transcripts, launches.

An event goes key → payload hash → project → policy → redaction → append, and comes out with what became of it. Where
it was there already, what was lost of its effects is made again (`store.remaking`). Each session's project is decided
once, from its first event. Every commit takes at most a hundred events; a crash between two of them loses nothing,
because whoever tells it tells it again, and natural keys make that harmless.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Literal

from everkept.api.base import Parts
from everkept.capture.agents.keeping import batches, fit, prepare, session_mark
from everkept.capture.identity import Checkout, name_for
from everkept.domain.launch import launch_number
from everkept.domain.session import AgentEvent, session_identity
from everkept.errors import NotFound
from everkept.store.aliases import Found, resolve
from everkept.store.connection import Connection
from everkept.store.effective import effective
from everkept.store.launches import project_of_launch
from everkept.store.offers import note_taken_up
from everkept.store.projects import DEFAULT_PROJECT, ProjectRow, ensure_project, find_project
from everkept.store.remaking import Replayed, lost_effects, remake_effects
from everkept.store.session_keys import NewSessionEvent
from everkept.store.sessions import (
    EventOutcome,
    SessionAppended,
    SessionBatch,
    SessionHeader,
    append_session,
    project_of_session,
)

HERE = "session"
"""How a project was found whose session is known already."""
NAMED = "named"


@dataclass(slots=True, kw_only=True)
class Taken:
    """What became of some events."""

    stored: int = 0
    revised: int = 0
    known: int = 0
    erased: int = 0
    """Happened before their session was erased, and stay out."""
    projects: dict[str, str] = field(default_factory=dict)
    """{project: what it was found by}."""
    sessions: set[tuple[str, int]] = field(default_factory=set)
    """(project, stream) of the sessions that got something."""
    outcomes: list[EventOutcome] = field(default_factory=list)
    """Of one `take`: one for each event, in the order given. Sums leave them out."""

    def add(self, other: Taken) -> None:
        self.stored += other.stored
        self.revised += other.revised
        self.known += other.known
        self.erased += other.erased
        self.projects |= other.projects
        self.sessions |= other.sessions


class Intake:
    """Takes events of any session of any project; with `only`, into that project whatever they say (G15).

    `patience_s`: how long a `take` waits while events of a project come too fast.
    """

    def __init__(self, parts: Parts, *, only: str | None = None, patience_s: float = 0.0) -> None:
        self._parts = parts
        self._store = parts.store
        self._only = only
        self._patience_s = patience_s

    async def take(
        self, events: Sequence[AgentEvent], *, checkout: Checkout | None = None, project: str | None = None,
        origin: Literal["hook", "import"] = "hook", ended: bool = False, titles: dict[str, str] | None = None,
        transcript: Path | None = None,
    ) -> Taken:  # fmt: skip
        """Take events in the order given; they may be of several sessions. `project` names one outright.

        `transcript`: a file of this machine that tells of their session. Raises RateLimited where events of a project
        come too fast: what came before them is stored, and all may be sent again.
        """
        taken = Taken()
        for (_, session), some in groupby(events, key=lambda e: (e.agent, e.session)):
            mine = list(some)
            title = (titles or {}).get(session)
            mine = identified(mine, "" if checkout is None else checkout.repository_here)
            session = mine[0].session
            found = await self._project(mine[0], checkout, project)
            taken.projects[found.project.name] = found.found_by
            header = _header(mine, checkout, origin, title, transcript)
            await self._append(found.project, header, mine, taken, ended=ended)
        return taken

    async def _append(
        self, project: ProjectRow, header: SessionHeader, events: Sequence[AgentEvent], taken: Taken, *, ended: bool
    ) -> None:
        settings = effective(self._parts.settings, project.settings)
        await self._parts.pace.admit(project.id, settings, patience_s=self._patience_s)
        now = self._parts.clock.now_us()
        ready = await asyncio.to_thread(lambda: _prepared(project, events, now))
        mark = session_mark(header.agent, header.native, project.secret)
        pieces = batches(ready)
        for place, piece in enumerate(pieces):
            last = place == len(pieces) - 1
            batch = SessionBatch(
                project=project.id, header=header, events=tuple(piece), base=self._parts.settings, mark=mark,
                former_marks=tuple(session_mark(header.agent, header.native, s) for s in project.former_secrets),
                ended=ended and last,
            )  # fmt: skip
            answer = await self._store.write(_append, batch)
            taken.stored += answer.stored
            taken.revised += answer.revised
            taken.known += answer.known
            taken.erased += answer.erased
            taken.outcomes += answer.outcomes
            if answer.stream is not None:
                taken.sessions.add((project.name, answer.stream))
            self._parts.pace.spend(project.id, settings, answer.stored + answer.revised)
            await self._remake(project.id, piece, answer.outcomes)

    async def _remake(self, project: int, events: Sequence[NewSessionEvent], outcomes: Sequence[EventOutcome]) -> None:
        replayed = [
            Replayed(o.stream, o.seq, e.analysed)
            for e, o in zip(events, outcomes, strict=True)
            if o.what == "replayed" and o.exact and o.stream is not None and o.seq is not None
        ]
        if not replayed:
            return
        lost = await self._store.read(lost_effects, project, replayed, self._parts.settings)
        if lost:
            await self._store.write(remake_effects, project, replayed, self._parts.settings)

    async def _project(self, event: AgentEvent, checkout: Checkout | None, named: str | None) -> Found:
        """Where the session of its first event is already, else where its parent is, else where its launch was
        prepared, else what the checkout says, else the default."""
        if self._only is not None:
            return await self._store.read(_the_only, self._only)

        def known(conn: Connection) -> Found | None:
            sessions = [n for n in (event.session, event.parent) if n is not None]
            names = [project_of_session(conn, event.agent, native) for native in sessions]
            launch = launch_number(event.launch)
            for name in [*names, None if launch is None else project_of_launch(conn, launch)]:
                row = None if name is None else find_project(conn, name)
                if row is not None:
                    return Found(project=row, found_by=HERE, value=row.name)
            return None

        found = await self._store.read(known)
        if found is not None:
            return found
        signs = [] if checkout is None else checkout.signs()
        if named is None and not signs:
            named = DEFAULT_PROJECT
        return await self._store.write(_decide, named, signs, secrets.token_bytes(32))


def _the_only(conn: Connection, project: str) -> Found:
    """Raises NotFound where it was erased meanwhile."""
    row = find_project(conn, project)
    if row is None:
        raise NotFound(f"there is no project {project!r}", project=project)
    return Found(project=row, found_by=HERE, value=project)


def identified(events: Sequence[AgentEvent], place: str) -> list[AgentEvent]:
    """Events of one session under its identity in the world: two that are called alike in two places stay two.

    A session that names itself as the one that started it is nobody's sub-agent.
    """
    native, told = events[0].session, events[0].parent
    parent = None if told == native else told
    starter = None if parent is None else session_identity(parent, within=place)
    identity = session_identity(native, within=starter or place)
    if (identity, starter) == (native, told):
        return list(events)
    return [_renamed(event, identity, starter) for event in events]


def _renamed(event: AgentEvent, identity: str, parent: str | None) -> AgentEvent:
    """Its key, too, where that rests on the session's name."""
    head = f"{event.agent}:{event.session}:"
    key = f"{event.agent}:{identity}:{event.key.removeprefix(head)}" if event.key.startswith(head) else event.key
    return replace(event, session=identity, parent=parent, key=key)


def _append(conn: Connection, batch: SessionBatch) -> SessionAppended:
    answer = append_session(conn, batch)
    if answer.stream is not None and answer.stored:
        note_taken_up(conn, batch.project, answer.stream, batch.header.agent, batch.header.native)
    return answer


def _decide(conn: Connection, named: str | None, signs: Sequence[tuple[str, str]], secret: bytes) -> Found:
    if named is not None:
        return Found(project=ensure_project(conn, named, secret), found_by=NAMED, value=named)
    return resolve(conn, signs, name_for(signs), secret)


def _prepared(project: ProjectRow, events: Sequence[AgentEvent], now_us: int) -> tuple[NewSessionEvent, ...]:
    return prepare(events, secret=project.secret, now_us=now_us, former=project.former_secrets)


def _header(
    events: Sequence[AgentEvent],
    checkout: Checkout | None,
    origin: Literal["hook", "import"],
    title: str | None,
    transcript: Path | None,
) -> SessionHeader:
    first = events[0]
    return SessionHeader(
        agent=first.agent,
        native=first.session,
        origin=origin,
        parent=first.parent,
        title=fit(title or next((str(e.extra["title"]) for e in events if e.extra.get("title")), None)),
        cwd=fit(next((e.cwd for e in events if e.cwd), None if checkout is None else checkout.cwd)),
        worktree=None if checkout is None else checkout.place,
        branch=fit(
            next((e.branch for e in reversed(events) if e.branch), None if checkout is None else checkout.branch)
        ),
        model=fit(next((e.model for e in reversed(events) if e.model), None)),
        launch=next((n for e in events if (n := launch_number(e.launch)) is not None), None),
        transcript=str(transcript) if transcript is not None and str(transcript).isprintable() else None,
    )
