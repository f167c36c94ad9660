"""How the store is doing: every number of `status`, each from its own statement (G14).

Nothing here reads `jobs`, `events` or `passages` from end to end: each statement stands on an index that holds only
what it asks for, so that the page costs the same on a large store as on a small one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import text

from everkept.config import Settings
from everkept.domain.changes import NATS_CONSUMER
from everkept.domain.ids import row_id
from everkept.store.connection import Connection, Row
from everkept.store.described import described
from everkept.store.pauses import PauseRow, list_pauses, why_job_waits
from everkept.store.periodic import list_periodic
from everkept.store.project_names import shown
from everkept.store.providers import list_providers
from everkept.store.relays import Unpublished, count_unrelayed
from everkept.store.server_state import ServerRow, read_server

HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US
OVERDUE_US = 300_000_000
"""Work that is due and has not begun for this long is shown as stuck."""
LISTED_MAX = 50
LANES_MAX = 20
ERROR_MAX = 120
SEEN_WITHIN_BEATS = 3
"""A worker that missed so many heartbeats is not shown any more, unless it still holds a lease."""
NOT_A_FAILURE = ("by_hand", "drained", "subject_moved", "rate_limited", "over_budget")
"""Classes in a job's history that put work off as they should, and are no failure of anything."""
STAGE_OF = {
    "summarise_episode": "summary", "extract_facts": "facts", "open_window": "window", "judge_conflicts": "conflicts",
    "fold_summary": "fold", "embed_passages": "embedding", "embed_words": "embedding",
}  # fmt: skip
NO_WORKER = "due, and not begun: no worker is running"
NOT_BEGUN = "due, and not begun: its provider, its lane or another job with its serial key is in the way"


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogRow:
    due: int
    """Jobs whose time has come and that have not begun."""
    armed: int
    """Jobs that wait for their time."""
    oldest_due_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRow:
    """One stuck or given-up job."""

    id: str
    subject: str | None
    stage: str
    attempts: int
    error: str | None
    since: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingRow:
    """From the opening of a window to the end of one stage, over the last day."""

    stage: str
    completed: int
    p50_s: float | None
    p95_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRow:
    id: str
    slots: int
    running: int
    last_seen_at: int
    leases: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodicRow:
    name: str
    every_s: float
    last_start_at: int | None
    last_success_at: int | None
    last_error: str | None
    next_due_at: int
    rows_repaired: int
    degraded: bool
    """Two intervals overdue, or never once successful."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderRow:
    name: str
    circuit: Literal["closed", "open", "limited"]
    reason: str | None
    since: int | None
    next_probe_at: int | None
    permits: int
    in_flight: int
    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRow:
    name: Literal["due_work_old", "episode_failures", "fact_failures"]
    ok: bool
    value: float
    threshold: float
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneRow:
    project: str
    subject: str | None
    ready: int
    running: int
    oldest_due_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewsRow:
    """How far the sessions of one project have been looked at."""

    project: str
    watermark: int
    """Every finished session up to this number has been reviewed, or passed by with a reason."""
    reached_at: int | None
    """When that session ended."""
    woke_at: int | None
    """When the scheduler last looked."""
    waiting: int
    reviewing: int
    dead: int
    """Passed by because their review failed for good; asked for by hand, it is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusRow:
    """Times in microseconds since 1970. Workers, periodic work, providers and counters are the whole store's."""

    at: int
    store: dict[str, Any]
    messages: int
    episodes: int
    facts: int
    backlog: BacklogRow
    stages: dict[str, int]
    stuck: list[ItemRow]
    given_up: list[ItemRow]
    timings: list[TimingRow]
    workers: list[WorkerRow]
    periodic: list[PeriodicRow]
    providers: list[ProviderRow]
    checks: list[CheckRow]
    refused_finishes: int
    asked_again: int
    lanes: list[LaneRow]
    reviews: list[ReviewsRow]
    pauses: list[PauseRow]
    server: ServerRow | None
    unpublished: Unpublished | None
    """None where no change is published to NATS."""


def read_status(conn: Connection, project: int | None, settings: Settings) -> StatusRow:
    """The state of one project, or of the whole store (None)."""
    backlog = read_backlog(conn, project)
    workers = read_workers(conn, settings)
    pauses = list_pauses(conn)
    counters: dict[str, float] = dict(conn.rows(_COUNTERS))
    return StatusRow(
        at=conn.now(), store=described(conn),
        messages=_number(conn, _MESSAGES, project) - _number(conn, _ERASED, project),
        episodes=_number(conn, _EPISODES, project), facts=_number(conn, _FACTS, project), backlog=backlog,
        stages=read_stages(conn, project), stuck=read_stuck(conn, project, settings, pauses, any_worker=bool(workers)),
        given_up=read_given_up(conn, project), timings=[read_timing(conn, project, s) for s in _TIMES], workers=workers,
        periodic=read_periodic(conn), providers=read_providers(conn, settings),
        checks=read_checks(conn, project, backlog, settings), refused_finishes=int(counters.get("refused_finishes", 0)),
        asked_again=int(counters.get("asked_again", 0)), lanes=read_lanes(conn, project),
        reviews=read_reviews(conn, project), pauses=pauses, server=read_server(conn),
        unpublished=count_unrelayed(conn, NATS_CONSUMER) if settings.nats.url and settings.nats.publish else None,
    )  # fmt: skip


# ---- what is kept

# A project written with a plus is compared, and not looked up: the index that holds only the few rows asked for is the
# one to use. `:project is null` asks about the whole store.
_IN = "(:project is null or +project_id = :project)"
_MESSAGES = text(f"select coalesce(sum(last_seq), 0) from streams where {_IN}")
_ERASED = text(f"select count(*) from events where erased_at is not null and {_IN}")
_EPISODES = text(f"select count(*) from windows where {_IN}")
_FACTS = text(f"select count(*) from facts where live and {_IN}")
_COUNTERS = text("select name, value from counters where name in ('refused_finishes', 'asked_again')")


def _number(conn: Connection, statement: Any, project: int | None) -> int:
    return int(conn.scalar(statement, {"project": project}))


# ---- backlog

_BACKLOG = text(f"""
select count(case when due_at <= :now then 1 end), count(case when due_at > :now then 1 end), min(due_at) from (
  select due_at from jobs where state = 'waiting' and {_IN}
  union all select due_at from jobs where state = 'ready' and {_IN}) as due""")
_LANES = text(f"""
select {shown("p")}, u.name, d.n, l.running, d.oldest from (
  select lane_id, count(*) as n, min(due_at) as oldest from (
    select lane_id, due_at from jobs where state = 'ready' and due_at <= :now and {_IN}
    union all select lane_id, due_at from jobs where state = 'waiting' and due_at <= :now and {_IN}) as due
  group by lane_id order by min(due_at), lane_id limit :limit) as d
join lanes l on l.id = d.lane_id join lane_groups g on g.id = l.group_id join projects p on p.id = g.project_id
left join subjects u on u.id = l.subject_id order by d.oldest, d.lane_id""")


def read_backlog(conn: Connection, project: int | None) -> BacklogRow:
    now = conn.now()
    row = conn.first(_BACKLOG, {"project": project, "now": now})
    assert row is not None
    due, armed, oldest = row
    return BacklogRow(due=due, armed=armed, oldest_due_s=(now - oldest) / 1e6 if due else None)


def read_lanes(conn: Connection, project: int | None) -> list[LaneRow]:
    """The lanes with due work that wait longest; their counts are of due jobs."""
    now = conn.now()
    return [
        LaneRow(project=p, subject=u, ready=n, running=running, oldest_due_s=(now - oldest) / 1e6)
        for p, u, n, running, oldest in conn.rows(_LANES, {"project": project, "now": now, "limit": LANES_MAX})
    ]


# ---- reviews

_OPEN_REVIEWS = text(f"""
select project_id, state, count(*) from generations where passed_at is null and {_IN} group by 1, 2
union all select project_id, state, count(*) from generations where state = 'dead' and {_IN} group by 1, 2""")
_REVIEWS = text(f"""
select of.id, {shown("of")}, r.watermark, r.reached_at, r.woke_at from numbers(:projects) h
join review_states r on r.project_id = h.value join projects of on of.id = r.project_id
where of.erased_at is null order by 2 limit :limit""")


def read_reviews(conn: Connection, project: int | None) -> list[ReviewsRow]:
    """Of this project; of the whole store (None), of the projects in which something waits or died."""
    counts: dict[int, dict[str, int]] = {} if project is None else {project: {}}
    for project_id, state, n in conn.rows(_OPEN_REVIEWS, {"project": project}):
        counts.setdefault(project_id, {})[state] = n
    rows = conn.rows(_REVIEWS, {"projects": json.dumps(list(counts)), "limit": LISTED_MAX})
    return [
        ReviewsRow(
            project=name, watermark=mark, reached_at=reached, woke_at=woke, waiting=counts[id_].get("waiting", 0),
            reviewing=counts[id_].get("reviewing", 0), dead=counts[id_].get("dead", 0),
        )
        for id_, name, mark, reached, woke in rows
    ]  # fmt: skip


# ---- stages

_SKIPPED = text(f"select count(*) from windows where skipped_because is not null and {_IN}")
# 0 dead, 1 failed, 2 processing, 3 pending, 4 completed. A job's key is `<window>.<slice>`.
_OPEN = text(f"""
with worst as materialized (
  select cast(rtrim(rtrim(key, '0123456789'), '.') as bigint) as window_id, kind,
    min(case when state in ('dead', 'discarded') then 0 when state = 'leased' then 2
             when error is not null then 1 else 3 end) as stage
  from jobs where state <> 'done' and kind in ('summarise_episode', 'extract_facts') and {_IN} group by 1, 2),
resting as materialized (
  select w.id from erasures x join windows w on w.stream_id = x.stream_id and x.seq between w.start_seq and w.end_seq
  where x.done_at is null and x.kind = 'event' and (:project is null or +w.project_id = :project)),
open as (
  select id, summary_at, facts_at from windows where summary_at is null and skipped_because is null and id > 0 and {_IN}
  union all select id, summary_at, facts_at from windows
  where facts_at is null and skipped_because is null and id > 0 and summary_at is not null and {_IN}
  union all select id, summary_at, facts_at from windows
  where id in (select window_id from worst union select id from resting) and summary_at is not null
    and facts_at is not null and skipped_because is null)
select case when o.id in (select id from resting) then 3
            when o.summary_at is not null and coalesce(s.stage, 0) = 0 then 4 else coalesce(s.stage, 3) end,
  case when o.id in (select id from resting) then 3
       when o.facts_at is not null and coalesce(f.stage, 0) = 0 then 4 else coalesce(f.stage, 3) end, count(*)
from open o left join worst s on s.window_id = o.id and s.kind = 'summarise_episode'
  left join worst f on f.window_id = o.id and f.kind = 'extract_facts' group by 1, 2""")
_STAGES = ("dead", "failed", "processing", "pending", "completed")


def read_stages(conn: Connection, project: int | None) -> dict[str, int]:
    """{"<summary>/<facts>": episodes}, as `stages_of` says of each, from those alone that are not plainly completed."""
    counts: Counter[str] = Counter()
    for summary, facts, number in conn.rows(_OPEN, {"project": project}):
        counts[f"{_STAGES[summary]}/{_STAGES[facts]}"] += number
    skipped = _number(conn, _SKIPPED, project)
    counts["completed/completed"] += _number(conn, _EPISODES, project) - skipped - counts.total()
    counts["skipped/skipped"] += skipped
    return {stages: n for stages, n in counts.items() if n}


# ---- what needs a hand

_ITEM = """select j.id, u.name, j.kind, j.attempts, j.error, {since}, j.owner, j.uses from jobs j
join lanes l on l.id = j.lane_id left join subjects u on u.id = l.subject_id
where (:project is null or +j.project_id = :project) and """
_LEASE_ENDED = text(
    _ITEM.format(since="j.lease_until")
    + "j.state = 'leased' and j.lease_until <= :now order by j.lease_until limit :limit"
)
_FAILING = text(
    _ITEM.format(since="j.created_at")
    + "j.history <> '[]' and j.finished_at is null and j.error is not null and (j.attempts > 1 or j.crashes > 1)"
    " order by j.id limit :limit"
)
_OVERDUE = {
    state: text(
        _ITEM.format(since="j.due_at") + f"j.state = '{state}' and j.due_at < :before order by j.due_at limit :limit"
    )
    for state in ("waiting", "ready")
}
_GIVEN_UP = text(
    _ITEM.format(since="j.finished_at") + "j.state = 'dead' order by j.finished_at desc, j.id desc limit :limit"
)


def read_stuck(
    conn: Connection, project: int | None, settings: Settings, pauses: Sequence[PauseRow], *, any_worker: bool
) -> list[ItemRow]:
    """Ended leases, then what failed more than once, then what is due and not begun; each job once."""
    now = conn.now()
    params = {"project": project, "now": now, "before": now - OVERDUE_US, "limit": LISTED_MAX}
    ended = "the lease of {} ended: the next tick takes it back"
    items = [_item(r, ended.format(r[6])) for r in conn.rows(_LEASE_ENDED, params)]
    items += [_item(r, r[4]) for r in conn.rows(_FAILING, params)]
    why = NOT_BEGUN if any_worker else NO_WORKER
    for state in ("waiting", "ready"):
        overdue = conn.rows(_OVERDUE[state], params)
        items += [_item(r, why_job_waits(pauses, r[2], r[7], settings) or r[4] or why) for r in overdue]
    once: dict[str, ItemRow] = {}
    for item in items:
        once.setdefault(item.id, item)
    return list(once.values())[:LISTED_MAX]


def read_given_up(conn: Connection, project: int | None) -> list[ItemRow]:
    """Dead letters, newest first."""
    return [_item(r, r[4]) for r in conn.rows(_GIVEN_UP, {"project": project, "limit": LISTED_MAX})]


def _item(r: Row, error: str | None) -> ItemRow:
    job, subject, attempts, since = r[0], r[1], r[3], r[5]
    kind: str = r[2]
    return ItemRow(
        id=row_id("job", job), subject=subject, stage=STAGE_OF.get(kind, kind), attempts=attempts, error=_cut(error),
        since=since,
    )  # fmt: skip


def _cut(error: str | None) -> str | None:
    return error if error is None or len(error) <= ERROR_MAX else error[: ERROR_MAX - 1] + "…"


# ---- how long it takes

_TIMES = {
    stage: text(f"""
with spans as (select {column} - opened_at as span from windows where {column} > :since and {_IN}),
ranked as (select span, row_number() over (order by span) as place, count(*) over () as of_all from spans)
select count(*), min(case when place * 100 >= of_all * 50 then span end),
  min(case when place * 100 >= of_all * 95 then span end) from ranked""")
    for stage, column in (("summary", "summary_at"), ("facts", "facts_at"))
}


def read_timing(conn: Connection, project: int | None, stage: str) -> TimingRow:
    """Percentiles are of the nearest rank."""
    row = conn.first(_TIMES[stage], {"project": project, "since": conn.now() - DAY_US})
    assert row is not None
    completed, p50, p95 = row
    return TimingRow(stage=stage, completed=completed, p50_s=_seconds(p50), p95_s=_seconds(p95))


def _seconds(us: int | None) -> float | None:
    return None if us is None else us / 1e6


# ---- who works

_WORKERS = text("select id, slots, seen_at from workers where seen_at > :since or :all = 1 order by id")
_LEASES = text("select owner, id from jobs where state = 'leased' order by lease_until, id")


def read_workers(conn: Connection, settings: Settings) -> list[WorkerRow]:
    """Workers seen lately, and those that hold a lease."""
    leases: dict[str, list[str]] = {}
    for owner, job in conn.rows(_LEASES):
        leases.setdefault(owner, []).append(row_id("job", job))
    since = conn.now() - int(SEEN_WITHIN_BEATS * settings.work.heartbeat_s * 1e6)
    rows = conn.rows(_WORKERS, {"since": since, "all": int(bool(leases))})
    return [
        WorkerRow(id=w, slots=slots, running=len(leases.get(w, [])), last_seen_at=seen, leases=leases.get(w, []))
        for w, slots, seen in rows if seen > since or w in leases
    ]  # fmt: skip


def read_periodic(conn: Connection) -> list[PeriodicRow]:
    return [_periodic(r, conn.now()) for r in list_periodic(conn)]


def _periodic(r: Row, now: int) -> PeriodicRow:
    name, every, started, succeeded, error, next_due, repaired = r
    due = next_due if succeeded is None else succeeded + every
    failing = succeeded is None and error is not None
    return PeriodicRow(
        name=name, every_s=every / 1e6, last_start_at=started, last_success_at=succeeded, last_error=error,
        next_due_at=next_due, rows_repaired=repaired, degraded=failing or now > due + 2 * every,
    )  # fmt: skip


_RUNNING = text("select uses, count(*) from jobs where state = 'leased' group by uses")
_WAITING = text("select sum(ready_model), sum(ready_embedder) from lane_groups")


def read_providers(conn: Connection, settings: Settings) -> list[ProviderRow]:
    """A pool is `vendor:hash of the key`; which of model and embedder use it is read off the vendor."""
    running: dict[str, int] = dict(conn.rows(_RUNNING))
    model, embedder = conn.first(_WAITING) or (0, 0)
    waiting = {"model": model or 0, "embedder": embedder or 0}
    found = []
    for pool, circuit, reason, since, not_before, permits in list_providers(conn):
        uses = _uses_of(pool, settings)
        found.append(ProviderRow(
            name=pool, circuit=circuit, reason=reason, since=since,
            next_probe_at=None if circuit == "closed" else not_before,
            permits=min(int(permits), settings.models.permits_max), in_flight=sum(running.get(u, 0) for u in uses),
            waiting=sum(waiting[u] for u in uses),
        ))  # fmt: skip
    return found


def _uses_of(pool: str, settings: Settings) -> list[str]:
    vendor = pool.partition(":")[0]
    named = {"model": settings.model or "", "embedder": settings.embedder}
    return [use for use, name in named.items() if ":" in name and name.partition(":")[0] == vendor]


# ---- the three thresholds of `status --check`

# Failures are counted from the histories: of what is failing or given up now, and of what ended well within the hour.
_NO_FAILURE = ", ".join(f"'{name}'" for name in NOT_A_FAILURE)
_FAILED = text(f"""
select count(*) from (
  select history from jobs where history <> '[]' and finished_at is null and kind = :kind and {_IN}
  union all select history from jobs where history <> '[]' and finished_at > :since and kind || '' = :kind and {_IN}
) as failed, objects(failed.history) past
where number_in(past.value, 'at') > :since and word_in(past.value, 'class') not in ({_NO_FAILURE})""")


def count_failures(conn: Connection, project: int | None, kind: str) -> int:
    """Failures of one kind of job in the last hour, as its jobs' histories have them (20 at most for each)."""
    return int(conn.scalar(_FAILED, {"project": project, "kind": kind, "since": conn.now() - HOUR_US}))


def read_checks(conn: Connection, project: int | None, backlog: BacklogRow, settings: Settings) -> list[CheckRow]:
    limits = settings.status
    age = backlog.oldest_due_s or 0.0
    summaries = count_failures(conn, project, "summarise_episode")
    facts = count_failures(conn, project, "extract_facts")
    return [
        CheckRow(name="due_work_old", ok=age <= limits.due_work_s, value=age, threshold=limits.due_work_s,
                 message=f"the oldest due work has waited {age:.0f} s (at most {limits.due_work_s:.0f})"),
        CheckRow(name="episode_failures", ok=summaries <= limits.episode_failures_max, value=summaries,
                 threshold=limits.episode_failures_max,
                 message=f"{summaries} failed summaries in the last hour (at most {limits.episode_failures_max})"),
        CheckRow(name="fact_failures", ok=facts <= limits.fact_failures_max, value=facts,
                 threshold=limits.fact_failures_max,
                 message=f"{facts} failed extractions in the last hour (at most {limits.fact_failures_max})"),
    ]  # fmt: skip
