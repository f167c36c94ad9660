"""The part of a text that answers a question, where not all of it fits. Pure."""

from __future__ import annotations

from collections.abc import Callable

from everkept.domain.text import query_terms, terms


def excerpt(text: str, question: str, fits: Callable[[str], bool]) -> str:
    """The longest part that fits around the line with most words of the question, cuts marked "…"; "" if none does."""
    if fits(text):
        return text
    at = _place_of_match(text, question)
    least, most = 0, len(text) - 1
    while least < most:
        middle = (least + most + 1) // 2
        if fits(_window(text, at, middle)):
            least = middle
        else:
            most = middle - 1
    return _window(text, at, least) if least else ""


def _place_of_match(text: str, question: str) -> int:
    """Where the first of the question's words stands in the line that has most of them; 0 where none has any."""
    wanted = set(query_terms(question))
    best, most, start = 0, 0, 0
    for line in text.splitlines(keepends=True):
        found = len(wanted & set(terms(line)))
        if found > most:
            best, most = start + _first_word(line, wanted), found
        start += len(line)
    return best


def _first_word(line: str, wanted: set[str]) -> int:
    at = 0
    for word in line.split(" "):
        if wanted & set(terms(word)):
            return at
        at += len(word) + 1
    return 0


def _window(text: str, at: int, length: int) -> str:
    """`length` characters, a quarter of them before `at`."""
    start = max(0, min(at - length // 4, len(text) - length))
    end = start + length
    return ("…" if start else "") + text[start:end].strip() + ("…" if end < len(text) else "")
