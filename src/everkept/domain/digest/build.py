"""The digest of a session, made from its events by rule: no model, no clock, the same for the same events."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any, Final, NamedTuple

from everkept.domain.digest.clip import one_line
from everkept.domain.digest.decisions import decisions_of
from everkept.domain.digest.ends import finished_items, open_ends_of
from everkept.domain.digest.turns import prompts_of, said_of, sentences, turns_of
from everkept.domain.digest.values import ERROR_CHARS_MAX, QUOTE_CHARS_MAX, Digest, SessionEvent
from everkept.domain.digest.words import names_next
from everkept.domain.digest.work import Work
from everkept.domain.session import AgentEvent

TRIVIAL_CHARS: Final = 400
_HEADING_WORDS_MAX: Final = 3
_PAUSE_US: Final = 10 * 60 * 1_000_000


def digest_session(events: Sequence[SessionEvent]) -> Digest:
    """Digest one session. `events`: in the order of the stream, those of its sub-agents folded in.

    The session is that of the first event without a parent. Times may be missing or out of order; an event given
    twice counts once, in its fuller version.
    """
    entries = _once(events)
    session = _session_of(entries)
    own = [entry for entry in entries if session.has(entry.event)]
    home = _first(entry.event.cwd for entry in own) or _first(entry.event.cwd for entry in entries)
    turns = turns_of(own)
    work = Work(home=home)
    for entry in entries:
        work.take(entry)
        if _is_error(entry.event):
            event = entry.event
            work.take_error(entry.seq, "", one_line(event.text or event.detail, ERROR_CHARS_MAX))
    plans = _plans(own)
    prompts, said, failed = prompts_of(turns), said_of(turns), tuple(work.failed())
    times = sorted(entry.event.occurred_at_us for entry in entries if entry.event.occurred_at_us is not None)
    last = next((turn.said.event.text for turn in reversed(turns) if turn.said is not None), "")
    return Digest(
        agent=_first(entry.event.agent for entry in own) or _first(entry.event.agent for entry in entries) or "",
        session=session.id,
        goal=prompts[0].text if prompts else "",
        prompts=prompts,
        decisions=decisions_of(turns, entries),
        files=tuple(work.files.changes()),
        read=tuple(work.files.only_read()),
        failed=failed,
        commands=tuple(work.commands()),
        stopped=tuple(work.stopped),
        errors=work.errors(),
        commits=tuple(work.commits.values()),
        open_ends=open_ends_of(turns, _standing(plans), failed),
        done=(*work.done, *finished_items(plans)),
        said=said,
        next_step=_next_step(sentences(last)),
        outcomes=tuple((outcome, rule, count) for (outcome, rule), count in work.outcomes.most_common()),
        models=_each(entry.event.model for entry in entries),
        branches=_each(entry.event.branch for entry in own),
        cwd=home,
        started_at_us=times[0] if times else None,
        ended_at_us=times[-1] if times else None,
        active_us=_active_us(times),
        left_out=_left_out(entries, session, work.files.come_and_gone),
    )


def _next_step(said: Sequence[str]) -> str:
    """The sentence that names it; of a heading, the lines below it."""
    at = next((at for at, sentence in enumerate(said) if names_next(sentence)), None)
    if at is None:
        return ""
    if said[at].strip("*_ ").endswith(":") or len(said[at].split()) <= _HEADING_WORDS_MAX:
        heading = said[at].strip("*_: ")
        below = "; ".join(said[at + 1 : at + 5])
        return one_line(f"{heading}: {below}" if below else heading, QUOTE_CHARS_MAX)
    return one_line(said[at], QUOTE_CHARS_MAX)


def _once(events: Sequence[SessionEvent]) -> list[SessionEvent]:
    """Each event once, where it stood first: by its natural key, else by its place."""
    found: dict[object, SessionEvent] = {}
    for entry in events:
        event = entry.event
        identity = event.key or (event.session, entry.seq)
        before = found.get(identity)
        if before is None or not _is_fuller(before.event, event):
            found[identity] = entry
    return list(found.values())


def _is_fuller(one: AgentEvent, other: AgentEvent) -> bool:
    """A call whose end is known tells more than its announcement."""
    return one.tool is not None and one.tool.ended and (other.tool is None or not other.tool.ended)


class _Session(NamedTuple):
    id: str
    parent: str | None

    def has(self, event: AgentEvent) -> bool:
        """Whether it happened in the session itself and not in a sub-agent's."""
        return event.session == self.id and event.parent in (None, self.parent)


def _session_of(entries: Sequence[SessionEvent]) -> _Session:
    """That of the first event without a parent; where all have one, that of the first event."""
    events = [entry.event for entry in entries]
    first = next((event for event in events if event.parent is None), events[0] if events else None)
    return _Session("", None) if first is None else _Session(first.session, first.parent)


def _is_error(event: AgentEvent) -> bool:
    """An error that the agent reports itself, such as a provider that did not answer."""
    if event.kind not in ("other", "notification", "turn_end"):
        return False
    return "error" in event.detail.casefold() or event.text.startswith("API Error")


def _plans(own: Sequence[SessionEvent]) -> list[SessionEvent]:
    """Lists of items in their order; a plan told in words is none, a list without items clears the one before."""
    return [entry for entry in own if entry.event.kind == "plan" and (entry.event.items or not entry.event.text)]


def _standing(plans: Sequence[SessionEvent]) -> list[SessionEvent]:
    """The last list, and the last goal where the agent keeps one apart."""
    last = {
        entry.event.detail == "goal": entry for entry in plans if entry.event.detail not in ("approved", "rejected")
    }
    return [entry for entry in last.values() if entry.event.items]


def _left_out(entries: Sequence[SessionEvent], session: _Session, come_and_gone: int) -> tuple[tuple[str, int], ...]:
    counts: Counter[str] = Counter()
    if come_and_gone:
        counts["files made and deleted again"] = come_and_gone
    for entry in entries:
        event = entry.event
        if event.kind == "prompt" and event.genuine is False:
            counts["messages nobody typed"] += 1
        elif not event.evidence:
            counts["recalled or summarised context"] += 1
        elif not session.has(event) and event.kind in ("prompt", "said"):
            counts["messages of sub-agents"] += 1
        elif event.kind in ("notification", "other") and not _is_error(event):
            counts["notifications and other events"] += 1
    return tuple(sorted(counts.items()))


def _first(values: Iterable[str | None]) -> str | None:
    return next((value for value in values if value), None)


def _active_us(times: Sequence[int]) -> int:
    gaps = (after - before for before, after in pairwise(times))
    return sum(gap for gap in gaps if gap <= _PAUSE_US)


def _each(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(one_line(value, 80) for value in dict.fromkeys(values) if value)


def trivial(digest: Digest) -> str | None:
    """Why the session makes no page; None where it makes one."""
    if not digest.prompts:
        return "nobody typed a prompt"
    chars = sum(prompt.chars for prompt in digest.prompts) + (digest.said[-1].chars if digest.said else 0)
    if not digest.files and not digest.failed and chars < TRIVIAL_CHARS:
        return f"no file changed, no command failed, and only {chars} characters were said"
    return None


_NOT_CONTENT: Final = frozenset({"started_at_us", "ended_at_us", "active_us", "outcomes", "left_out", "done", "read"})
_NOT_STABLE: Final = frozenset({"seq", "decided_by"})


def content_hash(digest: Digest) -> str:
    """Equal for digests that say the same, whatever the way in by which the events came: no times and no places."""
    content = {name: _stable(value) for name, value in asdict(digest).items() if name not in _NOT_CONTENT}
    text = json.dumps(content, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _stable(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _stable(part) for name, part in value.items() if name not in _NOT_STABLE}
    if isinstance(value, tuple | list):
        return [_stable(part) for part in value]
    return value
