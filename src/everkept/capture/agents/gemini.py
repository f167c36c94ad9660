"""Gemini CLI: `~/.gemini/tmp/<project>/chats/*.json` (one object) and `*.jsonl` (newer ones, one record a line).

A message that goes on is written again whole, with the same id. "success" of a tool means that it ran: what came of a
command stands in the words of its result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from everkept.capture.agents import gemini_calls
from everkept.capture.agents.building import ReadingBuilder, Taken, Verdict, strongest
from everkept.capture.agents.gemini_projects import folder_of
from everkept.capture.agents.markers import heard
from everkept.capture.agents.reading import Format, Line, Reading, as_text
from everkept.capture.agents.records import (
    Record,
    decoded,
    first_records,
    lines_in,
    oldest_first,
    record_in,
    records_in,
    text_in,
    texts_in,
    time_us,
)

AGENT: Final = "gemini"
_FILES_MARK: Final = "--- Content from referenced files ---"
"""How the part begins that holds the files a prompt names."""
_MESSAGES = re.compile(r'"messages"\s*:\s*\[')
_SEPARATORS = re.compile(r"[\s,]*")
_BEGINNING_BYTES: Final = 1_048_576
_TYPES: Final = frozenset({"user", "gemini", "model", "info", "error", "warning"})


def find(home: Path) -> Iterator[Path]:
    """Every recorded chat, those of sub-agents too, oldest first."""
    chats = (home / ".gemini" / "tmp").glob("*/chats")
    yield from oldest_first(
        path for folder in chats for pattern in ("*.json", "*.jsonl") for path in folder.rglob(pattern)
    )


def recognise(path: Path) -> bool:
    if not path.is_file():
        return False
    records = first_records(path)
    if any(_is_head(record) for record in records):
        return True
    return not records and _MESSAGES.search(_beginning(path)) is not None and '"sessionId"' in _beginning(path)


def _beginning(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return decoded(file.read(_BEGINNING_BYTES))
    except OSError:
        return ""


def _is_head(record: Record) -> bool:
    return isinstance(record.get("sessionId"), str) and ("projectHash" in record or "messages" in record)


def read(path: Path) -> Reading:
    reader = _Chat(path)
    reading = reader.builder.read(_records(path), reader.take)
    if reader.thoughts:
        reading.notes.append(f"{reader.thoughts} thoughts left out")
    return reading


def _records(path: Path) -> Iterator[Line]:
    """The lines of a JSONL file, or the head and the messages of a document that is JSON as a whole."""
    records = first_records(path)
    whole = len(records) == 1 and isinstance(records[0].get("messages"), list)
    is_document = whole or (not any(map(_is_record, records)) and _MESSAGES.search(_beginning(path)) is not None)
    yield from _document(path) if is_document else lines_in(path)


def _is_record(record: Record) -> bool:
    return bool({"sessionId", "$set", "$rewindTo"} & record.keys()) or text_in(record, "type") in _TYPES


def _document(path: Path) -> Iterator[Line]:
    """A document's head is its first record, each of its messages another; what is torn off is the last one."""
    text = decoded(path.read_bytes())
    opening = _MESSAGES.search(text)
    if opening is None:
        yield Line(1, text)
        return
    messages, end = _elements(text, opening.end())
    rest = text[end:].lstrip().removeprefix("]")
    closed = len(rest) < len(text[end:].lstrip())
    before = text[: opening.start()].rstrip().rstrip(",")
    after = rest.lstrip() if closed else "}"
    yield Line(1, before + (after.removeprefix(",") if before == "{" else after))
    for number, message in enumerate(messages, 2):
        yield Line(number, message)
    if not closed and rest.strip():
        yield Line(len(messages) + 2, rest)


def _elements(text: str, start: int) -> tuple[list[str], int]:
    """The elements of an array that begins at `start`, as far as they are whole, and where the rest begins."""
    decoder, elements, at = json.JSONDecoder(), list[str](), start
    while True:
        begin = _end_of_separators(text, at)
        try:
            _, end = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            return elements, begin
        elements.append(text[begin:end])
        at = end


def _end_of_separators(text: str, at: int) -> int:
    found = _SEPARATORS.match(text, at)
    return at if found is None else found.end()


class _Chat:
    def __init__(self, path: Path) -> None:
        self.builder = ReadingBuilder(AGENT, path, path.stem)
        self.thoughts = 0
        self._path = path

    def take(self, record: Record) -> Verdict:
        if "$rewindTo" in record:
            return "$rewindTo"
        if "$set" in record:
            return self._set(record_in(record, "$set"))
        if text_in(record, "type") in _TYPES:
            return self._message(record)
        if _is_head(record) or "sessionId" in record or "projectHash" in record:
            return self._head(record)
        return text_in(record, "type") or "no type"

    def _head(self, record: Record) -> Verdict:
        builder = self.builder
        builder.enter(text_in(record, "sessionId"))
        if text_in(record, "kind") == "subagent":
            builder.parent = self._path.parent.name
        project_hash = text_in(record, "projectHash")
        named = next(iter(texts_in(record, "directories")), None)
        builder.cwd = named or folder_of(self._path, project_hash) or builder.cwd
        builder.model = text_in(record_in(record, "meta"), "model") or builder.model
        builder.at_us = time_us(record.get("startTime"))
        builder.name_session(text_in(record, "summary"))
        extra = {"project_hash": project_hash} if project_hash else {}
        start = builder.add("session_start", native=f"{builder.session}:start", detail="startup", extra=extra)
        return strongest(start, *map(self._message, records_in(record, "messages")))

    def _set(self, fields: Record) -> Verdict:
        """What changed of the head; some write the messages anew with it."""
        self.builder.name_session(text_in(fields, "summary"))
        taken = [self._message(message) for message in records_in(fields, "messages")]
        return strongest(*taken) if taken else "$set"

    def _message(self, record: Record) -> Verdict:
        builder, kind, native = self.builder, text_in(record, "type"), text_in(record, "id")
        builder.at_us = time_us(record.get("timestamp"))
        content = record.get("content", record.get("parts"))
        if kind == "user":
            return self._prompt(content, native)
        text = as_text(content)
        if kind in ("gemini", "model"):
            return self._said(record, text, native)
        if text.startswith("Request cancelled"):
            builder.interrupt("request cancelled")
            return builder.add("turn_end", text, native=native, detail="interrupted")
        return builder.add("notification", text, native=native, role=kind, detail=kind)

    def _prompt(self, content: Any, native: str) -> Verdict:
        blocks = content if isinstance(content, list) else [content]
        texts = [text for block in blocks if (text := as_text(block)).strip()]
        if not texts:
            return "message without text"
        told = [heard(AGENT, text) for text in texts if not text.startswith(_FILES_MARK)]
        typed = [one.text for one in told if not one.reason]
        reason = "" if typed else next((one.reason for one in told), "context")
        if typed and self.builder.parent is not None:
            reason = "task of a sub-agent"
        return self.builder.add(
            "prompt",
            "\n".join(typed or texts),
            native=native,
            genuine=not reason,
            evidence=bool(typed) or any(one.evidence for one in told),
            extra={"not_typed": reason} if reason else {},
        )

    def _said(self, record: Record, text: str, native: str) -> Verdict:
        self.builder.model = text_in(record, "model") or self.builder.model
        thoughts = len(records_in(record, "thoughts"))
        self.thoughts += thoughts
        taken: list[Verdict] = []
        if text.strip():
            extra = {"thoughts_left_out": thoughts} if thoughts else {}
            taken.append(self.builder.add("said", text, native=native, extra=extra))
        taken.extend(self._call(call) for call in records_in(record, "toolCalls"))
        return strongest(*taken) if taken else ("thoughts only" if thoughts else "message without text")

    def _call(self, call: Record) -> Verdict:
        said_at = self.builder.at_us
        called_at = time_us(call.get("timestamp"))
        self.builder.at_us = said_at if called_at is None else called_at
        native = text_in(call, "id")
        draft, taken = self.builder.call(native, sign=f"{text_in(call, 'name')} {call.get('args')!r}")
        gemini_calls.tell(draft, call)
        self.builder.at_us = said_at
        return Taken.MERGED if taken is Taken.MERGED else Taken.USED


FORMAT: Final = Format(agent=AGENT, find=find, recognise=recognise, read=read)
