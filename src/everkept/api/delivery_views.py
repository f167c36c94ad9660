"""What every door answers with about deliveries: leases of consumers, webhooks, and what their receivers rejected."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from everkept.api.views import View

OnReject = Literal["park", "hold"]


class ConsumerLease(View):
    """One of several holds a consumer; what it acknowledges under `fence` counts until `until`."""

    consumer: str
    fence: int
    until: datetime


class Webhook(View):
    """A consumer whose changes are sent to an address."""

    id: str
    name: str
    url: str
    kinds: list[str] | None
    """None: every kind."""
    subject: str | None
    on_reject: OnReject
    """Whether what the receiver rejects is parked after five tries, or holds up what follows."""
    state: Literal["active", "paused", "dead"]
    reason: str | None
    """Why it is paused or dead."""
    cursor: int
    lag: int
    tries: int
    """Of the change that is next, so far."""
    next_try_at: datetime | None
    failing_since: datetime | None
    last_status: int | None
    """None: no answer came."""
    last_error: str | None
    delivered_at: datetime | None
    created_at: datetime
    parked: int


class WebhookSecret(Webhook):
    """A webhook with its secret, which is shown this once."""

    secret: str


class ParkedChange(View):
    """A change that the receiver rejected, and that was passed by."""

    seq: int
    kind: str | None
    """None where the change itself is no longer kept."""
    status: int | None
    reason: str
    tries: int
    wanted: bool
    """Whether it is about to be sent again."""
    at: datetime


class TestDelivery(View):
    """What came of a test delivery."""

    delivered: bool
    status: int | None
    error: str | None
    took_ms: float
