"""Natural keys: by which names the events of sessions are known, and which of them are one thing told twice (G2).

A prompt or a boundary that a hook tells has no id. It is what another telling says in the same words, or, of a prompt,
in words that differ by what was redacted or cut alone, if both are dated alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from sqlalchemy import text

from everkept.domain.passage import Analysed
from everkept.domain.session import Kind, differ_by_cuts
from everkept.store.connection import Connection

MATCH_US: Final = 10_000_000
"""How far apart two sources may date one prompt that they do not word alike."""
SAME_US: Final = 2_000_000
"""Within this, the same words from the same hooks are one event: two hooks fired for it."""
HEARD: Final = {"hook": 1, "transcript": 2, "launch": 4}
BOUNDARIES: Final[frozenset[Kind]] = frozenset({"session_start", "clear", "compaction", "session_end"})
"""What a hook tells without an id, and may tell twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSessionEvent:
    """One checked, redacted event, its text already analysed. Hashes are keyed with the project's secret."""

    kind: Kind
    role: str
    name: str | None
    content: str
    metadata: str
    occurred_at_us: int
    key_hash: str
    payload_hash: str
    source: Literal["hook", "transcript", "launch"]
    rank: int
    """How much its source tells (`capture.agents.keeping`): a call with its output more than one announced."""
    evidence: bool
    counts: bool
    """A genuine prompt or the result of a tool: what makes a session more than a phantom."""
    tokens: int
    analysed: Analysed
    dated: bool = True
    """Its time was told; False where it is only when it was taken in."""
    former: tuple[tuple[str, str], ...] = ()
    """Its key and payload as projects that were merged into this one hashed them."""

    @property
    def has_no_id(self) -> bool:
        """Its time and words may be all that tells it apart."""
        if self.kind == "prompt":
            return self.counts
        return self.source == "hook" and self.kind in BOUNDARIES


@dataclass(slots=True, kw_only=True)
class KnownKey:
    """One name that an event of the project is known under."""

    key: str
    stream: int
    seq: int
    payload: str
    """Empty once the event was erased."""
    rank: int
    heard: int
    """Bits of the sources that told of it (`HEARD`)."""
    prompt_at: int | None
    """When it happened, where it `has_no_id`."""


_COLUMNS = "k.key_hash, k.stream_id, k.seq, k.payload_hash, k.rank, k.heard, k.prompt_at"
_KNOWN = text(f"""
select {_COLUMNS} from natural_keys k
where k.project_id = :project and k.key_hash in (select value from words(:keys))""")
_ADD_KEY = text("""
insert into natural_keys(project_id, key_hash, stream_id, seq, payload_hash, rank, heard, prompt_at)
values(:project, :key, :stream, :seq, :payload, :rank, :heard, :prompt_at)
on conflict(project_id, key_hash) do update set seq = excluded.seq, payload_hash = excluded.payload_hash,
  rank = excluded.rank, heard = excluded.heard""")
_MARK = text("""
insert into natural_keys(project_id, key_hash, stream_id, seq, payload_hash, rank, heard, prompt_at)
values(:project, :mark, :stream, :until, 'session', 0, 0, null)
on conflict(project_id, key_hash) do update set stream_id = excluded.stream_id, seq = excluded.seq,
  payload_hash = excluded.payload_hash, rank = 0, heard = 0, prompt_at = null""")
_ERASED_AT = text("""
select max(r.asked_at) from erasures r join streams s on s.id = :stream
where r.project_id = s.project_id
  and ((r.kind = 'stream' and r.stream_id = s.id) or (r.kind = 'subject' and r.subject_id = s.subject_id))""")
NEVER: Final = 1 << 62
"""Later than any event."""
# However many prompts a session has, the nearest few are looked at.
_PROMPTS_AT = "select key_hash, project_id, heard, prompt_at from natural_keys where stream_id = :stream and prompt_at"
_BEFORE, _AFTER = "order by prompt_at desc limit 64", "order by prompt_at limit 64"
_ALIKE = text(f"""
with near as (
  select * from ({_PROMPTS_AT} <= :at and payload_hash = :payload {_BEFORE})
  union select * from ({_PROMPTS_AT} > :at and payload_hash = :payload {_AFTER})
  union select * from ({_PROMPTS_AT} between :at - {MATCH_US} and :at {_BEFORE})
  union select * from ({_PROMPTS_AT} between :at + 1 and :at + {MATCH_US} {_AFTER}))
select {_COLUMNS}, e.role, e.content from near
  join natural_keys k on k.project_id = near.project_id and k.key_hash = near.key_hash
  left join events e on e.stream_id = k.stream_id and e.seq = k.seq
where near.heard & :bit = 0 or near.prompt_at between :at - {SAME_US} and :at + {SAME_US}""")


def known_keys(conn: Connection, project: int, keys: Sequence[str]) -> dict[str, KnownKey]:
    rows = conn.rows(_KNOWN, {"project": project, "keys": json.dumps(list(keys))})
    return {r[0]: _known(r) for r in rows}


_KNOWN_BEFORE = text(f"""
select {_COLUMNS} from natural_keys k where k.key_hash in (select value from words(:keys))
  and (k.project_id = :project or k.project_id in (select id from projects where merged_into = :project))""")


def known_before(
    conn: Connection, project: int, events: Sequence[NewSessionEvent], mark: str, former_marks: Sequence[str]
) -> dict[str, KnownKey]:
    """By their keys of today, those that are known from projects that were merged into this one, or are being so."""
    wanted = [*former_marks, *(key for event in events for key, _ in event.former)]
    if not wanted:
        return {}
    there = {r[0]: _known(r) for r in conn.rows(_KNOWN_BEFORE, {"project": project, "keys": json.dumps(wanted)})}
    found = {
        event.key_hash: _as_of_today(there[key], event, payload)
        for event in events
        for key, payload in event.former
        if key in there
    }
    former = next((there[key] for key in former_marks if key in there), None)
    return found if former is None else found | {mark: former}


def _as_of_today(known: KnownKey, event: NewSessionEvent, payload_then: str) -> KnownKey:
    return replace(known, payload=event.payload_hash) if known.payload == payload_then else known


def write_mark(conn: Connection, project: int, mark: str, stream: int, until: int) -> None:
    """The session of this mark is that stream; what happened `until` then (microseconds) was erased and stays out."""
    conn.run(_MARK, {"project": project, "mark": mark, "stream": stream, "until": until})


def erased_until(conn: Connection, mark: KnownKey | None, *, lives: bool) -> int:
    """Until when what happened in a session was erased (microseconds); 0 where nothing was.

    `lives`: the mark's stream is there.
    """
    if mark is None:
        return 0
    before = mark.seq if mark.seq > 1 else 0  # a session that was never erased has 0, or 1 from an earlier version
    if lives or mark.payload:
        return before
    return max(before, int(conn.scalar(_ERASED_AT, {"stream": mark.stream}) or NEVER))


def write_keys(conn: Connection, project: int, keys: Iterable[KnownKey]) -> None:
    conn.many(_ADD_KEY, [
        {"project": project, "key": k.key, "stream": k.stream, "seq": k.seq, "payload": k.payload,
         "rank": k.rank, "heard": k.heard, "prompt_at": k.prompt_at}
        for k in keys
    ])  # fmt: skip


def _known(r: Sequence[Any]) -> KnownKey:
    return KnownKey(key=r[0], stream=r[1], seq=r[2], payload=r[3], rank=r[4], heard=r[5], prompt_at=r[6])


def told_before(conn: Connection, stream: int, event: NewSessionEvent) -> KnownKey | None:
    """The same event as it was told already, under another key: the same words first, then the nearest in time."""
    if not event.has_no_id:
        return None
    for payload in (event.payload_hash, *(then for _, then in event.former)):
        found = _told_so(conn, stream, replace(event, payload_hash=payload))
        if found is not None:
            return _as_of_today(found, event, payload)
    return None


def _told_so(conn: Connection, stream: int, event: NewSessionEvent) -> KnownKey | None:
    at = event.occurred_at_us
    rows = conn.rows(
        _ALIKE, {"stream": stream, "payload": event.payload_hash, "at": at, "bit": HEARD[event.source]}
    )  # fmt: skip
    found = [
        (int(known.payload != event.payload_hash), abs((known.prompt_at or 0) - at), known)
        for known, *words in ((_known(r), *r[7:]) for r in rows)
        if _is_same(known, event, *words)
    ]
    return min(found, key=lambda one: one[:2])[2] if found else None


def _is_same(known: KnownKey, event: NewSessionEvent, role: str | None, content: str | None) -> bool:
    apart = abs((known.prompt_at or 0) - event.occurred_at_us)
    same_words = known.payload == event.payload_hash
    if known.heard & HEARD[event.source]:
        return event.source == "hook" and same_words and apart <= SAME_US
    if event.kind != "prompt":
        return False
    if same_words:
        return True
    if apart > MATCH_US:
        return False
    if known.payload == "":  # erased: what it said is not known any more, so that it stays out
        return True
    return role == "user" and content is not None and differ_by_cuts(content, event.content)
