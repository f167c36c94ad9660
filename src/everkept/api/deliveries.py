"""Changes, who follows them, and webhooks."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from everkept.api import delivery_views as d
from everkept.api import views as v
from everkept.api.base import Cases
from everkept.api.present import ROW_MAX, bounded, cursor_of, moment, read_cursor, when
from everkept.capture.messages import check_name
from everkept.deliver.webhooks import body_of_test, signed_headers
from everkept.domain.changes import change_id, expand_kinds, is_reserved
from everkept.domain.ids import parse_row_id, row_id
from everkept.domain.signatures import KEY_BYTES, secret_of
from everkept.errors import CursorExpired, InvalidInput, NotFound
from everkept.store.changes import NOBODY, Only, acknowledge, covered, find_cursor, read_changes
from everkept.store.connection import Connection, Row
from everkept.store.consumers import (
    ConsumerRow,
    get_consumer,
    hold_consumer,
    list_consumers,
    remove_consumer,
    replay_consumer,
)
from everkept.store.projects import find_subject, is_erased
from everkept.store.webhooks import (
    NewWebhook,
    WebhookRow,
    add_webhook,
    change_webhook,
    drop_parked,
    get_webhook,
    list_parked,
    list_webhooks,
    pause_webhook,
    remove_webhook,
    replay_webhook,
    resume_webhook,
    retry_parked,
    rotate_secret,
)

if TYPE_CHECKING:
    from everkept.deliver.post import HttpPost

WAIT_MAX_S: Final = 30.0
LOOK_S: Final = 1.0
"""What another process commits is found at such a look."""
LEASE_MAX_S: Final = 3600.0
OLD_SECRET_S: Final = 86_400.0


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
        return await self._write(acknowledge, self._project_id, consumer, up_to, fence)

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
        _own(consumer)
        self._require_own_name()
        bounded(after, "after", 0, ROW_MAX)

        def replay(conn: Connection) -> ConsumerRow:
            replay_consumer(conn, self._project_id, consumer, after)
            return get_consumer(conn, self._project_id, consumer)

        return consumer_view(await self._write(replay))

    async def list_consumers(self) -> list[v.Consumer]:
        return [consumer_view(row) for row in await self._store.read(list_consumers, self._project_id)]

    async def remove_consumer(self, consumer: str) -> None:
        _own(consumer)
        await self._write(remove_consumer, self._project_id, consumer)

    # ---- webhooks

    async def add_webhook(
        self,
        name: str,
        url: str,
        *,
        kinds: Sequence[str] | None = None,
        subject: str | None = None,
        on_reject: d.OnReject = "park",
        after: int | None = None,
    ) -> d.WebhookSecret:
        check_name(name, "name")
        await self._check_url(url)
        if kinds:
            expand_kinds(kinds)
        if after is not None:
            bounded(after, "after", 0, ROW_MAX)
        secret = secret_of(secrets.token_bytes(KEY_BYTES))

        def add(conn: Connection) -> WebhookRow:
            of = None if subject is None else find_subject(conn, self._project_id, check_name(subject, "subject"))
            if subject is not None and of is None:
                raise NotFound(f"there is no subject {subject!r} in this project yet", subject=subject)
            new = NewWebhook(
                name=name, url=url, secret=secret, kinds=kinds or None, subject=of, on_reject=on_reject, after=after
            )
            return get_webhook(conn, self._project_id, add_webhook(conn, self._project_id, new))

        return d.WebhookSecret(**dict(_webhook(await self._write(add))), secret=secret)

    async def list_webhooks(self) -> list[d.Webhook]:
        return [_webhook(row) for row in await self._store.read(list_webhooks, self._project_id)]

    async def get_webhook(self, webhook_id: str) -> d.Webhook:
        return _webhook(await self._store.read(get_webhook, self._project_id, parse_row_id("whk", webhook_id)))

    async def change_webhook(
        self,
        webhook_id: str,
        *,
        url: str | None = None,
        kinds: Sequence[str] | None = None,
        on_reject: d.OnReject | None = None,
    ) -> d.Webhook:
        id_ = parse_row_id("whk", webhook_id)
        if url is not None:
            await self._check_url(url)
        if kinds:
            expand_kinds(kinds)

        def change(conn: Connection) -> None:
            now = get_webhook(conn, self._project_id, id_)
            wanted = now.kinds if kinds is None else (tuple(kinds) or None)
            change_webhook(conn, self._project_id, id_, url or now.url, wanted, now.subject, on_reject or now.on_reject)

        await self._write(change)
        return await self.get_webhook(webhook_id)

    async def pause_webhook(self, webhook_id: str, *, reason: str = "by hand") -> d.Webhook:
        await self._write(pause_webhook, self._project_id, parse_row_id("whk", webhook_id), reason)
        return await self.get_webhook(webhook_id)

    async def resume_webhook(self, webhook_id: str) -> d.Webhook:
        await self._write(resume_webhook, self._project_id, parse_row_id("whk", webhook_id))
        return await self.get_webhook(webhook_id)

    async def replay_webhook(self, webhook_id: str, after: int) -> d.Webhook:
        bounded(after, "after", 0, ROW_MAX)
        await self._write(replay_webhook, self._project_id, parse_row_id("whk", webhook_id), after)
        return await self.get_webhook(webhook_id)

    async def rotate_webhook(self, webhook_id: str) -> d.WebhookSecret:
        secret = secret_of(secrets.token_bytes(KEY_BYTES))
        id_ = parse_row_id("whk", webhook_id)
        await self._write(rotate_secret, self._project_id, id_, secret, OLD_SECRET_S)
        return d.WebhookSecret(**dict(await self.get_webhook(webhook_id)), secret=secret)

    async def test_webhook(self, webhook_id: str) -> d.TestDelivery:
        row = await self._store.read(get_webhook, self._project_id, parse_row_id("whk", webhook_id))
        clock = self._parts.clock
        now_us, begun_s = clock.now_us(), clock.monotonic_s()
        body = body_of_test(row, now_us)
        async with self._post() as post:
            answer = await post(row.url, signed_headers(row, f"dlv_{row.id}_test_{now_us}", now_us, body), body)
        return d.TestDelivery(
            delivered=answer.delivered, status=answer.status, error=answer.error,
            took_ms=round(1000 * (clock.monotonic_s() - begun_s), 1),
        )  # fmt: skip

    async def remove_webhook(self, webhook_id: str) -> None:
        await self._write(remove_webhook, self._project_id, parse_row_id("whk", webhook_id))

    async def list_parked(
        self, webhook_id: str, *, limit: int = 50, cursor: str | None = None
    ) -> v.Page[d.ParkedChange]:
        bounded(limit, "limit", 1, 1000)
        id_ = parse_row_id("whk", webhook_id)
        rows = await self._store.read(list_parked, self._project_id, id_, read_cursor(cursor) or 0, limit + 1)
        shown = [d.ParkedChange(**{**asdict(row), "at": moment(row.at)}) for row in rows[:limit]]
        return v.Page(items=shown, next_cursor=cursor_of(shown[-1].seq) if len(rows) > limit else None)

    async def retry_parked(self, webhook_id: str, *, seq: int | None = None) -> int:
        return await self._write(retry_parked, self._project_id, parse_row_id("whk", webhook_id), seq)

    async def drop_parked(self, webhook_id: str, *, seq: int | None = None) -> int:
        return await self._write(drop_parked, self._project_id, parse_row_id("whk", webhook_id), seq)

    async def _check_url(self, url: str) -> None:
        async with self._post() as post:
            await post.check(url)

    @asynccontextmanager
    async def _post(self) -> AsyncIterator[HttpPost]:
        from everkept.deliver.post import HttpPost  # an HTTP client, which hardly a process needs

        settings = self._settings.webhooks
        post = HttpPost(timeout_s=settings.timeout_s, allow_private=settings.allow_private)
        try:
            yield post
        finally:
            await post.close()


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
            f"{consumer!r} is a consumer of Everkept's own; a webhook is moved by its id, a wiki follows by itself",
            field="consumer",
        )


def _change(row: Row) -> v.Change:
    seq, kind, subject, thread, ref, at, data, name = row
    return v.Change(
        id=change_id(name), seq=seq, kind=kind, subject=_kept(subject), thread=_kept(thread), ref=_kept(ref) or "",
        at=moment(at), data=json.loads(data),
    )  # fmt: skip


def _kept(name: str | None) -> str | None:
    """None where the name's owner was erased."""
    return None if is_erased(name) else name


def consumer_view(row: ConsumerRow) -> v.Consumer:
    return v.Consumer(
        project=row.project, name=row.name, cursor=row.cursor, head=row.head, lag=row.lag, kept=row.kept,
        oldest_at=when(row.oldest_at) if row.kept else None, held_by=row.owner, held_until=when(row.lease_until),
        acked_at=when(row.acked_at), created_at=moment(row.created_at), state=row.state, trouble=row.trouble,
        parked=row.parked,
    )  # fmt: skip


def _webhook(row: WebhookRow) -> d.Webhook:
    return d.Webhook(
        id=row_id("whk", row.id), name=row.name, url=row.url, kinds=None if row.kinds is None else list(row.kinds),
        subject=_kept(row.subject_name), on_reject=row.on_reject, state=row.state, reason=row.reason,
        cursor=row.cursor, lag=row.head - row.cursor, tries=row.tries, next_try_at=when(row.next_try_at),
        failing_since=when(row.failing_since), last_status=row.last_status, last_error=row.last_error,
        delivered_at=when(row.delivered_at), created_at=moment(row.created_at), parked=row.parked,
    )  # fmt: skip
