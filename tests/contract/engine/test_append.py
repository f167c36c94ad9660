"""Append: once per key, whole or not at all, in order (G1, G2, G4)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.factories import World, open_store

from everkept.capture.messages import Given, check_messages
from everkept.errors import KeyConflict, NotFound, SubjectConflict
from everkept.ports.clock import VirtualClock
from everkept.store.streams import NewMessage, append_events


def contents(world: World, thread: str) -> list[str]:
    return [
        r[0] for r in world.rows("select content from events where stream_id = ? order by seq", world.stream(thread))
    ]


def together(world: World, *batches):
    """Submit all of them before the writer steps; each one's outcome or error."""
    futures = [world.store.writer.submit(append_events, batch) for batch in batches]
    world.store.writer.step()
    return [f.exception() or f.result() for f in futures]


def test_an_append_is_event_passage_timer_and_change_in_one_transaction(world: World) -> None:
    world.add("t", "hello")

    assert contents(world, "t") == ["hello"]
    assert world.rows("select kind, seq from passages") == [("turn", 1)]
    assert world.rows("select kind, state from jobs order by kind") == [
        ("embed_passages", "waiting"),
        ("open_window", "waiting"),
    ]
    assert world.rows("select kind, data from changes") == [("messages.appended", '{"first_seq": 1, "last_seq": 1}')]


def test_a_replay_is_answered_with_the_first_receipt_and_changes_nothing(world: World) -> None:
    first = world.add("t", "one", "two", key="k")
    before = {
        name: world.rows(f"select * from {name}") for name in ("streams", "events", "jobs", "changes", "passages")
    }
    world.tick(60)
    again = world.add("t", "one", "two", key="k")

    assert [a._replace(replayed=True) for a in first] == again
    assert before == {name: world.rows(f"select * from {name}") for name in before}


def test_the_same_key_with_another_payload_conflicts_and_nothing_of_the_batch_is_stored(world: World) -> None:
    world.add("t", "one", key="k")
    with pytest.raises(KeyConflict) as caught:
        world.add("t", "another", "two", key="k")

    assert caught.value.details["field"] == "messages[0].key"
    assert contents(world, "t") == ["one"]


def test_a_refused_batch_makes_no_thread_and_pulls_no_timer(world: World) -> None:
    world.add("t", "one", key="k")
    due = world.job(str(world.stream("t")), "open_window")["due_at"]
    with pytest.raises(KeyConflict):
        world.add("new thread", "another", key="k")

    assert world.rows("select name from streams") == [("t",)]
    assert due == world.job(str(world.stream("t")), "open_window")["due_at"]


def test_the_same_key_in_another_thread_is_another_payload(world: World) -> None:
    world.add("t", "one", key="k")
    world.add("u", "hello")
    with pytest.raises(KeyConflict):
        world.add("u", "one", key="k")


def test_a_batch_that_was_partly_accepted_elsewhere_is_completed(world: World) -> None:
    """A09: item 1 was sent alone before, under a key of its own."""

    def keyed(*texts: str) -> tuple[NewMessage, ...]:
        given = [Given(role="user", content=text, key=f"key-{text}") for text in texts]
        return check_messages(given, thread="t", key=None, secret=world.project.secret, now_us=world.clock.now_us())

    batch = world.batch("t", "one")
    together(world, replace(batch, messages=keyed("one")))
    (outcome,) = together(world, replace(batch, messages=keyed("one", "two")))

    assert [(a.seq, a.replayed) for a in outcome] == [(1, True), (2, False)]
    assert contents(world, "t") == ["one", "two"]


@pytest.mark.parametrize("changed", [{"role": "assistant"}, {"evidence": False}, {"tokens": 9}])
def test_all_that_is_said_of_a_message_is_its_payload(world: World, changed: dict[str, Any]) -> None:
    world.add("t", "one", key="k")
    with pytest.raises(KeyConflict):
        world.add("t", "one", key="k", **changed)


def test_the_key_of_a_batch_stands_for_the_whole_batch(world: World) -> None:
    """A03: one message more under the same key is another payload."""
    world.add("t", "one", key="k")
    with pytest.raises(KeyConflict):
        world.add("t", "one", "two", key="k")
    assert contents(world, "t") == ["one"]


def test_a_key_twice_in_one_batch_is_accepted_once(world: World) -> None:
    batch = world.batch("t", "one", key="k")
    (message,) = batch.messages
    (outcome,) = together(world, replace(batch, messages=(message, message)))

    assert [(a.seq, a.replayed) for a in outcome] == [(1, False), (1, True)]
    assert contents(world, "t") == ["one"]


def test_concurrent_appends_of_one_key_store_it_once(world: World) -> None:
    """A02: a retry storm that reaches the writer in one group."""
    outcomes = together(world, *(world.batch("t", "one", key="k") for _ in range(5)))

    assert [[(a.seq, a.replayed) for a in o] for o in outcomes] == [[(1, False)]] + 4 * [[(1, True)]]
    assert contents(world, "t") == ["one"]


def test_concurrent_appends_of_one_key_with_two_payloads_store_the_first(world: World) -> None:
    first, second, third = together(
        world, world.batch("t", "one", key="k"), world.batch("t", "two", key="k"), world.batch("t", "3")
    )

    assert isinstance(second, KeyConflict)
    assert (first[0].seq, third[0].seq, contents(world, "t")) == (1, 2, ["one", "3"])


def test_an_erased_key_stays_out(world: World) -> None:
    """G10: what is left of an erased event is enough to keep a re-import out, whatever it says."""
    world.add("t", "one", key="k")
    world.do("update events set content = null, payload_hash = null, erased_at = 1")

    assert [(a.seq, a.replayed) for a in world.add("t", "one", key="k")] == [(1, True)]
    assert contents(world, "t") == [None]


def test_messages_without_a_key_are_stored_each_time(world: World) -> None:
    world.add("t", "one")
    world.add("t", "one")
    assert contents(world, "t") == ["one", "one"]


def test_appends_of_one_group_keep_their_order_and_their_numbers_have_no_gap(world: World) -> None:
    batches = [world.batch("ab"[n % 2], f"{n}.0", f"{n}.1") for n in range(6)]
    outcomes = together(world, *batches)

    assert contents(world, "a") == ["0.0", "0.1", "2.0", "2.1", "4.0", "4.1"]
    assert [a.seq for o in outcomes[::2] for a in o] == [1, 2, 3, 4, 5, 6]
    assert world.rows("select last_seq from streams order by id") == [(6,), (6,)]


def test_a_refused_batch_in_a_group_leaves_no_gap(world: World) -> None:
    world.add("t", "0", key="k")
    one, refused, two = together(world, world.batch("t", "1"), world.batch("t", "x", key="k"), world.batch("t", "2"))
    assert isinstance(refused, KeyConflict)
    assert ([one[0].seq, two[0].seq], contents(world, "t")) == ([2, 3], ["0", "1", "2"])


def test_a_thread_keeps_its_subject(world: World) -> None:
    world.add("t", "one", subject="ana")
    with pytest.raises(SubjectConflict):
        world.add("t", "two", subject="ben")
    world.add("t", "two", subject=None)

    assert contents(world, "t") == ["one", "two"]


def test_a_thread_that_two_subjects_claim_in_one_group_belongs_to_the_first(world: World) -> None:
    first, second = together(world, world.batch("t", "a", subject="ana"), world.batch("t", "b", subject="ben"))
    assert isinstance(second, SubjectConflict)
    assert [a.seq for a in first] == [1]


def test_a_thread_needs_a_subject_to_begin(world: World) -> None:
    with pytest.raises(NotFound):
        world.add("nobody", "one", subject=None)


def test_keys_are_kept_apart_by_project(make_world) -> None:
    one, two = make_world(project="one"), make_world(project="two")
    one.add("t", "x", key="k")
    assert [a.replayed for a in two.add("t", "y", key="k")] == [False]


def test_tokens_wait_with_the_stream_and_are_given_or_estimated(world: World) -> None:
    world.add("t", "four words are here", tokens=500)
    world.add("t", "x" * 400)
    assert world.value("select sum(tokens) from events") == world.value("select pending_tokens from streams")
    assert world.value("select tokens from events where seq = 1") == 500
    assert 50 <= world.value("select tokens from events where seq = 2") <= 400


def test_a_batch_is_whole_or_nothing_when_the_transaction_fails(tmp_path: Path, clock: VirtualClock) -> None:
    """A01: no message without its timer, whichever statement fails."""

    class Failing:
        def __init__(self, raw) -> None:
            self.raw = raw
            self.countdown = -1

        def __getattr__(self, name):
            return getattr(self.raw, name)

        def _count(self, sql: str) -> None:
            if sql.startswith(("savepoint", "release", "rollback", "begin", "commit", "pragma")):
                return
            self.countdown -= 1
            if self.countdown == 0:
                raise RuntimeError("here")

        def execute(self, sql, *args, **kw):
            self._count(sql)
            return self.raw.execute(sql, *args, **kw)

        def executemany(self, sql, rows):
            self._count(sql)
            return (self.raw if store.path else self.raw.cursor()).executemany(sql, rows)

        def cursor(self):
            return self

    opened: list[Failing] = []
    store = open_store(tmp_path / "x.db", clock)
    write_connection = store._write_connection

    def connect():
        connection = write_connection()
        connection.raw = Failing(connection.raw)
        opened.append(connection.raw)
        return connection

    store.writer._connect = connect
    world = World(store, tmp_path / "home", clock)
    counted = ("streams", "events", "passages", "jobs", "changes")
    failed = 0
    for n in range(1, 60):
        opened[-1].countdown = n
        try:
            world.add("t", "one", "two")
        except RuntimeError:
            failed += 1
            assert [world.value(f"select count(*) from {name}") for name in counted] == [0] * 5
        else:
            break
    opened[-1].countdown = -1
    assert failed > 10
    assert [world.value(f"select count(*) from {name}") for name in counted] == [1, 2, 2, 2, 1]
    world.close()
    store.close()
