"""Private keys in PEM: from the first line to the last, to the end where the last is missing, and from a tail alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_BEGIN: Final = re.compile(rb"-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----")
_END: Final = re.compile(rb"-----END[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----")
_KEY_BODY: Final = re.compile(
    rb"""[\s"'`+,\\|>#*;:.()-]*"""  # what stands between lines in code, diffs, numbered and quoted listings
    rb"""(?:\d{1,6}[\s:|-]+)?"""
    rb"""(?:[A-Z][A-Za-z-]{3,20}:\ ?[^\r\n]{0,100}[\s"'`+,|>#]+){0,5}"""  # Proc-Type, DEK-Info, Version
    rb"""(?:[A-Za-z0-9+/=]{16}|[A-Za-z0-9+/=]{1,15}\s*\Z|\x01)"""
)
_PIECE: Final = re.compile(rb"[^\s\"'`,|\\]+")
_BASE64: Final = re.compile(rb"\+?[A-Za-z0-9+/]{16,}={0,2}|[A-Za-z0-9+/]{1,76}={1,2}")
_LAST_PIECE: Final = re.compile(rb"[A-Za-z0-9+/=]+")
_TAIL_MAX: Final = 32_768
"""Bytes before a last line that may be its key: more than any private key has."""


def find_private_keys(image: bytes) -> Iterator[tuple[int, int]]:
    """Where private keys are. A first line that is only spoken of, with no key after it, is none."""
    done = 0
    while (begin := _BEGIN.search(image, done)) is not None:
        yield from _tails(image, done, begin.start())
        if _KEY_BODY.match(image, begin.end()) is None:
            done = begin.end()
            continue
        end = _END.search(image, begin.end())
        done = len(image) if end is None else end.end()
        yield begin.start(), done
    yield from _tails(image, done, len(image))


def _tails(image: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Last lines of keys whose first lines were cut away."""
    for last in _END.finditer(image, start, end):
        first = _first_of_body(image, max(start, last.start() - _TAIL_MAX), last.start())
        if first is not None:
            yield first, last.end()


def _first_of_body(image: bytes, start: int, end: int) -> int | None:
    """Where the run of base64 that ends at `end` begins; None if there is none."""
    first, is_key = None, False
    for number, piece in enumerate(reversed(list(_PIECE.finditer(image, start, end)))):
        if not (_LAST_PIECE if number == 0 else _BASE64).fullmatch(piece[0]):
            break
        first, is_key = piece.start(), is_key or len(piece[0]) >= 16
    return first if is_key else None
