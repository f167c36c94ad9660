"""Public ids: a prefix that says the kind, then numbers that mean nothing to a caller.

An event is named by its place (`evt_<stream>_<seq>`), everything else by the row that holds it, so that an id
costs no index of its own and is never used twice.
"""

from __future__ import annotations

import re
from typing import NewType

from everkept.errors import NotFound

ProjectId = NewType("ProjectId", int)
SubjectId = NewType("SubjectId", int)
StreamId = NewType("StreamId", int)
WindowId = NewType("WindowId", int)
FactId = NewType("FactId", int)
JobId = NewType("JobId", int)
PassageId = NewType("PassageId", int)

KINDS = {
    "evt": "event", "epi": "episode", "fct": "fact", "job": "job", "ent": "entity", "prj": "project",
    "sub": "subject", "thr": "thread", "key": "API key", "chg": "change",
    "ses": "session", "pag": "page", "hnd": "handoff", "off": "offer", "prp": "proposal", "rev": "review",
    "whk": "webhook",
    "wst": "workstream", "lch": "launch",
}  # fmt: skip
TRACEABLE = {
    "fct": "facts", "epi": "episodes", "evt": "events", "ses": "sessions", "pag": "pages", "hnd": "handoffs",
    "prp": "proposals",
}  # fmt: skip
"""What `why` knows: prefix of the id → word of its route. A page may be named by its slug, too."""
_EVENT = re.compile(r"evt_([1-9]\d{0,17})_([1-9]\d{0,17})")
_LIKE_AN_ID = re.compile(r"[a-z]{3}_[\d_]+")
_ROW = re.compile(r"([a-z]{3})_([1-9]\d{0,17})")


def event_id(stream: int, seq: int) -> str:
    return f"evt_{stream}_{seq}"


def row_id(prefix: str, row: int) -> str:
    assert prefix in KINDS
    return f"{prefix}_{row}"


def parse_event_id(text: str) -> tuple[StreamId, int]:
    """`evt_12_7` → (12, 7). Raises NotFound, with a hint when the id is of another kind."""
    found = _EVENT.fullmatch(text)
    if found is None:
        raise NotFound(f"{text!r} is not an event id{_hint(text)}", id=text, expected="evt_…")
    return StreamId(int(found[1])), int(found[2])


def parse_row_id(prefix: str, text: str) -> int:
    """`fct_9` → 9 where `prefix` is `fct`. Raises NotFound, with a hint when the id is of another kind."""
    found = _ROW.fullmatch(text)
    if found is None or found[1] != prefix:
        raise NotFound(f"{text!r} is not the id of a {KINDS[prefix]}{_hint(text)}", id=text, expected=f"{prefix}_…")
    return int(found[2])


def traceable_kind(text: str) -> str:
    """The prefix of what `why` can tell of; what does not look like an id is a page's slug. Raises NotFound."""
    if _LIKE_AN_ID.fullmatch(text) is None:
        return "pag"
    prefix = text.partition("_")[0]
    if prefix in TRACEABLE:
        return prefix
    known = ", ".join(f"{each}_… ({KINDS[each]})" for each in TRACEABLE)
    raise NotFound(
        f"{text!r} cannot be traced{_hint(text)}; give one of: {known}, or the slug of a page", id=text,
        known=list(TRACEABLE),
    )  # fmt: skip


def _hint(text: str) -> str:
    kind = KINDS.get(text.partition("_")[0])
    return f": it looks like the id of a{'n' if kind[0] in 'aeiouA' else ''} {kind}" if kind else ""
