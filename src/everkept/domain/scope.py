"""Whose memory is meant: a required, typed argument of every store function (G15)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from everkept.domain.ids import ProjectId, StreamId, SubjectId
from everkept.errors import UnknownScope

SYNONYMS = {
    "user_id": "subject",
    "dataset": "subject",
    "thread_id": "thread",
    "session_id": "thread",
    "run_id": "thread",
}
"""Words of other systems that are accepted at the doors (design §1)."""
METADATA_WORDS = ("agent_id", "app_id")
"""Words of other systems that become a metadata filter."""
WORDS = ("project", "subject", "thread")

_SIGNS = {"root": "first commit", "common_dir": "git folder"}


def sign_in_words(found_by: str) -> str:
    """What a folder's project was found by, in the one word for it that every door says."""
    return _SIGNS.get(found_by, found_by)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """A place in the store: a project, and optionally one subject and one stream of it."""

    project: ProjectId
    subject: SubjectId | None = None
    stream: StreamId | None = None


def scope_words(given: Mapping[str, str | None]) -> tuple[dict[str, str], dict[str, str]]:
    """Sort words given at a door into (scope, metadata filter). Raises UnknownScope for any other word."""
    scope: dict[str, str] = {}
    metadata: dict[str, str] = {}
    for word, value in given.items():
        if value is None:
            continue
        if word in METADATA_WORDS:
            metadata[word] = value
            continue
        name = SYNONYMS.get(word, word)
        if name not in WORDS:
            known = ", ".join([*WORDS, *SYNONYMS, *METADATA_WORDS])
            raise UnknownScope(f"{word!r} is not a scope; use one of: {known}", field=word)
        if scope.setdefault(name, value) != value:
            raise UnknownScope(f"{word!r} contradicts another word for {name!r}", field=word)
    return scope, metadata
