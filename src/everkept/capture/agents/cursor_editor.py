"""The database of Cursor's editor, `state.vscdb`: a table of keys and JSON values (`cursorDiskKV`).

`composerData:<session>` tells of a session, `bubbleId:<session>:<bubble>` holds one of its messages or calls. All other
keys are counted and not read, and `ItemTable` (settings and credentials) is never looked into. Each row is a line.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from everkept.capture.agents.building import ReadingBuilder, Taken, Verdict, strongest
from everkept.capture.agents.cursor_tools import AGENT, Calls, account, take_prompt
from everkept.capture.agents.reading import Line, Reading
from everkept.capture.agents.records import (
    Record,
    arguments_in,
    load,
    record_in,
    records_in,
    text_in,
    texts_in,
    time_us,
)

_MAGIC: Final = b"SQLite format 3\x00"
_SESSIONS: Final = ("composerData:", "composerData;")
_MESSAGES: Final = ("bubbleId:", "bubbleId;")
"""Ranges of keys: `;` follows `:`."""
_IN_ORDER: Final = "SELECT key, value FROM cursorDiskKV WHERE key >= ? AND key < ? ORDER BY key"
_OTHERS: Final = (
    "SELECT substr(key, 1, instr(key || ':', ':') - 1) AS kind, count(*) FROM cursorDiskKV "
    "WHERE NOT (key >= ? AND key < ?) AND NOT (key >= ? AND key < ?) OR key IS NULL GROUP BY kind"
)
_USER: Final = 1
_HEAD_BYTES: Final = 65_536


def is_editor_store(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                return False
        with closing(_opened(path)) as store:
            return store.execute("SELECT 1 FROM sqlite_master WHERE name = 'cursorDiskKV'").fetchone() is not None
    except (OSError, sqlite3.Error):
        return False


def read_editor_store(path: Path) -> Reading:
    """All sessions of a database; those that Cursor also keeps as a transcript are passed by."""
    built = ReadingBuilder(AGENT, path, path.stem)
    try:
        with closing(_opened(path)) as store:
            _Store(built, store).read()
    except sqlite3.Error as error:  # damaged, or locked for long: what was read so far stands
        built.reading.notes.append(f"the database could not be read on: {error}")
    return built.finish()


def _opened(path: Path) -> sqlite3.Connection:
    try:
        return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    except sqlite3.Error as error:
        raise OSError(f"{path}: {error}") from error


class _Store:
    def __init__(self, built: ReadingBuilder, store: sqlite3.Connection) -> None:
        self._built = built
        self._rows = store
        self._sessions: dict[str, Record] = {}
        self._parents: dict[str, str] = {}

    def read(self) -> None:
        for key, value in self._rows.execute(_IN_ORDER, _SESSIONS):
            session = str(key).partition(":")[2]
            record = self._record(value)
            if record is not None:
                self._sessions[session] = record
                self._parents.update(dict.fromkeys(texts_in(record, "subComposerIds"), session))
                self._account(value, self._inline(session, record))
        rows = self._rows.execute(_IN_ORDER, _MESSAGES)
        for session, group in groupby(rows, key=lambda row: str(row[0]).split(":", 2)[1]):
            self._session(session, group)
        for kind, count in self._rows.execute(_OTHERS, (*_SESSIONS, *_MESSAGES)):
            self._built.reading.lines += count
            self._built.reading.passed_by[str(kind)[:80]] += count

    def _record(self, value: Any) -> Record | None:
        """The row's object; None where it has none, which is then accounted for."""
        if value is None or value in ("null", b"null"):
            self._account(value, "empty row")
            return None
        try:
            record = load(_text(value))
        except RecursionError:
            record = None
        if record is None:
            self._account(value, Taken.UNREADABLE)
        return record

    def _account(self, value: Any, verdict: Verdict) -> None:
        number = self._built.reading.lines + 1
        account(self._built.reading, Line(number, _text(value) if verdict is Taken.UNREADABLE else ""), verdict)

    def _session(self, session: str, rows: Iterator[tuple[Any, Any]]) -> None:
        bubbles = {str(key).split(":", 2)[-1]: (value, self._record(value)) for key, value in rows}
        told = {name: (value, bubble) for name, (value, bubble) in bubbles.items() if bubble is not None}
        about = self._sessions.get(session, {})
        twice = _has_transcript(self._built.reading.path, session)
        self._enter(session, about)
        calls = Calls(self._built)
        for name in _in_order(about, {name: bubble for name, (_, bubble) in told.items()}):
            value, bubble = told[name]
            self._account(value, "kept as a transcript too" if twice else self._bubble(name, bubble, calls))

    def _inline(self, session: str, record: Record) -> Verdict:
        """Old versions keep the messages in the row of the session."""
        bubbles = records_in(record, "conversation")
        if not bubbles:
            return "composerData"
        self._enter(session, record)
        calls = Calls(self._built)
        return strongest(*(self._bubble(text_in(bubble, "bubbleId"), bubble, calls) for bubble in bubbles))

    def _enter(self, session: str, about: Record) -> None:
        built = self._built
        built.enter(session)
        built.parent = self._parents.get(session)
        place = record_in(record_in(about, "workspaceIdentifier"), "uri")
        built.cwd = text_in(place, "fsPath", "path") or None
        built.branch = text_in(about, "createdOnBranch") or None
        built.at_us = time_us(about.get("createdAt"))
        built.name_session(text_in(about, "name"))

    def _bubble(self, name: str, bubble: Record, calls: Calls) -> Verdict:
        built, about = self._built, self._sessions.get(self._built.session, {})
        built.at_us = time_us(bubble.get("createdAt")) or built.at_us
        built.model = text_in(record_in(bubble, "modelInfo") or record_in(about, "modelConfig"), "modelName") or None
        text = text_in(bubble, "text")
        if bubble.get("type") == _USER:
            return take_prompt(built, text, native=name) if text else "empty message"
        verdicts = [built.add("said", text, native=name)] if text else []
        if call := record_in(bubble, "toolFormerData"):
            verdicts.append(_call(call, name, calls))
        if verdicts:
            return strongest(*verdicts)
        return "thinking" if record_in(bubble, "thinking") else "empty message"


def _call(call: Record, bubble: str, calls: Calls) -> Verdict:
    native = text_in(call, "toolCallId").partition("\n")[0] or f"{bubble}:call"
    given = arguments_in(call.get("params")) | arguments_in(call.get("rawArgs"))
    verdict = calls.asked(text_in(call, "name", "tool"), given, native=native)
    status = text_in(call, "status")
    if status in ("", "loading", "pending", "running"):
        return verdict
    result = call.get("result")
    told = arguments_in(result)
    told |= {"error": "status error"} if status in ("error", "failed") else {}
    told |= {"notInterrupted": False} if status in ("cancelled", "aborted") else {}
    told |= {"rejected": True} if text_in(call, "userDecision") == "rejected" else {}
    if status == "completed" and "command" not in given:  # of a command it says only that it ran
        told |= {"done": "status completed"}
    output = text_in(told, "output", "contents", "content") or (result if isinstance(result, str) else "")
    calls.answered(output, told, native=native)
    return verdict


def _in_order(about: Record, bubbles: dict[str, Record]) -> list[str]:
    """The bubbles in the order of the session's headers; those that it does not name follow by their times."""
    headers = [text_in(header, "bubbleId") for header in records_in(about, "fullConversationHeadersOnly")]
    named = dict.fromkeys(header for header in headers if header in bubbles)
    others = [name for name in bubbles if name not in named]
    return [*named, *sorted(others, key=lambda name: time_us(bubbles[name].get("createdAt")) or 0)]


def _has_transcript(store: Path, session: str) -> bool:
    """Whether the words of a session are in a file below the same home too. (Some files there only mark its turns.)"""
    if not session or any(mark in session for mark in "*?[/\\"):
        return False
    for folder in store.resolve().parents:
        projects = folder / ".cursor" / "projects"
        if projects.is_dir():
            return any(map(_has_words, projects.glob(f"*/agent-transcripts/**/{session}.*")))
    return False


def _has_words(transcript: Path) -> bool:
    try:
        with transcript.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return False
    return b'"role"' in head or head.startswith((b"user:", b"assistant:"))


def _text(value: Any) -> str:
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else str(value)
