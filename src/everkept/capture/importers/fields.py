"""Reading one field of somebody else's export: which name it has, and what its value means."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from datetime import MAXYEAR, MINYEAR, UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from everkept.errors import InvalidInput

CONTENT_MAX_BYTES = 1_048_576
ROLES = {
    "user": "user", "human": "user", "customer": "user",
    "assistant": "assistant", "ai": "assistant", "bot": "assistant", "model": "assistant", "chatbot": "assistant",
    "system": "system", "developer": "system",
    "tool": "tool", "function": "tool",
}  # fmt: skip
"""The words of other systems for a role → ours."""

SPEAKER_FIELDS = ("role", "author", "speaker", "from", "sender")
TEXT_FIELDS = ("content", "text", "message", "body", "parts")
TIME_FIELDS = ("occurred_at", "timestamp", "created_at", "date", "time", "create_time", "ts")
THREAD_FIELDS = ("thread", "thread_id", "conversation_id", "session_id", "chat_id", "run_id")
SUBJECT_FIELDS = ("subject", "user_id", "dataset")
ID_FIELDS = ("id", "message_id", "uuid")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_EPOCH_TEXT = re.compile(r"\d{9,}(\.\d+)?")
"""Shorter runs of digits are dates (`20260501`), not seconds."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def plain_names(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record with field names in one spelling: `sessionId` and `session_id` are the same; nulls are left out."""
    return {_snake(name): value for name, value in record.items() if value is not None}


@lru_cache(maxsize=1024)
def _snake(name: str) -> str:
    return _CAMEL.sub("_", name).lower()


def first_of(record: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """The value of the first field that is there, else None."""
    for name in names:
        if name in record:
            return record[name]
    return None


def read_id(record: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """An id as text; None where no such field is there. Raises InvalidInput for anything but text or a whole number."""
    value = first_of(record, names)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InvalidInput(f"an id must be text or a whole number, not {type(value).__name__}")
    return check_text(str(value))


def read_speaker(record: Mapping[str, Any]) -> tuple[str, str | None]:
    """(role, name). The first field that holds a known role gives it; what another one holds is the name.

    Raises InvalidInput where there is no role, or `role` itself is a word that we do not know.
    """
    role, names = None, []
    for field in SPEAKER_FIELDS:
        word, name = _speaker_of(record.get(field))
        known = ROLES.get(word.casefold()) if word else None
        if field == "role" and word and known is None:
            raise InvalidInput(f"unknown role {word!r}; known are {', '.join(sorted(ROLES))}")
        if role is None and known is not None:
            role = known
        elif word and known is None:
            names.append(word)
        if name:
            names.append(name)
    kind = record.get("type")
    if role is None and isinstance(kind, str):
        role = ROLES.get(kind.casefold())
    if role is None:
        raise InvalidInput(f"unknown role {names[0]!r}" if names else "no role")
    own_name = record.get("name")
    if isinstance(own_name, str) and own_name.strip():
        names.insert(0, own_name.strip())
    return role, check_text(names[0]) if names else None


def _speaker_of(value: Any) -> tuple[str | None, str | None]:
    """(word, name) of a speaker's field: a word, or an object with a role and a name."""
    if isinstance(value, str):
        return value.strip() or None, None
    if isinstance(value, Mapping):
        role, name = value.get("role"), value.get("name")
        return role if isinstance(role, str) else None, name if isinstance(name, str) else None
    return None, None


def read_content(value: Any) -> tuple[str, dict[str, int]]:
    """(text, kinds of parts that are not text → how many). Text is "" where there is none.

    `value` is text, one part, or a list of both; a part is an object whose `text` (or `content`) is its text.
    Raises InvalidInput for other shapes and for text that capture would not accept.
    """
    left_out: Counter[str] = Counter()
    if value is None:
        return "", {}
    parts = value if isinstance(value, list) else [value]
    texts = [text for part in parts if (text := _part_text(part, left_out))]
    text = "\n".join(texts)
    size_bytes = len(check_text(text).encode("utf-8"))
    if size_bytes > CONTENT_MAX_BYTES:
        raise InvalidInput(f"content of {size_bytes:,} bytes; the limit is {CONTENT_MAX_BYTES:,}")
    return text, dict(left_out)


def _part_text(part: Any, left_out: Counter[str]) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        raise InvalidInput(f"content must be text or parts, not {type(part).__name__}")
    if "parts" in part:
        inner, others = read_content(part["parts"])
        left_out.update(others)
        return inner
    kind = part.get("type", "text")
    text = part.get("text", part.get("content"))
    if isinstance(text, str) and kind in ("text", "input_text", "output_text"):
        return text
    left_out[check_text(kind) if isinstance(kind, str) else "unknown"] += 1
    return ""


def check_text(text: str) -> str:
    """The text itself. Raises InvalidInput for a NUL or a lone surrogate, which no database and no wire takes."""
    if "\x00" in text:
        raise InvalidInput("a NUL character in the text")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as cause:
        raise InvalidInput("half of a surrogate pair in the text") from cause
    return text


def read_metadata(value: Any) -> dict[str, Any]:
    """A copy of the object, {} where there is none. Raises InvalidInput for values that cannot be stored."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidInput(f"metadata must be an object, not {type(value).__name__}")
    _check_value(value)
    return dict(value)


def _check_value(value: Any) -> None:
    if isinstance(value, str):
        check_text(value)
    elif isinstance(value, float) and not math.isfinite(value):
        raise InvalidInput("a number in the metadata is too large")
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            check_text(name)
            _check_value(inner)
    elif isinstance(value, list):
        for inner in value:
            _check_value(inner)


def read_time(value: Any) -> datetime | None:
    """A time as it was written: naive where no zone is. Epoch numbers are seconds, or ms, µs, ns by their size (UTC).

    Raises InvalidInput for what is not a time.
    """
    if value is None or value == "":
        return None
    try:
        if isinstance(value, str) and not _EPOCH_TEXT.fullmatch(value.strip()):
            return _within_years(datetime.fromisoformat(value.strip()))
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            return _within_years(_from_epoch(float(value)))
    except (ValueError, OverflowError) as cause:
        raise InvalidInput(f"cannot read the time {str(value)[:40]!r}") from cause
    raise InvalidInput(f"cannot read the time {str(value)[:40]!r}")


def _within_years(time: datetime) -> datetime:
    """Leaves room for any zone. Raises ValueError in the first and the last year that a datetime can hold."""
    if not MINYEAR < time.year < MAXYEAR:
        raise ValueError("out of range")
    return time


def _from_epoch(number: float) -> datetime:
    """Raises ValueError before 1970 and OverflowError after the year 9999."""
    if number < 0:
        raise ValueError("before 1970")
    for limit, per_second in ((1e11, 1), (1e14, 1_000), (1e17, 1_000_000)):
        if number < limit:
            return _EPOCH + timedelta(seconds=number / per_second)
    return _EPOCH + timedelta(seconds=number / 1_000_000_000)
