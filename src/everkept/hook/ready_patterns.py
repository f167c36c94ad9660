"""The hook's patterns, made ready while it is installed: `re` takes as long to import as the interpreter to start.

What is written is a module for this very interpreter; any other one finds nothing in it, and imports `re`.
"""

from __future__ import annotations

import re
import sys
from re import _compiler  # type: ignore[attr-defined]  # the only place that has a pattern's code

from everkept.hook.hook_script import PATTERNS


def ready_patterns() -> str:
    """The source of a module: `VERSION`, of the interpreter that may use it, and `READY`, {pattern: arguments}.

    The arguments are those of `_sre.compile` after the pattern: flags, code, groups, names of groups, groups by name.
    """
    ready = {pattern: _arguments(pattern) for pattern in PATTERNS}
    return f"VERSION = {sys.hexversion}\nREADY = {ready!r}\n"


def _arguments(pattern: str) -> tuple[int, list[int], int, dict[str, int], tuple[None, ...]]:
    made = re.compile(pattern, re.ASCII)
    code = _compiler._code(_compiler._parser.parse(pattern, re.ASCII), re.ASCII)
    return made.flags, [int(each) for each in code], made.groups, {}, (None,) * (made.groups + 1)
