"""What goes to the terminal: data to stdout, everything else to stderr.

Colours, bars and boxes need a terminal (and `NO_COLOR` unset); piped output has the same words without them.
`rich` is loaded when something is drawn, so that `--json` never pays for it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

LINE_S = 5.0
"""Time between two lines that stand for a bar where there is no terminal."""


def console() -> Console:
    """Where data goes. Highlighting is off: a number in a quote is not ours to colour."""
    from rich.console import Console

    return Console(highlight=False, emoji=False, markup=False)


def notes() -> Console:
    """Where everything else goes."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, emoji=False, markup=False)


def show(*parts: RenderableType) -> None:
    """Draw to stdout. Without a terminal the blanks that fill up lines are left out. A line that may not be broken
    is longer than the screen rather than cut."""
    target = console()
    if target.is_terminal:
        target.print(*parts, sep="\n", crop=False)
        return
    with target.capture() as drawn:
        target.print(*parts, sep="\n", crop=False)
    print("\n".join(line.rstrip() for line in drawn.get().splitlines()))


def say(text: str) -> None:
    """A remark for the person at the terminal."""
    if sys.stderr.isatty():
        notes().print(text, style="dim", soft_wrap=True)
    else:
        print(text, file=sys.stderr)


def warn(text: str) -> None:
    if sys.stderr.isatty():
        notes().print(text, style="yellow", soft_wrap=True)
    else:
        print(text, file=sys.stderr)


def emit(value: BaseModel | dict[str, Any]) -> None:
    """One line of JSON on stdout: a view as HTTP gives it."""
    print(to_json(value))


def emit_list(items: Sequence[BaseModel | dict[str, Any]]) -> None:
    """A whole list, in the shape of a page, as HTTP gives it."""
    print(f'{{"items":[{",".join(to_json(item) for item in items)}],"next_cursor":null}}')


def to_json(value: BaseModel | dict[str, Any]) -> str:
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False, default=str, separators=(",", ":"))
    return value.model_dump_json()


def table(*columns: str | Text, title: str | None = None, right: Sequence[str] = (), **options: Any) -> Table:
    """A table without a frame: a heading, a rule, rows. Columns named in `right` are aligned to the right."""
    from rich import box
    from rich.table import Table

    drawn = Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False,
        header_style="dim", show_edge=False, **options,
    )  # fmt: skip
    for name in columns:
        drawn.add_column(name, justify="right" if name in right else "left", overflow="fold")
    return drawn


class Bar(Protocol):
    def at(self, done: int, total: int, words: str) -> None: ...


@contextmanager
def progress(label: str) -> Iterator[Bar]:
    """A bar on stderr where that is a terminal; else a line at the end, and now and then before it."""
    if not sys.stderr.isatty():
        yield _Lines(label)
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"), BarColumn(bar_width=30), TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[words]}", style="dim"), TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=notes()) as drawn:
        task = drawn.add_task(label, total=None, words="")
        yield _Drawn(drawn, task)


class _Lines:
    def __init__(self, label: str) -> None:
        self._label = label.strip()
        self._told_at = time.monotonic()
        self._told = ""

    def at(self, done: int, total: int, words: str) -> None:
        now = time.monotonic()
        if words != self._told and (done >= total or now - self._told_at > LINE_S):
            self._told_at, self._told = now, words
            print(f"{self._label}: {words}", file=sys.stderr, flush=True)


class _Drawn:
    def __init__(self, drawn: Any, task: Any) -> None:
        self._drawn = drawn
        self._task = task

    def at(self, done: int, total: int, words: str) -> None:
        self._drawn.update(self._task, completed=done, total=total, words=words)


def confirm(question: str) -> bool:
    """Ask on the terminal; only `y` or `yes` is a yes."""
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()
