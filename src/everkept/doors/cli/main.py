"""The way in: read the arguments, run one command, turn what comes of it into an exit code."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from everkept.doors.cli import backend, failures, passing
from everkept.doors.cli.options import plain_words
from everkept.errors import EverkeptError

if TYPE_CHECKING:
    from cyclopts import CycloptsError


_ALLOCATIONS_BEFORE_A_LOOK = 50_000
"""How many objects are made before Python looks for garbage among them, in place of its 700: what is loaded at a start
is none, and looking through it again and again took a tenth of the time."""


def main() -> None:
    gc.set_threshold(_ALLOCATIONS_BEFORE_A_LOOK)
    for stream in (sys.stdout, sys.stderr):
        _never_fail_on_letters(stream)
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str], *, opener: backend.Opener | None = None) -> int:
    """Run one command line; the exit code. `opener` stands in for the memory that would be found."""
    from cyclopts import CycloptsError

    from everkept.doors.cli.commands import build_app

    words = plain_words(passing.marked(arguments))
    as_json = "--json" in passing.ours(words)
    with backend.opened_by(opener):
        try:
            outcome = build_app()(words, exit_on_error=False, print_error=False, result_action="return_value")
            sys.stdout.flush()
        except CycloptsError as error:
            hint = "" if as_json else f" (`everkept {_command(words)}--help` shows what it takes)"
            return _fail(*failures.describe_usage(_fault(error) + hint, as_json=as_json))
        except EverkeptError as error:
            return _fail(*failures.describe(error, as_json=as_json))
        except KeyboardInterrupt:
            return _fail("interrupted", failures.INTERRUPTED)
        except BrokenPipeError:
            return _reader_left()
    return outcome if isinstance(outcome, int) else 0


def _fail(text: str, code: int) -> int:
    print(text, file=sys.stderr)
    return code


def _command(words: Sequence[str]) -> str:
    """The command that was tried, for the hint; nothing where it does not exist."""
    from everkept.doors.cli.commands import PANELS

    known = {command.name for commands in PANELS.values() for command in commands}
    return f"{words[0]} " if words and words[0] in known else ""


def _fault(error: CycloptsError) -> str:
    """What is wrong with the arguments, on one line."""
    from cyclopts import UnusedCliTokensError

    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        return f"{error.unused_tokens[0]!r} is one word too many; put a text of several words into quotes"
    return " ".join(str(error).split())


def _reader_left() -> int:
    """`everkept facts | head -1` took what it wanted; the interpreter must not complain while it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _never_fail_on_letters(stream: TextIO) -> None:
    """A terminal that lacks a letter shows `?` for it, instead of ending the command."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")
