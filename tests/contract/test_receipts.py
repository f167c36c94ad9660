"""Receipts say where a message is, why it is not remembered, and when that is tried next (G3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.factories import listening_to
from tests.stubs.worked_store import WorkedStore

from everkept.domain.erase import EventTarget
from everkept.errors import NotFound
from everkept.store.connection import Connection
from everkept.store.erase import erase
from everkept.store.providers import note_failure, permits_left
from everkept.store.receipts import ReceiptRow, receipts_of
from everkept.store.status import read_stages


@pytest.fixture
def worked(tmp_path: Path) -> Iterator[WorkedStore]:
    store = WorkedStore(tmp_path)
    yield store
    store.close()


def receipt(worked: WorkedStore, place: tuple[int, int]) -> ReceiptRow:
    (found,) = worked.store.read_now(receipts_of, worked.project, [place], worked.settings)
    return found


def test_an_accepted_message_waits_for_its_timer(worked: WorkedStore) -> None:
    (place,) = worked.say("chat-1", "I moved to Lisbon.")
    due = worked.clock.now_us() + 1_800_000_000

    found = receipt(worked, place)

    assert ("searchable", due) == (found.state, found.next_try_at)
    assert found.reason == "waits for its episode, which opens at 2025-06-15 15:36:40 UTC"
    assert (found.episode, found.summary, found.facts) == (None, None, None)
    assert ("chat-1", 1, worked.clock.now_us()) == (found.thread, found.seq, found.recorded_at)


def test_a_due_timer_waits_for_a_worker_and_then_is_opened(worked: WorkedStore) -> None:
    (place,) = worked.say("chat-1", "I moved to Lisbon.")
    worked.clock.advance(1801)
    assert receipt(worked, place).reason == "its episode is due, and waits for a worker"

    worked.take("open_window")

    assert (receipt(worked, place).reason, receipt(worked, place).next_try_at) == ("its episode is being opened", None)


def test_an_embedded_message_says_so_while_its_stages_wait(worked: WorkedStore) -> None:
    (place,) = worked.say("chat-1", "I moved to Lisbon.")
    worked.end("chat-1")
    assert receipt(worked, place).state == "searchable"

    worked.embed()

    found = receipt(worked, place)
    assert (found.state, found.summary, found.facts) == ("embedded", "pending", "pending")
    assert found.reason == "summary: waits for its turn; facts: waits for its turn"
    assert found.episode is not None


def test_a_message_is_remembered_when_both_stages_are_completed(worked: WorkedStore) -> None:
    (place,) = worked.say("chat-1", "I moved to Lisbon.")
    worked.end("chat-1")
    worked.summarise()
    assert receipt(worked, place).reason == "facts: being worked on"

    worked.extract()

    found = receipt(worked, place)
    assert (found.state, found.reason, found.next_try_at) == ("remembered", None, None)
    assert (found.summary, found.facts) == ("completed", "completed")


def test_of_two_stages_that_failed_the_sooner_try_is_told(worked: WorkedStore) -> None:
    (place,) = worked.say("chat-1", "I moved to Lisbon.")
    worked.end("chat-1")
    worked.fail(worked.take("summarise_episode"), after_s=90)
    worked.fail(worked.take("extract_facts"), after_s=60)
    assert receipt(worked, place).next_try_at == worked.clock.now_us() + 60_000_000


def test_a_failed_stage_says_how_often_and_when_it_is_tried_next(worked: WorkedStore) -> None:
    (place,) = worked.say("chat-1", "I moved to Lisbon.")
    worked.end("chat-1")
    worked.summarise()
    worked.fail(worked.take("extract_facts"), after_s=1)
    worked.clock.advance(2)
    worked.fail(worked.take("extract_facts"), after_s=60)

    found = receipt(worked, place)

    assert (found.state, found.facts) == ("searchable", "failed")
    assert found.next_try_at == worked.clock.now_us() + 60_000_000
    assert found.reason is not None
    assert found.reason.startswith("facts: failed 2 times (the model hung up), next try 2025-")


def test_a_dead_stage_names_the_command_that_retries_it(worked: WorkedStore) -> None:
    (place,) = worked.say("chat-1", "I moved to Lisbon.")
    worked.end("chat-1")
    worked.summarise()
    worked.give_up(worked.take("extract_facts"))

    found = receipt(worked, place)

    assert (found.state, found.next_try_at, found.facts) == ("failed", None, "dead")
    retry = f"everkept jobs retry epi_{found.episode} --stage facts"
    assert found.reason == f"facts: nonsense again; retry by hand: {retry}"


def test_a_dead_timer_is_a_failure_of_its_messages(worked: WorkedStore) -> None:
    (place,) = worked.say("chat-1", "I moved to Lisbon.")
    worked.clock.advance(1801)
    lease = worked.take("open_window")
    worked.give_up(lease, "the disk is gone")

    found = receipt(worked, place)

    assert (found.state, found.next_try_at) == ("failed", None)
    assert found.reason == f"its episode: the disk is gone; retry by hand: everkept jobs retry job_{lease.job}"


def test_no_idle_time_means_no_timer(worked: WorkedStore) -> None:
    worked.say("chat-1", "hello")
    worked.end("chat-1")
    worked.set_thread("chat-1", **{"window.idle_s": None})
    (place,) = worked.say("chat-1", "I moved to Lisbon.")

    found = receipt(worked, place)

    assert (found.state, found.next_try_at) == ("searchable", None)
    assert found.reason == "window.idle_s is null: no timer; end the thread to capture it"


def test_a_message_without_evidence_is_skipped_wherever_it_lies(worked: WorkedStore) -> None:
    (place,) = worked.say("chat-1", "Summary so far: …", evidence=False)
    assert _why(receipt(worked, place)) == ("skipped", "marked as no evidence: kept and found, never remembered from")

    worked.say("chat-1", "I moved to Lisbon.")
    worked.end("chat-1")

    assert _why(receipt(worked, place)) == ("skipped", "marked as no evidence: kept and found, never remembered from")


def test_memory_off_is_named_before_and_after_it_is_switched(worked: WorkedStore) -> None:
    (before,) = worked.say("chat-1", "I moved to Lisbon.")
    worked.set_thread("chat-1", **{"memory.enabled": False})
    (after,) = worked.say("chat-1", "My PIN is secret.")

    assert _why(receipt(worked, before)) == ("skipped", "memory.enabled is false")
    assert _why(receipt(worked, after)) == ("skipped", "memory.enabled was false when it was said")

    worked.set_thread("chat-1", **{"memory.enabled": True})

    assert receipt(worked, before).state == "searchable"
    assert _why(receipt(worked, after)) == ("skipped", "memory.enabled was false when it was said")


def test_a_skipped_window_hands_its_reason_to_its_messages(worked: WorkedStore) -> None:
    (place,) = worked.say("chat-1", "I moved to Lisbon.")
    worked.set_thread("chat-1", **{"memory.enabled": False})
    worked.end("chat-1")

    found = receipt(worked, place)

    assert _why(found) == ("skipped", "memory.enabled is false")
    assert (found.summary, found.facts) == ("skipped", "skipped")


def test_an_uncaptured_message_without_a_timer_names_the_sweep(worked: WorkedStore) -> None:
    (place,) = worked.say("chat-1", "I moved to Lisbon.")
    worked.sql("update jobs set state = 'done' where kind = 'open_window' returning id")

    found = receipt(worked, place)

    assert found.next_try_at == worked.clock.now_us() + 86_400_000_000
    assert found.reason is not None
    assert found.reason.startswith("no timer is armed; the sweep for abandoned threads opens its episode after ")


def test_an_erased_message_says_only_that(worked: WorkedStore) -> None:
    (place,) = worked.say("chat-1", "I moved to Lisbon.")
    worked.sql("update events set content = null, erased_at = :now returning seq", now=worked.clock.now_us())

    assert _why(receipt(worked, place)) == ("erased", "erased")


def test_while_a_message_is_erased_the_others_of_its_episode_say_that_it_rests(worked: WorkedStore) -> None:
    """What was made of the episode is forgotten at once: it is not remembered again before the erase is done."""
    _, kept = worked.say("chat-1", "I moved to Lisbon.", "It rains.")
    worked.end("chat-1")
    worked.summarise()
    worked.extract()
    assert receipt(worked, kept).state == "remembered"

    worked.store.write_now(erase, worked.project, EventTarget(stream=kept[0], seq=1))

    found = receipt(worked, kept)
    why = "a message of its episode is being erased; it is derived again from what remains"
    assert ("searchable", f"summary: {why}; facts: {why}") == (found.state, found.reason)
    assert (found.summary, found.facts) == ("pending", "pending")
    assert worked.store.read_now(read_stages, worked.project) == {"pending/pending": 1}
    assert worked.store.read_now(read_stages, None) == {"pending/pending": 1}


def test_a_place_that_does_not_exist_is_not_found(worked: WorkedStore) -> None:
    (stream, seq) = worked.say("chat-1", "I moved to Lisbon.")[0]

    with pytest.raises(NotFound, match=f"evt_{stream}_{seq + 1}"):
        receipt(worked, (stream, seq + 1))
    with pytest.raises(NotFound):
        worked.store.read_now(receipts_of, worked.project + 1, [(stream, seq)], worked.settings)


def test_many_receipts_keep_their_order_and_cost_the_same_statements(worked: WorkedStore) -> None:
    places = []
    for n in range(20):
        places += worked.say(f"chat-{n}", "one", "two", subject=f"user_{n}")
        if n % 2:
            worked.end(f"chat-{n}")
    few, many = _statements(worked, places[1:4]), _statements(worked, places[::-1])

    assert few == many
    assert [(r.stream, r.seq) for r in many_receipts(worked, places[::-1])] == places[::-1]
    assert [r.episode is not None for r in many_receipts(worked, places)] == [n // 2 % 2 == 1 for n in range(40)]


def many_receipts(worked: WorkedStore, places: list[tuple[int, int]]) -> list[ReceiptRow]:
    return worked.store.read_now(receipts_of, worked.project, places, worked.settings)


def _statements(worked: WorkedStore, places: list[tuple[int, int]]) -> int:
    def count(conn: Connection) -> int:
        with listening_to(conn) as ran:
            receipts_of(conn, worked.project, places, worked.settings)
        return len(ran)

    return worked.store.read_now(count)


def _why(found: ReceiptRow) -> tuple[str, str | None]:
    return found.state, found.reason


def test_a_receipt_names_the_provider_that_may_not_be_asked(worked: WorkedStore) -> None:
    (event,) = worked.say("chat-1", "I live in Porto")
    worked.end("chat-1")
    until = worked.store.clock.now_us() + 90_000_000

    def close_off(conn: Connection) -> None:
        permits_left(conn, "openai:1", 0, 8)
        note_failure(conn, "openai:1", "provider_down", "the provider answered 401", probe_s=90, retry_after_s=None)

    worked.store.write_now(close_off)
    found = receipt(worked, event)
    assert "summary: waits for the provider: the provider answered 401" in (found.reason or "")
    assert found.next_try_at == until
