"""Jobs: schedule, promote, claim, renew, finish, expire. Lanes give the turn (G13), fences the right (G6, G7)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from sqlalchemy import text

from everkept.domain.jobs import Discard, Done, GiveUp, Lease, Outcome, Retry, Schedule, Snooze, Uses
from everkept.errors import LeaseLost
from everkept.store.connection import Connection, Row
from everkept.store.generations import follow_job
from everkept.store.pauses import paused_kinds

USES: tuple[Uses, ...] = ("local", "model", "embedder")
HISTORY_MAX = 20
HOLDS_MAX = 100
"""Jobs of paused kinds that one claim puts aside, so that it holds the write lock no longer than any."""

# ---- lanes: whoever counts in one has its group's row first, and then no other transaction counts in any of them

_GROUP_FIND = text("select id from lane_groups where project_id = :project")
_GROUP_ADD = text("insert into lane_groups(project_id) values(:project) on conflict do nothing")
_LANE_FIND = text("select id from lanes where group_id = :group and subject_id = :subject")
_LANE_ADD = text("insert into lanes(group_id, subject_id) values(:group, :subject) on conflict do nothing")


def ensure_lane(conn: Connection, project: int, subject: int) -> int:
    """The lane of one subject's work; subject 0 is the project's own."""
    group = conn.scalar(_GROUP_FIND, {"project": project})
    if group is None:
        conn.run(_GROUP_ADD, {"project": project})
        group = conn.scalar(_GROUP_FIND, {"project": project})
    lane = conn.scalar(_LANE_FIND, {"group": group, "subject": subject})
    if lane is None:
        conn.run(_LANE_ADD, {"group": group, "subject": subject})
        lane = conn.scalar(_LANE_FIND, {"group": group, "subject": subject})
    return int(lane)


def _count(use: str) -> dict[str, Any]:
    return {
        "group": text(f"update lane_groups set ready_{use} = ready_{use} + :n where id = :id"),
        "lane": text(f"update lanes set ready_{use} = ready_{use} + :n where id = :id"),
    }


_READY: dict[str, dict[str, Any]] = {use: _count(use) for use in USES}


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


# ---- promote and expire: what the tick does

_DUE = text("""
select j.id, l.group_id from jobs j join lanes l on l.id = j.lane_id
where j.state = 'waiting' and j.due_at <= :now order by j.due_at, j.id limit :limit""")
_OURS = text("""
select id, lane_id, uses, kind from jobs
where id in (select value from numbers(:jobs)) and state = 'waiting' and due_at <= :now
order by due_at, id for no key update skip locked""")
_GROUP_OURS = text("select id from lane_groups where id = :group for no key update skip locked")
_GROUPS_OURS = text("""
select id from lane_groups where id in (select value from numbers(:groups)) order by id
for no key update skip locked""")
_PROMOTE = text("update jobs set state = 'ready' where id = :id and state = 'waiting'")
_LANE_STATE = text("""
select l.group_id, l.running + l.ready_local + l.ready_model + l.ready_embedder,
       g.running + g.ready_local + g.ready_model + g.ready_embedder
from lanes l join lane_groups g on g.id = l.group_id where l.id = :lane""")
_LANE_WAKES = text("""
update lanes set served = (select g.virtual from lane_groups g where g.id = lanes.group_id)
where id = :lane and served < (select g.virtual from lane_groups g where g.id = lanes.group_id)""")
_GROUP_WAKES = text("""
update lane_groups set served = (select c.value from counters c where c.name = 'virtual')
where id = :group and served < (select c.value from counters c where c.name = 'virtual')""")
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
    _count_ready(conn, [(lane, use) for _, lane, use, kind in due if kind not in paused])
    return len(due), conn.scalar(_EARLIEST)


def _take_due(conn: Connection, limit: int) -> list[Row]:
    """(job, lane, uses, kind) of what is due and in nobody else's hands: a project's lanes first, then its jobs."""
    now = conn.now()
    found = conn.rows(_DUE, {"now": now, "limit": limit})
    ours = set(_groups_of_ours(conn, {group for _, group in found}))
    jobs = [job for job, group in found if group in ours]
    return conn.rows(_OURS, {"now": now, "jobs": json.dumps(jobs)}) if jobs else []


def _groups_of_ours(conn: Connection, groups: Collection[int]) -> list[int]:
    """Those whose lanes nobody counts in at this moment: until the end of the transaction only we do."""
    if not groups:
        return []
    return [group for (group,) in conn.rows(_GROUPS_OURS, {"groups": json.dumps(sorted(groups))})]


def _count_ready(conn: Connection, jobs: Sequence[tuple[int, str]]) -> None:
    for (lane, use), n in Counter(jobs).items():
        _add_ready(conn, lane, use, n)


# ---- hold: what a paused kind's due jobs are

_IS_HELD = "uses in ('held_local', 'held_model', 'held_embedder')"
_HOLD = text("update jobs set uses = 'held_' || uses where id = :id")
_HELD_KINDS = text(f"""
with recursive kinds(kind) as (
  select min(kind) from jobs where {_IS_HELD}
  union all
  select (select min(kind) from jobs where {_IS_HELD} and kind > kinds.kind) from kinds where kinds.kind is not null)
select kind from kinds where kind is not null""")
_HELD_JOBS = text(f"""
select j.id, j.lane_id, substr(j.uses, 6), l.group_id from jobs j join lanes l on l.id = j.lane_id
where {_IS_HELD.replace("uses", "j.uses")} and j.kind = :kind order by j.id limit :limit""")
_HELD_OURS = text(f"""
select id from jobs where id in (select value from numbers(:jobs)) and {_IS_HELD} for no key update skip locked""")
_GIVE_BACK = text("update jobs set uses = substr(uses, 6) where id = :id")


def _give_back(conn: Connection, paused: frozenset[str], limit: int) -> None:
    """Up to `limit` jobs of each kind; while there are more, whoever polls is told to come again."""
    for (kind,) in conn.rows(_HELD_KINDS):
        if kind in paused:
            continue
        held = conn.rows(_HELD_JOBS, {"kind": kind, "limit": limit})
        groups = set(_groups_of_ours(conn, {group for *_, group in held}))
        wanted = json.dumps([job for job, *_, group in held if group in groups])
        ours = {job for (job,) in conn.rows(_HELD_OURS, {"jobs": wanted})}
        jobs = [(job, lane, use) for job, lane, use, _ in held if job in ours]
        conn.many(_GIVE_BACK, [{"id": job} for job, _, _ in jobs])
        _count_ready(conn, [(lane, use) for _, lane, use in jobs])
        if len(held) == limit or len(jobs) < len(held):
            conn.hint(conn.now())


def _uncount_ready(conn: Connection, lane: int, use: str) -> None:
    """One job that was ready is not any more; a held one was counted nowhere."""
    if use in USES:
        _add_ready(conn, lane, use, -1)


def _add_ready(conn: Connection, lane: int, use: str, n: int) -> None:
    """Count jobs in; a lane (and its project) that was idle starts at the current minimum, without saved-up turns."""
    row = conn.first(_LANE_STATE, {"lane": lane})
    assert row is not None
    group, lane_busy, group_busy = row
    conn.run(_READY[use]["group"], {"n": n, "id": group})
    if n > 0 and not group_busy:
        conn.run(_GROUP_WAKES, {"group": group})
    if n > 0 and not lane_busy:
        conn.run(_LANE_WAKES, {"lane": lane})
    conn.run(_READY[use]["lane"], {"n": n, "id": lane})


_EXPIRED = text("""
select id, lane_id, crashes, history, owner, charged_s, project_id, kind, key from jobs
where state = 'leased' and (lease_until <= :now or exists (
  select 1 from workers w where w.id = jobs.owner and w.seen_at <= :dead)) order by lease_until limit :limit""")
_LEFT = text("""
select id, lane_id, crashes, history, owner, charged_s, project_id, kind, key from jobs
where state = 'leased' and owner = :owner order by lease_until""")
_EXPIRE = text("""
update jobs set state = :state, owner = null, lease_until = null, due_at = :now, error = :error,
  error_class = 'crashed', history = :history, finished_at = :finished where id = :id""")


@dataclass(frozen=True, slots=True)
class Expired:
    job: int
    owner: str
    dead: bool


def expire_leases(conn: Connection, crashes_max: int, limit: int = 100, unseen_s: float | None = None) -> list[Expired]:
    """Take back what a worker no longer renews. The claim was booked as a crash, so the count is already right.

    A worker that was not seen for `unseen_s` is taken for dead before its leases end; should it only have been frozen,
    the next claim's fence refuses what it brings.
    """
    now = conn.now()
    unseen = -1 if unseen_s is None else now - int(unseen_s * 1e6)
    return _take_back(conn, conn.rows(_EXPIRED, {"now": now, "dead": unseen, "limit": limit}), crashes_max)


def expire_worker(conn: Connection, owner: str, crashes_max: int) -> list[Expired]:
    """Take back, before their ends, all leases of a worker whose process is known to be dead, and forget it."""
    gone = _take_back(conn, conn.rows(_LEFT, {"owner": owner}), crashes_max)
    remove_worker(conn, owner)
    return gone


def _take_back(conn: Connection, leased: Sequence[Row], crashes_max: int) -> list[Expired]:
    now = conn.now()
    gone = []
    for job, lane, crashes, history, owner, charged, project, kind, key in leased:
        dead = crashes >= crashes_max
        error = f"the worker {owner} died or froze over it ({crashes} of at most {crashes_max} times)"
        conn.run(_EXPIRE, {
            "id": job, "state": "dead" if dead else "waiting", "now": now, "error": error,
            "finished": now if dead else None, "history": add_history(history, now, "crashed", error),
        })  # fmt: skip
        _leave(conn, lane, charged, charged)
        if dead:
            follow_job(conn, project, kind, key, "dead", error)
        gone.append(Expired(job, owner, dead))
    if gone:
        conn.hint(now)
    return gone


def add_history(history: str, at_us: int, error_class: str, error: str) -> str:
    rows = json.loads(history)
    rows.append({"at": at_us, "class": error_class, "error": error[:500]})
    return json.dumps(rows[-HISTORY_MAX:])


# ---- claim


def _turns(uses: tuple[Uses, ...]) -> Any:
    """(use, group, served) of the projects that have served least, so many a use."""
    return text(" union all ".join(f"""
select * from (select '{use}' as use, id, served from lane_groups
  where ready_{use} > 0 order by served, id limit :k) as {use}_turns"""
        for use in uses))  # fmt: skip


_TURNS = {some: _turns(some) for n in range(1, len(USES) + 1) for some in combinations(USES, n)}


def _lanes(use: str) -> Any:
    return text(
        f"select id, served, running from lanes where group_id = :group and ready_{use} > 0"
        " order by served, id limit :k"
    )


_LANES = {use: _lanes(use) for use in USES}


def _head_of_lane(use: str) -> Any:
    """The first of the jobs without a serial key and of each key that nobody works: a seek a key, not a walk of jobs.

    Every ready job of a lane may stand behind one leased key, as after a reprocess. The state is asked again of the row
    that is locked, and so that no index on it is used.
    """
    ready = f"from jobs where lane_id = :lane and state = 'ready' and uses = '{use}'"
    return text(f"""
with recursive keys(serial_key) as (
  select min(serial_key) {ready} and serial_key is not null
  union all
  select (select min(serial_key) {ready} and serial_key > keys.serial_key) from keys where keys.serial_key is not null)
select id, kind, due_at, crashes from jobs where coalesce(state, '') = 'ready' and id in (
  select (select id {ready} and serial_key is null order by due_at, id limit 1)
  union all
  select (select id {ready} and serial_key = k.serial_key order by due_at, id limit 1) from keys k
  where not exists (select 1 from jobs o where o.serial_key = k.serial_key and o.state = 'leased'))
order by due_at, id limit 1 for no key update skip locked""")


_NEXT = {use: _head_of_lane(use) for use in USES}
_PROBE = {
    use: text(f"""
select j.id, j.kind, j.crashes, j.lane_id, g.id, l.served, g.served
from jobs j join lanes l on l.id = j.lane_id join lane_groups g on g.id = l.group_id
where exists (select 1 from lane_groups where ready_{use} > 0)  -- else all that is ready of another use is read
  and j.state = 'ready' and j.uses = '{use}' and j.due_at <= :now and l.running < :cap
  and (j.serial_key is null or not exists (
    select 1 from jobs o where o.serial_key = j.serial_key and o.state = 'leased'))
order by j.due_at, j.id limit 1 for no key update of j skip locked""")
    for use in USES
}
_POSTPONE = text(f"""
update jobs set state = 'waiting', uses = case when {_IS_HELD} then substr(uses, 6) else uses end where id = :id""")
_LEASE = text("""
update jobs set state = 'leased', owner = :owner, lease_until = :until, fence = fence + 1, crashes = crashes + 1,
  leased_generation = generation, started_at = :now, charged_s = :charge
where id = :id
returning id, kind, key, project_id, lane_id, uses, args, fence, generation, attempts, crashes, budget,
  traceparent, (select l.subject_id from lanes l where l.id = jobs.lane_id)""")


# Whoever was held up (a circuit, a serial key, an estimate that was too high) has one turn at once and then stands with
# the others: turns are never saved up, or a lane that wakes would wait until all of them were spent (G13).
def _serving(use: str) -> tuple[Any, Any]:
    return (
        text(f"""
update lanes set running = running + 1, ready_{use} = ready_{use} - 1, served = :s + (
  select case when g.virtual > lanes.served then g.virtual else lanes.served end
  from lane_groups g where g.id = lanes.group_id)
where id = :id"""),
        text(f"""
update lane_groups set running = running + 1, ready_{use} = ready_{use} - 1,
  virtual = case when virtual < :lane_served then :lane_served else virtual end,
  served = :s / weight + (
    select case when c.value > lane_groups.served then c.value else lane_groups.served end
    from counters c where c.name = 'virtual')
where id = :id"""),
    )


_SERVE = {use: _serving(use) for use in USES}
_SERVE_ALL = text("update counters set value = :served where name = 'virtual' and value < :served")
_VIRTUAL = text("insert into counters(name, value) values('virtual', 0) on conflict do nothing")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRequest:
    owner: str
    free: int
    """Slots this worker has free; it never claims more."""
    slots: int
    """Slots of all live workers: a lane holds at most one less (at least one)."""
    lease_s: float
    uses: dict[Uses, int]
    """What may be claimed, and how many of each at most (permits left; 1 for a probe; absent: circuit open)."""
    probes: frozenset[Uses] = frozenset()
    """Uses whose one permit is a probe."""
    idle: bool
    """Nothing runs in this worker: only then is a job taken whose last worker died."""
    estimates_s: dict[str, float]


@dataclass(slots=True)
class _Holding:
    """The paused kinds that one claim meets among what was made ready before the pause."""

    paused: frozenset[str]
    left: int = HOLDS_MAX
    any: bool = False
    """Something was held since this was last looked at: lanes that only had such work stand back now."""

    def hold(self, conn: Connection, job: int, lane: int, use: Uses) -> bool:
        """False where this claim has held enough: the next one goes on."""
        if not self.left:
            return False
        conn.run(_HOLD, {"id": job})
        _add_ready(conn, lane, use, -1)
        self.left, self.any = self.left - 1, True
        return True


@dataclass(slots=True)
class _Groups:
    """The projects in whose lanes this claim may count."""

    ours: set[int]
    others: set[int]
    """Somebody counts in them at this moment: the next claim finds them free."""

    def take(self, conn: Connection, group: int) -> bool:
        if group not in self.ours and group not in self.others:
            is_ours = conn.first(_GROUP_OURS, {"group": group}) is not None
            (self.ours if is_ours else self.others).add(group)
        return group in self.ours


@dataclass(frozen=True, slots=True)
class _Next:
    """The job whose turn it is."""

    job: int
    kind: str
    crashes: int
    lane: int
    use: Uses
    group: int
    lane_served: float
    group_served: float


@dataclass(frozen=True, slots=True)
class Claimed:
    leases: list[Lease]
    drain: bool
    """The next in turn must run alone: claim nothing until this worker is idle."""


def claim(conn: Connection, request: ClaimRequest) -> Claimed:
    """Lease what is next in turn, at most the free slots: lanes by least service received, due time within one."""
    leases: list[Lease] = []
    left = dict(request.uses)
    cap = max(1, request.slots - 1)
    running = sum(running_by_use(conn).values())
    holding = _Holding(paused_kinds(conn))
    groups = _Groups(set(), set())
    conn.run(_VIRTUAL)
    while len(leases) < request.free:
        # A lane that is passed over has something running, so among this many one is free to go.
        look = running + len(leases) + 1
        uses = [u for u in USES if left.get(u, 0) > 0]
        holding.any = False
        found = _next_probe(conn, [u for u in uses if u in request.probes], cap, groups, holding) or _next_in_turn(
            conn, [u for u in uses if u not in request.probes], cap, look, groups, holding
        )
        if found is None and holding.any and holding.left:
            continue
        if found is None:
            break
        alone = found.crashes > 0
        if alone and not (request.idle and not leases):
            return Claimed(leases, drain=True)
        leases.append(_take(conn, request, found, alone=alone))
        left[found.use] -= 1
        if alone:
            return Claimed(leases, drain=True)
    if not holding.left or groups.others:
        conn.hint(conn.now())
    return Claimed(leases, drain=False)


def _next_probe(conn: Connection, uses: Sequence[Uses], cap: int, groups: _Groups, holding: _Holding) -> _Next | None:
    """As `_next_in_turn`, but what has been due for longest, whatever its lane.

    A failed probe goes to the end of this row: one bad question cannot take every probe and keep the circuit open.
    """
    for use in uses:
        while (row := conn.first(_PROBE[use], {"now": conn.now(), "cap": cap})) is not None:
            job, kind, crashes, lane, group, lane_served, group_served = row
            if not groups.take(conn, group):
                break
            if kind not in holding.paused:
                return _Next(job, kind, crashes, lane, use, group, lane_served, group_served)
            if not holding.hold(conn, job, lane, use):
                break
    return None


def _next_in_turn(
    conn: Connection, uses: Sequence[Uses], cap: int, look: int, groups: _Groups, holding: _Holding
) -> _Next | None:
    if not uses:
        return None
    turns = sorted(
        ((served, group, use) for use, group, served in conn.rows(_TURNS[tuple(uses)], {"k": look})),
        key=lambda turn: turn[:2],
    )
    for group_served, group, use in turns:
        if not groups.take(conn, group):
            continue
        for lane, lane_served, lane_running in conn.rows(_LANES[use], {"group": group, "k": look}):
            if lane_running >= cap:
                continue
            job = _due_in_lane(conn, lane, use, holding)
            if job is not None:
                return _Next(*job, lane, use, group, lane_served, group_served)
    return None


def _due_in_lane(conn: Connection, lane: int, use: Uses, holding: _Holding) -> tuple[int, str, int] | None:
    """(job, kind, crashes) of the lane's next that may run.

    One that was pushed out after it became ready goes back to waiting, and one of a paused kind is held.
    """
    while True:
        row = conn.first(_NEXT[use], {"lane": lane})
        if row is None:
            return None
        job, kind, due_at, crashes = row
        if kind in holding.paused:
            if not holding.hold(conn, job, lane, use):
                return None
            continue
        if due_at <= conn.now():
            return job, kind, crashes
        conn.run(_POSTPONE, {"id": job})
        _add_ready(conn, lane, use, -1)


def _take(conn: Connection, request: ClaimRequest, found: _Next, *, alone: bool) -> Lease:
    now = conn.now()
    until = now + int(request.lease_s * 1e6)
    charge = request.estimates_s.get(found.kind, 0.05)
    serve_lane, serve_group = _SERVE[found.use]
    with conn.at_once():
        conn.put(serve_lane, {"id": found.lane, "s": charge})
        conn.put(serve_group, {"id": found.group, "s": charge, "lane_served": found.lane_served})
        conn.put(_SERVE_ALL, {"served": found.group_served})
        row = conn.first(
            _LEASE, {"id": found.job, "owner": request.owner, "until": until, "now": now, "charge": charge}
        )
    assert row is not None
    (job_id, kind, key, project, lane_id, uses, args, fence, generation, attempts, crashes, budget, traceparent,
     subject) = row  # fmt: skip
    return Lease(
        job=job_id,
        kind=kind,
        key=key,
        project=project,
        lane=lane_id,
        subject=subject,
        uses=uses,
        args=json.loads(args),
        fence=fence,
        generation=generation,
        attempts=attempts,
        crashes=crashes,
        budget=budget,
        until_us=until,
        charged_s=charge,
        alone=alone,
        traceparent=traceparent,
    )


# ---- renew and finish

_RENEW = text("""
update jobs set lease_until = :until where owner = :owner and state = 'leased' and lease_until > :now
  and (:jobs is null or +id in (select value from numbers(:jobs))) returning id, fence""")
_SEEN = text("""
insert into workers(id, slots, started_at, seen_at) values(:id, :slots, :now, :now)
on conflict(id) do update set seen_at = excluded.seen_at, slots = excluded.slots""")
_GONE = text("delete from workers where id = :id")
_UNSEEN = text("""
delete from workers where seen_at < :before
  and not exists (select 1 from jobs where state = 'leased' and owner = workers.id)""")
WORKER_KEPT_S = 86_400.0


def renew_leases(
    conn: Connection, owner: str, slots: int, lease_s: float, jobs: Sequence[int] | None = None
) -> dict[int, int]:
    """One statement for the leases of a process, or those of `jobs` among them.

    Those still held now end later, as {job: fence}; ended ones do not.
    """
    now = conn.now()
    conn.run(_SEEN, {"id": owner, "slots": slots, "now": now})
    only = None if jobs is None else json.dumps(list(jobs))
    return dict(conn.rows(_RENEW, {"owner": owner, "now": now, "until": now + int(lease_s * 1e6), "jobs": only}))


def remove_worker(conn: Connection, owner: str) -> bool:
    """Whether it holds no lease any more: what it could not give back ends with its time, or is taken from it."""
    conn.run(_GONE, {"id": owner})
    return conn.first(_LEFT, {"owner": owner}) is None


def prune_workers(conn: Connection) -> int:
    """Forget processes that were killed: not seen for a day, and without a lease."""
    return conn.run(_UNSEEN, {"before": conn.now() - int(WORKER_KEPT_S * 1e6)})


_HELD = text("""
select generation, history, due_at, first_due_at from jobs
where id = :id and fence = :fence and state = 'leased' and lease_until > :now""")
_SUBJECT = text("select revision from subjects where id = :subject")
_COUNT = text("""
insert into counters(name, value) values(:name, :n)
on conflict(name) do update set value = counters.value + excluded.value""")
_FINISH = text("""
update jobs set state = :state, owner = null, lease_until = null,
  crashes = case when :clean = 1 or crashes = 0 then 0 else crashes - 1 end,
  attempts = :attempts, due_at = :due, first_due_at = :first_due, error = :error, error_class = :error_class,
  history = :history, finished_at = :finished
where id = :id""")


def count(conn: Connection, name: str, n: int = 1) -> None:
    """Add to a counter that `status` shows."""
    conn.share()
    conn.run(_COUNT, {"name": name, "n": n})


def require_lease(conn: Connection, lease: Lease) -> None:
    """Raise LeaseLost unless the lease is held now, by the database's clock and with this fence."""
    if conn.first(_HELD, {"id": lease.job, "fence": lease.fence, "now": conn.now()}) is None:
        raise LeaseLost("the lease of this job ended or was taken over; nothing was written", job=lease.job)


def finish(conn: Connection, lease: Lease, outcome: Outcome, ran_s: float) -> str:
    """Book the outcome in the transaction of its effect. Raises LeaseLost, and then nothing of it counts.

    A run that came to its own end (done, or snoozed with more to do) gives the job its budgets back.
    """
    now = conn.now()
    held = conn.first(_HELD, {"id": lease.job, "fence": lease.fence, "now": now})
    if held is None:
        raise LeaseLost("the lease of this job ended or was taken over; nothing was written", job=lease.job)
    generation, history, due_at, first_due = held
    again = generation != lease.generation
    row: dict[str, Any] = {
        "id": lease.job, "state": "waiting", "attempts": lease.attempts, "due": due_at, "first_due": first_due,
        "error": None, "error_class": None, "history": history, "finished": None, "clean": 0,
    }  # fmt: skip
    match outcome:
        case Done() if again:
            row.update(attempts=0, clean=1)
        case Done():
            row.update(state="done", attempts=lease.attempts, first_due=None, finished=now)
        case Snooze(until_us=until, why=why):
            row.update(due=min(due_at, until) if again else until, attempts=0, clean=1,
                       error=why, error_class=None if why is None else "snoozed")  # fmt: skip
        case Discard(why=why):
            row.update(state="waiting" if again else "discarded", error=why, finished=None if again else now)
        case Retry(at_us=at, error_class=error_class, error=error, spend=spend):
            row.update(due=at, attempts=lease.attempts + int(spend), error=error[:2000], error_class=error_class,
                       history=add_history(history, now, error_class, error))  # fmt: skip
        case GiveUp(error_class=error_class, error=error):
            row.update(
                state="dead",
                attempts=lease.attempts + 1,
                error=error[:2000],
                error_class=error_class,
                finished=now,
                history=add_history(history, now, error_class, error),
            )
    with conn.at_once():
        conn.put(_FINISH, row)
        _leave(conn, lease.lane, lease.charged_s, ran_s)
    if row["state"] in ("dead", "discarded"):
        follow_job(conn, lease.project, lease.kind, lease.key, row["state"], row["error"])
    if row["state"] == "waiting":
        conn.hint(row["due"])
    return str(row["state"])


_LEAVE_GROUP = text("""
update lane_groups set running = running - 1, served = served + :correction / weight
where id = (select group_id from lanes where id = :lane)""")
_LEAVE_LANE = text("update lanes set running = running - 1, served = served + :correction where id = :lane")


def _leave(conn: Connection, lane: int, charged_s: float, ran_s: float) -> None:
    """The lane has a slot less; what it was charged at the claim is corrected to what it used."""
    correction = ran_s - charged_s
    conn.put(_LEAVE_GROUP, {"lane": lane, "correction": correction})
    conn.put(_LEAVE_LANE, {"lane": lane, "correction": correction})


def refuse_finish(conn: Connection) -> None:
    """A holder came back too late; it wrote nothing, and is counted."""
    count(conn, "refused_finishes")


_LIVE_SLOTS = text("select coalesce(sum(slots), 0) from workers where seen_at > :since")
_RUNNING = text("select uses, count(*) from jobs where state = 'leased' group by uses")


def live_slots(conn: Connection, within_s: float) -> int:
    return int(conn.scalar(_LIVE_SLOTS, {"since": conn.now() - int(within_s * 1e6)}))


def running_by_use(conn: Connection) -> dict[str, int]:
    return dict(conn.rows(_RUNNING))


# ---- by hand

# Whoever looks for work has no lock of the project: without the row's own, what is read as ready is leased by the time
# that it is written, and its lane counts it for ever.
_LOAD = text("""
select id, state, lane_id, uses, history, charged_s, kind, key from jobs where id = :id and project_id = :project
for no key update""")
_HAND_RETRY = text("""
update jobs set state = 'waiting', due_at = :now, first_due_at = :now, budget = budget + 1, attempts = 0, crashes = 0,
  finished_at = null, generation = generation + 1, history = :history where id = :id""")
_HAND_DISCARD = text(f"""
update jobs set state = 'discarded', uses = case when {_IS_HELD} then substr(uses, 6) else uses end, owner = null,
  lease_until = null, error = :why, finished_at = :now,
  history = :history, fence = fence + 1 where id = :id""")
_HAND_RELEASE = text("""
update jobs set state = 'waiting', owner = null, lease_until = null, due_at = :now, fence = fence + 1,
  crashes = case when crashes > 0 then crashes - 1 else 0 end, history = :history where id = :id""")
_DEAD = text("""
select id from jobs where state = 'dead' and project_id = :project and (:kind is null or kind = :kind)
  and (:cause is null or error_class = :cause) and id > :after order by id limit :limit""")


def retry_by_hand(conn: Connection, project: int, job: int) -> bool:
    """A dead job gets a new budget and keeps its history. Of concurrent retries only the first finds it dead."""
    row = conn.first(_LOAD, {"id": job, "project": project})
    if row is None or row[1] != "dead":
        return False
    now = conn.now()
    conn.run(_HAND_RETRY, {"id": job, "now": now, "history": add_history(row[4], now, "by_hand", "retried by hand")})
    follow_job(conn, project, row[6], row[7], "waiting", None)
    conn.hint(now)
    return True


def retry_dead(
    conn: Connection, project: int, kind: str | None, cause: str | None, after: int, limit: int
) -> list[int]:
    """One chunk of `retry all`: the ids retried, in order; an empty list is the end."""
    ids = [r[0] for r in conn.rows(
        _DEAD, {"project": project, "kind": kind, "cause": cause, "after": after, "limit": limit})]  # fmt: skip
    for job in ids:
        retry_by_hand(conn, project, job)
    return ids


def discard_by_hand(conn: Connection, project: int, job: int, why: str) -> bool:
    row = conn.first(_LOAD, {"id": job, "project": project})
    if row is None or row[1] in ("done", "discarded"):
        return False
    _, state, lane, use, history, charged, kind, key = row
    now = conn.now()
    if state == "ready":
        _uncount_ready(conn, lane, use)
    if state == "leased":
        _leave(conn, lane, charged, charged)
    conn.run(
        _HAND_DISCARD,
        {"id": job, "now": now, "why": why, "history": add_history(history, now, "by_hand", f"discarded: {why}")},
    )
    follow_job(conn, project, kind, key, "discarded", why)
    return True


def release_by_hand(conn: Connection, project: int, job: int) -> bool:
    """End a lease now: the fence grows, so the old holder's finish is refused."""
    row = conn.first(_LOAD, {"id": job, "project": project})
    if row is None or row[1] != "leased":
        return False
    _, _, lane, _, history, charged, _, _ = row
    now = conn.now()
    _leave(conn, lane, charged, charged)
    conn.run(
        _HAND_RELEASE, {"id": job, "now": now, "history": add_history(history, now, "by_hand", "released by hand")}
    )
    conn.hint(now)
    return True


def put_back(conn: Connection, project: int, job: int) -> bool:
    """A job that may be claimed waits again, in no lane's count; the next tick makes it claimable where it then is."""
    row = conn.first(_LOAD, {"id": job, "project": project})
    if row is None or row[1] != "ready":
        return False
    conn.run(_POSTPONE, {"id": job})
    _uncount_ready(conn, row[2], row[3])
    return True


_PRUNE = text("""
delete from jobs where id in (
  select id from jobs where state = 'done' and finished_at < :before order by finished_at limit :limit)""")


def prune_jobs(conn: Connection, keep_s: float, limit: int = 500) -> int:
    """Delete done jobs past their retention, a chunk at a time; their effects have keys of their own.

    A discarded job stays: it is what tells the sweeps that somebody decided.
    """
    return conn.run(_PRUNE, {"before": conn.now() - int(keep_s * 1e6), "limit": limit})
