"""Pages: a project's knowledge in markdown, its sections, its links, and the front matter that it has on disk."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, get_args

PageKind = Literal["session", "decision", "gotcha", "procedure", "concept", "rule", "skill", "note", "slot"]
PAGE_KINDS: Final[tuple[PageKind, ...]] = get_args(PageKind)
MAINTAINED: Final[frozenset[str]] = frozenset(PAGE_KINDS) - {"session"}
"""Kinds that somebody keeps true; a session's page only tells what happened."""
SLUG_CHARS_MAX: Final = 120
BODY_CHARS_MAX: Final = 200_000
TITLE_CHARS_MAX: Final = 200
SECTIONS_MAX: Final = 200
_WORD = re.compile(r"[^\w]+", re.UNICODE)
_HEADING = re.compile(r"^(#{1,6})[ \t]+(.+?)[ \t]*#*$")
_FENCE = re.compile(r"^[ \t]{0,3}(```+|~~~+)")
_FRONT = re.compile(r"\A---[ \t]*\n(?:[A-Za-z_][\w-]*:(?: .*)?\n|[ \t]+\S.*\n|- .*\n)*---[ \t]*(?:\n|\Z)")
_LINK = re.compile(r"\[\[([^\[\]|#\n]{1,200})(?:[#|][^\[\]\n]*)?\]\]")


class Section(NamedTuple):
    """What stands under one heading; `anchor` is unique in its page. The text before any heading has the title's."""

    anchor: str
    heading: str
    body: str

    @property
    def text_hash(self) -> str:
        return hashlib.blake2b(f"{self.heading}\n{self.body}".encode(), digest_size=12).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class PageText:
    """A page as it is written: what makes one version differ from another."""

    title: str
    body: str

    @property
    def content_hash(self) -> str:
        return hashlib.blake2b(f"{self.title}\0{self.body}".encode(), digest_size=16).hexdigest()


def slug_of(text: str) -> str:
    """`The HTTP door: limits!` → `the-http-door-limits`. Letters of any script stay; never empty."""
    folded = unicodedata.normalize("NFKC", text).lower()
    slug = _WORD.sub("-", folded).strip("-_")[:SLUG_CHARS_MAX].strip("-_")
    return slug or hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


class Span(NamedTuple):
    """A section and where the text under its heading stands in the page: `body[start:end]`, whole lines."""

    section: Section
    start: int
    end: int


def sections_of(title: str, body: str) -> list[Section]:
    """The page cut at its headings, outside code fences, without front matter; empty sections are left out."""
    found: list[Section] = []
    taken: dict[str, int] = {}
    parts = [(part.heading, part.text) for part in _cut(title, body) if part.text.strip()]
    for heading, text in [*parts[:SECTIONS_MAX], *_together(parts[SECTIONS_MAX:])]:
        found.append(Section(_free(slug_of(heading), taken), heading, text.strip("\n")))
    return found


def spans_of(title: str, body: str) -> list[Span]:
    """The sections of the page with their places; not those that `sections_of` puts together at the end."""
    places = [(part.start, part.end) for part in _cut(title, body) if part.text.strip()][:SECTIONS_MAX]
    return [Span(section, *place) for section, place in zip(sections_of(title, body), places, strict=False)]


def _together(parts: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """What has more headings than anybody reads is one section from there on."""
    return [(parts[0][0], "\n".join(f"{heading}\n{text}" for heading, text in parts))] if parts else []


class _Part(NamedTuple):
    heading: str
    text: str
    start: int
    end: int


def _cut(title: str, body: str) -> Iterator[_Part]:
    front = _FRONT.match(body)
    start = at = 0 if front is None else front.end()
    heading, lines, fence = title, list[str](), ""
    for whole in body[start:].splitlines(keepends=True):
        line = whole.splitlines()[0]
        mark = _FENCE.match(line)
        if mark is not None and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        found = None if fence else _HEADING.match(line)
        if found is not None:
            yield _Part(heading, "\n".join(lines), start, at)
            heading, lines, start = found[2], [], at + len(whole)
        else:
            lines.append(line)
        at += len(whole)
    yield _Part(heading, "\n".join(lines), start, at)


def _free(anchor: str, taken: dict[str, int]) -> str:
    """The anchor, with a number where it was taken before."""
    name = anchor
    while name in taken:
        taken[anchor] += 1
        name = f"{anchor}-{taken[anchor]}"
    taken[name] = 1
    return name


def without_lines(body: str, added: str) -> str:
    """The text without the lines of another, wherever they stand, and else to the byte as it was.

    Headings and what has no letters stay.
    """
    gone = {line.strip() for line in added.splitlines() if not line.startswith("#") and any(map(str.isalnum, line))}
    return "".join(line for line in body.splitlines(keepends=True) if line.strip() not in gone)


def links_of(body: str) -> list[str]:
    """Slugs that `[[wikilinks]]` name, in their order, each once."""
    return list(dict.fromkeys(slug_of(found) for found in _LINK.findall(body)))
