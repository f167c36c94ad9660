"""Records read without trust: lines, objects, fields and times, whatever is in their place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.capture.agents.mutated import read_bytes

from everkept.capture.agents import records
from everkept.capture.agents.building import ReadingBuilder, Taken, strongest
from everkept.capture.agents.codex import FORMAT
from everkept.capture.agents.records import as_json, lines_in, load, record_in, records_in, text_in, texts_in, time_us


@pytest.mark.parametrize(
    ("value", "us"),
    [
        (1_730_000_000, 1_730_000_000_000_000),
        (1_730_000_000.5, 1_730_000_000_500_000),
        (1_730_000_000_123, 1_730_000_000_123_000),
        (1_730_000_000_123_456, 1_730_000_000_123_456),
        (1_730_000_000_123_456_789, 1_730_000_000_123_456),
        ("1730000000123", 1_730_000_000_123_000),
        ("2024-10-27T03:33:20.5Z", 1_730_000_000_500_000),
        ("2024-10-27T05:33:20+02:00", 1_730_000_000_000_000),
        ("2024-10-27 03:33:20", 1_730_000_000_000_000),
    ],
)
def test_a_time_is_told_by_its_size_or_its_form(value: Any, us: int):
    assert time_us(value) == us


@pytest.mark.parametrize(
    "value",
    [None, True, 0, -5, 10**30, 1e300, float("nan"), "inf", "", "yesterday", "0001-01-01T00:00:00+14:00", [], {}],
)
def test_what_is_no_time_is_none(value: Any):
    assert time_us(value) is None


def test_lines_end_at_newlines_only_and_keep_their_numbers(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\xef\xbb\xbfone\r\n\ntw\xff\xe2\x80\xa8o\nthree")
    assert list(lines_in(path)) == [(1, "one"), (2, ""), (3, "tw\ufffd\u2028o"), (4, "three")]


def test_a_line_that_is_too_long_is_unreadable_and_the_next_one_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(records, "LINE_BYTES_MAX", 40)
    monkeypatch.setattr(records, "HEAD_BYTES", 10)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": "' + b"x" * 100 + b'"}\n{"b": 1}\n')
    builder = ReadingBuilder("any", path, "s")
    reading = builder.read(lines_in(path), lambda record: f"has {next(iter(record))}")
    assert (reading.lines, reading.adds_up, dict(reading.passed_by)) == (2, True, {"has b": 1})
    assert reading.unreadable == [(1, '{"a": "xxx')]


def test_characters_that_no_store_takes_are_replaced():
    assert load(r'{"a": "x\u0000y", "b": "\ud800", "c": "\ud83d\ude00", "d": "\\u0000"}') == {
        "a": "x\ufffdy", "b": "?", "c": "😀", "d": r"\u0000",
    }  # fmt: skip


@pytest.mark.parametrize("raw", ["", "nothing", "[1]", "3", '{"a": ', '"text"', "1" * 5_000])
def test_what_is_no_object_is_none(raw: str):
    assert load(raw) is None


def test_fields_of_other_types_are_as_if_they_were_missing():
    record = {"a": 3, "b": " ", "c": "x", "d": ["y", 1, ""], "e": [{"f": 1}, 2], "g": {"h": 1}}
    assert text_in(record, "a", "b", "c") == "x"
    assert texts_in(record, "c", "d") == ("y",)
    assert records_in(record, "c", "e") == [{"f": 1}]
    assert record_in(record, "c", "g") == {"h": 1}
    assert (text_in(record, "z"), record_in(record, "z"), records_in(record, "z"), texts_in(record, "z")) == (
        "",
        {},
        [],
        (),
    )
    assert (as_json({"a": 1}), as_json("x"), as_json({}), as_json(None)) == ('{"a": 1}', "x", "", "")


def test_a_line_that_tells_several_things_counts_once_by_the_strongest():
    assert strongest("why", Taken.MERGED, Taken.USED) is Taken.USED
    assert strongest("why", Taken.MERGED) is Taken.MERGED
    assert strongest("why", "other") == "why"


def test_short_ids_are_unique_in_their_session_only():
    builder = ReadingBuilder("any", Path(), "ses_1")
    assert builder.native("m1") == "ses_1:m1"
    assert builder.native("toolu_01A2b3C4d5E6f7G8h9J0kL") == "toolu_01A2b3C4d5E6f7G8h9J0kL"
    assert builder.native("") == ""
    odd = builder.native("[with spaces] " * 40)
    assert odd.isascii()
    assert len(odd) < 40


def test_a_call_and_a_message_with_one_id_are_two_events():
    builder = ReadingBuilder("any", Path(), "s")
    builder.add("said", "hello", native="m1")
    draft, taken = builder.call("m1")
    draft.ask("bash", command="ls")
    assert (taken, builder.call("m1")) == (Taken.USED, (draft, Taken.MERGED))
    assert [(e.kind, e.text) for e in builder.finish().events] == [("said", "hello"), ("tool", "")]


def test_of_two_verdicts_the_surer_one_stands_in_any_order():
    for order in ((4, 5), (5, 4)):
        draft, _ = ReadingBuilder("any", Path(), "s").call("c1")
        for sureness in order:
            draft.decide(sureness, "ok" if sureness == 4 else "failed", f"rule {sureness}")
        call = draft.finished().tool
        assert call is not None
        assert (call.outcome, call.decided_by) == ("failed", "rule 5")


def test_a_long_text_keeps_a_margin_beyond_the_final_cut():
    secret = "sk-" + "a" * 40
    text = "x" * (16_384 - 20) + secret + "y" * 60_000
    record = '{"type": "event_msg", "payload": {"type": "agent_message", "message": "' + text + '"}}'
    (said,) = read_bytes(FORMAT, record.encode()).events
    assert secret in said.text
    assert len(said.text) < 50_000


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_file_in_utf_16_is_read_by_its_mark(tmp_path: Path, encoding: str) -> None:
    text = '\ufeff{"a": "Ċ und ö"}\r\n{"b": 2}\n'  # U+010A has the byte of a line end in it
    path = tmp_path / "wide.jsonl"
    path.write_bytes(text.encode(encoding))

    assert [line.raw for line in lines_in(path)] == ['{"a": "Ċ und ö"}', '{"b": 2}']
    assert records.first_records(path, 1) == [{"a": "Ċ und ö"}]
