"""The text of a knowledge page: statements, each with the words it rests on and the event that they stand in.

    - Tokens expire after 15 minutes.
      > “make the tokens expire after 15 minutes” — evt_3_7

Statements are put into the section that they name. All else in a page, whoever wrote it, stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from everkept.domain.digest.clip import inert, one_line
from everkept.domain.distilled import Statement
from everkept.domain.ids import event_id
from everkept.domain.pages import slug_of
from everkept.domain.predicates import normalise_text

QUOTE_SHOWN_CHARS: Final = 300
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t]*#*$")
_FENCE = re.compile(r"^[ \t]{0,3}(```+|~~~+)")
_STATEMENT = re.compile(r"^- (?P<text>.+)$")
_SOURCE = re.compile(r"^ {2}> “.*” — evt_\d+_\d+$")


@dataclass(slots=True)
class _Part:
    """What stands under one heading, with its line; the first part of a page has none."""

    heading: str
    lines: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        found = _HEADING.match(self.heading)
        return "" if found is None else slug_of(found[1])

    @property
    def text(self) -> str:
        return "\n".join([*([self.heading, ""] if self.heading else []), *_trimmed(self.lines)])


def with_statements(body: str, statements: Iterable[Statement], *, stream: int) -> str:
    """The page's body with these statements in it.

    Each goes to the end of its section, made at the end of the page where there is none. One that says what another of
    the page says, or replaces it, takes its place.
    """
    parts = _parts(body)
    for statement in statements:
        lines = _lines(statement, stream)
        said = {normalise_text(lines[0].removeprefix("- "))}
        if statement.replaces:
            said.add(normalise_text(inert(one_line(statement.replaces, 2_000)).removeprefix("- ")))
        for part in parts:
            _drop(part, said)
        part = _part_of(parts, statement.section)
        part.lines = [*_trimmed(part.lines), *([""] if part.lines and not _ends_list(part.lines) else []), *lines]
    return "\n\n".join(part.text for part in parts if part.heading or _trimmed(part.lines)) + "\n"


def _lines(statement: Statement, stream: int) -> list[str]:
    quote = inert(one_line(statement.quote, QUOTE_SHOWN_CHARS))
    return [f"- {inert(statement.text)}", f"  > “{quote}” — {event_id(stream, statement.seq)}"]


def _parts(body: str) -> list[_Part]:
    parts, fence = [_Part("")], ""
    for line in body.splitlines():
        mark = _FENCE.match(line)
        if mark is not None and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        if not fence and _HEADING.match(line):
            parts.append(_Part(line))
        else:
            parts[-1].lines.append(line)
    return parts


def _part_of(parts: list[_Part], section: str) -> _Part:
    name = slug_of(section) if section else ""
    found = next((part for part in parts if part.name == name), None)
    if found is None:
        found = _Part(f"## {inert(section)}")
        parts.append(found)
    return found


def _drop(part: _Part, said: set[str]) -> None:
    """Take out the statements of ours that say one of these; what has no source below it is somebody else's."""
    kept: list[str] = []
    at = 0
    while at < len(part.lines):
        ours = _STATEMENT.match(part.lines[at])
        sourced = ours is not None and at + 1 < len(part.lines) and _SOURCE.match(part.lines[at + 1])
        if ours is not None and sourced and normalise_text(ours["text"]) in said:
            at += 2
            continue
        kept.append(part.lines[at])
        at += 1
    part.lines = kept


def _trimmed(lines: list[str]) -> list[str]:
    start = next((at for at, line in enumerate(lines) if line.strip()), len(lines))
    end = next((at for at in range(len(lines), start, -1) if lines[at - 1].strip()), start)
    return lines[start:end]


def _ends_list(lines: list[str]) -> bool:
    kept = _trimmed(lines)
    return not kept or bool(_SOURCE.match(kept[-1]) or _STATEMENT.match(kept[-1]))
