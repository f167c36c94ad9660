"""Streams and their events: the append path (G1, G2, G4) and reading back.

`append_events` is set-wise: the writer hands it every append that waits. It probes keys once, writes with one
`executemany` per table, and arms each stream's timer in the same transaction.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from sqlalchemy import text

from everkept.config import Settings
from everkept.domain.erase import ERASED_MARK
from everkept.domain.ids import ProjectId, StreamId, SubjectId
from everkept.domain.jobs import Schedule
from everkept.domain.passage import Analysed
from everkept.errors import EverkeptError, KeyConflict, NotFound, SubjectConflict, SubjectMoved
from everkept.store.changes import NewChange, record_changes
from everkept.store.connection import Connection, Row
from everkept.store.effective import effective
from everkept.store.hidden import SHOWN_PASSAGE
from everkept.store.jobs import schedule
from everkept.store.lanes import ensure_lane
from everkept.store.merging import require_arrived, require_unmerged
from everkept.store.projects import ensure_subject
from everkept.store.search import NewPassage, index_passages, reopen_embeddings
from everkept.store.writer import set_wise

TIMER = "open_window"
EMBED = "embed_passages"
EMBED_WORDS = "embed_words"
EMBED_DELAY_US = 1_000_000
EVIDENCE_NEVER, EVIDENCE, EVIDENCE_WHILE_OFF = 0, 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    """One checked message, its text already analysed. `key_hash` is keyed with the project's secret."""

    role: str
    name: str | None
    content: str
    occurred_at_us: int
    zone_min: int | None
    key_hash: str | None
    payload_hash: str
    evidence: bool
    metadata: str | None
    tokens: int
    model: str | None
    analysed: Analysed
    former: tuple[tuple[str, str], ...] = ()
    """Its key and payload as projects that were merged into this one hashed them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """A batch for one thread. `subject` creates the thread where there is none; the base settings arm its timer."""

    project: int
    thread: str
    subject: str | None
    messages: tuple[NewMessage, ...]
    base: Settings
    formers: int | None = None
    """How many former projects of this one the messages are hashed for; None: whoever made them has looked just now."""

    @property
    def weight(self) -> int:
        """For the writer, which bounds what it does at once."""
        return len(self.messages)


class Appended(NamedTuple):
    """What became of one message."""

    stream: int
    seq: int
    recorded_at: int
    replayed: bool


@dataclass(slots=True, kw_only=True)
class StreamRow:
    """A stream as it stands; `append_events` moves its counters while it works."""

    id: StreamId
    project: ProjectId
    subject: SubjectId
    subject_name: str
    lane: int
    name: str
    settings: str
    project_settings: str
    last_seq: int
    last_recorded_at: int | None
    covered_seq: int
    pending_tokens: int
    end_through: int
    pulled_due_at: int | None
    summary: str | None
    created_at: int
    kind: str = "thread"


_COLUMNS = """
select s.id, s.project_id, s.subject_id, u.name, s.lane_id, s.name, s.settings, p.settings, s.last_seq,
  s.last_recorded_at, s.covered_seq, s.pending_tokens, s.end_through, s.pulled_due_at, s.summary, s.created_at, s.kind
from streams s join subjects u on u.id = s.subject_id join projects p on p.id = s.project_id """
_NOT_ERASED = " and s.erased_at is null and u.erased_at is null and p.erased_at is null"
_BY_NAMES = text(
    _COLUMNS
    + "where s.project_id = :project and s.kind = 'thread' and s.name in (select value from words(:names))"
    + _NOT_ERASED
)
_BY_NAME = text(_COLUMNS + "where s.project_id = :project and s.kind = :kind and s.name = :name" + _NOT_ERASED)
_BY_ID = text(_COLUMNS + "where s.id = :id")
_LIST = text(
    _COLUMNS
    + "where s.project_id = :project and s.kind = 'thread' and s.id < :before"
    + _NOT_ERASED
    + " order by s.id desc limit :limit"
)
_LIST_SUBJECT = text(
    _COLUMNS
    + "where +s.project_id = :project and s.subject_id = :subject and s.kind = 'thread' and s.id < :before"
    + _NOT_ERASED
    + " order by s.id desc limit :limit"
)
_NEWEST = 2**63 - 1
_FREE_NAME = text("""
update streams set name = :mark || cast(id as text) where project_id = :project and kind = 'thread' and name = :name
  and subject_id in (select id from subjects where erased_at is not null)""")
_ADD = text("""
insert into streams(project_id, subject_id, lane_id, kind, name, settings, created_at)
values(:project, :subject, :lane, 'thread', :name, :settings, :now)""")
# Two seeks, where an `or` would walk every sibling: those pulled to an earlier time already are left alone.
_PULL_STREAMS = tuple(
    text(f"""
update streams set pulled_due_at = :due where subject_id = :subject and id <> :new and covered_seq < last_seq
  and pulled_due_at {unless}
  and exists (select 1 from jobs j where j.kind = 'open_window' and j.key = cast(streams.id as text)
              and j.state in ('waiting', 'ready') and j.due_at > :due and j.project_id = :project)
returning id""")
    for unless in ("is null", "> :due")
)
_PULL_TIMERS = text("""
update jobs set due_at = :due where kind = 'open_window' and state in ('waiting', 'ready') and due_at > :due
  and key in (select value from words(:keys))""")


def _stream(row: tuple[Any, ...]) -> StreamRow:
    return StreamRow(
        id=row[0], project=row[1], subject=row[2], subject_name=row[3], lane=row[4], name=row[5], settings=row[6],
        project_settings=row[7], last_seq=row[8], last_recorded_at=row[9], covered_seq=row[10], pending_tokens=row[11],
        end_through=row[12], pulled_due_at=row[13], summary=row[14], created_at=row[15], kind=row[16],
    )  # fmt: skip


def find_stream(conn: Connection, project: int, kind: str, name: str) -> StreamRow | None:
    row = conn.first(_BY_NAME, {"project": project, "kind": kind, "name": name})
    return None if row is None else _stream(row)


def find_thread(conn: Connection, project: int, name: str) -> StreamRow | None:
    return find_stream(conn, project, "thread", name)


def get_thread(conn: Connection, project: int, name: str) -> StreamRow:
    stream = find_thread(conn, project, name)
    if stream is None:
        require_arrived(conn, project, "thread", name)
        require_unmerged(conn, project)
        raise NotFound(f"there is no thread {name!r}; create it, or give a subject with the first message", thread=name)
    return stream


def get_stream(conn: Connection, stream: int) -> StreamRow:
    row = conn.first(_BY_ID, {"id": stream})
    if row is None:
        raise NotFound("this stream does not exist", stream=stream)
    return _stream(row)


def list_threads(
    conn: Connection, project: int, subject: int | None, before: int | None, limit: int
) -> list[StreamRow]:
    """Newest first."""
    params = {"project": project, "subject": subject, "limit": limit, "before": _NEWEST if before is None else before}
    return [_stream(r) for r in conn.rows(_LIST if subject is None else _LIST_SUBJECT, params)]


def create_thread(conn: Connection, project: int, name: str, subject: str, settings: str, base: Settings) -> StreamRow:
    """The thread of this name, made if there is none; making it pulls the subject's armed timers forward."""
    stream = find_thread(conn, project, name)
    if stream is not None:
        _require_subject(stream, subject)
        return stream
    require_arrived(conn, project, "thread", name)
    owner = ensure_subject(conn, project, subject)
    lane = ensure_lane(conn, project, owner)
    now = conn.now()
    conn.run(_FREE_NAME, {"project": project, "name": name, "mark": ERASED_MARK})
    conn.run(_ADD, {"project": project, "subject": owner, "lane": lane, "name": name, "settings": settings, "now": now})
    stream = find_thread(conn, project, name)
    assert stream is not None
    due = now + int(effective(base, stream.project_settings).window.sibling_pull_s * 1e6)
    siblings = {"subject": owner, "new": stream.id, "due": due, "project": project}
    pulled = [row for statement in _PULL_STREAMS for row in conn.rows(statement, siblings)]
    if pulled:
        conn.run(_PULL_TIMERS, {"due": due, "keys": json.dumps([str(r[0]) for r in pulled])})
        conn.hint(due)
    return stream


def _require_subject(stream: StreamRow, subject: str | None) -> None:
    if subject is not None and subject != stream.subject_name:
        raise SubjectConflict(
            f"thread {stream.name!r} belongs to subject {stream.subject_name!r}, not {subject!r};"
            " use another thread id",
            thread=stream.name,
            subject=stream.subject_name,
        )


_NAMES = text("select id, name from streams where id in (select value from numbers(:ids))")


def thread_names(conn: Connection, streams: Sequence[int]) -> dict[int, str]:
    return dict(conn.rows(_NAMES, {"ids": json.dumps(streams)}))


_TIMERS = text("""
select key, due_at from jobs where kind = 'open_window' and state in ('waiting', 'ready', 'leased')
  and key in (select value from words(:keys))""")


def timer_due(conn: Connection, streams: Sequence[int]) -> dict[int, int]:
    """{stream: when its timer fires} of those that have one armed."""
    rows = conn.rows(_TIMERS, {"keys": json.dumps([str(s) for s in streams])})
    return {int(key): due for key, due in rows}


_SET_SETTINGS = text("update streams set settings = :settings where id = :id")


def set_thread_settings(conn: Connection, project: int, name: str, settings: str, base: Settings) -> StreamRow:
    """Replace the thread's settings; a timer that these call for is armed at once."""
    stream = get_thread(conn, project, name)
    conn.run(_SET_SETTINGS, {"id": stream.id, "settings": settings})
    stream.settings = settings
    wish = timer_wish(stream, base, stream.last_recorded_at or conn.now())
    schedule(
        conn, [] if wish is None else [replace(wish, debounce_max_us=None)]
    )  # nothing was said: it only comes sooner
    return stream


# ---- append

_FORMERS = text("select count(*) from projects where merged_into = :project")
_KEYS = text("""
select key_hash, stream_id, seq, payload_hash, recorded_at, erased_at from events
where project_id = :project and key_hash in (select value from words(:keys))""")
_ADD_EVENT = text("""
insert into events(stream_id, seq, project_id, role, name, content, occurred_at, zone_min, recorded_at, key_hash,
  payload_hash, evidence, metadata, tokens, model)
values(:stream, :seq, :project, :role, :name, :content, :occurred_at, :zone_min, :now, :key_hash, :payload_hash,
  :evidence, :metadata, :tokens, :model)""")
# The same for most messages, which give none of the rest: to bind a NULL costs more than any other value.
_ADD_PLAIN_EVENT = text("""
insert into events(stream_id, seq, project_id, role, content, occurred_at, recorded_at, key_hash, payload_hash,
  evidence, tokens)
values(:stream, :seq, :project, :role, :content, :occurred_at, :now, :key_hash, :payload_hash, :evidence, :tokens)""")
_MOVE = text("""
update streams set last_seq = :last_seq, last_recorded_at = :now, pending_tokens = :tokens,
  pulled_due_at = null where id = :id""")


_Firsts = dict[str, tuple[Appended, str | None]]
"""Of a project: {key hash: (the first receipt, the payload that it was for)}."""


class _Known:
    """Keys already accepted, in the store and in this group.

    An erased one has no payload: it stays out, whatever is said under its key.
    """

    def __init__(self, conn: Connection, items: Sequence[Append]) -> None:
        self.firsts: dict[int, _Firsts] = {}
        self.formers = {p: int(conn.scalar(_FORMERS, {"project": p})) for p in {item.project for item in items}}
        by_project: dict[int, list[str]] = {}
        for item in items:
            keys = by_project.setdefault(item.project, [])
            keys.extend([m.key_hash for m in item.messages if m.key_hash])
            keys.extend([key for m in item.messages if m.former for key, _ in m.former])
        for project, keys in by_project.items():
            rows = conn.rows(_KEYS, {"project": project, "keys": json.dumps(keys)}) if keys else []
            self.firsts[project] = {
                key: (Appended(stream, seq, at, False), None if erased else payload)
                for key, stream, seq, payload, at, erased in rows
            }
        for item in items:
            self._know_by_former_keys(item)

    def _know_by_former_keys(self, item: Append) -> None:
        """What was accepted in a project that was merged into this one is known by its key of today too."""
        firsts = self.firsts[item.project]
        for message in item.messages if firsts else ():
            for key, payload_then in message.former:
                if message.key_hash is not None and key in firsts:
                    first, payload = firsts[key]
                    firsts[message.key_hash] = first, message.payload_hash if payload == payload_then else payload

    def check(self, item: Append) -> None:
        """Raises KeyConflict where a key of the batch was accepted before with another payload, SubjectMoved where a
        project was merged into this one since the batch was hashed."""
        if item.formers is not None and item.formers != self.formers[item.project]:
            raise SubjectMoved("a project was merged into this one just now; send the messages again")
        firsts = self.firsts[item.project]
        if not firsts:
            return
        for index, message in enumerate(item.messages):
            found = firsts.get(message.key_hash or "")
            if found is None:
                continue
            first, payload = found
            if payload is not None and payload != message.payload_hash:
                raise KeyConflict(
                    f"messages[{index}].key was used before with another payload; use a new key for a new message",
                    field=f"messages[{index}].key", stream=first.stream, seq=first.seq,
                )  # fmt: skip


@set_wise
def append_events(conn: Connection, items: list[Append]) -> list[list[Appended] | EverkeptError]:
    """Append each batch whole, or answer it with its error and write nothing of it."""
    now = conn.now()
    streams = _find_streams(conn, items)
    known = _Known(conn, items)
    answers: list[list[Appended] | EverkeptError] = []
    rows = _Rows()
    touched: dict[int, tuple[StreamRow, Settings]] = {}
    changes: dict[int, list[NewChange]] = {}
    for item in items:
        try:
            known.check(item)
            stream = _stream_for(conn, item, streams)  # last: a batch that is refused makes no thread
        except EverkeptError as error:
            answers.append(error)
            continue
        settings = effective(item.base, stream.project_settings, stream.settings)
        first, firsts = stream.last_seq + 1, known.firsts[item.project]
        heard = EVIDENCE if settings.memory.enabled else EVIDENCE_WHILE_OFF
        answers.append([_accept(firsts, stream, message, now, heard, rows) for message in item.messages])
        if stream.last_seq >= first:
            stream.last_recorded_at, stream.pulled_due_at = now, None
            touched[stream.id] = (stream, item.base)
            changes.setdefault(item.project, []).append(NewChange(
                kind="messages.appended", ref=stream.name, subject=stream.subject, stream=stream.id,
                data={"first_seq": first, "last_seq": stream.last_seq},
            ))  # fmt: skip
    wishes = [w for stream, base in touched.values() if (w := timer_wish(stream, base, now)) is not None]
    wishes += [_embed_wish(conn, project, now) for project in changes]
    with conn.at_once():
        _write(conn, rows, [s for s, _ in touched.values()], now)
        schedule(conn, wishes)
    for project, new in changes.items():
        record_changes(conn, project, new)
    return answers


@dataclass(frozen=True, slots=True)
class _Rows:
    """What a group writes."""

    events: list[Row] = field(default_factory=list)
    plain_events: list[Row] = field(default_factory=list)
    passages: list[NewPassage] = field(default_factory=list)


def _accept(firsts: _Firsts, stream: StreamRow, message: NewMessage, now: int, heard: int, rows: _Rows) -> Appended:
    """The next event of its stream; the first receipt where its key is known, also from earlier in the same batch.

    `heard` is the evidence of what may be shown. The one function that runs for every message: it makes no call that
    it can do without.
    """
    key = message.key_hash
    if key is not None and (found := firsts.get(key)) is not None:
        return found[0]._replace(replayed=True)
    stream.last_seq = seq = stream.last_seq + 1
    stream.pending_tokens += message.tokens
    id_, role, name, at = stream.id, message.role, message.name, message.occurred_at_us
    evidence = heard if message.evidence else EVIDENCE_NEVER
    zone_min, metadata, model = message.zone_min, message.metadata, message.model
    if name is None and zone_min is None and metadata is None and model is None:
        rows.plain_events.append((  # in the order of `_ADD_PLAIN_EVENT`
            id_, seq, stream.project, role, message.content, at, now, key, message.payload_hash, evidence,
            message.tokens,
        ))  # fmt: skip
    else:
        rows.events.append((  # in the order of `_ADD_EVENT`
            id_, seq, stream.project, role, name, message.content, at, zone_min, now, key, message.payload_hash,
            evidence, metadata, message.tokens, model,
        ))  # fmt: skip
    turn = NewPassage(stream.project, stream.subject, "turn", message.analysed, id_, seq, None, name or role, at)
    rows.passages.append(turn)
    accepted = Appended(id_, seq, now, False)
    if key is not None:
        firsts[key] = accepted, message.payload_hash
    return accepted


def _find_streams(conn: Connection, items: Sequence[Append]) -> dict[tuple[int, str], StreamRow]:
    names: dict[int, set[str]] = {}
    for item in items:
        names.setdefault(item.project, set()).add(item.thread)
    found = {}
    for project, wanted in names.items():
        for row in conn.rows(_BY_NAMES, {"project": project, "names": json.dumps(sorted(wanted))}):
            stream = _stream(row)
            found[project, stream.name] = stream
    return found


def _stream_for(conn: Connection, item: Append, streams: dict[tuple[int, str], StreamRow]) -> StreamRow:
    stream = streams.get((item.project, item.thread))
    if stream is None:
        if item.subject is None:
            return get_thread(conn, item.project, item.thread)  # raises NotFound
        stream = streams[item.project, item.thread] = create_thread(
            conn, item.project, item.thread, item.subject, "{}", item.base
        )
    _require_subject(stream, item.subject)
    return stream


def _write(conn: Connection, rows: _Rows, streams: Iterable[StreamRow], now: int) -> None:
    index_passages(conn, rows.passages)  # first: it reads
    conn.many_in_order(_ADD_EVENT, rows.events)
    conn.many_in_order(_ADD_PLAIN_EVENT, rows.plain_events)
    conn.many(_MOVE, [{"id": s.id, "last_seq": s.last_seq, "now": now, "tokens": s.pending_tokens} for s in streams])


def _embed_wish(conn: Connection, project: int, now: int) -> Schedule:
    return Schedule(
        kind=EMBED,
        key=str(project),
        project=project,
        lane=ensure_lane(conn, project, 0),
        due_at_us=now + EMBED_DELAY_US,
        uses="embedder",
        serial_key=f"embed:{project}",
        rearm_dead=True,
    )


def wake_embedder(conn: Connection, project: int) -> None:
    """New passages want vectors: one job of the project takes them all, a batch at a time."""
    schedule(conn, [_embed_wish(conn, project, conn.now())])


# ---- the timer


def is_full(stream: StreamRow, settings: Settings) -> bool:
    if stream.kind == "session":  # a window is one digested stretch, however long
        return False
    pending = stream.last_seq - stream.covered_seq
    return pending >= settings.window.events_max or stream.pending_tokens >= settings.window.tokens_max


def timer_wish(stream: StreamRow, base: Settings, now: int) -> Schedule | None:
    """The timer after an accepted message: idle time from now, at once where a window is full or an end was asked for.

    The timer only wakes `open_window`, which decides from the stream itself; memory off or no idle time arms none.
    """
    settings = effective(base, stream.project_settings, stream.settings)
    if stream.covered_seq >= stream.last_seq or not settings.memory.enabled:
        return None
    if is_full(stream, settings) or stream.end_through > stream.covered_seq:
        return timer(stream, now, None)  # an end that was asked for is not put off by what is said after it
    if settings.window.idle_s is None:
        return None
    return timer(stream, now + int(settings.window.idle_s * 1e6), int(settings.window.wait_max_s * 1e6))


def timer(stream: StreamRow, due_at_us: int, debounce_max_us: int | None) -> Schedule:
    return Schedule(
        kind=TIMER,
        key=str(stream.id),
        project=stream.project,
        lane=stream.lane,
        due_at_us=due_at_us,
        args=json.dumps({"stream": stream.id}),
        debounce_max_us=debounce_max_us,
        rearm_dead=True,
        serial_key=f"stream:{stream.id}",
    )


_END = text("update streams set end_through = last_seq where id = :id")


def request_end(conn: Connection, project: int, name: str, base: Settings) -> tuple[bool, str]:
    """Ask for the window now; durable before it is answered. (queued, reason)."""
    stream = get_thread(conn, project, name)
    settings = effective(base, stream.project_settings, stream.settings)
    if stream.covered_seq >= stream.last_seq:
        reason = (
            "every message of the thread lies in an episode already"
            if stream.last_seq
            else "the thread has no messages"
        )
        return False, reason
    conn.run(_END, {"id": stream.id})
    schedule(conn, [timer(stream, conn.now(), None)])
    waiting = stream.last_seq - stream.covered_seq
    if not settings.memory.enabled:
        return False, f"memory.enabled is false here: {waiting} messages are kept, and not remembered"
    return True, f"{waiting} messages await their episode"


# ---- reading

_EVENTS = text("""
select stream_id, seq, role, name, content, occurred_at, zone_min, recorded_at, evidence, metadata, tokens, model,
  erased_at
from events where stream_id = :stream and seq >= :first and seq <= :last order by seq limit :limit""")
_EVENTS_AT = text("""
select stream_id, seq, role, name, content, occurred_at, zone_min, recorded_at, evidence, metadata, tokens, model,
  erased_at
from events where project_id = :project and (stream_id, seq) in (
  select one, two from number_pairs(:places)) order by stream_id, seq""")
_LAST_EVENTS = text("""
select stream_id, seq, role, name, content, occurred_at, zone_min, recorded_at, evidence, metadata, tokens, model,
  erased_at
from events where stream_id = :stream and erased_at is null order by seq desc limit :limit""")


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    stream: int
    seq: int
    role: str
    name: str | None
    content: str | None
    occurred_at: int
    zone_min: int | None
    recorded_at: int
    evidence: int
    metadata: str | None
    tokens: int
    model: str | None
    erased_at: int | None


def _event(row: tuple[Any, ...]) -> EventRow:
    return EventRow(
        stream=row[0], seq=row[1], role=row[2], name=row[3], content=row[4], occurred_at=row[5], zone_min=row[6],
        recorded_at=row[7], evidence=row[8], metadata=row[9], tokens=row[10], model=row[11], erased_at=row[12],
    )  # fmt: skip


def list_events(conn: Connection, stream: int, first: int, last: int, limit: int = 1000) -> list[EventRow]:
    """Events with first ≤ seq ≤ last, oldest first."""
    return [_event(r) for r in conn.rows(_EVENTS, {"stream": stream, "first": first, "last": last, "limit": limit})]


def last_events(conn: Connection, stream: int, limit: int) -> list[EventRow]:
    """The newest events that were not erased, oldest first."""
    return [_event(r) for r in conn.rows(_LAST_EVENTS, {"stream": stream, "limit": limit})][::-1]


def events_at(conn: Connection, project: int, places: Sequence[tuple[int, int]]) -> list[EventRow]:
    """The events at these (stream, seq), in that order, inside the project only."""
    return [_event(r) for r in conn.rows(_EVENTS_AT, {"project": project, "places": json.dumps(places)})]


_UNEMBEDDED = text(f"""
select distinct p.project_id from passages p where p.embedded is null and p.hidden = false and p.project_id > :after
  and not exists (select 1 from jobs j where j.kind = 'embed_passages' and j.key = cast(p.project_id as text)
    and j.state <> 'done')
  and {SHOWN_PASSAGE}
order by p.project_id limit :limit""")


def sweep_unembedded(conn: Connection, after: int, limit: int) -> tuple[int, int]:
    """Wake the embedder of projects whose passages lack vectors; (projects repaired, where to go on, 0 = the end)."""
    rows = [r[0] for r in conn.rows(_UNEMBEDDED, {"after": after, "limit": limit})]
    for project in rows:
        wake_embedder(conn, project)
    return len(rows), rows[-1] if len(rows) == limit else 0


# Of projects whose vectors wait for a provider, those with a passage past the newest that has a vector of `:model`.
_WORDS_WAIT = text("""
select j.project_id from jobs j where j.kind = 'embed_passages' and j.state in ('waiting', 'ready')
  and j.project_id > :after and exists (select 1 from providers where circuit <> 'closed')
  and exists (select 1 from passages p where p.project_id = j.project_id and p.embedded is null and p.hidden = false
    and p.id > coalesce((
      select max(v.passage_id) from vectors v where v.project_id = j.project_id and v.model = :model), 0))
order by j.project_id limit :limit""")


def embed_words_meanwhile(conn: Connection, model: str, after: int, limit: int) -> tuple[int, int]:
    """Where vectors wait for a provider, make those that need none; (projects, where to go on, 0 = the end)."""
    rows = [r[0] for r in conn.rows(_WORDS_WAIT, {"model": model, "after": after, "limit": limit})]
    now = conn.now()
    schedule(conn, [
        Schedule(
            kind=EMBED_WORDS, key=str(project), project=project, lane=ensure_lane(conn, project, 0), due_at_us=now,
            serial_key=f"words:{project}", rearm_dead=True,
        )
        for project in rows
    ])  # fmt: skip
    return len(rows), rows[-1] if len(rows) == limit else 0


_OTHER_LABEL = text("""
select distinct project_id from passages where embedded is not null and embedded <> :label order by project_id""")


def projects_embedded_otherwise(conn: Connection, label: str) -> list[int]:
    """Projects that hold vectors of another embedder: asked once, at the start of a worker."""
    return [r[0] for r in conn.rows(_OTHER_LABEL, {"label": label})]


def reopen_chunk(conn: Connection, project: int, label: str) -> int:
    """Make some of a project's passages pending again and wake its embedder; how many (0 = none are left)."""
    reopened = reopen_embeddings(conn, ProjectId(project), label)
    if reopened:
        wake_embedder(conn, project)
    return reopened
