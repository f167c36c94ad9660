"""What is written into the full-text index for a passage, and the terms that stand for its scope."""

from __future__ import annotations

from typing import NamedTuple

from everkept.domain.scope import Scope


class TextRow(NamedTuple):
    """One passage's terms, and where they may be found."""

    id: int
    place: tuple[int, int, int | None, str]
    """Project, subject, stream, kind."""
    speaker: str
    own: str
    said: str
    before: str


def scope_terms(project: int, subject: int, stream: int | None, kind: str) -> list[str]:
    """They are counted like any other terms, which tells how much there is in a scope."""
    return [f"p{project}", f"s{subject}", *([] if stream is None else [f"t{stream}"]), f"k{kind}"]


def scope_term(scope: Scope) -> str:
    """The narrowest of the scope's terms. Ids are never used twice, so it implies the wider ones."""
    if scope.stream is not None:
        return f"t{scope.stream}"
    return f"p{scope.project}" if scope.subject is None else f"s{scope.subject}"
