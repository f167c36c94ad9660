"""Histories of fifty sessions of one project, by seed: what should be learned is planted in some, red herrings in all.

Seeds under `UNSEEN_FROM` draw from the half of each pool that was looked at while the reviewer was tuned; the others
draw from all of it, so that half of what they hold was never seen.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, Final, TypeVar

from tests.bench.review_plants import (
    CORRECTIONS,
    ERRORS,
    GO_ON,
    ONCE_FAILED,
    ONCE_SAID,
    PROCEDURES,
    SAID_OF_ONE_PLACE,
    TASKS,
    WORDS,
    Correction,
    Error,
    Plant,
    Procedure,
)

from everkept.domain.digest import SessionEvent
from everkept.domain.session import AgentEvent, Outcome, ToolCall

SESSIONS: Final = 50
UNSEEN_FROM: Final = 100
"""The first seed that was not used while the reviewer was tuned."""
HELD_OUT_FROM: Final = 400
"""No history from here on was ever read: faults of some between 100 and 319 were, and were mended."""
HOME: Final = "/work/acme"
OCCURRENCES: Final = (3, 6)
"""Sessions in which one thing is planted, at least and at most."""
_START_US: Final = 1_760_000_000_000_000
_DAY_US: Final = 86_400_000_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class History:
    sessions: tuple[Session, ...]
    planted: tuple[Plant, ...]
    places: dict[tuple[int, int], Plant]
    """(stream, seq) → what was planted there."""


@dataclass(slots=True)
class Session:
    """One session as it is told. `stream` is its number from 1."""

    stream: int
    random: random.Random
    events: list[SessionEvent] = field(default_factory=list)

    def prompt(self, text: str, **fields: Any) -> int:
        return self._add("prompt", text=self.fill(text), **fields)

    def said(self, text: str) -> int:
        return self._add("said", text=self.fill(text))

    def run(self, command: str, output: str = "", outcome: Outcome = "ok", code: int | None = None) -> int:
        code = code if code is not None or outcome not in ("ok", "failed") else int(outcome == "failed")
        return self._add("tool", tool=ToolCall(
            name="Bash", family="shell", command=self.fill(command), output=self.fill(output), outcome=outcome,
            exit_code=code, decided_by="exit code",
        ))  # fmt: skip

    def edit(self) -> int:
        path = f"{HOME}/src/{self.random.choice(WORDS)}.py"
        return self._add("tool", tool=ToolCall(
            name="Edit", family="edit", paths=(path,), changes=((path, "edited"),), outcome="ok",
        ))  # fmt: skip

    def read(self, output: str) -> int:
        return self._add("tool", tool=ToolCall(
            name="Read", family="read", paths=(f"{HOME}/docs/notes.md",), output=output, outcome="ok",
        ))  # fmt: skip

    def fill(self, text: str) -> str:
        """The text with other words, numbers and ids each time."""
        of = self.random
        for name, value in (
            ("{word}", of.choice(WORDS)),
            ("{n}", str(of.randrange(2, 400))),
            ("{port}", str(of.randrange(3000, 9999))),
            ("{v}", f"{of.randrange(9)}.{of.randrange(20)}.{of.randrange(20)}"),
            ("{hex}", f"{of.getrandbits(48):012x}"),
        ):
            text = text.replace(name, value)
        return text

    def _add(self, kind: Any, **fields: Any) -> int:
        seq = len(self.events) + 1
        at = _START_US + self.stream * _DAY_US + seq * 20_000_000
        self.events.append(SessionEvent(seq, AgentEvent(
            kind=kind, agent="claude-code", session=f"ses-{self.stream}", key=f"k{seq}", source="transcript", cwd=HOME,
            occurred_at_us=at, **fields,
        )))  # fmt: skip
        return seq


def history(seed: int, sessions: int = SESSIONS) -> History:
    """The same for the same seed."""
    of = random.Random(seed)
    planted: tuple[Plant, ...] = (
        *_drawn(of, seed, CORRECTIONS, 4), *_drawn(of, seed, ERRORS, 3), *_drawn(of, seed, PROCEDURES, 2),
    )  # fmt: skip
    where: dict[int, list[Plant]] = {}
    for plant in planted:
        for stream in of.sample(range(1, sessions + 1), of.randint(*OCCURRENCES)):
            where.setdefault(stream, []).append(plant)
    words = {plant: cycle(of.sample(plant.said, len(plant.said))) for plant in planted if isinstance(plant, Correction)}
    once = [iter(of.sample(ONCE_SAID, len(ONCE_SAID))), iter(of.sample(ONCE_FAILED, len(ONCE_FAILED)))]
    told: list[Session] = []
    places: dict[tuple[int, int], Plant] = {}
    for stream in range(1, sessions + 1):
        session = Session(stream, of)
        told.append(session)
        plants = where.get(stream, [])
        if not plants and of.random() < 0.15:
            _trivial(session)
            continue
        _body(session, plants, places, {p: next(words[p]) for p in plants if isinstance(p, Correction)}, once)
    return History(tuple(told), planted, places)


def _drawn(of: random.Random, seed: int, pool: Sequence[T], count: int) -> list[T]:
    return of.sample(pool if seed >= UNSEEN_FROM else pool[: len(pool) // 2], count)


def _trivial(session: Session) -> None:
    session.prompt("What is 2 + 2?")
    session.said("4")


def _body(
    session: Session, plants: Sequence[Plant], places: dict[tuple[int, int], Plant], words: dict[Correction, str],
    once: Sequence[Any],
) -> None:  # fmt: skip
    of = session.random
    session.prompt(of.choice(TASKS))
    parts: list[Callable[[], None]] = [lambda p=p: _plant(session, p, places, words) for p in plants]  # type: ignore[misc]
    parts += [lambda h=h: h(session) for h in of.sample(HERRINGS, of.randint(3, 6))]  # type: ignore[misc]
    if of.random() < 0.2:
        parts.append(lambda: _said_once(session, once[0]))
    if of.random() < 0.15:
        parts.append(lambda: _failed_once(session, once[1]))
    of.shuffle(parts)
    for part in parts:
        part()
        if of.random() < 0.3:
            session.prompt(of.choice(GO_ON))
        session.edit()
    session.said("The {word} part is done, and the tests pass. You should always run the linter, never skip it.")


def _plant(session: Session, plant: Plant, places: dict[tuple[int, int], Plant], words: dict[Correction, str]) -> None:
    match plant:
        case Correction():
            at = _correct(session, plant, words[plant])
        case Error():
            at = _fail_and_mend(session, plant)
        case Procedure():
            at = _go_through(session, plant)
    places.update(dict.fromkeys(((session.stream, seq) for seq in at), plant))


def _correct(session: Session, plant: Correction, said: str) -> list[int]:
    way = session.random.randrange(4)
    if way == 0:
        return [session.run(plant.call, "", "denied"), session.prompt(said)]
    if way == 1:
        return [session.run(plant.call, "", "interrupted"), session.prompt(said)]
    if way == 2:
        told = (
            f"The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\n{said}"
        )
        return [session.run(plant.call, told, "denied")]
    session.edit()
    return [
        session.prompt(said if session.random.random() < 0.5 else f"{said}\nAnd then go on with the {{word}} page.")
    ]


def _fail_and_mend(session: Session, plant: Error) -> list[int]:
    command = session.fill(plant.command)
    failed = session.run(command, plant.output, "failed")
    if session.random.random() < 0.3:
        session.run("git status", "On branch main")
    if plant.how == "first":
        mended = [session.run(plant.needle if " " in plant.needle else command, "ok"), session.run(command, "ok")]
    else:
        works = f"{plant.needle} {command}" if "=" in plant.needle else plant.needle
        mended = [session.run(works, "ok")]
    return [failed, *mended]


def _go_through(session: Session, plant: Procedure) -> list[int]:
    """Its steps, with what happens in between: a look, an edit, now and then a step that fails first or one more."""
    at: list[int] = []
    for step in plant.steps:
        chance = session.random.random()
        if chance < 0.2:
            session.run("git status --short", "")
        elif chance < 0.3:
            session.edit()
        elif chance < 0.35:
            session.run(step, "error: it did not work", "failed")
        elif chance < 0.4:
            session.run("mkdir -p out", "")
        at.append(session.run(step, "done"))
    return at


# ---- red herrings


def _answers(session: Session) -> None:
    session.run("grep -rn {word} src", "", "failed")
    session.run("git diff --exit-code", "diff --git a/x b/x", "failed")
    session.run("test -f build/out", "", "failed")


def _nothing_to_commit(session: Session) -> None:
    session.run("git commit -m 'update {word}'", "On branch main\nnothing to commit, working tree clean", "failed")


def _stopped(session: Session) -> None:
    session.run(session.random.choice(("rm -rf build", "curl https://example.com/{n}", "sleep 600")), "", "interrupted")
    session.prompt("continue")


def _flaky(session: Session) -> None:
    session.run("pytest tests/e2e", "FAILED tests/e2e/test_ui.py::test_click - TimeoutError: waited {n}s", "failed")
    session.run("pytest tests/e2e", "12 passed")


def _feedback(session: Session) -> None:
    session.prompt("Stop hook feedback: never leave uncommitted changes, you must always commit", genuine=False)


def _pasted_log(session: Session) -> None:
    session.prompt(
        "This is what I get:\n2026-01-0{n} 10:00:01 ERROR value must not be null, use a default instead of null\n"
        "2026-01-01 10:00:02 WARN never do this in production\n2026-01-01 10:00:03 ERROR should not happen\n"
        "    at Object.<anonymous> (/work/acme/{word}.js:{n}:3)\n2026-01-01 10:00:04 ERROR don't use eval in templates"
    )


def _test_first(session: Session) -> None:
    session.run(
        "pytest tests/{word}", "FAILED tests/test_it.py::test_{word} - AssertionError: assert {n} == 3", "failed"
    )
    session.edit()
    session.run("pytest tests", "30 passed")


def _types(session: Session) -> None:
    session.run("mypy src", "src/{word}.py:{n}: error: Missing return statement  [return]", "failed")
    session.edit()
    session.run("ruff check src", "All checks passed!")
    session.run("mypy src", "Success")


def _kept(session: Session) -> None:
    session.run("git add -A", "")
    session.run("git commit -m 'work on {word}'", "[main {hex}] work on {word}")
    session.run("git push", "ok")


def _no_way_out(session: Session) -> None:
    session.run(
        "curl -sf https://registry.example.com/{word}", "curl: (22) The requested URL returned error: 503", "failed"
    )


def _read_words(session: Session) -> None:
    session.read("Never use eval. Always prefer composition instead of inheritance. Do not commit secrets.")


def _of_one_place(session: Session) -> None:
    if session.random.random() < 0.5:
        session.run("python edit.py {word}", "", session.random.choice(("denied", "interrupted")))
    session.prompt(session.random.choice(SAID_OF_ONE_PLACE))


def _mended_otherwise(session: Session) -> None:
    """The same error each time, and each time something else stood before the run that came out well."""
    session.run("npm run e2e", "Error: browser closed unexpectedly", "failed")
    session.run(
        session.random.choice(("npm ci", "rm -rf .cache", "npx playwright install", "docker restart web", "fg")), ""
    )
    session.run("npm run e2e", "ok")


def _orders(session: Session) -> None:
    session.prompt(session.random.choice(("run the tests again please", "fix the lint errors", "commit this")))


HERRINGS: Final[tuple[Callable[[Session], None], ...]] = (
    _answers, _nothing_to_commit, _stopped, _flaky, _feedback, _pasted_log, _test_first, _types, _kept, _no_way_out,
    _read_words, _orders, _of_one_place, _mended_otherwise,
)  # fmt: skip


def _said_once(session: Session, left: Any) -> None:
    if said := next(left, None):
        session.run("python do.py", "", "interrupted")
        session.prompt(said)


def _failed_once(session: Session, left: Any) -> None:
    if found := next(left, None):
        command, output, cure = found
        session.run(command, output, "failed")
        session.run(cure, "ok")
        session.run(command, "ok")
