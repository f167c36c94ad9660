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
from everkept.domain.review.shortlist import Shortlist, letters_of
from everkept.domain.review.values import EVIDENCE_MAX, READ_CHARS, TARGET_KINDS, KnownPage, Quote
from everkept.domain.review.wish import Wish, wish_of
from everkept.domain.text import query_terms

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


def lines_of(page: KnownPage) -> tuple[str, ...]:
    """What a page says, a line at a time, without its marks: no quotes of its sources."""
    return _lines(page.body[:READ_CHARS])


@lru_cache(maxsize=1024)
def _lines(body: str) -> tuple[str, ...]:
    """Kept, since every review of a project looks at the same pages."""
    lines = ((line, line.lstrip()) for line in body.splitlines())
    return tuple(plain_line(line) for line, text in lines if text and not text.startswith((">", "```", "~~~")))


def plain_line(line: str) -> str:
    """Without the marks of a list or a heading."""
    return _MARKUP.sub("", line).strip()


def wishes_of(page: KnownPage, about: Shortlist | None = None) -> Iterator[Line]:
    """Its lines that want something; `about`: only of those that may hold enough of some stems."""
    for line, letters in _lettered(page.body[:READ_CHARS]):
        if about is None or about.may_hold(letters):
            wishes = (wish_of(sentence) for sentence in sentences(line))
            yield from (Line(page, line, wish) for wish in wishes if wish.tells)


@lru_cache(maxsize=1024)
def _lettered(body: str) -> tuple[tuple[str, str], ...]:
    """(line, its letters). Kept, as the lines are."""
    return tuple((line, letters_of(line)) for line in _lines(body))


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

    def find(self, slug: str) -> KnownPage | None:
        return self._by_slug.get(slug)

    def says(self, wish: Wish) -> KnownPage | None:
        """The page that wants the same, in whatever words."""
        return next((line.page for line in self._about(wish) if line.wish.is_like(wish)), None)

    def contradicting(self, wish: Wish) -> Line | None:
        """The line of a rule that wants the opposite."""
        return next((one for one in self._about(wish) if one.page.kind == "rule" and one.wish.contradicts(wish)), None)

    def _about(self, wish: Wish) -> Iterator[Line]:
        """All lines whose wish may overlap with this one."""
        shortlist = Shortlist(wish.terms, wish.common_least)
        return (line for page in self.pages for line in wishes_of(page, shortlist))

    def holding(self, texts: Sequence[str]) -> KnownPage | None:
        """The page in which nearly all of these stand verbatim, such as the steps of a procedure."""
        held = ((sum(text in page.body for text in texts), page) for page in self.pages)
        return next((page for count, page in held if count >= _SAYS * len(texts)), None)

    def saying(self, text: str) -> KnownPage | None:
        """The page that has nearly all words of the text."""
        wanted = frozenset(query_terms(text))
        return next((page for page in self._holding(wanted, _SAYS) if _share(wanted, page) >= _SAYS), None)

    def about(self, wanted: frozenset[str], kind: str) -> KnownPage | None:
        """The page of this kind that has most of these word stems, and more than half of them."""
        if len(wanted) < _ABOUT_MIN:
            return None
        shares = [(_share(wanted, page), page) for page in self._holding(wanted, _BEARS) if page.kind == kind]
        best = max(shares, key=lambda one: (one[0], -one[1].id), default=None)
        return best[1] if best is not None and best[0] >= _BEARS else None

    def _holding(self, wanted: frozenset[str], share: float) -> Iterator[KnownPage]:
        """All pages that may have this share of the stems."""
        shortlist = Shortlist(wanted, share * len(wanted))
        return (page for page in self.pages if shortlist.may_hold(_letters(page.title, page.body)))

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
def _letters(title: str, body: str) -> str:
    return letters_of(f"{title}\n{body[:READ_CHARS]}")


@lru_cache(maxsize=1024)
def terms_of(title: str, body: str) -> frozenset[str]:
    return frozenset(query_terms(f"{title}\n{body[:READ_CHARS]}"))
