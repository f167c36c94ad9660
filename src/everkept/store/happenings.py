"""What happened in a project, newest first: sessions, versions of pages, handoffs, episodes, facts, proposals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from sqlalchemy import text

from everkept.store.connection import Connection
from everkept.store.hidden import SHOWN_FACT, SHOWN_PAGE, SHOWN_PROPOSAL

HappeningKind = Literal["session", "page", "handoff", "episode", "fact", "proposal"]


class Point(NamedTuple):
    """A place in the order: later ones first, then by kind and row, so that no two share one."""

    at: int
    """Microseconds since 1970."""
    rank: int
    id: int
    """Of its row; of a proposal twice that, and one more for its decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    point: Point
    kind: HappeningKind
    title: str
    detail: dict[str, Any]
    """Of a session: agent, branch, events, slug. Of a page: kind, slug, version, author, reason. Of a handoff: agent,
    branch, state. Of an episode: thread, subject. Of a fact: subject, until. Of a proposal: action, slug, state, by."""


_BEFORE: Final = (
    " and ({at}, {rank}, {id}) < (:at, :rank, :id) and {at} >= :since order by {at} desc, {id} desc limit :limit"
)
_SHOWN_STREAM: Final = """ and s.erased_at is null and u.erased_at is null and not exists (
  select 1 from erasures r where r.done_at is null and (r.kind = 'project' and r.project_id = s.project_id
    or r.kind in ('stream', 'event') and r.stream_id = s.id))"""
_OF_STREAM: Final = " join streams s on s.id = {stream} join subjects u on u.id = s.subject_id "

_OF_PROPOSAL: Final = f" from proposals p where p.project_id = :project and p.slug <> '' and {SHOWN_PROPOSAL}"
_STAGED: Final = (
    "select p.created_at as at, p.id * 2 as place, p.title, p.action, p.slug, 'staged' as state, p.reviewer as by_whom"
    + _OF_PROPOSAL
)
_DECIDED: Final = (
    "select p.decided_at, p.id * 2 + 1, p.title, p.action, p.slug, p.state, p.decided_by"
    f"{_OF_PROPOSAL} and p.decided_at is not null"
)

_ARMS: Final[dict[HappeningKind, tuple[str, str, str, tuple[str, ...]]]] = {
    "session": (
        "select x.last_event_at, x.stream_id, coalesce(g.title, x.title, x.agent || ' session'), x.agent, x.branch,"
        " s.last_seq, g.slug from sessions x" + _OF_STREAM.format(stream="x.stream_id")
        + "left join pages g on g.stream_id = x.stream_id and g.kind = 'session' and g.deleted_at is null"
        " where x.project_id = :project and x.finished_seq is not null" + _SHOWN_STREAM,
        "x.last_event_at", "x.stream_id", ("agent", "branch", "events", "slug"),
    ),
    "page": (  # a session's own page is told by the session
        "select v.created_at, g.id, v.title, g.kind, g.slug, v.version, v.author, v.reason from page_versions v"
        " join pages g on g.id = v.page_id join subjects u on u.id = g.subject_id and u.erased_at is null"
        " where g.project_id = :project and g.kind <> 'session' and g.deleted_at is null and " + SHOWN_PAGE
        + " and not exists (select 1 from erasures r where r.done_at is null and r.project_id = g.project_id"
        "   and r.kind = 'project')",
        "v.created_at", "g.id", ("kind", "slug", "version", "author", "reason"),
    ),
    "handoff": (
        "select h.created_at, h.id, h.title, x.agent, h.branch,"
        " case when h.state = 'open' and h.expires_at <= :now then 'expired' else h.state end"
        " from handoffs h join sessions x on x.stream_id = h.stream_id" + _OF_STREAM.format(stream="h.stream_id")
        + "where h.project_id = :project" + _SHOWN_STREAM,
        "h.created_at", "h.id", ("agent", "branch", "state"),
    ),
    "episode": (
        "select e.occurred_at, w.id, w.summary, s.name, u.name from windows w join events e"
        " on e.stream_id = w.stream_id and e.seq = w.end_seq" + _OF_STREAM.format(stream="w.stream_id")
        + "where w.project_id = :project and s.kind = 'thread' and w.summary <> ''" + _SHOWN_STREAM,
        "e.occurred_at", "w.id", ("thread", "subject"),
    ),
    "fact": (
        "select f.said_at, f.id, f.text, u.name, coalesce(f.closed_at, f.valid_until) from facts f"
        " join subjects u on u.id = f.subject_id and u.erased_at is null"
        f" where f.project_id = :project and f.live and f.duplicate_of is null and {SHOWN_FACT}",
        "f.said_at", "f.id", ("subject", "until"),
    ),
    "proposal": (  # twice, with two places of its own: when it was made, and how it was decided last
        f"select q.* from ({_STAGED} union all {_DECIDED}) q where 1 = 1",
        "q.at", "q.place", ("action", "slug", "state", "by"),
    ),
}  # fmt: skip
"""{kind: (what is selected, its time, its row, the names of what follows time, row and title)}."""
KINDS: Final[tuple[HappeningKind, ...]] = tuple(_ARMS)
_STATEMENTS: Final = {
    kind: text(select + _BEFORE.format(at=at, rank=rank, id=id_))
    for rank, (kind, (select, at, id_, _)) in enumerate(_ARMS.items())
}


def list_happenings(
    conn: Connection, project: int, *, kinds: Sequence[HappeningKind] = KINDS, before: Point, since: int, limit: int
) -> list[Happening]:
    """Newest first, those before a point, not earlier than `since` (microseconds)."""
    asked = {
        "project": project, "at": before.at, "rank": before.rank, "id": before.id, "since": since, "limit": limit,
        "now": conn.now(),
    }  # fmt: skip
    found = [_happening(kind, row) for kind in kinds for row in conn.rows(_STATEMENTS[kind], asked)]
    found.sort(key=lambda one: one.point, reverse=True)
    return found[:limit]


def _happening(kind: HappeningKind, row: tuple[Any, ...]) -> Happening:
    at, place, title, *rest = row
    names = _ARMS[kind][3]
    return Happening(
        point=Point(at, KINDS.index(kind), place), kind=kind, title=title, detail=dict(zip(names, rest, strict=True))
    )
