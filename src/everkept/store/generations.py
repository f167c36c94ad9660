"""Generations: the digested stretches of a project's sessions, numbered without holes, and the watermark over them.

A generation is waiting or being reviewed, or it has passed. The watermark is the last number up to which all have
passed; it moves in the transaction in which one passes, and never goes back (G12, I06).
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import text

from everkept.domain.review.values import PASSED, GenerationState
from everkept.store.connection import Connection

REVIEW: Final = "review_session"
SCHEDULER: Final = "schedule_reviews"

_STATE_ROW = text("insert into review_states(project_id) values(:project) on conflict do nothing")
_ADD = text("""
insert into generations(project_id, seq, stream_id, digest_hash, state, ended_at, finished_at, passed_at)
values(:project, :seq, :stream, :hash, :state, :ended, :now,
  case when cast(:state as text) <> 'waiting' then cast(:now as bigint) end)""")
_PASS = text("""
update generations set state = :state, reason = :reason, passed_at = :now
where project_id = :project and seq = :seq and passed_at is null""")
_REOPEN = text("""
update generations set state = :state, reason = null, passed_at = null
where project_id = :project and seq = :seq and state in ('dead', 'skipped', 'imported')""")
_TAKE = text("""
update generations set state = 'reviewing' where project_id = :project and seq = :seq and state = 'waiting'""")
_SUPERSEDE = text("""
update generations set state = 'superseded', reason = :reason, passed_at = :now
where stream_id = :stream and project_id = :project and seq < :seq and state = 'waiting'""")
_WAITS = text("""
select 1 from generations where project_id = :project and state = 'waiting' and passed_at is null limit 1""")
_ADVANCE = text("""
update review_states set watermark = :to, reached_at = coalesce((
  select ended_at from generations where project_id = :project and seq = :to), reached_at)
where project_id = :project and watermark < :to""")
_MARK = text("select watermark from review_states where project_id = :project")
_FIRST_OPEN = text("""
select min(seq) from generations where project_id = :project and seq > :mark and passed_at is null""")
_LAST = text("select max(seq) from generations where project_id = :project")


def ensure_state(conn: Connection, project: int) -> None:
    """The project's row, made if it is not there."""
    conn.run(_STATE_ROW, {"project": project})


def add_generation(
    conn: Connection, *, project: int, seq: int, stream: int, digest_hash: str, ended_at: int | None, imported: bool
) -> None:
    """Number `seq` is this stretch. It stands for those of its session that wait still: a review takes the newest."""
    ensure_state(conn, project)
    now = conn.now()
    conn.run(_ADD, {
        "project": project, "seq": seq, "stream": stream, "hash": digest_hash, "ended": ended_at, "now": now,
        "state": "imported" if imported else "waiting",
    })  # fmt: skip
    conn.run(_SUPERSEDE, {
        "project": project, "stream": stream, "seq": seq, "now": now, "reason": f"the session went on: see {seq}",
    })  # fmt: skip
    advance(conn, project)


def pass_generation(conn: Connection, project: int, seq: int, state: GenerationState, reason: str | None) -> bool:
    """Let one go by that waits or is under review, and move the watermark; False where it had passed before."""
    assert state in PASSED
    passed = conn.run(_PASS, {"project": project, "seq": seq, "state": state, "reason": reason, "now": conn.now()})
    if passed:
        advance(conn, project)
    return passed > 0


def reopen_generation(conn: Connection, project: int, seq: int, state: GenerationState) -> bool:
    """One that went by unreviewed is waiting or under review again. The watermark stays: it has been passed once."""
    assert state not in PASSED
    return conn.run(_REOPEN, {"project": project, "seq": seq, "state": state}) > 0


def take_generation(conn: Connection, project: int, seq: int) -> bool:
    """From waiting to under review; False where it does not wait."""
    return conn.run(_TAKE, {"project": project, "seq": seq}) > 0


def advance(conn: Connection, project: int) -> None:
    """The watermark over all that has passed without a gap."""
    mark = conn.scalar(_MARK, {"project": project}) or 0
    first = conn.scalar(_FIRST_OPEN, {"project": project, "mark": mark})
    to = first - 1 if first is not None else conn.scalar(_LAST, {"project": project})
    if to is not None:
        conn.run(_ADVANCE, {"project": project, "to": to})


def anything_waits(conn: Connection, project: int) -> bool:
    """Whether a session of the project awaits its review."""
    return conn.first(_WAITS, {"project": project}) is not None


# ---- what becomes of a review's job becomes of its generation, in the same transaction


def review_key(project: int, seq: int) -> str:
    return f"{project}.{seq}"


def review_work(review: int) -> str:
    """Under which the questions of a review are journaled: its row, which stays the same wherever a merge takes it and
    however its generation is numbered there."""
    return f"review:{review}"


def generation_of(key: str) -> int:
    """The number in the key of a review's job."""
    return int(key.rpartition(".")[2])


def follow_job(conn: Connection, project: int, kind: str, key: str, state: str, why: str | None) -> None:
    """A review whose job died or was discarded goes by, visibly; one that a hand retries is under review again."""
    if kind != REVIEW:
        return
    match state:
        case "dead":
            pass_generation(conn, project, generation_of(key), "dead", why)
        case "discarded":
            pass_generation(conn, project, generation_of(key), "skipped", why)
        case "waiting":
            reopen_generation(conn, project, generation_of(key), "reviewing")


# ---- reading

_SESSION = text("select stream_id from generations where project_id = :project and seq = :seq")
_NEWEST_OF = text("""
select seq, state from generations where stream_id = :stream and project_id = :project order by seq desc limit 1""")


def session_of(conn: Connection, project: int, seq: int) -> int | None:
    """The stream that a generation is of; None where it was erased, or never was."""
    found = conn.scalar(_SESSION, {"project": project, "seq": seq})
    return None if found is None else int(found)


def newest_generation(conn: Connection, project: int, stream: int) -> tuple[int, GenerationState] | None:
    """(number, state) of a session's last one."""
    row = conn.first(_NEWEST_OF, {"project": project, "stream": stream})
    return None if row is None else (row[0], row[1])
