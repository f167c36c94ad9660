"""Deliveries: who follows the changes, how far each is, and webhooks with the hand on them."""

from __future__ import annotations

from starlette.responses import Response

from everkept.domain.changes import FAMILIES, is_reserved
from everkept.doors.http.web.slices import slice_of
from everkept.doors.http.web.visit import PAGE_ITEMS, Visit, route
from everkept.errors import InvalidInput


async def deliveries(visit: Visit) -> Response:
    consumers, hooks = await visit.service.list_consumers(), await visit.service.list_webhooks()
    return visit.show(
        "deliveries.html", consumers=slice_of(consumers, "consumers", visit.asked("consumers")),
        hooks=slice_of(hooks, "webhooks", visit.asked("webhooks")), families=FAMILIES, is_reserved=is_reserved,
    )  # fmt: skip


async def webhook(visit: Visit) -> Response:
    """One, with what its receiver rejected."""
    name = visit.at("webhook")
    return visit.show(
        "webhook.html", hook=await visit.service.get_webhook(name), came=None,
        parked=await visit.service.list_parked(name, limit=PAGE_ITEMS, cursor=visit.asked("cursor")),
    )  # fmt: skip


async def add(visit: Visit) -> Response:
    """The secret is in this one answer and nowhere else."""
    form = await visit.form()
    family = form.get("kinds", "").strip()
    made = await visit.service.add_webhook(
        form.get("name", "").strip(), form.get("url", "").strip(), kinds=[family] if family else None,
        on_reject="hold" if "hold" in form else "park",
    )  # fmt: skip
    return visit.show("webhook_made.html", made=made)


async def rotate(visit: Visit) -> Response:
    """Likewise."""
    await visit.form()
    return visit.show("webhook_made.html", made=await visit.service.rotate_webhook(visit.at("webhook")))


async def send_test(visit: Visit) -> Response:
    """What came of it is shown at once."""
    await visit.form()
    name = visit.at("webhook")
    came = await visit.service.test_webhook(name)
    return visit.show(
        "webhook.html", hook=await visit.service.get_webhook(name), came=came,
        parked=await visit.service.list_parked(name, limit=PAGE_ITEMS),
    )  # fmt: skip


async def act(visit: Visit) -> Response:
    """`pause`, `resume`, `replay` (after a change), `retry` or `drop` (one parked change, or each), or `remove` one."""
    name, verb, form = visit.at("webhook"), visit.at("verb"), await visit.form()
    match verb:
        case "pause":
            await visit.service.pause_webhook(name)
        case "resume":
            await visit.service.resume_webhook(name)
        case "replay":
            await visit.service.replay_webhook(name, _number(form, "after"))
        case "retry":
            await visit.service.retry_parked(name, seq=_number(form, "seq") if "seq" in form else None)
        case "drop":
            await visit.service.drop_parked(name, seq=_number(form, "seq") if "seq" in form else None)
        case "remove":
            await visit.service.remove_webhook(name)
            return visit.go("/deliveries", done="removed")
        case _:
            raise InvalidInput("a webhook is tested, paused, resumed, replayed or removed", field="verb")
    return visit.go(f"/deliveries/{visit.segment('webhook')}", done=DONE[verb])


async def replay_consumer(visit: Visit) -> Response:
    """What follows a change is given to a consumer again."""
    await visit.service.replay_consumer(visit.at("consumer"), _number(await visit.form(), "after"))
    return visit.go("/deliveries", done="given_again")


async def remove_consumer(visit: Visit) -> Response:
    await visit.form()
    await visit.service.remove_consumer(visit.at("consumer"))
    return visit.go("/deliveries", done="consumer_removed")


DONE = {
    "pause": "webhook_paused", "resume": "webhook_resumed", "replay": "replayed", "retry": "retried", "drop": "dropped",
}  # fmt: skip


def _number(form: dict[str, str], field: str) -> int:
    text = form.get(field, "").strip()
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise InvalidInput(f"{field} is the number of a change", field=field)
    return int(text)


ROUTES = [
    route("/deliveries", deliveries),
    route("/deliveries", add, "POST"),
    route("/deliveries/consumers/{consumer:id}/replay", replay_consumer, "POST"),
    route("/deliveries/consumers/{consumer:id}/remove", remove_consumer, "POST"),
    route("/deliveries/{webhook:id}", webhook),
    route("/deliveries/{webhook:id}/test", send_test, "POST"),
    route("/deliveries/{webhook:id}/rotate", rotate, "POST"),
    route("/deliveries/{webhook:id}/{verb}", act, "POST"),
]
