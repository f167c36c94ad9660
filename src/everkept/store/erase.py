"""Erasing (G10): one short commit hides the scope and locks work in flight out, then a job destroys it in chunks.

The commit raises the subject's epoch and revision, so that a reply or a fact made from what was read before is refused;
takes the scope's names away, so that the same name means somebody new; and writes the `erasures` row, which readers
honour (store/hidden.py) and which carries the job from one chunk to the next, over any crash.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import text

from everkept.domain.erase import (
    ERASED_MARK,
    EventTarget,
    ProjectTarget,
    StreamTarget,
    SubjectTarget,
    Target,
    erased_name,
)
from everkept.domain.ids import ProjectId, event_id, row_id
from everkept.domain.jobs import Done, Lease, Outcome, Schedule, Snooze
from everkept.errors import NotFound
from everkept.store.changes import NewChange, record_changes
from everkept.store.connection import Connection
from everkept.store.destroy import (
    RAISE_EPOCH,
    STAGES,
    STREAMS_PER_CHUNK,
    SUBJECT_OF_PROJECT,
    Counts,
    Kind,
    Piece,
    Place,
    blank_streams,
    destroy_turns,
    drop_jobs,
    forget_summaries,
    job_keys,
)
from everkept.store.destroy_agents import carriers_of, forget_digest, forget_tellings, parents_of
from everkept.store.facts import JUDGE, judge_wish
from everkept.store.generations import REVIEW, generation_of, session_of
from everkept.store.jobs import schedule
from everkept.store.jobs_by_hand import discard_by_hand, release_by_hand
from everkept.store.lanes import ensure_lane
from everkept.store.leases import require_lease
from everkept.store.merging import require_no_merge
from everkept.store.residue import plan_erase, residue
from everkept.store.search import find_passages_of, hide_passages
from everkept.store.sqlite_cleaning import TOO_LARGE, clean_sqlite
from everkept.store.streams import EMBED, EMBED_WORDS, TIMER, wake_embedder
from everkept.store.windows import (
    DIGEST,
    DISTIL,
    EXTRACT,
    FOLD,
    LAST_WINDOW,
    SUMMARISE,
    digest_wish,
    find_window,
    fold_wish,
    get_window,
    jobs_of,
)

__all__ = [
    "ERASE", "Erasure", "clean_again", "clean_file", "erase", "erase_chunk", "find_erasure", "finish_erase",
    "note_cleaned", "plan_erase", "residue",
]  # fmt: skip

ERASE = "erase_scope"
SUBJECTS_PER_CHUNK = 500
AGAIN_US = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """One erase: what, how far it is, what it has destroyed so far, and what the probe found at its end."""

    id: int
    project: int
    kind: Kind
    subject: int | None
    stream: int | None
    seq: int | None
    working_on: int | None
    stage: int
    place: Place
    destroyed: Counts
    residue: int | None
    done_at: int | None
    cleanings: int
    """How often its end could not clean the file."""
    unclean: str | None
    """Why the file may still hold the words; a later maintenance run cleans it, and None is said again."""

    @property
    def target(self) -> Target:
        match self.kind:
            case "event":
                return EventTarget(stream=self._stream, seq=self._seq)
            case "stream":
                return StreamTarget(stream=self._stream)
            case "subject":
                assert self.subject is not None
                return SubjectTarget(subject=self.subject)
            case "project":
                return ProjectTarget()

    @property
    def _stream(self) -> int:
        assert self.stream is not None
        return self.stream

    @property
    def _seq(self) -> int:
        assert self.seq is not None
        return self.seq


_COLUMNS = """
select id, project_id, kind, subject_id, stream_id, seq, working_on, stage, after, after_seq, destroyed, residue,
  done_at, cleanings, unclean
from erasures """
_BY_ID = text(_COLUMNS + "where id = :id")
_SAME = text(
    _COLUMNS + "where project_id = :project and kind = :kind and coalesce(subject_id, 0) = coalesce(:subject, 0)"
    " and coalesce(stream_id, 0) = coalesce(:stream, 0) and coalesce(seq, 0) = coalesce(:seq, 0)"
    " order by id desc limit 1"
)
_ADD = text("""
insert into erasures(project_id, kind, subject_id, stream_id, seq, asked_at, destroyed)
values(:project, :kind, :subject, :stream, :seq, :now, :destroyed) returning id""")


_NEWEST_ERASURE = text("select coalesce(max(id), 0) from erasures")


def newest_erasure(conn: Connection) -> int:
    """Tells whether anything was erased between two looks."""
    return int(conn.scalar(_NEWEST_ERASURE))


def find_erasure(conn: Connection, erasure: int) -> Erasure | None:
    row = conn.first(_BY_ID, {"id": erasure})
    return None if row is None else _erasure(row)


def _erasure(r: tuple[Any, ...]) -> Erasure:
    return Erasure(
        id=r[0], project=r[1], kind=r[2], subject=r[3], stream=r[4], seq=r[5], working_on=r[6], stage=r[7],
        place=Place(r[8], r[9]), destroyed=json.loads(r[10]), residue=r[11], done_at=r[12],
        cleanings=r[13], unclean=r[14],
    )  # fmt: skip


def _get(conn: Connection, erasure: int) -> Erasure:
    found = find_erasure(conn, erasure)
    assert found is not None, "erasures are never deleted"
    return found


# ---- the commit that hides

_EVENT = text("""
select e.erased_at, s.subject_id, s.erased_at from events e join streams s on s.id = e.stream_id
where e.project_id = :project and e.stream_id = :stream and e.seq = :seq""")
_STREAM = text("select subject_id, erased_at from streams where id = :stream and project_id = :project")
_SUBJECT = text("select erased_at from subjects where id = :subject and project_id = :project")
_PROJECT = text("select erased_at from projects where id = :project")
_MARK_SUBJECT = text("""
update subjects set name = :name, epoch = epoch + 1, revision = revision + 1, erased_at = :now where id = :id""")
_MARK_PROJECT = text("""
update projects set name = :name, settings = '{}', secret = :secret, erased_at = :now where id = :project""")
_REVOKE = text("""
update api_keys set name = 'erased', revoked_at = coalesce(revoked_at, :now) where project_id = :project
  or project_id in (select id from projects where merged_into = :project)""")
# What was merged into it is a name, a secret and keys, and goes with it; so do the names that the merges noted.
_UNNAME = text("""
update projects set name = :mark || cast(id as text), secret = :no_secret, erased_at = :now
where merged_into = :project""")
_FORGET_MERGES = text("update merges set source_name = :mark, renamed = '[]' where target_id = :project")
_VECTORS_MOVED = text("update projects set vectors_revision = vectors_revision + 1 where id = :project")
_SUBJECT_STREAMS = text("""
select id from streams where subject_id = :subject and erased_at is null order by id limit :limit""")


def erase(conn: Connection, project: int, target: Target) -> Erasure:
    """Hide the scope at once and schedule its destruction. Erasing again answers with the first erase.

    Raises NotFound where the project holds no such thing, Conflict while it takes part in a merge. Takes about the same
    time however large the scope is.
    """
    require_no_merge(conn, project, "erase")
    match target:
        case EventTarget(stream=stream, seq=seq):
            return _erase_event(conn, project, stream, seq)
        case StreamTarget(stream=stream):
            return _erase_stream(conn, project, stream)
        case SubjectTarget(subject=subject):
            return _erase_subject(conn, project, subject)
        case ProjectTarget():
            return _erase_project(conn, project)


def _erase_event(conn: Connection, project: int, stream: int, seq: int) -> Erasure:
    found = conn.first(_EVENT, {"project": project, "stream": stream, "seq": seq})
    if found is None:
        raise NotFound(f"there is no message {event_id(stream, seq)} in this project", id=event_id(stream, seq))
    erased_at, subject, stream_erased_at = found
    if erased_at is not None or stream_erased_at is not None:
        return _erased_before(conn, project, "event", None, stream, seq)
    conn.run(RAISE_EPOCH, {"subject": subject})
    _break_leases(conn, Piece(kind="event", project=project, subject=subject, stream=stream, seq=seq, window=None))
    tellings = _tellings(conn, stream, seq)
    counts = destroy_turns(conn, project, [(stream, s) for s in tellings])
    forget_tellings(conn, project, stream, tellings)
    wake_embedder(conn, project)  # the turns after it have lost the vectors that rested on it too
    window = _covering(conn, stream, seq)
    if window is not None:
        _suspend(conn, project, stream, window)
    _tell_parents_again(conn, project, stream)
    return _begin(conn, project, "event", subject=subject, stream=stream, seq=seq, destroyed=counts)


_REVISED_BY = text("select seq from events where stream_id = :stream and revises = :seq")
_REVISES = text("select revises from events where stream_id = :stream and seq = :seq")


def _tellings(conn: Connection, stream: int, seq: int) -> list[int]:
    """The event of a session with its revisions, before and after: they tell of the same thing."""
    if conn.scalar(_KIND, {"stream": stream}) != "session":
        return [seq]
    found, ahead = set[int](), [seq]
    while ahead:
        one = ahead.pop()
        found.add(one)
        near = [r[0] for r in conn.rows(_REVISED_BY, {"stream": stream, "seq": one})]
        near += [r[0] for r in conn.rows(_REVISES, {"stream": stream, "seq": one}) if r[0] is not None]
        ahead += [n for n in near if n not in found]
    return sorted(found)


def _erase_stream(conn: Connection, project: int, stream: int) -> Erasure:
    found = conn.first(_STREAM, {"project": project, "stream": stream})
    if found is None:
        raise NotFound(f"there is no thread {row_id('thr', stream)} in this project", id=row_id("thr", stream))
    subject, erased_at = found
    if erased_at is not None:
        return _erased_before(conn, project, "stream", subject, stream, None)
    conn.run(RAISE_EPOCH, {"subject": subject})
    _break_leases(conn, Piece(kind="stream", project=project, subject=subject, stream=stream, seq=None, window=None))
    counts = blank_streams(conn, project, [stream])
    _tell_parents_again(conn, project, stream)
    return _begin(conn, project, "stream", subject=subject, stream=stream, seq=None, destroyed=counts)


def _tell_parents_again(conn: Connection, project: int, stream: int) -> None:
    """What a sub-agent did stands in the page of the session that started it, and what was left open in the handoffs of
    later ones: those are made again without it."""
    for parent in dict.fromkeys([*parents_of(conn, project, stream), *carriers_of(conn, project, stream)]):
        forget_digest(conn, project, parent)
        last = conn.scalar(LAST_WINDOW, {"stream": parent})
        if last is not None:
            schedule(conn, [digest_wish(get_window(conn, last))])


def _erase_subject(conn: Connection, project: int, subject: int) -> Erasure:
    found = conn.first(_SUBJECT, {"project": project, "subject": subject})
    if found is None:
        raise NotFound(f"there is no subject {row_id('sub', subject)} in this project", id=row_id("sub", subject))
    if found[0] is not None:
        return _erased_before(conn, project, "subject", subject, None, None)
    conn.run(_MARK_SUBJECT, {"id": subject, "name": erased_name(subject), "now": conn.now()})
    _break_leases(conn, Piece(kind="subject", project=project, subject=subject, stream=None, seq=None, window=None))
    some = [r[0] for r in conn.rows(_SUBJECT_STREAMS, {"subject": subject, "limit": STREAMS_PER_CHUNK})]
    counts = blank_streams(conn, project, some) if some else {}
    return _begin(conn, project, "subject", subject=subject, stream=None, seq=None, destroyed=counts)


def _erase_project(conn: Connection, project: int) -> Erasure:
    found = conn.first(_PROJECT, {"project": project})
    if found is None:
        raise NotFound(f"there is no project {row_id('prj', project)}", id=row_id("prj", project))
    if found[0] is not None:
        return _erased_before(conn, project, "project", None, None, None)
    now = conn.now()
    conn.run(_MARK_PROJECT, {"project": project, "name": erased_name(project), "secret": b"", "now": now})
    conn.run(_REVOKE, {"project": project, "now": now})
    for statement in (_UNNAME, _FORGET_MERGES):
        conn.run(statement, {"project": project, "mark": ERASED_MARK, "no_secret": b"", "now": now})
    _break_leases(conn, Piece(kind="project", project=project, subject=None, stream=None, seq=None, window=None))
    marked = _mark_subjects(conn, project)
    return _begin(conn, project, "project", subject=None, stream=None, seq=None, destroyed={"subjects": marked})


def _begin(
    conn: Connection, project: int, kind: Kind, *, subject: int | None, stream: int | None, seq: int | None,
    destroyed: Counts,
) -> Erasure:  # fmt: skip
    now = conn.now()
    conn.run(_VECTORS_MOVED, {"project": project})
    id_ = conn.scalar(_ADD, {
        "project": project, "kind": kind, "subject": subject, "stream": stream, "seq": seq, "now": now,
        "destroyed": json.dumps(destroyed)})  # fmt: skip
    schedule(conn, [Schedule(
        kind=ERASE, key=str(id_), project=project, lane=ensure_lane(conn, project, 0), due_at_us=now, uses="local",
        serial_key=f"erase:{project}", args=json.dumps({"erasure": id_}),
    )])  # fmt: skip
    found = _get(conn, id_)
    record_changes(conn, project, [NewChange(kind="memory.erased", ref=_ref(found), subject=subject, stream=stream)])
    return found


def _ref(erasure: Erasure) -> str:
    match erasure.target:
        case EventTarget(stream=stream, seq=seq):
            return event_id(stream, seq)
        case StreamTarget(stream=stream):
            return row_id("thr", stream)
        case SubjectTarget(subject=subject):
            return row_id("sub", subject)
        case ProjectTarget():
            return row_id("prj", erasure.project)


def _erased_before(
    conn: Connection, project: int, kind: Kind, subject: int | None, stream: int | None, seq: int | None
) -> Erasure:
    owner = conn.scalar(_STREAM, {"project": project, "stream": stream}) if kind == "event" else subject
    row = conn.first(_SAME, {"project": project, "kind": kind, "subject": owner, "stream": stream, "seq": seq})
    if row is None:
        raise NotFound("it was erased before, with what it was part of")
    return _erasure(row)


# ---- work in flight

_LEASED = text("select id, kind, key from jobs where state = 'leased' and project_id = :project")
_STREAM_OF_WINDOW = text("select subject_id, stream_id from windows where id = :window")


def _break_leases(conn: Connection, piece: Piece) -> None:
    """End the leases of work that has read what is erased: its fence grows, so nothing of it can be written."""
    for job, kind, key in conn.rows(_LEASED, {"project": piece.project}):
        if kind == ERASE:
            continue
        judges = kind == JUDGE and key == str(piece.subject) and piece.kind in ("event", "stream")
        if judges or (kind in (EMBED, EMBED_WORDS) and piece.kind != "project"):  # starts again, without what is erased
            release_by_hand(conn, piece.project, job)
        elif piece.kind == "project" or _concerns(conn, piece, kind, key):
            discard_by_hand(conn, piece.project, job, "erased")


def _concerns(conn: Connection, piece: Piece, kind: str, key: str) -> bool:
    subject, stream = None, None
    if kind in (SUMMARISE, EXTRACT, DIGEST):
        subject, stream = conn.first(_STREAM_OF_WINDOW, {"window": int(key.partition(".")[0])}) or (None, None)
    elif kind in (TIMER, FOLD, DISTIL):
        stream = int(key)
        subject = (conn.first(_STREAM, {"stream": stream, "project": piece.project}) or (None,))[0]
    elif kind == JUDGE:
        subject = int(key)
    elif kind == REVIEW:
        stream = session_of(conn, piece.project, generation_of(key))
        subject = (conn.first(_STREAM, {"stream": stream, "project": piece.project}) or (None,))[0]
    match piece.kind:
        case "stream":
            return stream == piece.stream
        case "subject":
            return subject == piece.subject
        case _:
            return False  # an event's window and fold are dropped by their keys


# ---- one event: its window rests until all is gone, then is derived again

_COVERING = text("select id from windows where stream_id = :stream and start_seq <= :seq and end_seq >= :seq")
_SLICES = text("select slices from windows where id = :window")
_SUSPEND = text("""
update windows set summary = '', learnings = null, summary_at = coalesce(summary_at, :now),
  facts_at = coalesce(facts_at, :now) where id = :window""")
_SUSPEND_SLICES = text("""
update slices set summary = '', learnings = null, rejected = null, summary_at = coalesce(summary_at, :now),
  facts_at = coalesce(facts_at, :now) where window_id = :window""")
_FACTS_OF_WINDOW = text("select id from facts where window_id = :window order by id limit 500")
_UNFOLD = text("update streams set summary = null, summary_through = 0 where id = :stream")


def _covering(conn: Connection, stream: int, seq: int) -> int | None:
    found = conn.scalar(_COVERING, {"stream": stream, "seq": seq})
    return None if found is None else int(found)


def _suspend(conn: Connection, project: int, stream: int, window: int) -> None:
    """Forget what was made of the window. Sweeps see it as done: none takes it up before its replies are gone."""
    params = {"window": window, "now": conn.now()}
    forget_summaries(conn, project, [window])
    conn.run(_SUSPEND, params)
    conn.run(_SUSPEND_SLICES, params)
    conn.run(_UNFOLD, {"stream": stream})
    drop_jobs(conn, project, [*job_keys(window, conn.scalar(_SLICES, params)), (FOLD, str(stream))])
    facts = [r[0] for r in conn.rows(_FACTS_OF_WINDOW, params)]
    hide_passages(conn, ProjectId(project), find_passages_of(conn, "fact", facts))


def _rest(conn: Connection, erasure: Erasure) -> None:
    """Forget once more what is made of its window: it was derived while this erase was not done.

    Another erase's end or a hand may have asked for it, and after a clock that was set back it looks older than this
    erase: its residue would never be zero.
    """
    assert erasure.stream is not None
    assert erasure.seq is not None
    window = _covering(conn, erasure.stream, erasure.seq)
    if window is not None:
        _suspend(conn, erasure.project, erasure.stream, window)


_LEFT = text("""
select count(*) from events e join windows w on e.stream_id = w.stream_id and e.seq between w.start_seq and w.end_seq
where w.id = :window and e.evidence = 1""")
_RESUME = text("""
update windows set summary = null, summary_at = null, facts_at = case when :session then facts_at end
where id = :window""")
_RESUME_SLICES = text("""
update slices set summary = null, summary_at = null, facts_at = case when :session then facts_at end
where window_id = :window""")
_EMPTY = text("""
update windows set skipped_because = 'everything in it was erased' where id = :window and skipped_because is null""")
_SKIPPED = text("select skipped_because from windows where id = :window")
_KIND = text("select kind from streams where id = :stream")
_OPEN_CONFLICT = text("select 1 from verdicts where subject_id = :subject and verdict is null limit 1")


def _derive_again(conn: Connection, erasure: Erasure) -> None:
    """The window's jobs over what remains.

    Every reply that saw the event is gone, and the epoch refuses one that is still under way. A reply that was given
    after the erase, to a job that the window was opened with, is used and not asked for again (G8).
    """
    assert erasure.stream is not None
    assert erasure.seq is not None
    window = _covering(conn, erasure.stream, erasure.seq)
    if window is None:
        return
    conn.run(_UNFOLD, {"stream": erasure.stream})
    session = conn.scalar(_KIND, {"stream": erasure.stream}) == "session"
    if conn.scalar(_LEFT, {"window": window}) == 0:
        conn.run(_EMPTY, {"window": window})
    if conn.scalar(_SKIPPED, {"window": window}) is None:
        for statement in (_RESUME, _RESUME_SLICES):
            conn.run(statement, {"window": window, "session": session})
    row = find_window(conn, window)
    if row is None:  # its thread or subject was erased too, and takes the window with it
        return
    if session:  # its digest is of all its windows, whichever of them is left
        last = conn.scalar(LAST_WINDOW, {"stream": erasure.stream})
        schedule(conn, [] if last is None else [digest_wish(get_window(conn, last))])
    else:
        schedule(conn, jobs_of(row) if row.skipped_because is None else [fold_wish(row, conn.now())])


# ---- the job's chunks

_UNMARKED = text("""
select id from subjects where project_id = :project and erased_at is null order by id limit :limit""")
_NEXT_SUBJECT = text("select min(id) from subjects where project_id = :project and id > :after")
_SAVE = text("""
update erasures set working_on = :working_on, stage = :stage, after = :after, after_seq = :after_seq,
  destroyed = :destroyed where id = :id""")


def _mark_subjects(conn: Connection, project: int) -> int:
    now = conn.now()
    ids = [r[0] for r in conn.rows(_UNMARKED, {"project": project, "limit": SUBJECTS_PER_CHUNK})]
    conn.many(_MARK_SUBJECT, [{"id": s, "name": erased_name(s), "now": now} for s in ids])
    return len(ids)


def erase_chunk(conn: Connection, lease: Lease, erasure: int) -> bool:
    """Destroy the next bit and note how far it is, in one transaction; False when nothing is left. Raises LeaseLost."""
    require_lease(conn, lease)
    found = _get(conn, erasure)
    if found.done_at is not None:
        return False
    if found.kind == "project" and found.working_on is None:
        return _start_subjects(conn, found)
    piece = _piece(conn, found)
    stages = SUBJECT_OF_PROJECT if found.kind == "project" and piece.kind == "subject" else STAGES[piece.kind]
    if found.stage >= len(stages):
        return _next_subject(conn, found) if found.kind == "project" else False
    chunk = stages[found.stage](conn, piece, found.place)
    stage = found.stage if chunk.go_on is not None else found.stage + 1
    _save(conn, found, working_on=found.working_on, stage=stage, place=chunk.go_on or Place(), rows=chunk.rows)
    return True


def _piece(conn: Connection, erasure: Erasure) -> Piece:
    """What is worked now. A project goes subject by subject (`working_on`), then what is left of it (0)."""
    kind, subject = erasure.kind, erasure.subject
    if kind == "project" and erasure.working_on:
        kind, subject = "subject", erasure.working_on
    window = None
    if kind == "event":
        assert erasure.stream is not None
        assert erasure.seq is not None
        window = _covering(conn, erasure.stream, erasure.seq)
    return Piece(
        kind=kind, project=erasure.project, subject=subject, stream=erasure.stream, seq=erasure.seq, window=window
    )


def _start_subjects(conn: Connection, erasure: Erasure) -> bool:
    """All subjects are marked before the first is destroyed: from then on no work in flight can write to any."""
    marked = _mark_subjects(conn, erasure.project)
    first = None if marked else conn.scalar(_NEXT_SUBJECT, {"project": erasure.project, "after": 0}) or 0
    _save(conn, erasure, working_on=first, stage=0, place=Place(), rows={"subjects": marked})
    return True


def _next_subject(conn: Connection, erasure: Erasure) -> bool:
    if erasure.working_on == 0:
        return False
    following = conn.scalar(_NEXT_SUBJECT, {"project": erasure.project, "after": erasure.working_on}) or 0
    _save(conn, erasure, working_on=following, stage=0, place=Place(), rows={})
    return True


def _save(
    conn: Connection, erasure: Erasure, *, working_on: int | None, stage: int, place: Place, rows: Counts
) -> None:
    before = erasure.destroyed
    destroyed = {kind: before.get(kind, 0) + rows.get(kind, 0) for kind in sorted({*before, *rows})}
    conn.run(_SAVE, {
        "id": erasure.id, "working_on": working_on, "stage": stage, "after": place.after, "after_seq": place.after_seq,
        "destroyed": json.dumps({k: n for k, n in destroyed.items() if n}),
    })  # fmt: skip


# ---- the end

_DONE = text("""
update erasures set residue = 0, done_at = :now, unclean = :unclean where id = :id and done_at is null""")
_TRIED = text("update erasures set cleanings = cleanings + 1 where id = :id")
_AGAIN = text("""
update erasures set residue = :residue, working_on = null, stage = 0, after = 0, after_seq = 0
where id = :id and done_at is null""")


_OTHERS_OPEN = text("select 1 from erasures where done_at is null and id <> :id limit 1")
CLEANINGS_MAX = 30
"""An erase whose readers never leave the file ends unclean after so many tries, and says so."""


def clean_file(conn: Connection, erasure: int, found: list[str]) -> None:
    """After this transaction, drop what was deleted from where the database keeps it for itself; `found` gets why that
    could not be, "" where it could. While other erases are open the whole is left to the last of them.

    On a server that is the server's: nobody can read what is deleted from the commit on, and its own vacuum drops it.
    """
    raw = conn.raw
    rewrite = conn.first(_OTHERS_OPEN, {"id": erasure}) is None
    clean = partial(clean_sqlite, raw, rewrite=rewrite) if conn.dialect.name == "sqlite" else str
    conn.after_commit(lambda: found.append(clean()))


def finish_erase(conn: Connection, erasure: int, left: int, cleaned: list[str]) -> Outcome:
    """The job's last commit: done, or once more where the probe found something or the file could not be cleaned.

    What cannot be cleaned is not tried without end: the erase ends with the reason, and `clean_again` goes on.
    """
    found = _get(conn, erasure)
    if found.done_at is not None:
        return Done()
    if left:
        if found.kind == "event":
            _rest(conn, found)
        conn.run(_AGAIN, {"id": erasure, "residue": left})
        return Snooze(conn.now() + AGAIN_US, f"{left} rows were found after the erase; it runs again")
    unclean = cleaned[-1] if cleaned else "the file was not cleaned"
    if unclean and unclean != TOO_LARGE and found.cleanings + 1 < CLEANINGS_MAX:
        conn.run(_TRIED, {"id": erasure})
        return Snooze(conn.now() + AGAIN_US, unclean)
    conn.run(_DONE, {"id": erasure, "now": conn.now(), "unclean": unclean or None})
    if found.kind == "event":
        _derive_again(conn, found)
    subject = found.subject if found.kind in ("event", "stream") else None
    if subject is not None and conn.first(_OPEN_CONFLICT, {"subject": subject}):
        schedule(conn, [judge_wish(conn, found.project, subject)])
    return Done()


_UNCLEAN = text("select 1 from erasures where unclean is not null limit 1")
_CLEANED = text("update erasures set unclean = :unclean where unclean is not null")


def clean_again(conn: Connection, cleaned: list[str]) -> bool:
    """Start to clean the file once more where an erase had to leave it; False where none did."""
    if conn.first(_UNCLEAN) is None:
        return False
    clean_file(conn, 0, cleaned)
    return True


def note_cleaned(conn: Connection, cleaned: list[str]) -> int:
    """What `clean_again` came to; the number of erases that are clean now."""
    unclean = cleaned[-1] if cleaned else None
    if unclean is None:
        return 0
    changed = conn.run(_CLEANED, {"unclean": unclean or None})
    return 0 if unclean else changed
