"""Nothing scheduled: threads whose messages no timer waits for, and which setting does it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import text

from everkept.config import Settings
from everkept.store.connection import Connection, Row
from everkept.store.diagnosis.causes import Finding
from everkept.store.diagnosis.look import Look
from everkept.store.effective import effective
from everkept.store.project_names import shown

GRACE_S = 120.0
_UNTIMED = text(f"""
select {shown("p")}, s.name, p.settings, s.settings, s.last_recorded_at, s.last_seq - s.covered_seq, s.pending_tokens,
  s.end_through > s.covered_seq, j.state
from streams s join projects p on p.id = s.project_id join subjects u on u.id = s.subject_id
  left join jobs j on j.kind = 'open_window' and j.key = cast(s.id as text)
where s.covered_seq < s.last_seq and s.erased_at is null and p.erased_at is null and u.erased_at is null
  and coalesce(j.state, 'none') not in ('waiting', 'ready', 'leased', 'dead') order by s.last_recorded_at""")
_SKIPPED = text(f"""
select {shown("p")}, s.name, p.settings, s.settings, min(w.opened_at), sum(w.end_seq - w.start_seq + 1), 0, 0, 'done'
from windows w join streams s on s.id = w.stream_id join projects p on p.id = s.project_id
  join subjects u on u.id = s.subject_id
where w.skipped_because is not null and s.erased_at is null and p.erased_at is null and u.erased_at is null
group by s.id, p.id""")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Thread:
    project: str
    name: str
    settings: Settings
    own: dict[str, Any]
    of_project: dict[str, Any]
    since: int
    messages: int
    opens: bool
    """It opens without a timer: ended, or full."""
    timer: str | None

    def level(self, key: str) -> str:
        """Where the value of a setting comes from: `thread`, `project` or `process`."""
        return "thread" if key in self.own else "project" if key in self.of_project else "process"

    def setting(self, key: str, value: str) -> str:
        """The command that changes it and keeps what else is set there."""
        where = {} if self.project == "default" else {"--project": self.project}
        scope = "".join(f" {name} {of}" for name, of in where.items())
        match self.level(key):
            case "thread":
                return f"everkept threads set {self.name} {_pairs(self.own, key, value)}{scope}"
            case "project":
                return f"everkept projects set {self.project} {_pairs(self.of_project, key, value)}"
            case _:
                variable = f"EVERKEPT_{key.upper().replace('.', '__')}"
                return f"{variable}={value} (now from {self.settings.sources.get(key, 'its default')}), and restart"


def _pairs(kept: dict[str, Any], key: str, value: str) -> str:
    return " ".join(f"{name}={value if name == key else json.dumps(old)}" for name, old in kept.items())


def _counts(threads: list[_Thread]) -> dict[str, int]:
    return {"threads": len({(t.project, t.name) for t in threads}), "messages": sum(t.messages for t in threads)}


def nothing_scheduled(conn: Connection, look: Look) -> list[Finding]:
    base, now = look.settings, conn.now()
    untimed = [_thread(row, base) for row in conn.rows(_UNTIMED)]
    skipped = [_thread(row, base) for row in conn.rows(_SKIPPED)]
    off = [t for t in (*untimed, *skipped) if not t.settings.memory.enabled]
    on = [t for t in untimed if t.settings.memory.enabled]
    idle = [t for t in on if t.settings.window.idle_s is None and not t.opens]
    gone = [t for t in on if t.opens or t.settings.window.idle_s is not None]
    late = [t for t in gone if t.since < now - int(((t.settings.window.idle_s or 0) + GRACE_S) * 1e6)]
    return [
        *_by_level("memory_off", "memory.enabled", "true", "memory is off", off),
        *_by_level("idle_null", "window.idle_s", "1800", "window.idle_s is null", idle),
        *_timers_missing(late),
    ]


def _thread(r: Row, base: Settings) -> _Thread:
    settings = effective(base, r[2], r[3])
    full = r[5] >= settings.window.events_max or r[6] >= settings.window.tokens_max
    return _Thread(
        project=r[0], name=r[1], settings=settings, own=json.loads(r[3]), of_project=json.loads(r[2]), since=r[4] or 0,
        messages=r[5], opens=bool(r[7]) or full, timer=r[8],
    )  # fmt: skip


def _by_level(cause: str, key: str, value: str, what: str, threads: list[_Thread]) -> Iterator[Finding]:
    """One finding for each place where the setting stands."""
    places: dict[tuple[str, ...], list[_Thread]] = {}
    for thread in threads:
        level = thread.level(key)
        names = {"thread": (thread.project, thread.name), "project": (thread.project,), "process": ()}[level]
        places.setdefault((level, *names), []).append(thread)
    for (level, *of), found in places.items():
        where = f"the {level} {of[-1]}" if of else "the settings of the installation"
        yield Finding(
            cause=cause, what=f"{what} in {where}: {key}", since=min(t.since for t in found),
            evidence={"setting": key, "set_in": level, **_counts(found)},
            mend=found[0].setting(key, value), chosen=level == "thread",
        )  # fmt: skip


def _timers_missing(threads: list[_Thread]) -> Iterator[Finding]:
    if threads:
        first = threads[0]
        why = "somebody discarded it" if first.timer == "discarded" else "no job is armed"
        scope = "" if first.project == "default" else f" --project {first.project}"
        yield Finding(
            cause="timer_missing", what=f"of thread {first.name} and {len(threads) - 1} others: {why}",
            since=first.since, evidence=_counts(threads),
            mend=f"everkept threads end {first.name}{scope}",
        )  # fmt: skip
