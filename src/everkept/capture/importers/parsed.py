"""What an importer hands over: threads of messages, and an account of everything that was not one."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any, Protocol

DEFAULT_SUBJECT = "me"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedMessage:
    """One message, already within the limits of capture."""

    line: int
    """Where it stands in the file, from 1; for a file that is one document, the position among its turns."""
    role: str
    """`user`, `assistant`, `system` or `tool`."""
    name: str | None
    content: str
    occurred_at: datetime | None
    """Aware. None where the file says no time."""
    metadata: dict[str, Any]
    key: str
    """Idempotency key: the same message read from another copy of the file, or a longer one, has the same."""
    evidence: bool = True
    """False where the file marks the message as not said by anybody (a compaction summary, recalled context)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedMessage:
    """A message and where it belongs, as a streaming reader yields it."""

    thread: str
    subject: str | None
    """None where this line and those before it in the thread name no subject."""
    message: ParsedMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedThread:
    id: str
    subject: str
    messages: list[ParsedMessage]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedImport:
    """A whole file. `lines` = messages of all threads + values of `passed_by` + entries of `unreadable`.

    A line that holds a whole conversation counts once for each message in it.
    """

    path: str
    threads: list[ParsedThread]
    lines: int
    passed_by: dict[str, int]
    """Reason → how many entries were understood and hold no message."""
    unreadable: list[str]
    """`line 7: why`, one for each entry that should have been a message and could not be read."""


class Parser(Protocol):
    """Reads one file into memory. `zone` is given to times that have none; `default_subject` to threads that name none.

    Raises InvalidInput when the file as a whole is not of the parser's kind, and OSError when it cannot be read.
    """

    def __call__(self, path: Path, *, zone: tzinfo = UTC, default_subject: str = DEFAULT_SUBJECT) -> ParsedImport: ...


@dataclass(slots=True)
class Tally:
    """The running account of one file."""

    lines: int = 0
    passed_by: Counter[str] = field(default_factory=Counter)
    unreadable: list[str] = field(default_factory=list)

    def pass_by(self, reason: str) -> None:
        self.lines += 1
        self.passed_by[reason] += 1

    def refuse(self, where: str, reason: str) -> None:
        self.lines += 1
        self.unreadable.append(f"{where}: {reason}")


class MessageKeys:
    """Makes idempotency keys that depend on what was said, never on the file or on a position in it.

    A native id names a message. Without one, a message is its thread, role, name, time and text, and how many equal
    ones came before it: so a repaired line in the middle, or an export that starts later, shifts no other key.
    Keeps one number for each message without a native id (some 100 bytes), never the text.
    """

    def __init__(self) -> None:
        self._seen: Counter[int] = Counter()

    def make(
        self, *, thread: str, native_id: str | None, role: str, name: str | None, said_at: datetime | None, content: str
    ) -> str:
        """`imp-` and 40 hex digits. `said_at` as the file has it: naive where it has no zone."""
        if native_id is not None:
            return "imp-" + _digest("id", thread, native_id, role, content)
        time = said_at.astimezone(UTC) if said_at and said_at.tzinfo else said_at
        body = _digest("said", thread, role, name or "", time.isoformat() if time else "", content)
        number = int(body[:16], 16)
        self._seen[number] += 1
        return "imp-" + _digest(body, str(self._seen[number]))


def collect(
    path: Path, placed: Iterable[PlacedMessage], tally: Tally, *, default_subject: str = DEFAULT_SUBJECT
) -> ParsedImport:
    """Gather a reader's messages by thread, threads in order of appearance.

    A thread in which every message has a time is put into the order of speaking (some exports are newest first).
    """
    subjects: dict[str, str | None] = {}
    messages: dict[str, list[ParsedMessage]] = {}
    for one in placed:
        messages.setdefault(one.thread, []).append(one.message)
        subjects[one.thread] = subjects.get(one.thread) or one.subject
    threads = [
        ParsedThread(id=thread, subject=subjects[thread] or default_subject, messages=_in_order(said))
        for thread, said in messages.items()
    ]
    return ParsedImport(
        path=str(path), threads=threads, lines=tally.lines, passed_by=dict(tally.passed_by), unreadable=tally.unreadable
    )


def _in_order(messages: list[ParsedMessage]) -> list[ParsedMessage]:
    times = [message.occurred_at for message in messages if message.occurred_at is not None]
    if len(times) < len(messages):
        return messages
    order = sorted(range(len(messages)), key=times.__getitem__)
    return [messages[i] for i in order]


def _digest(*parts: str) -> str:
    hasher = hashlib.blake2b(digest_size=20)
    for part in parts:
        raw = part.encode("utf-8")
        hasher.update(len(raw).to_bytes(8, "big") + raw)
    return hasher.hexdigest()
