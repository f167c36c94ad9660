"""Windows: opened over what a stream holds, worked by two independent jobs each, shown as episodes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import text

from everkept.config import Settings
from everkept.domain.ids import row_id
from everkept.domain.jobs import Discard, Done, Outcome, Schedule, Snooze
from everkept.domain.transcript import estimate_tokens
from everkept.domain.windows import Nothing, Open, Pending, Wait, WindowRules, cut, decide, slices_of
from everkept.store.changes import NewChange, record_changes
from everkept.store.connection import Connection
from everkept.store.effective import effective
from everkept.store.jobs import schedule
from everkept.store.pauses import PauseRow, list_pauses, why_kind_waits
from everkept.store.streams import EVIDENCE, StreamRow, get_stream, timer

SUMMARISE = "summarise_episode"
DIGEST = "digest_session"
"""What a session's window has in place of its summary; it has no facts."""
DISTIL = "distil_session"
"""With a model, what is made of a session's digest: knowledge pages."""
EXTRACT = "extract_facts"
FOLD = "fold_summary"
WINDOWS_PER_RUN = 8
FOLD_WAIT_US = 30_000_000

_FIRST = text("select recorded_at from events where stream_id = :stream and seq = :seq")
_PENDING = text("""
select seq, tokens, evidence from events where stream_id = :stream and seq > :covered order by seq limit :limit""")
_ADD = text("""
insert into windows(project_id, subject_id, stream_id, start_seq, end_seq, prev_end, opened_at, opened_because, slices,
  skipped_because)
values(:project, :subject, :stream, :start, :end, :prev_end, :now, :because, :slices, :skipped)
on conflict do nothing returning id""")
_ADD_SLICE = text("insert into slices(window_id, slice) values(:window, :slice) on conflict do nothing")
_NO_FACTS = text("update windows set facts_at = :now where id = :window")
_NO_SLICE_FACTS = text("update slices set facts_at = :now where window_id = :window")
_ARCHIVE = text(
    "update windows set archived = true where stream_id = :stream and end_seq < :start and archived = false"
)
_COVER = text("""
update streams set covered_seq = :end, pending_tokens = pending_tokens - :tokens
where id = :id and covered_seq < :end""")


_ENDLESS = 1 << 40


def rules_of(settings: Settings, kind: str) -> WindowRules:
    w = settings.window
    session = kind == "session"
    return WindowRules(
        enabled=settings.memory.enabled,
        idle_s=w.idle_s,
        wait_max_s=_ENDLESS if session else w.wait_max_s,
        events_max=_ENDLESS if session else w.events_max,
        tokens_max=_ENDLESS if session else w.tokens_max,
    )


def pending_of(conn: Connection, stream: StreamRow) -> Pending:
    first = conn.scalar(_FIRST, {"stream": stream.id, "seq": stream.covered_seq + 1})
    last = stream.last_recorded_at or 0
    return Pending(
        covered_seq=stream.covered_seq, last_seq=stream.last_seq, tokens=stream.pending_tokens,
        first_recorded_at=last if first is None else first, last_recorded_at=last, end_through=stream.end_through,
        pulled_due_at=stream.pulled_due_at,
    )  # fmt: skip


_ERASED = text("""
select 1 from streams s join subjects u on u.id = s.subject_id join projects p on p.id = s.project_id
where s.id = :stream and (s.erased_at is not null or u.erased_at is not null or p.erased_at is not null)""")


def open_windows(conn: Connection, stream_id: int, base: Settings) -> Outcome:
    """Open what is due, from the stream and the settings as they are now; the finishing transaction of the timer's job.

    Two ends, or an end beside a timer, find the events covered the second time and open nothing. Nothing is opened over
    what is being erased, whose timers may fire until they are destroyed too.
    """
    if conn.first(_ERASED, {"stream": stream_id}):
        return Done()
    stream = get_stream(conn, stream_id)
    settings = effective(base, stream.project_settings, stream.settings)
    rules = rules_of(settings, stream.kind)
    match decide(pending_of(conn, stream), rules, conn.now()):
        case Nothing():
            return Done()
        case Wait(until_us=until):
            return Snooze(until)
        case Open() as order:
            return _open(conn, stream, settings, rules, order)


def _open(conn: Connection, stream: StreamRow, settings: Settings, rules: WindowRules, order: Open) -> Outcome:
    limit = WINDOWS_PER_RUN * rules.events_max
    events = conn.rows(_PENDING, {"stream": stream.id, "covered": stream.covered_seq, "limit": limit})
    through = stream.end_through if order.because == "end" else stream.last_seq
    events = [e for e in events if e[0] <= through]
    whole = bool(events) and events[-1][0] == through
    tiles = cut(stream.covered_seq + 1, [e[1] for e in events], rules, partial=order.partial and whole)
    more = len(tiles) > WINDOWS_PER_RUN or not whole
    changes, jobs = [], []
    first = stream.covered_seq + 1
    for start, end in tiles[:WINDOWS_PER_RUN]:
        inside = events[start - first : end - first + 1]
        window = _open_one(conn, stream, settings, start, end, inside, order)
        jobs += jobs_of(window)
        changes.append(NewChange(
            kind="episode.opened", ref=row_id("epi", window.id), subject=stream.subject, stream=stream.id,
            data={"start_seq": start, "end_seq": end, "skipped": window.skipped_because},
        ))  # fmt: skip
    schedule(conn, jobs)
    record_changes(conn, stream.project, changes)
    if more and tiles:
        return Snooze(conn.now())
    return _what_next(conn, stream.id, rules)


def _what_next(conn: Connection, stream_id: int, rules: WindowRules) -> Outcome:
    match decide(pending_of(conn, get_stream(conn, stream_id)), rules, conn.now()):
        case Wait(until_us=until):
            return Snooze(until)
        case Open():
            return Snooze(conn.now())
        case _:
            return Done()


_CONTENT = text("select content from events where stream_id = :stream and seq = :seq")


def _slices_of_event(conn: Connection, stream: int, seq: int, tokens_max: int) -> int:
    """By its text: the tokens that a client declares decide when a window is full, and never how much work there is."""
    content = conn.scalar(_CONTENT, {"stream": stream, "seq": seq})
    return slices_of(estimate_tokens(content or ""), tokens_max)


def _open_one(
    conn: Connection,
    stream: StreamRow,
    settings: Settings,
    start: int,
    end: int,
    events: Sequence[tuple[Any, ...]],
    order: Open,
) -> WindowRow:
    tokens = sum(e[1] for e in events)
    session = stream.kind == "session"
    one_event = start == end and not session
    count = _slices_of_event(conn, stream.id, start, settings.window.tokens_max) if one_event else 1
    skipped = order.skipped_because
    if skipped is None and not session and not any(e[2] == EVIDENCE for e in events):
        off = any(e[2] == 2 for e in events)
        skipped = "memory.enabled was false when it was said" if off else "nothing in it is evidence"
    window = conn.scalar(_ADD, {
        "project": stream.project, "subject": stream.subject, "stream": stream.id, "start": start, "end": end,
        "prev_end": start - 1 or None, "now": conn.now(), "because": order.because, "slices": count, "skipped": skipped,
    })  # fmt: skip
    assert window is not None, "the stream's row says these events are not covered"
    conn.many(_ADD_SLICE, [{"window": window, "slice": i} for i in range(count)])
    if session:
        conn.run(_NO_FACTS, {"window": window, "now": conn.now()})
        conn.run(_NO_SLICE_FACTS, {"window": window, "now": conn.now()})
    conn.run(_ARCHIVE, {"stream": stream.id, "start": start})
    conn.run(_COVER, {"id": stream.id, "end": end, "tokens": tokens})
    return get_window(conn, window)


def jobs_of(
    window: WindowRow, *, kinds: Iterable[str] = (SUMMARISE, EXTRACT), args: dict[str, Any] | None = None
) -> list[Schedule]:
    """The jobs over one window, a summary and an extraction for each slice; none where it is skipped."""
    if window.skipped_because is not None:
        return []
    if window.kind == "session":
        return [digest_wish(window)] if SUMMARISE in kinds else []
    serial = {EXTRACT: f"facts:{window.project}:{window.subject}", SUMMARISE: None}
    return [
        Schedule(
            kind=kind,
            key=f"{window.id}.{part}",
            project=window.project,
            lane=window.lane,
            due_at_us=window.opened_at,
            uses="model",
            serial_key=serial[kind],
            args=json.dumps({"window": window.id, "slice": part, **(args or {})}),
        )
        for kind in kinds
        for part in range(window.slices)
    ]


LAST_WINDOW = text("select max(id) from windows where stream_id = :stream and skipped_because is null")


def digest_wish(window: WindowRow) -> Schedule:
    return Schedule(
        kind=DIGEST, key=f"{window.id}.0", project=window.project, lane=window.lane, due_at_us=window.opened_at,
        serial_key=f"stream:{window.stream}", args=json.dumps({"window": window.id}),
    )  # fmt: skip


# ---- reading


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRow:
    id: int
    project: int
    subject: int
    subject_name: str
    stream: int
    thread: str
    lane: int
    start_seq: int
    end_seq: int
    opened_at: int
    opened_because: str
    slices: int
    skipped_because: str | None
    archived: bool
    summary: str | None
    learnings: str | None
    summary_at: int | None
    facts_at: int | None
    kind: str = "thread"
    """Of its stream."""


_COLUMNS = """
select w.id, w.project_id, w.subject_id, u.name, w.stream_id, s.name, s.lane_id, w.start_seq, w.end_seq, w.opened_at,
  w.opened_because, w.slices, w.skipped_because, w.archived, w.summary, w.learnings, w.summary_at, w.facts_at,
  s.kind
from windows w join streams s on s.id = w.stream_id join subjects u on u.id = w.subject_id """
_NOT_ERASED = " and s.erased_at is null and u.erased_at is null"
_BY_ID = text(_COLUMNS + "where w.id = :id" + _NOT_ERASED)
_NEWEST = 2**63 - 1
# A statement for each scope, so that the index of that scope is used.
_LIST = {
    scope: text(
        _COLUMNS + f"where {condition} and s.kind = 'thread' and w.id < :before"
        " and (:since is null or exists (select 1 from events e where e.stream_id = w.stream_id and e.seq = w.end_seq"
        " and e.occurred_at >= :since))"
        " and (:until is null or exists (select 1 from events e where e.stream_id = w.stream_id and e.seq = w.start_seq"
        " and e.occurred_at <= :until))" + _NOT_ERASED + " order by w.id desc limit :limit"
    )
    for scope, condition in (
        ("project", "w.project_id = :project"),
        ("subject", "+w.project_id = :project and w.subject_id = :subject"),
        ("stream", "+w.project_id = :project and w.stream_id = :stream"
                   " and (:subject is null or +w.subject_id = :subject)"),
    )
}  # fmt: skip


def _window(row: tuple[Any, ...]) -> WindowRow:
    return WindowRow(
        id=row[0],
        project=row[1],
        subject=row[2],
        subject_name=row[3],
        stream=row[4],
        thread=row[5],
        lane=row[6],
        start_seq=row[7],
        end_seq=row[8],
        opened_at=row[9],
        opened_because=row[10],
        slices=row[11],
        skipped_because=row[12],
        archived=bool(row[13]),
        summary=row[14],
        learnings=row[15],
        summary_at=row[16],
        facts_at=row[17],
        kind=row[18],
    )


def find_window(conn: Connection, window: int) -> WindowRow | None:
    row = conn.first(_BY_ID, {"id": window})
    return None if row is None else _window(row)


def get_window(conn: Connection, window: int) -> WindowRow:
    found = find_window(conn, window)
    assert found is not None
    return found


_BY_IDS = text(_COLUMNS + "where w.id in (select value from numbers(:ids))")


def windows_by_id(conn: Connection, windows: Sequence[int]) -> dict[int, WindowRow]:
    return {r[0]: _window(r) for r in conn.rows(_BY_IDS, {"ids": json.dumps(list(windows))})}


def list_windows(
    conn: Connection, project: int, *, stream: int | None = None, subject: int | None = None, before: int | None = None,
    since: int | None = None, until: int | None = None, limit: int = 50,
) -> list[WindowRow]:  # fmt: skip
    """Newest first; `since` and `until` bound the time their messages were said."""
    scope = "stream" if stream is not None else "subject" if subject is not None else "project"
    return [_window(r) for r in conn.rows(_LIST[scope], {
        "project": project, "stream": stream, "subject": subject, "before": _NEWEST if before is None else before,
        "since": since, "until": until, "limit": limit})]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRow:
    """One stage of an episode, derived from its jobs and their effect."""

    state: str
    attempts: int = 0
    error: str | None = None
    next_try_at: int | None = None
    job: int | None = None
    completed_at: int | None = None
    reason: str | None = None


_WORST = ("dead", "failed", "processing", "pending", "completed")
_AS_STAGE = {
    "waiting": "pending",
    "ready": "pending",
    "leased": "processing",
    "done": "completed",
    "dead": "dead",
    "discarded": "dead",
}


def stages_of(conn: Connection, windows: Sequence[WindowRow]) -> dict[int, dict[str, StageRow]]:
    """{window: {"summary": …, "facts": …}}; the worst of its slices speaks for a stage."""
    keys = [f"{w.id}.{i}" for w in windows for i in range(w.slices)]
    owners = {f"{w.id}.{i}": w.id for w in windows for i in range(w.slices)}
    by_window: dict[tuple[int, str], list[tuple[Any, ...]]] = {}
    for row in _with_keys(conn, keys):
        by_window.setdefault((owners[row[0]], row[1]), []).append(row[2:])
    held, pauses = conn.first(_HELD), list_pauses(conn)
    resting = conn.rows(_EVENTS_BEING_ERASED)
    found = {}
    for w in windows:
        if w.skipped_because is None and any(
            stream == w.stream and w.start_seq <= seq <= w.end_seq for stream, seq in resting
        ):
            found[w.id] = dict.fromkeys(("summary", "facts"), StageRow(state="pending", reason=RESTS))
            continue
        told_by = DIGEST if w.kind == "session" else SUMMARISE
        summary = _stage(w.skipped_because, w.summary_at, by_window.get((w.id, told_by), []))
        facts = _stage(w.skipped_because, w.facts_at, by_window.get((w.id, EXTRACT), []))
        found[w.id] = {
            "summary": _paused(_held(summary, held), told_by, pauses),
            "facts": _paused(_held(facts, held), EXTRACT, pauses),
        }
    return found


RESTS = "a message of its episode is being erased; it is derived again from what remains"
_EVENTS_BEING_ERASED = text("select stream_id, seq from erasures where done_at is null and kind = 'event'")
_RESTS = text("""
select 1 from erasures where done_at is null and kind = 'event' and project_id = :project and stream_id = :stream
  and seq between :start and :end limit 1""")
_HELD = text("""
select reason, not_before from providers where circuit <> 'closed' and not_before is not null
order by not_before limit 1""")


def rests(conn: Connection, window: WindowRow) -> bool:
    """Whether a message of it is being erased. Nothing is made of it then: that erase takes the replies of its episode,
    and a reply that was paid for meanwhile would go with them (G8). Its end schedules the window's jobs.
    """
    return conn.first(_RESTS, {
        "project": window.project, "stream": window.stream, "start": window.start_seq, "end": window.end_seq,
    }) is not None  # fmt: skip


def _held(stage: StageRow, held: tuple[Any, ...] | None) -> StageRow:
    """A stage that only waits, while the provider may not be asked: why, and when it is asked again."""
    if held is None or stage.state != "pending" or stage.job is None:
        return stage
    return replace(stage, reason=f"waits for the provider: {held[0]}", next_try_at=max(held[1], stage.next_try_at or 0))


def _paused(stage: StageRow, kind: str, pauses: Sequence[PauseRow]) -> StageRow:
    """A stage whose kind or provider a hand has paused is not tried again before somebody lets it."""
    if stage.state not in ("pending", "failed") or stage.job is None:
        return stage
    provider = next((each.words() for each in pauses if each.what == "provider"), None)
    why = why_kind_waits(pauses, kind) or provider
    return stage if why is None else replace(stage, reason=why, next_try_at=None)


_KEYED = text("""
select key, kind, state, attempts, error, due_at, id from jobs
where kind in ('summarise_episode', 'digest_session', 'extract_facts')
  and key in (select value from words(:keys))""")


def _with_keys(conn: Connection, keys: Sequence[str]) -> list[tuple[Any, ...]]:
    return conn.rows(_KEYED, {"keys": json.dumps(keys)}) if keys else []


def _stage(skipped: str | None, completed_at: int | None, jobs: Sequence[tuple[Any, ...]]) -> StageRow:
    if skipped is not None:
        return StageRow(state="skipped", reason=skipped)
    shown = []
    for state, attempts, error, due_at, job in jobs:
        stage = _AS_STAGE[state]
        if stage == "pending" and error is not None:
            stage = "failed"
        waits = state in ("waiting", "ready")
        shown.append(StageRow(
            state=stage, attempts=attempts, error=error if stage != "completed" else None,
            next_try_at=due_at if waits else None, job=job, completed_at=completed_at,
        ))  # fmt: skip
    worst = min(shown, key=lambda s: _WORST.index(s.state), default=None)
    if completed_at is not None and (worst is None or worst.state in ("completed", "dead")):
        return StageRow(state="completed", completed_at=completed_at, attempts=0 if worst is None else worst.attempts,
                        job=None if worst is None else worst.job)  # fmt: skip
    if worst is None or worst.state == "completed":  # done jobs without their effect: a slice's job was never scheduled
        return StageRow(state="pending", reason="its job is missing; the next sweep schedules it")
    return worst


_SKIP = text("update windows set skipped_because = :because where id = :id and skipped_because is null")


def skip_window(conn: Connection, window: int) -> None:
    """Make nothing more of a window: memory was switched off while its work waited. What was made of it stays."""
    conn.run(_SKIP, {"id": window, "because": "memory.enabled is false"})


# ---- the summary's effect

_SLICE_SUMMARY = text("""
update slices set summary = :summary, learnings = :learnings, summary_at = :now
where window_id = :window and slice = :slice""")
_SLICES = text(
    "select slice, summary, learnings, summary_at, facts_at from slices where window_id = :window order by slice"
)
_SUMMARY = text("update windows set summary = :summary, learnings = :learnings, summary_at = :now where id = :window")


def write_slice_summary(conn: Connection, window: WindowRow, part: int, summary: str, learnings: Sequence[str]) -> bool:
    """Keep one slice's summary; with the last one the window has its own. True when it has."""
    now = conn.now()
    conn.run(
        _SLICE_SUMMARY,
        {
            "window": window.id,
            "slice": part,
            "summary": summary,
            "learnings": json.dumps(list(learnings), ensure_ascii=False),
            "now": now,
        },
    )
    rows = conn.rows(_SLICES, {"window": window.id})
    if any(r[3] is None for r in rows):
        return False
    whole = "\n".join(r[1] for r in rows if r[1])
    learned = [x for r in rows for x in json.loads(r[2] or "[]")]
    conn.run(
        _SUMMARY,
        {"window": window.id, "summary": whole, "learnings": json.dumps(learned, ensure_ascii=False), "now": now},
    )
    return True


def note_summarised(conn: Connection, window: WindowRow) -> None:
    """The last statement of a summary's commit: whoever follows the changes hears of it."""
    record_changes(
        conn,
        window.project,
        [
            NewChange(
                kind="episode.summarised", ref=row_id("epi", window.id), subject=window.subject, stream=window.stream
            )
        ],
    )


_FOLDED = text("""
select end_seq, summary, skipped_because, exists (
    select 1 from erasures x where x.done_at is null and x.kind = 'event' and x.project_id = w.project_id
    and x.stream_id = w.stream_id and x.seq between w.start_seq and w.end_seq)
from windows w where stream_id = :stream and end_seq > :through order by end_seq limit 50""")
_FOLD = text(
    "update streams set summary = :summary, summary_through = :through where id = :id and summary_through = :was"
)
_FOLD_STATE = text("select summary, summary_through from streams where id = :id")


def fold_input(conn: Connection, stream: int) -> tuple[str | None, int, list[tuple[int, str]]]:
    """(rolling summary, through which seq, the summaries that follow without a gap as (end_seq, text)).

    A window that rests is a gap: its erase takes the folds over it, too.
    """
    summary, through = conn.first(_FOLD_STATE, {"id": stream}) or (None, 0)
    following = []
    for end, window_summary, skipped, resting in conn.rows(_FOLDED, {"stream": stream, "through": through}):
        if resting or (window_summary is None and skipped is None):
            break
        following.append((end, window_summary or ""))
    return summary, through, following


def write_fold(conn: Connection, stream: int, was: int, through: int, summary: str) -> Outcome:
    moved = conn.run(_FOLD, {"id": stream, "was": was, "through": through, "summary": summary})
    return Done() if moved else Discard("another fold came first")


def fold_wish(window: WindowRow, now: int) -> Schedule:
    return Schedule(
        kind=FOLD, key=str(window.stream), project=window.project, lane=window.lane, due_at_us=now, uses="model",
        args=json.dumps({"stream": window.stream}), serial_key=f"fold:{window.stream}",
    )  # fmt: skip


# ---- sweeps: the backstop of each hand-over (design §4)

_NO_JOB = """
select w.id from windows w where w.{column} is null and w.skipped_because is null and w.id > :after
  and w.opened_at < :before and exists (select 1 from slices p where p.window_id = w.id and p.{column} is null
  and not exists (
    select 1 from jobs j where j.kind in ({kinds}) and j.key = w.id || '.' || p.slice and j.state <> 'done'))
order by w.id limit :limit"""
_NO_SUMMARY_JOB = text(_NO_JOB.format(column="summary_at", kinds=f"'{SUMMARISE}', '{DIGEST}'"))
_NO_FACTS_JOB = text(_NO_JOB.format(column="facts_at", kinds=f"'{EXTRACT}'"))
_LEFT = "select slice from slices where window_id = :window and {column} is null order by slice"
_LEFT_IN = {SUMMARISE: text(_LEFT.format(column="summary_at")), EXTRACT: text(_LEFT.format(column="facts_at"))}
_SWEEP_END = {SUMMARISE: _NO_SUMMARY_JOB, EXTRACT: _NO_FACTS_JOB}
GRACE_US = 1_000_000


def sweep_windows(conn: Connection, kind: str, after: int, limit: int) -> tuple[list[int], int]:
    """Schedule the missing jobs of one kind, a chunk past `after`; (windows repaired, where to go on: 0 = the end)."""
    rows = conn.rows(_SWEEP_END[kind], {"after": after, "before": conn.now() - GRACE_US, "limit": limit})
    repaired = [r[0] for r in rows]
    for window in repaired:
        found = find_window(conn, window)
        wishes = [] if found is None else jobs_of(found, kinds=[kind])  # one a slice, in their order
        schedule(conn, [wishes[part] for (part,) in conn.rows(_LEFT_IN[kind], {"window": window}) if wishes])
    return repaired, repaired[-1] if len(repaired) == limit else 0


_ABANDONED = text("""
select s.id from streams s where s.covered_seq < s.last_seq and s.id > :after and s.last_recorded_at < :before
  and not exists (select 1 from jobs j where j.kind = 'open_window' and j.key = cast(s.id as text)
                  and j.state in ('waiting', 'ready', 'leased', 'dead'))
order by s.id limit :limit""")


def sweep_abandoned(conn: Connection, base: Settings, after: int, limit: int) -> tuple[list[int], int]:
    """Open windows over streams that went quiet without a timer; (streams repaired, where to go on: 0 = the end).

    Memory off is honoured (the window is skipped); a stream whose idle time is null stays as it is.
    """
    before = conn.now() - int(base.window.abandoned_s * 1e6)
    rows = [r[0] for r in conn.rows(_ABANDONED, {"after": after, "before": before, "limit": limit})]
    repaired = []
    for stream_id in rows:
        stream = get_stream(conn, stream_id)
        settings = effective(base, stream.project_settings, stream.settings)
        quiet = (stream.last_recorded_at or 0) < conn.now() - int(settings.window.abandoned_s * 1e6)
        if (settings.window.idle_s is None and settings.memory.enabled) or not quiet:
            continue
        schedule(conn, [timer(stream, conn.now(), None)])
        repaired.append(stream_id)
    return repaired, rows[-1] if len(rows) == limit else 0
