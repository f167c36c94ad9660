"""Arguments that are passed on to an agent as they stand: `everkept run [options] AGENT …`, `everkept continue …`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

COMMANDS: Final = ("run", "continue")
_WITH_VALUE: Final = frozenset({"--project", "--workstream", "--agent"})
_ALONE: Final = frozenset({"--help", "-h"})


def marked(arguments: Sequence[str]) -> list[str]:
    """With `--` before the first word that is the agent's own; all behind it is passed on, also `--help` or `--json`.

    Our options come before it. What no command takes is left for the command to refuse.
    """
    if not arguments or arguments[0] not in COMMANDS:
        return list(arguments)
    place = 1
    while place < len(arguments) and arguments[place].startswith("-"):
        name, equals, _ = arguments[place].partition("=")
        if name in _WITH_VALUE:
            place += 1 if equals else 2
        elif name in _ALONE:
            place += 1
        else:
            break
    if arguments[0] == "run":
        if place >= len(arguments) or arguments[place].startswith("-"):
            return list(arguments)
        place += 1
    return [*arguments[:place], "--", *arguments[place:]]


def ours(words: Sequence[str]) -> Sequence[str]:
    """The words before `--`: those that are for us."""
    return words[: words.index("--")] if "--" in words else words
