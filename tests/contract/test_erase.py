"""Erasing is complete: at once for readers, for good in the file, and nothing in flight writes it back (G10)."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text
from tests.postgres import TestedDatabase

from everkept.capture.messages import Given, check_messages
from everkept.config import load
from everkept.derive.kinds import KINDS
from everkept.derive.tools import SliceArgs, Tools, read_slice
from everkept.domain.erase import EventTarget, ProjectTarget, StreamTarget, SubjectTarget, Target
from everkept.domain.facts import FactDraft
from everkept.domain.jobs import Done, Lease, Snooze
from everkept.domain.passage import analyse
from everkept.domain.scope import Scope
from everkept.errors import LeaseLost, NotFound, SubjectMoved
from everkept.ports.clock import VirtualClock
from everkept.ports.faults import NoFaults
from everkept.ports.journal import Address, Recipe
from everkept.ports.models import RawReply
from everkept.store.changes import read_changes
from everkept.store.claims import ClaimRequest, claim
from everkept.store.embeddings import keep_embeddings, last_erasure
from everkept.store.erase import Erasure, erase, erase_chunk, find_erasure, plan_erase, residue
from everkept.store.facts import (
    FactsOf,
    NewFact,
    judge_wish,
    list_facts,
    retire_by_hand,
    subject_revision,
    write_facts,
)
from everkept.store.jobs import promote_due, schedule
from everkept.store.journal import begin_ask, commit_reply, kept_replies, subject_epoch
from everkept.store.leases import expire_leases, finish
from everkept.store.projects import add_key, ensure_project, ensure_subject, find_project, find_subject
from everkept.store.reprocess import Selection, reprocess_chunk
from everkept.store.search import find_postings, load_hits
from everkept.store.sqlite import choose_driver
from everkept.store.store import Store
from everkept.store.streams import (
    Append,
    append_events,
    find_thread,
    get_thread,
    last_events,
    list_events,
    list_threads,
    request_end,
    set_thread_settings,
    sweep_unembedded,
)
from everkept.store.windows import find_window, fold_input, list_windows, open_windows, write_slice_summary
from everkept.work.maintenance import Maintenance
from everkept.work.runner import Runner

SECRET = b"s" * 32
SETTINGS = load({}, Path("unused"))


class World:
    """A real store, worked by a real runner without threads or models."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = VirtualClock()
        self.store = Store(path, clock=self.clock, threads=False)
        self.store.open()
        self.project = self.store.write_now(ensure_project, "home", SECRET).id
        self.runner = self._runner()

    def _runner(self) -> Runner:
        return Runner(
            self.store, KINDS, SETTINGS, Tools(model=None, words=None, embedder=None), owner="worker", clock=self.clock,
            faults=NoFaults(), pools={}, maintenance=Maintenance(self.store, [], self.clock),
        )  # fmt: skip

    def say(
        self, thread: str, *lines: str, subject: str = "ann", key: str | None = None, project: int | None = None
    ) -> Any:
        given = [Given(role="user", content=line, name=subject.title()) for line in lines]
        messages = check_messages(given, thread=thread, key=key, secret=SECRET, now_us=self.clock.now_us())
        item = Append(project=project or self.project, thread=thread, subject=subject, messages=messages, base=SETTINGS)
        future = self.store.writer.submit(append_events, item)
        self.store.writer.step()
        return future.result()

    def end(self, thread: str) -> int:
        """Capture the thread; the number of its newest window."""
        self.store.write_now(request_end, self.project, thread, SETTINGS)
        self.drain()
        stream = self.store.read_now(get_thread, self.project, thread)
        return self.store.read_now(list_windows, self.project, stream=stream.id)[0].id

    def drain(self, *, seconds: float = 10) -> None:
        async def work() -> None:
            for _ in range(20):
                self.clock.advance(seconds / 20)
                while await self.runner.step():
                    await self.runner.drain_started()

        asyncio.run(work())

    def subject(self, name: str = "ann") -> int:
        found = self.store.read_now(find_subject, self.project, name)
        assert found is not None
        return found

    def stream(self, name: str) -> int:
        return self.store.read_now(get_thread, self.project, name).id

    def fact(
        self, stream: int, seq: int, predicate: str, value: str, *, subject: str = "ann", window: int | None = None
    ) -> int:
        draft = FactDraft(
            entity=subject, predicate=predicate, object=value, text=f"{subject} {predicate} {value}", quote=value,
            confidence=0.9, single_valued=True, seqs=(seq,),
        )  # fmt: skip
        said = self.clock.now_us() + seq
        new = NewFact(
            draft=draft, said_at=said, zone_min=None, stream=stream, analysed=analyse(draft.text, speaker=subject)
        )
        owner = self.subject(subject)
        key = "" if window else f"{stream}.{seq}.{value}"
        of = FactsOf(project=self.project, subject=owner, window=window, slice=0, revision=None, key=key)
        self.store.write_now(write_facts, of, [new], "[]")
        return self.rows("select max(id) from facts where object = :value", value=value)[0][0]

    def address(self, work: str, subject: str = "ann") -> Address:
        owner = self.subject(subject)
        epoch = self.store.read_now(subject_epoch, owner)
        return Address(
            project=self.project, subject=owner, work=work, step="facts", version="1", model="m", epoch=epoch
        )

    def reply(
        self, work: str, words: str, *, ask: int = 1, subject: str = "ann", shown: dict[str, Any] | None = None
    ) -> Address:
        address = self.address(work, subject)
        self.store.write_now(begin_ask, address, ask, b"h", Recipe(shown=shown or {}))
        reply = RawReply(text=words, tokens_in=1, tokens_out=1, usd=0.1)
        self.store.write_now(commit_reply, address, ask, reply)
        return address

    def erase(self, target: Target) -> Erasure:
        return self.store.write_now(erase, self.project, target)

    def erased(self, target: Target) -> Erasure:
        """Erase, and let the job do its work."""
        erasure = self.erase(target)
        self.drain()
        found = self.store.read_now(find_erasure, erasure.id)
        assert found is not None
        return found

    def residue(self, target: Target) -> int:
        return sum(self.store.read_now(residue, self.project, target).values())

    def found(self, word: str) -> list[str]:
        """Kinds of the passages that a search for the word may show."""

        def look(conn: Any) -> list[str]:
            scope = Scope(project=self.project)  # type: ignore[arg-type]
            postings = find_postings(conn, scope, word, ("turn", "fact", "episode"))
            ids = [int(i) for _, some in postings for i in some.split(",")]
            return sorted(h.kind for h in load_hits(conn, scope, ids))

        return self.store.read_now(look)

    def rows(self, sql: str, **params: Any) -> list[tuple[Any, ...]]:
        return self.store.read_now(lambda conn: conn.rows(text(sql), params))

    def kept(self, *words: str) -> list[str]:
        """Which of the words stand anywhere in the file or its write-ahead log, or in any row of the database."""
        if isinstance(self.store.database, TestedDatabase):
            held = self.store.database.every_value()
        else:
            files = self.path.parent.glob(self.path.name + "*")
            held = b"".join(p.read_bytes() for p in files).lower().decode("latin-1")
        return [w for w in words if w.lower() in held]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "memory.db")
    yield made
    made.store.close()


def lease_of(world: World, kind: str) -> Lease:
    """Claim until a job of that kind is held."""

    def take(conn: Any) -> Any:
        promote_due(conn, 100)
        return claim(conn, ClaimRequest(
            owner="late", free=8, slots=8, lease_s=600, uses={"local": 8, "model": 8, "embedder": 8}, idle=True,
            estimates_s={},
        ))  # fmt: skip

    world.clock.advance(5)
    leases: list[Lease] = world.store.write_now(take).leases
    return next(lease for lease in leases if lease.kind == kind)


# ---- one event


def test_erased_event_leaves_its_place_and_its_key(world: World) -> None:
    world.say("chat", "my cat is called Zorblax", "and it rains", key="k")
    stream = world.stream("chat")
    world.end("chat")
    done = world.erased(EventTarget(stream=stream, seq=1))
    assert done.residue == 0
    assert done.done_at is not None
    [row] = world.rows(
        "select role, name, content, payload_hash, metadata, model, evidence, tokens, erased_at > 0,"
        " key_hash is not null"
        " from events where seq = 1"
    )
    assert row == ("", None, None, None, None, None, 0, 0, 1, 1)
    assert world.found("zorblax") == []
    assert world.kept("Zorblax") == []
    assert world.kept("rains") == ["rains"]


def test_erased_event_is_hidden_before_any_job_has_run(world: World) -> None:
    world.say("chat", "my cat is called Zorblax", "and it rains")
    world.end("chat")
    stream = world.stream("chat")
    assert "turn" in world.found("zorblax")
    world.erase(EventTarget(stream=stream, seq=1))
    assert world.found("zorblax") == []
    assert [e.content for e in world.store.read_now(list_events, stream, 1, 9)] == [None, "and it rains"]


def test_an_erased_event_is_none_of_the_last_of_its_thread(world: World) -> None:
    world.say("chat", "one", "two", "three")
    stream = world.stream("chat")
    world.erase(EventTarget(stream=stream, seq=3))
    assert [event.seq for event in world.store.read_now(last_events, stream, 2)] == [1, 2]


def test_reimport_under_the_same_key_stays_out(world: World) -> None:
    world.say("chat", "my cat is called Zorblax", key="k")
    stream = world.stream("chat")
    world.erased(EventTarget(stream=stream, seq=1))
    [again] = world.say("chat", "my cat is called Zorblax", key="k")
    assert (again.stream, again.seq, again.replayed) == (stream, 1, True)
    assert world.kept("Zorblax") == []


def test_what_an_erased_fact_superseded_comes_back(world: World) -> None:
    world.say("one", "I live in Lisbon")
    world.say("two", "I live in Porto now")
    one, two = world.stream("one"), world.stream("two")
    old = world.fact(one, 1, "lives in", "Lisbon")
    world.clock.advance(60)
    new = world.fact(two, 1, "lives in", "Porto")
    states = dict(world.rows("select id, closed_by from facts"))
    assert states == {old: new, new: None}
    world.erased(EventTarget(stream=two, seq=1))
    assert world.rows("select id, closed_at, closed_by, live from facts") == [(old, None, None, 1)]


def test_erasing_an_event_takes_the_replies_that_saw_it_and_derives_its_window_again(world: World) -> None:
    world.say("chat", "I work at Qwertzuiop", "I live in Lisbon")
    window = world.end("chat")
    stream = world.stream("chat")
    fact = world.fact(stream, 1, "works at", "Qwertzuiop", window=window)
    seen = {"stream": stream, "first": 1, "last": 2}
    gone = world.reply(f"window:{window}.0", "Qwertzuiop!", ask=3, shown=seen)
    later = world.reply("window:999.0", "still Qwertzuiop?", shown={"stream": 999, "facts": [fact]})
    other = world.reply("window:998.0", "Lisbon", shown={"stream": 998, "facts": []})
    before = world.rows("select summary from windows where id = :w", w=window)
    assert "Qwertzuiop" in before[0][0]
    world.erased(EventTarget(stream=stream, seq=1))
    assert [len(world.store.read_now(kept_replies, a)) for a in (gone, later, other)] == [0, 0, 1]
    [(summary, facts_at)] = world.rows("select summary, facts_at from windows where id = :w", w=window)
    assert "Lisbon" in summary
    assert "Qwertzuiop" not in summary
    assert facts_at is not None
    assert world.rows("select state from jobs where kind = 'extract_facts'") == [("done",)]
    assert world.kept("Qwertzuiop") == []
    assert world.residue(EventTarget(stream=stream, seq=1)) == 0


def test_what_was_forgotten_stays_forgotten_where_its_window_is_derived_again(world: World) -> None:
    world.say("chat", "I like tea", "I live in Lisbon", "my cat is called Zorblax")
    window = world.end("chat")
    stream = world.stream("chat")
    facts = dict(world.rows("select said_seq, id from facts where window_id = :w", w=window))
    assert sorted(facts) == [1, 2, 3]
    believed = "select said_seq from facts where live and window_id = :w order by 1"
    for seq in (1, 3):
        world.store.write_now(retire_by_hand, world.project, facts[seq], "wrong")
    assert world.rows(believed, w=window) == [(2,)]
    world.erased(EventTarget(stream=stream, seq=3))
    assert world.rows("select said_seq, retired_by_hand, live from facts order by 1") == [(1, 1, 0), (2, 0, 1)]
    assert world.rows("select count(*) from forgotten") == [(0,)], "nothing is noted of what nobody can say again"
    [(again,)] = world.rows("select id from facts where said_seq = 1")
    told = world.rows("select ref from changes where kind = 'fact.changed' order by seq")
    assert told[-1] == (f"fct_{again}",)
    world.store.write_now(retire_by_hand, world.project, again, None)
    world.erased(EventTarget(stream=stream, seq=2))
    assert world.rows(believed, w=window) == [(1,)], "what was brought back is not forgotten again"


def test_what_is_noted_of_forgotten_facts_goes_with_its_window(world: World) -> None:
    world.say("chat", "I like tea", "I live in Lisbon")
    window = world.end("chat")
    stream = world.stream("chat")
    [(fact,)] = world.rows("select id from facts where window_id = :w and said_seq = 1", w=window)
    world.store.write_now(retire_by_hand, world.project, fact, "wrong")
    erasure = world.erase(EventTarget(stream=stream, seq=2))
    lease = lease_of(world, "erase_scope")
    while world.store.write_now(erase_chunk, lease, erasure.id):
        pass
    [(window_noted, statement)] = world.rows("select window_id, statement from forgotten")
    assert window_noted == window
    assert "tea" not in statement
    world.clock.advance(601)
    world.store.write_now(expire_leases, 5)  # the holder is gone
    world.erased(StreamTarget(stream=stream))
    assert world.rows("select count(*) from forgotten") == [(0,)]
    assert world.residue(StreamTarget(stream=stream)) == 0


def test_erasing_an_event_takes_every_reply_that_saw_it_and_no_other(world: World) -> None:
    world.say("chat", "I live in Lisbon", "I work at Qwertzuiop")
    window = world.end("chat")
    stream = world.stream("chat")
    fact = world.fact(stream, 2, "works at", "Qwertzuiop", window=window)
    [(entity,)] = world.rows("select entity_id from facts where id = :fact", fact=fact)
    gone = [
        world.reply("window:998.0", "who is ann?", shown={"stream": 998, "entities": [entity]}),
        world.reply("fold:a", "so far", shown={"stream": stream, "through": 2}),
    ]
    kept = [
        world.reply("fold:b", "before it", shown={"stream": stream, "through": 1}),
        world.reply(f"window:{window}0.0", "of a window whose number begins alike", shown={"stream": 997}),
    ]
    world.erased(EventTarget(stream=stream, seq=2))
    assert [len(world.store.read_now(kept_replies, a)) for a in (*gone, *kept)] == [0, 0, 1, 1]


def test_a_conflict_goes_with_either_of_its_facts(world: World) -> None:
    facts = []
    for thread, city in (("one", "Lisbon"), ("two", "Porto")):
        world.say(thread, f"I live in {city}")
        facts.append(world.fact(world.stream(thread), 1, "lives in", city))
    conflict = text("insert into verdicts(subject_id, earlier_fact, later_fact, opened_at) values(:s, :a, :b, 0)")
    params = {"s": world.subject(), "a": facts[0], "b": facts[1]}
    world.store.write_now(lambda conn: conn.run(conflict, params))
    world.erased(EventTarget(stream=world.stream("two"), seq=1))
    assert world.rows("select count(*) from verdicts") == [(0,)]
    assert world.rows("select object from facts") == [("Lisbon",)]


def test_a_window_whose_every_event_was_erased_is_skipped(world: World) -> None:
    world.say("chat", "I work at Qwertzuiop")
    window = world.end("chat")
    world.erased(EventTarget(stream=world.stream("chat"), seq=1))
    found = world.store.read_now(find_window, window)
    assert found is not None
    assert (found.skipped_because, found.summary) == ("everything in it was erased", "")


def test_the_rolling_summary_is_folded_again_from_what_remains(world: World) -> None:
    world.say("chat", "my cat is called Zorblax and I adore it", "it rains in Lisbon every day")
    world.end("chat")
    world.say("chat", "the trains in Lisbon are late")
    world.end("chat")
    world.drain(seconds=600)
    assert "Zorblax" in (world.store.read_now(get_thread, world.project, "chat").summary or "")
    world.erased(EventTarget(stream=world.stream("chat"), seq=1))
    world.drain(seconds=600)
    summary = world.store.read_now(get_thread, world.project, "chat").summary or ""
    assert "Zorblax" not in summary
    assert "Lisbon" in summary
    assert world.kept("Zorblax") == []


def test_erasing_an_uncovered_event_keeps_the_count_of_pending_tokens(world: World) -> None:
    world.say("chat", "my cat is called Zorblax", "and it rains")
    world.erased(EventTarget(stream=world.stream("chat"), seq=1))
    [(pending, tokens)] = world.rows("select pending_tokens, (select sum(tokens) from events) from streams")
    assert pending == tokens
    world.end("chat")
    assert world.rows("select pending_tokens, covered_seq from streams") == [(0, 2)]


# ---- a thread


def test_an_erased_thread_is_gone_and_its_subject_stays(world: World) -> None:
    world.say("secret-plan", "my cat is called Zorblax", "it likes Frobnitz")
    world.say("other", "I live in Lisbon")
    window = world.end("secret-plan")
    world.end("other")
    stream, other = world.stream("secret-plan"), world.stream("other")
    world.fact(stream, 1, "has a cat", "Zorblax", window=window)
    kept = world.fact(other, 1, "lives in", "Lisbon")
    world.reply(f"window:{window}.0", "Zorblax", shown={"stream": stream, "first": 1, "last": 2})
    target = StreamTarget(stream=stream)
    plan = world.store.read_now(plan_erase, world.project, target)
    assert (plan["threads"], plan["messages"], plan["episodes"]) == (1, 2, 1)
    world.erase(target)
    assert world.found("zorblax") == []
    assert world.store.read_now(find_thread, world.project, "secret-plan") is None
    assert world.store.read_now(find_window, window) is None
    assert kept in {f.id for f in world.store.read_now(list_facts, world.project, None, None, 99)}
    assert not any("Zorblax" in f.text for f in world.store.read_now(list_facts, world.project, None, None, 99))
    world.drain()
    assert world.residue(target) == 0
    assert world.kept("Zorblax", "Frobnitz", "secret-plan") == []
    assert world.rows("select count(*) from entities where norm = 'ann'") == [(1,)]
    assert "turn" in world.found("lisbon")


# ---- a subject


def test_an_erased_subject_leaves_no_word_and_no_name(world: World) -> None:
    world.say("wumpus-talk", "my cat is called Zorblax", subject="wumpus", key="k")
    world.say("bob-talk", "I live in Lisbon", subject="bob")
    window = world.end("wumpus-talk")
    stream, subject = world.stream("wumpus-talk"), world.subject("wumpus")
    world.fact(stream, 1, "has a cat", "Zorblax", subject="wumpus", window=window)
    world.reply(f"window:{window}.0", "Zorblax of wumpus", subject="wumpus")
    target = SubjectTarget(subject=subject)
    assert world.residue(target) > 0
    done = world.erased(target)
    assert (done.residue, world.residue(target)) == (0, 0)
    assert world.kept("Zorblax", "wumpus") == []
    assert "turn" in world.found("lisbon")
    changes, _ = world.store.read_now(read_changes, world.project, 0, 100)
    assert not any("wumpus" in str(c) for c in changes)
    assert any(c[1] == "memory.erased" and c[4] == f"sub_{subject}" for c in changes)


def test_the_same_names_start_anew_and_old_keys_stay_out(world: World) -> None:
    world.say("talk", "my cat is called Zorblax", subject="wumpus", key="k")
    old_subject, old_stream = world.subject("wumpus"), world.stream("talk")
    world.erased(SubjectTarget(subject=old_subject))
    [new] = world.say("talk", "hello again", subject="wumpus", key="k2")
    assert world.subject("wumpus") != old_subject
    assert new.stream != old_stream
    [again] = world.say("talk", "my cat is called Zorblax", subject="wumpus", key="k")
    assert (again.stream, again.seq, again.replayed) == (old_stream, 1, True)


def test_a_name_is_free_at_once_even_where_its_thread_is_not_reached_yet(world: World) -> None:
    for i in range(205):
        world.say(f"t{i}", "hello", subject="wumpus")
    last = world.stream("t204")
    world.erase(SubjectTarget(subject=world.subject("wumpus")))
    assert world.rows("select count(*) from streams where erased_at is null") == [(5,)]
    assert world.store.read_now(list_threads, world.project, None, None, 500) == []
    [new] = world.say("t204", "I am somebody else", subject="bob")
    assert new.stream != last
    world.drain()
    assert world.rows("select count(*) from streams where erased_at is null") == [(1,)]


# ---- a project


def test_an_erased_project_takes_everything_in_it(world: World) -> None:
    for name in ("ann", "bob", "cid"):
        world.say(f"talk-{name}", f"{name} saw Zorblax", subject=name)
        world.end(f"talk-{name}")
    elsewhere = world.store.write_now(ensure_project, "office", SECRET).id
    world.say("work", "Zorblax pays well", subject="dan", project=elsewhere)
    done = world.erased(ProjectTarget())
    assert (done.residue, world.residue(ProjectTarget())) == (0, 0)
    assert world.store.read_now(find_project, "home") is None
    assert world.rows("select count(*) from events where content is not null") == [(1,)]
    jobs = "select count(*) from jobs where project_id = :p and kind <> 'erase_scope'"
    assert world.rows(jobs, p=world.project) == [(0,)]
    with pytest.raises(NotFound):
        world.store.write_now(ensure_subject, world.project, "ann")
    assert world.store.write_now(ensure_project, "home", SECRET).id != world.project


# ---- work in flight


def test_work_in_flight_cannot_write_an_erased_event_back(world: World) -> None:
    world.say("chat", "my cat is called Zorblax")
    world.store.write_now(request_end, world.project, "chat", SETTINGS)
    lease = lease_of(world, "open_window")
    world.store.write_now(finish_opening, lease)
    stream = world.stream("chat")
    held = lease_of(world, "extract_facts")
    subject = world.subject()
    revision = world.store.read_now(subject_revision, subject)
    world.erase(EventTarget(stream=stream, seq=1))
    of = FactsOf(project=world.project, subject=subject, window=held.args["window"], slice=0, revision=revision)
    with pytest.raises(SubjectMoved):
        world.store.write_now(write_facts, of, [], "[]")
    with pytest.raises(LeaseLost):
        world.store.write_now(finish_done, held)


@pytest.mark.parametrize("kind", ["embed_passages", "judge_conflicts"])
def test_what_has_read_an_erased_message_among_others_starts_again(world: World, kind: str) -> None:
    world.say("chat", "my cat is called Zorblax", "and it rains")
    subject = world.subject()
    world.store.write_now(lambda conn: schedule(conn, [judge_wish(conn, world.project, subject)]))
    held = lease_of(world, kind)
    world.erase(EventTarget(stream=world.stream("chat"), seq=1))
    assert world.rows("select state from jobs where kind = :kind", kind=kind) == [("waiting",)]
    with pytest.raises(LeaseLost):
        world.store.write_now(finish_done, held)


def finish_opening(conn: Any, lease: Lease) -> None:
    finish(conn, lease, open_windows(conn, lease.args["stream"], SETTINGS), 0.1)


def finish_done(conn: Any, lease: Lease) -> None:
    finish(conn, lease, Done(), 0.1)


def test_a_reply_committed_after_the_erase_is_refused(world: World) -> None:
    world.say("chat", "my cat is called Zorblax")
    address = world.address("window:1.0")
    world.store.write_now(begin_ask, address, 1, b"h", Recipe())
    world.erase(EventTarget(stream=world.stream("chat"), seq=1))
    late = RawReply(text="Zorblax", tokens_in=1, tokens_out=1, usd=None)
    with pytest.raises(SubjectMoved):
        world.store.write_now(commit_reply, address, 1, late)
    with pytest.raises(SubjectMoved):  # nor is it asked again by what was read before
        world.store.write_now(begin_ask, address, 1, b"h", Recipe())


@pytest.mark.parametrize("kind", ["stream", "subject"])
def test_a_reply_to_what_saw_an_erased_scope_is_refused_at_once(world: World, kind: str) -> None:
    world.say("chat", "my cat is called Zorblax")
    address = world.address("window:1.0")
    world.store.write_now(begin_ask, address, 1, b"h", Recipe())
    world.erase(
        StreamTarget(stream=world.stream("chat")) if kind == "stream" else SubjectTarget(subject=world.subject())
    )
    late = RawReply(text="Zorblax", tokens_in=1, tokens_out=1, usd=None)
    with pytest.raises(SubjectMoved):
        world.store.write_now(commit_reply, address, 1, late)


def test_an_erased_project_keeps_neither_its_secret_nor_a_key_that_works(world: World) -> None:
    """Without the secret nothing can be found out from the hashes of its keys."""
    world.store.write_now(add_key, world.project, "laptop", b"hash")
    world.erase(ProjectTarget())
    assert world.rows("select secret from projects") == [(b"",)]
    assert world.rows("select name, revoked_at > 0 from api_keys") == [("erased", 1)]


def test_an_embedding_made_of_what_was_read_before_an_erase_is_not_kept(world: World) -> None:
    world.say("chat", "My dog is called Zorblax.")
    before = world.store.read_now(last_erasure, world.project)
    world.erase(EventTarget(stream=world.stream("chat"), seq=1))
    with pytest.raises(SubjectMoved):
        world.store.write_now(keep_embeddings, world.project, "e5", 4, {"h": bytes(16)}, before)
    assert world.rows("select count(*) from embeddings") == [(0,)]


@pytest.mark.parametrize("kind", ["stream", "subject", "project"])
def test_jobs_that_run_between_the_erase_and_its_job_find_nothing(world: World, kind: str) -> None:
    world.say("chat", "my cat is called Zorblax")
    world.store.write_now(request_end, world.project, "chat", SETTINGS)
    world.store.write_now(finish_opening, lease_of(world, "open_window"))
    targets: dict[str, Target] = {
        "stream": StreamTarget(stream=world.stream("chat")), "subject": SubjectTarget(subject=world.subject()),
        "project": ProjectTarget(),
    }  # fmt: skip
    target = targets[kind]
    world.erase(target)
    world.drain()
    assert world.residue(target) == 0
    assert world.kept("Zorblax") == []


# ---- resuming, embeddings, repeating


def test_a_crash_after_any_chunk_loses_nothing(world: World) -> None:
    for i in range(60):
        world.say("chat", f"the Zorblax number {i} sings", subject="wumpus")
    window = world.end("chat")
    world.fact(world.stream("chat"), 1, "likes", "Zorblax", subject="wumpus", window=window)
    target = SubjectTarget(subject=world.subject("wumpus"))
    erasure = world.erase(target)
    chunks = 0
    while chunks < 200:
        lease = lease_of(world, "erase_scope")
        if not world.store.write_now(erase_chunk, lease, erasure.id):
            break
        chunks += 1
        world.clock.advance(700)  # the worker died: its lease ends, and the next one goes on
        world.store.write_now(expire)
    assert chunks > 5
    world.store.write_now(lambda conn: finish_snooze(conn, lease))
    world.drain()
    assert world.residue(target) == 0
    assert world.kept("Zorblax", "wumpus") == []


def expire(conn: Any) -> None:
    expire_leases(conn, crashes_max=1000)


def finish_snooze(conn: Any, lease: Lease) -> None:
    finish(conn, lease, Snooze(conn.now()), 0.1)


def test_embeddings_of_erased_texts_are_forgotten_and_others_kept(world: World) -> None:
    world.say("chat", "my cat is called Zorblax", "and it rains", "goodbye")
    texts = {
        "my cat is called Zorblax": True, "Ann: my cat is called Zorblax": True,
        "Ann: my cat is called Zorblax\nAnn: and it rains": True, "and it rains": False,
        "Ann: and it rains\nAnn: goodbye": False,
    }  # fmt: skip
    hashes = {t: hashlib.blake2b(t.encode(), digest_size=16).hexdigest() for t in texts}
    vector = np.zeros(4, np.float32).tobytes()
    for model in ("e5", "minilm"):
        world.store.write_now(keep_embeddings, world.project, model, 4, dict.fromkeys(hashes.values(), vector), 0)
    world.erase(EventTarget(stream=world.stream("chat"), seq=1))
    no_embedder_runs = text("update jobs set state = 'discarded' where kind = 'embed_passages'")
    world.store.write_now(lambda conn: conn.run(no_embedder_runs))  # it would forget what is not its own
    world.drain()
    left = {r[0] for r in world.rows("select text_hash from embeddings")}
    assert left == {hashes[t] for t, gone in texts.items() if not gone}


def test_embeddings_of_an_erased_episode_are_forgotten(world: World) -> None:
    world.say("chat", "my cat is called Zorblax")
    world.end("chat")
    [(summary, learnings, speaker)] = world.rows("""
        select w.summary, w.learnings, p.speaker from windows w join passages p on p.kind = 'episode'""")
    whole = f"{summary} {learnings}"
    hashes = [hashlib.blake2b(t.encode(), digest_size=16).hexdigest() for t in (whole, f"{speaker}: {whole}", "other")]
    vector = np.zeros(4, np.float32).tobytes()
    world.store.write_now(keep_embeddings, world.project, "e5", 4, dict.fromkeys(hashes, vector), 0)
    world.erase(StreamTarget(stream=world.stream("chat")))
    no_embedder_runs = text("update jobs set state = 'discarded' where kind = 'embed_passages'")
    world.store.write_now(lambda conn: conn.run(no_embedder_runs))  # it would forget what is not its own
    world.drain()
    assert world.rows("select text_hash from embeddings") == [(hashes[2],)]


def test_embeddings_of_an_erased_fact_are_forgotten(world: World) -> None:
    world.say("chat", "I live in Lisbon")
    world.fact(world.stream("chat"), 1, "lives in", "Lisbon")
    texts = ("ann lives in Lisbon", "ann: ann lives in Lisbon", "other")
    hashes = [hashlib.blake2b(t.encode(), digest_size=16).hexdigest() for t in texts]
    vector = np.zeros(4, np.float32).tobytes()
    world.store.write_now(keep_embeddings, world.project, "e5", 4, dict.fromkeys(hashes, vector), 0)
    world.erase(StreamTarget(stream=world.stream("chat")))
    no_embedder_runs = text("update jobs set state = 'discarded' where kind = 'embed_passages'")
    world.store.write_now(lambda conn: conn.run(no_embedder_runs))  # it would forget what is not its own
    world.drain()
    assert world.rows("select text_hash from embeddings") == [(hashes[2],)]


def test_what_is_held_in_memory_of_a_project_is_read_again_after_an_erase(world: World) -> None:
    world.say("chat", "my cat is called Zorblax")
    revision = "select vectors_revision from projects where id = :project"
    [(before,)] = world.rows(revision, project=world.project)
    world.erase(SubjectTarget(subject=world.subject()))
    assert world.rows(revision, project=world.project) == [(before + 1,)]


def test_no_sweep_wakes_the_embedder_for_a_fact_that_is_being_erased(world: World) -> None:
    world.say("chat", "I live in Lisbon")
    window = world.end("chat")
    world.fact(world.stream("chat"), 1, "likes", "Lisbon", window=window)
    world.erase(EventTarget(stream=world.stream("chat"), seq=1))
    for change in (
        "delete from jobs where kind = 'embed_passages'",
        "update passages set embedded = 1 where not hidden",
    ):
        world.store.write_now(lambda conn, change=change: conn.run(text(change)))
    assert world.rows("select count(*) from passages where embedded is null") != [(0,)]
    assert world.store.write_now(sweep_unembedded, 0, 100) == (0, 0)


def test_an_erased_thread_keeps_no_settings(world: World) -> None:
    world.say("chat", "my cat is called Zorblax")
    world.store.write_now(set_thread_settings, world.project, "chat", '{"window.idle_s": 60}', SETTINGS)
    world.erase(StreamTarget(stream=world.stream("chat")))
    assert world.rows("select settings from streams") == [("{}",)]


@pytest.mark.only_on("sqlite", reason="a reader keeps the log of a file from being emptied")
def test_an_erase_is_done_only_when_no_reader_keeps_the_words_in_the_log(world: World) -> None:
    world.say("chat", "my cat is called Zorblax")
    target = EventTarget(stream=world.stream("chat"), seq=1)
    reader = choose_driver().module.connect(str(world.path), isolation_level=None)
    reader.execute("begin")
    reader.execute("select count(*) from events").fetchone()
    erasure = world.erased(target)
    assert erasure.done_at is None
    reader.close()
    world.drain()
    found = world.store.read_now(find_erasure, erasure.id)
    assert found is not None
    assert found.done_at is not None
    assert world.kept("Zorblax") == []


def test_erasing_twice_answers_with_the_first_erase(world: World) -> None:
    world.say("chat", "my cat is called Zorblax")
    target = EventTarget(stream=world.stream("chat"), seq=1)
    first = world.erased(target)
    assert world.erase(target).id == first.id
    with pytest.raises(NotFound):
        world.erase(EventTarget(stream=99, seq=1))
    with pytest.raises(NotFound):
        world.store.write_now(erase, world.project + 1, target)


def test_no_word_of_many_stays_in_the_full_text_index(world: World) -> None:
    words = [f"{chr(97 + i % 26)}zx{i * 7919 % 10007}q" for i in range(600)]
    for at in range(0, 600, 20):
        world.say("chat", *(f"{w} and the weather" for w in words[at : at + 20]), subject="wumpus")
        world.say("other", f"the weather of day {at}", subject="bob")
    assert len(world.kept(*words)) == 600
    world.erased(SubjectTarget(subject=world.subject("wumpus")))
    assert world.kept(*words, "wumpus") == []


def test_no_summary_tells_of_an_erased_event_before_its_job_has_run(world: World) -> None:
    world.say("chat", "my cat is called Zorblax and I adore it", "it rains in Lisbon every day")
    window = world.end("chat")
    world.drain(seconds=600)
    shown = "select w.summary, w.learnings, s.summary from windows w join streams s on s.id = w.stream_id"
    assert "Zorblax" in str(world.rows(shown))
    world.erase(EventTarget(stream=world.stream("chat"), seq=1))
    assert world.rows(shown) == [("", None, None)]
    assert world.rows("select summary, learnings from slices where window_id = :w", w=window) == [("", None)]


def test_the_turns_after_an_erased_one_get_their_vectors_again_by_themselves(world: World) -> None:
    """Their vectors rested on it; no sweep is needed to notice."""
    world.say("chat", "my cat is called Zorblax", "and it rains", "goodbye")
    world.drain()
    assert world.rows("select count(*) from passages where embedded is null") == [(0,)]

    world.erase(EventTarget(stream=world.stream("chat"), seq=1))
    assert world.rows("select count(*) from passages where embedded is null") == [(2,)]
    world.drain()

    assert world.rows("select count(*) from passages where embedded is null") == [(0,)]


@pytest.mark.parametrize("kind", ["stream", "subject", "project"])
def test_nothing_wakes_the_embedder_for_what_is_being_erased(world: World, kind: str) -> None:
    world.say("chat", "my cat is called Zorblax")
    targets: dict[str, Target] = {
        "stream": StreamTarget(stream=world.stream("chat")), "subject": SubjectTarget(subject=world.subject()),
        "project": ProjectTarget(),
    }  # fmt: skip
    world.erase(targets[kind])
    nothing_is_scheduled = text("delete from jobs where kind = 'embed_passages'")
    world.store.write_now(lambda conn: conn.run(nothing_is_scheduled))

    assert world.store.write_now(sweep_unembedded, 0, 100) == (0, 0)


def test_an_erase_ends_where_its_episode_was_derived_again_after_the_clock_was_set_back(world: World) -> None:
    """What is older than the erase by the clock is residue, though it was made after it."""
    world.say("chat", "my cat is called Zorblax and I adore it", "it rains in Lisbon every day")
    window = world.end("chat")
    world.drain(seconds=600)
    target = EventTarget(stream=world.stream("chat"), seq=1)
    erasure = world.erase(target)
    world.clock.step_wall(-3600)
    world.store.write_now(derive_now, window, "It rains in Lisbon.")
    assert world.residue(target) > 0

    world.drain(seconds=7200)

    found = world.store.read_now(find_erasure, erasure.id)
    assert found is not None
    assert (found.done_at is not None, found.residue) == (True, 0)
    [(summary,)] = world.rows("select summary from windows where id = :w", w=window)
    assert "Lisbon" in summary
    assert world.kept("Zorblax") == []


def derive_now(conn: Any, window: int, summary: str) -> None:
    """As the jobs of the window do when a hand asks for them while its erase is not done."""
    found = find_window(conn, window)
    assert found is not None
    write_slice_summary(conn, found, 0, summary, [])


def test_nothing_is_made_of_an_episode_while_a_message_of_it_is_erased(world: World) -> None:
    """The erase takes the episode's replies, so one that a hand has asked for meanwhile would be paid for twice."""
    world.say("chat", "my cat is called Zorblax and I adore it", "it rains in Lisbon every day")
    window = world.end("chat")
    stream = world.stream("chat")
    erasure = world.erase(EventTarget(stream=stream, seq=1))
    by_hand = Selection(
        project=world.project, stream=stream, subject=None, since=None, until=None, include_skipped=False, fresh=False,
        model=None,
    )  # fmt: skip

    world.store.write_now(reprocess_chunk, by_hand, None)

    assert world.store.read_now(read_slice, SliceArgs(window=window, slice=0), SETTINGS) is None
    assert world.store.read_now(fold_input, stream) == (None, 0, [])
    world.drain(seconds=600)
    found = world.store.read_now(find_erasure, erasure.id)
    assert found is not None
    assert found.done_at is not None
    assert world.store.read_now(fold_input, stream)[1] == 2
    [(summary,)] = world.rows("select summary from windows where id = :w", w=window)
    assert "Lisbon" in summary
