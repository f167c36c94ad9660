"""Webhooks (G11, I05): in order, at least once, under one id; a receiver that fails holds up only itself, visibly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import structlog
from tests.factories import World
from tests.stubs.receiver import OK, Receiver, refusal, silence

from everkept.deliver.webhooks import REJECTIONS_MAX, WebhookSender, body_of
from everkept.domain.erase import ERASED_MARK
from everkept.domain.signatures import secret_of, verify_webhook
from everkept.errors import Conflict, CursorExpired, LeaseLost, NotFound, SignatureInvalid
from everkept.store import webhook_sending
from everkept.store.changes import NewChange, find_cursor, lease_consumer, prune_changes, record_changes
from everkept.store.consumers import hold_consumer
from everkept.store.webhook_sending import PARKED_MAX, Failed, due_webhooks, note_delivered, note_failed, note_parked
from everkept.store.webhooks import (
    NewWebhook,
    WebhookRow,
    add_webhook,
    change_webhook,
    drop_parked,
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

SECRET = secret_of(bytes(range(32)))
DAY_S = 86_400.0


class Hooked:
    """One webhook of a project, its receiver, and senders of as many processes as are asked for."""

    def __init__(self, world: World, *, kinds: list[str] | None = None, on_reject: str = "park") -> None:
        self.world = world
        self.project = world.project.id
        self.receiver = Receiver()
        self.id = world.write(add_webhook, self.project, NewWebhook(
            name="crm", url="https://crm.example/hook", secret=SECRET, kinds=kinds, on_reject=on_reject,
        ))  # fmt: skip

    @property
    def row(self) -> WebhookRow:
        return self.world.read(get_webhook, self.project, self.id)

    @property
    def cursor(self) -> int:
        return self.world.read(find_cursor, self.project, "webhook:crm")

    def sender(self, owner: str = "a") -> WebhookSender:
        settings = self.world.settings.webhooks
        return WebhookSender(self.world.store, self.receiver, settings, self.world.clock, owner=owner)

    def tell(self, count: int, kind: str = "fact.added") -> None:
        self.world.write(
            record_changes, self.project, [NewChange(kind=kind, ref=f"fct_{n}") for n in range(1, count + 1)]
        )

    def send(self, owner: str = "a") -> None:
        self.world.run(self.sender(owner).work(self.project, self.id))

    def send_when_due(self, times: int) -> None:
        """So many tries, each as soon as its wait is over, by a process of its own."""
        for nth in range(times):
            self.world.tick(max(0.0, ((self.row.next_try_at or 0) - self.world.clock.now_us()) / 1e6) + 0.001)
            self.send(f"process {nth}")

    def is_due(self, owner: str = "a") -> bool:
        return (self.project, self.id) in self.world.read(due_webhooks, owner)


def test_each_change_is_one_signed_request_in_order_and_moves_the_cursor(world: World) -> None:
    hook = Hooked(world)
    hook.tell(3)
    hook.send()
    assert (hook.receiver.seqs, hook.cursor) == ([1, 2, 3], 3)
    assert hook.receiver.named == [f"dlv_{hook.id}_{hook.project}_{n}" for n in (1, 2, 3)]
    for each in hook.receiver.sent:
        told = verify_webhook(SECRET, each.headers, each.body, now=world.clock.now_us() / 1e6)
        assert (told["type"], told["project"]) == ("fact.added", "default")
    assert (hook.row.delivered_at, hook.row.last_status, hook.is_due()) == (world.clock.now_us(), 200, False)


def test_a_webhook_begins_with_what_comes_unless_it_is_told_where_to_begin(world: World) -> None:
    earlier = Hooked(world)
    earlier.tell(2)
    late = world.write(add_webhook, world.project.id, NewWebhook(name="late", url="https://x.example", secret=SECRET))
    early = world.write(
        add_webhook, world.project.id, NewWebhook(name="early", url="https://x.example", secret=SECRET, after=0)
    )
    rows = {row.id: row.cursor for row in world.read(list_webhooks, world.project.id)}
    assert (rows[late], rows[early]) == (2, 0)
    with pytest.raises(Conflict):
        world.write(add_webhook, world.project.id, NewWebhook(name="late", url="https://x.example", secret=SECRET))
    with pytest.raises(NotFound):
        world.write(
            add_webhook, world.project.id, NewWebhook(name="no", url="https://x.example", secret=SECRET, after=9)
        )


def test_a_change_that_failed_once_is_sent_again_under_its_id_and_nothing_overtakes_it(world: World) -> None:
    hook = Hooked(world)
    hook.receiver.answers = [OK, refusal(500), OK]
    hook.tell(3)
    hook.send()
    assert (hook.receiver.seqs, hook.cursor, hook.row.tries) == ([1, 2], 1, 1)
    assert (hook.row.last_status, hook.row.failing_since) == (500, world.clock.now_us())
    hook.send_when_due(1)
    assert (hook.receiver.seqs, hook.cursor) == ([1, 2, 2, 3], 3)
    assert hook.receiver.sent[1].id == hook.receiver.sent[2].id
    assert (hook.row.tries, hook.row.failing_since, hook.row.last_error) == (0, None, None)


def test_a_wait_outlasts_the_process_that_began_it(world: World) -> None:
    hook = Hooked(world)
    hook.receiver.answers = [refusal(503, retry_after_s=120.0), OK]
    hook.tell(1)
    hook.send()
    assert not hook.is_due("another")
    hook.send("another")
    world.tick(119)
    hook.send("another")
    assert len(hook.receiver.sent) == 1, "the receiver asked for two minutes"
    world.tick(1.001)
    assert hook.is_due("another")
    hook.send("another")
    assert (len(hook.receiver.sent), hook.cursor) == (2, 1)


def test_a_try_that_fails_in_a_way_nobody_thought_of_is_one_that_failed(world: World) -> None:
    """Without a wait it would be made again every second, and the webhook would never be dead."""
    hook = Hooked(world)
    hook.tell(1)

    async def fail() -> None:
        raise OverflowError("a date")

    hook.receiver.meanwhile = fail
    hook.send()
    assert (hook.cursor, hook.row.tries, hook.row.failing_since) == (0, 1, world.clock.now_us())
    assert hook.row.last_error == "it could not be sent: OverflowError"


def test_waits_grow_and_stay_below_the_longest(world: World) -> None:
    hook = Hooked(world)
    hook.receiver.answers = [silence()]
    hook.tell(1)
    waits = []
    for _ in range(25):
        hook.send_when_due(1)
        waits.append(((hook.row.next_try_at or 0) - world.clock.now_us()) / 1e6)
    settings = world.settings.webhooks
    bounds = [min(settings.backoff_max_s, settings.backoff_first_s * 2**n) for n in range(25)]
    assert all(0 <= wait <= bound + 0.001 for wait, bound in zip(waits, bounds, strict=True))
    assert max(waits[12:]) > max(waits[:3])


def test_a_receiver_that_is_down_for_a_day_gets_everything_in_order_afterwards(world: World) -> None:
    hook = Hooked(world)
    hook.receiver.answers = [silence("it cannot be reached: connection refused")]
    begun = world.clock.now_us()
    hook.tell(5)
    while world.clock.now_us() - begun < DAY_S * 1e6:
        hook.send_when_due(1)
    assert (hook.row.state, set(hook.receiver.seqs), hook.cursor) == ("active", {1}, 0)
    hook.receiver.answers = [OK]
    hook.receiver.sent.clear()
    hook.send_when_due(1)
    assert (hook.receiver.seqs, hook.cursor) == ([1, 2, 3, 4, 5], 5)


def test_a_webhook_that_fails_for_days_is_dead_with_the_reason_and_goes_on_by_hand(world: World) -> None:
    hook = Hooked(world)
    hook.receiver.answers = [refusal(500)]
    hook.tell(2)
    begun = world.clock.now_us()
    while hook.row.state == "active":
        hook.send_when_due(1)
    lasted_s = (world.clock.now_us() - begun) / 1e6
    assert 3 * DAY_S <= lasted_s < 3 * DAY_S + world.settings.webhooks.backoff_max_s + 60
    assert (hook.row.state, hook.row.reason) == (
        "dead", "no delivery has succeeded for 3 days; at last: it answered 500",
    )  # fmt: skip
    hook.receiver.answers, sent = [OK], len(hook.receiver.sent)
    world.tick(7 * DAY_S)
    hook.send()
    assert (len(hook.receiver.sent), hook.is_due()) == (sent, False), "dead ones are left alone"
    world.write(resume_webhook, hook.project, hook.id)
    hook.send()
    assert (hook.receiver.seqs[sent:], hook.cursor, hook.row.state) == ([1, 2], 2, "active")


def test_a_change_that_is_rejected_five_times_is_parked_and_the_next_one_goes(world: World) -> None:
    hook = Hooked(world)
    hook.receiver.answers = [*[refusal(422)] * REJECTIONS_MAX, OK]
    hook.tell(2)
    hook.send_when_due(REJECTIONS_MAX - 1)
    assert (hook.cursor, hook.row.parked) == (0, 0)
    hook.send_when_due(1)
    assert (hook.receiver.seqs, hook.cursor) == ([1, 1, 1, 1, 1, 2], 2)
    (parked,) = world.read(list_parked, hook.project, hook.id, 0, 10)
    assert (parked.seq, parked.kind, parked.status, parked.reason, parked.tries, parked.wanted) == (
        1, "fact.added", 422, "it answered 422", REJECTIONS_MAX, False,
    )  # fmt: skip


def test_only_rejections_count_towards_parking(world: World) -> None:
    """A receiver that was down a while and then does not like a change has seen it once."""
    hook = Hooked(world)
    hook.receiver.answers = [*[refusal(503)] * 10, *[refusal(400)] * REJECTIONS_MAX, OK]
    hook.tell(1)
    hook.send_when_due(10 + REJECTIONS_MAX - 1)
    assert (hook.cursor, hook.row.parked) == (0, 0)
    hook.send_when_due(1)
    assert (hook.cursor, hook.row.parked) == (1, 1)


@pytest.mark.parametrize("status", [408, 409, 425, 429, 301, 500, 503])
def test_an_answer_that_may_pass_is_never_a_rejection(world: World, status: int) -> None:
    hook = Hooked(world)
    hook.receiver.answers = [refusal(status)]
    hook.tell(1)
    hook.send_when_due(2 * REJECTIONS_MAX)
    assert (hook.cursor, hook.row.parked, hook.row.rejections) == (0, 0, 0)


def test_a_webhook_that_holds_parks_nothing_and_keeps_strict_order(world: World) -> None:
    hook = Hooked(world, on_reject="hold")
    hook.receiver.answers = [*[refusal(422)] * 12, OK]
    hook.tell(2)
    hook.send_when_due(12)
    assert (set(hook.receiver.seqs), hook.row.parked) == ({1}, 0)
    hook.send_when_due(1)
    assert (hook.receiver.seqs[-2:], hook.cursor) == ([1, 2], 2)


def test_a_parked_change_is_sent_again_or_dropped_by_hand(world: World) -> None:
    hook = Hooked(world)
    hook.receiver.answers = [*[refusal(422)] * (3 * REJECTIONS_MAX), OK]
    hook.tell(3)
    hook.send_when_due(3 * REJECTIONS_MAX - 2)
    assert (hook.cursor, hook.row.parked) == (3, 3)
    hook.receiver.answers = [OK, refusal(422), OK]
    hook.receiver.sent.clear()
    assert world.write(drop_parked, hook.project, hook.id, 2) == 1
    assert world.write(retry_parked, hook.project, hook.id, None) == 2
    assert hook.is_due()
    hook.send()
    assert hook.receiver.named == [f"dlv_{hook.id}_{hook.project}_{n}" for n in (1, 3)]
    (left,) = world.read(list_parked, hook.project, hook.id, 0, 10)
    assert (left.seq, left.tries, left.wanted, hook.cursor) == (3, REJECTIONS_MAX + 1, False, 3)
    assert not hook.is_due()


def test_a_parked_change_that_is_no_longer_kept_says_so(world: World) -> None:
    hook = Hooked(world)
    hook.receiver.answers = [*[refusal(410)] * REJECTIONS_MAX, OK]
    hook.tell(1)
    hook.send_when_due(REJECTIONS_MAX)
    world.tick(100)
    world.write(prune_changes, 10)
    world.write(retry_parked, hook.project, hook.id, 1)
    hook.send()
    (left,) = world.read(list_parked, hook.project, hook.id, 0, 10)
    assert (left.kind, left.reason, left.wanted) == (None, "the change is no longer kept", False)


def test_a_receiver_that_rejects_everything_is_left_alone_once_many_are_parked(world: World) -> None:
    hook = Hooked(world)
    world.write(lambda conn: conn.raw.executemany(
        "insert into parked_changes(webhook_id, seq, reason, tries, at) values(?, ?, 'it answered 422', 5, 0)",
        [(hook.id, 1_000_000 + n) for n in range(PARKED_MAX - 1)],
    ))  # fmt: skip
    hook.receiver.answers = [refusal(422)]
    hook.tell(2)
    hook.send_when_due(REJECTIONS_MAX)
    assert (hook.row.state, hook.cursor) == ("dead", 1)
    assert "1,000 changes are parked" in (hook.row.reason or "")


def test_what_a_filter_passes_by_counts_as_covered(world: World) -> None:
    hook = Hooked(world, kinds=["page"])
    hook.tell(3, "fact.added")
    hook.tell(1, "page.written")
    hook.tell(2, "fact.changed")
    hook.send()
    assert (hook.receiver.seqs, hook.cursor, hook.is_due()) == ([4], 6, False)


def test_a_process_that_dies_before_it_writes_down_the_answer_sends_the_same_again(world: World) -> None:
    hook = Hooked(world)
    hook.tell(2)

    async def die() -> None:
        raise KeyboardInterrupt

    hook.receiver.meanwhile = die
    with pytest.raises(KeyboardInterrupt):
        hook.send("dead")
    hook.receiver.meanwhile = None
    world.tick(1_000)
    hook.send("alive")
    assert (hook.receiver.seqs, hook.cursor) == ([1, 1, 2], 2)
    assert hook.receiver.sent[0].id == hook.receiver.sent[1].id


def test_two_processes_never_send_one_webhook_at_once(world: World) -> None:
    hook = Hooked(world)
    hook.tell(2)
    inner: list[int] = []

    async def another_comes() -> None:
        hook.receiver.meanwhile = None
        assert not hook.is_due("b")
        await hook.sender("b").work(hook.project, hook.id)
        inner.append(len(hook.receiver.sent))

    hook.receiver.meanwhile = another_comes
    hook.send("a")
    assert (inner, hook.receiver.seqs) == ([1], [1, 2])


def test_a_process_that_comes_back_late_writes_nothing(world: World) -> None:
    """A frozen sender wakes up after another took over: its answer counts for nothing (I04)."""
    hook = Hooked(world)
    hook.tell(2)
    hook.receiver.answers = [OK, OK, refusal(500)]

    async def freeze() -> None:
        hook.receiver.meanwhile = None
        world.tick(1_000)
        await hook.sender("b").work(hook.project, hook.id)

    hook.receiver.meanwhile = freeze
    hook.send("a")
    assert (hook.receiver.seqs, hook.cursor) == ([1, 1, 2], 2)
    assert (hook.row.tries, hook.row.failing_since, hook.row.last_status) == (0, None, 200)


def test_a_late_process_changes_nothing_of_what_was_passed_already(world: World) -> None:
    hook = Hooked(world)
    hook.tell(2)
    late = world.write(lease_consumer, hook.project, hook.row.consumer, "late", 60.0)
    world.tick(61)
    now = world.write(lease_consumer, hook.project, hook.row.consumer, "now", 60.0)
    assert late is not None
    assert now is not None
    world.write(note_delivered, hook.row, now, 1, 200)
    down = Failed(seq=2, status=None, error="down", wait_s=3000.0, rejected=False)
    world.write(note_failed, hook.row, now, down, 3 * DAY_S)
    known = hook.row
    with pytest.raises(LeaseLost):
        world.write(note_delivered, hook.row, late, 1, 200)
    rejected = Failed(seq=1, status=422, error="it answered 422", wait_s=0.0, rejected=True)
    with pytest.raises(LeaseLost):
        world.write(note_parked, hook.row, late, rejected, REJECTIONS_MAX)
    assert hook.row == known


def test_who_sent_a_webhook_that_was_removed_moves_no_other_of_its_name(world: World) -> None:
    hook = Hooked(world)
    hook.tell(3)
    removed = hook.row
    before = world.write(lease_consumer, hook.project, removed.consumer, "a", 60.0)
    assert before is not None
    world.write(remove_webhook, hook.project, hook.id)
    again = NewWebhook(name="crm", url="https://new.example", secret=SECRET, after=0)
    hook.id = world.write(add_webhook, hook.project, again)
    world.write(lease_consumer, hook.project, removed.consumer, "b", 60.0)
    with pytest.raises(LeaseLost):
        world.write(note_delivered, removed, before, 3, 200)
    assert hook.cursor == 0


def test_a_slow_delivery_keeps_its_lease_over_the_next_one(world: World) -> None:
    hook = Hooked(world)
    hook.tell(5)

    async def slowly() -> None:
        world.tick(world.settings.webhooks.timeout_s)

    hook.receiver.meanwhile = slowly
    hook.send("a")
    assert (hook.receiver.seqs, hook.cursor) == ([1, 2, 3, 4, 5], 5)


def test_a_pause_holds_after_the_delivery_under_way(world: World) -> None:
    hook = Hooked(world)
    hook.tell(3)

    async def pause() -> None:
        world.write(pause_webhook, hook.project, hook.id, "a release")

    hook.receiver.meanwhile = pause
    hook.send()
    assert (hook.receiver.seqs, hook.cursor, hook.row.state, hook.row.reason) == ([1], 1, "paused", "a release")
    assert not hook.is_due()
    hook.receiver.meanwhile = None
    world.write(resume_webhook, hook.project, hook.id)
    hook.send()
    assert hook.receiver.seqs == [1, 2, 3]


def test_since_when_it_fails_outlasts_a_pause_and_a_resumed_one_is_given_all_days_again(world: World) -> None:
    hook = Hooked(world)
    hook.receiver.answers = [refusal(500)]
    hook.tell(1)
    hook.send()
    began = world.clock.now_us()
    assert (hook.row.failing_since, hook.row.tries) == (began, 1)
    world.write(pause_webhook, hook.project, hook.id, "they mend it")
    assert (hook.row.failing_since, hook.row.last_error) == (began, "it answered 500")
    world.tick(10 * DAY_S)
    world.write(resume_webhook, hook.project, hook.id)
    hook.send()
    assert (hook.row.state, hook.row.failing_since, hook.row.tries) == ("active", began, 1)
    while hook.row.state == "active":
        hook.send_when_due(1)
    assert 13 * DAY_S <= (world.clock.now_us() - began) / 1e6 < 13 * DAY_S + world.settings.webhooks.backoff_max_s + 60
    hook.receiver.answers = [OK]
    world.write(resume_webhook, hook.project, hook.id)
    hook.send()
    assert (hook.row.state, hook.row.failing_since, hook.cursor) == ("active", None, 1)


def test_the_log_tells_when_a_receiver_begins_to_fail_and_when_it_is_well_again(world: World) -> None:
    hook = Hooked(world)
    hook.receiver.answers = [refusal(500)]
    hook.tell(2)
    with structlog.testing.capture_logs() as logs:
        hook.send()
        hook.send_when_due(3)
        hook.receiver.answers = [OK, OK]
        hook.send_when_due(1)
        hook.tell(1)
        hook.send()
    told = [(each["event"], each["log_level"], each["change"]) for each in logs]
    assert told == [
        ("a webhook fails; it is tried again", "warning", 1), ("a webhook delivers again", "warning", 1)
    ]  # fmt: skip
    assert {(each["webhook"], each["project"]) for each in logs} == {("crm", "default")}


@pytest.mark.parametrize(
    ("on_reject", "event"),
    [
        ("park", "a change is parked: the receiver rejects it"),
        ("hold", "a change that the receiver rejects holds up what follows"),
    ],
)
def test_the_log_tells_of_a_change_that_is_rejected(world: World, on_reject: str, event: str) -> None:
    hook = Hooked(world, on_reject=on_reject)
    hook.receiver.answers = [refusal(422)]
    hook.tell(1)
    with structlog.testing.capture_logs() as logs:
        hook.send()
        hook.send_when_due(REJECTIONS_MAX)
    assert [each["event"] for each in logs] == ["a webhook fails; it is tried again", event]


def test_a_receiver_that_fails_after_a_success_is_not_left_alone_as_one_that_never_answered(world: World) -> None:
    hook = Hooked(world)
    hook.receiver.answers = [refusal(500)]
    hook.tell(2)
    hook.send()
    hook.send_when_due(9)
    hook.receiver.answers = [OK, refusal(500)]
    hook.send_when_due(1)
    assert (hook.cursor, hook.row.tries) == (1, 1)
    wait_s = ((hook.row.next_try_at or 0) - world.clock.now_us()) / 1e6
    assert wait_s <= world.settings.webhooks.backoff_first_s


def test_a_replay_sends_again_under_the_same_ids_and_fences_off_who_was_sending(world: World) -> None:
    hook = Hooked(world)
    hook.tell(3)
    hook.send()

    async def replay() -> None:
        hook.receiver.meanwhile = None
        world.write(replay_webhook, hook.project, hook.id, 1)

    hook.tell(1)
    hook.receiver.meanwhile = replay
    hook.send()
    assert hook.cursor == 1, "what was under way moves the cursor no more"
    hook.send()
    assert (hook.receiver.seqs, hook.cursor) == ([1, 2, 3, 4, 2, 3, 4], 4)
    assert hook.receiver.sent[1].id == hook.receiver.sent[4].id
    with pytest.raises(NotFound):
        world.write(replay_webhook, hook.project, hook.id, 5)


def test_a_webhook_that_is_removed_while_it_is_sent_leaves_nothing(world: World) -> None:
    hook = Hooked(world)
    hook.tell(2)

    async def remove() -> None:
        world.write(remove_webhook, hook.project, hook.id)

    hook.receiver.meanwhile = remove
    hook.send()
    assert hook.receiver.seqs == [1]
    for table in ("webhooks", "parked_changes", "consumers"):
        assert world.read(lambda conn, name=table: conn.raw.execute(f"select count(*) from {name}").fetchone()) == (0,)
    with pytest.raises(NotFound):
        world.write(remove_webhook, hook.project, hook.id)


def test_a_webhook_that_is_behind_what_is_kept_says_where_it_can_go_on(world: World) -> None:
    hook = Hooked(world)
    hook.tell(3)
    world.tick(11)
    world.write(prune_changes, 10)
    hook.tell(1)
    hook.send()
    assert (hook.row.state, hook.receiver.sent) == ("dead", [])
    assert "replay it from change 3" in (hook.row.reason or "")
    with pytest.raises(CursorExpired):
        world.write(resume_webhook, hook.project, hook.id)
    world.write(replay_webhook, hook.project, hook.id, 3)
    hook.send()
    assert (hook.receiver.seqs, hook.row.state) == ([4], "active")


def test_a_rotated_secret_signs_beside_the_old_one_for_a_day(world: World) -> None:
    hook = Hooked(world)
    new = secret_of(b"\x07" * 32)
    world.write(rotate_secret, hook.project, hook.id, new, DAY_S)
    hook.tell(1)
    hook.send()
    world.tick(DAY_S)
    hook.tell(1)
    hook.send()
    during, after = hook.receiver.sent
    now = world.clock.now_us() / 1e6
    for secret in (SECRET, new):
        assert verify_webhook(secret, during.headers, during.body, now=now - DAY_S)
    assert verify_webhook(new, after.headers, after.body, now=now)
    with pytest.raises(SignatureInvalid):
        verify_webhook(SECRET, after.headers, after.body, now=now)


def test_an_address_that_was_changed_is_used_from_the_next_look_on(world: World) -> None:
    hook = Hooked(world)
    hook.receiver.answers = [refusal(404), OK]
    hook.tell(1)
    hook.send()
    world.write(change_webhook, hook.project, hook.id, "https://new.example/hook", None, None, "park")
    hook.send_when_due(1)
    assert [each.url for each in hook.receiver.sent] == ["https://crm.example/hook", "https://new.example/hook"]


def test_what_follows_a_change_of_the_address_goes_to_the_new_one(world: World) -> None:
    """Also what was read before, and what was under way: whether the old one took it counts no more."""
    hook = Hooked(world)
    hook.tell(3)

    async def change() -> None:
        hook.receiver.meanwhile = None
        world.write(change_webhook, hook.project, hook.id, "https://new.example/hook", None, None, "park")

    hook.receiver.meanwhile = change
    hook.send()
    assert hook.is_due("another"), "nobody waits for a lease"
    hook.send("another")
    assert [(each.url, each.seq) for each in hook.receiver.sent] == [
        ("https://crm.example/hook", 1), *(("https://new.example/hook", n) for n in (1, 2, 3)),
    ]  # fmt: skip
    assert hook.cursor == 3


def test_those_that_are_being_sent_take_no_place_from_those_that_wait(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = Hooked(world)
    other = world.write(add_webhook, hook.project, NewWebhook(name="other", url="https://x.example", secret=SECRET))
    hook.tell(1)
    monkeypatch.setattr(webhook_sending, "WEBHOOKS_MAX", 1)
    assert world.read(due_webhooks, "a") == [(hook.project, hook.id)]
    assert world.read(due_webhooks, "a", [hook.id]) == [(hook.project, other)]
    assert world.read(due_webhooks, "a", [hook.id, other]) == []


def test_projects_have_webhooks_of_their_own(make_world: Callable[..., World]) -> None:
    here, there = make_world(), make_world(project="other")
    mine, theirs = Hooked(here), Hooked(there)
    mine.tell(2)
    theirs.tell(1)
    mine.send()
    assert (mine.receiver.seqs, theirs.receiver.seqs, theirs.cursor) == ([1, 2], [], 0)
    with pytest.raises(NotFound):
        here.read(get_webhook, here.project.id, theirs.id)


def test_names_that_were_erased_are_not_told() -> None:
    body = body_of((1, "fact.added", f"{ERASED_MARK}12", "chat", "fct_1", 1_500_000, "{}", "3_1_1500000"), "default")
    assert b'"id":"chg_3_1_1500000"' in body
    assert b'"subject":null' in body
    assert b'"at":"1970-01-01T00:00:01.500000Z"' in body
    assert ERASED_MARK.encode() not in body


def test_the_holder_of_the_lease_is_the_only_one_who_notes_anything(world: World) -> None:
    hook = Hooked(world)
    hook.tell(1)
    world.write(hold_consumer, hook.project, "webhook:crm", "somebody", 60.0)
    hook.send("a")
    assert hook.receiver.sent == []
    world.tick(61)
    hook.send("a")
    assert hook.receiver.seqs == [1]


def test_answers_are_delivered_or_say_why_not() -> None:
    assert (OK.delivered, refusal(500).delivered, silence().rejected) == (True, False, False)
    assert [replace(refusal(400), status=s).rejected for s in (400, 404, 410, 422, 408, 409, 425, 429, 300)] == [
        True, True, True, True, False, False, False, False, False,
    ]  # fmt: skip
