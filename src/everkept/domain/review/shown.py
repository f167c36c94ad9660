"""What a model is shown to review a session: its digest and lines, what several sessions showed, pages about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from everkept.domain.digest import SessionEvent, digest_session
from everkept.domain.distilled import Source
from everkept.domain.review.known import Known
from everkept.domain.review.values import TARGET_KINDS, KnownPage, Observation, Seen
from everkept.domain.session_lines import SessionLines, names_in, session_lines, sources_of

PAGES_MAX: Final = 8
REPEATED_MAX: Final = 12
SESSIONS_MIN: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    stream: int
    lines: SessionLines
    repeated: Mapping[str, Seen]
    """By the id that the model knows it by (`o1`), what most sessions showed first."""
    pages: tuple[KnownPage, ...]
    """Of the kinds that proposals change; the model may change these and no others."""
    sources: tuple[Source, ...]
    """What quotes may be taken from."""
    names: tuple[str, ...]
    """What occurred in the session by name."""


def shown_of(
    stream: int, events: Sequence[SessionEvent], own: Sequence[Observation], seen: Mapping[str, Seen],
    pages: Sequence[KnownPage],
) -> Shown:  # fmt: skip
    """`pages`: all of the project, which are searched by the words of what was observed and asked.

    Rows of steps and single steps are counted, not shown: the digest has the commands.
    """
    digest = digest_session(events)
    mine = {one.signature for one in own if one.kind != "procedure" or one.detail.count("\n") > 1}
    counted = [one for one in seen.values() if one.signature in mine and one.sessions >= SESSIONS_MIN]
    counted.sort(key=lambda one: (-one.sessions, one.signature))
    words = [quote.text for one in counted for quote in one.quotes[:2]] + [prompt.text for prompt in digest.prompts]
    targets = [page for page in pages if page.kind in TARGET_KINDS]
    return Shown(
        stream=stream, lines=session_lines(events, digest),
        repeated={f"o{number}": one for number, one in enumerate(counted[:REPEATED_MAX], 1)},
        pages=tuple(Known(targets).bearing("\n".join(words), PAGES_MAX)), sources=tuple(sources_of(events)),
        names=tuple(names_in(events)),
    )  # fmt: skip
