"""Jobs as they are shown: listed newest first, with what each works on in words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import TextClause, text

from everkept.domain.ids import row_id
from everkept.errors import NotFound
from everkept.store.connection import Connection, Row
from everkept.store.project_names import shown
from everkept.store.projects import ERASED, is_erased, shown_name

STATES = ("waiting", "ready", "leased", "done", "dead", "discarded")
OF_STREAM = ("open_window", "fold_summary")
OF_WINDOW = ("summarise_episode", "extract_facts")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """One job. Times in microseconds since 1970."""

    id: int
    kind: str
    key: str
    project: str
    subject: str | None
    """None for work of the project itself."""
    state: str
    due_at: int | None
    """None once it is done, dead or discarded."""
    attempts: int
    crashes: int
    error: str | None
    error_class: str | None
    uses: str
    """local, model or embedder: whose provider it needs; with `held_` before it while its kind is paused."""
    input: str
    """What it works on, e.g. `thread chat-1` or `episode epi_12`."""
    lease_owner: str | None
    lease_until: int | None
    fence: int
    created_at: int
    finished_at: int | None
    history: list[dict[str, Any]]
    """Earlier failures, oldest first: `at`, `class`, `error`."""


_COLUMNS = f"""
select j.id, j.kind, j.key, {shown("p")}, u.name, j.state, j.due_at, j.attempts, j.crashes, j.error, j.error_class,
  j.owner, j.lease_until, j.fence, j.created_at, j.finished_at, j.history, j.uses
from jobs j join projects p on p.id = j.project_id join lanes l on l.id = j.lane_id
  left join subjects u on u.id = l.subject_id """
_PICK = """where j.id in (select id from jobs where project_id = :project and (:kind is null or kind = :kind)
  and (:before is null or id < :before) """
_LANE = """(
  select l.id from lanes l join lane_groups g on g.id = l.group_id
  where g.project_id = :project and l.subject_id = :subject)"""
# The state stands in the statement, and the order of rare states is not that of the rows, so that the index of that
# state is used: a handful of dead jobs is found among a million done ones.
_RARE = ("waiting", "ready", "leased", "dead")
_FEW = ("leased", "dead")
"""So few that they are looked through for a lane's, which may have many others."""


def _newest(state: str | None, *, of_lane: bool) -> TextClause:
    wanted = "" if state is None else f" and state = '{state}'"
    if of_lane:
        wanted += f" and {'+' if state in _FEW else ''}lane_id = {_LANE}"
    order = "id + 0" if state in _RARE else "id"
    return text(f"{_COLUMNS}{_PICK}{wanted} order by {order} desc limit :limit) order by j.id desc")


_NEWEST = {state or "any": _newest(state, of_lane=False) for state in (None, *STATES)}
_NEWEST_OF_LANE = {state or "any": _newest(state, of_lane=True) for state in (None, *STATES)}
_BY_ID = text(_COLUMNS + "where j.project_id = :project and j.id = :id")
_CAUSES = text("""
select kind, coalesce(error_class, 'unknown'), count(*) from jobs where state = 'dead' and project_id = :project
group by 1, 2 order by 3 desc, 1, 2 limit :limit""")
_LISTED = " where +project_id = :project and id in (select value from numbers(:ids))"
_THREADS = text("select id, name from streams" + _LISTED)
_SLICES = text("select id, slices from windows" + _LISTED)


def list_jobs(
    conn: Connection, project: int, state: str | None, kind: str | None, before: int | None, limit: int,
    subject: int | None = None,
) -> list[JobRow]:  # fmt: skip
    """Newest first, older than the job `before`; of `subject`, those in its lane. An unknown state or kind finds
    nothing."""
    if state is not None and state not in STATES:
        return []
    asked = {"project": project, "kind": kind, "before": before, "limit": limit}
    if subject is None:
        rows = conn.rows(_NEWEST[state or "any"], asked)
    else:
        rows = conn.rows(_NEWEST_OF_LANE[state or "any"], {**asked, "subject": subject})
    return _with_input(conn, project, [_job(r) for r in rows])


def count_causes(conn: Connection, project: int, limit: int) -> list[tuple[str, str, int]]:
    """(kind, class of error, dead jobs of it), the most first."""
    return [(kind, cause, int(jobs)) for kind, cause, jobs in conn.rows(_CAUSES, {"project": project, "limit": limit})]


def get_job(conn: Connection, project: int, job: int) -> JobRow:
    """Raises NotFound where the job does not exist in the project."""
    row = conn.first(_BY_ID, {"project": project, "id": job})
    if row is None:
        name = row_id("job", job)
        raise NotFound(f"there is no job {name} here; finished ones are kept for work.job_retention_s", id=name)
    return _with_input(conn, project, [_job(row)])[0]


def _job(r: Row) -> JobRow:
    return JobRow(
        id=r[0], kind=r[1], key=r[2], project=r[3], subject=shown_name(r[4]), state=r[5],
        due_at=r[6] if r[5] in ("waiting", "ready", "leased") else None, attempts=r[7], crashes=r[8], error=r[9],
        error_class=r[10], input=r[2], lease_owner=r[11], lease_until=r[12], fence=r[13], created_at=r[14],
        finished_at=r[15], history=json.loads(r[16]), uses=r[17],
    )  # fmt: skip


def _with_input(conn: Connection, project: int, jobs: Sequence[JobRow]) -> list[JobRow]:
    threads = _named(conn, _THREADS, project, [int(j.key) for j in jobs if j.kind in OF_STREAM])
    slices = _named(conn, _SLICES, project, [_window(j.key)[0] for j in jobs if j.kind in OF_WINDOW])
    return [replace(j, input=_input(j, threads, slices)) for j in jobs]


def _named(conn: Connection, statement: Any, project: int, ids: Sequence[int]) -> dict[int, Any]:
    return dict(conn.rows(statement, {"project": project, "ids": json.dumps(sorted(set(ids)))})) if ids else {}


def _window(key: str) -> tuple[int, int]:
    window, _, part = key.partition(".")
    return int(window), int(part)


def _input(job: JobRow, threads: dict[int, str], slices: dict[int, int]) -> str:
    if job.kind in OF_STREAM:
        name = threads.get(int(job.key))
        return f"thread {row_id('thr', int(job.key))} {ERASED}" if name is None or is_erased(name) else f"thread {name}"
    if job.kind in OF_WINDOW:
        window, part = _window(job.key)
        count = slices.get(window, 1)
        return f"episode {row_id('epi', window)}" + (f", part {part + 1} of {count}" if count > 1 else "")
    if job.kind == "judge_conflicts":
        return f"subject {job.subject or row_id('sub', int(job.key))}"
    if job.kind in ("embed_passages", "embed_words"):
        return f"project {job.project}"
    return job.key
