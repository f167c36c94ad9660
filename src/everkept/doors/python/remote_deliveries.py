"""Changes, consumers and webhooks, asked of a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from everkept.api import delivery_views as d
from everkept.api import views as v
from everkept.doors.python.asking import Asking, given, path_of
from everkept.doors.python.wire import READ_TIMEOUT_S


class RemoteDeliveries(Asking):
    async def changes(
        self, *, consumer: str | None = None, after: int | None = None, limit: int = 100,
        kinds: Sequence[str] | None = None, subject: str | None = None, wait_s: float = 0.0,
    ) -> v.ChangePage:  # fmt: skip
        query = {
            "consumer": consumer, "after": after, "limit": limit, "kinds": None if kinds is None else list(kinds),
            "subject": subject, "wait": wait_s or None,
        }  # fmt: skip
        raw = await self._wire.ask("GET", "/v1/changes", query=query, timeout_s=READ_TIMEOUT_S + wait_s)
        return self._read(v.ChangePage, raw)

    async def ack(self, consumer: str, up_to: int, *, fence: int | None = None) -> int:
        body = given(consumer=consumer, up_to=up_to, fence=fence)
        raw = await self._wire.ask("POST", "/v1/changes/ack", body=body, safe=True)
        return int(self._read(dict[str, Any], raw)["cursor"])

    async def lease_consumer(
        self, consumer: str, *, owner: str, lease_s: float = 60.0, fence: int | None = None
    ) -> d.ConsumerLease:
        body = given(consumer=consumer, owner=owner, lease_s=lease_s, fence=fence)
        return self._read(d.ConsumerLease, await self._wire.ask("POST", "/v1/changes/lease", body=body, safe=True))

    async def replay_consumer(self, consumer: str, after: int) -> v.Consumer:
        body = {"consumer": consumer, "after": after}
        return self._read(v.Consumer, await self._wire.ask("POST", "/v1/changes/replay", body=body, safe=True))

    async def list_consumers(self) -> list[v.Consumer]:
        return self._read(v.Page[v.Consumer], await self._wire.ask("GET", "/v1/consumers")).items

    async def remove_consumer(self, consumer: str) -> None:
        await self._wire.ask("DELETE", path_of("consumers", consumer))

    # ---- webhooks

    async def add_webhook(
        self, name: str, url: str, *, kinds: Sequence[str] | None = None, subject: str | None = None,
        on_reject: d.OnReject = "park", after: int | None = None,
    ) -> d.WebhookSecret:  # fmt: skip
        """Sent once: a second one would find the name taken, and could not show the secret."""
        wanted = None if kinds is None else list(kinds)
        body = given(name=name, url=url, kinds=wanted, subject=subject, on_reject=on_reject, after=after)
        return self._read(d.WebhookSecret, await self._wire.ask("POST", "/v1/webhooks", body=body))

    async def list_webhooks(self) -> list[d.Webhook]:
        return self._read(v.Page[d.Webhook], await self._wire.ask("GET", "/v1/webhooks")).items

    async def get_webhook(self, webhook_id: str) -> d.Webhook:
        return self._read(d.Webhook, await self._wire.ask("GET", path_of("webhooks", webhook_id)))

    async def change_webhook(
        self, webhook_id: str, *, url: str | None = None, kinds: Sequence[str] | None = None,
        on_reject: d.OnReject | None = None,
    ) -> d.Webhook:  # fmt: skip
        body = given(url=url, kinds=None if kinds is None else list(kinds), on_reject=on_reject)
        raw = await self._wire.ask("PATCH", path_of("webhooks", webhook_id), body=body, safe=True)
        return self._read(d.Webhook, raw)

    async def pause_webhook(self, webhook_id: str, *, reason: str = "by hand") -> d.Webhook:
        return self._read(d.Webhook, await self._move(webhook_id, "pause", {"reason": reason}, safe=True))

    async def resume_webhook(self, webhook_id: str) -> d.Webhook:
        return self._read(d.Webhook, await self._move(webhook_id, "resume", None, safe=True))

    async def replay_webhook(self, webhook_id: str, after: int) -> d.Webhook:
        return self._read(d.Webhook, await self._move(webhook_id, "replay", {"after": after}, safe=True))

    async def rotate_webhook(self, webhook_id: str) -> d.WebhookSecret:
        """Sent once: a second one would end the secret of before."""
        return self._read(d.WebhookSecret, await self._move(webhook_id, "rotate", None))

    async def test_webhook(self, webhook_id: str) -> d.TestDelivery:
        return self._read(d.TestDelivery, await self._move(webhook_id, "test", None))

    async def remove_webhook(self, webhook_id: str) -> None:
        await self._wire.ask("DELETE", path_of("webhooks", webhook_id))

    async def list_parked(
        self, webhook_id: str, *, limit: int = 50, cursor: str | None = None
    ) -> v.Page[d.ParkedChange]:
        query = {"limit": limit, "cursor": cursor}
        raw = await self._wire.ask("GET", path_of("webhooks", webhook_id, "parked"), query=query)
        return self._read(v.Page[d.ParkedChange], raw)

    async def retry_parked(self, webhook_id: str, *, seq: int | None = None) -> int:
        return await self._count(webhook_id, "retry", seq)

    async def drop_parked(self, webhook_id: str, *, seq: int | None = None) -> int:
        return await self._count(webhook_id, "drop", seq)

    async def _count(self, webhook_id: str, verb: str, seq: int | None) -> int:
        path = path_of("webhooks", webhook_id, "parked", verb)
        raw = await self._wire.ask("POST", path, body=given(seq=seq), safe=True)
        return int(self._read(dict[str, Any], raw)["changes"])

    async def _move(self, webhook_id: str, verb: str, body: Any, *, safe: bool = False) -> bytes:
        return await self._wire.ask("POST", path_of("webhooks", webhook_id, verb), body=body, safe=safe)
