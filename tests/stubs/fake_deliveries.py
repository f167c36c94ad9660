"""Changes, consumers and webhooks as a project of three changes has them, for tests of the doors alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from everkept.api import delivery_views as d
from everkept.api import views as v
from everkept.domain.changes import expand_kinds
from everkept.domain.ids import parse_row_id
from everkept.errors import Conflict, CursorExpired, LeaseLost, NotFound

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
WEBHOOK = d.Webhook(
    id="whk_1", name="crm", url="https://crm.example/hook", kinds=["fact"], subject=None, on_reject="park",
    state="active", reason=None, cursor=2, lag=1, tries=1, next_try_at=AT, failing_since=AT, last_status=503,
    last_error="it answered 503", delivered_at=AT, created_at=AT, parked=1,
)  # fmt: skip
PARKED = d.ParkedChange(seq=2, kind="fact.added", status=422, reason="it answered 422", tries=5, wanted=False, at=AT)
HEAD = 3


class FakeDeliveries:
    def __init__(self) -> None:
        super().__init__()
        self.cursors: dict[str, int] = {}
        self.holders: dict[str, tuple[str, int]] = {}
        self.webhook = WEBHOOK
        self.parked = [PARKED]

    def _called(self, name: str, **given: Any) -> None:
        raise NotImplementedError

    async def changes(
        self, *, consumer: str | None = None, after: int | None = None, limit: int = 100,
        kinds: Sequence[str] | None = None, subject: str | None = None, wait_s: float = 0.0,
    ) -> v.ChangePage:  # fmt: skip
        self._called("changes", consumer=consumer, after=after, limit=limit, kinds=kinds, subject=subject, wait=wait_s)
        start = self.cursors.get(consumer or "", 0) if after is None else after
        if start < 0:
            raise CursorExpired
        shown = kinds is None or "fact.added" in expand_kinds(kinds)
        found = [
            v.Change(
                id=f"chg_1_{i}_0", seq=i, kind="fact.added", subject=None, thread=None, ref=f"fct_{i}", at=AT, data={}
            )
            for i in range(start + 1, HEAD + 1)
        ][:limit]
        through = found[-1].seq if found else start
        return v.ChangePage(changes=found if shown else [], next_after=through, head=HEAD)

    async def ack(self, consumer: str, up_to: int, *, fence: int | None = None) -> int:
        self._called("ack", consumer=consumer, up_to=up_to, fence=fence)
        if fence is not None and self.holders.get(consumer, ("", 0))[1] != fence:
            raise LeaseLost
        self.cursors[consumer] = max(self.cursors.get(consumer, 0), up_to)
        return self.cursors[consumer]

    async def lease_consumer(
        self, consumer: str, *, owner: str, lease_s: float = 60.0, fence: int | None = None
    ) -> d.ConsumerLease:
        self._called("lease_consumer", consumer=consumer, owner=owner, lease_s=lease_s, fence=fence)
        holder, held = self.holders.get(consumer, (owner, 0))
        if fence is not None and fence != held:
            raise LeaseLost
        if fence is None and holder != owner:
            raise Conflict(f"{holder} holds it", consumer=consumer, holder=holder, free_in_s=lease_s)
        self.holders[consumer] = (owner, held + (fence is None))
        if not lease_s:
            del self.holders[consumer]
        return d.ConsumerLease(consumer=consumer, fence=held + (fence is None), until=AT + timedelta(seconds=lease_s))

    async def replay_consumer(self, consumer: str, after: int) -> v.Consumer:
        self.cursors[consumer] = after
        return self._consumer(consumer)

    def _consumer(self, name: str) -> v.Consumer:
        cursor = self.cursors[name]
        return v.Consumer(
            project="default", name=name, cursor=cursor, head=HEAD, lag=HEAD - cursor, oldest_at=AT, kept=True,
            held_by=None, held_until=None, acked_at=AT, created_at=AT, state=None, trouble=None, parked=0,
        )  # fmt: skip

    async def list_consumers(self) -> list[v.Consumer]:
        return [self._consumer(name) for name in sorted(self.cursors)]

    async def remove_consumer(self, consumer: str) -> None:
        if consumer not in self.cursors:
            raise NotFound(f"there is no consumer {consumer!r} in this project", consumer=consumer)
        del self.cursors[consumer]

    # ---- webhooks

    async def add_webhook(
        self, name: str, url: str, *, kinds: Sequence[str] | None = None, subject: str | None = None,
        on_reject: d.OnReject = "park", after: int | None = None,
    ) -> d.WebhookSecret:  # fmt: skip
        if name == self.webhook.name:
            raise Conflict(f"there is a webhook {name!r} already", name=name)
        return d.WebhookSecret(**{**dict(self.webhook), "id": "whk_2", "name": name, "url": url}, secret="whsec_c2Vj")

    async def list_webhooks(self) -> list[d.Webhook]:
        return [self.webhook]

    async def get_webhook(self, webhook_id: str) -> d.Webhook:
        if parse_row_id("whk", webhook_id) != 1:
            raise NotFound(f"there is no webhook {webhook_id} in this project", id=webhook_id)
        return self.webhook

    async def _set(self, webhook_id: str, **changed: Any) -> d.Webhook:
        self.webhook = (await self.get_webhook(webhook_id)).model_copy(update=changed)
        return self.webhook

    async def change_webhook(
        self, webhook_id: str, *, url: str | None = None, kinds: Sequence[str] | None = None,
        on_reject: d.OnReject | None = None,
    ) -> d.Webhook:  # fmt: skip
        given = {"url": url, "kinds": kinds, "on_reject": on_reject}
        return await self._set(webhook_id, **{name: value for name, value in given.items() if value is not None})

    async def pause_webhook(self, webhook_id: str, *, reason: str = "by hand") -> d.Webhook:
        return await self._set(webhook_id, state="paused", reason=reason)

    async def resume_webhook(self, webhook_id: str) -> d.Webhook:
        return await self._set(webhook_id, state="active", reason=None)

    async def replay_webhook(self, webhook_id: str, after: int) -> d.Webhook:
        return await self._set(webhook_id, state="active", reason=None, cursor=after, lag=HEAD - after)

    async def rotate_webhook(self, webhook_id: str) -> d.WebhookSecret:
        return d.WebhookSecret(**dict(await self.get_webhook(webhook_id)), secret="whsec_bmV3")

    async def test_webhook(self, webhook_id: str) -> d.TestDelivery:
        await self.get_webhook(webhook_id)
        return d.TestDelivery(delivered=False, status=503, error="it answered 503", took_ms=12.5)

    async def remove_webhook(self, webhook_id: str) -> None:
        await self.get_webhook(webhook_id)

    async def list_parked(
        self, webhook_id: str, *, limit: int = 50, cursor: str | None = None
    ) -> v.Page[d.ParkedChange]:
        await self.get_webhook(webhook_id)
        return v.Page(items=self.parked[:limit])

    async def retry_parked(self, webhook_id: str, *, seq: int | None = None) -> int:
        return len([each for each in self.parked if seq in (None, each.seq)])

    async def drop_parked(self, webhook_id: str, *, seq: int | None = None) -> int:
        dropped = await self.retry_parked(webhook_id, seq=seq)
        self.parked = [each for each in self.parked if seq not in (None, each.seq)]
        return dropped
