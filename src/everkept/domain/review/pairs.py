"""Pages that say the same twice, and rules that contradict each other: one of the two is proposed to go.

Nobody is asked to believe more than the pages say: the evidence is what the pages themselves name as their sources, and
where they name none, nothing is proposed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, cast

from everkept.domain.digest.clip import inert, one_line
from everkept.domain.review.known import Line, is_target, lines_of, section_with, sources_in, wishes_of
from everkept.domain.review.values import TARGET_KINDS, Draft, KnownPage, Observation, Quote, TargetKind

_CONFIDENCE: Final = 0.5
"""Which of two pages is right is for a person to say."""
_SHOWN_CHARS: Final = 160
_LINES_MAX: Final = 600
"""Of rules, the newest pages first."""


def pair_drafts(pages: Sequence[KnownPage]) -> Iterator[Draft]:
    """At most one a page; pinned pages stay."""
    gone: set[str] = set()
    for draft in (*_duplicates(pages), *_contradictions(pages)):
        if draft.slug not in gone:
            gone.add(draft.slug)
            yield draft


def _duplicates(pages: Sequence[KnownPage]) -> Iterator[Draft]:
    """The page that was there first stays."""
    first: dict[tuple[str, frozenset[str]], KnownPage] = {}
    for page in sorted(pages, key=lambda page: (not page.pinned, page.id)):
        said = frozenset(lines_of(page))
        if page.kind not in TARGET_KINDS or not said:
            continue
        before = first.setdefault((page.kind, said), page)
        if before is page or not is_target(page):
            continue
        if evidence := sources_in(page) or sources_in(before):
            yield _retired(
                page, f"The page {before.slug} says the same.", _signature(next(iter(sorted(said)))), evidence
            )


def _contradictions(pages: Sequence[KnownPage]) -> Iterator[Draft]:
    """The page that was changed last is taken to be right."""
    rules = sorted((page for page in pages if page.kind == "rule"), key=lambda page: -page.updated_at_us)
    lines = list(islice((line for page in rules for line in wishes_of(page)), _LINES_MAX))
    for newer, older in _opposed(lines):
        for stays, goes in ((newer, older), (older, newer)):
            evidence = sources_in(goes.page) or sources_in(stays.page)
            if is_target(goes.page) and evidence:
                yield _without(goes, stays, evidence)
                break


def _opposed(lines: Sequence[Line]) -> Iterator[tuple[Line, Line]]:
    """Pairs of lines of different pages of which one wants what the other refuses, in their order."""
    wanted: dict[str, list[int]] = {}
    for place, line in enumerate(lines):
        for term in line.wish.wanted:
            wanted.setdefault(term, []).append(place)
    pairs = {
        (min(place, other), max(place, other))
        for place, line in enumerate(lines)
        for term in line.wish.unwanted
        for other in wanted.get(term, ())
    }
    for place, other in sorted(pairs):
        one, two = lines[place], lines[other]
        if one.page is not two.page and one.wish.contradicts(two.wish):
            yield one, two


def _without(goes: Line, stays: Line, evidence: tuple[Quote, ...]) -> Draft:
    """The page goes if it says nothing else, else its line does."""
    page = goes.page
    why = f"It says “{_shown(goes.text)}”; the page {stays.page.slug} says “{_shown(stays.text)}”."
    signature = _signature(goes.wish.shape)
    section = section_with(page, goes.text)
    rest = [] if section is None else _lines_but(section.body, goes.text)
    if section is None or not any(line.strip() for line in rest):
        return _retired(page, why, signature, evidence)
    return Draft(
        action="replace_section", kind="rule", slug=page.slug, title=page.title, section=section.anchor,
        body="\n".join(rest), section_hash=section.text_hash, base=page.version, why=why, confidence=_CONFIDENCE,
        signature=signature, evidence=evidence,
    )  # fmt: skip


def _lines_but(body: str, text: str) -> list[str]:
    """The lines of a section but the one that says it, with its sources below it."""
    kept: list[str] = []
    dropping = False
    for line in body.splitlines():
        dropping = text in line or (dropping and line.lstrip().startswith(">"))
        if not dropping:
            kept.append(line)
    return kept


def _retired(page: KnownPage, why: str, signature: str, evidence: tuple[Quote, ...]) -> Draft:
    return Draft(
        action="retire", kind=cast(TargetKind, page.kind), slug=page.slug, title=page.title, body="",
        base=page.version, why=why, confidence=_CONFIDENCE, signature=signature, evidence=evidence,
    )  # fmt: skip


def _signature(shape: str) -> str:
    return Observation(kind="correction", shape=shape, quote=Quote(stream=0, seq=0, text="")).signature


def _shown(text: str) -> str:
    return inert(one_line(text, _SHOWN_CHARS))
