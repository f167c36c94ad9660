"""`webhooks`: changes that are sent to an address."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from everkept.api import delivery_views as d
from everkept.doors.cli import backend, screen
from everkept.doors.cli.failures import NEEDS_ATTENTION
from everkept.doors.cli.options import COMMON, Common, Cursor, Limit, Switch, command_group
from everkept.doors.cli.wording import ago, clean, count, minute, more

webhooks = command_group("webhooks")
Named = Annotated[str, Parameter(help="The webhook, by its id (whk_…) or name.")]
Seq = Annotated[int | None, Parameter(help="The number of one change; without it, each.")]


@webhooks.default
@webhooks.command(name="list")
async def list_webhooks(*, common: Common = COMMON) -> None:
    """List webhooks with how far each is and why it waits."""
    async with backend.memory(common.project) as memory:
        found = await memory.list_webhooks()
    if common.json:
        screen.emit_list(found)
        return
    if not found:
        screen.say("no webhooks; `everkept webhooks add NAME URL` makes one")
        return
    drawn = screen.table("Webhook", "Name", "Address", "State", "Lag", "Parked", "Trouble", right=("Lag", "Parked"))
    for each in found:
        drawn.add_row(
            each.id, clean(each.name), clean(each.url), each.state, f"{each.lag:,}", f"{each.parked:,}",
            clean(each.reason or each.last_error or "–"),
        )  # fmt: skip
    screen.show(drawn)
    screen.say(count(len(found), "webhook"))


@webhooks.command(name="show")
async def show_webhook(webhook: Named, /, *, limit: Limit = 50, cursor: Cursor = None, common: Common = COMMON) -> None:
    """Show one webhook, and the changes that its receiver rejected."""
    async with backend.memory(common.project) as memory:
        found = await memory.get_webhook(webhook)
        parked = await memory.list_parked(webhook, limit=limit, cursor=cursor)
    if common.json:
        screen.emit({"webhook": found.model_dump(mode="json"), "parked": parked.model_dump(mode="json")})
        return
    for name, value in _facts(found):
        print(f"{name:<14}{clean(value)}")
    if parked.items:
        drawn = screen.table("Change", "Kind", "Rejected", "Tries", "When", right=("Change", "Tries"))
        for each in parked.items:
            drawn.add_row(f"{each.seq}", each.kind or "not kept", clean(each.reason), f"{each.tries}", ago(each.at))
        screen.show(drawn)
    screen.say(count(len(parked.items), "parked change") + more(parked.next_cursor))


def _facts(found: d.Webhook) -> list[tuple[str, str]]:
    failing = "–"
    if found.failing_since is not None:
        failing = f"since {minute(found.failing_since)}, {count(found.tries, 'try', 'tries')}: {found.last_error}"
    return [
        ("webhook", f"{found.id} {found.name}"), ("address", found.url),
        ("state", found.state + (f": {found.reason}" if found.reason else "")),
        ("kinds", ", ".join(found.kinds or ["every kind"])), ("subject", found.subject or "everybody"),
        ("on rejection", found.on_reject), ("cursor", f"{found.cursor:,}, {found.lag:,} behind"), ("failing", failing),
        ("next try", minute(found.next_try_at)), ("delivered", minute(found.delivered_at)),
    ]  # fmt: skip


@webhooks.command(name="add")
async def add_webhook(
    name: str,
    url: str,
    /,
    *,
    kinds: Annotated[list[str] | None, Parameter(help="Only this kind or family, e.g. fact; may be repeated.")] = None,
    subject: Annotated[str | None, Parameter(help="Only this subject's.")] = None,
    hold: Annotated[bool, Switch, Parameter(help="What is rejected holds up what follows, and is not parked.")] = False,
    after: Annotated[int | None, Parameter(help="Begin after this change; without it, with what comes.")] = None,
    common: Common = COMMON,
) -> None:
    """Send changes to an address; the secret that signs them is shown once."""
    async with backend.memory(common.project) as memory:
        made = await memory.add_webhook(
            name, url, kinds=kinds, subject=subject, on_reject="hold" if hold else "park", after=after
        )
    _show_secret(made, as_json=common.json)


@webhooks.command(name="rotate")
async def rotate_webhook(webhook: Named, /, *, common: Common = COMMON) -> None:
    """Make a new secret; that of before signs, too, for another day."""
    async with backend.memory(common.project) as memory:
        made = await memory.rotate_webhook(webhook)
    _show_secret(made, as_json=common.json)


def _show_secret(made: d.WebhookSecret, *, as_json: bool) -> None:
    if as_json:
        screen.emit(made)
        return
    screen.say(f"webhook {made.id} to {made.url}; this is the only time that its secret is shown:")
    print(made.secret)


@webhooks.command(name="test")
async def send_test(webhook: Named, /, *, common: Common = COMMON) -> int:
    """Send one delivery of type webhook.test now; it moves nothing."""
    async with backend.memory(common.project) as memory:
        came = await memory.test_webhook(webhook)
    if common.json:
        screen.emit(came)
    else:
        told = f"it answered {came.status}" if came.delivered else f"not delivered: {came.error}"
        print(f"{told} ({came.took_ms:,.0f} ms)")
    return 0 if came.delivered else NEEDS_ATTENTION


@webhooks.command(name="pause")
async def pause_webhook(
    webhook: Named,
    /,
    *,
    reason: Annotated[str, Parameter(help="Why; shown with it.")] = "by hand",
    common: Common = COMMON,
) -> None:
    """Send nothing until it is resumed; what comes meanwhile waits."""
    async with backend.memory(common.project) as memory:
        _show_state(await memory.pause_webhook(webhook, reason=reason), as_json=common.json)


@webhooks.command(name="resume")
async def resume_webhook(webhook: Named, /, *, common: Common = COMMON) -> None:
    """Go on where it stands, at once."""
    async with backend.memory(common.project) as memory:
        _show_state(await memory.resume_webhook(webhook), as_json=common.json)


@webhooks.command(name="replay")
async def replay_webhook(
    webhook: Named,
    /,
    *,
    after: Annotated[int, Parameter(help="The last change that is not sent again; 0: from the beginning.")],
    common: Common = COMMON,
) -> None:
    """Send again what follows a change, under the ids of before."""
    async with backend.memory(common.project) as memory:
        _show_state(await memory.replay_webhook(webhook, after), as_json=common.json)


def _show_state(after: d.Webhook, *, as_json: bool) -> None:
    screen.emit(after) if as_json else print(f"{after.id}  {after.state}, {after.lag:,} behind")


@webhooks.command(name="retry")
async def retry_parked(webhook: Named, seq: Seq = None, /, *, common: Common = COMMON) -> None:
    """Send a parked change, or each, again."""
    async with backend.memory(common.project) as memory:
        wanted = await memory.retry_parked(webhook, seq=seq)
    screen.emit({"changes": wanted}) if common.json else print(f"{count(wanted, 'change')} will be sent again")


@webhooks.command(name="drop")
async def drop_parked(webhook: Named, seq: Seq = None, /, *, common: Common = COMMON) -> None:
    """Never mind a parked change, or any."""
    async with backend.memory(common.project) as memory:
        dropped = await memory.drop_parked(webhook, seq=seq)
    screen.emit({"changes": dropped}) if common.json else print(f"{count(dropped, 'change')} dropped")


@webhooks.command(name="remove")
async def remove_webhook(webhook: Named, /, *, common: Common = COMMON) -> None:
    """Remove a webhook, with what was parked for it."""
    async with backend.memory(common.project) as memory:
        await memory.remove_webhook(webhook)
    screen.emit({"removed": webhook}) if common.json else print(f"{webhook} is removed")
