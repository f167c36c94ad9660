"""A session that goes on after it was erased: what it did since is kept, and what was erased stays out (G2, G10)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.test_sessions import Agents, prompt

from everkept.domain.erase import StreamTarget


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Agents]:
    made = Agents(tmp_path / "memory.db")
    yield made
    made.store.close()


def erased_session(world: Agents, *, words: str) -> int:
    """Erases a session of one prompt that a hook told; when it was said."""
    world.clock.advance(60)
    at = world.clock.now_us()
    world.told("s1", prompt("s1", words, source="hook", at=at))
    world.clock.advance(60)
    world.erased(StreamTarget(stream=world.session("s1").stream))
    world.clock.advance(60)
    return at


def test_what_a_session_did_after_it_was_erased_is_kept(world: Agents) -> None:
    erased_session(world, words="The safe opens with 4711")

    told = world.told("s1", prompt("s1", "Paint the boat", source="hook", at=world.clock.now_us()))

    assert (told.stored, told.erased) == (1, 0)
    assert world.events("s1") == [("user", "Paint the boat")]


def test_the_transcript_of_an_erased_session_brings_only_what_is_new(world: Agents) -> None:
    before = erased_session(world, words="The safe opens with 4711")
    grown = (
        prompt("s1", "The safe opens with 4711", id_="uuid-1", at=before),
        prompt("s1", "Paint the boat", id_="uuid-2", at=world.clock.now_us()),
    )

    told = world.told("s1", *grown)
    again = world.told("s1", *grown)

    assert (told.stored, told.erased) == (1, 1)
    assert (again.stored, again.known, again.erased) == (0, 1, 1)
    assert world.events("s1") == [("user", "Paint the boat")]


def test_a_session_that_is_erased_again_keeps_nothing_of_either_time(world: Agents) -> None:
    first = erased_session(world, words="The safe opens with 4711")
    second = erased_session(world, words="It is a Bosch safe")

    told = world.told(
        "s1",
        prompt("s1", "The safe opens with 4711", id_="uuid-1", at=first),
        prompt("s1", "It is a Bosch safe", id_="uuid-2", at=second),
        prompt("s1", "Paint the boat", id_="uuid-3", at=world.clock.now_us()),
    )

    assert (told.stored, told.erased) == (1, 2)
    assert world.events("s1") == [("user", "Paint the boat")]


def test_what_nobody_dated_of_an_erased_session_stays_out(world: Agents) -> None:
    erased_session(world, words="The safe opens with 4711")

    told = world.told("s1", prompt("s1", "The safe opens with 4711", id_="uuid-1"))

    assert (told.stored, told.stream, told.erased) == (0, None, 1)
