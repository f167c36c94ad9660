"""The ledger of a workstream: which events its sessions told, in the order of the commits, under one number each (G11).

A row names a stretch of a stream and keeps no text. Its number is the project's, of the change that told of the
stretch, and is written in the same transaction: nothing ever appears behind a cursor.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import text

from everkept.domain import text as analyser
from everkept.domain.ids import ProjectId
from everkept.domain.scope import Scope
from everkept.store.connection import Connection
from everkept.store.hidden import SHOWN_PASSAGE
from everkept.store.search import find_postings

# A workstream that came from another project brought numbers that this one's counter has not reached yet.
_BEHIND_ALL = """
max(cast(:seq as bigint), 1 + coalesce(
  (select max(b.seq) from workstream_ledger b where b.workstream_id = {workstream}), 0))"""
_NOTE = text(f"""
insert into workstream_ledger(workstream_id, seq, stream_id, first_seq, last_seq)
select distinct l.workstream_id, {_BEHIND_ALL.format(workstream="l.workstream_id")}, l.stream_id,
  cast(:first as bigint), cast(:last as bigint)
from launch_sessions l where l.stream_id = :stream""")
_NOTE_LATE = text(f"""
insert into workstream_ledger(workstream_id, seq, stream_id, first_seq, last_seq)
values(:workstream, {_BEHIND_ALL.format(workstream=":workstream")}, :stream, 1, :last)""")
_HEAD = text("select coalesce(max(seq), 0) from workstream_ledger where workstream_id = :workstream")

VISIBLE: Final = """e.erased_at is null and e.evidence = 1 and s.erased_at is null and u.erased_at is null
  and (e.role in ('assistant', 'tool') or (e.role = 'user' and flag_in(e.metadata, 'genuine'))
    or word_in(e.metadata, 'kind') = 'plan'
    or (word_in(e.metadata, 'kind') = 'turn_end' and number_in(e.metadata, 'text_chars') > 0))
  and not exists (select 1 from events r where r.stream_id = e.stream_id and r.revises = e.seq)"""
"""Of `events e`: what somebody said or did. A telling that was completed is seen in the one that completes it."""
_EVENTS = f"""
from workstream_ledger l join events e on e.stream_id = l.stream_id and e.seq between l.first_seq and l.last_seq
  join streams s on s.id = e.stream_id join subjects u on u.id = s.subject_id
  join sessions x on x.stream_id = e.stream_id
where l.workstream_id = :workstream and {VISIBLE} """
_ROW = "select l.seq, e.stream_id, e.seq, x.agent, word_in(e.metadata, 'kind'), e.content, e.occurred_at "
_AFTER = text(f"""{_ROW}{_EVENTS}
and l.seq >= :seq and (l.seq > :seq or e.seq > :event) order by l.seq, e.seq limit :limit""")
_LINKED = "c.stream_id in (select m.stream_id from launch_sessions m where m.workstream_id = :workstream)"
_RANGE = f"""{_EVENTS}
and l.seq > :after and l.seq <= :through and (x.agent <> :agent or (x.native_id <> :native and x.native_id not in (
  with recursive below(native_id) as (
    select c.native_id from sessions c where c.parent = :native and c.agent = :agent and {_LINKED}
    union select c.native_id from below b join sessions c on c.parent = b.native_id and c.agent = :agent and {_LINKED})
  select native_id from below))) """
_NEWEST = text(f"{_ROW}{_RANGE} order by l.seq desc, e.seq desc limit :limit")
_COUNTS = text(f"select x.agent, count(*) {_RANGE} group by x.agent")
_FOUND = text(f"""{_ROW}
from passages p
  join workstream_ledger l on l.workstream_id = :workstream and l.stream_id = p.stream_id
    and p.seq between l.first_seq and l.last_seq
  join events e on e.stream_id = p.stream_id and e.seq = p.seq
  join streams s on s.id = e.stream_id join subjects u on u.id = s.subject_id
  join sessions x on x.stream_id = e.stream_id
where p.id in (select value from numbers(:ids)) and p.kind = 'turn' and p.hidden = false and {SHOWN_PASSAGE}
  and {VISIBLE}
order by l.seq desc, e.seq desc limit :limit""")
_ENTRIES = text("""
select l.workstream_id, sum(l.last_seq - l.first_seq + 1), max(s.last_recorded_at)
from workstream_ledger l join streams s on s.id = l.stream_id and s.erased_at is null
where l.workstream_id in (select value from numbers(:workstreams)) group by l.workstream_id""")


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEvent:
    ledger_seq: int
    stream: int
    seq: int
    agent: str
    kind: str
    content: str
    occurred_at: int


def _event(r: tuple[Any, ...]) -> LedgerEvent:
    return LedgerEvent(
        ledger_seq=r[0], stream=r[1], seq=r[2], agent=r[3], kind=r[4], content=r[5], occurred_at=r[6]
    )  # fmt: skip


def note_appended(conn: Connection, stream: int, first: int, last: int, seq: int) -> None:
    """Events `first` to `last` were appended, and the change number `seq` tells of it; a row for each workstream."""
    conn.run(_NOTE, {"stream": stream, "first": first, "last": last, "seq": seq})


def note_linked(conn: Connection, workstream: int, stream: int, last: int, seq: int) -> None:
    """A session that has events already was linked, as the change number `seq` tells."""
    conn.run(_NOTE_LATE, {"workstream": workstream, "stream": stream, "last": last, "seq": seq})


def ledger_head(conn: Connection, workstream: int) -> int:
    return int(conn.scalar(_HEAD, {"workstream": workstream}))


def events_after(conn: Connection, workstream: int, seq: int, event: int, limit: int) -> list[LedgerEvent]:
    """Visible events behind event `event` of ledger row `seq`, oldest first."""
    asked = {"workstream": workstream, "seq": seq, "event": event, "limit": limit}
    return [_event(r) for r in conn.rows(_AFTER, asked)]


def find_events(conn: Connection, project: int, workstream: int, query: str, limit: int) -> list[LedgerEvent]:
    """Visible events with all words of the query in them, newest first; none for a query without a word."""
    found: set[int] | None = None
    for term in dict.fromkeys(analyser.terms(query)):
        postings = find_postings(conn, Scope(project=ProjectId(project)), term, ("turn",))
        holding = {int(id_) for weight, ids in postings if weight == 1.0 for id_ in ids.split(",")}
        found = holding if found is None else found & holding
    if not found:
        return []
    asked = {"workstream": workstream, "ids": json.dumps(sorted(found)), "limit": limit}
    return [_event(r) for r in conn.rows(_FOUND, asked)]


def newest_events(
    conn: Connection, workstream: int, after: int, through: int, receiver: tuple[str, str], limit: int
) -> list[LedgerEvent]:
    """Of the range, oldest first, without what the receiver (agent, native id) and those below it did themselves."""
    return [_event(r) for r in reversed(conn.rows(_NEWEST, {
        **_range(workstream, after, through, receiver), "limit": limit}))]  # fmt: skip


def count_events(
    conn: Connection, workstream: int, after: int, through: int, receiver: tuple[str, str]
) -> dict[str, int]:
    """{agent: visible events} of the range, as `newest_events`."""
    return dict(conn.rows(_COUNTS, _range(workstream, after, through, receiver)))


def _range(workstream: int, after: int, through: int, receiver: tuple[str, str]) -> dict[str, Any]:
    agent, native = receiver
    return {"workstream": workstream, "after": after, "through": through, "agent": agent, "native": native}


def ledger_sizes(conn: Connection, workstreams: Sequence[int]) -> dict[int, tuple[int, int | None]]:
    """{workstream: (entries, when the last one was taken in)}; those without any are left out."""
    rows = conn.rows(_ENTRIES, {"workstreams": json.dumps(list(workstreams))})
    return {r[0]: (r[1], r[2]) for r in rows}
