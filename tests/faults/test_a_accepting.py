"""A: accepting and timing. What was accepted is kept, and once, whatever becomes of the process and the answer."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from tests.faults.adapter import (
    Added,
    Died,
    MemorySystem,
    Message,
    OpensSystems,
    Rejected,
    contents,
    copies,
    finds,
    let_it_work,
    need,
)
from tests.faults.everkept_system import EverkeptSystem
from tests.faults.provider import Provider
from tests.faults.wire import ANSWER_S, Failed
from tests.stubs.llm_server import Fail, Hang, Reply

SAID = "I live in Lisbon."
DAY_S = 86_400.0
PROMPT_S = 5.0
"""An append that waits for no model is far quicker than this, also on a slow machine."""


def one(content: str = SAID, **more: object) -> list[Message]:
    return [Message(content=content, **more)]  # type: ignore[arg-type]


def add(system: MemorySystem, content: str = SAID, *, key: str | None = "k1", thread: str = "t1") -> Added:
    return system.add(thread, one(content), subject="ana", key=key)


def facts_once(system: MemorySystem, word: str = "Lisbon") -> None:
    """It is remembered, and once."""
    assert finds(system, "ana", word)
    assert copies(system, "ana", word) == 1, system.list(subject="ana")


# ---- A01


def test_a01_what_was_accepted_before_a_kill_is_remembered_after_the_restart(system: MemorySystem) -> None:
    add(system)
    system.kill()
    system.open()
    let_it_work(system)
    facts_once(system)


@pytest.mark.parametrize("after_s", [0.0, 0.002, 0.005, 0.01, 0.02, 0.05])
def test_a01_a_kill_in_the_middle_of_an_append_leaves_nothing_half_done(system: MemorySystem, after_s: float) -> None:
    """Whatever the kill met, the client sends it again; it must then be remembered, and once."""

    def append() -> None:
        try:
            add(system)
        except Died:
            return

    client = threading.Thread(target=append)
    client.start()
    time.sleep(after_s)
    system.kill()
    client.join()
    system.open()
    add(system)
    let_it_work(system)
    facts_once(system)


@pytest.mark.own_engine("no other system can be told at which of its own statements to die")
def test_a01_a_kill_before_any_statement_of_an_append_loses_nothing_and_doubles_nothing(
    another: OpensSystems, tmp_path: Path
) -> None:
    """Every fourth statement, each in a store of its own, until an append passes untouched."""
    for at in range(1, 400, 4):
        system = another(tmp_path / str(at))
        assert isinstance(system, EverkeptSystem)
        system.arm("statement", at)
        try:
            add(system)
            return
        except Died:
            system.kill()
        system.open()
        add(system)
        assert contents(system, "ana", "message") == [SAID]
        timers = "select count(*) from jobs where kind = 'open_window' and state in ('waiting', 'ready')"
        assert system.query(timers) == [[1]]
        system.kill()
    raise AssertionError("the append never passed untouched")


@pytest.mark.own_engine("an error is planted inside the transaction")
@pytest.mark.parametrize("point", ["writer.before_begin", "writer.before_commit"])
def test_a01_an_error_in_a_later_step_refuses_the_append_and_the_next_one_is_whole(
    another: OpensSystems, point: str
) -> None:
    system = another(worker=False)
    assert isinstance(system, EverkeptSystem)
    for at in (1, 2):  # the first transaction makes the thread, the second appends
        thread = f"t{at}"
        system.arm(point, at, how="raise")
        with pytest.raises(Failed, match="planted"):
            add(system, f"I like Town{at}.", thread=thread, key=thread)
        assert copies(system, "ana", f"Town{at}") == 0
        add(system, f"I like Town{at}.", thread=thread, key=thread)
    system.close()
    working = another()
    let_it_work(working)
    assert [copies(working, "ana", f"Town{at}") for at in (1, 2)] == [1, 1]


# ---- A02


def test_a02_the_same_batch_sent_again_is_kept_once(system: MemorySystem) -> None:
    first = add(system)
    again = add(system)
    let_it_work(system)
    facts_once(system)
    need(system, "keys")
    assert (again.ids, again.replayed, first.replayed) == (first.ids, True, False)


def test_a02_sent_again_after_a_kill_it_is_kept_once(system: MemorySystem) -> None:
    first = add(system)
    system.kill()
    system.open()
    again = add(system)
    let_it_work(system)
    facts_once(system)
    need(system, "keys")
    assert (again.ids, again.replayed) == (first.ids, True)


@pytest.mark.own_engine("the process dies between its commit and its answer, at a named point")
def test_a02_an_answer_lost_after_the_commit_is_given_again(another: OpensSystems) -> None:
    system = another()
    assert isinstance(system, EverkeptSystem)
    system.arm("writer.after_commit")
    with pytest.raises(Died):
        _add_until_it_dies(system)
    system.kill()
    system.open()
    assert contents(system, "ana", "message") in ([], [SAID])  # another commit than the append's may have been met
    add(system)
    again = add(system)
    assert again.replayed
    assert contents(system, "ana", "message") == [SAID]


def _add_until_it_dies(system: MemorySystem) -> None:
    while True:
        add(system)


def test_a02_sent_again_when_it_is_remembered_it_costs_nothing(system: MemorySystem, provider: Provider) -> None:
    add(system)
    let_it_work(system)
    asked = provider.calls()
    add(system)
    let_it_work(system)
    facts_once(system)
    need(system, "keys")
    assert provider.calls() == asked


def test_a02_eight_clients_sending_the_same_at_once_keep_one(system: MemorySystem) -> None:
    with ThreadPoolExecutor(8) as clients:
        answers = list(clients.map(lambda _: add(system), range(8)))
    let_it_work(system)
    facts_once(system)
    need(system, "keys")
    assert len({answer.ids for answer in answers}) == 1
    assert [answer.replayed for answer in answers].count(False) == 1


def test_a02_a_retry_storm_leaves_one_of_each(system: MemorySystem) -> None:
    """Twenty messages, each sent ten times by eight clients: nine in ten are duplicates."""
    towns = [f"Town{n:02}" for n in range(20)]
    with ThreadPoolExecutor(8) as clients:
        list(clients.map(lambda town: add(system, f"I like {town}.", key=town), towns * 10))
    let_it_work(system)
    assert {town: copies(system, "ana", town) for town in towns} == dict.fromkeys(towns, 1)


def test_a02_a_key_is_remembered_for_thirty_days(system: MemorySystem) -> None:
    need(system, "keys", "timers")
    first = add(system)
    system.pass_time(29 * DAY_S)
    assert add(system).ids == first.ids
    let_it_work(system)
    facts_once(system)


def test_a02_saying_the_same_thing_twice_on_purpose_is_two_messages(system: MemorySystem) -> None:
    need(system, "keys", "messages")
    add(system, "Yes.", key="first")
    add(system, "Yes.", key="second")
    add(system, "Yes.", key=None)
    add(system, "Yes.", key=None)
    assert contents(system, "ana", "message") == ["Yes."] * 4


# ---- A03

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
OTHERS: dict[str, tuple[str, Sequence[Message]]] = {
    "content": ("t1", one("I live in Berlin.")),
    "a space": ("t1", one(SAID + " ")),
    "role": ("t1", one(role="assistant")),
    "time": ("t1", one(occurred_at=AT)),
    "metadata": ("t1", one(metadata={"app": "x"})),
    "evidence": ("t1", one(evidence=False)),
    "thread": ("t2", one()),
    "one more": ("t1", [*one(), *one("I like tea.")]),
    "another before it": ("t1", [*one("I like tea."), *one()]),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a03_the_same_key_with_another_body_is_refused(system: MemorySystem, name: str) -> None:
    need(system, "keys", "messages")
    thread, messages = OTHERS[name]
    first = add(system)
    with pytest.raises(Rejected):
        system.add(thread, messages, subject="ana", key="k1")
    assert contents(system, "ana", "message") == [SAID]
    assert add(system).ids == first.ids


def test_a03_a_shorter_batch_under_the_same_key_is_refused(system: MemorySystem) -> None:
    need(system, "keys", "messages")
    both = [*one(), *one("I like tea.")]
    system.add("t1", both, subject="ana", key="k1")
    with pytest.raises(Rejected):
        system.add("t1", both[:1], subject="ana", key="k1")
    with pytest.raises(Rejected):
        system.add("t1", both[::-1], subject="ana", key="k1")
    assert contents(system, "ana", "message") == [SAID, "I like tea."]


MALFORMED = ["", " ", "a b", "k1 ", " k1", "k1\n", "a\x00b", "ключ", "k" * 256, "\ud800"]


@pytest.mark.parametrize("key", MALFORMED, ids=ascii)
def test_a03_a_malformed_key_is_an_error_and_nothing_is_stored(system: MemorySystem, key: str) -> None:
    need(system, "keys", "messages")
    with pytest.raises(Rejected):
        add(system, key=key)
    assert contents(system, "ana", "message") == []


# ---- A04

DOWN: dict[str, Reply] = {"503": Fail(status=503), "hangs": Hang(), "no key": Fail(status=401, code="invalid_api_key")}


@pytest.mark.parametrize("how", DOWN)
def test_a04_with_the_provider_down_an_append_is_quick_and_succeeds(
    system: MemorySystem, provider: Provider, how: str
) -> None:
    provider.outage(DOWN[how])
    started = time.monotonic()
    add(system)
    assert time.monotonic() - started < PROMPT_S
    provider.clear()
    let_it_work(system, hours=3)
    facts_once(system)


def test_a04_what_is_said_during_an_outage_is_accepted_found_and_remembered_afterwards(
    system: MemorySystem, provider: Provider
) -> None:
    add(system, "I like Rome.", key="before")
    let_it_work(system)
    provider.outage()
    for n in range(10):
        add(system, f"I like Town{n}.", key=f"k{n}")
    let_it_be_tried(system)
    assert finds(system, "ana", "Town7")  # raw, before any model has run
    provider.clear()
    let_it_work(system, hours=3)
    assert [copies(system, "ana", f"Town{n}") for n in range(10)] == [1] * 10
    facts_once(system, "Rome")


def let_it_be_tried(system: MemorySystem) -> None:
    """Its timer fires, and it asks in vain."""
    system.pass_time(2000)
    system.wait_idle(1)


# ---- A05


def test_a05_what_was_accepted_is_found_right_after_a_kill(system: MemorySystem) -> None:
    for n in range(5):
        add(system, f"I like Town{n}.", key=f"k{n}")
    system.kill()
    system.open()
    assert [finds(system, "ana", f"Town{n}") for n in range(5)] == [True] * 5


def test_a05_a_provider_that_is_down_for_days_is_shown_with_its_cause(system: MemorySystem, provider: Provider) -> None:
    need(system, "timers")
    provider.outage(Fail(status=401, code="invalid_api_key", message="the key was revoked"))
    add(system)
    let_it_be_tried(system)
    system.pass_time(2 * DAY_S)
    assert any("revoked" in trouble.cause for trouble in system.trouble()), system.trouble()
    provider.clear()
    let_it_work(system, hours=3)
    facts_once(system)
    assert system.trouble() == []


@pytest.mark.own_engine("a process without a worker is a set-up of this system")
def test_a05_work_that_nobody_does_is_shown(another: OpensSystems) -> None:
    system = another(worker=False)
    add(system)
    system.pass_time(14 * DAY_S)
    assert system.trouble()
    assert all("no worker" in trouble.cause for trouble in system.trouble())


# ---- A06


@pytest.mark.own_engine("a project that is renamed is a notion of this system")
def test_a06_the_same_event_after_a_rename_of_its_project_is_kept_once(another: OpensSystems) -> None:
    start = another()
    assert isinstance(start, EverkeptSystem)
    start.call("create_project", name="map")
    start.close()
    system = another(project="map")
    assert isinstance(system, EverkeptSystem)
    first = add(system)
    system.call("update_project", name="map", new_name="atlas")
    assert add(system).ids == first.ids
    system.close()
    renamed = another(project="atlas")
    again = add(renamed)
    assert (again.ids, again.replayed) == (first.ids, True)
    assert contents(renamed, "ana", "message") == [SAID]


def test_a06_the_same_event_sent_for_another_subject_is_refused(system: MemorySystem) -> None:
    need(system, "keys", "messages")
    add(system)
    with pytest.raises(Rejected):
        system.add("t1", one(), subject="bob", key="k1")
    with pytest.raises(Rejected):
        system.add("t2", one(), subject="bob", key="k1")
    assert [contents(system, subject, "message") for subject in ("ana", "bob")] == [[SAID], []]


# ---- A07


def test_a07_a_spool_drained_hours_later_does_not_win_over_what_was_said_since(system: MemorySystem) -> None:
    need(system, "times")
    system.add("t1", one(occurred_at=AT), subject="ana", key="new")
    let_it_work(system)
    system.add("t2", one("I live in Berlin.", occurred_at=AT - timedelta(hours=5)), subject="ana", key="spooled")
    let_it_work(system)
    live = [item.text for item in system.list(subject="ana", kind="fact") if item.state == "live"]
    assert live == ["The speaker lives in Lisbon."]


def test_a07_what_arrives_late_keeps_the_time_at_which_it_was_said(system: MemorySystem) -> None:
    need(system, "times", "messages")
    times = [AT, AT - timedelta(hours=3), AT - timedelta(days=400)]
    for n, at in enumerate(times):
        system.add("t1", one(f"I like Town{n}.", occurred_at=at), subject="ana", key=f"k{n}")
    assert [item.when for item in system.list(subject="ana", kind="message")] == times


def test_a07_a_time_without_a_zone_is_refused_and_not_guessed(system: MemorySystem) -> None:
    need(system, "times")
    with pytest.raises(Rejected, match="zone"):
        system.add("t1", one(occurred_at=datetime(2026, 3, 1, 12)), subject="ana")  # noqa: DTZ001
    assert copies(system, "ana", "Lisbon") == 0


@pytest.mark.parametrize("hours", [-12, -3, 0, 5.75, 14])
def test_a07_the_same_instant_in_any_zone_is_the_same_time_and_keeps_its_zone(
    system: MemorySystem, hours: float
) -> None:
    need(system, "times", "messages")
    zone = timezone(timedelta(hours=hours))
    system.add("t1", one(occurred_at=AT.astimezone(zone)), subject="ana")
    (when,) = [item.when for item in system.list(subject="ana", kind="message")]
    assert when == AT
    assert when is not None
    assert when.utcoffset() == timedelta(hours=hours)


def test_a07_which_was_said_later_is_decided_by_the_instant_and_not_by_the_wall(system: MemorySystem) -> None:
    """09:00 in Tokyo is before 01:00 in London."""
    need(system, "times")
    tokyo, london = timezone(timedelta(hours=9)), UTC
    system.add("t1", one(occurred_at=datetime(2026, 3, 1, 1, tzinfo=london)), subject="ana", key="london")
    system.add("t2", one("I live in Berlin.", occurred_at=datetime(2026, 3, 1, 9, tzinfo=tokyo)), subject="ana")
    let_it_work(system)
    live = [item.text for item in system.list(subject="ana", kind="fact") if item.state == "live"]
    assert live == ["The speaker lives in Lisbon."]


@pytest.mark.parametrize("at", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)], ids=["1", "9999"])
def test_a07_a_time_that_no_zone_could_show_is_refused(system: MemorySystem, at: datetime) -> None:
    need(system, "times", "messages")
    with pytest.raises(Rejected):
        system.add("t1", one(occurred_at=at), subject="ana")
    assert contents(system, "ana", "message") == []


# ---- A08


def test_a08_what_was_added_right_before_the_end_is_there_at_the_next_start(system: MemorySystem) -> None:
    add(system)
    system.close()
    system.open()
    assert finds(system, "ana", "Lisbon")
    let_it_work(system)
    facts_once(system)


SCRIPT = """
import os, sys
from everkept import Memory
memory = Memory.open(sys.argv[1])
memory.thread("t1", subject="ana").add("user", "I live in Lisbon.", key="k1")
"""
ENDS = {"at its end": "", "without a word": "os._exit(0)"}


@pytest.mark.own_engine("a script in Python that uses the library")
@pytest.mark.parametrize("how", ENDS)
def test_a08_a_short_script_ends_before_any_thread_has_done_anything(
    another: OpensSystems, tmp_path: Path, how: str
) -> None:
    home = tmp_path / "memory"
    subprocess.run([sys.executable, "-c", SCRIPT + ENDS[how], str(home)], check=False, timeout=ANSWER_S * 3)
    system = another(home)
    assert contents(system, "ana", "message") == [SAID]
    let_it_work(system)
    facts_once(system)


# ---- A09

FIVE = [Message(content=f"I like Town{n}.") for n in range(5)]


@pytest.mark.parametrize("spoilt", ["", "\x00", "\ud83d"], ids=["empty", "NUL", "surrogate"])
def test_a09_a_batch_with_a_bad_third_item_is_refused_whole_and_accepted_once_mended(
    system: MemorySystem, spoilt: str
) -> None:
    need(system, "keys", "messages")
    with pytest.raises(Rejected, match=r"\[2\]"):
        system.add("t1", [*FIVE[:2], *one(spoilt), *FIVE[3:]], subject="ana", key="batch")
    assert system.list(subject="ana") == []
    added = system.add("t1", FIVE, subject="ana", key="batch")
    assert (len(set(added.ids)), added.replayed) == (5, False)
    again = system.add("t1", FIVE, subject="ana", key="batch")
    assert (again.ids, again.replayed) == (added.ids, True)
    assert contents(system, "ana", "message") == [m.content for m in FIVE]


def test_a09_a_batch_sent_twice_is_remembered_once(system: MemorySystem) -> None:
    for _ in range(2):
        system.add("t1", FIVE, subject="ana", key="batch")
        let_it_work(system)
    assert [copies(system, "ana", f"Town{n}") for n in range(5)] == [1] * 5


@pytest.mark.own_engine("no other system can be told at which of its own statements to die")
def test_a09_a_kill_in_the_middle_of_a_batch_keeps_all_of_it_or_none(another: OpensSystems, tmp_path: Path) -> None:
    met = set()
    for at in range(2, 200, 20):
        system = another(tmp_path / str(at))
        assert isinstance(system, EverkeptSystem)
        system.arm("statement", at)
        try:
            system.add("t1", FIVE, subject="ana", key="batch")
            break
        except Died:
            system.kill()
            system.open()
            kept = contents(system, "ana", "message")
            assert kept in ([], [m.content for m in FIVE])
            met.add(len(kept))
            system.add("t1", FIVE, subject="ana", key="batch")
            assert contents(system, "ana", "message") == [m.content for m in FIVE]
            system.kill()
    else:
        raise AssertionError("the batch never passed untouched")
    assert 0 in met


def test_a09_more_than_a_batch_may_hold_is_refused_whole(system: MemorySystem) -> None:
    need(system, "messages")
    with pytest.raises(Rejected, match="1000"):
        system.add("t1", one() * 1001, subject="ana", key="k1")
    assert system.list(subject="ana") == []


# ---- A10

MIB = 1 << 20


def test_a10_a_message_of_five_megabytes_is_refused_with_the_limit_or_kept_whole(system: MemorySystem) -> None:
    text = "word " * MIB
    refused = ""
    try:
        system.add("t1", one(text), subject="ana")
    except Rejected as error:
        refused = str(error)
    if refused:
        assert f"{MIB:,}" in refused
        assert system.list(subject="ana") == []
    elif "messages" in system.has:
        assert contents(system, "ana", "message") == [text]
    add(system)
    let_it_work(system)
    facts_once(system)


def test_a10_what_is_said_at_the_end_of_the_longest_message_is_remembered(system: MemorySystem) -> None:
    """Many windows long: nothing of it is cut off."""
    text = "The weather was fine. " * (MIB // 44) + SAID
    system.add("t1", one(text), subject="ana", key="k1")
    let_it_work(system)
    assert any("lives in Lisbon" in fact for fact in contents(system, "ana", "fact"))


@pytest.mark.parametrize(
    "text", ["", " \n\t", "\x00", "a\x00b", "\ud800", "ends in half a \ud83d", "\udc00 begins"], ids=ascii
)
def test_a10_text_that_cannot_be_kept_as_it_is_is_refused_with_its_fault(system: MemorySystem, text: str) -> None:
    need(system, "messages")
    with pytest.raises(Rejected, match=r"empty|NUL|surrogate"):
        system.add("t1", one(text), subject="ana", key="k1")
    assert system.list(subject="ana") == []
    add(system)  # the key was not used up
    let_it_work(system)
    facts_once(system)


@pytest.mark.parametrize("text", ["", "\x00", "a\x00b", "\ud800", "ends in half a \ud83d"], ids=ascii)
def test_a10_after_a_text_that_cannot_be_kept_the_next_one_is_remembered(system: MemorySystem, text: str) -> None:
    with suppress(Rejected, Failed):
        system.add("t1", one(text), subject="ana")
    add(system)
    let_it_work(system)
    facts_once(system)


WHOLE = [
    "👩‍👩‍👧‍👦 family", "e\u0301 and é", "\u202eright to left", "a\ufffeb\uffff", "\u200b", "\U0010ffff",
    "line\r\nline\u2028end", "{}{0}%s${x}",
    "\ufeffstarts with a mark", "\x01\x1b[31mred",
]  # fmt: skip


@pytest.mark.parametrize("text", WHOLE, ids=ascii)
def test_a10_any_other_text_comes_back_exactly_as_it_was_given(system: MemorySystem, text: str) -> None:
    need(system, "messages")
    system.add("t1", one(text), subject="ana", key="k1")
    assert contents(system, "ana", "message") == [text]
    let_it_work(system)
    assert system.trouble() == []


ELSEWHERE: dict[str, Callable[[MemorySystem, str], object]] = {
    "thread": lambda system, bad: system.add(f"t{bad}", one(), subject="ana"),
    "subject": lambda system, bad: system.add("t1", one(), subject=f"ana{bad}"),
    "metadata": lambda system, bad: system.add("t1", one(metadata={"app": bad}), subject="ana"),
    "name of metadata": lambda system, bad: system.add("t1", one(metadata={bad: "app"}), subject="ana"),
}


@pytest.mark.parametrize(("thread", "subject"), [("", "ana"), ("t1", ""), (" ", "ana"), ("t1", "\t")])
def test_a10_an_empty_name_is_refused_and_is_not_taken_for_somebody_else(
    system: MemorySystem, thread: str, subject: str
) -> None:
    with pytest.raises(Rejected):
        system.add(thread, one(), subject=subject)
    assert [system.list(subject=somebody) for somebody in ("ana", "me")] == [[], []]


@pytest.mark.parametrize("bad", ["\x00", "\ud83d"], ids=ascii)
@pytest.mark.parametrize("where", ELSEWHERE)
def test_a10_the_same_in_a_name_or_in_metadata_is_refused(system: MemorySystem, where: str, bad: str) -> None:
    need(system, "messages")
    with pytest.raises(Rejected):
        ELSEWHERE[where](system, bad)
    assert system.list(subject="ana") == []
    add(system)
    assert contents(system, "ana", "message") == [SAID]
