"""I: what was learned reaches who must hear of it, though readers, receivers and holders of leases die or are late.

A whole receiver over sockets is tried in `tests/acceptance/test_deliveries.py`; what chance finds, in
`tests/crash/model/test_deliveries_model.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.factories import World
from tests.faults.worlds import a_world
from tests.stubs.agent_desk import Desk, a_checkout, a_desk
from tests.stubs.line_of_work import CLAUDE, CODEX, LineOfWork, prompt, said, text_of
from tests.stubs.receiver import OK, Receiver, refusal, silence

from everkept.deliver.post import Answer
from everkept.deliver.webhooks import REJECTIONS_MAX, WebhookSender
from everkept.domain.signatures import secret_of, verify_webhook
from everkept.errors import LeaseLost
from everkept.store.changes import NewChange, find_cursor, read_changes, record_changes
from everkept.store.consumers import acknowledge_read, hold_consumer, note_handed_out
from everkept.store.webhooks import NewWebhook, add_webhook, get_webhook, list_parked

SECRET = secret_of(bytes(range(32)))
DAY_S = 86_400.0
CHANGES = 5
pytestmark = pytest.mark.own_engine("changes, webhooks and launches that others follow")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with a_desk(tmp_path / "home") as made:
        yield made


@pytest.fixture
def line(desk: Desk) -> LineOfWork:
    return LineOfWork(desk)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with a_world(tmp_path) as made:
        yield made


def tell(world: World, count: int = CHANGES) -> None:
    world.write(record_changes, world.project.id, [NewChange(kind="fact.added", ref=f"fct_{n}") for n in range(count)])


# ---- I01: given, and lost before it was had


def test_i01_what_a_follower_had_read_and_died_with_is_read_by_the_next_one(world: World) -> None:
    tell(world)
    project, given = world.project.id, []
    for owner in ("dies", "goes on"):
        held = world.write(hold_consumer, project, "crm", owner, 60.0)
        rows, _ = world.read(read_changes, project, world.read(find_cursor, project, "crm"), 10)
        world.write(note_handed_out, project, "crm", rows[-1][0])
        given.append([row[7] for row in rows])
        world.tick(0.0 if owner == "goes on" else 61.0)
    assert given[0] == given[1]
    assert len(given[1]) == CHANGES
    assert world.write(acknowledge_read, project, "crm", CHANGES, held.fence) == CHANGES


def test_i01_a_packet_whose_reader_died_is_given_to_the_session_again(line: LineOfWork) -> None:
    line.worked(prompt("Build the login"), said("It is built"), key="k1")
    died = line.prepare("k2", agent="codex", native_session=CODEX)
    line.clock.advance(91)
    again = line.prepare("k3", agent="codex", native_session=CODEX)
    assert text_of(again).splitlines()[1:] == text_of(died).splitlines()[1:], "all but the offer's own id"
    assert "Build the login" in text_of(again)


def test_i01_context_that_was_printed_to_a_session_which_died_is_offered_to_the_next(
    desk: Desk, tmp_path: Path
) -> None:
    app = a_checkout(tmp_path / "app")
    desk.work("claude-code", "s1", app)
    assert "Fix the failing login test" in desk.start("codex", "s2", app)
    desk.settle()  # the hook has said that it printed, and nothing was heard of the session since
    assert "Fix the failing login test" in desk.start("codex", "s3", app)
    assert desk.rows("select count(*) from handoffs where state = 'open'") == [(1,)]


# ---- I02: cut to a limit


@pytest.mark.parametrize("tokens", [300, 600, 1_700])
def test_i02_what_a_packet_has_no_room_for_is_counted_and_the_next_one_begins_behind_it(
    line: LineOfWork, tokens: int
) -> None:
    told = 0
    for round_, many in enumerate((120, 1, 40)):
        line.worked(*(prompt(f"Step {round_}-{n} of the work, in many words") for n in range(many)), key=f"w{round_}")
        launch = line.prepare(f"r{round_}", agent="codex", native_session=CODEX, tokens=tokens)
        packet = launch.packet
        assert packet is not None
        assert packet.shown + packet.counted == many
        assert packet.start >= told, "it begins where the one before it ended"
        told = packet.through
        line.accept(launch)
        line.finish(launch)


def test_i02_a_page_that_is_cut_to_a_limit_covers_no_more_than_it_gives(world: World) -> None:
    tell(world, 25)
    heard: list[int] = []
    while len(heard) < 25:
        rows, _ = world.read(read_changes, world.project.id, heard[-1] if heard else 0, 10)
        heard += [row[0] for row in rows]
    assert heard == list(range(1, 26))


# ---- I03: finished twice


def test_i03_a_second_finish_stores_the_events_that_the_first_did_not_carry(line: LineOfWork) -> None:
    launch = line.prepare("k1")
    line.finish(launch, exit_code=0, native_session=CLAUDE)
    late = line.finish(launch, events=[prompt("Build it"), said("Built")], exit_code=1)
    same = line.finish(launch, events=[prompt("Build it"), said("Built")], exit_code=1)
    assert (late.sessions[0].stored, same.sessions[0].stored, same.sessions[0].known) == (2, 0, 2)
    assert (same.launch.exit_code, line.texts()) == (0, ["Build it", "Built"])


# ---- I04: taken over


def test_i04_who_was_taken_over_tells_what_happened_and_changes_nothing_else(line: LineOfWork) -> None:
    old = line.prepare("k1")
    line.clock.advance(91)
    new = line.prepare("k2", owner="bo@desk/2", agent="codex")
    late = line.finish(old, events=[said("It is built")], source_cursor="120", native_session=CLAUDE, exit_code=0)
    assert (late.cursor, late.launch.state, late.launch.exit_code, line.texts()) == (
        "refused",
        "lost",
        0,
        ["It is built"],
    )
    assert line.rows("select source_cursor from workstream_cursors where source_cursor is not null") == []
    assert line.desk.run(line.service.get_launch(new.id)).state == "prepared"


def test_i04_a_follower_that_was_taken_over_acknowledges_nothing(world: World) -> None:
    tell(world)
    project = world.project.id
    old = world.write(hold_consumer, project, "crm", "old", 60.0)
    world.write(note_handed_out, project, "crm", CHANGES)
    world.tick(61.0)
    world.write(hold_consumer, project, "crm", "new", 60.0)
    with pytest.raises(LeaseLost):
        world.write(acknowledge_read, project, "crm", CHANGES, old.fence)
    assert world.read(find_cursor, project, "crm") == 0


# ---- I05: receivers of webhooks


class Hook:
    """One webhook with five changes to send, and its receiver."""

    def __init__(self, world: World, *answers: Answer) -> None:
        self.world = world
        self.receiver = Receiver(answers=list(answers))
        new = NewWebhook(name="crm", url="https://crm.example/hook", secret=SECRET)
        self.id = world.write(add_webhook, world.project.id, new)
        tell(world)

    async def work(self, owner: str = "a") -> None:
        settings = self.world.settings.webhooks
        sender = WebhookSender(self.world.store, self.receiver, settings, self.world.clock, owner=owner)
        await sender.work(self.world.project.id, self.id)

    def send_for(self, seconds: float) -> None:
        """By a process that looks every minute."""
        until = self.world.clock.now_us() + int(seconds * 1e6)
        while self.world.clock.now_us() < until:
            self.world.run(self.work())
            self.world.tick(60.0)

    def first_times(self) -> list[int]:
        """The changes in the order in which each came first; every request is ours, under one id a change."""
        ids: dict[int, set[str]] = {}
        for each in self.receiver.sent:
            sent_s = float(each.headers["webhook-timestamp"])
            assert verify_webhook(SECRET, each.headers, each.body, now=sent_s)["type"] == "fact.added"
            ids.setdefault(each.seq, set()).add(each.id)
        assert all(len(names) == 1 for names in ids.values())
        return list(ids)

    @property
    def cursor(self) -> int:
        return self.world.read(find_cursor, self.world.project.id, "webhook:crm")

    def all_arrived(self) -> bool:
        return (self.first_times(), self.cursor) == (list(range(1, CHANGES + 1)), CHANGES)


def test_i05_a_receiver_that_is_down_for_a_day_gets_everything_in_order(world: World) -> None:
    hook = Hook(world, silence("it cannot be reached: connection refused"))
    hook.send_for(DAY_S)
    assert (hook.first_times(), hook.cursor) == ([1], 0)
    hook.receiver.answers = [OK]
    hook.send_for(world.settings.webhooks.backoff_max_s + 60.0)
    assert hook.all_arrived()


@pytest.mark.parametrize("status", [500, 429, 408])
def test_i05_one_that_fails_once_and_then_takes_it_is_sent_it_again_and_nothing_before(
    world: World, status: int
) -> None:
    hook = Hook(world, OK, refusal(status), OK)
    hook.send_for(600.0)
    assert hook.all_arrived()
    assert hook.receiver.seqs == [1, 2, 2, 3, 4, 5]


def test_i05_one_that_is_slow_holds_its_lease_and_is_sent_each_change_once(world: World) -> None:
    hook = Hook(world, OK)

    async def slowly() -> None:
        world.tick(world.settings.webhooks.timeout_s)

    hook.receiver.meanwhile = slowly
    hook.send_for(60.0)
    assert hook.all_arrived()
    assert hook.receiver.seqs == [1, 2, 3, 4, 5]


def _late(hook: Hook) -> None:
    hook.world.tick(1_000.0)


def _at_once(_hook: Hook) -> None:
    """The other one comes while the first waits for an answer."""


@pytest.mark.parametrize(("when", "twice"), [(_at_once, []), (_late, [1])], ids=["at once", "after a freeze"])
def test_i05_two_processes_keep_one_order_and_the_receiver_can_tell_what_came_twice(
    world: World, when: Callable[[Hook], None], twice: list[int]
) -> None:
    hook = Hook(world, OK)

    async def another_comes() -> None:
        hook.receiver.meanwhile = None
        when(hook)
        await hook.work("b")

    hook.receiver.meanwhile = another_comes
    hook.send_for(60.0)
    assert hook.all_arrived()
    assert hook.receiver.seqs == [*twice, 1, 2, 3, 4, 5]


def test_i05_one_that_rejects_a_change_for_ever_is_sent_the_others_and_the_change_is_shown(world: World) -> None:
    hook = Hook(world, *[refusal(422)] * REJECTIONS_MAX, OK)
    hook.send_for(DAY_S)
    assert hook.all_arrived()
    (parked,) = world.read(list_parked, world.project.id, hook.id, 0, 10)
    assert (parked.seq, parked.reason, parked.tries) == (1, "it answered 422", REJECTIONS_MAX)


def test_i05_one_that_stays_down_is_given_up_visibly_and_nothing_is_passed_by(world: World) -> None:
    hook = Hook(world, silence())
    hook.send_for(4 * DAY_S)
    row = world.read(get_webhook, world.project.id, hook.id)
    assert (row.state, hook.cursor) == ("dead", 0)
    assert "no delivery has succeeded for 3 days" in (row.reason or "")
