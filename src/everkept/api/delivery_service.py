"""The use cases of deliveries, as a part of `api.service.Service`: changes, who follows them, and webhooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from everkept.api import delivery_views as d
from everkept.api import views as v


class DeliveryService(Protocol):
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
        """Changes after `after`, or after the consumer's cursor; where there are none, up to `wait_s` is waited.

        `kinds`: `fact.added`, or `fact` for its whole family. A subject's come with every erase, whose subject has no
        name any more. Reading moves nothing. Raises CursorExpired.
        """
        ...  # fmt: skip

    async def ack(self, consumer: str, up_to: int, *, fence: int | None = None) -> int:
        """Move a consumer's cursor forward (never back), to what it was given; the cursor afterwards.

        Raises LeaseLost where it is not held under `fence` any more, Conflict for a change that was not read as it, or
        not since it was leased.
        """
        ...

    async def lease_consumer(
        self, consumer: str, *, owner: str, lease_s: float = 60.0, fence: int | None = None
    ) -> d.ConsumerLease:
        """Be the one that works it, or stay so (`fence`: of the lease that is held); a lease of 0 s gives it up.

        Raises Conflict, which names the holder, and LeaseLost.
        """
        ...

    async def replay_consumer(self, consumer: str, after: int) -> v.Consumer:
        """Let it go on after `after`, also back; whoever holds it is fenced off. Raises NotFound, CursorExpired."""
        ...

    async def list_consumers(self) -> list[v.Consumer]: ...
    async def remove_consumer(self, consumer: str) -> None: ...

    # ---- webhooks; each is asked for by its id or its name
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
        """Send changes to `url` from now on, or from the one after `after` on. The secret is shown this once.

        Raises Conflict for a name that is taken; InvalidInput for one that looks like an id, and for a private
        address, unless it is allowed.
        """
        ...  # fmt: skip

    async def list_webhooks(self) -> list[d.Webhook]: ...
    async def get_webhook(self, webhook_id: str) -> d.Webhook: ...
    async def change_webhook(
        self,
        webhook_id: str,
        *,
        url: str | None = None,
        kinds: Sequence[str] | None = None,
        on_reject: d.OnReject | None = None,
    ) -> d.Webhook:
        """What is not given stays; no `kinds` at all (an empty list) are all of them."""
        ...  # fmt: skip

    async def pause_webhook(self, webhook_id: str, *, reason: str = "by hand") -> d.Webhook:
        """Send nothing until it is resumed; what comes meanwhile waits."""
        ...

    async def resume_webhook(self, webhook_id: str) -> d.Webhook:
        """Go on where it stands. Raises CursorExpired where what follows is no longer kept."""
        ...

    async def replay_webhook(self, webhook_id: str, after: int) -> d.Webhook:
        """Send again what follows `after`, under the ids of before. Raises NotFound, CursorExpired."""
        ...

    async def rotate_webhook(self, webhook_id: str) -> d.WebhookSecret:
        """A new secret; that of before signs, too, for another day."""
        ...

    async def test_webhook(self, webhook_id: str) -> d.TestDelivery:
        """Send one delivery of type `webhook.test` now. Moves nothing, and is not tried again."""
        ...

    async def remove_webhook(self, webhook_id: str) -> None: ...
    async def list_parked(
        self, webhook_id: str, *, limit: int = 50, cursor: str | None = None
    ) -> v.Page[d.ParkedChange]: ...
    async def retry_parked(self, webhook_id: str, *, seq: int | None = None) -> int:
        """Send a parked change, or each, again, before what waits; how many. Raises NotFound for one that is not."""
        ...

    async def drop_parked(self, webhook_id: str, *, seq: int | None = None) -> int:
        """Never mind a parked change, or any; how many. Raises NotFound for one that is not parked."""
        ...
