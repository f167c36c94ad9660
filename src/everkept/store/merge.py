"""Merging a project into another one: one commit makes its name that of the other, then a job moves what it has (G12).

The commit writes the `merges` row, which carries the job from one chunk to the next over any crash, and by which
readers tell what is not there yet from what never was. A chunk moves rows and notes how far it is in one transaction.
The source stays as a name: with its keys, and with the secret that tells what was accepted under it before (G2).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import text

from everkept.domain.erase import erased_name
from everkept.domain.ids import row_id
from everkept.domain.jobs import Lease, Schedule
from everkept.errors import Conflict
from everkept.store.changes import NewChange, record_changes
from everkept.store.connection import Connection
from everkept.store.facts import JUDGE, judge_wish
from everkept.store.jobs import schedule
from everkept.store.lanes import ensure_lane
from everkept.store.leases import require_lease
from everkept.store.merge_changes import heard
from everkept.store.merge_facts import entities, entities_left, facts, passages
from everkept.store.merge_jobs import drop_job
from everkept.store.merge_part import Chunk, Part, Place, Renamed, Stage
from everkept.store.merge_replies import REPLIES_PER_CHUNK, move_replies
from everkept.store.merge_rest import PROJECT_STAGES
from everkept.store.merge_streams import streams
from everkept.store.merging import Merge, find_merge, require_no_merge
from everkept.store.projects import DEFAULT_PROJECT, ProjectRow, get_project

__all__ = ["MERGE", "MergePlan", "begin_merge", "merge_chunk", "plan_merge"]

MERGE: Final = "merge_projects"
RENAMED_MAX: Final = 1_000
"""What is called otherwise is listed up to here; each has its new name, listed or not."""
SUBJECT_STAGES: Final[tuple[Stage, ...]] = (streams, entities, facts, entities_left, passages)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePlan:
    """What a merge would move, and what both call alike: that gets a name of its own, subjects are joined."""

    source: str
    target: str
    rows: dict[str, int]
    same_threads: int
    same_sessions: int
    same_subjects: int
    same_pages: int


# ---- the commit that makes a name of a project

_ERASING = text("select 1 from erasures where project_id in (:source, :target) and done_at is null limit 1")
_ELSEWHERE = text("""
select 1 from projects s join projects t on t.id = :target where s.id = :source and s.workspace_id <> t.workspace_id""")
_LAUNCHED = text("""
select 1 from launches where project_id = :source and state in ('prepared', 'running') and lease_until > :now
limit 1""")
_AHEAD = text("""
select 1 from workstreams w join workstream_ledger l on l.workstream_id = w.id
where w.project_id = :source and l.seq > (select change_seq from projects where id = :target) limit 1""")
_BECOMES_A_NAME = text("update projects set merged_into = :target, settings = '{}' where id = :source")
_ITS_NAMES_TOO = text("update projects set merged_into = :target where merged_into = :source")
_ALIASES = text("update project_aliases set project_id = :target where project_id = :source")
_ADD = text("""
insert into merges(source_id, target_id, source_name, erasure, asked_at)
values(:source, :target, :name, (select coalesce(max(id), 0) from erasures), :now) returning id""")


def begin_merge(conn: Connection, source: str, into: str) -> Merge:
    """From now on the source's name, keys and signs mean the target; a job brings what it has.

    Raises NotFound, and Conflict where it cannot be: the two are one, the source is `default`, something of either is
    being erased or merged, or an agent is at work for a line of work of the source. Asking again while it runs answers
    with the merge that runs.
    """
    one, other = _checked(conn, source, into)
    given = {"source": one.id, "target": other.id, "name": one.name, "now": conn.now()}
    id_ = conn.scalar(_ADD, given)
    for statement in (_BECOMES_A_NAME, _ITS_NAMES_TOO, _ALIASES):
        conn.run(statement, given)
    schedule(conn, [Schedule(
        kind=MERGE, key=str(id_), project=other.id, lane=ensure_lane(conn, other.id, 0), due_at_us=conn.now(),
        args=json.dumps({"merge": id_}),
    )])  # fmt: skip
    return _get(conn, id_)


def _checked(conn: Connection, source: str, into: str) -> tuple[ProjectRow, ProjectRow]:
    one, other = get_project(conn, source), get_project(conn, into)
    if one.found_as is not None:
        raise Conflict(f"{source!r} was merged into {one.name!r} already", project=source, into=one.name)
    if one.id == other.id:
        raise Conflict(f"{into!r} is the project {one.name!r} itself", project=source, into=into)
    if conn.first(_ELSEWHERE, {"source": one.id, "target": other.id}) is not None:
        raise Conflict(
            f"{source!r} and {other.name!r} are in two workspaces, which share nothing; move one of them first",
            project=source,
        )
    if source == DEFAULT_PROJECT:  # whoever names no project would find another one in its place
        raise Conflict("the project 'default' stays; merge the other one into it", project=source)
    given = {"source": one.id, "target": other.id}
    for project in (one.id, other.id):
        require_no_merge(conn, project, "merge it")
    if conn.first(_ERASING, given) is not None:
        raise Conflict("something is being erased in one of the two; merge them once that is done", project=source)
    if conn.first(_LAUNCHED, {**given, "now": conn.now()}) is not None:
        raise Conflict(f"an agent is at work in a workstream of {source!r}; merge once that has ended", project=source)
    if conn.first(_AHEAD, given) is not None:
        raise Conflict(
            f"the workstreams of {source!r} are numbered further than the changes of {other.name!r}; merge"
            f" {other.name!r} into {source!r} instead",
            project=source,
        )
    return one, other


def _get(conn: Connection, merge: int) -> Merge:
    found = find_merge(conn, merge)
    assert found is not None, "merges are never deleted"
    return found


# ---- what it would move

_PLAN: Final = {
    "threads": "streams where project_id = :source and kind = 'thread' and erased_at is null",
    "sessions": "streams where project_id = :source and kind = 'session' and erased_at is null",
    "messages": None,
    "subjects": "subjects where project_id = :source and erased_at is null and merged_into is null",
    "facts": "facts where project_id = :source",
    "pages": "pages where project_id = :source and version > 0",
    "handoffs": "handoffs where project_id = :source and state = 'open'",
    "proposals": "proposals where project_id = :source and state = 'staged'",
    "webhooks": "webhooks where project_id = :source",
}
_COUNTS = {name: text(f"select count(*) from {rows}") for name, rows in _PLAN.items() if rows is not None}
_MESSAGES = text("select coalesce(sum(last_seq), 0) from streams where project_id = :source")
_SAME_STREAMS = text("""
select s.kind, count(*) from streams s join streams t on t.project_id = :target and t.kind = s.kind and t.name = s.name
where s.project_id = :source group by s.kind""")
_SAME_SUBJECTS = text("""
select count(*) from subjects s join subjects t on t.project_id = :target and t.name = s.name
where s.project_id = :source""")
_SAME_PAGES = text("""
select count(*) from pages s join pages t on t.project_id = :target and t.slug = s.slug
where s.project_id = :source""")


def plan_merge(conn: Connection, source: str, into: str) -> MergePlan:
    """Raises as `begin_merge` does, and changes nothing."""
    one, other = _checked(conn, source, into)
    given = {"source": one.id, "target": other.id}
    rows = {name: int(conn.scalar(_COUNTS.get(name, _MESSAGES), given)) for name in _PLAN}
    alike: dict[str, int] = dict(conn.rows(_SAME_STREAMS, given))
    return MergePlan(
        source=one.name, target=other.name, rows=rows, same_threads=alike.get("thread", 0),
        same_sessions=alike.get("session", 0), same_subjects=int(conn.scalar(_SAME_SUBJECTS, given)),
        same_pages=int(conn.scalar(_SAME_PAGES, given)),
    )  # fmt: skip


# ---- the job's chunks

_NEXT_SUBJECT = text("""
select id, name from subjects where project_id = :source and merged_into is null order by id limit 1""")
# One that was taken already, where somebody who had read the source before has written to it since.
_WRITTEN_LATE = text("""
select subject_id from streams where project_id = :source
union select subject_id from facts where project_id = :source limit 1""")
_OF_NAME = text("select id from subjects where project_id = :target and name = :name")
_TAKE = text("update subjects set project_id = :target, revision = revision + 1 where id = :subject")
_JOIN = text("update subjects set merged_into = :into, name = :mark, revision = revision + 1 where id = :subject")
_ITS_FORMER = text("update subjects set merged_into = :into where merged_into = :subject")
_WHOSE = text("select coalesce(merged_into, id) from subjects where id = :subject")
_OPEN_CONFLICT = text("select 1 from verdicts where subject_id = :subject and verdict is null limit 1")
_CHANGE = text("select change from merges where id = :id")
_HEARD_SO_FAR = text("""
update merges set change = (select change_seq from projects where id = :target) where id = :id""")
_SAVE = text("""
update merges set working_on = :working_on, stage = :stage, after = :after, after_seq = :after_seq, moved = :moved,
  renamed = :renamed, done_at = :done_at where id = :id""")
_LATE = text("""
select exists (select 1 from streams where project_id = :source) or exists (
  select 1 from facts where project_id = :source) or exists (
  select 1 from subjects where project_id = :source and merged_into is null) or exists (
  select 1 from pages where project_id = :source) or exists (
  select 1 from workstreams where project_id = :source) or exists (
  select 1 from offers where project_id = :source) or exists (
  select 1 from webhooks where project_id = :source) or exists (
  select 1 from consumers where project_id = :source) or exists (
  select 1 from changes where project_id = :source) or exists (select 1 from jobs where project_id = :source)""")


def merge_chunk(conn: Connection, lease: Lease, merge: int) -> bool:
    """Move the next bit and note how far it is, in one transaction; False when it is done. Raises LeaseLost."""
    require_lease(conn, lease)
    found = _get(conn, merge)
    if found.done_at is not None:
        return False
    part = _part(conn, found)
    if part.change is None:
        return _carry_changes(conn, found, part)
    if found.working_on is None:
        return _take_subject(conn, found, part)
    stages = SUBJECT_STAGES if found.working_on else PROJECT_STAGES
    chunk = stages[found.stage](conn, part, Place(found.after, found.after_seq))
    if chunk.go_on is not None:
        return _save(conn, found, chunk, stage=found.stage)
    if found.stage + 1 < len(stages):
        return _save(conn, found, chunk, stage=found.stage + 1)
    if found.working_on:
        _judge_again(conn, part)
        return _save(conn, found, chunk, working_on=None)
    if conn.scalar(_LATE, part.params):
        return _save(conn, found, chunk, working_on=None)
    return _save(conn, found, chunk, working_on=0, stage=found.stage, done=True)


def _part(conn: Connection, merge: Merge) -> Part:
    subject = merge.working_on or 0
    into = conn.scalar(_WHOSE, {"subject": subject}) if subject else 0
    return Part(
        source=merge.source, target=merge.target, source_name=merge.source_name,
        change=conn.scalar(_CHANGE, {"id": merge.id}), subject=subject, into=into,
    )  # fmt: skip


def _carry_changes(conn: Connection, merge: Merge, part: Part) -> bool:
    chunk = heard(conn, part)
    if chunk.go_on is None:
        conn.run(_HEARD_SO_FAR, {"id": merge.id, "target": merge.target})
        merged = NewChange(kind="project.merged", ref=row_id("prj", merge.source), data={"name": merge.source_name})
        record_changes(conn, merge.target, [merged])
    return _save(conn, merge, chunk)


def _take_subject(conn: Connection, merge: Merge, part: Part) -> bool:
    """The next subject is the target's from now on, or is joined to the one of its name; first what was paid for."""
    asked = move_replies(conn, part)
    if asked == REPLIES_PER_CHUNK:
        return _save(conn, merge, Chunk({"replies": asked}, None), working_on=None)
    row = conn.first(_NEXT_SUBJECT, part.params)
    subject = conn.scalar(_WRITTEN_LATE, part.params) if row is None else _take(conn, part, *row)
    moved = {"replies": asked, "subjects": int(row is not None)}
    return _save(conn, merge, Chunk(moved, None), working_on=subject or 0)


def _take(conn: Connection, part: Part, subject: int, name: str) -> int:
    into = conn.scalar(_OF_NAME, {**part.params, "name": name})
    drop_job(conn, part, JUDGE, str(subject))
    if into is None:
        conn.run(_TAKE, {**part.params, "subject": subject})
        return subject
    given = {"subject": subject, "into": into, "mark": erased_name(subject)}
    for statement in (_JOIN, _ITS_FORMER):
        conn.run(statement, given)
    return subject


def _judge_again(conn: Connection, part: Part) -> None:
    if conn.first(_OPEN_CONFLICT, {"subject": part.into}) is not None:
        schedule(conn, [judge_wish(conn, part.target, part.into)])


_SAME: Final = -1


def _save(
    conn: Connection, merge: Merge, chunk: Chunk, *, working_on: int | None = _SAME, stage: int = 0, done: bool = False
) -> bool:
    """Note how far it is; whether there is more to do."""
    place = chunk.go_on or Place()
    moved = {kind: merge.moved.get(kind, 0) + chunk.rows.get(kind, 0) for kind in sorted({*merge.moved, *chunk.rows})}
    conn.run(_SAVE, {
        "id": merge.id, "working_on": merge.working_on if working_on == _SAME else working_on, "stage": stage,
        "after": place.after, "after_seq": place.after_seq,
        "moved": json.dumps({kind: n for kind, n in moved.items() if n}), "renamed": _listed(merge, chunk.renamed),
        "done_at": conn.now() if done else None,
    })  # fmt: skip
    return not done


def _listed(merge: Merge, new: tuple[Renamed, ...]) -> str:
    rows: list[Any] = [*merge.renamed, *new]
    return json.dumps(rows[:RENAMED_MAX], ensure_ascii=False)
