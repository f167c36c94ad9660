"""Webhooks of a project: changes that are sent to an address, as an operator makes, sees and moves them."""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import structlog

from everkept.api import delivery_views as d
from everkept.api import views as v
from everkept.api.base import Cases
from everkept.api.present import ROW_MAX, bounded, cursor_of, kept, moment, read_cursor, when
from everkept.capture.messages import check_name
from everkept.deliver.webhooks import body_of_test, signed_headers
from everkept.domain.changes import expand_kinds
from everkept.domain.ids import parse_row_id, row_id
from everkept.domain.signatures import KEY_BYTES, secret_of
from everkept.errors import InvalidInput, NotFound
from everkept.store.connection import Connection
from everkept.store.projects import find_subject
from everkept.store.webhooks import (
    NewWebhook,
    WebhookRow,
    add_webhook,
    change_webhook,
    drop_parked,
    find_webhook,
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

OLD_SECRET_S: Final = 86_400.0
_log = structlog.get_logger("everkept.webhooks")
_ID: Final = re.compile(r"whk_[1-9]\d{0,17}")


class Webhooks(Cases):
    """Each is asked for by its id or by its name."""

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
        checked_webhook_name(name)
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
        return _webhook(await self._store.read(webhook_named, self._project_id, webhook_id))

    async def change_webhook(
        self,
        webhook_id: str,
        *,
        url: str | None = None,
        kinds: Sequence[str] | None = None,
        on_reject: d.OnReject | None = None,
    ) -> d.Webhook:
        id_ = await self._number(webhook_id)
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
        await self._write(pause_webhook, self._project_id, await self._number(webhook_id), reason)
        return self._logged("a webhook is paused", await self.get_webhook(webhook_id))

    async def resume_webhook(self, webhook_id: str) -> d.Webhook:
        await self._write(resume_webhook, self._project_id, await self._number(webhook_id))
        return self._logged("a webhook goes on", await self.get_webhook(webhook_id))

    async def replay_webhook(self, webhook_id: str, after: int) -> d.Webhook:
        bounded(after, "after", 0, ROW_MAX)
        await self._write(replay_webhook, self._project_id, await self._number(webhook_id), after)
        return await self.get_webhook(webhook_id)

    async def rotate_webhook(self, webhook_id: str) -> d.WebhookSecret:
        secret = secret_of(secrets.token_bytes(KEY_BYTES))
        id_ = await self._number(webhook_id)
        await self._write(rotate_secret, self._project_id, id_, secret, OLD_SECRET_S)
        return d.WebhookSecret(**dict(await self.get_webhook(webhook_id)), secret=secret)

    async def test_webhook(self, webhook_id: str) -> d.TestDelivery:
        row = await self._store.read(webhook_named, self._project_id, webhook_id)
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
        await self._write(remove_webhook, self._project_id, await self._number(webhook_id))

    async def list_parked(
        self, webhook_id: str, *, limit: int = 50, cursor: str | None = None
    ) -> v.Page[d.ParkedChange]:
        bounded(limit, "limit", 1, 1000)
        id_ = await self._number(webhook_id)
        rows = await self._store.read(list_parked, self._project_id, id_, read_cursor(cursor) or 0, limit + 1)
        shown = [d.ParkedChange(**{**asdict(row), "at": moment(row.at)}) for row in rows[:limit]]
        return v.Page(items=shown, next_cursor=cursor_of(shown[-1].seq) if len(rows) > limit else None)

    async def retry_parked(self, webhook_id: str, *, seq: int | None = None) -> int:
        return await self._write(retry_parked, self._project_id, await self._number(webhook_id), seq)

    async def drop_parked(self, webhook_id: str, *, seq: int | None = None) -> int:
        return await self._write(drop_parked, self._project_id, await self._number(webhook_id), seq)

    def _logged(self, event: str, webhook: d.Webhook) -> d.Webhook:
        _log.warning(event, webhook=webhook.name, project=self._project.name, why=webhook.reason)
        return webhook

    async def _number(self, webhook: str) -> int:
        """Of one by its id or its name. Raises NotFound."""
        return (await self._store.read(webhook_named, self._project_id, webhook)).id

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


def checked_webhook_name(name: str) -> str:
    """Raises InvalidInput, also for what looks like an id, by which it could not be asked for."""
    if _ID.fullmatch(name):
        raise InvalidInput("a webhook's name does not look like an id", field="name")
    return check_name(name, "name")


def webhook_named(conn: Connection, project: int, webhook: str) -> WebhookRow:
    """By id or name. Raises NotFound."""
    if _ID.fullmatch(webhook):
        return get_webhook(conn, project, parse_row_id("whk", webhook))
    found = find_webhook(conn, project, webhook)
    if found is None:
        raise NotFound(f"there is no webhook {webhook!r} in this project", webhook=webhook)
    return found


def _webhook(row: WebhookRow) -> d.Webhook:
    return d.Webhook(
        id=row_id("whk", row.id), name=row.name, url=row.url, kinds=None if row.kinds is None else list(row.kinds),
        subject=kept(row.subject_name), on_reject=row.on_reject, state=row.state, reason=row.reason,
        cursor=row.cursor, lag=row.head - row.cursor, tries=row.tries, next_try_at=when(row.next_try_at),
        failing_since=when(row.failing_since), last_status=row.last_status, last_error=row.last_error,
        delivered_at=when(row.delivered_at), created_at=moment(row.created_at), parked=row.parked,
    )  # fmt: skip
