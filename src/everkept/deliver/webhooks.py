"""Sending one webhook its changes: in order, one POST each, signed, at least once.

A change keeps its id over all tries, also over a restart and a replay, so that the receiver can tell. What came of a
try is written before the next one begins; killed in between, the same change is sent again under the same id.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import structlog

from everkept.config import Webhooks
from everkept.domain.changes import change_id
from everkept.domain.signatures import ID, SIGNATURE, TIMESTAMP, sign
from everkept.errors import Conflict, CursorExpired, LeaseLost, NotFound, StoreUnavailable
from everkept.ports.clock import Clock
from everkept.store.changes import lease_consumer
from everkept.store.connection import Row
from everkept.store.consumers import hold_consumer
from everkept.store.projects import is_erased
from everkept.store.store import Store
from everkept.store.webhook_sending import (
    Batch,
    Failed,
    next_batch,
    note_covered,
    note_delivered,
    note_expired,
    note_failed,
    note_parked,
    note_taken_back,
)
from everkept.store.webhooks import WebhookRow, get_webhook

if TYPE_CHECKING:
    from everkept.deliver.post import Answer, Post

REJECTIONS_MAX: Final = 5
"""A change that was rejected so often is parked, unless the webhook holds."""
RENEW_S: Final = 20.0
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_log = structlog.get_logger("everkept.webhooks")


@dataclass(slots=True, kw_only=True)
class _Lease:
    fence: int
    trusted_until_s: float
    """On this process's clock, from before it was asked for."""


class WebhookSender:
    """Sends what waits for one webhook after the other; not for two tasks at once with the same webhook."""

    def __init__(self, store: Store, post: Post, settings: Webhooks, clock: Clock, *, owner: str) -> None:
        self._store = store
        self._post = post
        self._settings = settings
        self._clock = clock
        self._owner = owner
        self._lease_s = settings.timeout_s + 2 * RENEW_S

    def _of(self, project: int) -> Store:
        return self._store.reaching(project)

    async def work(self, project: int, id_: int) -> None:
        """Send until nothing waits, or the receiver is to be left alone for a while.

        Whatever the receiver does is written down; LeaseLost, NotFound (it was removed) and Conflict (its project was
        merged, and it goes on there) end it. Raises StoreUnavailable.
        """
        with contextlib.suppress(LeaseLost, NotFound, Conflict):
            webhook = await self._of(project).read(get_webhook, project, id_)
            lease = await self._take(webhook)
            if lease is None:
                return
            try:
                while await self._batch(project, id_, lease):
                    continue
            finally:
                await self._release(webhook, lease)

    async def _take(self, webhook: WebhookRow) -> _Lease | None:
        asked_s = self._clock.monotonic_s()
        fence = await self._of(webhook.project).write(
            lease_consumer, webhook.project, webhook.consumer, self._owner, self._lease_s
        )
        return None if fence is None else _Lease(fence=fence, trusted_until_s=asked_s + self._lease_s)

    async def _keep(self, webhook: WebhookRow, lease: _Lease) -> None:
        """Before each try: the lease outlasts it. Raises LeaseLost."""
        asked_s = self._clock.monotonic_s()
        if lease.trusted_until_s - asked_s > self._settings.timeout_s + RENEW_S:
            return
        await self._of(webhook.project).write(
            hold_consumer, webhook.project, webhook.consumer, self._owner, self._lease_s, lease.fence
        )
        lease.trusted_until_s = asked_s + self._lease_s

    async def _release(self, webhook: WebhookRow, lease: _Lease) -> None:
        """Let another process go on at once; where that cannot be written, once the lease has run out."""
        with contextlib.suppress(StoreUnavailable, LeaseLost):
            await self._of(webhook.project).write(
                hold_consumer, webhook.project, webhook.consumer, self._owner, 0.0, lease.fence
            )

    # ---- what is next

    async def _batch(self, project: int, id_: int, lease: _Lease) -> bool:
        """Send what was read at once; whether there may be more."""
        try:
            batch = await self._of(project).read(next_batch, project, id_)
        except CursorExpired as error:
            webhook = await self._of(project).read(get_webhook, project, id_)
            why = f"{error.message}; replay it from change {error.details['oldest'] - 1} to go on with what is left"
            await self._of(webhook.project).write(note_expired, webhook, lease.fence, why)
            _log.error("a webhook is dead", webhook=webhook.name, project=webhook.project_name, why=why)
            return False
        if batch is None:
            return False
        return await (self._again(batch, lease) if batch.parked else self._in_order(batch, lease))

    async def _in_order(self, batch: Batch, lease: _Lease) -> bool:
        webhook = batch.webhook
        for change in batch.changes:
            answer = await self._try(webhook, change, lease)
            if not await self._note(webhook, lease, change[0], answer):
                return False
            webhook = replace(webhook, tries=0, rejections=0, failing_since=None)
        if not batch.changes or batch.changes[-1][0] < batch.through:
            await self._of(webhook.project).write(note_covered, webhook, lease.fence, batch.through)
        return True

    async def _note(self, webhook: WebhookRow, lease: _Lease, seq: int, answer: Answer) -> bool:
        """Write down what came of a try, and log what is news; whether the next change may be sent now."""
        log = _log.bind(webhook=webhook.name, project=webhook.project_name, change=seq)
        if answer.status is not None and answer.delivered:
            goes_on = await self._of(webhook.project).write(note_delivered, webhook, lease.fence, seq, answer.status)
            if webhook.failing_since is not None:
                log.warning("a webhook delivers again", failed_since=_time(webhook.failing_since))
            return goes_on
        failed = self._failed(webhook, seq, answer)
        tries = webhook.rejections + 1
        if failed.rejected and webhook.on_reject == "park" and tries >= REJECTIONS_MAX:
            goes_on, dead = await self._of(webhook.project).write(note_parked, webhook, lease.fence, failed, tries)
            log.warning("a change is parked: the receiver rejects it", why=failed.error)
        else:
            goes_on, dead = False, await self._of(webhook.project).write(
                note_failed, webhook, lease.fence, failed, self._settings.give_up_s
            )  # fmt: skip
            if webhook.failing_since is None:
                log.warning("a webhook fails; it is tried again", why=failed.error, wait_s=round(failed.wait_s, 1))
            if failed.rejected and tries == REJECTIONS_MAX:
                log.warning("a change that the receiver rejects holds up what follows", why=failed.error)
        if dead is not None:
            log.error("a webhook is dead", why=dead)
        return goes_on

    async def _again(self, batch: Batch, lease: _Lease) -> bool:
        """Another try of a parked change, outside the order."""
        webhook, seq = batch.webhook, batch.through
        if not batch.changes:
            gone = Failed(seq=seq, status=None, error="the change is no longer kept", wait_s=0.0, rejected=True)
            await self._of(webhook.project).write(note_taken_back, webhook, lease.fence, seq, gone)
            return True
        answer = await self._try(webhook, batch.changes[0], lease)
        failed = None if answer.delivered else self._failed(webhook, seq, answer)
        await self._of(webhook.project).write(note_taken_back, webhook, lease.fence, seq, failed)
        return True

    # ---- one try

    async def _try(self, webhook: WebhookRow, change: Row, lease: _Lease) -> Answer:
        await self._keep(webhook, lease)
        body = body_of(change, webhook.project_name)
        headers = signed_headers(webhook, delivery_id(webhook, change), self._clock.now_us(), body)
        try:
            return await self._post(webhook.url, headers, body)
        except Exception as error:  # noqa: BLE001  (a try that is not noted is made again without a wait)
            from everkept.deliver.post import Answer  # with an HTTP client, which is there where anything is sent

            _log.error("a webhook could not be sent", webhook=webhook.id, why=repr(error))
            return Answer(status=None, error=f"it could not be sent: {type(error).__name__}")

    def _failed(self, webhook: WebhookRow, seq: int, answer: Answer) -> Failed:
        """Full jitter: of all waits up to one that doubles, so that receivers are not found again in step."""
        assert answer.error is not None
        longest_s = min(self._settings.backoff_max_s, self._settings.backoff_first_s * 2.0 ** min(webhook.tries, 30))
        wait_s = max(longest_s * self._clock.random(), answer.retry_after_s or 0.0)
        return Failed(seq=seq, status=answer.status, error=answer.error, wait_s=wait_s, rejected=answer.rejected)


def delivery_id(webhook: WebhookRow, change: Row) -> str:
    """The same whenever this change goes to this webhook, and never another one's."""
    return f"dlv_{webhook.id}_{change[7]}"


def body_of(change: Row, project: str) -> bytes:
    """{"type", "timestamp", "project", "data"}; `data` is the change as `GET /v1/changes` shows it."""
    seq, kind, subject, thread, ref, at, data, name = change
    shown = {
        "id": change_id(name), "seq": seq, "kind": kind, "subject": _kept(subject), "thread": _kept(thread),
        "ref": _kept(ref) or "",
        "at": _time(at), "data": json.loads(data),
    }  # fmt: skip
    return _json({"type": kind, "timestamp": _time(at), "project": project, "data": shown})


def body_of_test(webhook: WebhookRow, now_us: int) -> bytes:
    """What a test delivery sends: shaped as the others, of a kind that no change has."""
    data = {"webhook": webhook.name}
    return _json({"type": "webhook.test", "timestamp": _time(now_us), "project": webhook.project_name, "data": data})


def signed_headers(webhook: WebhookRow, delivery: str, now_us: int, body: bytes) -> dict[str, str]:
    """Signed by the secret, and by the one of before while it is valid."""
    timestamp = now_us // 1_000_000
    secrets = (webhook.secret, webhook.old_secret)
    return {
        "content-type": "application/json", "user-agent": "Everkept", ID: delivery, TIMESTAMP: str(timestamp),
        SIGNATURE: " ".join(sign(secret, delivery, timestamp, body) for secret in secrets if secret is not None),
    }  # fmt: skip


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _time(us: int) -> str:
    return (_EPOCH + timedelta(microseconds=us)).isoformat().replace("+00:00", "Z")


def _kept(name: str | None) -> str | None:
    return None if is_erased(name) else name
