"""B: timers and windows. Every message is worked in exactly one stretch, in time, and only where memory is on."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from tests.faults.adapter import (
    Died,
    Item,
    MemorySystem,
    Message,
    OpensSystems,
    contents,
    copies,
    finds,
    let_it_work,
    need,
)
from tests.faults.everkept_system import EverkeptSystem
from tests.faults.provider import Provider
from tests.stubs.llm_server import Fail, Say

MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86_400.0
IDLE_S = 30 * MINUTE_S
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def add(system: MemorySystem, content: str, *, thread: str = "t1", key: str | None = None) -> str:
    """One message; its id."""
    return system.add(thread, [Message(content=content)], subject="ana", key=key or content[:40].replace(" ", "-")).ids[
        0
    ]


def episodes(system: MemorySystem) -> list[Item]:
    return system.list(subject="ana", kind="episode")


def worked_in(system: MemorySystem) -> Counter[str]:
    """{id of a message: in how many episodes it lies}."""
    return Counter(source for episode in episodes(system) for source in episode.sources)


def states(system: MemorySystem) -> dict[str, str]:
    return {item.text: item.state for item in system.list(subject="ana", kind="message")}


def asked_about(provider: Provider, word: str) -> bool:
    """Whether the model was shown it."""
    return any(word in str(asked.body) for asked in provider.asked)


# ---- B01

POINTS = ["runner.after_claim", "runner.before_finish", "runner.after_finish", "writer.before_commit"]


@pytest.mark.own_engine("the process dies at named points of its worker")
@pytest.mark.parametrize("point", POINTS)
def test_b01_a_worker_that_dies_over_a_timer_costs_minutes_and_not_a_day(everkept: EverkeptSystem, point: str) -> None:
    ids = [add(everkept, f"I like Town{n}.", thread=f"t{n}") for n in range(8)]
    everkept.wait_idle()
    everkept.arm(point, 2)
    with pytest.raises(Died):
        _fire(everkept)
    everkept.kill()
    everkept.open()
    let_it_work(everkept, hours=0.3)
    assert worked_in(everkept) == dict.fromkeys(ids, 1)
    assert [copies(everkept, "ana", f"Town{n}.") for n in range(8)] == [1] * 8


def test_b01_killed_while_the_timers_fire_every_conversation_is_worked_within_the_hour(system: MemorySystem) -> None:
    """The kill meets the work wherever it is; 20 conversations are due at once."""
    need(system, "timers")
    for n in range(20):
        add(system, f"I like Town{n}.", thread=f"t{n}")
    clock = threading.Thread(target=_until_it_dies, args=(system,))
    clock.start()
    clock.join(0.1)
    system.kill()
    clock.join()
    system.open()
    let_it_work(system, hours=1)
    assert [copies(system, "ana", f"Town{n}.") for n in range(20)] == [1] * 20


def _fire(system: MemorySystem) -> None:
    system.pass_time(IDLE_S + MINUTE_S)
    system.wait_idle(20)


def _until_it_dies(system: MemorySystem) -> None:
    with suppress(Died):
        _fire(system)


# ---- B02


def test_b02_two_ends_at_once_make_one_episode_paid_for_once(system: MemorySystem, provider: Provider) -> None:
    need(system, "end", "episodes")
    said = add(system, "I live in Lisbon.")
    with ThreadPoolExecutor(4) as clients:
        list(clients.map(lambda _: system.end("t1"), range(4)))
    let_it_work(system)
    assert worked_in(system) == {said: 1}
    assert copies(system, "ana", "Lisbon") == 1
    assert (provider.calls("facts"), provider.calls("summary")) == (1, 1)


@pytest.mark.own_engine("two processes over one folder is a way in which this system is used")
def test_b02_two_workers_and_an_end_beside_the_timer_make_one_episode(
    another: OpensSystems, provider: Provider
) -> None:
    systems = [another(), another()]
    ids = [add(systems[0], f"I like Town{n}.", thread=f"t{n}") for n in range(5)]
    actions = [lambda s=s: s.pass_time(IDLE_S + 1) for s in systems]
    actions += [lambda n=n: systems[n % 2].end(f"t{n}") for n in range(5)]
    with ThreadPoolExecutor(len(actions)) as pool:
        for done in [pool.submit(action) for action in actions]:
            done.result()
    for system in systems:
        let_it_work(system)
    assert worked_in(systems[0]) == dict.fromkeys(ids, 1)
    assert [copies(systems[0], "ana", f"Town{n}") for n in range(5)] == [1] * 5
    assert provider.calls("facts") == 5


def test_b02_an_end_after_the_timer_makes_no_second_episode(system: MemorySystem) -> None:
    need(system, "end", "timers", "episodes")
    said = add(system, "I live in Lisbon.")
    let_it_work(system)
    system.end("t1")
    let_it_work(system)
    assert worked_in(system) == {said: 1}


# ---- B03


def test_b03_every_message_of_a_conversation_longer_than_a_window_is_worked_once(system: MemorySystem) -> None:
    batch = [Message(content=f"I like Town{n:03}.") for n in range(250)]
    ids = system.add("t1", batch, subject="ana", key="long").ids
    let_it_work(system)
    text = "\n".join(contents(system, "ana", "fact"))
    assert [n for n in range(250) if text.count(f"Town{n:03}.") != 1] == []
    need(system, "episodes")
    assert worked_in(system) == dict.fromkeys(ids, 1)
    assert [source for episode in episodes(system) for source in episode.sources] == list(ids)


def test_b03_long_messages_fill_windows_by_their_size_and_none_is_dropped(system: MemorySystem) -> None:
    filler = "The weather was fine. " * 400  # about 2,200 tokens
    batch = [Message(content=f"{filler} I like Town{n:02}.") for n in range(20)]
    ids = system.add("t1", batch, subject="ana", key="long").ids
    let_it_work(system)
    text = "\n".join(contents(system, "ana", "fact"))
    assert [n for n in range(20) if text.count(f"Town{n:02}.") != 1] == []
    need(system, "episodes")
    assert worked_in(system) == dict.fromkeys(ids, 1)


def test_b03_what_arrives_while_a_full_window_is_worked_is_in_the_next(system: MemorySystem) -> None:
    need(system, "timers", "episodes")
    first = system.add("t1", [Message(content=f"I like Town{n}.") for n in range(100)], subject="ana", key="a").ids
    second = system.add("t1", [Message(content=f"I like Lake{n}.") for n in range(3)], subject="ana", key="b").ids
    let_it_work(system)
    assert [e.sources for e in episodes(system)] == [first, second]


# ---- B04


def test_b04_a_compaction_summary_is_no_new_evidence(system: MemorySystem, provider: Provider) -> None:
    need(system, "evidence")
    said = add(system, "I live in Lisbon.")
    let_it_work(system)
    summary = Message(content="Summary so far: I live in Berlin. I like tea.", role="system", evidence=False)
    system.add("t1", [summary, Message(content="I like coffee.")], subject="ana", key="next")
    let_it_work(system)
    live = [item.text for item in system.list(subject="ana", kind="fact") if item.state == "live"]
    assert live == ["The speaker lives in Lisbon.", "The speaker likes coffee."]
    assert not asked_about(provider, "Berlin")
    assert worked_in(system)[said] == 1


def test_b04_a_window_of_nothing_but_a_summary_costs_nothing_and_says_why(
    system: MemorySystem, provider: Provider
) -> None:
    need(system, "evidence", "messages")
    system.add("t1", [Message(content="I live in Berlin.", evidence=False)], subject="ana", key="only")
    let_it_work(system)
    assert provider.calls() == 0
    (item,) = system.list(subject="ana", kind="message")
    assert item.state == "skipped"
    assert "evidence" in (item.reason or "")


# ---- B05


def test_b05_a_new_message_pushes_the_timer_out(system: MemorySystem) -> None:
    need(system, "timers", "episodes")
    first = add(system, "I like tea.")
    system.pass_time(IDLE_S - MINUTE_S)
    second = add(system, "I live in Lisbon.")
    system.pass_time(5 * MINUTE_S)
    assert episodes(system) == []
    let_it_work(system)
    assert [e.sources for e in episodes(system)] == [(first, second)]


@pytest.mark.own_engine("the worker is held between its claim and its work")
def test_b05_a_message_that_comes_while_the_timer_is_claimed_pushes_it_out_all_the_same(
    everkept: EverkeptSystem,
) -> None:
    first = add(everkept, "I like tea.")
    everkept.pass_time(5)  # what else it has to do is done before
    everkept.arm("runner.after_claim", 1, how="hold")
    firing = threading.Thread(target=everkept.pass_time, args=(IDLE_S + 1,))
    firing.start()
    while everkept.query("select 1 from jobs where kind = 'open_window' and state = 'leased'") == []:
        assert firing.is_alive(), "the timer was not held"
    second = add(everkept, "I live in Lisbon.")
    everkept.let_go()
    firing.join()
    assert everkept.wait_idle()
    assert episodes(everkept) == []
    let_it_work(everkept)
    assert [e.sources for e in episodes(everkept)] == [(first, second)]


# ---- B06


def test_b06_a_thread_that_opted_out_is_swept_by_nothing(system: MemorySystem, provider: Provider) -> None:
    need(system, "switch", "timers", "messages")
    add(system, "I like Secretville.", thread="private", key="a")
    add(system, "I like Opentown.", thread="open", key="b")
    system.switch(False, thread="private")
    system.pass_time(3 * DAY_S)
    let_it_work(system)
    assert not asked_about(provider, "Secretville")
    assert states(system) == {"I like Secretville.": "skipped", "I like Opentown.": "remembered"}
    (why,) = [i.reason for i in system.list(subject="ana", kind="message") if "Secret" in i.text]
    assert "memory.enabled" in str(why)


def test_b06_a_thread_that_opted_in_is_remembered_although_its_project_is_off(
    system: MemorySystem, provider: Provider
) -> None:
    need(system, "switch", "timers", "messages")
    system.switch(False)
    add(system, "I like Silence.", thread="quiet", key="a")
    add(system, "Hello.", thread="chosen", key="b")
    system.switch(True, thread="chosen")
    add(system, "I like Opentown.", thread="chosen", key="c")
    system.pass_time(3 * DAY_S)
    let_it_work(system)
    assert states(system)["I like Opentown."] == "remembered"
    assert states(system)["I like Silence."] == "skipped"
    assert not asked_about(provider, "Silence")


def test_b06_what_was_said_while_memory_was_off_stays_out_when_it_is_on_again(
    system: MemorySystem, provider: Provider
) -> None:
    need(system, "switch", "timers", "messages")
    add(system, "I like Before.", key="a")
    let_it_work(system)
    system.switch(False, thread="t1")
    add(system, "I like Secretville.", key="b")
    system.switch(True, thread="t1")
    add(system, "I like After.", key="c")
    system.pass_time(2 * DAY_S)
    let_it_work(system)
    assert not asked_about(provider, "Secretville")
    assert sorted(contents(system, "ana", "fact")) == ["The speaker likes After.", "The speaker likes Before."]


def test_b06_switched_off_while_it_waits_for_an_outage_to_end_it_is_not_asked_about(
    system: MemorySystem, provider: Provider
) -> None:
    """The setting is read when the decision is made, also for the retry of a window that is open already."""
    need(system, "switch", "timers", "messages")
    provider.outage(Fail(status=503), step="facts")
    add(system, "I like Secretville.")
    system.pass_time(IDLE_S + 1)
    system.switch(False, thread="t1")
    asked = provider.calls("facts")
    provider.clear()
    system.pass_time(2 * HOUR_S)
    system.wait_idle(5)
    assert provider.calls("facts") == asked
    assert copies(system, "ana", "speaker likes Secretville") == 0


# ---- B07


def test_b07_thirty_threads_that_are_off_do_not_keep_one_behind_them_from_its_turn(system: MemorySystem) -> None:
    need(system, "switch", "timers", "messages")
    for n in range(30):
        add(system, f"I like Town{n}.", thread=f"t{n}", key=f"k{n}")
        system.switch(False, thread=f"t{n}")
    add(system, "I live in Lisbon.", thread="last")
    system.pass_time(2 * DAY_S)
    let_it_work(system)
    assert states(system)["I live in Lisbon."] == "remembered"
    assert Counter(states(system).values()) == {"skipped": 30, "remembered": 1}


def test_b07_thirty_given_up_windows_do_not_keep_one_behind_them_from_its_turn(
    system: MemorySystem, provider: Provider
) -> None:
    need(system, "timers", "messages")
    provider.outage(Say(text="I am a teapot."))
    for n in range(30):
        add(system, f"I like Town{n}.", thread=f"t{n}", key=f"k{n}")
    system.pass_time(2 * DAY_S)
    system.wait_idle(5)
    provider.clear()
    given_up = len(system.trouble())
    assert given_up >= 30, system.trouble()
    add(system, "I live in Lisbon.", thread="last")
    let_it_work(system)
    assert states(system)["I live in Lisbon."] == "remembered"
    assert len(system.trouble()) == given_up  # and what was given up is still shown


@pytest.mark.own_engine("the normal path is taken away, so that only the sweep is left")
def test_b07_the_sweep_serves_a_thread_without_a_timer_behind_any_number_that_are_off(
    another: OpensSystems, tmp_path: Path
) -> None:
    system = another()
    assert isinstance(system, EverkeptSystem)
    with ThreadPoolExecutor(8) as clients:
        list(clients.map(lambda n: add(system, f"I like Town{n}.", thread=f"t{n}"), range(120)))
    add(system, "I live in Lisbon.", thread="last")
    system.switch(False)
    system.switch(True, thread="last")
    system.execute("delete from jobs where kind = 'open_window'")
    system.pass_time(1.5 * DAY_S)
    let_it_work(system)
    assert states(system)["I live in Lisbon."] == "remembered"


# ---- B08


@pytest.mark.parametrize("minutes", [10, 29])
def test_b08_a_conversation_that_never_pauses_is_remembered_on_the_way(system: MemorySystem, minutes: int) -> None:
    need(system, "timers", "episodes")
    for n in range(int(6 * 60 / minutes)):
        add(system, f"I like Town{n}.")
        system.pass_time(minutes * MINUTE_S)
        hours = (n + 1) * minutes / 60
        if hours >= 4.6:  # half an hour of quiet, put off for four hours at most
            assert episodes(system), f"nothing after {hours:.1f} h"
    assert finds(system, "ana", "Town0")
    let_it_work(system)
    assert set(worked_in(system).values()) == {1}
    assert set(states(system).values()) == {"remembered"}


# ---- B09


@pytest.mark.parametrize("hours", [1, 24, 24 * 30])
def test_b09_set_back_while_a_message_waits_the_clock_delays_it_by_no_more_than_its_idle_time(
    system: MemorySystem, hours: int
) -> None:
    need(system, "clock", "timers")
    add(system, "I live in Lisbon.")
    system.set_clock(-hours * HOUR_S)
    system.pass_time(IDLE_S + 10 * MINUTE_S)
    assert system.wait_idle(30)
    assert contents(system, "ana", "fact") == ["The speaker lives in Lisbon."]


def test_b09_set_back_while_the_process_is_down_the_clock_delays_nothing_by_days(system: MemorySystem) -> None:
    need(system, "clock", "timers")
    add(system, "I live in Lisbon.")
    system.kill()
    system.set_clock(-3 * DAY_S)
    system.open()
    let_it_work(system, hours=2)
    assert contents(system, "ana", "fact") == ["The speaker lives in Lisbon."]


def test_b09_set_back_during_an_outage_the_clock_does_not_put_off_the_next_try_by_days(
    system: MemorySystem, provider: Provider
) -> None:
    need(system, "clock", "timers")
    provider.outage()
    add(system, "I live in Lisbon.")
    system.pass_time(2 * HOUR_S)
    system.set_clock(-3 * DAY_S)
    provider.clear()
    let_it_work(system, hours=2)
    assert copies(system, "ana", "speaker lives in Lisbon") == 1
    assert system.trouble() == []


def test_b09_set_forward_the_clock_loses_nothing_and_doubles_nothing(system: MemorySystem) -> None:
    need(system, "clock", "timers", "episodes")
    first = add(system, "I live in Lisbon.")
    system.set_clock(DAY_S)
    second = add(system, "I like tea.")
    let_it_work(system)
    assert worked_in(system) == {first: 1, second: 1}
    assert len(contents(system, "ana", "fact")) == 2


def test_b09_messages_keep_their_order_when_the_clock_is_set_back_between_them(system: MemorySystem) -> None:
    need(system, "clock", "messages")
    texts = [f"I like Town{n}." for n in range(4)]
    for text in texts:
        add(system, text)
        system.set_clock(-HOUR_S)
    assert contents(system, "ana", "message") == texts


@pytest.mark.own_engine("two processes over one folder is a way in which this system is used")
@pytest.mark.parametrize("hours", [-5.0, 0.25, 5.0])
def test_b09_two_workers_whose_clocks_differ_work_everything_once(another: OpensSystems, hours: float) -> None:
    right, wrong = another(), another()
    wrong.set_clock(hours * HOUR_S)
    ids = []
    for n in range(6):
        ids.append(add((right, wrong)[n % 2], f"I like Town{n}.", thread=f"t{n % 3}"))
        right.pass_time(5 * MINUTE_S)
        wrong.pass_time(5 * MINUTE_S)
    for _ in range(2):
        for system in (right, wrong):
            system.pass_time(IDLE_S)
    assert right.wait_idle()
    assert worked_in(right) == dict.fromkeys(ids, 1)
    assert [copies(right, "ana", f"Town{n}") for n in range(6)] == [1] * 6
    # A clock that is hours ahead sees leases end that have not: a question may be asked again, no effect is doubled.
    right.pass_time(HOUR_S)
    assert right.wait_idle()
    assert [each for each in right.trouble() if "stood still" not in each.cause] == []  # that is tried again
    assert worked_in(right) == dict.fromkeys(ids, 1)


def test_b09_in_the_hour_that_daylight_saving_repeats_the_later_instant_wins(system: MemorySystem) -> None:
    """01:50 in summer time is before 01:10 in winter time, of the same night in Lisbon."""
    need(system, "times")
    summer, winter = timezone(timedelta(hours=1)), timezone(timedelta(0))
    earlier = Message(content="I live in Porto.", occurred_at=datetime(2026, 10, 25, 1, 50, tzinfo=summer))
    later = Message(content="I live in Lisbon.", occurred_at=datetime(2026, 10, 25, 1, 10, tzinfo=winter))
    system.add("t1", [later], subject="ana", key="later")
    system.add("t2", [earlier], subject="ana", key="earlier")
    let_it_work(system)
    live = [item.text for item in system.list(subject="ana", kind="fact") if item.state == "live"]
    assert live == ["The speaker lives in Lisbon."]
