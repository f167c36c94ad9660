"""Workstreams of a project: named, selected in worktrees, and what their sessions said and did."""

from __future__ import annotations

import re
from collections.abc import Sequence

from everkept.api import views as v
from everkept.api import workstream_views as w
from everkept.api.base import Cases
from everkept.api.present import bounded, cursor_of, moment, read_cursor, when
from everkept.api.workstream_launch_views import launch_view
from everkept.capture.messages import check_name
from everkept.capture.redaction import cleaned
from everkept.domain.ids import event_id, parse_row_id, row_id
from everkept.domain.session import own_name, shortened
from everkept.errors import InvalidInput, NotFound
from everkept.store.connection import Connection
from everkept.store.launch_sessions import (
    NEWEST,
    LinkedRow,
    count_sessions,
    linked_sessions,
    unheard_sessions,
)
from everkept.store.launches import last_launch, list_launches, live_launch
from everkept.store.ledger import LedgerEvent, events_after, find_events, ledger_sizes
from everkept.store.workstreams import (
    WorkstreamRow,
    ensure_workstream,
    find_workstream,
    get_workstream,
    list_workstreams,
    places_of,
    rename_workstream,
    select_workstream,
)

PLACE_CHARS_MAX = 4_096
SESSIONS_SHOWN = 20
"""With a workstream itself; the list of them has all."""
EVENT_CHARS_MAX = 4_000
"""Of an event in a list; the session's own events tell all of it."""
_ID = re.compile(r"wst_[1-9]\d{0,17}")
_PLACE = re.compile(r"(\d{1,18})\.(\d{1,18})")


class Workstreams(Cases):
    async def create_workstream(self, name: str, *, place: str | None = None) -> w.Workstream:
        """The workstream of this name, made where there is none; with `place` (a worktree) also selected there."""
        named = checked_workstream_name(name)
        where = None if place is None else checked_place(place)

        def create(conn: Connection) -> int:
            row = ensure_workstream(conn, self._project_id, named)
            if where is not None:
                select_workstream(conn, self._project_id, row.id, where)
            return row.id

        return await self._workstream(await self._write(create))

    async def list_workstreams(self, *, limit: int = 50, cursor: str | None = None) -> v.Page[w.Workstream]:
        """Newest first."""
        bounded(limit, "limit", 1, 1000)

        def read(conn: Connection) -> v.Page[w.Workstream]:
            rows = list_workstreams(conn, self._project_id, read_cursor(cursor), limit + 1)
            following = cursor_of(rows[limit - 1].id) if len(rows) > limit else None
            return v.Page(items=_views(conn, rows[:limit]), next_cursor=following)

        return await self._store.read(read)

    async def get_workstream(self, workstream: str) -> w.Workstream:
        """By its id or its name. Raises NotFound."""

        def read(conn: Connection) -> w.Workstream:
            row = workstream_named(conn, self._project_id, workstream)
            newest = _sessions(conn, row.id, None, None, SESSIONS_SHOWN).items
            return _views(conn, [row])[0].model_copy(update={"sessions": newest})

        return await self._store.read(read)

    async def rename_workstream(self, workstream: str, name: str) -> w.Workstream:
        """Raises Conflict where another one has the name."""
        new = checked_workstream_name(name)

        def rename(conn: Connection) -> int:
            row = workstream_named(conn, self._project_id, workstream)
            return rename_workstream(conn, self._project_id, row.id, new).id

        return await self._workstream(await self._write(rename))

    async def select_workstream(self, workstream: str, *, place: str) -> w.Workstream:
        """From now on launches in this worktree continue it, unless they name another."""
        where = checked_place(place)

        def select(conn: Connection) -> int:
            row = workstream_named(conn, self._project_id, workstream)
            select_workstream(conn, self._project_id, row.id, where)
            return row.id

        return await self._workstream(await self._write(select))

    async def _workstream(self, row: int) -> w.Workstream:
        """Read apart from the write that it tells of: counting a long ledger would hold up every other writer."""
        return await self.get_workstream(row_id("wst", row))

    async def workstream_events(
        self, workstream: str, *, after: str | None = None, query: str | None = None, limit: int = 50
    ) -> v.Page[w.WorkstreamEvent]:
        """What its sessions said and did, in the order in which it was taken in; `after`: behind this `place`.

        With `query` those in which all its words occur, best first; they are not paged.
        """
        bounded(limit, "limit", 1, 1000)
        if query is not None and after is not None:
            raise InvalidInput("what is searched for is not paged: give either 'query' or 'after'", field="after")
        seq, event = _read_place(after)

        def read(conn: Connection) -> list[LedgerEvent]:
            row = workstream_named(conn, self._project_id, workstream)
            if query is not None:
                return find_events(conn, self._project_id, row.id, query, limit)
            return events_after(conn, row.id, seq, event, limit + 1)

        found = [_event_view(e) for e in await self._store.read(read)]
        return v.Page(items=found[:limit], next_cursor=found[limit - 1].place if len(found) > limit else None)

    async def list_linked_sessions(
        self, workstream: str, *, launch: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> v.Page[w.LinkedSession]:
        """Newest first; before them those of which nothing was taken in yet, a few. `launch`: only its own."""
        bounded(limit, "limit", 1, 1000)
        number = None if launch is None else parse_row_id("lch", launch)

        def read(conn: Connection) -> v.Page[w.LinkedSession]:
            of = workstream_named(conn, self._project_id, workstream).id
            return _sessions(conn, of, number, read_cursor(cursor), limit)

        return await self._store.read(read)

    async def list_launches(self, workstream: str, *, limit: int = 50, cursor: str | None = None) -> v.Page[w.Launch]:
        """Newest first, without their packets."""
        bounded(limit, "limit", 1, 1000)

        def read(conn: Connection) -> v.Page[w.Launch]:
            of = workstream_named(conn, self._project_id, workstream).id
            rows = list_launches(conn, self._project_id, of, read_cursor(cursor), limit + 1)
            following = cursor_of(rows[limit - 1].id) if len(rows) > limit else None
            now = conn.now()
            return v.Page(items=[launch_view(row, now) for row in rows[:limit]], next_cursor=following)

        return await self._store.read(read)


def checked_workstream_name(name: str) -> str:
    """As it is kept. Raises InvalidInput, also for what looks like an id, by which it could not be asked for."""
    if _ID.fullmatch(name):
        raise InvalidInput("a workstream's name does not look like an id", field="name")
    return cleaned(check_name(name, "name"))


def checked_place(place: str) -> str:
    if not place.strip() or len(place) > PLACE_CHARS_MAX or not place.isprintable():
        raise InvalidInput(
            f"place is the path of a worktree, 1 to {PLACE_CHARS_MAX} characters", field="place", limit=PLACE_CHARS_MAX
        )
    return place


def workstream_named(conn: Connection, project: int, workstream: str) -> WorkstreamRow:
    """By id or name. Raises NotFound."""
    if _ID.fullmatch(workstream):
        return get_workstream(conn, project, parse_row_id("wst", workstream))
    found = find_workstream(conn, project, workstream)
    if found is None:
        raise NotFound(f"there is no workstream {workstream!r} in this project", workstream=workstream)
    return found


def _views(conn: Connection, rows: Sequence[WorkstreamRow]) -> list[w.Workstream]:
    """Without their sessions."""
    ids = [row.id for row in rows]
    sizes, places, sessions = ledger_sizes(conn, ids), places_of(conn, ids), count_sessions(conn, ids)
    return [_view(conn, row, sizes.get(row.id, (0, None)), places[row.id], sessions.get(row.id, 0)) for row in rows]


def _view(
    conn: Connection, row: WorkstreamRow, size: tuple[int, int | None], places: list[str], sessions: int
) -> w.Workstream:
    live = live_launch(conn, row.project, row.id)
    last = last_launch(conn, row.project, row.id)
    now = conn.now()
    return w.Workstream(
        id=row_id("wst", row.id), name=row.name, created_at=moment(row.created_at), entries=size[0],
        last_at=when(size[1]), selected_in=places, live=None if live is None else launch_view(live, now),
        last=None if last is None else launch_view(last, now),
        session_count=sessions, sessions=[],
    )  # fmt: skip


def _sessions(
    conn: Connection, workstream: int, launch: int | None, before: int | None, limit: int
) -> v.Page[w.LinkedSession]:
    few = min(SESSIONS_SHOWN, limit - 1) if before is None else 0
    unheard = unheard_sessions(conn, workstream, launch=launch, limit=few)
    room = limit - len(unheard)
    rows = linked_sessions(conn, workstream, launch=launch, before=before or NEWEST, limit=room + 1)
    following = cursor_of(rows[room - 1].stream or 0) if len(rows) > room else None
    return v.Page(items=[_linked_view(one) for one in [*unheard, *rows[:room]]], next_cursor=following)


def _linked_view(row: LinkedRow) -> w.LinkedSession:
    return w.LinkedSession(
        session_id=None if row.stream is None else row_id("ses", row.stream), agent=row.agent,
        native_id=own_name(row.native), launch_id=row_id("lch", row.launch),
    )  # fmt: skip


def _event_view(e: LedgerEvent) -> w.WorkstreamEvent:
    return w.WorkstreamEvent(
        place=f"{e.ledger_seq}.{e.seq}", event_id=event_id(e.stream, e.seq), session_id=row_id("ses", e.stream),
        agent=e.agent, kind=e.kind, text=shortened(e.content, EVENT_CHARS_MAX), occurred_at=moment(e.occurred_at),
    )  # fmt: skip


def _read_place(after: str | None) -> tuple[int, int]:
    if after is None:
        return 0, 0
    found = _PLACE.fullmatch(after)
    if found is None:
        raise InvalidInput("after is the 'place' of an event, as a list gave it out", field="after")
    return int(found[1]), int(found[2])
