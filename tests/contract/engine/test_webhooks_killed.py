"""A sender of webhooks killed before and after all it writes or sends (G11): nothing skipped, one id a change."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from tests.contract.engine.test_webhooks import Hooked
from tests.factories import World
from tests.stubs.receiver import OK, refusal

from everkept.deliver.webhooks import REJECTIONS_MAX, WebhookSender
from everkept.store.webhooks import list_parked

CHANGES = 3


class Killed(BaseException):
    """The process is gone: nothing of it runs any more, and nothing is tidied up."""


class Dying:
    """A store whose process dies at the n-th thing it does, before or after that is durable; and is dead from then."""

    def __init__(self, store: Any, deaths: list[int]) -> None:
        self._store = store
        self._deaths = deaths
        self.steps = 0

    def reaching(self, _reach: Any) -> Dying:
        return self

    async def read(self, *call: Any) -> Any:
        return await self._store.read(*call)

    async def write(self, *call: Any) -> Any:
        self.reach()
        result = await self._store.write(*call)
        self.reach()
        return result

    def reach(self) -> None:
        self.steps += 1
        if self._deaths and self.steps >= self._deaths[0]:
            raise Killed


def send(hook: Hooked, deaths: list[int]) -> int:
    """Once, until it ends or dies; how many instants there were."""
    dying = Dying(hook.world.store, deaths)
    receiver = hook.receiver

    async def post(url: str, headers: Any, body: bytes) -> Any:
        dying.reach()
        answer = await receiver(url, headers, body)
        dying.reach()
        return answer

    settings = hook.world.settings.webhooks
    sender = WebhookSender(dying, post, settings, hook.world.clock, owner=f"process {deaths}")  # type: ignore[arg-type]
    try:
        hook.world.run(sender.work(hook.project, hook.id))
    except Killed:
        return 0
    return dying.steps


def delivered(hook: Hooked) -> None:
    """Each change reached the receiver, in order, under one id, and the cursor is at the end."""
    first_seen = list(dict.fromkeys(hook.receiver.seqs))
    assert first_seen == list(range(1, CHANGES + 1))
    assert set(hook.receiver.named) == {f"dlv_{hook.id}_{hook.project}_{seq}" for seq in first_seen}
    assert len({each.id for each in hook.receiver.sent}) == CHANGES
    assert hook.cursor == CHANGES


def at_every_instant(make_world: Callable[..., World], begin: Callable[[Hooked], None]) -> int:
    """Kill at each instant in turn, start another process once the lease has ended, and look at what reached whom."""
    for death in count(1):
        hook = Hooked(make_world(project=f"p{death}"))
        hook.tell(CHANGES)
        begin(hook)
        if send(hook, [death]):
            return death - 1
        cursor = hook.cursor
        assert cursor <= max(hook.receiver.seqs, default=0), "the cursor is never beyond what was sent"
        for _ in range(2 * REJECTIONS_MAX):
            hook.world.tick(4_000)
            send(hook, [])
            assert hook.cursor >= cursor
            cursor = hook.cursor
        delivered(hook)
    raise AssertionError("no run passed untouched")


def test_killed_at_any_instant_every_change_is_delivered_in_order(make_world: Callable[..., World]) -> None:
    assert at_every_instant(make_world, lambda _hook: None) > 4 * CHANGES


def test_killed_at_any_instant_of_a_failure_the_change_is_sent_again(make_world: Callable[..., World]) -> None:
    def begin(hook: Hooked) -> None:
        hook.receiver.answers = [OK, refusal(500), OK]

    assert at_every_instant(make_world, begin) > 8


def test_killed_at_any_instant_of_parking_the_change_is_parked_or_tried_again(
    make_world: Callable[..., World],
) -> None:
    def begin(hook: Hooked) -> None:
        hook.receiver.answers = [*[refusal(422)] * REJECTIONS_MAX, OK]
        for _ in range(REJECTIONS_MAX - 1):
            send(hook, [])
            hook.world.tick(4_000)

    assert at_every_instant(make_world, begin) > 8


def test_a_change_is_parked_or_past_the_cursor_and_never_neither(make_world: Callable[..., World]) -> None:
    for death in range(1, 12):
        hook = Hooked(make_world(project=f"q{death}"))
        hook.tell(1)
        hook.receiver.answers = [refusal(422)]
        for _ in range(REJECTIONS_MAX - 1):
            send(hook, [])
            hook.world.tick(4_000)
        send(hook, [death])
        parked = [each.seq for each in hook.world.read(list_parked, hook.project, hook.id, 0, 10)]
        assert parked == ([1] if hook.cursor else [])
