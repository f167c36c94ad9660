"""What pages say already: a reviewer looks here before it proposes, so that it patches what exists."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from everkept.domain.digest.turns import sentences
from everkept.domain.pages import Section, sections_of
from everkept.domain.review.quotes import short
from everkept.domain.review.values import EVIDENCE_MAX, TARGET_KINDS, KnownPage, Quote
from everkept.domain.review.wish import Wish, wish_of
from everkept.domain.text import query_terms

READ_CHARS: Final = 16_000
"""Of a page: what is longer is read as far as this."""
_SAYS: Final = 0.8
_BEARS: Final = 0.6
_ABOUT_MIN: Final = 3
"""Words that a page must share to be about the same."""
_SOURCE: Final = re.compile(r"^\s*> “(?P<quote>.*)” — evt_(?P<stream>\d+)_(?P<seq>\d+)$")
_MARKUP: Final = re.compile(r"^\s*(?:[-*+]|\d{1,2}[.)]|#{1,6})\s+")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a page that wants something."""

    page: KnownPage
    text: str
    wish: Wish


def lines_of(page: KnownPage) -> Iterator[str]:
    """What a page says, a line at a time, without its marks: no quotes of its sources."""
    return _lines(page.body[:READ_CHARS])


def _lines(body: str) -> Iterator[str]:
    for line in body.splitlines():
        if line.strip() and not line.lstrip().startswith((">", "```", "~~~")):
            yield _MARKUP.sub("", line).strip()


def wishes_of(page: KnownPage) -> list[Line]:
    return [Line(page, line, wish) for line, wish in _wishes_in(page.body[:READ_CHARS])]


@lru_cache(maxsize=1024)
def _wishes_in(body: str) -> tuple[tuple[str, Wish], ...]:
    """(line, what it wants). Kept, since every review of a project looks at the same pages."""
    found = ((line, wish_of(sentence)) for line in _lines(body) for sentence in sentences(line))
    return tuple((line, wish) for line, wish in found if wish.tells)


def section_with(page: KnownPage, line: str) -> Section | None:
    return next((found for found in sections_of(page.title, page.body) if line in found.body), None)


def sources_in(page: KnownPage) -> tuple[Quote, ...]:
    """The evidence that a page names."""
    found = filter(None, (_SOURCE.match(line) for line in page.body.splitlines()))
    return tuple(Quote(stream=int(one["stream"]), seq=int(one["seq"]), text=short(one["quote"])) for one in found)[
        :EVIDENCE_MAX
    ]


class Known:
    """The pages of a project, searched by wishes and by words."""

    def __init__(self, pages: Sequence[KnownPage]) -> None:
        self.pages = tuple(pages)
        self._by_slug = {page.slug: page for page in pages}
        self._lines: list[Line] | None = None

    def find(self, slug: str) -> KnownPage | None:
        return self._by_slug.get(slug)

    def lines(self) -> list[Line]:
        if self._lines is None:
            self._lines = [line for page in self.pages for line in wishes_of(page)]
        return self._lines

    def says(self, wish: Wish) -> KnownPage | None:
        """The page that wants the same, in whatever words."""
        return next((line.page for line in self.lines() if line.wish.is_like(wish)), None)

    def contradicting(self, wish: Wish) -> Line | None:
        """The line of a rule that wants the opposite."""
        return next((one for one in self.lines() if one.page.kind == "rule" and one.wish.contradicts(wish)), None)

    def holding(self, texts: Sequence[str]) -> KnownPage | None:
        """The page in which nearly all of these stand verbatim, such as the steps of a procedure."""
        held = ((sum(text in page.body for text in texts), page) for page in self.pages)
        return next((page for count, page in held if count >= _SAYS * len(texts)), None)

    def saying(self, text: str) -> KnownPage | None:
        """The page that has nearly all words of the text."""
        wanted = frozenset(query_terms(text))
        return next((page for page in self.pages if _share(wanted, page) >= _SAYS), None)

    def about(self, wanted: frozenset[str], kind: str) -> KnownPage | None:
        """The page of this kind that has most of these word stems, and more than half of them."""
        if len(wanted) < _ABOUT_MIN:
            return None
        shares = [(_share(wanted, page), page) for page in self.pages if page.kind == kind]
        best = max(shares, key=lambda one: (one[0], -one[1].id), default=None)
        return best[1] if best is not None and best[0] >= _BEARS else None

    def bearing(self, text: str, most: int) -> list[KnownPage]:
        """Pages that share words with the text, those that share most first: what a model is shown of the store."""
        wanted = frozenset(query_terms(text))
        shared = [(len(wanted & terms_of(page.title, page.body)), page) for page in self.pages]
        ranked = sorted((one for one in shared if one[0]), key=lambda one: (-one[0], -one[1].id))
        return [page for _, page in ranked[:most]]


def is_target(page: KnownPage) -> bool:
    """Whether a proposal may change it at all."""
    return page.kind in TARGET_KINDS and not page.pinned


def _share(wanted: frozenset[str], page: KnownPage) -> float:
    return len(wanted & terms_of(page.title, page.body)) / len(wanted) if wanted else 0.0


@lru_cache(maxsize=1024)
def terms_of(title: str, body: str) -> frozenset[str]:
    return frozenset(query_terms(f"{title}\n{body[:READ_CHARS]}"))
