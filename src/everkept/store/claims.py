"""Claims: what is next in turn is leased. Lanes give the turn (G13), fences the right (G6, G7)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from sqlalchemy import text

from everkept.domain.jobs import Lease, Uses
from everkept.store.connection import Connection
from everkept.store.jobs import hold, postpone
from everkept.store.lanes import USES, add_ready, is_ours
from everkept.store.pauses import paused_kinds

HOLDS_MAX = 100
"""Jobs of paused kinds that one claim puts aside, so that it holds the write lock no longer than any."""


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
        hold(conn, job)
        add_ready(conn, lane, use, -1)
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
            (self.ours if is_ours(conn, group) else self.others).add(group)
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
        postpone(conn, job)
        add_ready(conn, lane, use, -1)


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


_RUNNING = text("select uses, count(*) from jobs where state = 'leased' group by uses")


def running_by_use(conn: Connection) -> dict[str, int]:
    return dict(conn.rows(_RUNNING))
