"""A history has the same end on both databases: every row of every table, and what recall finds."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from tests.factories import HOUR_S, MINUTE_S, World, open_store, plain_reply
from tests.postgres import TestedDatabase

from everkept.domain.erase import EventTarget, StreamTarget, SubjectTarget
from everkept.domain.ids import ProjectId
from everkept.domain.scope import Scope
from everkept.errors import EverkeptError
from everkept.models.word_vectors import WordllamaVectors
from everkept.ports.clock import VirtualClock
from everkept.ports.models import Question
from everkept.recall.search import Query, Searcher
from everkept.store.erase import erase
from everkept.store.facts import retire_by_hand
from everkept.store.store import Store
from everkept.store.tables import metadata

PEOPLE = ("ana", "Ben", "ççé", "zoë", "Ωmega")
SAID = (
    "I live in {city} and I work as a nurse.", "My sister moved to {city} last spring.", "I have two cats and a dog.",
    "Actually I moved to {city} now.", "What is the weather like?", "Ça va bien à {city} — merci!",
    "I'm allergic to peanuts.", "My favourite colour is blue.", "We met in {city} in 2019; don't forget it.",
)  # fmt: skip
CITIES = ("Lisbon", "Porto", "Zürich", "東京", "São Paulo")
STEPS = 60
HAND = "a test"


def live(world: World, dice: random.Random) -> list[str]:
    """A random history, by the dice alone; what was answered at each step."""
    answers = []
    for n in range(STEPS):
        person = dice.choice(PEOPLE)
        thread = f"{person}-{dice.randrange(3)}"
        what = dice.randrange(100)
        text = dice.choice(SAID).format(city=dice.choice(CITIES))
        key = f"k{dice.randrange(n + 1)}" if dice.random() < 0.5 else None
        number, seconds = dice.randrange(1, 6), dice.choice([1, 30, 6 * MINUTE_S, HOUR_S])
        try:
            if what < 60:
                answers.append(str([a.seq for a in world.add(thread, text, f"{text} ({n})", subject=person, key=key)]))
            elif what < 70:
                answers.append(str(world.end(thread)))
            elif what < 90:
                answers.append(str(world.live(seconds, every=max(5.0, seconds / 12))))
            else:
                answers.append(str(by_hand(world, what, number)))
        except EverkeptError as error:
            answers.append(f"{error.code}: {error.message}")
    world.live(HOUR_S, every=MINUTE_S)
    return answers


def by_hand(world: World, what: int, number: int) -> object:
    project = world.project.id
    if what < 93:
        return world.write(erase, project, EventTarget(stream=number, seq=1)).kind
    if what < 95:
        return world.write(erase, project, StreamTarget(stream=number)).kind
    if what < 96:
        return world.write(erase, project, SubjectTarget(subject=number)).kind
    return world.write(retire_by_hand, project, number, HAND)


def rows(world: World) -> dict[str, list[tuple[Any, ...]]]:
    """Of every table, in an order of their own."""
    found = {}
    for table in metadata.sorted_tables:
        columns = ", ".join(f'"{column.name}"' for column in table.columns)
        kept = world.rows(f'select {columns} from "{table.name}"')
        plain = [tuple(map(_plain, row)) for row in kept]
        found[table.name] = sorted(plain, key=repr)
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, bytes | memoryview):
        return bytes(value)
    return int(value) if isinstance(value, bool) else value


def recalled(world: World, searcher: Searcher) -> list[tuple[str, int, float]]:
    found = []
    for asked in ("where does she live", "Lisbon", "allergic to nuts", "merci Zürich", "東京", "cats"):
        ranked = world.read(searcher.search, Scope(project=ProjectId(world.project.id)), Query(text=asked))
        found += [(asked, each.hit.id, round(each.score, 9)) for each in ranked.hits[:10]]
    return found


def reads(question: Question) -> dict[str, Any]:
    """A model that makes a fact of each city that somebody lives in, and answers every other question plainly."""
    if question.step != "facts":
        return plain_reply(question)
    inside = question.user.partition("<transcript>\n")[2].partition("\n</transcript>")[0]
    turns = [json.loads(line) for line in inside.splitlines()]
    return {
        "facts": [
            _fact(turn, city) for turn in turns for city in re.findall(r"I (?:live in|moved to) (\w+)", turn["text"])
        ]
    }


def _fact(turn: dict[str, Any], city: str) -> dict[str, Any]:
    return {
        "entity": turn["speaker"], "predicate": "lives in", "object": city, "quote": city, "seq": turn["seq"],
        "statement": f"{turn['speaker']} lives in {city}.", "confidence": 0.9, "valid_from": "", "valid_until": "",
        "change": "state", "replaces": "", "holds": "one", "kind": "entity", "object_type": "place",
    }  # fmt: skip


@pytest.mark.only_on("sqlite", reason="it has one of each, side by side")
@pytest.mark.parametrize("seed", range(3))
def test_a_history_ends_alike(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "everkept.db"
    clocks = VirtualClock(), VirtualClock()
    served = Store(TestedDatabase(), clock=clocks[1], threads=False)
    served.open()
    stores = open_store(path, clocks[0]), served
    words = WordllamaVectors()
    ends = []
    for store, clock in zip(stores, clocks, strict=True):
        world = World(store, tmp_path / "home", clock, script=reads)
        answers = live(world, random.Random(seed))
        ends.append((answers, rows(world), recalled(world, Searcher(words))))
        world.close()
        store.close()
    (answers, kept, found), (answers_there, kept_there, found_there) = ends
    assert answers == answers_there
    for table in kept:
        assert kept[table] == kept_there[table], table
    assert found == found_there
    assert kept["events"]
    assert [fact for fact in kept["facts"] if "lives in" in repr(fact)]
    assert found
