"""One prompt told twice is one, two prompts are two, and a call is found once, as it came out (G2, E2)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text
from tests.contract.test_sessions import Agents, call, prompt

from everkept.domain.erase import EventTarget
from everkept.domain.ids import ProjectId
from everkept.domain.scope import Scope
from everkept.domain.session import differ_by_cuts
from everkept.store import session_keys
from everkept.store.connection import Connection
from everkept.store.search import find_postings, shown_passages
from everkept.store.session_keys import MATCH_US, SAME_US


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Agents]:
    made = Agents(tmp_path / "memory.db")
    yield made
    made.store.close()


def found(world: Agents, word: str, until: int | None = None) -> list[str]:
    """What a search for the word may show."""

    def look(conn: Connection) -> list[str]:
        scope = Scope(project=ProjectId(world.project))
        ids = [int(i) for _, some in find_postings(conn, scope, word, ("turn",)) for i in some.split(",")]
        shown = shown_passages(conn, scope, ids, until)
        events = text("select e.content from passages p join events e on e.stream_id = p.stream_id and e.seq = p.seq"
                      " where p.id in (select value from numbers(:ids)) order by e.seq")  # fmt: skip
        return [content for (content,) in conn.rows(events, {"ids": json.dumps(sorted(shown))})]

    return world.store.read_now(look)


def said(world: Agents) -> list[str]:
    return [content for _, content in world.events("s1")]


def test_prompts_of_other_words_within_seconds_are_two(world: Agents) -> None:
    at = world.clock.now_us()
    world.told("s1", prompt("s1", "Fix the login test", source="hook", at=at))
    world.told("s1", prompt("s1", "Fix the docs test", id_="p2", at=at + 3_000_000))
    world.told("s1", prompt("s1", "Fix the login test", id_="p1", at=at + 1_000_000))
    assert said(world) == ["Fix the login test", "Fix the docs test"]


@pytest.mark.parametrize(
    ("hook", "transcript"),
    [
        ("Use [redacted:named] to log in", "Use hunter2-and-more to log in"),
        ("Read this: [… 90,000 characters cut …]\nand sum it up", "Read this: the whole long text\nand sum it up"),
        ("[redacted:named]\nis the key,  use it", "the-key is the key, use it"),
    ],
)
def test_a_prompt_that_was_redacted_or_cut_on_one_way_in_is_one(world: Agents, hook: str, transcript: str) -> None:
    at = world.clock.now_us()
    world.told("s1", prompt("s1", hook, source="hook", at=at))
    told = world.told("s1", prompt("s1", transcript, id_="p1", at=at + 3_000_000))
    assert (told.stored, told.revised) == (0, 1)
    assert world.told("s1", prompt("s1", hook, source="hook", at=at)).known == 1
    far = world.told("s1", prompt("s1", transcript, source="hook", at=at + MATCH_US * 2))
    assert far.stored == 1


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("go on", "go  on\n", True),
        ("go on", "go on with the docs", False),
        ("a [redacted:x] b [redacted:y] c", "a one b two c", True),
        ("a [redacted:x] b [redacted:y] c", "a one c two b", False),
        ("a [redacted:x] b [redacted:y] c", "a one b two c d", False),
        ("[redacted:x]", "anything at all", False),
        ("[redacted:x]", "[redacted:x]", False),
        ("aXa [redacted:x] aXa", "aXa", False),
    ],
)
def test_texts_differ_by_cuts_where_their_pieces_stand_in_order(one: str, other: str, *, alike: bool) -> None:
    assert differ_by_cuts(one, other) is alike
    assert differ_by_cuts(other, one) is alike


def test_the_words_of_an_erased_prompt_are_not_known_so_what_is_dated_like_it_stays_out(world: Agents) -> None:
    at = world.clock.now_us()
    world.told("s1", prompt("s1", "Use [redacted:named] now", source="hook", at=at), prompt("s1", "go", id_="p0", at=0))
    world.erased(EventTarget(stream=world.session("s1").stream, seq=1))
    assert world.told("s1", prompt("s1", "Use zorblax now", id_="p1", at=at + 1_000_000)).stored == 0


def test_the_nearest_of_many_prompts_of_the_same_words_is_the_one(world: Agents) -> None:
    at = world.clock.now_us()
    times = [at + n * 60_000_000 for n in range(150)]
    world.told("s1", *(prompt("s1", "go on", source="hook", id_=f"h{n}", at=t) for n, t in enumerate(times)))
    told = world.told("s1", *(prompt("s1", "go on", id_=f"t{n}", at=t + SAME_US) for n, t in enumerate(times)))
    assert (told.stored, told.known) == (0, 150)


def test_a_completed_call_is_found_once_with_its_outcome(world: Agents) -> None:
    world.told("s1", prompt("s1", "run it"), call("s1", "c1", "make zorblax", source="hook", ended=False))
    assert found(world, "zorblax") == ["$ make zorblax"]
    world.told("s1", call("s1", "c1", "make zorblax", outcome="ok", exit_code=0, output="zorblax built"))
    before = world.clock.now_us()
    world.clock.advance(1)
    world.told("s1", call("s1", "c1", "make zorblax", outcome="ok", exit_code=0, output="zorblax rebuilt"))
    assert found(world, "zorblax") == ["$ make zorblax\n→ ok (exit code 0)\nzorblax rebuilt"]
    assert found(world, "zorblax", until=before) == ["$ make zorblax\n→ ok (exit code 0)\nzorblax built"]


@pytest.mark.only_on("sqlite", reason="it asks SQLite for its plan; PostgreSQL's are guarded at their full size")
def test_what_a_prompt_may_be_matched_to_is_looked_up_by_indexes(world: Agents) -> None:
    def plan(conn: Connection) -> str:
        asked = {"stream": 1, "payload": "p", "at": 1, "bit": 1}
        return "\n".join(row[3] for row in conn.rows(text(f"explain query plan {session_keys._ALIKE}"), asked))

    told = world.store.read_now(plan)
    for index in ("ix_natural_keys_words (stream_id=? AND payload_hash=? AND prompt_at", "ix_natural_keys_stream"):
        assert index in told
    assert "SCAN natural_keys" not in told
    assert "SCAN k" not in told
