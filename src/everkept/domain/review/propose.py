"""What to propose after a session, by rule: only what several sessions showed, and no page says yet. Pure, no model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final, NamedTuple

from everkept.domain.digest.clip import code
from everkept.domain.pages import sections_of
from everkept.domain.review.corrections import DENIED
from everkept.domain.review.failures import error_of
from everkept.domain.review.known import Known, Line, is_target, section_with
from everkept.domain.review.pairs import pair_drafts
from everkept.domain.review.repeated import Repeated, each_once, wishes_repeated
from everkept.domain.review.signatures import without_placeholders
from everkept.domain.review.steps import chained, follows, merged
from everkept.domain.review.values import (
    READ_CHARS,
    TARGET_KINDS,
    Action,
    Draft,
    KnownPage,
    Observation,
    Refusal,
    Reviewed,
    Seen,
    TargetKind,
)
from everkept.domain.review.wish import wish_from
from everkept.domain.review.wording import (
    gotcha_statement,
    rule_slug,
    rule_statement,
    slug,
    sourced,
    steps_in,
    steps_text,
    title,
)
from everkept.domain.text import query_terms

DRAFTS_MAX: Final = 3
"""Of one session: who decides on them reads them."""
CORRECTED_SESSIONS_MIN: Final = 2
RECOVERED_SESSIONS_MIN: Final = 2
CURED_LEAST: Final = 0.75
"""Of the sessions that met an error, the share in which the same then worked."""
DENIED_SESSIONS_MIN: Final = 3
PROCEDURE_SESSIONS_MIN: Final = 3
TOGETHER_LEAST: Final = 0.6
"""Of the sessions that run the rarest step of a procedure, the share that goes through all of it."""

_Made = Draft | Refusal


def propose(
    own: Sequence[Observation], seen: Mapping[str, Seen], pages: Sequence[KnownPage], rejected: frozenset[str]
) -> Reviewed:
    """`seen`: by signature, those of `own` counted over all sessions of the project, this one among them; it may hold
    others, such as corrections in other words. `rejected`: fingerprints that a person turned down.

    A session that shows nothing gives nothing.
    """
    if not own:
        return Reviewed(observations=(), drafts=(), note="the session shows nothing that may come again")
    known = Known(pages)
    made = [
        *_rules(each_once(own, "correction", seen), seen, known, rejected),
        *_gotchas(own, seen, known, rejected),
        *_procedures(each_once(own, "procedure", seen), known, rejected),
        *(draft for draft in pair_drafts(known.pages) if draft.fingerprint not in rejected),
    ]
    drafts = _each_once(one for one in made if isinstance(one, Draft))
    return Reviewed(
        observations=tuple(own),
        drafts=tuple(islice(drafts, DRAFTS_MAX)),
        refused=tuple(one for one in made if isinstance(one, Refusal)),
        note="" if made else "nothing that it shows was seen in several sessions, or pages say it already",
    )


def _each_once(drafts: Iterable[Draft]) -> Iterable[Draft]:
    """One a page: two changes of one version would be at odds."""
    kept: dict[str, Draft] = {}
    for draft in drafts:
        kept.setdefault(draft.slug, draft)
    return kept.values()


# ---- corrections become rules


def _rules(own: Sequence[Seen], seen: Mapping[str, Seen], known: Known, rejected: frozenset[str]) -> Iterator[_Made]:
    for group in wishes_repeated(own, seen):
        if group.sessions >= CORRECTED_SESSIONS_MIN and not _is_contested(group, seen):
            yield from _rule(group, known, rejected)
    for one in own:
        if one.shape.startswith(DENIED) and one.sessions >= DENIED_SESSIONS_MIN:
            yield from _ask_first(Repeated((one,)), known, rejected)


def _is_contested(group: Repeated, seen: Mapping[str, Seen]) -> bool:
    """The opposite was wanted, too, since the session before the last in which this was. Minds change, and stay."""
    since = sorted({quote.stream for quote in group.quotes})[-CORRECTED_SESSIONS_MIN:][0]
    wish = wish_from(group.first.shape)
    others = (one for one in seen.values() if one.kind == "correction" and not one.shape.startswith(DENIED))
    against = (one for one in others if wish_from(one.shape).contradicts(wish))
    return any(quote.stream >= since for one in against for quote in one.quotes)


def _rule(group: Repeated, known: Known, rejected: frozenset[str]) -> Iterator[_Made]:
    wishes = [wish_from(one.shape) for one in group.seen]
    if any(known.says(wish) is not None for wish in wishes):
        return
    told = rule_statement(group)
    statement = f"{told} The user put this right in {group.sessions} sessions."
    why = f"In {group.sessions} sessions the user put the agent right in this."
    against = next(filter(None, (known.contradicting(wish) for wish in wishes)), None)
    if against is not None:
        yield from _replaced(group, against, sourced(statement, group.quotes[0]), why, rejected)
        return
    page = known.about(wishes[0].terms, "rule")
    names = [_Name(rule_slug(one), one.signature) for one in group.seen]
    words = _Words(title(told), sourced(statement, group.quotes[0]), why)
    yield from _written(group, "rule", page, names, words, known, rejected)


def _ask_first(group: Repeated, known: Known, rejected: frozenset[str]) -> Iterator[_Made]:
    command = group.first.detail
    told = f"Ask before you run {code(command)}."
    if known.saying(told) is not None:
        return
    why = f"In {group.sessions} sessions the user refused it without a word."
    body = sourced(f"{told} The user refused it in {group.sessions} sessions.", group.quotes[0])
    names = [_Name(slug(["ask", "before", command]), group.first.signature)]
    yield from _written(group, "rule", None, names, _Words(title(told), body, why), known, rejected)


def _replaced(group: Repeated, against: Line, words: str, why: str, rejected: frozenset[str]) -> Iterator[_Made]:
    """The rule that says the opposite gives way in its place."""
    page, section = against.page, section_with(against.page, against.text)
    if page.pinned:
        yield Refusal(what=f"rule {page.slug}", reason="the page that says the opposite is pinned")
    elif section is not None:
        lines = section.body.splitlines()
        at = next(place for place, line in enumerate(lines) if against.text in line)
        end = next(
            (place for place in range(at + 1, len(lines)) if not lines[place].lstrip().startswith(">")), len(lines)
        )
        draft = Draft(
            action="replace_section", kind="rule", slug=page.slug, title=page.title, section=section.anchor,
            body="\n".join([*lines[:at], words.rstrip("\n"), *lines[end:]]), section_hash=section.text_hash,
            base=page.version, why=f"{why} The page says the opposite.", confidence=group.confidence,
            signature=group.first.signature, evidence=group.quotes, alike=group.signatures,
        )  # fmt: skip
        if draft.fingerprint not in rejected:
            yield draft


# ---- errors with what then worked become gotchas


def _gotchas(
    own: Sequence[Observation], seen: Mapping[str, Seen], known: Known, rejected: frozenset[str]
) -> Iterator[_Made]:
    best: dict[str, tuple[Seen, Seen]] = {}
    errors = {one.shape: seen[one.signature] for one in own if one.kind == "error" and one.signature in seen}
    for cure in each_once(own, "recovery", seen):
        error = errors.get(error_of(cure.shape))
        if error is None or cure.sessions < max(RECOVERED_SESSIONS_MIN, CURED_LEAST * error.sessions):
            continue
        before = best.get(error.signature)
        if before is None or cure.sessions > before[1].sessions:
            best[error.signature] = error, cure
    for error, cure in best.values():
        yield from _gotcha(error, cure, known, rejected)


def _gotcha(error: Seen, cure: Seen, known: Known, rejected: frozenset[str]) -> Iterator[_Made]:
    """Its outcome is measured by the error: whether it is met less often."""
    statement = gotcha_statement(error, cure.detail, cure.sessions)
    program, _, rest = error.shape.partition(": ")
    told = without_placeholders(rest)
    page = known.find(slug([program, rest])) or known.about(frozenset(query_terms(told)), "gotcha")
    if known.saying(f"{told} {cure.detail}") is not None or (page is not None and cure.detail in page.body):
        return
    why = f"Met in {error.sessions} sessions; in {cure.sessions} of them the same then worked."
    names = [_Name(slug([program, rest]), error.signature)]
    words = _Words(title(f"{program}: {error.quotes[0].text}"), sourced(statement, cure.quotes[0]), why)
    yield from _written(Repeated((cure,)), "gotcha", page, names, words, known, rejected)


# ---- steps gone through again become procedures


def _procedures(own: Sequence[Seen], known: Known, rejected: frozenset[str]) -> Iterator[_Made]:
    alone = {one.detail: one.sessions for one in own if "\n" not in one.detail}
    for chain in _chains([one for one in own if "\n" in one.detail and _belongs_together(one, alone)]):
        steps = chained([one.detail.splitlines() for one in chain])
        group = Repeated(tuple(sorted(chain, key=lambda one: (-one.sessions, one.signature))))
        if known.holding(steps) is None:
            yield from _procedure(group, steps, known, rejected)


def _belongs_together(row: Seen, alone: Mapping[str, int]) -> bool:
    """In several sessions, and in most of those that ran its rarest step: else they stood together by chance."""
    rarest = min((alone.get(step, 0) for step in row.detail.splitlines()), default=0)
    return row.sessions >= PROCEDURE_SESSIONS_MIN and row.sessions > TOGETHER_LEAST * rarest


def _chains(rows: Sequence[Seen]) -> Iterator[list[Seen]]:
    """Rows each of which goes on where the one before it ends."""
    chain: list[Seen] = []
    for row in rows:
        if chain and not follows(row.detail.splitlines(), chain[-1].detail.splitlines()):
            yield chain
            chain = []
        chain.append(row)
    if chain:
        yield chain


def _procedure(group: Repeated, steps: Sequence[str], known: Known, rejected: frozenset[str]) -> Iterator[_Made]:
    sessions = min(one.sessions for one in group.seen)
    why = f"{sessions} sessions went through these steps in this order."
    names = [_Name(slug(one.detail.splitlines()), one.signature) for one in group.seen]
    longer = ((page, merged(steps_in(page.body), steps)) for page in known.pages if page.kind == "procedure")
    page, whole = next((one for one in longer if one[1]), (None, ()))
    if page is not None:
        words = _Words(page.title, "\n".join(steps_text(whole, sessions).splitlines()), why)
        yield from _longer(group, page, words, names, rejected)
        return
    words = _Words(title(f"Steps to {steps[-1]}"), steps_text(steps, sessions), why)
    yield from _written(group, "procedure", None, names, words, known, rejected)


def _longer(
    group: Repeated, page: KnownPage, words: _Words, names: Sequence[_Name], rejected: frozenset[str]
) -> Iterator[_Made]:
    """The page's own steps, with those that sessions go through before or after them."""
    section = next((one for one in sections_of(page.title, page.body) if steps_in(one.body)), None)
    if page.pinned or section is None:
        yield Refusal(what=f"procedure {page.slug}", reason="the page that has a part of these steps is pinned")
        return
    drafts = [
        replace(
            _draft("replace_section", "procedure", page.slug, words, page.version, group, name.signature),
            section=section.anchor, section_hash=section.text_hash,
        )
        for name in names
    ]  # fmt: skip
    if not any(draft.fingerprint in rejected for draft in drafts):
        yield drafts[0]


# ---- onto a page that is about it, or a new one


class _Name(NamedTuple):
    """Of the page that a signature would have for itself."""

    slug: str
    signature: str


class _Words(NamedTuple):
    title: str
    body: str
    why: str


def _written(
    group: Repeated, kind: TargetKind, page: KnownPage | None, names: Sequence[_Name], words: _Words, known: Known,
    rejected: frozenset[str],
) -> Iterator[_Made]:  # fmt: skip
    """Onto `page` if it can be read whole, or onto one of these names; else a new one. What was rejected under any of
    the names stays rejected."""
    named = next(filter(None, (known.find(name.slug) for name in names)), None)
    page = named if page is None or len(page.body) > READ_CHARS else page
    if page is not None and not is_target(page):
        reason = "the page about it is pinned" if page.pinned else f"a {page.kind} page has this name"
        yield Refusal(what=f"{kind} {page.slug}", reason=reason)
        return
    new = [_draft("create", kind, name.slug, words, None, group, name.signature) for name in names]
    target = kind if page is None else next(one for one in TARGET_KINDS if one == page.kind)
    drafts = new if page is None else [
        _draft("append", target, page.slug, words._replace(title=page.title), page.version, group, name.signature)
        for name in names
    ]  # fmt: skip
    if not any(draft.fingerprint in rejected for draft in (*new, *drafts)):
        yield drafts[0]


def _draft(
    action: Action, kind: TargetKind, slug: str, words: _Words, base: int | None, group: Repeated, signature: str
) -> Draft:
    return Draft(
        action=action, kind=kind, slug=slug, title=words.title, body=words.body, base=base, why=words.why,
        confidence=group.confidence, signature=signature, evidence=group.quotes, alike=group.signatures,
    )  # fmt: skip
