"""Steps that a session went through: commands that came out well one after the other, three in a row at a time.

Rows of three are what sessions share; where several follow each other, `chained` makes the whole procedure of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from everkept.domain.digest import Digest, SessionEvent
from everkept.domain.digest.clip import ELLIPSIS
from everkept.domain.digest.commands import read_command
from everkept.domain.digest.outcomes import judge
from everkept.domain.digest.programs import LOOKS, LOOKS_AT, SETS
from everkept.domain.review.quotes import quote_of
from everkept.domain.review.signatures import step_shape
from everkept.domain.review.values import Observation
from everkept.domain.session import Outcome

ROW: Final = 3
STEPS_MAX: Final = 12
_JOINT: Final = " → "


def procedures_in(stream: int, events: Sequence[SessionEvent], digest: Digest) -> Iterator[Observation]:
    """`events`: those of the session itself; `digest`: made of them.

    Each step of a row is observed by itself, too: a row means something where its rarest step is seldom run without it.
    """
    told: set[str] = set()
    for run in _runs(events, digest):
        for at in range(len(run) - ROW + 1):
            row = run[at : at + ROW]
            if not _is_procedure([shape for shape, _ in row]):
                continue
            for part in (row, *([one] for one in row)):
                shapes = [shape for shape, _ in part]
                found = None if _JOINT.join(shapes) in told else _observed(stream, shapes, part[0][1])
                if found is not None:
                    told.add(found.shape)
                    yield found


def _observed(stream: int, shapes: Sequence[str], entry: SessionEvent) -> Observation | None:
    command = "" if entry.event.tool is None else entry.event.tool.command or ""
    quote = quote_of(stream, entry, [command])
    if quote is None:
        return None
    return Observation(
        kind="procedure", shape=_JOINT.join(shapes), quote=quote, at_us=entry.event.occurred_at_us,
        detail="\n".join(shapes),
    )  # fmt: skip


def chained(rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """One procedure of rows that overlap, each going on where the one before it ends; none is longer than 12 steps."""
    return (*rows[0], *(row[-1] for row in rows[1:]))[:STEPS_MAX]


def merged(steps: Sequence[str], more: Sequence[str]) -> tuple[str, ...]:
    """The steps that go on at the end or the beginning with `more`; empty where they share no two in a row there."""
    for before, after in ((steps, more), (more, steps)):
        for shared in range(min(len(before), len(after)), ROW - 2, -1):
            if tuple(before[-shared:]) == tuple(after[:shared]):
                return (*before, *after[shared:])[:STEPS_MAX]
    return ()


def follows(row: Sequence[str], before: Sequence[str]) -> bool:
    return tuple(row[:-1]) == tuple(before[1:])


_Step = tuple[str, SessionEvent]


def _runs(events: Sequence[SessionEvent], digest: Digest) -> Iterator[list[_Step]]:
    """Steps that did something and came out well, one after the other; the same one twice in a row counts once.

    A failure ends a run, and so does the command that mends it: what lies between is a way out and no procedure. A step
    that was only run once more goes on.
    """
    mended = {failed.fix.seq for failed in digest.failed if failed.fix is not None}
    run: list[_Step] = []
    failed: list[str] = []
    for entry, shapes, outcome in _commands(events, digest.cwd):
        if outcome != "ok":
            failed = shapes
            continue
        if failed != shapes and (failed or entry.seq in mended):
            yield run
            run = []
        if failed == shapes or entry.seq not in mended:
            run += [(shape, entry) for shape in shapes if not run or run[-1][0] != shape]
        failed = []
    yield run


def _commands(events: Sequence[SessionEvent], home: str | None) -> Iterator[tuple[SessionEvent, list[str], Outcome]]:
    """(event, its steps, how it ended) of the commands that do something."""
    for entry in events:
        call = entry.event.tool
        if call is None or call.family != "shell" or not call.command:
            continue
        command = read_command(call.command, entry.event.cwd or home, home)
        shapes = [step_shape(step) for step in command.steps if step.joined != "|"]
        shapes = [shape for shape in shapes if shape and not _only_looks(shape)]
        if shapes:
            yield entry, shapes, judge(call, command).outcome


def _only_looks(shape: str) -> bool:
    program, _, rest = shape.partition(" ")
    verb, _, operands = rest.partition(" ")
    if program == "git" and verb in _LOOKS_ALONE and operands and not operands.startswith("-"):
        return False
    return program in LOOKS | SETS or verb in LOOKS_AT.get(program, frozenset())


_LOOKS_ALONE: Final = frozenset({"tag", "branch"})
"""Of git: with a name they make one."""


def _is_procedure(shapes: Sequence[str]) -> bool:
    """Different steps, each of them whole, of which one at least is not what all work is made of."""
    if len(set(shapes)) < len(shapes) or any(ELLIPSIS in shape for shape in shapes):
        return False
    return any(_EVERYDAY.match(shape) is None for shape in shapes)


_EVERYDAY: Final = re.compile(
    r"(?:git (?:add|commit|push|pull|fetch|stash|checkout|switch|merge|rebase|restore|reset|rm|mv)"
    r"|cp|mv|rm|mkdir|touch|chmod"
    r"|(?:uv run |python3? -m |npx |poetry run )?(?:pytest|jest|vitest|mypy|ruff|eslint|tsc|black|prettier)"
    r"|(?:npm|pnpm|yarn|bun|cargo|go|make|mix|dotnet|mise|just|task) (?:run )?(?:test|lint|check|install|build))\b"
)
"""Adding, committing, testing: in whatever order a few sessions did it, it tells nothing."""
