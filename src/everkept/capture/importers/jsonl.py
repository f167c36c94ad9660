"""Chat exports in JSONL: one message a line, or one conversation a line.

Field names are those that exports commonly use (see `fields`); what cannot be read is refused with its line number
and the reason, and the lines after it are read all the same. A time without a zone is taken as UTC unless the caller
names another one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any, BinaryIO

from everkept.capture.importers import fields
from everkept.capture.importers.parsed import (
    DEFAULT_SUBJECT,
    MessageKeys,
    ParsedImport,
    ParsedMessage,
    PlacedMessage,
    Tally,
    collect,
)
from everkept.errors import InvalidInput

LINE_MAX_BYTES = 64 * 1_048_576
_BOM = b"\xef\xbb\xbf"
_KEPT_FIELDS = ("agent_id", "app_id")
"""Scope words of other systems that become metadata (design: filters)."""


def parse_jsonl(path: Path, *, zone: tzinfo = UTC, default_subject: str = DEFAULT_SUBJECT) -> ParsedImport:
    """Read a whole file. Raises InvalidInput where it is no UTF-8 text, and OSError where it cannot be read."""
    tally = Tally()
    return collect(path, read_jsonl(path, tally, zone=zone), tally, default_subject=default_subject)


def read_jsonl(path: Path, tally: Tally, *, zone: tzinfo = UTC) -> Iterator[PlacedMessage]:
    """Yield messages in the order of the file, one line in memory at a time; `tally` is complete at the end.

    A message that names no thread belongs to one called like the file (without its suffix).
    """
    reader = _Reader(default_thread=path.stem, zone=zone, tally=tally)
    with path.open("rb") as file:
        for number, raw in _lines(file):
            yield from reader.read(number, raw)


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """(number from 1, line without its end), None for a line over the limit. Only a newline ends a line."""
    number = 0
    while raw := file.readline(LINE_MAX_BYTES + 1):
        number += 1
        if len(raw) > LINE_MAX_BYTES:
            while raw and not raw.endswith(b"\n"):
                raw = file.readline(LINE_MAX_BYTES)
            yield number, None
            continue
        if number == 1:
            if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
                raise InvalidInput("the file is UTF-16; save it as UTF-8 first")
            raw = raw.removeprefix(_BOM)
        yield number, raw.rstrip(b"\r\n")


def load_line(raw: bytes) -> Any:
    """The JSON value of one line. Raises InvalidInput with the place of the fault."""
    try:
        return _DECODER.decode(raw.decode("utf-8"))
    except UnicodeDecodeError as cause:
        raise InvalidInput(f"not UTF-8 at byte {cause.start + 1}") from cause
    except json.JSONDecodeError as cause:
        raise InvalidInput(f"not JSON: {cause.msg} at column {cause.colno}") from cause
    except RecursionError as cause:
        raise InvalidInput("not JSON that can be read: nested too deeply") from cause
    except ValueError as cause:
        raise InvalidInput(f"not JSON: {cause}") from cause


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


@dataclass(slots=True)
class _Reader:
    default_thread: str
    zone: tzinfo
    tally: Tally
    keys: MessageKeys = field(default_factory=MessageKeys)
    subjects: dict[str, str] = field(default_factory=dict)
    """Thread → the subject that a line of it has named."""

    def read(self, number: int, raw: bytes | None) -> Iterator[PlacedMessage]:
        where = f"line {number}"
        if raw is None:
            self.tally.refuse(where, f"longer than {LINE_MAX_BYTES:,} bytes")
            return
        if not raw.strip():
            self.tally.pass_by("blank line")
            return
        try:
            value = load_line(raw)
        except InvalidInput as fault:
            self.tally.refuse(where, fault.message)
            return
        items = conversation_of(value)
        if items is None:
            yield from self._message(number, where, value, {})
            return
        outer = _outer_fields(value, f"{self.default_thread}-{number}")
        if not items:
            self.tally.pass_by("conversation without messages")
        for position, item in enumerate(items, 1):
            yield from self._message(number, f"{where}, message {position}", item, outer)

    def _message(self, number: int, where: str, value: Any, outer: dict[str, Any]) -> Iterator[PlacedMessage]:
        """Yield the one message of an entry, or account for there being none."""
        try:
            if not isinstance(value, Mapping):
                raise InvalidInput(f"a message must be an object, not {type(value).__name__}")
            placed = self._read_message(number, _within(outer, _flat(value)))
        except InvalidInput as fault:
            self.tally.refuse(where, fault.message)
            return
        if isinstance(placed, str):
            self.tally.pass_by(placed)
            return
        self.tally.lines += 1
        yield placed

    def _read_message(self, number: int, record: dict[str, Any]) -> PlacedMessage | str:
        """The message, or the reason to pass the entry by. Raises InvalidInput."""
        kind = record.get("type")
        if not any(name in record for name in (*fields.SPEAKER_FIELDS, *fields.TEXT_FIELDS)) and isinstance(kind, str):
            return f"type {kind[:40]!r}"
        role, name = fields.read_speaker(record)
        content, left_out = fields.read_content(fields.first_of(record, fields.TEXT_FIELDS))
        if not content.strip():
            return "message without text"
        thread = fields.read_id(record, fields.THREAD_FIELDS) or self.default_thread
        said_at = fields.read_time(fields.first_of(record, fields.TIME_FIELDS))
        key = self.keys.make(
            thread=thread, native_id=fields.read_id(record, fields.ID_FIELDS), role=role, name=name,
            said_at=said_at, content=content,
        )  # fmt: skip
        message = ParsedMessage(
            line=number, role=role, name=name, content=content, occurred_at=_aware(said_at, self.zone),
            metadata=_metadata(record, left_out), key=key, evidence=record.get("evidence") is not False,
        )  # fmt: skip
        return PlacedMessage(thread=thread, subject=self._subject(thread, record), message=message)

    def _subject(self, thread: str, record: dict[str, Any]) -> str | None:
        named = fields.read_id(record, fields.SUBJECT_FIELDS)
        if named is None:
            return self.subjects.get(thread)
        known = self.subjects.setdefault(thread, named)
        if known != named:
            raise InvalidInput(f"thread {thread!r} belongs to subject {known!r}, not {named!r}")
        return known


def conversation_of(value: Any) -> list[Any] | None:
    """The messages of a line that holds a whole conversation; None for a line that is one message."""
    if isinstance(value, list):
        return value
    messages = value.get("messages") if isinstance(value, Mapping) else None
    return messages if isinstance(messages, list) else None


def _outer_fields(conversation: Any, default_thread: str) -> dict[str, Any]:
    """What a conversation says about each of its messages: thread, subject, and its time for those that have none."""
    given = fields.plain_names(conversation) if isinstance(conversation, Mapping) else {}
    wanted = (*fields.SUBJECT_FIELDS, *fields.TIME_FIELDS, *_KEPT_FIELDS)
    outer = {name: given[name] for name in wanted if name in given}
    outer["thread"] = fields.first_of(given, (*fields.THREAD_FIELDS, *fields.ID_FIELDS)) or default_thread
    return outer


def _within(outer: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    """The entry with what its conversation says; its own word counts, under whichever of the field's names."""
    for names in (fields.THREAD_FIELDS, fields.SUBJECT_FIELDS, fields.TIME_FIELDS):
        if fields.first_of(record, names) is not None:
            outer = {name: value for name, value in outer.items() if name not in names}
    return {**outer, **record}


def _flat(value: Mapping[str, Any]) -> dict[str, Any]:
    """The entry in plain names; where `message` or `data` is an object, its fields come first."""
    record = fields.plain_names(value)
    for name in ("message", "data"):
        inner = record.get(name)
        if isinstance(inner, Mapping):
            del record[name]
            record = {**record, **fields.plain_names(inner)}
    return record


def _aware(said_at: datetime | None, zone: tzinfo) -> datetime | None:
    return said_at.replace(tzinfo=zone) if said_at is not None and said_at.tzinfo is None else said_at


def _metadata(record: dict[str, Any], left_out: dict[str, int]) -> dict[str, Any]:
    kept = {name: record[name] for name in _KEPT_FIELDS if name in record}
    metadata = fields.read_metadata(record.get("metadata")) | fields.read_metadata(kept)
    if left_out:
        metadata["parts_left_out"] = left_out
    return metadata
