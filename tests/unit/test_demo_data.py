"""The bundled conversation and the evaluation sets are well formed and have in them what they are there to show."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, timedelta
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from everkept import demo
from everkept.capture.importers import ParsedImport, ParsedMessage, detect, parse_jsonl

SETS = sorted((Path(__file__).parents[1] / "data" / "recall").glob("*.json"))
CATEGORIES = {"single", "temporal", "multi", "name"}


@cache
def parsed() -> ParsedImport:
    with demo.conversation() as path:
        assert parse_jsonl is detect(path)
        return parse_jsonl(path)


def by_line() -> dict[int, ParsedMessage]:
    return {message.line: message for thread in parsed().threads for message in thread.messages}


def said() -> list[str]:
    """What Marta said, in the order of the file."""
    return [message.content for _, message in sorted(by_line().items()) if message.role == "user"]


def time_of(message: ParsedMessage) -> datetime:
    assert message.occurred_at is not None
    return message.occurred_at


# ---- the demo


def test_demo_has_no_unreadable_line() -> None:
    assert parsed().unreadable == []
    assert parsed().passed_by == {}
    assert 150 <= parsed().lines == len(by_line()) <= 220


def test_demo_is_one_subject_in_several_threads_over_weeks() -> None:
    assert {demo.SUBJECT} == {thread.subject for thread in parsed().threads}
    assert len(parsed().threads) >= 5
    times = [time_of(by_line()[line]) for line in sorted(by_line())]
    assert all(earlier < later for earlier, later in pairwise(times))
    assert timedelta(weeks=7) <= times[-1] - times[0] <= timedelta(weeks=9)
    sittings = 1 + sum(later - earlier > timedelta(minutes=30) for earlier, later in pairwise(times))
    assert 12 <= sittings <= 16


def test_demo_zone_changes_with_the_trip_and_the_move() -> None:
    offsets = [time_of(by_line()[line]).utcoffset() for line in sorted(by_line())]
    changes = [later for earlier, later in pairwise(offsets) if earlier != later]
    assert [timedelta(hours=1), timedelta(hours=2), timedelta(hours=1)] == [
        change for i, change in enumerate(changes) if i < 3
    ]


def test_demo_keys_are_distinct() -> None:
    assert parsed().lines == len({message.key for message in by_line().values()})


@pytest.mark.parametrize(
    "words",
    ["I live in Leipzig", "I moved to Porto", "I work as a nurse at", "I'm now working as", "I'm allergic to hazelnuts",
     "My sister Ana lives in Braga", "I sold my bike last Sunday", "My dog's name is Bolota", "No, I said Tuesday",
     "we cancelled the hike", "in two weeks", "I'm vegetarian", "I eat fish again", "ich trinke keinen Kaffee mehr",
     "I'm drinking coffee again", "Hoje falamos português", "meinem Vermieter"],
)  # fmt: skip
def test_demo_has_the_traits_it_is_there_to_show(words: str) -> None:
    assert sum(words in text for text in said()) == 1


def test_demo_allergy_matters_weeks_after_it_was_mentioned() -> None:
    times = [time_of(m) for m in by_line().values() if "hazelnuts" in m.content or "about nuts" in m.content]
    assert max(times) - min(times) > timedelta(weeks=6)


def test_demo_questions_point_at_messages() -> None:
    questions = demo.questions()
    assert len(questions) == 6
    for question in questions:
        assert question.text
        assert question.why
        assert question.evidence
        assert set(question.evidence) <= set(by_line())
    assert any(question.as_of is not None for question in questions)


def test_demo_question_about_the_past_was_answered_before_that_moment() -> None:
    for question in demo.questions():
        if question.as_of is not None:
            assert question.as_of.tzinfo is not None
            assert all(time_of(by_line()[line]) < question.as_of for line in question.evidence)


# ---- the evaluation sets


def load(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def test_evaluation_sets_are_those_five() -> None:
    assert [path.stem for path in SETS] == ["agent_coding", "chat_de", "chat_ja", "chat_pt", "support_chat"]
    assert [load(path)["language"] for path in SETS] == ["en", "de", "ja", "pt", "en"]


@pytest.mark.parametrize("path", SETS, ids=lambda path: path.stem)
def test_evaluation_set_is_well_formed(path: Path) -> None:
    loaded = load(path)
    assert path.stem == loaded["id"]
    dates = [datetime.fromisoformat(session["date"]) for session in loaded["sessions"]]
    assert all(date.tzinfo is not None for date in dates)
    assert sorted(dates) == dates
    ids = [turn["id"] for session in loaded["sessions"] for turn in session["turns"]]
    assert len(set(ids)) == len(ids)
    assert 60 <= len(ids) <= 90
    for session in loaded["sessions"]:
        for turn in session["turns"]:
            assert {"id", "speaker", "role", "text"} == set(turn)
            assert turn["role"] in ("user", "assistant", "tool")
            assert turn["text"].strip() == turn["text"] != ""


@pytest.mark.parametrize("path", SETS, ids=lambda path: path.stem)
def test_evaluation_questions_have_evidence_that_exists(path: Path) -> None:
    loaded = load(path)
    ids = {turn["id"] for session in loaded["sessions"] for turn in session["turns"]}
    questions = loaded["questions"]
    assert 24 == len(questions) == len({question["q"] for question in questions})
    assert set(CATEGORIES) == set(Counter(question["category"] for question in questions))
    for question in questions:
        assert question["evidence"]
        assert set(question["evidence"]) <= ids


@pytest.mark.parametrize("path", SETS, ids=lambda path: path.stem)
def test_evaluation_evidence_is_spread_over_the_sittings(path: Path) -> None:
    loaded = load(path)
    used = {turn.split(":")[0] for question in loaded["questions"] for turn in question["evidence"]}
    assert len(loaded["sessions"]) == len(used)


def test_agent_set_has_tools_and_support_set_has_three_speakers() -> None:
    speakers = {path.stem: {t["speaker"] for s in load(path)["sessions"] for t in s["turns"]} for path in SETS}
    roles = {path.stem: {t["role"] for s in load(path)["sessions"] for t in s["turns"]} for path in SETS}
    assert {"user", "assistant", "tool"} == roles["agent_coding"]
    assert len(speakers["support_chat"]) == 3
