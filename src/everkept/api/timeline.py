"""What happened in a project, newest first: what a newcomer reads to catch up."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from everkept.api import views as v
from everkept.api.base import Cases
from everkept.api.present import ROW_MAX, bounded, microseconds, moment, when
from everkept.domain.ids import row_id
from everkept.errors import InvalidInput
from everkept.store.connection import Connection
from everkept.store.happenings import KINDS, Happening, HappeningKind, Point, list_happenings

TITLE_CHARS = 200
_PREFIX = {"session": "ses", "page": "pag", "handoff": "hnd", "episode": "epi", "fact": "fct", "proposal": "prp"}
_CURSOR = re.compile(rb"(-?\d{1,18})\.(\d)\.(\d{1,18})")


class Timeline(Cases):
    async def timeline(
        self, *, kinds: Sequence[str] | None = None, since: datetime | None = None, until: datetime | None = None,
        limit: int = 50, cursor: str | None = None,
    ) -> v.Page[v.TimelineItem]:  # fmt: skip
        """Sessions, versions of pages, handoffs, episodes, facts and proposals, newest first; `since` ≤ time < `until`.

        A fact stands at the time it was said, a session and its handoff at its last event, a proposal when it was made
        and again when it was decided.
        """
        bounded(limit, "limit", 1, 1000)
        wanted = _known(kinds)
        before = _start(until) if cursor is None else _read_cursor(cursor)
        least = microseconds(since, "since")

        def read(conn: Connection) -> list[Happening]:
            since_us = -ROW_MAX if least is None else least
            return list_happenings(conn, self._project_id, kinds=wanted, before=before, since=since_us, limit=limit + 1)

        rows = await self._store.read(read)
        following = _cursor_of(rows[limit - 1].point) if len(rows) > limit else None
        return v.Page(items=[item_view(row) for row in rows[:limit]], next_cursor=following)


def _known(kinds: Sequence[str] | None) -> Sequence[HappeningKind]:
    if kinds is None:
        return KINDS
    unknown = sorted(set(kinds) - set(KINDS))
    if unknown or not kinds:
        raise InvalidInput(f"kinds are some of {', '.join(KINDS)}", field="kinds", known=list(KINDS))
    return [kind for kind in KINDS if kind in kinds]


def _start(until: datetime | None) -> Point:
    """Just before a time, else the very beginning of the list."""
    us = microseconds(until, "until")
    return Point(ROW_MAX, 0, 0) if us is None else Point(us, -1, 0)


def _cursor_of(point: Point) -> str:
    return base64.urlsafe_b64encode(".".join(map(str, point)).encode()).decode().rstrip("=")


def _read_cursor(cursor: str) -> Point:
    try:
        found = _CURSOR.fullmatch(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError):
        found = None
    if found is None:
        raise InvalidInput("cursor is not one that a timeline gave out", field="cursor")
    return Point(int(found[1]), int(found[2]), int(found[3]))


def item_view(one: Happening) -> v.TimelineItem:
    title = " ".join(one.title.split())
    row = one.point.id // 2 if one.kind == "proposal" else one.point.id
    return v.TimelineItem(
        at=moment(one.point.at), kind=one.kind, id=row_id(_PREFIX[one.kind], row),
        title=title if len(title) <= TITLE_CHARS else title[: TITLE_CHARS - 1].rstrip() + "…",
        detail=", ".join(_details(one.kind, one.detail)),
    )  # fmt: skip


def _details(kind: HappeningKind, of: dict[str, Any]) -> list[str]:
    """In words, what beside the title tells one from another."""
    branch = [f"branch {of['branch']}"] if of.get("branch") else []
    match kind:
        case "session":
            page = [f"page {of['slug']}"] if of["slug"] else []
            return [of["agent"], *branch, f"{of['events']:,} events", *page]
        case "page":
            reason = [of["reason"]] if of["reason"] else []
            return [f"{of['kind']} {of['slug']}", f"version {of['version']} by {of['author']}", *reason]
        case "handoff":
            return [of["state"], of["agent"], *branch]
        case "episode":
            return [f"thread {of['thread']}", f"subject {of['subject']}"]
        case "proposal":
            by = f" by {of['by']}" if of["by"] else ""
            return [f"{of['action'].replace('_', ' ')}, page {of['slug']}", f"{of['state'].replace('_', ' ')}{by}"]
        case "fact":
            until = when(of["until"])
            return [f"subject {of['subject']}", *([f"until {until:%Y-%m-%d}"] if until else [])]
