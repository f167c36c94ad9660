"""Lanes: the turns of each subject's work, and of their projects (`lane_groups`), by service received (G13).

Whoever counts in a lane has its group's row first, and then no other transaction counts in any of that group.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import text

from everkept.domain.jobs import Uses
from everkept.store.connection import Connection

USES: tuple[Uses, ...] = ("local", "model", "embedder")
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

_GROUP_OURS = text("select id from lane_groups where id = :group for no key update skip locked")
_GROUPS_OURS = text("""
select id from lane_groups where id in (select value from numbers(:groups)) order by id
for no key update skip locked""")
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
_LEAVE_GROUP = text("""
update lane_groups set running = running - 1, served = served + :correction / weight
where id = (select group_id from lanes where id = :lane)""")
_LEAVE_LANE = text("update lanes set running = running - 1, served = served + :correction where id = :lane")


def is_ours(conn: Connection, group: int) -> bool:
    """Whether nobody else counts in its lanes at this moment: until the end of the transaction only we do."""
    return conn.first(_GROUP_OURS, {"group": group}) is not None


def groups_of_ours(conn: Connection, groups: Collection[int]) -> list[int]:
    """Those of them that `is_ours`, in one statement."""
    if not groups:
        return []
    return [group for (group,) in conn.rows(_GROUPS_OURS, {"groups": json.dumps(sorted(groups))})]


def count_ready(conn: Connection, jobs: Sequence[tuple[int, str]]) -> None:
    for (lane, use), n in Counter(jobs).items():
        add_ready(conn, lane, use, n)


def uncount_ready(conn: Connection, lane: int, use: str) -> None:
    """One job that was ready is not any more; a held one was counted nowhere."""
    if use in USES:
        add_ready(conn, lane, use, -1)


def add_ready(conn: Connection, lane: int, use: str, n: int) -> None:
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


def leave_lane(conn: Connection, lane: int, charged_s: float, ran_s: float) -> None:
    """The lane has a slot less; what it was charged at the claim is corrected to what it used."""
    correction = ran_s - charged_s
    conn.put(_LEAVE_GROUP, {"lane": lane, "correction": correction})
    conn.put(_LEAVE_LANE, {"lane": lane, "correction": correction})
