"""Causes that lie in the engine: who works, what is in the way, what was given up."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from sqlalchemy import text

from everkept.domain.ids import row_id
from everkept.store.connection import Connection, Row
from everkept.store.diagnosis.causes import Finding
from everkept.store.diagnosis.look import Look
from everkept.store.pauses import list_pauses
from everkept.store.project_names import shown

OVERDUE_US = 120_000_000
"""Due work that nobody has begun for so long is waiting for somebody."""
HOUR_US = 3_600_000_000
UNFINISHED_US = 600_000_000
ERROR_MAX = 300
HELD = ("transient", "rate_limited", "provider_down", "over_budget", "subject_moved", "drained", "snoozed")
"""Classes of error under which a job only waits."""

_HELD = json.dumps(HELD)


def _cut(error: str | None) -> str:
    text_ = error or "no reason was kept"
    return text_ if len(text_) <= ERROR_MAX else text_[: ERROR_MAX - 1] + "…"


# ---- workers

_OVERDUE = text("""
select count(*), min(due_at) from (
  select due_at from jobs where state = 'waiting' and due_at < :before
  union all select due_at from jobs where state = 'ready' and due_at < :before) as late""")
_LIVE = text("select count(*), max(seen_at) from workers where seen_at > :since")
_LAST_SEEN = text("select max(seen_at) from workers")
_DEAD_LEASES = text("""
select j.id, j.owner, j.started_at from jobs j left join workers w on w.id = j.owner
where j.state = 'leased' and (j.lease_until <= :ended or coalesce(w.seen_at, j.started_at) <= :unseen)
order by j.lease_until""")
_UNKNOWN = text("""
select count(*), min(created_at), min(kind) from jobs
where history <> '[]' and finished_at is null and error_class = 'unknown_kind'""")
_SWEEPS = text("""
select name, last_error, last_success_at, last_start_at from periodic
where last_error is not null and (last_success_at is null or last_success_at < last_start_at) order by name""")


def live_workers(conn: Connection, look: Look) -> int:
    row = conn.first(_LIVE, {"since": look.unseen_us(conn.now())})
    return int(row[0]) if row else 0


def no_worker(conn: Connection, look: Look) -> list[Finding]:
    late, oldest = conn.first(_OVERDUE, {"before": conn.now() - OVERDUE_US}) or (0, None)
    if not late or live_workers(conn, look):
        return []
    seen = conn.scalar(_LAST_SEEN)
    ago = "none was seen for a day" if seen is None else f"the last was seen {(conn.now() - seen) / 1e6:,.0f} s ago"
    return [Finding(
        cause="no_worker", what=f"{late:,} jobs are due and nobody works: {ago}", since=oldest,
        evidence={"due": late, "oldest_due_s": round((conn.now() - oldest) / 1e6)}, mend="everkept worker",
    )]  # fmt: skip


def paused(conn: Connection, _look: Look) -> list[Finding]:
    """What a hand has stopped: worth telling for as long as it lasts, and no trouble."""
    return [
        Finding(
            cause="paused", what=each.words(), since=each.since, evidence={each.what: each.name}, chosen=True,
            mend=f"everkept jobs resume {'--provider ' if each.what == 'provider' else ''}{each.name}",
        )
        for each in list_pauses(conn)
    ]  # fmt: skip


def leases_of_dead_workers(conn: Connection, look: Look) -> list[Finding]:
    now = conn.now()
    rows = conn.rows(_DEAD_LEASES, {"ended": now - OVERDUE_US, "unseen": look.unseen_us(now)})
    if not rows:
        return []
    owners = sorted({owner for _, owner, _ in rows})
    return [Finding(
        cause="lease_of_dead_worker", what=f"{len(rows)} leases of {', '.join(owners[:3])}, which is not alive",
        since=min(row[2] for row in rows), evidence={"leases": len(rows), "workers": len(owners)},
        mend=f"everkept worker, or everkept jobs release {row_id('job', rows[0][0])}",
    )]  # fmt: skip


def worker_too_old(conn: Connection, _look: Look) -> list[Finding]:
    jobs, since, kind = conn.first(_UNKNOWN) or (0, None, None)
    if not jobs:
        return []
    return [Finding(
        cause="worker_too_old", what=f"{jobs:,} jobs are of kinds that the worker does not know, such as {kind}",
        since=since, evidence={"jobs": jobs}, mend="pip install --upgrade everkept, and restart the workers",
    )]  # fmt: skip


def sweeps_failing(conn: Connection, _look: Look) -> list[Finding]:
    return [
        Finding(
            cause="sweep_failing", what=f"{name}: {_cut(error)}", since=succeeded or started, evidence={"sweep": name},
            mend="mend what the error names; it runs again by itself (everkept status)",
        )
        for name, error, succeeded, started in conn.rows(_SWEEPS)
    ]  # fmt: skip


# ---- pace

_OLDEST_HEALTHY = text("""
select count(*), min(due_at) from (
  select due_at, error_class from jobs where state = 'waiting' and due_at < :before
  union all select due_at, error_class from jobs where state = 'ready' and due_at < :before) as late
where error_class is null""")
# What was opened since then was worked since then, or is not worked yet: each has its index.
_OPENED = text("""
select count(*) from (
  select id from windows where facts_at is null and skipped_because is null and opened_at > :since
  union all
  select id from windows where facts_at > :since and skipped_because is null and opened_at > :since) as opened""")
_DONE = text("select count(*) from windows where facts_at > :since")


def backlog_growing(conn: Connection, look: Look) -> list[Finding]:
    now = conn.now()
    before = now - int(look.settings.status.due_work_s * 1e6)
    late, oldest = conn.first(_OLDEST_HEALTHY, {"before": before}) or (0, None)
    opened, done = (int(conn.scalar(count, {"since": now - HOUR_US})) for count in (_OPENED, _DONE))
    if not late or opened <= done:
        return []
    slots = look.settings.work.slots
    return [Finding(
        cause="backlog_growing", what=f"in the last hour {opened:,} episodes were opened and {done:,} were worked",
        since=oldest, evidence={"due": late, "opened_in_an_hour": opened, "worked_in_an_hour": done, "slots": slots},
        mend=f"EVERKEPT_WORK__SLOTS={2 * slots}, or one more `everkept worker`",
    )]  # fmt: skip


# ---- what was given up

# Of no other kind's key: a database may read it of all jobs, whatever else is asked of them.
_WINDOW = """case when j.kind in ('extract_facts', 'summarise_episode')
    then cast(substr(j.key, 1, instr(j.key, '.') - 1) as bigint) end"""
_DEAD = text(f"""
select j.id, j.kind, j.key, coalesce(j.error_class, 'internal'), j.error, j.finished_at, {shown("p")},
  w.summary_at is not null and w.facts_at is null, w.id
from jobs j join projects p on p.id = j.project_id
  left join windows w on w.id = {_WINDOW}
where j.state = 'dead' order by j.finished_at""")
_FACTS_TROUBLED = text(f"""
select j.id, j.kind, j.key, coalesce(j.error_class, 'internal'), j.error, j.created_at, {shown("p")}, 1, w.id
from jobs j join projects p on p.id = j.project_id
  join windows w on w.id = {_WINDOW}
where j.state in ('waiting', 'ready', 'leased') and j.kind = 'extract_facts' and j.attempts > 1
  and w.summary_at is not null and w.facts_at is null
  and coalesce(j.error_class, '') not in (select value from words(:held))""")
_ELSEWHERE = ("embed_passages", "judge_conflicts", "erase_scope")
"""Kinds whose dead jobs are a cause of their own."""


def given_up(conn: Connection, _look: Look) -> list[Finding]:
    """Dead letters by cause, and facts that fail where the summary is there."""
    dead = [row for row in conn.rows(_DEAD) if row[1] not in _ELSEWHERE]
    crashed = [row for row in dead if row[3] == "crashed"]
    facts = [row for row in dead if row[1] == "extract_facts" and row[7] and row not in crashed]
    others = [row for row in dead if row not in crashed and row not in facts]
    facts += conn.rows(_FACTS_TROUBLED, {"held": _HELD})
    return [*_crashed(crashed), *_facts_failing(facts), *_letters(others)]


def _crashed(rows: list[Row]) -> Iterator[Finding]:
    if rows:
        job = row_id("job", rows[0][0])
        yield Finding(
            cause="input_kills_worker", what=_cut(rows[0][4]), since=rows[0][5], evidence={"jobs": len(rows)},
            mend=f"everkept jobs show {job}, then: everkept jobs retry {job} (or discard {job})",
        )  # fmt: skip


def _facts_failing(rows: list[Row]) -> Iterator[Finding]:
    if not rows:
        return
    classes = Counter(row[3] for row in rows)
    episodes = sorted({row[8] for row in rows})
    worst = classes.most_common(1)[0][0]
    first = next(row for row in rows if row[3] == worst)
    retry = f"everkept jobs retry {row_id('epi', first[8])} --stage facts"
    if len(episodes) > 1:
        retry = f"everkept jobs retry-all --kind extract_facts{_in(first[6])}"
    another = "set EVERKEPT_MODEL to another model, then: " if worst in ("invalid_output", "refused") else ""
    yield Finding(
        cause="facts_failing", what=_cut(first[4]), since=min(row[5] for row in rows),
        evidence={"episodes": len(episodes), **classes}, mend=another + retry,
    )  # fmt: skip


def _letters(rows: list[Row]) -> Iterator[Finding]:
    """One finding for each class of error."""
    for error_class in sorted({row[3] for row in rows}):
        of_class = [row for row in rows if row[3] == error_class]
        yield Finding(
            cause="dead_letters", what=f"{error_class}: {_cut(of_class[-1][4])}", since=of_class[0][5],
            evidence={"jobs": len(of_class), **Counter(row[1] for row in of_class)},
            mend=f"everkept jobs retry-all --cause {error_class}{_in(of_class[0][6])}",
        )  # fmt: skip


def _in(project: str) -> str:
    return "" if project == "default" else f" --project {project}"


# ---- vectors, verdicts, erases

_UNEMBEDDED = text("""
select p.project_id, o.name, count(*), j.state, j.error, j.attempts, coalesce(j.finished_at, j.created_at)
from passages p join projects o on o.id = p.project_id
  left join jobs j on j.kind = 'embed_passages' and j.key = cast(p.project_id as text)
where p.embedded is null and p.hidden = false
  and (j.id is null or j.state in ('done', 'dead', 'discarded')
    or (j.attempts > 0 and coalesce(j.error_class, '') not in (select value from words(:held))))
group by p.project_id, o.id, j.id""")
_UNJUDGED = text("""
select count(*), min(v.opened_at), max(j.state), max(j.error) from verdicts v
  left join jobs j on j.kind = 'judge_conflicts' and j.key = cast(v.subject_id as text)
where v.verdict is null and (j.state in ('dead', 'discarded') or v.opened_at < :before)""")
_ERASES = text("""
select e.id, e.kind, e.asked_at, j.id, j.state, j.error from erasures e
  left join jobs j on j.kind = 'erase_scope' and j.key = cast(e.id as text)
where e.done_at is null and (j.id is null or j.state in ('done', 'dead', 'discarded') or e.asked_at < :before)
order by e.id""")
_ERASED_BADLY = text("""
select count(case when residue > 0 then 1 end), sum(residue), min(case when residue > 0 then done_at end),
  count(unclean), max(unclean), min(case when unclean is not null then done_at end)
from erasures where done_at is not null""")


def no_vectors(conn: Connection, _look: Look) -> list[Finding]:
    return [
        Finding(
            cause="no_vectors", what=f"{passages:,} passages of project {name}: "
            + (_cut(error) if error else f"the job that makes them is {state or 'missing'}"), since=since,
            evidence={"passages": passages, "attempts": attempts or 0},
            mend=f"everkept jobs retry-all --kind embed_passages{_in(name)}",
        )
        for _, name, passages, state, error, attempts, since in conn.rows(_UNEMBEDDED, {"held": _HELD})
    ]  # fmt: skip


def conflicts_unjudged(conn: Connection, _look: Look) -> list[Finding]:
    pairs, since, state, error = conn.first(_UNJUDGED, {"before": conn.now() - HOUR_US}) or (0, None, None, None)
    if not pairs:
        return []
    why = _cut(error) if error else state or "no job"
    return [Finding(
        cause="conflict_unjudged", what=f"{pairs:,} pairs have no verdict: {why}", since=since,
        evidence={"pairs": pairs}, mend="everkept jobs retry-all --kind judge_conflicts",
    )]  # fmt: skip


def erases(conn: Connection, _look: Look) -> list[Finding]:
    found = [
        Finding(
            cause="erase_unfinished", what=f"of one {kind}: {_cut(error) if error else state or 'its job is missing'}",
            since=asked, evidence={"erasure": erasure},
            mend="everkept worker" if job is None else f"everkept jobs retry {row_id('job', job)}",
        )
        for erasure, kind, asked, job, state, error in conn.rows(_ERASES, {"before": conn.now() - UNFINISHED_US})
    ]  # fmt: skip
    row = conn.first(_ERASED_BADLY)
    assert row is not None
    left, residue, left_since, unclean, why, unclean_since = row
    if left:
        found.append(Finding(
            cause="erase_residue", what=f"{residue:,} rows are left of {left:,} erases", since=left_since,
            evidence={"erases": left, "rows": residue}, mend="everkept erase the same scope again",
        ))  # fmt: skip
    if unclean:
        found.append(Finding(
            cause="erase_unclean", what=_cut(why), since=unclean_since, evidence={"erases": unclean},
            mend="end what reads the file for long; it is tried every hour",
        ))  # fmt: skip
    return found
