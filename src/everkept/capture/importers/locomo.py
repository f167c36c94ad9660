"""Conversations in the shape of the LoCoMo benchmark: one JSON document, samples of dated sessions of two people.

Each session becomes a thread, and all threads of a sample have the sample's id as their subject. Both speakers are
people, so both have the role `user` and are told apart by name. Questions and annotations are passed by.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

from everkept.capture.importers.fields import read_content, read_id, read_time
from everkept.capture.importers.jsonl import load_line
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

TURN_S = 5
"""The format dates whole sessions; turns are placed this many seconds apart to keep their order."""
_SESSION = re.compile(r"session_(\d+)")
_DATE = re.compile(r"(\d{1,2}):(\d{2})\s*([ap])m on (\d{1,2}) ([a-z]+),? (\d{4})", re.IGNORECASE)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def parse_locomo(path: Path, *, zone: tzinfo = UTC, default_subject: str = DEFAULT_SUBJECT) -> ParsedImport:
    """Read a whole file. `default_subject` names samples without an id. Raises InvalidInput for another shape."""
    samples = load_line(path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    if not is_locomo(samples):
        raise InvalidInput("not a list of samples, each with a `conversation` of `session_1`, `session_2`, …")
    tally = Tally()
    return collect(path, _read_samples(samples, tally, zone), tally, default_subject=default_subject)


def is_locomo(value: Any) -> bool:
    """True for a list whose first item is a sample with at least one session."""
    first = value[0] if isinstance(value, list) and value else None
    conversation = first.get("conversation") if isinstance(first, Mapping) else None
    return isinstance(conversation, Mapping) and any(_SESSION.fullmatch(name) for name in conversation)


def _read_samples(samples: list[Any], tally: Tally, zone: tzinfo) -> Iterator[PlacedMessage]:
    keys = MessageKeys()
    for number, sample in enumerate(samples, 1):
        conversation = sample.get("conversation") if isinstance(sample, Mapping) else None
        if not isinstance(conversation, Mapping):
            tally.refuse(f"sample {number}", "no conversation in it")
            continue
        for name in sample:
            if name not in ("sample_id", "conversation"):
                tally.pass_by(name)
        try:
            subject = read_id(sample, ("sample_id",))
        except InvalidInput as fault:
            tally.refuse(f"sample {number}", fault.message)
            continue
        yield from _read_sessions(conversation, subject, f"sample-{number}", tally, keys, zone)


def _read_sessions(
    conversation: Mapping[str, Any],
    subject: str | None,
    default_name: str,
    tally: Tally,
    keys: MessageKeys,
    zone: tzinfo,
) -> Iterator[PlacedMessage]:
    numbers = sorted(int(found[1]) for name in conversation if (found := _SESSION.fullmatch(name)))
    for number in numbers:
        thread = f"{subject or default_name}-session-{number}"
        turns = conversation[f"session_{number}"]
        if not isinstance(turns, list):
            tally.refuse(thread, "a session must be a list of turns")
            continue
        for position, turn in enumerate(turns, 1):
            try:
                said_at = _session_time(conversation.get(f"session_{number}_date_time"), position)
                message = _read_turn(turn, thread, said_at, tally.lines + 1, keys, zone)
            except InvalidInput as fault:
                tally.refuse(f"{thread}, turn {position}", fault.message)
                continue
            if message is None:
                tally.pass_by("turn without text")
                continue
            tally.lines += 1
            yield PlacedMessage(thread=thread, subject=subject, message=message)


def _read_turn(
    turn: Any, thread: str, said_at: datetime | None, line: int, keys: MessageKeys, zone: tzinfo
) -> ParsedMessage | None:
    """The message of a turn, None where it has neither text nor a described picture. Raises InvalidInput."""
    if not isinstance(turn, Mapping):
        raise InvalidInput(f"a turn must be an object, not {type(turn).__name__}")
    name, dia_id = read_id(turn, ("speaker",)), read_id(turn, ("dia_id",))
    if name is None:
        raise InvalidInput("no speaker")
    caption = turn.get("blip_caption")
    picture = f" [shared image: {caption}]" if isinstance(caption, str) and caption else ""
    text = turn.get("text")
    content, _ = read_content(f"{text.strip() if isinstance(text, str) else ''}{picture}".strip())
    if not content:
        return None
    key = keys.make(thread=thread, native_id=dia_id, role="user", name=name, said_at=said_at, content=content)
    aware = said_at.replace(tzinfo=zone) if said_at is not None and said_at.tzinfo is None else said_at
    return ParsedMessage(
        line=line, role="user", name=name, content=content, occurred_at=aware,
        metadata={} if dia_id is None else {"dia_id": dia_id}, key=key,
    )  # fmt: skip


def _session_time(value: Any, position: int) -> datetime | None:
    """`1:56 pm on 8 May, 2023` or an ISO time, plus the place of the turn (from 1). Raises InvalidInput."""
    found = _DATE.fullmatch(value.strip()) if isinstance(value, str) else None
    start = read_time(value) if found is None else _spoken_time(found)
    return None if start is None else start + timedelta(seconds=TURN_S * (position - 1))


def _spoken_time(found: re.Match[str]) -> datetime:
    """Naive, as the format has no zones."""
    hour, minute, half, day, month, year = found.groups()
    try:
        month_number = _MONTHS.index(month[:3].lower()) + 1
        hour_of_day = int(hour) % 12 + 12 * (half in "pP")
        return datetime.fromisoformat(f"{year}-{month_number:02}-{int(day):02}T{hour_of_day:02}:{minute}")
    except ValueError as cause:
        raise InvalidInput(f"cannot read the time {found[0]!r}") from cause
