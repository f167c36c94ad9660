"""Pages of which all files and commands that they name are gone.

Judged only where the checkout is, on its default branch, and twice at least a day apart: a branch that lacks a file, or
a checkout in the middle of a rebase, says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, cast

from everkept.domain.command_line import program_words, steps_of
from everkept.domain.review.known import is_target, lines_of, sources_in
from everkept.domain.review.values import Draft, KnownPage, Observation, Quote, TargetKind
from everkept.domain.review.wish import wish_of

APART_US: Final = 24 * 3_600 * 1_000_000
CONFIDENCE: Final = 0.6
_NAMES_SHOWN: Final = 3
_CODE: Final = re.compile(r"`([^`\n]{1,200})`")
_FILE: Final = re.compile(
    r"(?:\./)?(?:[\w.@+-]+/)*[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,5}|(?:\./)?(?:[\w.@+-]+/)+[\w.@+-]+/?"
)
_VERSION: Final = re.compile(r"v?\d+(?:\.\d+)*[\w.-]*")
_RUNNERS: Final = frozenset("python python3 node bash sh zsh ruby perl php deno tsx source".split())
_SCRIPTS: Final = frozenset({"npm", "pnpm", "yarn", "bun"})


@dataclass(frozen=True, slots=True, order=True)
class Named:
    """What a page names: a file, relative to the checkout's folder, or a task that the checkout defines."""

    kind: Literal["file", "task"]
    text: str
    """The path; of a task how it is run: `make lint`, `npm run build`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """A page of which nothing that it names was found."""

    page: int
    version: int
    names: tuple[Named, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What was found when a checkout was looked at, on its default branch."""

    at_us: int
    gone: tuple[Gone, ...]


def look_at(
    pages: Sequence[KnownPage], exists: Callable[[Named], bool | None], *, at_us: int, branch: str | None,
    default: str | None,
) -> Look | None:  # fmt: skip
    """`exists`: of one name, None where it cannot be told. None where the checkout is not on its default branch."""
    if branch is None or branch != default:
        return None
    return Look(at_us=at_us, gone=tuple(_gone(pages, exists)))


def _gone(pages: Sequence[KnownPage], exists: Callable[[Named], bool | None]) -> Iterator[Gone]:
    for page in pages:
        names = names_in(page) if is_target(page) else ()
        if names and all(exists(name) is False for name in names):
            yield Gone(page=page.id, version=page.version, names=names)


def stale_drafts(before: Look, now: Look, pages: Sequence[KnownPage], rejected: frozenset[str]) -> tuple[Draft, ...]:
    """Proposals to retire what was gone both times, in the version that it has; none where a day has not passed."""
    if now.at_us - before.at_us < APART_US:
        return ()
    was = {(gone.page, gone.version) for gone in before.gone}
    by_id = {page.id: page for page in pages}
    twice = [gone for gone in now.gone if (gone.page, gone.version) in was and gone.page in by_id]
    drafts = [_retired(by_id[gone.page], gone) for gone in twice if by_id[gone.page].version == gone.version]
    return tuple(draft for draft in drafts if draft.fingerprint not in rejected)


def names_in(page: KnownPage) -> tuple[Named, ...]:
    """Files and tasks in its code spans; not in lines that forbid something, for what they name need not be there."""
    spans = (span for line in lines_of(page) if not wish_of(line).unwanted for span in _CODE.findall(line))
    return tuple(dict.fromkeys(name for span in spans for name in _names(span.strip())))


def _names(span: str) -> Iterator[Named]:
    if "<" in span or "*" in span or "://" in span or span.startswith(("/", "~", "-", "@")):
        return
    if " " not in span:
        if _FILE.fullmatch(span) and not _VERSION.fullmatch(span):
            yield _file(span)
        return
    for step in steps_of(span):
        words = [word.text for word in program_words(step) if not word.dynamic]
        yield from _of_command(words)


def _of_command(words: Sequence[str]) -> Iterator[Named]:
    if not words:
        return
    first, operands = words[0], [word for word in words[1:] if not word.startswith("-")]
    if "/" in first and not first.startswith(("/", "~")):
        yield _file(first)
    elif first in _RUNNERS and "-m" not in words and "-c" not in words and operands and _FILE.fullmatch(operands[0]):
        yield _file(operands[0])
    elif first == "make" and operands and "=" not in operands[0]:
        yield Named("task", f"make {operands[0]}")
    elif first in _SCRIPTS and len(operands) > 1 and operands[0] == "run":
        yield Named("task", f"{first} run {operands[1]}")


def _file(path: str) -> Named:
    return Named("file", path.removeprefix("./").rstrip("/"))


def _retired(page: KnownPage, gone: Gone) -> Draft:
    more = len(gone.names) - _NAMES_SHOWN
    shown = ", ".join(f"`{name.text}`" for name in gone.names[:_NAMES_SHOWN]) + (
        f" and {more} more" if more > 0 else ""
    )
    shape = f"gone: {' '.join(name.text for name in sorted(gone.names))}"
    return Draft(
        action="retire", kind=cast(TargetKind, page.kind), slug=page.slug, title=page.title, body="",
        base=page.version, confidence=CONFIDENCE, evidence=sources_in(page),
        why=f"All that it names is gone from the default branch: {shown}, looked for twice, a day apart.",
        signature=Observation(kind="error", shape=shape, quote=Quote(stream=0, seq=0, text="")).signature,
    )  # fmt: skip
