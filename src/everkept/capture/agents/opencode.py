"""OpenCode: a session is a record of its own, its messages are others, and each part of a message another.

A reading is over one session file with all that belongs to it, or over a database with all its sessions; its "lines"
are files or rows. "completed" means that a tool ran: a command's `metadata.exit` says what came of it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from everkept.capture.agents import opencode_calls
from everkept.capture.agents.building import ReadingBuilder, Taken, Verdict
from everkept.capture.agents.markers import heard
from everkept.capture.agents.opencode_store import (
    Piece,
    StoredMessage,
    StoredSession,
    is_database,
    is_sqlite,
    peek,
    session_files,
    session_in_files,
    sessions_in_database,
)
from everkept.capture.agents.reading import Format, Line, Reading
from everkept.capture.agents.records import Record, first_records, oldest_first, record_in, text_in, texts_in, time_us

AGENT: Final = "opencode"
_UNTITLED: Final = ("New session - ", "Child session - ")
_ABORTED: Final = "MessageAbortedError"
_TAKEN: Final = (Taken.USED, Taken.MERGED)


def find(home: Path) -> Iterator[Path]:
    """Databases and session files below `$XDG_DATA_HOME/opencode`, oldest first."""
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share") / AGENT
    files = [file for storage in _storages(data) for file in session_files(storage)]
    yield from oldest_first([*files, *data.glob("opencode*.db")])


def _storages(data: Path) -> list[Path]:
    """The folder itself, or the storage folders in it, those of older versions with one a project among them."""
    if (data / "session").is_dir():
        return [data]
    return [folder for folder in (data / "storage", *data.glob("project/*/storage")) if folder.is_dir()]


def recognise(path: Path) -> bool:
    """A session file, a storage folder, the data folder or the database."""
    if path.is_dir():
        return any(session_files(storage) for storage in _storages(path)) or any(map(is_database, _databases(path)))
    return is_database(path) or any(_is_session(record) for record in first_records(path, 1))


def _databases(folder: Path) -> list[Path]:
    return sorted(folder.glob("opencode*.db"))


def _is_session(record: Record) -> bool:
    return (
        isinstance(record.get("time"), dict) and "title" in record and bool({"directory", "projectID"} & record.keys())
    )


def read(path: Path) -> Reading:
    """Raises OSError where it cannot be opened."""
    reader = _Store(path)
    if path.is_dir():
        for storage in _storages(path):
            for file in session_files(storage):
                reader.take_session(session_in_files(file))
        for database in _databases(path):
            reader.take_database(database)
    elif is_sqlite(path):
        reader.take_database(path)
    else:
        reader.take_session(session_in_files(path))
    return reader.builder.finish()


class _Store:
    def __init__(self, path: Path) -> None:
        self.builder = ReadingBuilder(AGENT, path, path.stem)
        self._numbers = 0
        self._created_us: int | None = None
        """Of the message that is being read."""

    def take_database(self, path: Path) -> None:
        try:
            for stored in sessions_in_database(path):
                self.take_session(stored)
        except sqlite3.Error as fault:
            self.builder.reading.notes.append(f"{path.name} could be read in part only: {fault}")

    def take_session(self, stored: StoredSession) -> None:
        builder = self.builder
        builder.enter(text_in(stored.session.known, "id"))
        builder.parent = builder.cwd = builder.model = None
        builder.count(self._line(stored.session), lambda record: self._session(stored.session.completed(record)))
        for message in stored.messages:
            self._take_message(message)

    def _line(self, piece: Piece) -> Line:
        self._numbers += 1
        return Line(self._numbers, piece.raw)

    def _session(self, record: Record) -> Verdict:
        builder = self.builder
        builder.enter(text_in(record, "id"))
        builder.parent = text_in(record, "parentID") or None
        builder.cwd = text_in(record, "directory") or None
        builder.at_us = time_us(record_in(record, "time").get("created"))
        title = text_in(record, "title")
        if not title.startswith(_UNTITLED):
            builder.name_session(title)
        version = text_in(record, "version")
        return builder.add(
            "session_start",
            native=f"{builder.session}:start",
            detail="startup",
            extra={"version": version} if version else {},
        )

    def _take_message(self, stored: StoredMessage) -> None:
        """A prompt stands before its parts, the end of a turn behind them."""
        builder, line = self.builder, self._line(stored.message)
        record = stored.message.completed(peek(stored.message.raw))
        self._place(record)
        parts = [part.completed(peek(part.raw)) for part in stored.parts]
        role = text_in(record, "role")
        if role == "user":
            builder.count(line, lambda _: self._prompt(record, parts))
        taken = [
            builder.count(self._line(piece), partial(self._part, role, message=record, part=part))
            for piece, part in zip(stored.parts, parts, strict=True)
        ]
        if role != "user":
            told = any(verdict in _TAKEN for verdict in taken)
            builder.count(line, lambda _: self._answered(record, told=told))

    def _place(self, message: Record) -> None:
        """Where and when the parts of a message happened, unless they say so themselves."""
        builder = self.builder
        builder.model = text_in(message, "modelID") or text_in(record_in(message, "model"), "modelID") or builder.model
        builder.cwd = text_in(message, "path") or text_in(record_in(message, "path"), "cwd") or builder.cwd
        self._created_us = time_us(record_in(message, "time").get("created"))

    def _prompt(self, message: Record, parts: list[Record]) -> Verdict:
        texts = [part for part in parts if text_in(part, "type") == "text" and text_in(part, "text")]
        told = [heard(AGENT, text_in(part, "text")) for part in texts if not is_made_up(part)]
        typed = [one.text for one in told if not one.reason]
        text = "\n".join(typed or [text_in(part, "text") for part in texts])
        if not texts and not any(text_in(part, "type") in ("compaction", "subtask") for part in parts):
            text = text_in(record_in(message, "summary"), "body", "title")
            typed = [text] if text else []
        if not text:
            return "message without text"
        reason = "" if typed else next((one.reason for one in told), "synthetic")
        if typed and self.builder.parent is not None:
            reason = "task of a sub-agent"
        self.builder.at_us = self._created_us
        return self.builder.add(
            "prompt",
            text,
            native=text_in(message, "id"),
            genuine=not reason,
            evidence=bool(typed) or any(one.evidence for one in told),
            extra={"not_typed": reason} if reason else {},
        )

    def _answered(self, message: Record, *, told: bool) -> Verdict:
        builder = self.builder
        finished = time_us(record_in(message, "time").get("completed"))
        builder.at_us = self._created_us if finished is None else finished
        error, reason = record_in(message, "error"), text_in(message, "finish")
        name = text_in(error, "name")
        if name == _ABORTED:
            builder.interrupt("message aborted")
        if name or (reason and reason != "tool-calls"):
            why = "interrupted" if name == _ABORTED else "error" if name else reason
            text = text_in(record_in(error, "data"), "message") or name
            native = text_in(message, "id")
            return builder.add("turn_end", text, native=native and f"{native}:end", detail=why)
        return Taken.MERGED if told else "message without parts"

    def _part(self, role: str, _record: Record, *, message: Record, part: Record) -> Verdict:
        """`part` is the record, completed by its place."""
        builder, kind, native = self.builder, text_in(part, "type"), text_in(part, "id")
        started = time_us((record_in(record_in(part, "state"), "time") or record_in(part, "time")).get("start"))
        builder.at_us = self._created_us if started is None else started
        match kind:
            case "text":
                return self._text(role, message, part)
            case "tool":
                draft, taken = builder.call(text_in(part, "callID") or native, sign=repr(part.get("state")))
                opencode_calls.tell(draft, part)
                return taken
            case "compaction":
                return builder.add("compaction", sign="", channel="part", evidence=False)
            case "subtask":
                return builder.add(
                    "subagent_start",
                    text_in(part, "prompt", "description"),
                    native=native,
                    detail=text_in(part, "agent"),
                )
            case "patch":
                files = list(texts_in(part, "files"))
                return builder.add(
                    "other", "\n".join(files), native=native, detail="patch", extra={"files": files[:200]}
                )
            case "retry":
                error = record_in(part, "error")
                text = text_in(record_in(error, "data"), "message") or text_in(error, "message", "name")
                return builder.add("notification", text, native=native, role="retry", detail="retry")
        return f"part: {kind or 'no type'}"

    def _text(self, role: str, message: Record, part: Record) -> Verdict:
        text = text_in(part, "text")
        if not text:
            return "part without text"
        if role == "user":
            return "synthetic text" if is_made_up(part) else Taken.MERGED  # in the prompt
        if role != "assistant":
            return "text of a message that cannot be read"
        if message.get("summary") is True:
            return self.builder.add("compaction", text, sign="", channel="summary", evidence=False)
        native = text_in(part, "id")
        return self.builder.add("said", text, native=native, evidence=not is_made_up(part))


def is_made_up(part: Record) -> bool:
    """Texts that OpenCode put in by itself, files that were mentioned among them."""
    return part.get("synthetic") is True or part.get("ignored") is True


FORMAT: Final = Format(agent=AGENT, find=find, recognise=recognise, read=read)
