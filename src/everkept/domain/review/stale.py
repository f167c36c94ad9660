"""Pages that name files and commands which are gone.

Judged only where the checkout is, on its default branch, and twice at least a day apart: a branch that lacks a file, or
a checkout in the middle of a rebase, says nothing. Where all is gone that a page names, it is proposed to go; where all
is gone that some of its lines name, the section without them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, cast

from everkept.domain.command_line import program_words, steps_of
from everkept.domain.pages import Section, sections_of
from everkept.domain.review.known import is_target, lines_of, plain_line, sources_in
from everkept.domain.review.values import Action, Draft, KnownPage, Observation, Quote, TargetKind
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


def stale_draft(page: KnownPage, gone: Collection[Named]) -> Draft | None:
    """What is proposed where these of its names were gone twice, a day apart; None where nothing follows from that.

    A pinned page stays as it is.
    """
    names = names_in(page)
    lost = [name for name in names if name in gone]
    if not lost or not is_target(page):
        return None
    if len(lost) == len(names):
        return _draft(page, "retire", f"All that it names is gone: {_listed(lost)}", lost)
    shorter = next(filter(None, (_without_lost(one, gone) for one in sections_of(page.title, page.body))), None)
    if shorter is None:
        return None
    section, body, dropped = shorter
    return _draft(page, "replace_section", f"What lines of it name is gone: {_listed(dropped)}", dropped, section, body)


def _without_lost(section: Section, gone: Collection[Named]) -> tuple[Section, str, Sequence[Named]] | None:
    """(the section, its text without the lines whose names are all gone, those names), if there are any, and any text
    is left. The quotes below such a line go with it."""
    kept: list[str] = []
    dropped: list[Named] = []
    drops = False
    for line in section.body.splitlines():
        if not line.lstrip().startswith(">"):
            names = list(_names_in_line(plain_line(line)))
            drops = bool(names) and all(name in gone for name in names)
            dropped += names if drops else []
        if not drops:
            kept.append(line)
    body = "\n".join(kept)
    says = any(line.strip() and not line.lstrip().startswith(">") for line in kept)
    return (section, body, list(dict.fromkeys(dropped))) if dropped and says else None


def _listed(names: Sequence[Named]) -> str:
    more = len(names) - _NAMES_SHOWN
    shown = ", ".join(f"`{name.text}`" for name in names[:_NAMES_SHOWN])
    return f"{shown} and {more} more" if more > 0 else shown


def _draft(
    page: KnownPage, action: Action, found: str, lost: Sequence[Named], section: Section | None = None, body: str = ""
) -> Draft:
    shape = f"gone: {' '.join(name.text for name in sorted(lost))}"
    return Draft(
        action=action, kind=cast(TargetKind, page.kind), slug=page.slug, title=page.title, body=body,
        section="" if section is None else section.anchor,
        section_hash="" if section is None else section.text_hash, base=page.version, confidence=CONFIDENCE,
        evidence=sources_in(page), why=f"{found}, looked for twice on the default branch, a day apart.",
        signature=Observation(kind="error", shape=shape, quote=Quote(stream=0, seq=0, text="")).signature,
    )  # fmt: skip


def names_in(page: KnownPage) -> tuple[Named, ...]:
    """Files and tasks in its code spans; not in lines that forbid something, for what they name need not be there."""
    return tuple(dict.fromkeys(name for line in lines_of(page) for name in _names_in_line(line)))


def _names_in_line(line: str) -> Iterator[Named]:
    spans = _CODE.findall(line)
    if spans and not wish_of(line).unwanted:
        for span in spans:
            yield from _names(span.strip())


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
