"""Changes, and who follows them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Final

from everkept.api import delivery_views as d
from everkept.api import views as v
from everkept.api.base import Cases
from everkept.api.present import ROW_MAX, bounded, kept, moment, when
from everkept.capture.messages import check_name
from everkept.domain.changes import NATS_CONSUMER, change_id, expand_kinds, is_reserved
from everkept.errors import CursorExpired, InvalidInput
from everkept.store.changes import NOBODY, Only, covered, find_cursor, read_changes
from everkept.store.connection import Connection, Row
from everkept.store.consumers import (
    ConsumerRow,
    acknowledge_read,
    find_handed_out,
    get_consumer,
    hold_consumer,
    list_consumers,
    note_handed_out,
    remove_consumer,
    replay_consumer,
)
from everkept.store.projects import find_subject

WAIT_MAX_S: Final = 30.0
LOOK_S: Final = 1.0
"""What another process commits is found at such a look."""
LEASE_MAX_S: Final = 3600.0


class Deliveries(Cases):
    async def changes(
        self,
        *,
        consumer: str | None = None,
        after: int | None = None,
        limit: int = 100,
        kinds: Sequence[str] | None = None,
        subject: str | None = None,
        wait_s: float = 0.0,
    ) -> v.ChangePage:
        self._require_own_name()
        bounded(limit, "limit", 1, 1000)
        if consumer is not None:
            check_name(consumer, "consumer")
        if after is not None:
            bounded(after, "after", 0, ROW_MAX)
        if not 0 <= wait_s <= WAIT_MAX_S:
            raise InvalidInput(f"wait is {wait_s:g}; 0 to {WAIT_MAX_S:g} s are allowed", field="wait", limit=WAIT_MAX_S)
        wanted = None if kinds is None else expand_kinds(kinds)

        def read(conn: Connection, start: int | None) -> v.ChangePage:
            if start is None:
                start = 0 if consumer is None else find_cursor(conn, self._project_id, consumer)
            only = Only(kinds=wanted, subject=self._subject(conn, subject))
            rows, head = read_changes(conn, self._project_id, start, limit, only)
            through = covered(rows, after=start, head=head, limit=limit)
            return v.ChangePage(changes=[_change(row) for row in rows], next_after=through, head=head)

        return await self._handed_out(consumer, await self._read_or_wait(read, after, wait_s))

    async def _read_or_wait(
        self, read: Callable[[Connection, int | None], v.ChangePage], after: int | None, wait_s: float
    ) -> v.ChangePage:
        if not wait_s:
            return await self._store.read(read, after)
        loop = asyncio.get_running_loop()
        until = loop.time() + wait_s
        with self._store.bell.listening(self._project_id) as heard:
            while True:
                heard.clear()
                page = await self._store.read(read, after)
                left_s = until - loop.time()
                if page.changes or left_s <= 0:
                    return page
                if page.next_after >= page.head:
                    await _wait(heard, min(LOOK_S, left_s))
                after = page.next_after

    async def _handed_out(self, consumer: str | None, page: v.ChangePage) -> v.ChangePage:
        """Before anybody has the page: an acknowledgement of what was not given would skip it."""
        if consumer is None or is_reserved(consumer):
            return page
        if await self._store.read(find_handed_out, self._project_id, consumer) < page.next_after:
            await self._write(note_handed_out, self._project_id, consumer, page.next_after)
        return page

    def _require_own_name(self) -> None:
        """Numbers that whoever names a merged project may have counted other changes. Raises CursorExpired."""
        if self._project.found_as is not None:
            raise CursorExpired(
                f"the project {self._project.found_as!r} was merged into {self._project.name!r}, where changes have"
                " other numbers; follow that one, where your consumer goes on, or start from a snapshot of it",
                project=self._project.name,
            )

    def _subject(self, conn: Connection, name: str | None) -> int | None:
        """One that was never seen is not an error: it may be, a moment later."""
        if name is None:
            return None
        return find_subject(conn, self._project_id, check_name(name, "subject")) or NOBODY

    async def ack(self, consumer: str, up_to: int, *, fence: int | None = None) -> int:
        _own(consumer)
        self._require_own_name()
        bounded(up_to, "up_to", 0, ROW_MAX)
        return await self._write(acknowledge_read, self._project_id, consumer, up_to, fence)

    async def lease_consumer(
        self, consumer: str, *, owner: str, lease_s: float = 60.0, fence: int | None = None
    ) -> d.ConsumerLease:
        _own(consumer)
        self._require_own_name()
        check_name(owner, "owner")
        if not 0 <= lease_s <= LEASE_MAX_S:
            raise InvalidInput(
                f"lease_s is {lease_s:g}; 0 to {LEASE_MAX_S:g} are allowed", field="lease_s", limit=LEASE_MAX_S
            )
        held = await self._write(hold_consumer, self._project_id, consumer, owner, lease_s, fence)
        return d.ConsumerLease(consumer=consumer, fence=held.fence, until=moment(held.until))

    async def replay_consumer(self, consumer: str, after: int) -> v.Consumer:
        _by_hand(consumer)
        self._require_own_name()
        bounded(after, "after", 0, ROW_MAX)

        def replay(conn: Connection) -> ConsumerRow:
            replay_consumer(conn, self._project_id, consumer, after)
            return get_consumer(conn, self._project_id, consumer)

        return consumer_view(await self._write(replay))

    async def list_consumers(self) -> list[v.Consumer]:
        return [consumer_view(row) for row in await self._store.read(list_consumers, self._project_id)]

    async def remove_consumer(self, consumer: str) -> None:
        _by_hand(consumer)
        await self._write(remove_consumer, self._project_id, consumer)


async def _wait(heard: asyncio.Event, for_s: float) -> None:
    try:
        async with asyncio.timeout(for_s):
            await heard.wait()
    except TimeoutError:
        return


def _own(consumer: str) -> None:
    """Raises InvalidInput for the name of one of Everkept's own."""
    check_name(consumer, "consumer")
    if is_reserved(consumer):
        raise InvalidInput(
            f"{consumer!r} is a consumer of Everkept's own; webhooks are moved by their own commands, the wiki and NATS"
            " follow by themselves",
            field="consumer",
        )


def _by_hand(consumer: str) -> None:
    """As `_own`, but an operator lets what publishes to NATS go back, too, or forgets how far it was."""
    if consumer != NATS_CONSUMER:
        _own(consumer)


def _change(row: Row) -> v.Change:
    seq, kind, subject, thread, ref, at, data, name = row
    return v.Change(
        id=change_id(name), seq=seq, kind=kind, subject=kept(subject), thread=kept(thread), ref=kept(ref) or "",
        at=moment(at), data=json.loads(data),
    )  # fmt: skip


def consumer_view(row: ConsumerRow) -> v.Consumer:
    return v.Consumer(
        project=row.project, name=row.name, cursor=row.cursor, head=row.head, lag=row.lag, kept=row.kept,
        oldest_at=when(row.oldest_at) if row.kept else None, held_by=row.owner, held_until=when(row.lease_until),
        acked_at=when(row.acked_at), created_at=moment(row.created_at), state=row.state, trouble=row.trouble,
        parked=row.parked,
    )  # fmt: skip
