"""What of a session a model is shown to distil it: its digest, and the events that knowledge is made of, verbatim.

Decisions, prompts, commands that failed with what mended them, the agent's last words of each turn. Bounded: where
there is more than fits, the least telling lines are left out, and how many is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from everkept.domain.digest import Digest, SessionEvent, to_page
from everkept.domain.digest.turns import is_prompt
from everkept.domain.digest.values import Decision, FailedCommand
from everkept.domain.distilled import Source, Voice
from everkept.domain.session import AgentEvent, content_of
from everkept.domain.transcript import estimate_tokens, fence_line

TOKENS_MAX: Final = 12_000
PROMPT_CHARS: Final = 2_000
SAID_CHARS: Final = 1_600
OUTPUT_CHARS: Final = 800


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLines:
    digest: str
    """The digest's page."""
    lines: tuple[dict[str, object], ...]
    """In the order of the session; each names its event in `seq`."""
    left_out: int


def session_lines(events: Sequence[SessionEvent], digest: Digest) -> SessionLines:
    """`events`: those of the session itself; `digest`: made of them."""
    ranked = list(_ranked({entry.seq: entry.event for entry in events}, digest))
    page = to_page(digest)
    room = TOKENS_MAX - estimate_tokens(page)
    kept: list[tuple[int, int, dict[str, object]]] = []
    for place, (seq, line) in enumerate(ranked):
        tokens = estimate_tokens(fence_line(line)) + 1
        if tokens <= room:
            room -= tokens
            kept.append((seq, place, line))
    kept.sort(key=lambda one: one[:2])
    return SessionLines(digest=page, lines=tuple(line for _, _, line in kept), left_out=len(ranked) - len(kept))


_Line = tuple[int, dict[str, object]]
"""(event, what is shown of it)."""


def _ranked(events: dict[int, AgentEvent], digest: Digest) -> Iterator[_Line]:
    """In rounds, so that no kind of line starves; of each kind what a page would miss most comes first."""
    prompts, failed = list(digest.prompts), digest.failed
    kinds: list[tuple[int, list[_Line]]] = [
        (3, [(d.seq, _decision(d)) for d in digest.decisions]),
        (2, [(p.seq, {"seq": p.seq, "user": _head(events[p.seq].text, PROMPT_CHARS)})
             for p in (*prompts[:1], *prompts[:0:-1])]),
        (2, [(f.seq, _failed(f, events)) for f in sorted(failed, key=lambda f: f.fix is None)]),
        (1, [(m.seq, {"seq": m.seq, "agent": _head(events[m.seq].text, SAID_CHARS)}) for m in reversed(digest.said)]),
        (1, [(e.seq, {"seq": e.seq, "error_of": e.what, "error": e.error}) for e in digest.errors]),
    ]  # fmt: skip
    at = 0
    while any(lines[at * share :] for share, lines in kinds):
        for share, lines in kinds:
            yield from lines[at * share : (at + 1) * share]
        at += 1


def _decision(decision: Decision) -> dict[str, object]:
    about = {"about": decision.about} if decision.about else {}
    return {"seq": decision.seq, "decided": decision.quote, "how": decision.kind, **about}


def _failed(failed: FailedCommand, events: dict[int, AgentEvent]) -> dict[str, object]:
    """The output as it was, of which the digest has one line."""
    call = events[failed.seq].tool if failed.seq in events else None
    output = failed.error if call is None else _tail(call.output, OUTPUT_CHARS)
    line: dict[str, object] = {"seq": failed.seq, "ran": failed.command, "failed": output, "times": failed.times}
    if failed.fix is not None:
        line["mended_at"] = failed.fix.seq
        line["after_changes_to"] = list(failed.fix.files[:6])
        line["after_commands"] = list(failed.fix.commands[-3:])
    return line


def _head(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[:chars] + " […]"


def _tail(text: str, chars: int) -> str:
    return text if len(text) <= chars else "[…] " + text[-chars:]


# ---- evidence


def sources_of(events: Sequence[SessionEvent]) -> list[Source]:
    """What quotes may be taken from: the events that are evidence, each in the words in which it is kept."""
    return [
        Source(seq=entry.seq, voice=_voice(entry.event), text=content_of(entry.event))
        for entry in events
        if entry.event.evidence
    ]


def names_in(events: Sequence[SessionEvent]) -> list[str]:
    """Names that the session has beside its words: files that calls named and changed, folders, branches, models."""
    names: dict[str, None] = {}
    for event in (entry.event for entry in events if entry.event.evidence):
        names |= dict.fromkeys(name for name in (event.cwd, event.branch, event.model) if name)
        if event.tool is not None:
            call = event.tool
            changed = [word for change in call.changes for word in change]
            names |= dict.fromkeys([call.name, *call.paths, *changed])
    return list(names)


def _voice(event: AgentEvent) -> Voice:
    call = event.tool
    if is_prompt(event) or (event.kind == "plan" and event.detail in ("approved", "rejected")):
        return "user"
    if call is not None and (call.family == "question" or call.outcome in ("denied", "interrupted")):
        return "user"  # its output is the answer of a person
    return "agent" if event.kind in ("said", "plan") else "tool"
