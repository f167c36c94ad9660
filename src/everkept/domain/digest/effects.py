"""What one call changed on the disk, in order: what its tool reports, and what a command line does by its words."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from everkept.domain.command_line import Step, program_words
from everkept.domain.digest.commands import Command
from everkept.domain.session import Outcome, ToolCall
from everkept.domain.shell import changes_in


class Change(NamedTuple):
    """`folder`: one was made; `restored`: put back from git; `moved`: to `to`."""

    path: str
    what: Literal["created", "edited", "deleted", "moved", "restored", "folder"]
    to: str = ""
    sure: bool = True


def changes_of(call: ToolCall, command: Command | None, outcome: Outcome) -> list[Change]:
    """Paths as the call names them. Nothing of a call that was stopped, failed (but see below) or has not ended.

    Of a command line that failed, the steps before its last one ran: theirs count, though nothing confirms them.
    """
    if not call.ended or outcome in ("denied", "interrupted"):
        return []
    sure = outcome == "ok"
    if command is None:
        return [] if outcome == "failed" else list(_told(call, sure=sure))
    if not command.changes and not call.changes:
        return []
    if outcome == "failed":
        return list(_before_the_last(command, call))
    told = _read(call.changes or changes_in(command.steps), sure=sure)
    return [*_folders(command.steps), *told, *_restored(command.steps)]


def _told(call: ToolCall, *, sure: bool) -> Iterator[Change]:
    changes = call.changes
    if not changes and call.family == "edit":
        changes = tuple((path, "edited") for path in call.paths)
    yield from _read(changes, sure=sure)


def _read(changes: Sequence[tuple[str, str]], *, sure: bool) -> Iterator[Change]:
    for path, words in changes:
        what, _, to = words.partition(" to ")
        if not path:
            continue
        match what:
            case "created" | "edited" | "deleted":
                yield Change(path, what, sure=sure)
            case "moved" if to:
                yield Change(path, "moved", to, sure)


def _before_the_last(command: Command, call: ToolCall) -> Iterator[Change]:
    """What is said of a step by its own program (`rm: cannot remove …`) did not happen."""
    if len(command.steps) < 2:
        return
    complaints = {line.partition(": ")[0] for line in call.output[:4096].split("\n") if ": " in line[:32]}
    if complaints.isdisjoint(step.words[0].text for step in command.steps[:-1] if step.words):
        yield from _folders(command.steps[:-1])
        yield from _read(changes_in(command.steps[:-1]), sure=False)


def _folders(steps: Sequence[Step]) -> Iterator[Change]:
    for step in steps:
        words = program_words(step)
        if words and posixpath.basename(words[0].text) == "mkdir":
            for word in words[1:]:
                if not word.text.startswith("-") and not word.dynamic:
                    yield Change(word.text, "folder")


def _restored(steps: Sequence[Step]) -> Iterator[Change]:
    """`git checkout -- PATHS` and `git restore PATHS`."""
    for step in steps:
        words = [word.text for word in program_words(step) if not word.dynamic]
        if words[:2] == ["git", "checkout"] and "--" in words:
            paths = words[words.index("--") + 1 :]
        elif words[:2] == ["git", "restore"] and not {"-S", "--staged"} & set(words):
            paths = [word for word in words[2:] if not word.startswith("-")]
        else:
            continue
        yield from (Change(path, "restored") for path in paths)
