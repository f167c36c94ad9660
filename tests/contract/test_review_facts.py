"""What a review of deriving, settling and erasing found, each as the behaviour that was missing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sqlalchemy import text
from tests.contract.test_erase import SETTINGS, World

from everkept.derive.embed_passages import _embed_what_is_taken
from everkept.derive.summarise_episode import write_summary
from everkept.derive.tools import SliceArgs, read_slice, window_turns
from everkept.domain.erase import EventTarget, ProjectTarget, StreamTarget, SubjectTarget
from everkept.domain.facts import FactDraft
from everkept.domain.jobs import Done, Snooze
from everkept.domain.passage import analyse
from everkept.errors import Permanent
from everkept.ports.journal import Recipe
from everkept.store.embeddings import INPUT_CHARS_MAX, around_input, own_input
from everkept.store.erase import CLEANINGS_MAX, find_erasure, finish_erase, note_cleaned
from everkept.store.facts import FactsOf, NewFact, known_entities, list_entities, retire_by_hand, write_facts
from everkept.store.journal import begin_ask, kept_replies
from everkept.store.sqlite_cleaning import HELD, TOO_LARGE
from everkept.store.windows import get_window


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "memory.db")
    yield made
    made.store.close()


def run(world: World, sql: str, **params: Any) -> None:
    world.store.write_now(lambda conn: conn.run(text(sql), params))


def say_of(world: World, stream: int, seq: int, value: str, *, object_is: str | None = None) -> int:
    """A statement whose object is an entity; the fact's number."""
    draft = FactDraft(
        entity="ann", predicate="works at", object=value, text=f"ann works at {value}", quote=value, confidence=0.9,
        kind="entity", object_type="organisation", seqs=(seq,),
    )  # fmt: skip
    new = NewFact(
        draft=draft, said_at=world.clock.now_us() + seq, zone_min=None, stream=stream, analysed=analyse(draft.text),
        object_is=object_is,
    )  # fmt: skip
    of = FactsOf(
        project=world.project, subject=world.subject(), window=None, slice=0, revision=None, key=f"{stream}.{seq}"
    )
    return int(world.store.write_now(write_facts, of, [new], "[]")[0])


# ---- windows and slices


def test_a_window_of_more_than_a_thousand_messages_is_read_whole(world: World) -> None:
    for start in range(0, 1200, 100):
        world.say("chat", *(f"line {n}" for n in range(start, start + 100)))
    run(world, """insert into windows(project_id, subject_id, stream_id, start_seq, end_seq, opened_at, opened_because)
select project_id, subject_id, id, 1, 1200, 0, 'test' from streams""")  # fmt: skip
    [(window,)] = world.rows("select max(id) from windows where end_seq = 1200")
    turns = world.store.read_now(lambda conn: window_turns(conn, get_window(conn, window)))
    assert (len(turns), turns[-1].seq) == (1200, 1200)


def test_a_slice_is_cut_with_the_settings_of_its_thread(world: World) -> None:
    world.say("chat", "I live in Lisbon")
    window = world.end("chat")
    run(world, "update streams set settings = :s", s=json.dumps({"recall.facts_max": 3}))
    found = world.store.read_now(read_slice, SliceArgs(window=window), SETTINGS)
    assert found is not None
    assert found.settings.recall.facts_max == 3


def test_learnings_of_every_slice_are_searchable_whichever_ended_last(world: World) -> None:
    world.say("chat", "I live in Lisbon")
    window = world.end("chat")
    run(world, "update windows set slices = 2, summary_at = null")
    run(world, "update slices set summary_at = null")
    run(world, "insert into slices(window_id, slice) values(:w, 1)", w=window)
    row = world.store.read_now(get_window, window)
    world.store.write_now(write_summary, row, 1, "the second part", ["Qwertzuiop matters"], 1)
    world.store.write_now(write_summary, row, 0, "the first part", ["nothing"], 1)
    assert "episode" in world.found("qwertzuiop")


# ---- facts


def test_forgetting_and_bringing_back_leaves_what_was_known_when(world: World) -> None:
    world.say("chat", "I live in Lisbon", "I live in Porto")
    stream = world.stream("chat")
    old = world.fact(stream, 1, "lives in", "Lisbon")
    world.clock.advance(60)
    new = world.fact(stream, 2, "lives in", "Porto")
    known = "select id, closed_by, closed_known_at from facts where closed_by is not null"
    before = world.rows(known)
    assert before[0][:2] == (old, new)
    for fact in (old, new):
        world.clock.advance(3600)
        world.store.write_now(retire_by_hand, world.project, fact, "wrong")
        world.store.write_now(retire_by_hand, world.project, fact, None)
        assert world.rows(known) == before


def test_what_is_said_in_other_words_counts_as_the_same_thing_and_keeps_its_words(world: World) -> None:
    world.say("one", "I work at Zorblax Hospital")
    world.say("two", "I work at the hospital")
    first = say_of(world, world.stream("one"), 1, "Zorblax Hospital")
    second = say_of(world, world.stream("two"), 1, "City Hospital", object_is="Zorblax Hospital")
    assert world.rows("select object, duplicate_of from facts order by id") == [
        ("Zorblax Hospital", None), ("City Hospital", first)
    ]  # fmt: skip
    world.erased(StreamTarget(stream=world.stream("one")))
    assert world.rows("select id, object, duplicate_of, live from facts") == [(second, "City Hospital", None, 1)]
    assert world.rows("select name from entities where type = 'organisation'") == [("City Hospital",)]
    assert world.kept("Zorblax") == []


# ---- embedding


class Picky:
    """Refuses batches that hold a word, or everything."""

    name, dim, pool = "picky", 2, "local"

    def __init__(self, refused: str) -> None:
        self.refused = refused

    async def embed_passages(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        if any(self.refused in text for text in texts):
            raise Permanent("400")
        return np.ones((len(texts), 2), np.float32)

    async def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        return (await self.embed_passages([text]))[0]


def test_a_text_that_the_embedder_refuses_costs_only_its_own_vector() -> None:
    found = asyncio.run(_embed_what_is_taken(Picky("bad"), ["a", "b", "bad", "c", "d"], 5, (Permanent,)))
    assert set(found) == {"a", "b", "c", "d"}


def test_an_embedder_that_refuses_everything_is_not_blamed_on_the_texts() -> None:
    with pytest.raises(Permanent):
        asyncio.run(_embed_what_is_taken(Picky(""), ["a", "b"], 5, (Permanent,)))


def test_an_embedder_is_given_a_bounded_text() -> None:
    assert len(own_input("x" * 1_000_000)) == INPUT_CHARS_MAX
    assert around_input("Ann: hi", "Bob: hello") == "Ann: hi\nBob: hello"
    assert len(around_input("x" * 1_000_000, "y" * 1_000_000)) == INPUT_CHARS_MAX + 1


def test_a_dead_embedding_job_starts_again_with_the_next_message(world: World) -> None:
    world.say("chat", "one")
    run(world, "update jobs set state = 'dead' where kind = 'embed_passages'")
    world.say("chat", "two")
    assert world.rows("select state from jobs where kind = 'embed_passages'") == [("waiting",)]


# ---- the journal


def test_a_question_sent_again_is_erased_with_what_either_sending_showed(world: World) -> None:
    world.say("chat", "I live in Lisbon", "I work at Qwertzuiop")
    stream = world.stream("chat")
    facts = [world.fact(stream, 1, "lives in", "Lisbon"), world.fact(stream, 2, "works at", "Qwertzuiop")]
    address = world.address("window:99.0")
    world.store.write_now(begin_ask, address, 1, b"1", Recipe(shown={"stream": 9, "first": 3, "facts": facts[:1]}))
    world.reply("window:99.0", "yes", shown={"stream": 9, "first": 4, "facts": facts[1:]})
    [(recipe, request)] = world.rows("select recipe, request_hash from replies")
    assert json.loads(recipe) == {"stream": 9, "first": 3, "facts": facts}
    assert bytes(request) == b"h"
    world.erased(EventTarget(stream=stream, seq=1))
    assert world.store.read_now(kept_replies, address) == []


def test_a_reply_that_was_shown_an_erased_name_goes_with_it(world: World) -> None:
    world.say("one", "I work at Zorblax")
    world.say("two", "I live in Lisbon")
    say_of(world, world.stream("one"), 1, "Zorblax")
    [known] = [e for e in world.store.read_now(known_entities, world.subject(), 9) if e.name == "Zorblax"]
    seen = world.reply("window:99.0", "Zorblax?", shown={"stream": 99, "facts": [], "entities": [known.id]})
    other = world.reply("window:98.0", "Lisbon", shown={"stream": 98, "facts": [], "entities": []})
    world.erased(StreamTarget(stream=world.stream("one")))
    assert [len(world.store.read_now(kept_replies, a)) for a in (seen, other)] == [0, 1]


# ---- erasing


def test_entities_are_hidden_before_any_job_has_run(world: World) -> None:
    def names() -> set[str]:
        return {row[1] for row in world.store.read_now(list_entities, world.project, None, None, 50)}

    world.say("one", "I work at Zorblax")
    world.say("two", "I work at Frobnitz")
    say_of(world, world.stream("one"), 1, "Zorblax")
    say_of(world, world.stream("two"), 1, "Frobnitz")
    assert names() == {"ann", "Zorblax", "Frobnitz"}
    world.erase(StreamTarget(stream=world.stream("one")))
    assert names() == {"ann", "Frobnitz"}
    world.erase(SubjectTarget(subject=world.subject()))
    assert names() == set()


def test_an_event_and_then_its_subject_are_both_erased(world: World) -> None:
    world.say("chat", "I live in Lisbon", "and it rains")
    world.end("chat")
    event, subject = EventTarget(stream=world.stream("chat"), seq=1), SubjectTarget(subject=world.subject())
    first, second = world.erase(event), world.erase(subject)
    world.drain()
    for erasure in (first, second):
        found = world.store.read_now(find_erasure, erasure.id)
        assert found is not None
        assert found.done_at is not None
    assert world.residue(subject) == 0


def test_a_subjects_judge_goes_with_it(world: World) -> None:
    world.say("chat", "I live in Lisbon")
    run(world, """insert into jobs(project_id, kind, key, lane_id, uses, args, state, due_at, created_at, error)
select project_id, 'judge_conflicts', :key, lane_id, 'model', '{}', 'dead', 0, 0, 'Zorblax' from jobs limit 1""",
        key=str(world.subject()))  # fmt: skip
    subject = SubjectTarget(subject=world.subject())
    assert world.residue(subject) > 0
    world.erased(subject)
    assert world.residue(subject) == 0
    assert world.rows("select 1 from jobs where kind = 'judge_conflicts'") == []


def test_an_erased_project_leaves_no_consumers_replies_or_jobs(world: World) -> None:
    world.say("chat", "I live in Lisbon")
    world.say("talk", "I live in Porto", subject="bob")
    world.end("chat")
    world.reply("window:1.0", "yes")
    run(world, "insert into consumers(project_id, name, created_at) values(:p, 'Zorblax', 0)", p=world.project)
    done = world.erased(ProjectTarget())
    assert (done.residue, world.residue(ProjectTarget())) == (0, 0)
    for table in ("consumers", "replies"):
        assert world.rows(f"select 1 from {table}") == []
    assert world.rows("select kind from jobs") == [("erase_scope",)]


def test_a_file_that_cannot_be_cleaned_ends_the_erase_with_its_reason(world: World) -> None:
    world.say("chat", "I live in Lisbon")
    erasure = world.erase(EventTarget(stream=world.stream("chat"), seq=1))
    for _ in range(CLEANINGS_MAX - 1):
        assert isinstance(world.store.write_now(finish_erase, erasure.id, 0, [HELD]), Snooze)
    assert world.store.write_now(finish_erase, erasure.id, 0, [HELD]) == Done()
    found = world.store.read_now(find_erasure, erasure.id)
    assert found is not None
    assert (found.residue, found.unclean) == (0, HELD)
    world.store.write_now(note_cleaned, [""])
    assert world.rows("select unclean from erasures") == [(None,)]


def test_a_file_too_large_to_rewrite_is_said_at_once(world: World) -> None:
    world.say("chat", "I live in Lisbon")
    erasure = world.erase(EventTarget(stream=world.stream("chat"), seq=1))
    world.store.write_now(finish_erase, erasure.id, 0, [TOO_LARGE])
    assert world.rows("select unclean, done_at is not null from erasures") == [(TOO_LARGE, 1)]
