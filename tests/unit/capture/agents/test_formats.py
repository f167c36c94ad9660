"""Every format, on every genuine file: each line is accounted for, whole, cut, shuffled, doubled or spoilt."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everkept.capture.agents import formats
from everkept.capture.agents.markers import MARKERS, heard
from everkept.capture.agents.reading import Reading
from everkept.errors import InvalidInput

DATA = Path(__file__).parents[3] / "data" / "transcripts"
GENUINE = sorted(path for path in DATA.glob("*/*.jsonl"))
CUTS = 40
"""Places where each genuine file is cut, beside those that hypothesis chooses."""


def agent_of(path: Path) -> str:
    form = formats.recognise(path)
    assert form is not None, f"nobody reads {path.name}"
    return form.agent


AGENTS = {path: agent_of(path) for path in GENUINE}
LINES = [(agent, line) for path, agent in AGENTS.items() for line in path.read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file to write spoilt transcripts to."""
    return tmp_path_factory.mktemp("spoilt") / "session.jsonl"


def read(path: Path, content: bytes, agent: str) -> Reading:
    path.write_bytes(content)
    reading = formats.read(path, agent)
    assert reading.adds_up
    assert reading.lines == len(content.splitlines(keepends=True)) or b"\r" in content or b"\x0b" in content
    return reading


def what_of(reading: Reading) -> Counter[tuple[str, str]]:
    return Counter((event.key, event.kind) for event in reading.events)


@pytest.mark.parametrize("path", GENUINE, ids=lambda path: path.stem)
def test_every_line_of_a_genuine_file_is_accounted_for(path):
    reading = formats.read(path)
    assert reading.adds_up
    assert reading.lines == len(path.read_bytes().splitlines())
    assert reading.unreadable == []
    assert reading.events
    assert len(what_of(reading)) == len(reading.events) >= reading.used
    assert all(
        event.agent == AGENTS[path] and event.session and event.source == "transcript" for event in reading.events
    )


@pytest.mark.parametrize("path", GENUINE, ids=lambda path: path.stem)
def test_only_one_format_takes_a_file_for_its_own(path):
    assert [agent for agent, form in formats.FORMATS.items() if form.recognise(path)] == [AGENTS[path]]


@pytest.mark.parametrize("path", GENUINE, ids=lambda path: path.stem)
def test_a_file_cut_anywhere_is_accounted_for(path, spoilt):
    content = path.read_bytes()
    whole = what_of(formats.read(path))
    for cut in range(1, len(content), max(1, len(content) // CUTS)):
        reading = read(spoilt, content[:cut], AGENTS[path])
        assert len(reading.unreadable) <= 1
        assert len(reading.events) <= whole.total()


@pytest.mark.parametrize("path", GENUINE, ids=lambda path: path.stem)
def test_a_file_shuffled_and_doubled_is_accounted_for(path, spoilt):
    lines = [line + b"\n" for line in path.read_bytes().splitlines()]
    chance = random.Random(7)
    for _ in range(3):
        doubled = lines + chance.choices(lines, k=len(lines) // 2)
        chance.shuffle(doubled)
        read(spoilt, b"".join(doubled), AGENTS[path])


@pytest.mark.parametrize(
    "path", [path for path in GENUINE if AGENTS[path] == "claude-code"], ids=lambda path: path.stem
)
def test_the_order_of_lines_does_not_change_what_is_told(path, spoilt):
    """Of Claude Code, whose lines have ids; some lines of a fixture whose ids were trimmed share one."""
    lines = [line for line in path.read_bytes().splitlines() if b"[trimmed" not in line]
    told = what_of(read(spoilt, b"\n".join(lines) + b"\n", "claude-code"))
    assert told == what_of(read(spoilt, b"\n".join([*lines[::-1], *lines]) + b"\n", "claude-code"))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_cut_in_the_middle_of_a_character_is_accounted_for(spoilt, data):
    agent, line = data.draw(st.sampled_from(LINES))
    content = json.dumps({**json.loads(line), "extra": "später 😀 終わり"}, ensure_ascii=False).encode()
    tail = content.rindex("später".encode())
    read(spoilt, content[: data.draw(st.integers(tail, len(content)))], agent)


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


def places_in(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value inside a line."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [way, *(place for name, item in inner for place in places_in(item, (*way, name)))]


def changed(value: Any, way: tuple[Any, ...], odd: Any) -> Any:
    if not way:
        return odd
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[way[0]] = changed(copy[way[0]], way[1:], odd)
    return copy


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_spoilt_line_is_never_an_error(spoilt, data):
    agent, line = data.draw(st.sampled_from(LINES))
    value = json.loads(line)
    for _ in range(data.draw(st.integers(1, 3))):
        value = changed(value, data.draw(st.sampled_from(places_in(value))), data.draw(ODD))
    content = (line + "\n" + json.dumps(value) + "\n" + json.dumps(value) + "\n").encode()
    for event in read(spoilt, content, agent).events:
        json.dumps([event.text, event.detail, dict(event.extra)], ensure_ascii=False).encode()


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_spoilt_bytes_are_never_an_error(spoilt, data):
    agent, line = data.draw(st.sampled_from([(agent, line) for agent, line in LINES if len(line) < 4_000]))
    content = bytearray(f"{line}\n".encode())
    for at in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=4)):
        content[at] = data.draw(st.integers(0, 255))
    read(spoilt, bytes(content), agent)


@settings(max_examples=100, deadline=None)
@given(content=st.binary(max_size=200), agent=st.sampled_from(sorted(formats.FORMATS.keys() - {"opencode"})))
def test_rubbish_is_never_an_error(spoilt, content, agent):
    read(spoilt, content, agent)


def test_a_file_of_nobody_is_an_error_that_says_what_is_expected(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("hello\n")
    with pytest.raises(InvalidInput, match="expected one of claude-code, codex"):
        formats.read(path)
    with pytest.raises(InvalidInput, match="not a transcript of nobody"):
        formats.read(path, "nobody")
    with pytest.raises(FileNotFoundError):
        formats.read(tmp_path / "missing.jsonl")


@pytest.mark.parametrize("agent", list(MARKERS))
def test_each_marker_makes_a_text_not_genuine_and_plain_words_stay_as_they_are(agent):
    markers = MARKERS[agent]
    starts = [heard(agent, f"{start} and more") for start in markers.starts]
    blocks = [heard(agent, f"<{tag}>\nwords\n</{tag}>\n") for tag in markers.tags]
    assert [told.reason for told in starts] == [marker.reason for marker in markers.starts.values()]
    assert [told.reason for told in blocks] == [marker.reason for marker in markers.tags.values()]
    around = [heard(agent, f"<{tag}>\nwords\n</{tag}>\n\nfix it") for tag in markers.tags]
    assert all((told.text, told.reason, told.evidence) == ("fix it", "", True) for told in around)
    assert heard(agent, "use <b>bold</b>, please") == ("use <b>bold</b>, please", "", True)
