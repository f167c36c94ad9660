"""Importers of chat exports: pure parsing, no store. `detect` picks the parser by what is in the file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from everkept.capture.importers.jsonl import LINE_MAX_BYTES, conversation_of, load_line, parse_jsonl, read_jsonl
from everkept.capture.importers.locomo import is_locomo, parse_locomo
from everkept.capture.importers.parsed import (
    ParsedImport,
    ParsedMessage,
    ParsedThread,
    Parser,
    PlacedMessage,
    Tally,
    collect,
)
from everkept.errors import InvalidInput

__all__ = [
    "ParsedImport",
    "ParsedMessage",
    "ParsedThread",
    "Parser",
    "PlacedMessage",
    "Tally",
    "collect",
    "detect",
    "parse_jsonl",
    "parse_locomo",
    "read_jsonl",
]

DOCUMENT_MAX_BYTES = 256 * 1_048_576
"""A JSON document is read whole; above this size only JSONL is."""
_LINES_LOOKED_AT = 20


def detect(path: Path) -> Parser:
    """The parser for what the file holds, whatever its name. An empty file is an empty JSONL export.

    Raises InvalidInput where no parser fits, with what to do about it, and OSError where the file cannot be read.
    """
    lines = _first_lines(path)
    values = [value for line in lines if (value := _value_of(line)) is not None]
    if values and is_locomo(values[0]):
        return parse_locomo
    # A document spread over lines has fragments for lines (`[`, `{}`, `"a",`), and no message among them.
    if not lines or any(_looks_like_a_line(value) for value in values):
        return parse_jsonl
    document = _document(path)
    if is_locomo(document):
        return parse_locomo
    if document is not None and conversation_of(document) is not None:
        raise InvalidInput("one JSON document over several lines; write one message a line first: `jq -c '.[]' FILE`")
    raise InvalidInput("not a chat export that can be read: expected JSONL (one message a line) or a LoCoMo document")


def _first_lines(path: Path) -> list[bytes]:
    """The first lines that are not blank, without a byte order mark."""
    lines: list[bytes] = []
    with path.open("rb") as file:
        while len(lines) < _LINES_LOOKED_AT and (raw := file.readline(LINE_MAX_BYTES)):
            line = raw.removeprefix(b"\xef\xbb\xbf").strip()
            if line:
                lines.append(line)
    return lines


def _value_of(line: bytes) -> Any:
    try:
        return load_line(line)
    except InvalidInput:
        return None


def _looks_like_a_line(value: Any) -> bool:
    """True for an object with fields, or a list of such."""
    if isinstance(value, list):
        return bool(value) and isinstance(value[0], Mapping)
    return isinstance(value, Mapping) and bool(value)


def _document(path: Path) -> Any:
    """The file as one JSON value, None where it is not one or too large to be read whole."""
    if path.stat().st_size > DOCUMENT_MAX_BYTES:
        return None
    return _value_of(path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
