"""Jobs until they can be claimed: scheduled by whoever has work, due, held while their kind is paused."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sqlalchemy import text

from everkept.domain.jobs import Schedule
from everkept.store.connection import Connection, Row
from everkept.store.lanes import count_ready, groups_of_ours
from everkept.store.pauses import paused_kinds

# ---- schedule

_SCHEDULE = text("""
insert into jobs(project_id, kind, key, lane_id, uses, serial_key, args, traceparent, state, due_at, first_due_at,
  created_at)
values(:project, :kind, :key, :lane, :uses, :serial_key, :args, :traceparent, 'waiting', :due, :due, :now)
on conflict(kind, key) do update set
  due_at = case
    when jobs.state in ('done', 'discarded') then excluded.due_at
    when jobs.state = 'dead' then
      case when :rearm_dead = 1 and excluded.due_at < cast(:now as bigint) + :dead_wait
             then cast(:now as bigint) + :dead_wait
           when :rearm_dead = 1 then excluded.due_at else jobs.due_at end
    when jobs.state = 'leased' and jobs.generation = jobs.leased_generation then excluded.due_at
    when :debounce_max >= 0 then
      case when excluded.due_at < coalesce(jobs.first_due_at, excluded.due_at) + :debounce_max then excluded.due_at
           -- snoozed beyond the longest wait by its own decision: it stays there, and is not woken by every message
           when jobs.due_at > jobs.first_due_at + :debounce_max then
             case when excluded.due_at < jobs.due_at then excluded.due_at else jobs.due_at end
           else coalesce(jobs.first_due_at, excluded.due_at) + :debounce_max end
    when excluded.due_at < jobs.due_at then excluded.due_at
    else jobs.due_at end,
  first_due_at = case
    when jobs.state in ('done', 'discarded') then excluded.due_at
    when jobs.state = 'dead' and :rearm_dead = 1 then excluded.due_at
    when jobs.state = 'leased' and jobs.generation = jobs.leased_generation then excluded.due_at
    else coalesce(jobs.first_due_at, excluded.due_at) end,
  generation = jobs.generation + 1,
  args = excluded.args,
  traceparent = case
    when jobs.state in ('done', 'discarded', 'dead') then excluded.traceparent
    when jobs.state = 'leased' and jobs.generation = jobs.leased_generation then excluded.traceparent
    else coalesce(jobs.traceparent, excluded.traceparent) end,
  attempts = case when jobs.state in ('done', 'discarded') then 0 else jobs.attempts end,
  crashes = case when jobs.state in ('done', 'discarded') then 0 else jobs.crashes end,
  error = case when jobs.state in ('done', 'discarded') then null else jobs.error end,
  error_class = case when jobs.state in ('done', 'discarded') then null else jobs.error_class end,
  finished_at = case when jobs.state in ('done', 'discarded') or (jobs.state = 'dead' and :rearm_dead = 1)
    then null else jobs.finished_at end,
  state = case when jobs.state in ('done', 'discarded') or (jobs.state = 'dead' and :rearm_dead = 1)
    then 'waiting' else jobs.state end
""")
DEAD_WAIT_US = 3_600_000_000
"""The back-off a dead timer had reached: it starts again no sooner."""


def schedule(conn: Connection, wishes: Sequence[Schedule]) -> None:
    """Upsert by (kind, key), in the caller's transaction; touches no lane."""
    now = conn.now()
    rows = [
        {
            "project": w.project,
            "kind": w.kind,
            "key": w.key,
            "lane": w.lane,
            "uses": w.uses,
            "serial_key": w.serial_key,
            "args": w.args,
            "traceparent": conn.traceparent,
            "due": w.due_at_us,
            "now": now,
            "rearm_dead": int(w.rearm_dead),
            "dead_wait": DEAD_WAIT_US,
            "debounce_max": -1 if w.debounce_max_us is None else w.debounce_max_us,
        }
        for w in wishes
    ]
    if not rows:
        return
    conn.many(_SCHEDULE, rows)
    conn.hint(min(w.due_at_us for w in wishes))


# ---- promote: what is due

_DUE = text("""
select j.id, l.group_id from jobs j join lanes l on l.id = j.lane_id
where j.state = 'waiting' and j.due_at <= :now order by j.due_at, j.id limit :limit""")
_OURS = text("""
select id, lane_id, uses, kind from jobs
where id in (select value from numbers(:jobs)) and state = 'waiting' and due_at <= :now
order by due_at, id for no key update skip locked""")
_PROMOTE = text("update jobs set state = 'ready' where id = :id and state = 'waiting'")
_EARLIEST = text("select min(due_at) from jobs where state = 'waiting'")


def promote_due(conn: Connection, limit: int) -> tuple[int, int | None]:
    """Make due jobs claimable, and hold those of a paused kind; how many, and when the next is due (None: none waits).

    What is held of a kind that is no longer paused is given back first.
    """
    paused = paused_kinds(conn)
    _give_back(conn, paused, limit)
    due = _take_due(conn, limit)
    conn.many(_PROMOTE, [{"id": job} for job, *_ in due])
    conn.many(_HOLD, [{"id": job} for job, _, _, kind in due if kind in paused])
    count_ready(conn, [(lane, use) for _, lane, use, kind in due if kind not in paused])
    return len(due), conn.scalar(_EARLIEST)


def _take_due(conn: Connection, limit: int) -> list[Row]:
    """(job, lane, uses, kind) of what is due and in nobody else's hands: a project's lanes first, then its jobs."""
    now = conn.now()
    found = conn.rows(_DUE, {"now": now, "limit": limit})
    ours = set(groups_of_ours(conn, {group for _, group in found}))
    jobs = [job for job, group in found if group in ours]
    return conn.rows(_OURS, {"now": now, "jobs": json.dumps(jobs)}) if jobs else []


# ---- hold: what a paused kind's due jobs are

IS_HELD = "uses in ('held_local', 'held_model', 'held_embedder')"
_HOLD = text("update jobs set uses = 'held_' || uses where id = :id")
_HELD_KINDS = text(f"""
with recursive kinds(kind) as (
  select min(kind) from jobs where {IS_HELD}
  union all
  select (select min(kind) from jobs where {IS_HELD} and kind > kinds.kind) from kinds where kinds.kind is not null)
select kind from kinds where kind is not null""")
_HELD_JOBS = text(f"""
select j.id, j.lane_id, substr(j.uses, 6), l.group_id from jobs j join lanes l on l.id = j.lane_id
where {IS_HELD.replace("uses", "j.uses")} and j.kind = :kind order by j.id limit :limit""")
_HELD_OURS = text(f"""
select id from jobs where id in (select value from numbers(:jobs)) and {IS_HELD} for no key update skip locked""")
_GIVE_BACK = text("update jobs set uses = substr(uses, 6) where id = :id")


def _give_back(conn: Connection, paused: frozenset[str], limit: int) -> None:
    """Up to `limit` jobs of each kind; while there are more, whoever polls is told to come again."""
    for (kind,) in conn.rows(_HELD_KINDS):
        if kind in paused:
            continue
        held = conn.rows(_HELD_JOBS, {"kind": kind, "limit": limit})
        groups = set(groups_of_ours(conn, {group for *_, group in held}))
        wanted = json.dumps([job for job, *_, group in held if group in groups])
        ours = {job for (job,) in conn.rows(_HELD_OURS, {"jobs": wanted})}
        jobs = [(job, lane, use) for job, lane, use, _ in held if job in ours]
        conn.many(_GIVE_BACK, [{"id": job} for job, _, _ in jobs])
        count_ready(conn, [(lane, use) for _, lane, use in jobs])
        if len(held) == limit or len(jobs) < len(held):
            conn.hint(conn.now())


_POSTPONE = text(f"""
update jobs set state = 'waiting', uses = case when {IS_HELD} then substr(uses, 6) else uses end where id = :id""")


def hold(conn: Connection, job: int) -> None:
    """Put aside one job of a paused kind; whoever calls counts it out of its lane."""
    conn.run(_HOLD, {"id": job})


def postpone(conn: Connection, job: int) -> None:
    """What was ready or held waits for its time again; whoever calls counts it out of its lane."""
    conn.run(_POSTPONE, {"id": job})


# ---- what a job keeps, and for how long

HISTORY_MAX = 20


def add_history(history: str, at_us: int, error_class: str, error: str) -> str:
    rows = json.loads(history)
    rows.append({"at": at_us, "class": error_class, "error": error[:500]})
    return json.dumps(rows[-HISTORY_MAX:])


_PRUNE = text("""
delete from jobs where id in (
  select id from jobs where state = 'done' and finished_at < :before order by finished_at limit :limit)""")


def prune_jobs(conn: Connection, keep_s: float, limit: int = 500) -> int:
    """Delete done jobs past their retention, a chunk at a time; their effects have keys of their own.

    A discarded job stays: it is what tells the sweeps that somebody decided.
    """
    return conn.run(_PRUNE, {"before": conn.now() - int(keep_s * 1e6), "limit": limit})
