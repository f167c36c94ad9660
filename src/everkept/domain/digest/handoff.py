"""Where a session left off, for the next agent: facts in at most 2,500 characters, no orders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from everkept.domain.digest.clip import clip, code, inert_lines, one_line
from everkept.domain.digest.outcomes import AN_ANSWER
from everkept.domain.digest.page import counted, end_words, paths, quoted, time_text
from everkept.domain.digest.values import CommandRun, Digest, FailedCommand, OpenEnd
from everkept.domain.shell import CHANGES

HANDOFF_CHARS_MAX: Final = 2_500
_STANDS_CHARS_MAX: Final = 800
_FILES_SHOWN: Final = 12
_FAILING_SHOWN: Final = 4
_ENDS_SHOWN: Final = 8
_WORKED_SHOWN: Final = 3
_READ_SHOWN: Final = 6
_BRIEF_CHARS: Final = 80
"""A last message as short as this may be a mere courtesy: the last one that says more stands before it."""
_DECISIONS_SHOWN: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Handoff:
    """What the next session needs to go on; `text` says it all in words."""

    agent: str
    session: str
    goal: str
    stands: str
    """The agent's last message, bounded."""
    files: tuple[str, ...]
    """Paths with their net effect."""
    failing: tuple[str, ...]
    """Commands that did not come out well."""
    open_ends: tuple[OpenEnd, ...]
    """All of them, those of earlier sessions after its own."""
    next_step: str
    text: str


def to_handoff(digest: Digest, carried: Sequence[OpenEnd] = ()) -> Handoff:
    """`carried`: what `merge_open_ends` kept of the handoff that this one replaces."""
    failing = {command.key: command for command in digest.failed if command.fix is None and not command.looks}
    ends = (*digest.open_ends, *carried)
    return Handoff(
        agent=digest.agent,
        session=digest.session,
        goal=digest.goal,
        stands=_stands(digest),
        files=tuple(f"{change.path}: {change.words}" for change in digest.files),
        failing=tuple(command.command for command in failing.values()),
        open_ends=ends,
        next_step=digest.next_step,
        text=_text(digest, tuple(failing.values()), ends),
    )


def _stands(digest: Digest) -> str:
    return one_line(digest.said[-1].text, _STANDS_CHARS_MAX) if digest.said else ""


def _text(digest: Digest, failing: Sequence[FailedCommand], ends: Sequence[OpenEnd]) -> str:
    """Blocks in the order in which they are read; where room is short, those that matter least go first."""
    blocks = {
        "origin": [_origin(digest)],
        "goal": _goal(digest),
        "stands": _stands_lines(digest),
        "ends": _ends(ends),
        "failing": _failing(failing),
        "worked": _worked(digest),
        "next": [f"Named as the next step: {quoted(digest.next_step)}"] if digest.next_step else [],
        "files": _files(digest),
        "decisions": _decisions(digest),
    }
    room = HANDOFF_CHARS_MAX
    kept: dict[str, list[str]] = {}
    for name in _BY_WEIGHT:
        kept[name] = _fitting(blocks[name], room)
        room -= sum(len(line) + 1 for line in kept[name])
    return "\n".join(line for name in blocks for line in kept[name])


_BY_WEIGHT: Final = ("origin", "goal", "ends", "failing", "next", "stands", "files", "decisions", "worked")
_MORE_CHARS: Final = 24


def _fitting(lines: Sequence[str], room: int) -> list[str]:
    """The first lines that fit, and how many did not; nothing where not even a heading and one line fit."""
    if sum(len(line) + 1 for line in lines) <= room:
        return list(lines)
    kept: list[str] = []
    room -= _MORE_CHARS
    for line in lines:
        if len(line) + 1 > room:
            break
        room -= len(line) + 1
        kept.append(line)
    return [*kept, f"… and {counted(len(lines) - len(kept), 'line')} more"] if len(kept) > 1 else []


def _origin(digest: Digest) -> str:
    parts = [one_line(digest.agent, 40) or "an agent"]
    if digest.started_at_us is not None and digest.ended_at_us is not None:
        parts.append(f"{time_text(digest.started_at_us)} to {time_text(digest.ended_at_us)}")
    if digest.branches:
        parts.append(f"branch {code(digest.branches[-1])}")
    return f"The last session here: {', '.join(parts)}."


def _goal(digest: Digest) -> list[str]:
    lines = [f"It was asked: {quoted(digest.goal)}"] if digest.goal else []
    if len(digest.prompts) > 1:
        lines.append(f"The last of its {len(digest.prompts)} prompts: {quoted(digest.prompts[-1].text)}")
    return lines


def _stands_lines(digest: Digest) -> list[str]:
    if not digest.said:
        return []
    text = digest.said[-1].text
    earlier = (
        [said.text for said in digest.said[:-1] if len(said.text) > len(text)] if len(text) <= _BRIEF_CHARS else []
    )
    before = [f"It said before: {quoted(one_line(earlier[-1], _STANDS_CHARS_MAX // 2))}"] if earlier else []
    lines = [f"> {line}".rstrip() for line in inert_lines(text)]
    kept: list[str] = []
    room = _STANDS_CHARS_MAX
    for line in lines:
        if len(line) + 1 > room:
            kept.append(clip(line, room, more=True) if room > 60 else "> …")
            break
        kept.append(line)
        room -= len(line) + 1
    return [*before, "Where it stands, in the agent's last words:", *kept]


def _ends(ends: Sequence[OpenEnd]) -> list[str]:
    """Failing commands of the session itself are listed apart."""
    shown = [end for end in ends if end.kind != "failed" or end.carried]
    lines = [f"- {end_words(end.text)}{_age(end)}" for end in shown[:_ENDS_SHOWN]]
    if len(shown) > _ENDS_SHOWN:
        lines.append(f"- … and {len(shown) - _ENDS_SHOWN} more")
    return ["Left open:", *lines] if lines else []


def _age(end: OpenEnd) -> str:
    return f" (open since {counted(end.carried, 'session')} before)" if end.carried else ""


def _failing(failing: Sequence[FailedCommand]) -> list[str]:
    lines = [
        f"- {code(command.command)}" + (f": {quoted(command.error)}" if command.error else "")
        for command in failing[-_FAILING_SHOWN:]
    ]
    if len(failing) > _FAILING_SHOWN:
        lines.append(f"- … and {len(failing) - _FAILING_SHOWN} more")
    return ["Failing when it stopped:", *lines] if lines else []


def _worked(digest: Digest) -> list[str]:
    """How the next one may check its own work: tests and builds, rather than what moved files about."""
    ran = [(run.seq, run.command) for run in digest.commands if _came_out_well(run)]
    ran += [(failed.fix.seq, failed.command) for failed in digest.failed if failed.fix is not None and not failed.looks]
    told = (command for _, command in sorted(ran, reverse=True) if command.partition(" ")[0] not in CHANGES)
    last = list(dict.fromkeys(told))[:_WORKED_SHOWN]
    return [f"Came out well last: {', '.join(map(code, last))}"] if last else []


def _came_out_well(run: CommandRun) -> bool:
    return run.outcome == "ok" and not run.looks and not run.decided_by.endswith(AN_ANSWER)


def _files(digest: Digest) -> list[str]:
    lines = [f"- {code(one_line(change.path, 160))}: {change.words}" for change in digest.files[:_FILES_SHOWN]]
    if len(digest.files) > _FILES_SHOWN:
        lines.append(f"- … and {counted(len(digest.files) - _FILES_SHOWN, 'file')} more")
    lines += [f"- committed {commit.id}: {quoted(commit.subject)}" for commit in digest.commits[-3:]]
    read = [f"Files only read: {paths(digest.read, _READ_SHOWN)}"] if digest.read else []
    return [*(["Files changed:", *lines] if lines else []), *read]


def _decisions(digest: Digest) -> list[str]:
    shown = digest.decisions[-_DECISIONS_SHOWN:]
    return ["The user decided:", *(f"- {quoted(decision.quote)}" for decision in shown)] if shown else []
