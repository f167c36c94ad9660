"""What a replayed event makes again: effects of its accept that were lost, and no others.

The event, its passage and its timer are one transaction, so that nothing here finds anything to do unless rows went
missing: by hand, by a restore, by a fault of ours. What was erased stays out, and a job that is dead or was discarded
is there for everybody to see: it was not lost.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from sqlalchemy import text

from everkept.config import Settings
from everkept.domain.ids import ProjectId, StreamId, SubjectId
from everkept.domain.jobs import Schedule
from everkept.domain.passage import Analysed
from everkept.store.connection import Connection
from everkept.store.jobs import schedule
from everkept.store.search import NewPassage, index_passages
from everkept.store.streams import EMBED, TIMER, get_stream, timer_wish, wake_embedder


class Replayed(NamedTuple):
    """An event that was sent again in the same words, where it lies, and its text analysed."""

    stream: int
    seq: int
    analysed: Analysed


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    passages: tuple[NewPassage, ...]
    embedder: bool
    """Passages want vectors, and no job will make them."""
    timers: tuple[Schedule, ...]

    def __bool__(self) -> bool:
        return bool(self.passages or self.embedder or self.timers)


# An erase takes passages away before it takes the events: while one runs, nothing of its scope was lost.
_LIVING: Final = """
from number_pairs(:places) h join events e on e.stream_id = h.one and e.seq = h.two
    and e.project_id = :project and e.erased_at is null
  join streams s on s.id = e.stream_id and s.erased_at is null
    and not exists (select 1 from erasures x where x.done_at is null and x.project_id = :project
      and (x.stream_id = s.id or x.subject_id = s.subject_id or x.kind = 'project'))
  join subjects u on u.id = s.subject_id and u.erased_at is null
  left join passages p on p.stream_id = e.stream_id and p.seq = e.seq and p.kind = 'turn' """
_WITHOUT_PASSAGE = text(f"""
select e.stream_id, e.seq, s.subject_id, coalesce(e.name, e.role), e.occurred_at {_LIVING}
where p.id is null order by e.stream_id, e.seq""")
_UNEMBEDDED = text(f"select 1 {_LIVING} where p.embedded is null and p.hidden = false limit 1")
_UNCOVERED = text(f"select distinct e.stream_id {_LIVING} where e.seq > s.covered_seq order by e.stream_id")
_JOB_STATE = text("select state from jobs where kind = :kind and key = :key")
_RUNS_NO_MORE: Final = frozenset({None, "done"})
"""States of a job that nothing will run, and that nobody decided against."""


def lost_effects(conn: Connection, project: int, replayed: Sequence[Replayed], base: Settings) -> Lost:
    """What is missing of these events. A timer that runs is not touched: a replay puts nothing off."""
    places = {"project": project, "places": json.dumps([(r.stream, r.seq) for r in replayed])}
    analysed = {(r.stream, r.seq): r.analysed for r in replayed}
    passages = tuple(
        NewPassage(
            project=ProjectId(project), subject=SubjectId(subject), kind="turn", analysed=analysed[stream, seq],
            stream=StreamId(stream), seq=seq, speaker=speaker, occurred_at_us=at,
        )
        for stream, seq, subject, speaker, at in conn.rows(_WITHOUT_PASSAGE, places)
    )  # fmt: skip
    unembedded = bool(passages) or conn.first(_UNEMBEDDED, places) is not None
    return Lost(
        passages=passages,
        embedder=unembedded and _is_lost(conn, EMBED, project),
        timers=_lost_timers(conn, [r[0] for r in conn.rows(_UNCOVERED, places)], base),
    )


def remake_effects(conn: Connection, project: int, replayed: Sequence[Replayed], base: Settings) -> Lost:
    """Make again what is missing, and say what that was; safe to repeat."""
    lost = lost_effects(conn, project, replayed, base)
    index_passages(conn, lost.passages)
    if lost.embedder:
        wake_embedder(conn, project)
    schedule(conn, lost.timers)
    return lost


def _lost_timers(conn: Connection, streams: Sequence[int], base: Settings) -> tuple[Schedule, ...]:
    wishes = (timer_wish(get_stream(conn, s), base, conn.now()) for s in streams if _is_lost(conn, TIMER, s))
    return tuple(wish for wish in wishes if wish is not None)


def _is_lost(conn: Connection, kind: str, key: int) -> bool:
    return conn.scalar(_JOB_STATE, {"kind": kind, "key": str(key)}) in _RUNS_NO_MORE
