"""Errors that a session met, and what then worked: another way to run the command, or a command before it.

No error is what the digest knows as an answer (grep, diff, nothing to commit), as refused or broken off by a person, or
as a command that only looks; nor a run that failed and then came out well with nothing done in between. What an edit
mended is work on the code and no recovery.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from everkept.domain.command_line import program_words, steps_of
from everkept.domain.digest import Digest, SessionEvent
from everkept.domain.digest.clip import ELLIPSIS, code, one_line
from everkept.domain.digest.commands import Command, read_command
from everkept.domain.digest.outcomes import judge
from everkept.domain.digest.programs import SETS
from everkept.domain.digest.turns import is_prompt
from everkept.domain.digest.values import FailedCommand
from everkept.domain.review.quotes import quote_of
from everkept.domain.review.signatures import step_shape, text_shape
from everkept.domain.review.values import Observation
from everkept.domain.session import ToolCall

NAME_CHARS_MAX: Final = 80
NEXT_CALLS_MAX: Final = 3
"""How many commands later the one that worked in a failed one's place may stand."""
_BEFORE_MAX: Final = 2
"""Commands in between that may have mended a failure, nearest to the success."""
_ALIKE: Final = 0.5
_WAY_OUT: Final = " → "
_MORE: Final = re.compile(r"\d+ more")


def failures_in(stream: int, events: Sequence[SessionEvent], digest: Digest) -> Iterator[Observation]:
    """`events`: those of the session itself; `digest`: made of them."""
    runs = _Runs(events, digest.cwd)
    for failed in digest.failed:
        error = None if _is_flaky(failed) or failed.looks else runs.error(stream, failed)
        if error is not None:
            yield error
            yield from _recoveries(runs, failed, error)
    by_seq = {entry.seq: entry for entry in events}
    for met in digest.errors:
        entry = by_seq[met.seq]
        quote = quote_of(stream, entry, [met.error])
        if quote is not None:
            shape = f"{one_line(met.what.partition(' ')[0], NAME_CHARS_MAX)}: {text_shape(met.error)}"
            yield Observation(kind="error", shape=shape, quote=quote, at_us=entry.event.occurred_at_us)


def error_of(shape: str) -> str:
    """Of a recovery's shape: the shape of the error."""
    return shape.rpartition(_WAY_OUT)[0]


def _is_flaky(failed: FailedCommand) -> bool:
    """It came out well as it was, and nothing had been done."""
    return failed.fix is not None and not (failed.fix.command or failed.fix.files or failed.fix.commands)


def _recoveries(runs: _Runs, failed: FailedCommand, error: Observation) -> Iterator[Observation]:
    for cure in dict.fromkeys(_cures(runs, failed)):
        if ELLIPSIS in cure:
            continue  # it was cut, and cannot be run as it stands
        yield Observation(
            kind="recovery", shape=f"{error.shape}{_WAY_OUT}{cure}", quote=error.quote, at_us=error.at_us, detail=cure
        )


def _cures(runs: _Runs, failed: FailedCommand) -> Iterator[str]:
    fix = failed.fix
    if instead := runs.instead_of(failed):
        yield f"run {code(instead)} instead"
    elif fix is None:
        return
    elif fix.command and not fix.files:
        if dressed := runs.as_run(fix.seq):
            yield f"run {code(dressed)} instead"
    elif not fix.files:
        before = [line for line in fix.commands if not _MORE.fullmatch(line)][-_BEFORE_MAX:]
        for shape in filter(None, (_shape(line) for line in reversed(before))):
            yield f"run {code(shape)} first"


def _shape(line: str) -> str:
    """Of a line as the digest shows it; empty where that was cut, or does many things."""
    steps = [shape for step in steps_of(line) if (shape := step_shape(step))]
    return " && ".join(steps) if len(steps) <= 2 and ELLIPSIS not in line else ""


class _Runs:
    """The commands of a session in their order, each with its outcome."""

    def __init__(self, events: Sequence[SessionEvent], home: str | None) -> None:
        self._home = home
        self._entries = {entry.seq: entry for entry in events}
        self._places = {entry.seq: place for place, entry in enumerate(events)}
        self._events = events

    def error(self, stream: int, failed: FailedCommand) -> Observation | None:
        """None where the output says nothing."""
        entry = self._entries[failed.seq]
        if not failed.error:
            return None
        quote = quote_of(stream, entry, [failed.error])
        if quote is None:
            return None
        program = self._read(entry).program
        return Observation(
            kind="error", shape=f"{one_line(program, NAME_CHARS_MAX)}: {text_shape(failed.error)}", quote=quote,
            at_us=entry.event.occurred_at_us,
        )  # fmt: skip

    def as_run(self, seq: int) -> str:
        """The command as it was run, with the variables set for it and what runs it."""
        call = self._entries[seq].event.tool
        return "" if call is None or call.command is None else _as_run(call.command)

    def instead_of(self, failed: FailedCommand) -> str:
        """The command like it that came out well soon after, with no edit and no prompt in between; empty if none.

        Empty also if it came out well itself among the next: then what stood in between was done first.
        """
        mine, own = self._read(self._entries[failed.seq]), self.as_run(failed.seq)
        worked = ""
        for later, call in self._soon_after(failed.seq):
            if failed.fix is not None and failed.fix.seq == later.seq:
                return ""
            other = self._read(later)
            if not worked and judge(call, other).outcome == "ok" and other.key != mine.key and _are_alike(mine, other):
                worked = _as_run(call.command or "")
        return "" if worked == own else worked

    def _soon_after(self, seq: int) -> Iterator[tuple[SessionEvent, ToolCall]]:
        """The next few commands, up to the next edit or prompt."""
        left = NEXT_CALLS_MAX
        for later in self._events[self._places[seq] + 1 :]:
            call = later.event.tool
            if not left or is_prompt(later.event) or (call is not None and call.family == "edit"):
                return
            if call is not None and call.family == "shell" and call.command:
                left -= 1
                yield later, call

    def _read(self, entry: SessionEvent) -> Command:
        call = entry.event.tool
        line = "" if call is None else call.command or ""
        return read_command(line, entry.event.cwd or self._home, self._home)


def _as_run(line: str) -> str:
    """The work of a line in its common form, with the variables that are set for it; empty where it does more."""
    steps = [step for step in steps_of(line) if step.words and step.words[0].text not in SETS]
    if not steps or any(step.joined not in ("", "|", "&&") for step in steps[1:]):
        return ""
    before = steps[0].words[: len(steps[0].words) - len(program_words(steps[0]))]
    return " ".join([*(word.raw for word in before), step_shape(steps[0])])


def _are_alike(one: Command, other: Command) -> bool:
    """The same kind of command another way: `npm test` and `pnpm test`, not two runs of other tests."""
    mine, others = set(one.shown.split()), set(other.shown.split())
    if one.looks or other.looks or not mine or not others:
        return False
    common = mine & others
    return len(common) >= _ALIKE * min(len(mine), len(others))
