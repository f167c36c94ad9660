"""Records of transcripts, read without trust: any field may be missing, of another type, or rubbish."""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from io import BufferedReader, TextIOWrapper
from pathlib import Path
from typing import Any, Final

from everkept.capture.agents.reading import Line
from everkept.domain.session import FIELD_CHARS_MAX, shortened
from everkept.hook import hook_script

Record = dict[str, Any]

LINE_BYTES_MAX: Final = 64 * 1_048_576
"""A longer line is unreadable, and only its head is kept."""
UTF_16_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
HEAD_BYTES: Final = 32_768
_SMALL_BYTES: Final = 1_048_576
BEYOND_CUT_CHARS: Final = 8_192
"""Kept beyond each cut, so that a secret on it is still whole when it is redacted, before the final cut."""
_NUL_IN_JSON = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")
_LONE_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS: Final = ((1e8, 1e11, 1e6), (1e11, 1e14, 1e3), (1e14, 1e17, 1.0), (1e17, 1e20, 1e-3))
"""(from, below, microseconds a unit): a number says by its size whether it is s, ms, µs or ns since 1970."""


def lines_in(path: Path) -> Iterator[Line]:
    """Every line of a file, numbered from 1; bytes that are no text become U+FFFD. Raises OSError.

    It is UTF-8, or UTF-16 where it begins with the mark of that.
    """
    number = 0
    with path.open("rb") as file:
        readline = _reader_of_lines(file)
        while raw := readline(LINE_BYTES_MAX + 1):
            number += 1
            if len(raw) > LINE_BYTES_MAX:
                head = raw[:HEAD_BYTES]
                while raw and not raw.endswith(b"\n"):
                    raw = readline(LINE_BYTES_MAX)
                # A cut object is no JSON, so that it is counted as unreadable.
                raw = head.rstrip(b"}")
            text = raw.decode("utf-8", errors="replace").rstrip("\r\n")
            yield Line(number, text.removeprefix("\ufeff") if number == 1 else text)


def _reader_of_lines(file: BufferedReader) -> Callable[[int], bytes]:
    """Reads at most so much of the next line, as UTF-8."""
    wide = file.read(2) in UTF_16_MARKS
    file.seek(0)
    if not wide:
        return file.readline
    text = TextIOWrapper(file, encoding="utf-16", errors="replace", newline="\n")
    return lambda limit: text.readline(limit).encode("utf-8", errors="replace")


def decoded(data: bytes) -> str:
    """The text of a file, in UTF-8 or, as its first bytes say, in UTF-16; bytes that are no text become U+FFFD."""
    return hook_script.as_text(data)


def load(raw: str) -> Record | None:
    """The object in a text, or None where there is none. NUL and lone surrogates, which no store takes, are replaced.

    Raises RecursionError where it is nested too deeply.
    """
    if "\\u0000" in raw:
        raw = _NUL_IN_JSON.sub(r"\1\\ufffd", raw)
    try:
        value = json.loads(raw)
        if _LONE_SURROGATE.search(raw):
            value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", errors="replace"))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def text_in(record: Record, *names: str) -> str:
    """The first of these fields that is a text with something in it, else the empty text."""
    for name in names:
        value = record.get(name)
        if isinstance(value, str) and value.strip():
            return value
    return ""


def record_in(record: Record, *names: str) -> Record:
    """The first of these fields that is an object, else an empty one."""
    for name in names:
        value = record.get(name)
        if isinstance(value, dict):
            return value
    return {}


def records_in(record: Record, *names: str) -> list[Record]:
    """The objects in the first of these fields that is a list."""
    for name in names:
        value = record.get(name)
        if isinstance(value, list):
            return [item for item in value if isinstance(item, dict)]
    return []


def texts_in(record: Record, *names: str) -> tuple[str, ...]:
    """The texts in the first of these fields that is a list."""
    for name in names:
        value = record.get(name)
        if isinstance(value, list):
            return tuple(item for item in value if isinstance(item, str) and item)
    return ()


def flag_in(record: Record, name: str) -> bool | None:
    value = record.get(name)
    return value if isinstance(value, bool) else None


def exit_code_in(record: Record, *names: str) -> int | None:
    """The first of these fields that can be the exit code of a process."""
    for name in names:
        value = record.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**32:
            return value
    return None


def arguments_in(value: Any) -> Record:
    """The arguments of a call: an object, or one written as a JSON text."""
    if isinstance(value, str):
        return load(value) or {}
    return value if isinstance(value, dict) else {}


def as_json(value: Any) -> str:
    """A value in words: a text as it stands, all else as JSON; nothing for nothing."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False) if value else ""


def bounded(text: str) -> str:
    """A text as long as one may be, and a margin for redaction."""
    return shortened(text, FIELD_CHARS_MAX + 2 * BEYOND_CUT_CHARS)


def time_us(value: Any) -> int | None:
    """Microseconds since 1970 of a number (s, ms, µs, ns by its size) or an RFC 3339 text, None where it is no time."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return _written_time_us(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    for start, below, factor in _UNITS:
        if start <= value < below:
            return int(value * factor) if factor < 1 or isinstance(value, float) else value * int(factor)
    return None


def _written_time_us(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    past = moment - _EPOCH
    us = (past.days * 86_400 + past.seconds) * 1_000_000 + past.microseconds
    return us if us > 0 else None


def oldest_first(paths: Iterable[Path]) -> list[Path]:
    """Paths by the time of their last change; one that vanished meanwhile comes first."""
    return sorted(paths, key=lambda path: (_changed_at(path), str(path)))


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def first_records(path: Path, count: int = 20) -> list[Record]:
    """The objects among the first lines of a file, to tell what it is; none where it cannot be read."""
    found: list[Record] = []
    try:
        for line in lines_in(path):
            if line.number > count:
                break
            if (record := _loaded(line.raw)) is not None:
                found.append(record)
    except OSError:
        return []
    return found


def text_of_file(path: Path) -> str:
    """The beginning of a small file that stands beside a transcript; empty where it cannot be read."""
    try:
        with path.open("rb") as file:
            return decoded(file.read(_SMALL_BYTES))
    except OSError:
        return ""


def record_of_file(path: Path) -> Record:
    """The object in a small file that stands beside a transcript, else an empty one."""
    return _loaded(text_of_file(path)) or {}


def _loaded(raw: str) -> Record | None:
    try:
        return load(raw)
    except RecursionError:
        return None
