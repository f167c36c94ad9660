"""What is said under `EVERKEPT_OFF=1` stays out, however its transcript is read later."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from tests.stubs.agent_desk import Desk

from everkept.capture.agents import claude_code
from everkept.capture.agents.off_times import OffTimes, off_times
from everkept.hook import hook_script

SESSION = "019ae2f0-6b1d-7c11-9a77-2f1c6d3e4b5a"


@dataclass
class Talk:
    """A session of Claude Code that writes its transcript, and whose hooks run with or without `EVERKEPT_OFF`."""

    desk: Desk
    folder: Path
    lines: list[str] = field(default_factory=list)

    @property
    def transcript(self) -> Path:
        return self.folder / f"{SESSION}.jsonl"

    def hook(self, event: str, *, off: bool, **payload: Any) -> None:
        payload = {"session_id": SESSION, "transcript_path": str(self.transcript), **payload}
        if not off:
            record = self.desk.hook("claude-code", event, self.folder, **payload)
            hook_script.note_on(str(self.desk.home), record)
            return
        self.desk.clock.advance(1)
        told = hook_script.heard(json.dumps({"hook_event_name": event, **payload}).encode(), "claude-code", "")
        told.at_ns = self.desk.clock.now_us() * 1_000
        hook_script.note_off(str(self.desk.home), told)

    def start(self, *, off: bool, source: str = "startup") -> None:
        self.desk.clock.advance(10)
        self.hook("SessionStart", off=off, source=source)

    def turn(self, words: str, answer: str, *, off: bool) -> None:
        self.desk.clock.advance(10)
        self.write("user", words)
        self.hook("UserPromptSubmit", off=off, prompt=words)
        self.desk.clock.advance(10)
        self.write("assistant", [{"type": "text", "text": answer}])
        self.hook("Stop", off=off, last_assistant_message=answer)

    def write(self, role: str, content: Any) -> None:
        at = datetime.fromtimestamp(self.desk.clock.now_us() / 1e6, UTC).isoformat()
        self.lines.append(json.dumps({
            "type": role, "sessionId": SESSION, "uuid": f"u{len(self.lines)}", "timestamp": at,
            "cwd": str(self.folder), "message": {"role": role, "content": content}}))  # fmt: skip
        self.transcript.write_text("\n".join(self.lines) + "\n")

    def read_all(self) -> Any:
        self.desk.settle()
        return self.desk.run(self.desk.app.importer().take(claude_code.FORMAT, self.transcript, again=True))

    def stored(self) -> str:
        rows = self.desk.app.parts.store.read_now(lambda conn: conn.rows(text("select content from events"), {}))
        return "\n".join(content for (content,) in rows)


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    folder = tmp_path / "app"
    folder.mkdir()
    desk = Desk(tmp_path / "home")
    yield Talk(desk, folder)
    desk.close()


def test_what_was_said_while_it_was_off_does_not_come_back_with_the_transcript(talk: Talk) -> None:
    talk.start(off=True)
    talk.turn("my diagnosis is Zorblax", "Zorblax is treatable", off=True)
    talk.start(off=False, source="resume")
    talk.turn("fix the login test", "It passes now", off=False)
    report = talk.read_all()
    assert "Zorblax" not in talk.stored()
    assert "fix the login test" in talk.stored()
    assert "It passes now" in talk.stored()
    assert "kept out, as EVERKEPT_OFF was set: 2 events" in report.reading.notes


def test_an_agent_that_tells_of_no_start_is_off_until_its_next_prompt(talk: Talk) -> None:
    talk.turn("my diagnosis is Zorblax", "Zorblax is treatable", off=True)
    talk.turn("fix the login test", "It passes now", off=False)
    talk.read_all()
    stored = talk.stored()
    assert "Zorblax" not in stored
    assert "fix the login test" in stored
    assert "It passes now" in stored


def test_a_session_that_was_off_throughout_is_not_imported(talk: Talk) -> None:
    talk.start(off=True)
    talk.turn("my diagnosis is Zorblax", "Zorblax is treatable", off=True)
    assert talk.read_all().taken.stored == 0
    assert talk.stored() == ""


def test_what_was_said_before_and_after_is_kept(talk: Talk) -> None:
    talk.start(off=False)
    talk.turn("first words", "first answer", off=False)
    talk.start(off=True, source="resume")
    talk.turn("my diagnosis is Zorblax", "Zorblax is treatable", off=True)
    talk.start(off=False, source="resume")
    talk.turn("last words", "last answer", off=False)
    talk.read_all()
    stored = talk.stored()
    assert all(each in stored for each in ("first words", "first answer", "last words", "last answer"))
    assert "Zorblax" not in stored


def test_a_note_of_off_times_holds_no_words_and_no_name(talk: Talk) -> None:
    talk.start(off=True)
    talk.turn("my diagnosis is Zorblax", "Zorblax is treatable", off=True)
    talk.hook("SessionEnd", off=True)
    [note] = (talk.desk.home / "off").iterdir()
    assert note.read_text() == "0 off\n"
    assert SESSION not in note.name
    assert note.stat().st_mode & 0o777 == 0o600


def test_off_times_are_spans_and_what_has_no_time_counts_as_off(tmp_path: Path) -> None:
    note = Path(hook_script.off_file(str(tmp_path), "codex", "s1"))
    note.parent.mkdir()
    note.write_text("10000000000 off\n11000000000 off\ntorn\n20000000000 on\n30000000000 off\n")
    times = off_times(tmp_path, "codex", "s1")
    assert times == OffTimes(spans=((8_000_000, 20_000_000), (28_000_000, None)))
    assert [times.covers(at) for at in (7_999_999, 8_000_000, 20_000_000, 29_000_000, None)] == [
        False, True, False, True, True,
    ]  # fmt: skip
    assert not off_times(tmp_path, "claude-code", "s1").covers(None)
