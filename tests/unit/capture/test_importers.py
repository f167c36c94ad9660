"""Importers: every entry of a file is a message, passed by with a reason, or unreadable with its place and reason."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everkept.capture.importers import (
    ParsedImport,
    ParsedMessage,
    Tally,
    detect,
    jsonl,
    parse_jsonl,
    parse_locomo,
    read_jsonl,
)
from everkept.capture.importers.fields import CONTENT_MAX_BYTES, read_time
from everkept.errors import InvalidInput

HELLO = {"role": "user", "content": "hello", "thread": "t1", "occurred_at": "2026-05-01T10:00:00+02:00"}


def write(folder: Path, *lines: Any, name: str = "chat.jsonl", end: str = "\n") -> Path:
    """A file of the given lines: objects as JSON, text and bytes as they are."""
    path = folder / name
    raw = [line if isinstance(line, bytes) else _text(line).encode("utf-8") for line in lines]
    path.write_bytes(end.encode().join([*raw, b""]))
    return path


def _text(line: Any) -> str:
    return line if isinstance(line, str) else json.dumps(line)


def messages_of(parsed: ParsedImport) -> list[ParsedMessage]:
    return [message for thread in parsed.threads for message in thread.messages]


def keys_of(parsed: ParsedImport) -> list[str]:
    return [message.key for message in messages_of(parsed)]


def assert_accounted(parsed: ParsedImport) -> None:
    assert parsed.lines == len(messages_of(parsed)) + sum(parsed.passed_by.values()) + len(parsed.unreadable)


def parse_one(folder: Path, **fields: Any) -> ParsedMessage:
    parsed = parse_jsonl(write(folder, {"role": "user", "content": "hello", **fields}))
    assert parsed.unreadable == []
    [message] = messages_of(parsed)
    return message


def refusal_of(folder: Path, line: Any) -> str:
    parsed = parse_jsonl(write(folder, line))
    assert messages_of(parsed) == []
    assert_accounted(parsed)
    [reason] = parsed.unreadable
    return reason


# ---- JSONL: names and values


@pytest.mark.parametrize(
    ("word", "role"),
    [("user", "user"), ("Human", "user"), ("AI", "assistant"), ("bot", "assistant"), ("model", "assistant"),
     ("function", "tool"), ("tool", "tool"), ("developer", "system")],
)  # fmt: skip
def test_role_synonyms_are_mapped(tmp_path: Path, word: str, role: str) -> None:
    assert role == parse_one(tmp_path, role=word).role


@pytest.mark.parametrize("field", ["role", "author", "speaker", "from", "sender"])
def test_role_is_found_under_common_names(tmp_path: Path, field: str) -> None:
    parsed = parse_jsonl(write(tmp_path, {field: "assistant", "content": "hi"}))
    assert [message.role for message in messages_of(parsed)] == ["assistant"]


def test_speaker_beside_a_role_is_the_name(tmp_path: Path) -> None:
    assert parse_one(tmp_path, speaker="Marta").name == "Marta"
    assert parse_one(tmp_path, role="user", name="Marta", author="u-17").name == "Marta"
    assert parse_one(tmp_path, author={"role": "assistant", "name": "Kit"}).name == "Kit"


def test_unknown_role_is_unreadable_with_the_word(tmp_path: Path) -> None:
    assert "line 1: unknown role 'narrator'" in refusal_of(tmp_path, {"role": "narrator", "content": "x"})
    assert refusal_of(tmp_path, {"from": "Marta", "content": "x"}) == "line 1: unknown role 'Marta'"
    assert refusal_of(tmp_path, {"content": "x"}) == "line 1: no role"


@pytest.mark.parametrize(
    "content",
    ["a\nb", ["a", "b"], [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], {"parts": ["a", "b"]}],
)
def test_content_may_be_text_or_parts(tmp_path: Path, content: Any) -> None:
    assert parse_one(tmp_path, content=content).content == "a\nb"


def test_parts_that_are_not_text_are_named_in_the_metadata(tmp_path: Path) -> None:
    content = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "x"}}]
    message = parse_one(tmp_path, content=content, metadata={"mood": "good"}, agent_id="a1")
    assert message.metadata == {"mood": "good", "agent_id": "a1", "parts_left_out": {"image_url": 1}}


@pytest.mark.parametrize("field", ["content", "text", "message", "body"])
def test_text_is_found_under_common_names(tmp_path: Path, field: str) -> None:
    parsed = parse_jsonl(write(tmp_path, {"role": "user", field: "hi"}))
    assert [message.content for message in messages_of(parsed)] == ["hi"]


def test_wrapped_messages_are_unwrapped(tmp_path: Path) -> None:
    line = {"type": "user", "sessionId": "s1", "message": {"role": "user", "content": "hi"}}
    parsed = parse_jsonl(write(tmp_path, line, {"type": "ai", "data": {"content": "there"}, "session_id": "s1"}))
    assert [(thread.id, thread.subject) for thread in parsed.threads] == [("s1", "me")]
    assert [(m.role, m.content) for m in messages_of(parsed)] == [("user", "hi"), ("assistant", "there")]


@pytest.mark.parametrize(
    "written",
    ["2026-05-01T10:00:00Z", "2026-05-01T12:00:00+02:00", 1777629600, 1777629600.0, "1777629600", 1777629600000,
     "1777629600.000", 1777629600000000, 1777629600000000000],
)  # fmt: skip
def test_times_are_read_in_every_common_form(tmp_path: Path, written: Any) -> None:
    assert datetime(2026, 5, 1, 10, tzinfo=UTC) == parse_one(tmp_path, timestamp=written).occurred_at


def test_offset_of_the_sender_is_kept(tmp_path: Path) -> None:
    said = parse_one(tmp_path, created_at="2026-05-01T12:00:00+02:00").occurred_at
    assert said is not None
    assert said.utcoffset() == timedelta(hours=2)


def test_naive_time_gets_the_zone_given(tmp_path: Path) -> None:
    path = write(tmp_path, {**HELLO, "occurred_at": "2026-05-01T12:00:00"})
    [as_utc] = messages_of(parse_jsonl(path))
    [as_berlin] = messages_of(parse_jsonl(path, zone=ZoneInfo("Europe/Berlin")))
    assert datetime(2026, 5, 1, 12, tzinfo=UTC) == as_utc.occurred_at
    assert datetime(2026, 5, 1, 10, tzinfo=UTC) == as_berlin.occurred_at


@pytest.mark.parametrize("written", ["yesterday", "2026-13-01", -5, 1e300, True, {"s": 1}, "0001-01-01T00:00:00+14:00"])
def test_bad_time_is_unreadable_not_now(tmp_path: Path, written: Any) -> None:
    assert "cannot read the time" in refusal_of(tmp_path, {**HELLO, "occurred_at": written})


def test_short_digits_are_a_date_not_seconds() -> None:
    assert read_time("20260501") == datetime.fromisoformat("2026-05-01T00:00")


def test_subject_comes_from_the_thread_when_a_line_names_none(tmp_path: Path) -> None:
    unnamed = {"role": "ai", "text": "hi", "chat_id": 7}
    path = write(tmp_path, unnamed, {**unnamed, "role": "human", "userId": "marta"})
    parsed = parse_jsonl(path, default_subject="nobody")
    assert [(t.id, t.subject, len(t.messages)) for t in parsed.threads] == [("7", "marta", 2)]


def test_thread_of_two_subjects_is_refused_not_mixed(tmp_path: Path) -> None:
    path = write(tmp_path, {**HELLO, "user_id": "marta"}, {**HELLO, "user_id": "jonas"})
    parsed = parse_jsonl(path)
    assert parsed.unreadable == ["line 2: thread 't1' belongs to subject 'marta', not 'jonas'"]


def test_message_without_a_thread_belongs_to_the_file(tmp_path: Path) -> None:
    parsed = parse_jsonl(write(tmp_path, {"role": "user", "content": "x"}, name="spring.jsonl"))
    assert [thread.id for thread in parsed.threads] == ["spring"]


def test_recalled_context_is_no_evidence(tmp_path: Path) -> None:
    assert parse_one(tmp_path).evidence
    assert not parse_one(tmp_path, evidence=False).evidence


# ---- JSONL: lines


def test_bad_lines_are_counted_and_the_others_are_read(tmp_path: Path) -> None:
    path = write(
        tmp_path, HELLO, "", '{"role": "user", "content": ', "[1]", "17", b'{"role": "user", "content": "\xff"}',
        {"type": "session_meta", "cwd": "/x"}, {"role": "assistant", "content": None, "tool_calls": [{}]},
        {"role": "user", "content": {"type": "image"}}, {"role": "user", "content": 5}, {**HELLO, "content": "last"},
    )  # fmt: skip
    parsed = parse_jsonl(path)
    assert [message.content for message in messages_of(parsed)] == ["hello", "last"]
    assert parsed.passed_by == {"blank line": 1, "type 'session_meta'": 1, "message without text": 2}
    assert parsed.unreadable == [
        "line 3: not JSON: Expecting value at column 29",
        "line 4, message 1: a message must be an object, not int",
        "line 5: a message must be an object, not int",
        "line 6: not UTF-8 at byte 30",
        "line 10: content must be text or parts, not int",
    ]
    assert [message.line for message in messages_of(parsed)] == [1, 11]
    assert_accounted(parsed)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({**HELLO, "content": "a\x00b"}, "NUL"),
        ('{"role": "user", "content": "\\ud83d"}', "surrogate"),
        ({**HELLO, "name": "a\x00b"}, "NUL"),
        ({**HELLO, "thread": "\x00"}, "NUL"),
        ({**HELLO, "thread": {"id": 1}}, "an id must be text"),
        ({**HELLO, "metadata": {"a": ["\x00"]}}, "NUL"),
        ('{"role": "user", "content": "x", "metadata": {"a": 1e999}}', "too large"),
        ('{"role": "user", "content": "x", "metadata": {"a": NaN}}', "NaN"),
        ({**HELLO, "metadata": [1]}, "metadata must be an object"),
        ({**HELLO, "content": "é" * (CONTENT_MAX_BYTES // 2 + 1)}, "1,048,578 bytes; the limit is 1,048,576"),
        ("[" * 200_000, "not JSON"),
    ],
)
def test_what_capture_would_refuse_is_unreadable(tmp_path: Path, line: Any, reason: str) -> None:
    assert reason in refusal_of(tmp_path, line)


def test_content_at_the_limit_is_read(tmp_path: Path) -> None:
    assert len(parse_one(tmp_path, content="x" * CONTENT_MAX_BYTES).content) == CONTENT_MAX_BYTES


def test_emoji_written_as_a_surrogate_pair_is_whole(tmp_path: Path) -> None:
    [message] = messages_of(parse_jsonl(write(tmp_path, '{"role": "user", "content": "\\ud83d\\ude00"}')))
    assert message.content == "\N{GRINNING FACE}"


def test_bom_crlf_and_line_separators_inside_text_are_fine(tmp_path: Path) -> None:
    inner = json.dumps({**HELLO, "content": "one\u2028two"}, ensure_ascii=False)
    path = write(tmp_path, b"\xef\xbb\xbf" + json.dumps(HELLO).encode(), inner, end="\r\n")
    parsed = parse_jsonl(path)
    assert [message.content for message in messages_of(parsed)] == ["hello", "one\u2028two"]
    assert parsed.lines == 2


def test_last_line_without_an_end_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps(HELLO))
    assert len(messages_of(parse_jsonl(path))) == 1


def test_utf16_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps(HELLO), encoding="utf-16")
    with pytest.raises(InvalidInput, match="save it as UTF-8"):
        parse_jsonl(path)


def test_line_over_the_limit_is_skipped_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "LINE_MAX_BYTES", 200)
    parsed = parse_jsonl(write(tmp_path, HELLO, {**HELLO, "content": "x" * 900}, {**HELLO, "content": "after"}))
    assert [message.content for message in messages_of(parsed)] == ["hello", "after"]
    assert parsed.unreadable == ["line 2: longer than 200 bytes"]


def test_conversation_per_line_is_one_thread_each(tmp_path: Path) -> None:
    turns = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi"}]
    path = write(
        tmp_path,
        {"messages": turns, "id": "c-9", "user_id": "marta", "created_at": "2026-05-01T10:00:00Z"},
        {"messages": [*turns, {"role": "alien", "content": "x"}]},
        turns,
        {"messages": []},
    )
    parsed = parse_jsonl(path)
    assert [(t.id, t.subject) for t in parsed.threads] == [("c-9", "marta"), ("chat-2", "me"), ("chat-3", "me")]
    assert datetime(2026, 5, 1, 10, tzinfo=UTC) == parsed.threads[0].messages[1].occurred_at
    assert parsed.unreadable[0].startswith("line 2, message 3: unknown role 'alien'")
    assert parsed.passed_by == {"conversation without messages": 1}
    assert_accounted(parsed)


def test_message_time_counts_before_that_of_its_conversation(tmp_path: Path) -> None:
    turn = {"role": "user", "content": "hi", "created_at": "2026-05-02T10:00:00Z"}
    [message] = messages_of(parse_jsonl(write(tmp_path, {"messages": [turn], "timestamp": "2026-05-01T10:00:00Z"})))
    assert datetime(2026, 5, 2, 10, tzinfo=UTC) == message.occurred_at


def test_newest_first_export_is_put_in_order_of_speaking(tmp_path: Path) -> None:
    at = "2026-05-01T10:0{}:00Z".format
    path = write(tmp_path, *({**HELLO, "content": str(n), "occurred_at": at(n)} for n in (3, 2, 1)))
    assert [message.content for message in messages_of(parse_jsonl(path))] == ["1", "2", "3"]


def test_thread_with_a_message_of_no_time_keeps_the_order_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, HELLO, {"role": "user", "content": "b", "thread": "t1"}, {**HELLO, "occurred_at": 1})
    assert [message.line for message in messages_of(parse_jsonl(path))] == [1, 2, 3]


def test_reader_yields_before_the_file_ends(tmp_path: Path) -> None:
    tally = Tally()
    reader = read_jsonl(write(tmp_path, HELLO, "broken", HELLO), tally)
    assert next(reader).thread == "t1"
    assert (tally.lines, tally.unreadable) == (1, [])
    assert len(list(reader)) == 1
    assert (tally.lines, len(tally.unreadable)) == (3, 1)


# ---- keys


def test_keys_are_the_same_in_a_copy_and_in_a_grown_file(tmp_path: Path) -> None:
    lines = [HELLO, {**HELLO, "content": "ok"}, {**HELLO, "content": "ok"}]
    first = keys_of(parse_jsonl(write(tmp_path, *lines, name="a.jsonl")))
    grown = keys_of(parse_jsonl(write(tmp_path, *lines, {**HELLO, "content": "ok"}, name="b.jsonl")))
    assert first == grown[:3]
    assert len(set(grown)) == 4


def test_keys_survive_a_repaired_line_and_a_later_start(tmp_path: Path) -> None:
    said = [{**HELLO, "content": str(n)} for n in range(4)]
    whole = keys_of(parse_jsonl(write(tmp_path, *said)))
    assert [whole[0], *whole[2:]] == keys_of(parse_jsonl(write(tmp_path, said[0], "broken", *said[2:])))
    assert whole[2:] == keys_of(parse_jsonl(write(tmp_path, *said[2:])))


def test_keys_do_not_depend_on_spelling_of_fields_time_or_zone(tmp_path: Path) -> None:
    ours = parse_one(tmp_path, thread="t", occurred_at="2026-05-01T12:00:00+02:00").key
    theirs = parse_jsonl(write(tmp_path, {"from": "human", "text": "hello", "chatId": "t", "ts": 1777629600}))
    assert [ours] == keys_of(theirs)
    naive = write(tmp_path, {**HELLO, "occurred_at": "2026-05-01T12:00:00"})
    assert keys_of(parse_jsonl(naive)) == keys_of(parse_jsonl(naive, zone=ZoneInfo("Europe/Berlin")))


@pytest.mark.parametrize(
    "change", [{"thread": "t2"}, {"role": "tool"}, {"content": "hello!"}, {"name": "x"}, {"date": 1}]
)
def test_key_tells_different_messages_apart(tmp_path: Path, change: dict[str, Any]) -> None:
    base = {"role": "user", "content": "hello", "thread": "t1"}
    assert len(set(keys_of(parse_jsonl(write(tmp_path, base, {**base, **change}))))) == 2


def test_native_id_names_a_message(tmp_path: Path) -> None:
    twice = keys_of(parse_jsonl(write(tmp_path, {**HELLO, "id": "m1"}, {**HELLO, "id": "m1"}, {**HELLO, "id": "m2"})))
    assert twice[0] == twice[1] != twice[2]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["ok", "no"])), max_size=12), st.integers(0, 12))
def test_growing_a_file_never_changes_or_repeats_a_key(
    tmp_path_factory: pytest.TempPathFactory, said: list[tuple[str, str]], cut: int
) -> None:
    lines = [{"role": "user", "thread": thread, "content": text} for thread, text in said]
    folder = tmp_path_factory.mktemp("grow")
    short = set(keys_of(parse_jsonl(write(folder, *lines[:cut], name="a.jsonl"))))
    long = keys_of(parse_jsonl(write(folder, *lines, name="b.jsonl")))
    assert len(long) == len(set(long))
    assert short <= set(long)


@given(st.lists(st.one_of(st.binary(max_size=40), st.text(max_size=40).map(str.encode)), max_size=8))
def test_any_bytes_are_accounted_for(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    clean = [b" " + line.replace(b"\n", b" ") for line in lines]
    parsed = parse_jsonl(write(tmp_path_factory.mktemp("noise"), *clean))
    assert len(clean) <= parsed.lines
    assert_accounted(parsed)


FIELDS = ["role", "from", "content", "text", "parts", "message", "messages", "data", "id", "date", "type"]
JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.sampled_from(["user", "ai"])
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    ),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=5))
def test_any_json_is_accounted_for(tmp_path_factory: pytest.TempPathFactory, values: list[Any]) -> None:
    parsed = parse_jsonl(write(tmp_path_factory.mktemp("json"), *map(json.dumps, values)))
    assert len(values) <= parsed.lines
    assert_accounted(parsed)


# ---- LoCoMo


def sample(**conversation: Any) -> dict[str, Any]:
    turns = [
        {"speaker": "Ida", "dia_id": "D1:1", "text": "Look at this!", "blip_caption": "a red kite"},
        {"speaker": "Per", "dia_id": "D1:2", "text": "Nice."},
    ]
    base = {"speaker_a": "Ida", "session_1_date_time": "12:05 am on 8 May, 2023", "session_1": turns}
    return {"sample_id": "s-1", "qa": [], "conversation": {**base, **conversation}}


def test_locomo_sessions_become_threads_of_one_subject(tmp_path: Path) -> None:
    later = [{"speaker": "Per", "dia_id": "D10:1", "text": "Hi again"}]
    path = write(tmp_path, [sample(session_10=later, session_10_date_time="1:56 pm on 2 June, 2023", session_2=[])])
    parsed = parse_locomo(path)
    assert [(t.id, t.subject) for t in parsed.threads] == [("s-1-session-1", "s-1"), ("s-1-session-10", "s-1")]
    first, second, third = messages_of(parsed)
    assert first.content == "Look at this! [shared image: a red kite]"
    assert (second.name, second.role, second.metadata) == ("Per", "user", {"dia_id": "D1:2"})
    assert datetime(2023, 5, 8, 0, 5, tzinfo=UTC) == first.occurred_at
    assert datetime(2023, 5, 8, 0, 5, 5, tzinfo=UTC) == second.occurred_at
    assert datetime(2023, 6, 2, 13, 56, tzinfo=UTC) == third.occurred_at
    assert parsed.passed_by == {"qa": 1}
    assert_accounted(parsed)


def test_locomo_turns_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    per = {"speaker": "Per"}
    turns = [{**per, "text": "ok"}, {"text": "who?"}, 5, {**per, "text": " "}, {**per, "text": "\x00"}]
    path = write(tmp_path, [sample(session_1=turns), {"sample_id": "s-2"}, sample(session_1=7)])
    parsed = parse_locomo(path)
    assert parsed.unreadable == [
        "s-1-session-1, turn 2: no speaker",
        "s-1-session-1, turn 3: a turn must be an object, not int",
        "s-1-session-1, turn 5: a NUL character in the text",
        "sample 2: no conversation in it",
        "s-1-session-1: a session must be a list of turns",
    ]
    assert parsed.passed_by["turn without text"] == 1
    assert_accounted(parsed)


@pytest.mark.parametrize("date", ["1:56 pm on 31 June, 2023", "1:56 pm on 3 Floreal, 2023", "once upon a time"])
def test_locomo_session_with_a_bad_date_is_refused(tmp_path: Path, date: str) -> None:
    parsed = parse_locomo(write(tmp_path, [sample(session_1_date_time=date)]))
    assert len(parsed.unreadable) == 2
    assert "cannot read the time" in parsed.unreadable[0]


def test_locomo_session_without_a_date_has_no_times(tmp_path: Path) -> None:
    parsed = parse_locomo(write(tmp_path, [sample(session_1_date_time=None)]))
    assert [message.occurred_at for message in messages_of(parsed)] == [None, None]


def test_locomo_keys_do_not_change_when_a_session_is_added(tmp_path: Path) -> None:
    short = keys_of(parse_locomo(write(tmp_path, [sample()])))
    added = [{"speaker": "Per", "dia_id": "D2:1", "text": "Hi"}]
    assert short == keys_of(parse_locomo(write(tmp_path, [sample(session_2=added)])))[:2]


def test_locomo_parser_refuses_another_shape(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="session_1"):
        parse_locomo(write(tmp_path, [HELLO]))


# ---- detect


@pytest.mark.parametrize("indent", [None, 2])
def test_detect_locomo_in_one_line_or_many(tmp_path: Path, indent: int | None) -> None:
    assert parse_locomo is detect(write(tmp_path, json.dumps([sample()], indent=indent), name="x.jsonl"))


@pytest.mark.parametrize(
    "lines", [[HELLO], ["garbage", HELLO], [{"messages": [HELLO]}], [[HELLO]], ["\ufeff" + json.dumps(HELLO)], []]
)
def test_detect_jsonl(tmp_path: Path, lines: list[Any]) -> None:
    assert parse_jsonl is detect(write(tmp_path, *lines, name="x.json"))


def test_detect_says_what_to_do_with_a_spread_out_document(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="jq -c"):
        detect(write(tmp_path, json.dumps([HELLO], indent=1)))


@pytest.mark.parametrize("line", ["hello there", "a,b,c", b"\x00\xff\x01", "17"])
def test_detect_refuses_what_is_no_export(tmp_path: Path, line: Any) -> None:
    with pytest.raises(InvalidInput, match="expected JSONL"):
        detect(write(tmp_path, line))
