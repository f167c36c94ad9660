"""What every group of use cases stands on: one project, the store, and what recall and the jobs work with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Concatenate, ParamSpec, TypeVar

from everkept.api.nats_state import NatsState
from everkept.api.pacing import Pace
from everkept.capture.messages import check_name
from everkept.config import Settings
from everkept.derive.tools import Tools
from everkept.domain.ids import ProjectId, StreamId, SubjectId
from everkept.domain.scope import Scope
from everkept.errors import NotFound
from everkept.ports.clock import Clock
from everkept.recall.search import Searcher
from everkept.store.connection import Connection
from everkept.store.effective import effective
from everkept.store.merging import require_unmerged
from everkept.store.projects import ProjectRow, find_subject
from everkept.store.store import Store
from everkept.store.streams import get_thread

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The process's parts, put together by bootstrap."""

    store: Store
    settings: Settings
    clock: Clock
    tools: Tools
    searcher: Callable[[], Searcher]
    """Made on first use: its word vectors take a moment to load."""
    model_name: str
    pace: Pace = field(default_factory=Pace)
    nats: NatsState = field(default_factory=NatsState)
    patience_s: float = 0.0
    """How long a call waits while messages come too fast; a server has its clients wait instead."""


class Cases:
    """Use cases of one project."""

    def __init__(self, parts: Parts, project: ProjectRow) -> None:
        self._parts = parts
        self._store = parts.store.reaching(project.id)
        self._whole = parts.store
        """For the few cases that look beyond the project."""
        self._project = project
        self._project_id = ProjectId(project.id)

    @property
    def _settings(self) -> Settings:
        """Of the process: what the store resolves further by project and thread when it decides."""
        return self._parts.settings

    @property
    def _project_settings(self) -> Settings:
        """As this project sees them."""
        return effective(self._parts.settings, self._project.settings)

    async def _write(self, act: Callable[Concatenate[Connection, P], R], *given: P.args, **named: P.kwargs) -> R:
        """`act` in one commit. Raises Conflict, with the target's name, where this project was merged since it was
        opened: what is written to it now would be found by nobody."""

        def guarded(conn: Connection) -> R:
            require_unmerged(conn, self._project_id)
            return act(conn, *given, **named)

        return await self._store.write(guarded)

    async def _require_unmerged(self) -> None:
        """Before what is asked for is looked up where nothing is any more. Raises Conflict as `_write` does."""
        await self._store.read(require_unmerged, self._project_id)

    def _scope(self, conn: Connection, subject: str | None, thread: str | None) -> Scope | None:
        """The scope in rows, or None where the subject was never seen. Raises NotFound for an unknown thread."""
        require_unmerged(conn, self._project_id)
        found = None
        if subject is not None:
            found = find_subject(conn, self._project_id, check_name(subject, "subject"))
            if found is None:
                return None
        stream = None
        if thread is not None:
            row = get_thread(conn, self._project_id, thread)
            if found is not None and row.subject != found:
                raise NotFound(f"thread {thread!r} is not one of subject {subject!r}", thread=thread, subject=subject)
            stream = StreamId(row.id)
        return Scope(project=self._project_id, subject=None if found is None else SubjectId(found), stream=stream)
