"""A digest as a page of markdown: a front part and sections, at most 6,000 characters, what was left out is counted.

Whatever users, agents and outputs said stands in quotes or code spans inside our own lines, so that none of it can
begin a heading, a fence, a link or a front part.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from everkept.domain.digest.clip import clip, code, inert, inert_lines, one_line
from everkept.domain.digest.outcomes import AN_ANSWER, BY_OUTPUT
from everkept.domain.digest.values import CommandRun, Decision, Digest, ErrorMet, FailedCommand, FileChange, Said

PAGE_CHARS_MAX: Final = 6_000
_TITLE_CHARS_MAX: Final = 90
_EARLIER_SAID_CHARS_MAX: Final = 240
_READ_SHOWN: Final = 12
_MORE_CHARS: Final = 60
"""Kept free in each section for the line that counts what was left out."""


@dataclass(slots=True)
class _Section:
    title: str
    noun: str
    entries: Sequence[str]
    share: int
    """How many entries it may place in each round."""
    order: Sequence[int]
    """Places in `entries`, what matters most first."""
    placed: set[int] = field(default_factory=set)

    @property
    def frame_chars(self) -> int:
        return len(self.title) + 6 + _MORE_CHARS

    def text(self) -> str:
        lines = [f"## {self.title}", ""]
        lines += [entry for at, entry in enumerate(self.entries) if at in self.placed]
        more = len(self.entries) - len(self.placed)
        if more:
            lines.append(f"- … and {counted(more, self.noun)} more")
        return "\n".join(lines)


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun if number == 1 else noun + 's'}"


def to_page(digest: Digest) -> str:
    head = f"{_front(digest)}\n# {_title(digest)}\n"
    foot = _left_out(digest)
    sections = [section for section in _sections(digest) if section.entries]
    room = PAGE_CHARS_MAX - len(head) - len(foot) - 2 - sum(section.frame_chars for section in sections)
    _place(sections, room)
    shown = sorted(sections, key=lambda section: _TITLES.index(section.title))
    return "\n".join([head, *(section.text() + "\n" for section in shown), foot]).rstrip() + "\n"


def _place(sections: Sequence[_Section], room: int) -> None:
    """In rounds, so that no section starves: each places its share, until nothing more fits."""
    waiting = {section.title: list(section.order) for section in sections}
    while any(waiting.values()):
        for section in sections:
            queue = waiting[section.title]
            for at in queue[: section.share]:
                size = len(section.entries[at]) + 1
                if size > room:
                    queue.clear()
                    break
                room -= size
                section.placed.add(at)
                queue.remove(at)


_TITLES: Final = (
    "Goal",
    "Prompts",
    "Decisions",
    "Files",
    "Commands that failed",
    "Commands",
    "Errors",
    "Open ends",
    "What the agent said",
)


def _sections(digest: Digest) -> list[_Section]:
    """By what a reader would miss most."""
    prompts, ends = digest.prompts, digest.open_ends
    decisions = list(map(_decision, digest.decisions))
    said = [*map(_earlier, digest.said[:-1]), *map(_last, digest.said[-1:])]
    goal = [f"{quoted(digest.goal)}"] if digest.goal else []
    files = [*map(_file, digest.files), *([f"- only read: {paths(digest.read, _READ_SHOWN)}"] if digest.read else [])]
    later = prompts if len(prompts) > 1 else ()  # a single one is the goal
    numbered = [f"{at}. {quoted(prompt.text)}" for at, prompt in enumerate(later, 1)]
    unmended_first = sorted(range(len(digest.failed)), key=lambda at: digest.failed[at].fix is not None)
    return [
        _Section("Goal", "goal", goal, 1, [0] if goal else []),
        _Section("Open ends", "open end", [f"- {end_words(end.text)}" for end in ends], 4, range(len(ends))),
        _Section("What the agent said", "message", said, 1, range(len(said))[::-1]),
        _Section("Commands that failed", "failed command", list(map(_failed, digest.failed)), 2, unmended_first),
        _Section("Decisions", "decision", decisions, 2, range(len(decisions))[::-1]),
        _Section("Files", "file", files, 6, [*_files_order(digest.files), *range(len(digest.files), len(files))]),
        _Section("Prompts", "prompt", numbered, 2, _ends_first(len(numbered))),
        _Section("Errors", "error", errors := list(map(_error, digest.errors)), 2, range(len(errors))),
        _Section("Commands", "command", entries := _commands(digest), 3, range(len(entries))),
    ]  # fmt: skip


def _ends_first(count: int) -> list[int]:
    """The first, then from the last backwards."""
    return [0, *range(count - 1, 0, -1)] if count else []


def _files_order(files: Sequence[FileChange]) -> list[int]:
    """Files of the session's folder first."""
    return sorted(range(len(files)), key=lambda at: files[at].path.startswith(("/", "..", "~")))


def _front(digest: Digest) -> str:
    values: list[tuple[str, str]] = [
        ("type", "session"),
        ("agent", _yaml(digest.agent)),
        ("session", _yaml(digest.session)),
    ]
    if digest.started_at_us is not None and digest.ended_at_us is not None:
        values += [("started", time_text(digest.started_at_us)), ("ended", time_text(digest.ended_at_us))]
        values += [("active_minutes", str(-(-digest.active_us // 60_000_000)))]
    if digest.cwd:
        values.append(("folder", _yaml(digest.cwd)))
    values += _list("branches", digest.branches) + _list("models", digest.models)
    return "\n".join(["---", *(f"{name}: {value}" for name, value in values), "---", ""])


def _list(name: str, values: Sequence[str]) -> list[tuple[str, str]]:
    return [(name, f"[{', '.join(_yaml(value) for value in values[:4])}]")] if values else []


def _yaml(text: str) -> str:
    return json.dumps(one_line(text, 120), ensure_ascii=False)


def time_text(time_us: int) -> str:
    """`2026-01-21T06:19Z`, held inside the years that can be written."""
    seconds = min(max(time_us // 1_000_000, -62_135_596_800), 253_402_300_799)
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%MZ")


def _title(digest: Digest) -> str:
    return inert(clip(digest.goal, _TITLE_CHARS_MAX)) or f"Session of {inert(one_line(digest.agent, 40))}"


def quoted(text: str) -> str:
    return f"“{inert(text)}”"


def end_words(text: str) -> str:
    return inert(text)


def paths(of: Sequence[str], shown: int) -> str:
    """The first so many as code, and how many more."""
    more = f" and {len(of) - shown} more" if len(of) > shown else ""
    return ", ".join(code(one_line(path, 160)) for path in of[:shown]) + more


def _file(change: FileChange) -> str:
    return f"- {code(one_line(change.path, 200))}: {inert(one_line(change.words, 260))}"


def _decision(decision: Decision) -> str:
    about = f"{inert(decision.about)} → " if decision.about else ""
    return f"- {about}{quoted(decision.quote)}"


def _failed(command: FailedCommand) -> str:
    facts = [] if command.exit_code is None else [f"exit code {command.exit_code}"]
    facts += [inert(command.decided_by)] if command.decided_by.startswith(BY_OUTPUT) else []
    facts += [counted(command.times, "time")] if command.times > 1 else []
    told = f" ({', '.join(facts)})" if facts else ""
    error = f": {quoted(command.error)}" if command.error else ""
    return f"- {code(command.command)}{told}{error}\n  - {mended(command)}"


def mended(command: FailedCommand) -> str:
    """What became of a command that failed."""
    fix = command.fix
    if fix is None:
        return "it did not succeed later in the session"
    between = ""
    if fix.files:
        between = f" after changes to {', '.join(code(one_line(name, 120)) for name in fix.files)}"
    elif fix.commands:
        between = f" after {', '.join(code(name) for name in fix.commands[-2:])}"
    run = f", run as {code(fix.command)}" if fix.command else ""
    return f"it succeeded{between}{run}"


def _commands(digest: Digest) -> list[str]:
    """Commits, calls that were stopped, commands that do something, and those that look as one."""
    lines = [f"- committed {commit.id} on {code(commit.branch)}: {quoted(commit.subject)}" for commit in digest.commits]
    lines += [f"- {call.outcome}: {code(call.what)}" for call in digest.stopped]
    lines += [_run(run) for run in reversed(digest.commands) if not run.looks]
    looks = [run for run in digest.commands if run.looks]
    if looks:
        names = ", ".join(code(one_line(run.command, 50)) for run in looks[:3])
        lines.append(f"- {counted(len(looks), 'command')} that only look{'s' * (len(looks) == 1)}, such as {names}")
    return lines


def _error(error: ErrorMet) -> str:
    times = f" ({error.times} times)" if error.times > 1 else ""
    told = f": {quoted(error.error)}" if error.error else ""
    what = f"error of {code(error.what)}" if error.what else "error reported"
    return f"- {what}{times}{told}"


def _run(run: CommandRun) -> str:
    times = f", {run.times} times" if run.times > 1 else ""
    answer = run.decided_by.removesuffix(AN_ANSWER)
    told = f"no failure ({inert(answer)})" if answer != run.decided_by else run.outcome
    return f"- {code(run.command)}: {told}{times}"


def _earlier(said: Said) -> str:
    return f"- Turn {said.turn}: {quoted(one_line(said.text, _EARLIER_SAID_CHARS_MAX))}"


def _last(said: Said) -> str:
    """The last message with its lines, as a quotation."""
    lines = [f"> {line}".rstrip() for line in inert_lines(said.text)]
    cut = f" (its beginning; {said.chars:,} characters in all)" if said.chars > len(said.text) + 200 else ""
    return "\n".join([f"- Last message{cut}:", "", *lines])


def _left_out(digest: Digest) -> str:
    parts = [f"{what} ({number:,})" for what, number in digest.left_out]
    return f"Left out: {'; '.join(parts)}.\n" if parts else ""
