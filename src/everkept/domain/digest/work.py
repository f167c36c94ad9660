"""The work of a session: its calls judged in order, commands that failed paired with what mended them, files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from everkept.domain.digest.clip import one_line
from everkept.domain.digest.commands import Command, read_command
from everkept.domain.digest.decisions import title_of
from everkept.domain.digest.effects import Change, changes_of
from everkept.domain.digest.files import Files, placed
from everkept.domain.digest.outcomes import BY_OUTPUT, Verdict, error_line, judge
from everkept.domain.digest.values import (
    COMMAND_CHARS_MAX,
    ERROR_CHARS_MAX,
    CommandRun,
    Commit,
    ErrorMet,
    FailedCommand,
    Fix,
    SessionEvent,
    StoppedCall,
)
from everkept.domain.session import Outcome, ToolCall

_BETWEEN_MAX: Final = 5
_COMMIT = re.compile(r"^\[([^\s\]]+)(?: \([\w -]+\))?(?: \(root-commit\))? ([0-9a-f]{7,40})\] (.+)$", re.MULTILINE)


@dataclass(slots=True)
class _Failure:
    """A command that failed and has not come out well yet."""

    seq: int
    command: Command
    call: ToolCall
    error: str
    rule: str
    at: int = 0
    """How many things had been touched before it."""
    missing: set[str] = field(default_factory=set)
    times: int = 0
    fix: Fix | None = None


@dataclass(slots=True)
class _Run:
    seq: int
    command: Command
    verdict: Verdict
    times: int = 1


@dataclass(slots=True)
class Work:
    home: str | None
    files: Files = field(default_factory=Files)
    outcomes: Counter[tuple[Outcome, str]] = field(default_factory=Counter)
    stopped: list[StoppedCall] = field(default_factory=list)
    commits: dict[str, Commit] = field(default_factory=dict)
    done: dict[str, None] = field(default_factory=dict)
    _failures: list[_Failure] = field(default_factory=list)
    _open: dict[tuple[str, str], _Failure] = field(default_factory=dict)
    """By command and error: the last of its failures, mended or not."""
    _waiting: dict[str, list[_Failure]] = field(default_factory=dict)
    """By the key of a command that must come out well before they are mended."""
    _runs: dict[str, _Run] = field(default_factory=dict)
    _errors: dict[tuple[str, str], ErrorMet] = field(default_factory=dict)
    _touched: list[str] = field(default_factory=list)
    """Files changed and commands that came out well, in order: what may have mended a failure."""

    def take(self, entry: SessionEvent) -> None:
        event, call = entry.event, entry.event.tool
        if call is None:
            return
        is_shell = call.family == "shell" and bool(call.command and call.command.strip())
        command = read_command(call.command or "", event.cwd or self.home, self.home) if is_shell else None
        verdict = judge(call, command)
        self.outcomes[verdict.outcome, verdict.rule] += 1
        if call.family == "read" and verdict.outcome in ("ok", "unknown"):
            for path in call.paths:
                self.files.see(placed(path, event.cwd or self.home, self.home), sure=verdict.outcome == "ok")
        for change in changes_of(call, command, verdict.outcome):
            self._take_change(change, event.cwd or self.home)
        if verdict.outcome in ("denied", "interrupted"):
            self._stop(entry.seq, call, verdict)
        elif command is not None:
            self._take_command(entry.seq, call, command, verdict)
        elif verdict.outcome == "failed":
            self.take_error(entry.seq, _named(call, self.home), error_line(call.output))

    def take_error(self, seq: int, what: str, error: str) -> None:
        met = self._errors.get((what, error))
        self._errors[what, error] = ErrorMet(
            seq=seq if met is None else met.seq, what=what, error=error, times=1 if met is None else met.times + 1
        )

    def failed(self) -> Iterator[FailedCommand]:
        for failure in self._failures:
            yield FailedCommand(
                seq=failure.seq,
                key=failure.command.key,
                command=failure.command.shown,
                exit_code=None if failure.rule.startswith(BY_OUTPUT) else failure.call.exit_code,
                error=failure.error,
                times=failure.times,
                decided_by=failure.rule,
                looks=failure.command.looks,
                fix=failure.fix,
            )

    def commands(self) -> Iterator[CommandRun]:
        """Those that never failed."""
        bad = {failure.command.key for failure in self._failures}
        for key, run in self._runs.items():
            if key not in bad:
                yield CommandRun(
                    seq=run.seq,
                    key=key,
                    command=run.command.shown,
                    outcome=run.verdict.outcome,
                    times=run.times,
                    decided_by=run.verdict.rule,
                    looks=run.command.looks,
                )

    def errors(self) -> tuple[ErrorMet, ...]:
        return tuple(self._errors.values())

    def _take_change(self, change: Change, cwd: str | None) -> None:
        at = placed(change.path, cwd, self.home)
        to = placed(change.to, cwd, self.home) if change.to else ""
        touched = self.files.take(Change(at, change.what, to, change.sure))
        if touched:
            self._touched.append(f"f{touched}")

    def _stop(self, seq: int, call: ToolCall, verdict: Verdict) -> None:
        what = one_line(title_of(call), COMMAND_CHARS_MAX)
        self.stopped.append(StoppedCall(seq=seq, what=what, outcome=verdict.outcome, decided_by=verdict.rule))

    def _take_command(self, seq: int, call: ToolCall, command: Command, verdict: Verdict) -> None:
        before = self._runs.get(command.key)
        self._runs[command.key] = _Run(seq, command, verdict, 1 if before is None else before.times + 1)
        if verdict.outcome == "failed":
            self._fail(seq, call, command, verdict.rule)
        elif verdict.outcome == "ok":
            self._succeed(seq, call, command)

    def _fail(self, seq: int, call: ToolCall, command: Command, rule: str) -> None:
        for key in command.proves:
            self.done.pop(key, None)
        error = error_line(call.output)
        failure = self._open.get((command.key, error))
        if failure is None or failure.fix is not None:
            failure = _Failure(seq, command, call, error, rule)
            self._failures.append(failure)
            self._open[command.key, error] = failure
        failure.times += 1
        failure.call, failure.at, failure.missing = call, len(self._touched), set(command.needs)
        for key in command.needs:
            self._waiting.setdefault(key, []).append(failure)

    def _succeed(self, seq: int, call: ToolCall, command: Command) -> None:
        proved = set(command.proves)
        self.done.update(dict.fromkeys(command.proves))
        for failure in [failure for key in command.proves for failure in self._waiting.pop(key, ())]:
            failure.missing -= proved
            if failure.fix is None and (not failure.missing or failure.command.key in proved):
                failure.fix = self._fix(seq, call, command, failure)
        for match in _COMMIT.finditer(call.output) if "commit" in (call.command or "") else ():
            commit = Commit(seq=seq, id=match[2], branch=one_line(match[1], 80), subject=one_line(match[3], 120))
            self.commits.setdefault(commit.id, commit)
        if not command.looks:
            self._touched.append(f"c{command.shown}")

    def _fix(self, seq: int, call: ToolCall, command: Command, failure: _Failure) -> Fix:
        between = list(dict.fromkeys(self._touched[failure.at :]))
        as_before = (command.shown, command.dress) == (failure.command.shown, failure.command.dress)
        ran = "" if as_before else one_line(call.command or "", COMMAND_CHARS_MAX)
        return Fix(
            seq=seq,
            command=ran,
            files=_most([name[1:] for name in between if name[0] == "f"]),
            commands=_most([name[1:] for name in between if name[0] == "c" and name[1:] != command.shown]),
        )


def _most(names: list[str]) -> tuple[str, ...]:
    """The last few, which are nearest to the success."""
    more = len(names) - _BETWEEN_MAX
    return (*((f"{more} more",) if more > 0 else ()), *names[-_BETWEEN_MAX:])


def _named(call: ToolCall, home: str | None) -> str:
    paths = " ".join(placed(path, None, home) for path in call.paths[:2])
    return one_line(f"{call.name} {paths}".strip() or call.family, ERROR_CHARS_MAX)
