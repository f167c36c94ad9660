"""Taking events from JetStream (G1, G2): acknowledged after our commit, harmless when given again, never lost."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.factories import World
from tests.nats.broker import Broker

from everkept.api.base import Parts
from everkept.api.nats_intake import TAKE_MESSAGE, EventIntake, lane_of
from everkept.api.nats_messages import take_message
from everkept.api.nats_state import Counter, Letter, Take
from everkept.bootstrap import Application
from everkept.config import Nats
from everkept.deliver.nats_link import connected
from everkept.deliver.nats_streams import consumer_config, ensure_streams, look
from everkept.derive.tools import Tools
from everkept.domain.nats_seen import NatsSeen
from everkept.domain.nats_subjects import subject_of
from everkept.doors.nats import taker
from everkept.errors import StoreFull, Unavailable
from everkept.store.jobs_by_hand import retry_dead
from everkept.store.projects import ensure_project, update_project

WAIT_S = 0.3
MESSAGE = {"thread": "chat", "subject": "ana", "role": "user", "content": "I live in Lisbon."}
EVENT = {"kind": "prompt", "agent": "codex", "session": "s-1", "text": "Fix the build."}


class Desk:
    """The part of a process that takes events."""

    def __init__(self, world: World, settings: Nats) -> None:
        self.world = world
        self.settings = settings

        def no_search() -> Any:
            raise AssertionError("taking searches nothing")

        self.parts = Parts(
            store=world.store, settings=dataclasses.replace(world.settings, nats=settings), clock=world.clock,
            tools=Tools(model=None, words=None, embedder=None), searcher=no_search, model_name="none",
        )  # fmt: skip
        self.take: Take = taker(Application(self.parts, None))
        world.runner(kinds={TAKE_MESSAGE: take_message(self.parts.nats, world.clock)}, tasks=[])

    def step(self, *, take: Take | None = None) -> int:
        """By a process of its own, what waits now; how many messages it was given."""

        async def once() -> int:
            async with connected(self.settings) as link:
                await ensure_streams(link)
                return await EventIntake(self.parts, link, take or self.take).step(WAIT_S)

        return self.world.run(once())

    def work(self) -> dict[str, tuple[str, str | None]]:
        """Run the jobs, with a connection; {key: (state, class of error)} of what was set aside."""

        async def connected_work() -> None:
            async with connected(self.settings) as link:
                loop = asyncio.get_running_loop()
                self.parts.nats.counter = Counter(link=link, take=self.take, loop=loop)
                runner = self.world.runner()
                while await runner.step():
                    await runner.drain_started()
                self.parts.nats.counter = None

        self.world.run(connected_work())
        return self.aside

    @property
    def aside(self) -> dict[str, tuple[str, str | None]]:
        sql = "select key, state, error_class from jobs where kind = ? order by id"
        return {key.partition(" @")[0]: (state, why) for key, state, why in self.world.rows(sql, TAKE_MESSAGE)}

    @property
    def texts(self) -> list[str]:
        return [text for (text,) in self.world.rows("select content from events order by stream_id, seq")]

    @property
    def seen(self) -> NatsSeen:
        async def once() -> NatsSeen:
            async with connected(self.settings) as link:
                return await look(link)

        return self.world.run(once())

    @property
    def left(self) -> tuple[int, int]:
        """(not given yet, given and not acknowledged)"""
        return self.seen.pending, self.seen.unacknowledged


@pytest.fixture
def desk(broker: Broker, world: World, settings: Nats) -> Desk:
    broker.make_streams()
    return Desk(world, settings)


def test_a_message_of_a_thread_and_an_event_of_a_session_are_taken_in_and_acknowledged(
    desk: Desk, broker: Broker
) -> None:
    broker.send(MESSAGE, key="m-1")
    broker.send({"thread": "chat", "messages": [{"role": "assistant", "content": "Noted."}]}, key="m-2")
    broker.send(EVENT, key="codex:e-1")
    broker.send({"events": [{**EVENT, "key": "codex:e-2", "text": "Run it."}]}, key="e-2")
    assert desk.step() == 4
    assert desk.texts == ["I live in Lisbon.", "Noted.", "Fix the build.", "Run it."]
    assert (desk.left, desk.aside) == ((0, 0), {})


class Killed(BaseException):
    """The process is gone."""


def impatient(broker: Broker, world: World, settings: Nats, **more: Any) -> Desk:
    """What is not acknowledged is given again after a tenth of a second."""
    own = dataclasses.replace(settings, ack_wait_s=0.1, **more)
    Broker(world, own).make_streams()
    return Desk(world, own)


def test_ten_deliveries_of_one_message_are_one_event(broker: Broker, world: World, settings: Nats) -> None:
    """Each time the process dies between its commit and its acknowledgement."""
    desk = impatient(broker, world, settings)

    async def die(letter: Letter) -> None:
        await desk.take(letter)
        raise Killed

    broker.send(MESSAGE, key="m-1")
    for _ in range(9):
        with pytest.raises(Killed):
            desk.step(take=die)
        assert desk.texts == ["I live in Lisbon."]
    assert (desk.seen.unacknowledged, desk.seen.redelivered) == (1, 1)
    assert desk.step() == 1
    assert (desk.texts, desk.left, desk.aside) == (["I live in Lisbon."], (0, 0), {})


def test_an_event_without_a_key_of_its_own_has_that_of_its_message(desk: Desk, broker: Broker) -> None:
    """Beyond the stream's window of duplicates the same message is stored again: its key still tells."""
    broker.send(EVENT, key="codex:e-1")
    broker.delete_streams()
    desk.step()
    broker.send(EVENT, key="codex:e-1")
    desk.step()
    broker.delete_streams()
    desk.step()
    broker.send(EVENT, key="codex:e-1")
    assert desk.step() == 1
    assert desk.texts == ["Fix the build."]


@pytest.mark.parametrize(("body", "code"), [
    (b"{not json", "invalid_input"),
    (b"[1, 2]", "invalid_input"),
    ({"thread": "chat", "role": "user"}, "invalid_input"),
    ({**EVENT, "colour": "blue"}, "invalid_input"),
    ({"thread": "never-seen", "role": "user", "content": "Hello."}, "not_found"),
    ({"records": [{"name": "1-1-1", "record": {"format": 9_999}}]}, "invalid_input"),
])  # fmt: skip
def test_what_can_never_be_taken_in_fails_once_where_failed_jobs_are_seen(
    desk: Desk, broker: Broker, body: Any, code: str
) -> None:
    broker.send(body, key="bad")
    broker.send(MESSAGE, key="good")
    assert desk.step() == 2
    assert desk.work() == {f"message 1 of {desk.settings.events_stream}": ("dead", code)}
    assert (desk.left, desk.texts) == ((0, 0), ["I live in Lisbon."])
    assert desk.step() == 0, "it is not given again"


def test_a_key_used_for_another_message_is_a_conflict_and_seen(desk: Desk, broker: Broker) -> None:
    broker.send(MESSAGE, key="m-1")
    desk.step()
    broker.delete_streams()
    desk.step()
    broker.send({**MESSAGE, "content": "I live in Porto."}, key="m-1")
    desk.step()
    assert list(desk.work().values()) == [("dead", "idempotency_conflict")]
    assert desk.texts == ["I live in Lisbon."]


def test_a_message_for_a_project_that_is_made_later_is_taken_in_by_a_retry(
    desk: Desk, broker: Broker, world: World
) -> None:
    broker.send(MESSAGE, key="m-1", project="acme.eu *")
    desk.step()
    assert list(desk.work().values()) == [("dead", "not_found")]
    world.write(ensure_project, "acme.eu *", bytes(32), {})
    assert world.write(retry_dead, world.project.id, TAKE_MESSAGE, None, 0, 10)
    assert list(desk.work().values()) == [("done", None)]
    assert desk.texts == ["I live in Lisbon."]


def test_a_message_whose_stream_was_made_again_is_said_to_be_gone(desk: Desk, broker: Broker, world: World) -> None:
    broker.send(MESSAGE, key="m-1", project="work")
    desk.step()
    broker.delete_streams()
    broker.make_streams()
    broker.send(MESSAGE, key="m-2")
    assert list(desk.work().values()) == [("dead", "not_found")]
    assert desk.texts == [], "another message has its number now"


def test_a_worker_without_a_connection_leaves_it_to_one_that_has_it(desk: Desk, broker: Broker, world: World) -> None:
    broker.send(b"{", key="bad")
    desk.step()
    world.run_until_idle()
    assert list(desk.aside.values()) == [("waiting", "snoozed")]
    world.tick(31)
    assert list(desk.work().values()) == [("dead", "invalid_input")]


def test_while_the_store_fails_nothing_is_acknowledged_and_nothing_is_lost(
    broker: Broker, world: World, settings: Nats
) -> None:
    desk = impatient(broker, world, settings)

    async def fail(letter: Letter) -> None:
        raise StoreFull

    broker.send(MESSAGE, key="m-1")
    assert desk.step(take=fail) == 1
    assert (desk.texts, desk.aside, desk.seen.unacknowledged) == ([], {}, 1)
    assert steps_until(desk, lambda: desk.texts == ["I live in Lisbon."]) >= 1
    assert desk.left == (0, 0)


def steps_until(desk: Desk, holds: Callable[[], bool], *, take: Take | None = None) -> int:
    """Each step waits for what the server gives; how many messages it gave."""
    given = 0
    for _ in range(100):
        given += desk.step(take=take)
        if holds():
            return given
    raise AssertionError("it does not come")


def test_a_message_given_too_often_becomes_a_job_with_the_jobs_own_limits(
    broker: Broker, world: World, settings: Nats
) -> None:
    """Whatever kills the process does so as a job, too, and that is counted and ends (G7)."""
    desk = impatient(broker, world, settings, max_deliver=3)

    async def die(letter: Letter) -> None:
        raise Killed

    broker.send(MESSAGE, key="m-1")
    for _ in range(3):
        with pytest.raises(Killed):
            desk.step(take=die)
    assert desk.step(take=die) == 1
    assert (desk.texts, desk.left) == ([], (0, 0))
    assert list(desk.work().values()) == [("done", None)]
    assert desk.texts == ["I live in Lisbon."]


def test_what_comes_too_fast_is_postponed_in_its_order_and_not_dropped(
    broker: Broker, world: World, settings: Nats
) -> None:
    desk = impatient(broker, world, settings)
    other = world.write(ensure_project, "other", bytes(32), {})
    world.write(update_project, "default", None, {"intake.events_per_s_max": 1.0, "intake.burst_max": 1})
    for n in range(3):
        broker.send({**MESSAGE, "content": f"I have {n} cats."}, key=f"m-{n}")
    broker.send(MESSAGE, key="other:m-1", project=other.name)
    assert desk.step() == 4
    assert sorted(desk.texts) == ["I have 0 cats.", "I live in Lisbon."], "another project does not wait"
    assert (desk.seen.unacknowledged, desk.aside) == (2, {})

    def come() -> bool:
        world.tick(2)
        return len(desk.texts) == 4

    steps_until(desk, come)
    assert [text for text in desk.texts if "cats" in text] == [f"I have {n} cats." for n in range(3)]
    assert desk.left == (0, 0)


def test_who_publishes_for_one_project_reaches_no_other(desk: Desk, broker: Broker, world: World) -> None:
    """The session is one of the other project; the subject decides (G15)."""
    world.write(ensure_project, "other", bytes(32), {})
    broker.send(EVENT, key="codex:e-1")
    broker.send({**EVENT, "text": "Mine."}, key="codex:e-2", project="other")
    desk.step()
    found = world.rows("""
select p.name, e.content from events e join streams s on s.id = e.stream_id join projects p on p.id = s.project_id""")
    assert sorted(found) == [("default", "Fix the build."), ("other", "Mine.")]


def test_a_lost_consumer_or_stream_is_noticed_and_made_again(desk: Desk, broker: Broker) -> None:
    async def lose() -> None:
        async with connected(desk.settings) as link:
            intake = EventIntake(desk.parts, link, desk.take)
            assert await intake.step(WAIT_S) == 0
            await link.stream.delete_stream(desk.settings.events_stream)
            for _ in range(3):
                await intake.step(WAIT_S)

    with pytest.raises(Unavailable):
        desk.world.run(lose())
    broker.make_streams()
    broker.send(MESSAGE, key="m-1")
    assert (desk.step(), desk.texts) == (1, ["I live in Lisbon."])


def test_what_is_there_is_never_altered_and_what_voids_the_promises_is_said(
    broker: Broker, world: World, settings: Nats
) -> None:
    async def make() -> None:
        async with connected(settings) as link:
            await link.stream.add_stream(
                name=settings.events_stream, subjects=[f"{settings.prefix}.*.*.events"], storage="memory",
                retention="workqueue", max_msgs=10,
            )  # fmt: skip

    world.run(make())
    desk = Desk(world, dataclasses.replace(settings, ack_wait_s=7.0, in_flight_max=5))
    assert desk.step() == 0
    [events, changes] = desk.seen.streams
    assert events.differs == (
        "it is kept in memory", "messages go when they were acknowledged", "it has a limit of messages or bytes"
    )  # fmt: skip
    assert changes.differs == ()

    async def config() -> Any:
        async with connected(settings) as link:
            await ensure_streams(link)
            return (await link.stream.consumer_info(settings.events_stream, settings.durable)).config

    made = world.run(config())
    assert (made.ack_wait, made.max_ack_pending, made.max_deliver) == (7.0, 5, -1), "others' settings change nothing"
    assert consumer_config(settings).ack_wait == 60.0


def test_messages_of_one_thread_stay_in_order_whatever_comes_between(desk: Desk, broker: Broker, world: World) -> None:
    subject = subject_of(desk.settings.prefix, "default", "events")

    async def publish() -> None:
        async with connected(desk.settings) as link:
            for n in range(60):
                body = {**MESSAGE, "thread": f"chat-{n % 3}", "content": f"{n}"}
                await link.stream.publish(subject, json.dumps(body).encode())

    world.run(publish())
    assert desk.step() == 60
    found = world.rows("""
select s.name, e.content from events e join streams s on s.id = e.stream_id order by s.name, e.seq""")
    assert found == [(f"chat-{thread}", str(n)) for thread in range(3) for n in range(thread, 60, 3)]


@pytest.mark.parametrize(("data", "lane"), [
    (b'{"thread": "chat"}', "chat"), (b'{"session": "s-1"}', "s-1"), (b'{"events": []}', ""), (b'{"thread": 7}', "7"),
    (b'{"events": [{"session": "s-1"}, {"session": "s-1"}]}', "s-1"), (b'{"events": [{"session": "s"}, {}, 7]}', ""),
    (b"[]", ""), (b"{", ""), (b"[" * 100_000, ""), (b"\xff", ""),
])  # fmt: skip
def test_a_lane_is_read_off_whatever_comes(data: bytes, lane: str) -> None:
    assert lane_of(data) == lane
