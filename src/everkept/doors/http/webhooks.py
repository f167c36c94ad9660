"""Webhooks: changes that are sent to an address."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from everkept.api import delivery_views as d
from everkept.api import views as v
from everkept.doors.http.changes import EXPIRED
from everkept.doors.http.problems import RESPONSES
from everkept.doors.http.scope import InProject, Queried
from everkept.doors.http.words import Listed, Sequence63, Words

router = APIRouter(tags=["deliver"], responses=RESPONSES)
Address = Annotated[str, Field(max_length=2000, examples=["https://crm.example.com/everkept"])]
KindList = Annotated[list[str], Field(max_length=100, examples=[["fact", "memory.erased"]])]
_REJECTS = "What the receiver rejects is parked after five tries, or holds up what follows."


class WebhookBody(Words):
    name: str = Field(min_length=1, max_length=200, examples=["my-crm"])
    url: Address
    kinds: KindList | None = Field(default=None, description="`fact.added`, or `fact` for its family.")
    subject: str | None = Field(default=None, description="Only this subject's. Also accepted: `user_id`, `dataset`.")
    on_reject: d.OnReject = Field(default="park", description=_REJECTS)
    after: Sequence63 | None = Field(default=None, description="Begin after this change; without it, with what comes.")


class WebhookChanges(Words):
    url: Address | None = None
    kinds: KindList | None = Field(default=None, description="An empty list: every kind.")
    on_reject: d.OnReject | None = Field(default=None, description=_REJECTS)


class PauseWebhookBody(Words):
    reason: str = Field(default="by hand", min_length=1, max_length=1000)


class AfterBody(Words):
    after: Sequence63 = Field(description="The last change that is not sent again.")


class ParkedBody(Words):
    seq: Sequence63 | None = Field(default=None, description="The number of one change; without it, each.")


class Counted(BaseModel):
    changes: int


@router.post("/v1/webhooks", operation_id="add_webhook", status_code=201)
async def add_webhook(body: WebhookBody, service: InProject) -> d.WebhookSecret:
    """The secret is in this one answer. Signed after the Standard Webhooks convention."""
    return await service.add_webhook(
        body.name, body.url, kinds=body.kinds, subject=body.subject, on_reject=body.on_reject, after=body.after
    )


@router.get("/v1/webhooks", operation_id="list_webhooks")
async def list_webhooks(service: InProject) -> v.Page[d.Webhook]:
    """Of the project, with how far each is and why it waits."""
    return v.Page(items=await service.list_webhooks())


@router.get("/v1/webhooks/{webhook:id}", operation_id="get_webhook")
async def get_webhook(webhook: str, service: InProject) -> d.Webhook:
    return await service.get_webhook(webhook)


@router.patch("/v1/webhooks/{webhook:id}", operation_id="change_webhook")
async def change_webhook(webhook: str, body: WebhookChanges, service: InProject) -> d.Webhook:
    """What is not given stays."""
    return await service.change_webhook(webhook, url=body.url, kinds=body.kinds, on_reject=body.on_reject)


@router.delete("/v1/webhooks/{webhook:id}", operation_id="remove_webhook", status_code=204)
async def remove_webhook(webhook: str, service: InProject) -> None:
    """With what was parked for it."""
    await service.remove_webhook(webhook)


@router.post("/v1/webhooks/{webhook:id}/test", operation_id="test_webhook")
async def test_webhook(webhook: str, service: InProject) -> d.TestDelivery:
    """Send one delivery of type `webhook.test` now; it moves nothing."""
    return await service.test_webhook(webhook)


@router.post("/v1/webhooks/{webhook:id}/pause", operation_id="pause_webhook")
async def pause_webhook(webhook: str, service: InProject, body: PauseWebhookBody | None = None) -> d.Webhook:
    """Send nothing until it is resumed; what comes meanwhile waits."""
    return await service.pause_webhook(webhook, reason=(body or PauseWebhookBody()).reason)


@router.post("/v1/webhooks/{webhook:id}/resume", operation_id="resume_webhook", responses=EXPIRED)
async def resume_webhook(webhook: str, service: InProject) -> d.Webhook:
    """Go on where it stands, at once."""
    return await service.resume_webhook(webhook)


@router.post("/v1/webhooks/{webhook:id}/replay", operation_id="replay_webhook", responses=EXPIRED)
async def replay_webhook(webhook: str, body: AfterBody, service: InProject) -> d.Webhook:
    """Send again what follows a change, under the ids of before."""
    return await service.replay_webhook(webhook, body.after)


@router.post("/v1/webhooks/{webhook:id}/rotate", operation_id="rotate_webhook")
async def rotate_webhook(webhook: str, service: InProject) -> d.WebhookSecret:
    """A new secret, in this one answer; that of before signs, too, for another day."""
    return await service.rotate_webhook(webhook)


@router.get("/v1/webhooks/{webhook:id}/parked", operation_id="list_parked")
async def list_parked(webhook: str, service: Queried, query: Annotated[Listed, Query()]) -> v.Page[d.ParkedChange]:
    """Changes that the receiver rejected, and that were passed by."""
    return await service.list_parked(webhook, limit=query.limit, cursor=query.cursor)


@router.post("/v1/webhooks/{webhook:id}/parked/retry", operation_id="retry_parked")
async def retry_parked(webhook: str, service: InProject, body: ParkedBody | None = None) -> Counted:
    """Send one, or each, again, before what waits."""
    return Counted(changes=await service.retry_parked(webhook, seq=None if body is None else body.seq))


@router.post("/v1/webhooks/{webhook:id}/parked/drop", operation_id="drop_parked")
async def drop_parked(webhook: str, service: InProject, body: ParkedBody | None = None) -> Counted:
    """Never mind one, or any."""
    return Counted(changes=await service.drop_parked(webhook, seq=None if body is None else body.seq))
