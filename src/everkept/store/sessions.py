"""Sessions of coding agents: their events under natural keys, whatever the way in, and what is known of each (G2).

An event is told by up to three sources, in any order, any number of times: it is kept once. The key that tells so is
its native id; a prompt that a hook announced without one is matched to the one in the transcript by its time and words.
A richer source completes a poorer one as a revision: a second event that names the first, shown in its place.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple

from sqlalchemy import text

from everkept.config import Settings
from everkept.domain.ids import ProjectId, StreamId, SubjectId, row_id
from everkept.domain.session import Kind
from everkept.store.changes import NewChange, record_changes
from everkept.store.connection import Connection, Row
from everkept.store.effective import effective
from everkept.store.jobs import schedule
from everkept.store.lanes import ensure_lane
from everkept.store.launch_sessions import NativeSession, link_session
from everkept.store.ledger import note_appended
from everkept.store.merging import require_arrived, require_unmerged
from everkept.store.project_names import shown
from everkept.store.projects import ensure_subject
from everkept.store.search import NewPassage, index_passages
from everkept.store.session_keys import (
    HEARD,
    KnownKey,
    NewSessionEvent,
    erased_until,
    known_before,
    known_keys,
    told_before,
    write_keys,
    write_mark,
)
from everkept.store.streams import (
    EVIDENCE,
    EVIDENCE_NEVER,
    EVIDENCE_WHILE_OFF,
    StreamRow,
    find_stream,
    get_stream,
    timer,
    wake_embedder,
)

OWNER: Final = "me"
"""Whose memory the sessions and pages of a project are."""
SIBLING_PULL_US: Final = 120_000_000
"""The start of another session of the agent in a worktree ends the one before it so soon."""
NO_LIMIT_US: Final = 1 << 62
"""However long a session goes on, only its end or a pause closes a stretch."""
RANK_ENDED: Final = 4
"""From this rank on, a telling of a call says what came of it."""
ENDS: Final[frozenset[Kind]] = frozenset({"session_end", "compaction", "clear"})
"""What closes a stretch of a session, so that it is digested now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHeader:
    agent: str
    native: str
    origin: Literal["hook", "import"]
    parent: str | None = None
    title: str | None = None
    cwd: str | None = None
    worktree: str | None = None
    branch: str | None = None
    model: str | None = None
    transcript: str | None = None
    """The file that tells of it, where it lies on this machine."""
    launch: int | None = None
    """The launch that its agent was started by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionBatch:
    """Events of one session in the order they happened. `ended`: nothing more will come, as far as anybody knows."""

    project: int
    header: SessionHeader
    events: tuple[NewSessionEvent, ...]
    base: Settings
    mark: str
    """Keyed hash of the session's own name: what happened in it before it was erased stays out."""
    former_marks: tuple[str, ...] = ()
    """The same as projects that were merged into this one hashed it."""
    ended: bool = False


class EventOutcome(NamedTuple):
    """What became of one event."""

    what: Literal["stored", "revised", "replayed", "erased"]
    stream: int | None
    """None, as `seq`, of what was erased with its whole session."""
    seq: int | None
    exact: bool = False
    """Of a replay: it says what is kept, and is no poorer telling of it."""


_ERASED_WITH_SESSION: Final = EventOutcome("erased", None, None)


@dataclass(slots=True, kw_only=True)
class SessionAppended:
    stream: int | None
    """None: nothing of it was new, and there is no such session here."""
    stored: int = 0
    genuine: int = 0
    """Of the stored: prompts of a person and results of tools."""
    revised: int = 0
    """Stored in place of a poorer telling of the same event."""
    known: int = 0
    erased: int = 0
    """Happened before the session was erased, and stay out."""
    elsewhere: set[int] = field(default_factory=set)
    """Streams of other sessions that had some of these events: a resume or fork of them."""
    outcomes: list[EventOutcome] = field(default_factory=list)
    """One for each event, in the order given."""


def stream_name(agent: str, native: str) -> str:
    return f"{agent}/{native}"


_ADD_STREAM = text("""
insert into streams(project_id, subject_id, lane_id, kind, name, settings, created_at)
values(:project, :subject, :lane, 'session', :name, '{}', :now) on conflict do nothing""")
_ADD_EVENT = text("""
insert into events(stream_id, seq, project_id, role, name, content, occurred_at, zone_min, recorded_at, key_hash,
  payload_hash, evidence, metadata, tokens, model)
values(:stream, :seq, :project, :role, :name, :content, :occurred_at, null, :now, null, :payload, :evidence, :metadata,
  :tokens, null)""")
_MOVE = text("""
update streams set last_seq = :last_seq, last_recorded_at = :now, pending_tokens = :tokens, pulled_due_at = null
where id = :id""")
_END = text("update streams set end_through = :through where id = :id and end_through < :through")
_NOTE = text("""
insert into sessions(stream_id, project_id, agent, native_id, parent, origin, title, cwd, worktree, branch, model,
  transcript, genuine, started_at, last_event_at)
values(:stream, :project, :agent, :native, :parent, :origin, :title, :cwd, :worktree, :branch, :model, :transcript,
  :genuine, :first, :last)
on conflict(stream_id) do update set parent = coalesce(sessions.parent, excluded.parent),
  title = case when exists (select 1 from erasures r where r.stream_id = sessions.stream_id) then sessions.title
    else coalesce(excluded.title, sessions.title) end, cwd = coalesce(sessions.cwd, excluded.cwd),
  worktree = coalesce(sessions.worktree, excluded.worktree), branch = coalesce(excluded.branch, sessions.branch),
  model = coalesce(excluded.model, sessions.model),
  transcript = coalesce(excluded.transcript, sessions.transcript), genuine = sessions.genuine + excluded.genuine,
  started_at = coalesce(min(sessions.started_at, excluded.started_at), excluded.started_at, sessions.started_at),
  last_event_at = max(coalesce(sessions.last_event_at, 0), coalesce(excluded.last_event_at, 0))""")


def append_session(conn: Connection, batch: SessionBatch) -> SessionAppended:
    """Take the events that are new or richer than what is known; may be repeated with the same answer but `stored`.

    An event that was erased stays out under its natural key, and of a session that was erased also what happened before
    under any other: what a hook told comes under another key from the transcript. What it did since is new.
    Raises NotFound where the project was erased.
    """
    known = known_before(conn, batch.project, batch.events, batch.mark, batch.former_marks)
    known |= known_keys(conn, batch.project, [batch.mark, *(e.key_hash for e in batch.events)])
    stream = find_stream(conn, batch.project, "session", stream_name(batch.header.agent, batch.header.native))
    new = stream is None
    if new:
        name = stream_name(batch.header.agent, batch.header.native)
        require_arrived(conn, batch.project, "session", name)
        require_unmerged(conn, batch.project)
    until = erased_until(conn, known.get(batch.mark), lives=not new)
    told = batch.events
    batch = _since_erased(batch, until)
    erased = len(told) - len(batch.events)
    if erased and not batch.events:
        of_none = None if stream is None else stream.id
        return SessionAppended(stream=of_none, erased=erased, outcomes=[_ERASED_WITH_SESSION] * erased)
    if stream is None:
        if all(e.key_hash in known for e in batch.events):  # all of another session
            streams = {known[e.key_hash].stream for e in batch.events}
            outcomes = [_replayed(known[e.key_hash], e) for e in batch.events]
            return SessionAppended(
                stream=None, known=len(batch.events), erased=erased, elsewhere=streams,
                outcomes=_with_erased(told, until, outcomes),
            )  # fmt: skip
        stream = _create(conn, batch)
    settings = effective(batch.base, stream.project_settings, stream.settings)
    first = stream.last_seq + 1
    taking = _Taking(
        conn=conn, stream=stream, known=known, now=conn.now(), enabled=settings.memory.enabled,
        answer=SessionAppended(stream=stream.id, erased=erased),
    )  # fmt: skip
    if new and batch.events:
        write_mark(conn, batch.project, batch.mark, stream.id, until)
    outcomes = [taking.take(event) for event in batch.events]
    taking.answer.outcomes = _with_erased(told, until, outcomes)
    if batch.ended and stream.last_seq > stream.covered_seq:
        taking.end_through = stream.last_seq
    _write(conn, taking)
    if taking.rows or new:
        _note(conn, batch, stream, taking.answer.genuine)
    if taking.rows or taking.end_through > stream.covered_seq:
        _arm(conn, stream, settings, taking.now, taking.end_through)
    if taking.rows:
        wake_embedder(conn, batch.project)
        seq = record_changes(conn, batch.project, [NewChange(
            kind="session.appended", ref=row_id("ses", stream.id), subject=stream.subject, stream=stream.id,
            data={"first_seq": first, "last_seq": stream.last_seq},
        )])  # fmt: skip
        note_appended(conn, stream.id, first, stream.last_seq, seq)
    if new or batch.header.launch is not None or batch.header.parent is not None:
        _link(conn, batch, stream.id)
    return taking.answer


def _link(conn: Connection, batch: SessionBatch, stream: int) -> None:
    """After what was appended: a workstream that it is linked to only now gets all of it."""
    header = batch.header
    session = NativeSession(agent=header.agent, native=header.native, parent=header.parent, stream=stream)
    link_session(conn, batch.project, session, header.launch)


@dataclass(slots=True, kw_only=True)
class _Taking:
    """A batch while it is taken: the stream moves with every event that is new, and the rows wait to be written."""

    conn: Connection
    stream: StreamRow
    known: dict[str, KnownKey]
    now: int
    enabled: bool
    answer: SessionAppended
    rows: list[Row] = field(default_factory=list)
    passages: list[NewPassage] = field(default_factory=list)
    keys: dict[str, KnownKey] = field(default_factory=dict)
    """To be written, by key."""
    end_through: int = 0

    def take(self, event: NewSessionEvent) -> EventOutcome:
        same = self.known.get(event.key_hash) or self._told_before(event)
        if same is not None and (same.stream != self.stream.id or not _completes(same, event)):
            self._hear(same, event)
            return _replayed(same, event)
        if same is None:
            self.answer.stored += 1
            self.answer.genuine += event.counts
        else:
            self.answer.revised += 1
            self.answer.genuine += event.counts and event.kind == "tool" and same.rank < RANK_ENDED
        self.stream.last_seq += 1
        self.stream.pending_tokens += event.tokens
        revises = None if same is None else same.seq
        self.rows.append(_event_row(self.stream, event, self.now, revises, enabled=self.enabled))
        self.passages.append(_passage(self.stream, event))
        self._name(event, same)
        if event.kind in ENDS:
            self.end_through = self.stream.last_seq
        return EventOutcome("stored" if same is None else "revised", self.stream.id, self.stream.last_seq)

    def _told_before(self, event: NewSessionEvent) -> KnownKey | None:
        if not event.has_no_id:
            return None
        self.write_keys()  # what this batch has told belongs to what is known
        same = told_before(self.conn, self.stream.id, event)
        return None if same is None else self.known.setdefault(same.key, same)

    def write_keys(self) -> None:
        write_keys(self.conn, self.stream.project, self.keys.values())
        self.keys.clear()

    def _hear(self, same: KnownKey, event: NewSessionEvent) -> None:
        """Known already: note that this source has told of it too, and under which key."""
        self.answer.known += 1
        if same.stream != self.stream.id:
            self.answer.elsewhere.add(same.stream)
        fresh = event.key_hash not in self.known
        if same.heard & HEARD[event.source] and not fresh:
            return
        same.heard |= HEARD[event.source]
        self.keys[same.key] = same
        if fresh:
            alias = replace(same, key=event.key_hash, prompt_at=None)
            self.known[alias.key] = self.keys[alias.key] = alias

    def _name(self, event: NewSessionEvent, same: KnownKey | None) -> None:
        """The key of the event that was just taken; where it completes another one, that one's key names it too."""
        entry = KnownKey(
            key=event.key_hash, stream=self.stream.id, seq=self.stream.last_seq, payload=event.payload_hash,
            rank=event.rank, heard=HEARD[event.source] | (0 if same is None else same.heard),
            prompt_at=event.occurred_at_us if event.has_no_id else None,
        )  # fmt: skip
        self.known[entry.key] = self.keys[entry.key] = entry
        if same is not None and same.key != entry.key:
            same.seq, same.payload, same.rank, same.heard = entry.seq, entry.payload, entry.rank, entry.heard
            self.keys[same.key] = same


def _write(conn: Connection, taking: _Taking) -> None:
    stream = taking.stream
    conn.many_in_order(_ADD_EVENT, taking.rows)
    index_passages(conn, taking.passages)
    taking.write_keys()
    if taking.rows:
        conn.run(_MOVE, {
            "id": stream.id, "last_seq": stream.last_seq, "now": taking.now, "tokens": stream.pending_tokens,
        })  # fmt: skip


def _since_erased(batch: SessionBatch, until: int) -> SessionBatch:
    """Without what was erased; its title is made of the first words. What nobody dated may be of before."""
    if not until:
        return batch
    events = tuple(e for e in batch.events if _is_since(e, until))
    return replace(batch, header=replace(batch.header, title=None), events=events)


def _is_since(event: NewSessionEvent, until: int) -> bool:
    return not until or (event.dated and event.occurred_at_us > until)


def _with_erased(told: Sequence[NewSessionEvent], until: int, outcomes: list[EventOutcome]) -> list[EventOutcome]:
    """The outcomes of those since an erase, between those that stay out."""
    if len(told) == len(outcomes):
        return outcomes
    since = iter(outcomes)
    return [next(since) if _is_since(event, until) else _ERASED_WITH_SESSION for event in told]


def _replayed(known: KnownKey, event: NewSessionEvent) -> EventOutcome:
    """A key without a payload is that of an erased event, which stays out."""
    what: Literal["replayed", "erased"] = "replayed" if known.payload else "erased"
    return EventOutcome(what, known.stream, known.seq, exact=known.payload == event.payload_hash)


def _create(conn: Connection, batch: SessionBatch) -> StreamRow:
    name = stream_name(batch.header.agent, batch.header.native)
    subject = ensure_subject(conn, batch.project, OWNER)
    lane = ensure_lane(conn, batch.project, subject)
    conn.run(_ADD_STREAM, {"project": batch.project, "name": name, "subject": subject, "lane": lane, "now": conn.now()})
    stream = find_stream(conn, batch.project, "session", name)
    assert stream is not None
    _pull_siblings(conn, batch, stream.id)
    return stream


def _completes(known: KnownKey, event: NewSessionEvent) -> bool:
    """Whether this telling has more in it, or is a later state from a source that is as good."""
    if known.payload == event.payload_hash:
        return False
    return event.rank > known.rank or (event.rank == known.rank and event.source == "transcript")


def _event_row(stream: StreamRow, event: NewSessionEvent, now: int, revises: int | None, *, enabled: bool) -> Row:
    """In the order of `_ADD_EVENT`."""
    evidence = EVIDENCE_NEVER if not event.evidence else EVIDENCE if enabled else EVIDENCE_WHILE_OFF
    metadata = event.metadata if revises is None else f'{{"revises":{revises},{event.metadata[1:]}'
    return (
        stream.id, stream.last_seq, stream.project, event.role, event.name, event.content, event.occurred_at_us, now,
        event.payload_hash, evidence, metadata, event.tokens,
    )  # fmt: skip


def _passage(stream: StreamRow, event: NewSessionEvent) -> NewPassage:
    return NewPassage(
        project=ProjectId(stream.project), subject=SubjectId(stream.subject), kind="turn", analysed=event.analysed,
        stream=StreamId(stream.id), seq=stream.last_seq, speaker=event.name or event.role,
        occurred_at_us=event.occurred_at_us,
    )  # fmt: skip


def _note(conn: Connection, batch: SessionBatch, stream: StreamRow, genuine: int) -> None:
    header = batch.header
    times = [e.occurred_at_us for e in batch.events]
    conn.run(_NOTE, {
        "stream": stream.id, "project": batch.project, "agent": header.agent, "native": header.native,
        "parent": header.parent, "origin": header.origin, "title": header.title, "cwd": header.cwd,
        "worktree": header.worktree, "branch": header.branch, "model": header.model,
        "transcript": header.transcript,
        "genuine": genuine, "first": min(times, default=None),
        "last": max(times, default=None),
    })  # fmt: skip


def _arm(conn: Connection, stream: StreamRow, settings: Settings, now: int, end_through: int) -> None:
    """The timer after accepted events: the idle time from now, or at once where something ends a stretch."""
    if end_through > stream.covered_seq:
        conn.run(_END, {"id": stream.id, "through": end_through})
        schedule(conn, [timer(stream, now, None)])
    elif settings.memory.enabled and settings.window.idle_s is not None:
        schedule(conn, [timer(stream, now + int(settings.window.idle_s * 1e6), NO_LIMIT_US)])


_SIBLINGS = text("""
update streams set pulled_due_at = :due where covered_seq < last_seq and id <> :new
  and (pulled_due_at is null or pulled_due_at > :due) and id in (
    select stream_id from sessions where project_id = :project and agent = :agent and worktree = :worktree)
returning id""")
_PULL_TIMERS = text("""
update jobs set due_at = :due where kind = 'open_window' and state in ('waiting', 'ready') and due_at > :due
  and key in (select value from words(:keys))""")


def _pull_siblings(conn: Connection, batch: SessionBatch, stream: int) -> None:
    """Sessions of the same agent in the same worktree have probably ended when another one starts."""
    if batch.header.worktree is None or batch.header.parent is not None:
        return
    due = conn.now() + SIBLING_PULL_US
    rows = conn.rows(_SIBLINGS, {
        "due": due, "new": stream, "project": batch.project, "agent": batch.header.agent,
        "worktree": batch.header.worktree,
    })  # fmt: skip
    if rows:
        conn.run(_PULL_TIMERS, {"due": due, "keys": json.dumps([str(r[0]) for r in rows])})
        conn.hint(due)


# ---- reading


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    stream: int
    project: int
    agent: str
    native: str
    parent: str | None
    origin: str
    title: str | None
    cwd: str | None
    worktree: str | None
    branch: str | None
    model: str | None
    genuine: int
    started_at: int | None
    last_event_at: int | None
    digested_seq: int
    digest_hash: str | None
    trivial_because: str | None
    finished_seq: int | None
    last_seq: int
    page: str | None
    """Slug of its page."""
    page_title: str | None

    @property
    def phantom(self) -> bool:
        """Nothing was asked and nothing was done: never digested, and no offer made to it is acknowledged."""
        return self.genuine == 0


_COLUMNS = """
select x.stream_id, x.project_id, x.agent, x.native_id, x.parent, x.origin, x.title, x.cwd, x.worktree, x.branch,
  x.model, x.genuine, x.started_at, x.last_event_at, x.digested_seq, x.digest_hash, x.trivial_because, x.finished_seq,
  s.last_seq,
  g.slug, g.title
from sessions x join streams s on s.id = x.stream_id join subjects u on u.id = s.subject_id
  left join pages g on g.stream_id = x.stream_id and g.kind = 'session' and g.deleted_at is null
    and not exists (select 1 from erasures r where r.done_at is null and r.stream_id = x.stream_id)
where s.erased_at is null and u.erased_at is null and x.project_id = :project """
_BY_STREAM = text(_COLUMNS + "and x.stream_id = :stream")
_BY_NATIVE = text(_COLUMNS + "and x.native_id = :native and (:agent is null or x.agent = :agent)")
_LIST = text(
    _COLUMNS
    + """and (:agent is null or x.agent = :agent) and (:before is null or (coalesce(x.started_at, 0), x.stream_id)
  < (select coalesce(started_at, 0), stream_id from sessions where stream_id = :before))
order by coalesce(x.started_at, 0) desc, x.stream_id desc limit :limit"""
)
_UNDIGESTED = text(_COLUMNS + "and x.digested_seq < s.last_seq and x.genuine > 0 and x.worktree = :worktree"
                   " order by x.last_event_at desc nulls last limit :limit")  # fmt: skip
_CHILDREN = text(_COLUMNS + "and x.agent = :agent and x.parent = :native order by x.stream_id")


def _session(r: tuple[Any, ...]) -> SessionRow:
    return SessionRow(
        stream=r[0], project=r[1], agent=r[2], native=r[3], parent=r[4], origin=r[5], title=r[6], cwd=r[7],
        worktree=r[8], branch=r[9], model=r[10], genuine=r[11], started_at=r[12], last_event_at=r[13],
        digested_seq=r[14], digest_hash=r[15], trivial_because=r[16], finished_seq=r[17], last_seq=r[18], page=r[19],
        page_title=r[20],
    )  # fmt: skip


def find_session(conn: Connection, project: int, stream: int) -> SessionRow | None:
    row = conn.first(_BY_STREAM, {"project": project, "stream": stream})
    return None if row is None else _session(row)


def find_native_session(conn: Connection, project: int, native: str, agent: str | None = None) -> SessionRow | None:
    row = conn.first(_BY_NATIVE, {"project": project, "native": native, "agent": agent})
    return None if row is None else _session(row)


def list_sessions(
    conn: Connection, project: int, *, agent: str | None = None, before: int | None = None, limit: int = 50
) -> list[SessionRow]:
    """The last begun first. `before`: those that come after this one in the list."""
    params = {"project": project, "agent": agent, "before": before, "limit": limit}
    return [_session(r) for r in conn.rows(_LIST, params)]


def undigested_sessions(conn: Connection, project: int, worktree: str, limit: int = 3) -> list[SessionRow]:
    """Of a worktree, those with events that no digest has seen, newest first; phantoms left out."""
    return [_session(r) for r in conn.rows(_UNDIGESTED, {"project": project, "worktree": worktree, "limit": limit})]


def child_sessions(conn: Connection, session: SessionRow) -> list[SessionRow]:
    """Sub-agents that it started, and those that these started."""
    found: dict[int, SessionRow] = {}
    ahead = [session]
    while ahead:
        one = ahead.pop()
        rows = conn.rows(_CHILDREN, {"project": one.project, "agent": one.agent, "native": one.native})
        new = [c for c in map(_session, rows) if c.stream != session.stream and c.stream not in found]
        found |= {child.stream: child for child in new}
        ahead += new
    return [found[stream] for stream in sorted(found)]


def end_session(conn: Connection, session: SessionRow) -> tuple[bool, str]:
    """Ask for its digest now; durable before it is answered. (queued, reason)."""
    stream = get_stream(conn, session.stream)
    if stream.covered_seq >= stream.last_seq:
        return False, "every event of the session is digested or about to be"
    conn.run(_END, {"id": stream.id, "through": stream.last_seq})
    schedule(conn, [timer(stream, conn.now(), None)])
    return True, f"{stream.last_seq - stream.covered_seq} events await their digest"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuietTranscript:
    agent: str
    path: str
    worktree: str | None


QUIET_US: Final = 300_000_000
"""An agent that was not heard for so long may have been killed: it says nothing of its end."""
QUIET_SINCE_US: Final = 7 * 86_400_000_000
"""What was quiet for longer is left to an import."""
_QUIET = text("""
select x.agent, x.transcript, x.worktree from sessions x join streams s on s.id = x.stream_id
  join subjects u on u.id = s.subject_id
where x.transcript is not null and x.last_event_at between :since and :before and s.erased_at is null
  and u.erased_at is null
order by x.last_event_at desc limit :limit""")


def quiet_transcripts(conn: Connection, limit: int = 50) -> list[QuietTranscript]:
    """Files of sessions of any project that were not heard for a while, the last heard first."""
    now = conn.now()
    asked = {"since": now - QUIET_SINCE_US, "before": now - QUIET_US, "limit": limit}
    return [QuietTranscript(agent=r[0], path=r[1], worktree=r[2]) for r in conn.rows(_QUIET, asked)]


_PROJECT_OF = text(f"""
select {shown("p")} from sessions x join streams s on s.id = x.stream_id and s.erased_at is null
  join subjects u on u.id = s.subject_id and u.erased_at is null join projects p on p.id = x.project_id
where x.agent = :agent and x.native_id = :native and p.erased_at is null
order by x.stream_id limit 1""")


def project_of_session(conn: Connection, agent: str, native: str) -> str | None:
    """The project that a session was put into when its first event came."""
    found = conn.scalar(_PROJECT_OF, {"agent": agent, "native": native})
    return None if found is None else str(found)
