"""Write `Memory` and `Thread` from `AsyncMemory` and `AsyncThread`: the same names, waited for.

Run it after each change of the asynchronous source; a test fails while the two are out of step.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "src" / "everkept" / "doors" / "python"
SOURCE = FOLDER / "async_memory.py"
TARGET = FOLDER / "sync_memory.py"
REVIEWS_SOURCE = FOLDER / "async_reviews.py"
REVIEWS_TARGET = FOLDER / "sync_reviews.py"
WORKSTREAMS_SOURCE = FOLDER / "async_workstreams.py"
WORKSTREAMS_TARGET = FOLDER / "sync_workstreams.py"
PARTS = ("AsyncReviews", "AsyncProposals", "AsyncWorkstreams", "AsyncLaunches")
"""What `AsyncMemory` has as properties."""
NAMES = {
    "AsyncThread": "Thread", "AsyncMemory": "Memory", "AsyncItems": "Items", "AsyncFollow": "Follow",
    "AsyncReviews": "Reviews", "AsyncProposals": "Proposals", "AsyncWorkstreams": "Workstreams",
    "AsyncLaunches": "Launches",
}  # fmt: skip
BASES = {"Thread": "Facade[AsyncThread]", "Memory": "MemoryFacade", "Reviews": "Facade[AsyncReviews]",
         "Proposals": "Facade[AsyncProposals]", "Workstreams": "Facade[AsyncWorkstreams]",
         "Launches": "Facade[AsyncLaunches]"}  # fmt: skip
HEAD = '''"""`Memory`: `AsyncMemory` without a loop of one's own. Made by scripts/generate_sync.py; do not edit."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from everkept.api import views as v
from everkept.api import workstream_views as w
from everkept.doors.python.async_memory import AsyncMemory, AsyncThread
from everkept.doors.python.facade import Facade, MemoryFacade
from everkept.doors.python.following import Follow
from everkept.doors.python.items import Items
from everkept.doors.python.sync_reviews import Proposals, Reviews
from everkept.doors.python.sync_workstreams import Launches, Workstreams
from everkept.doors.python.words import ME, GivenMessage

'''
REVIEWS_HEAD = '''"""Reviews and proposals, waited for. Made by scripts/generate_sync.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from everkept.api import review_views as r
from everkept.doors.python.async_reviews import AsyncProposals, AsyncReviews
from everkept.doors.python.facade import Facade
from everkept.doors.python.items import Items

'''
WORKSTREAMS_HEAD = '''"""Workstreams and launches, waited for. Made by scripts/generate_sync.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence

from everkept.api import workstream_views as w
from everkept.capture.identity import Checkout
from everkept.domain.session import AgentEvent
from everkept.doors.python.async_workstreams import AsyncLaunches, AsyncWorkstreams
from everkept.doors.python.facade import Facade
from everkept.doors.python.items import Items

'''
Function = ast.FunctionDef | ast.AsyncFunctionDef


def generate(source: str, head: str = HEAD) -> str:
    """The text of `sync_memory.py` for that of `async_memory.py`; the same for its parts, with their heads."""
    classes = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name in NAMES]
    return _formatted(head + "\n\n".join(_write_class(node) for node in classes))


def _write_class(node: ast.ClassDef) -> str:
    name = NAMES[node.name]
    methods = [each for each in node.body if isinstance(each, Function) and not each.name.startswith("_")]
    written = [_write_method(each) for each in methods if each.name != "close"]
    return f'class {name}({BASES[name]}):\n    """{ast.get_docstring(node)}"""\n\n' + "\n".join(written)


def _write_method(method: Function) -> str:
    assert method.returns is not None
    returned = ast.unparse(method.returns)
    decorators = [ast.unparse(each) for each in method.decorator_list]
    head = [f"    @{each}" for each in decorators]
    head.append(f"    def {method.name}({ast.unparse(method.args)}) -> {_sync_type(returned)}:")
    lines = (ast.get_docstring(method, clean=False) or "").rstrip()
    return "\n".join([*head, f'        """{lines}"""', f"        {_body(method, returned, decorators)}", ""])


def _body(method: Function, returned: str, decorators: list[str]) -> str:
    if "property" in decorators:
        inner = f"self._inner.{method.name}"
        return f"return {NAMES[returned]}(self._loop, {inner})" if returned in PARTS else f"return {inner}"
    call = f"{method.name}({_passed_on(method.args)})"
    if "classmethod" in decorators:
        return f"return cls._start(AsyncMemory.{call})"
    if returned.startswith("AsyncItems["):
        return f"return Items(self._loop, self._inner.{call})"
    if returned == "AsyncFollow":
        return f"return Follow(self._loop, self._inner.{call})"
    waited = f"self._loop.wait(self._inner.{call})"
    if returned == "AsyncThread":
        return f"return Thread(self._loop, {waited})"
    return waited if returned == "None" else f"return {waited}"


def _passed_on(arguments: ast.arguments) -> str:
    """The arguments of a method (without `self`), as it hands them on."""
    parts = [each.arg for each in arguments.args[1:]]
    parts += [f"{each.arg}={each.arg}" for each in arguments.kwonlyargs]
    return ", ".join(parts + ([f"**{arguments.kwarg.arg}"] if arguments.kwarg else []))


def _sync_type(returned: str) -> str:
    if returned.startswith("Opening["):
        returned = returned.removeprefix("Opening[").removesuffix("]")
    for name, sync in NAMES.items():
        returned = returned.replace(name, sync)
    return returned


def _formatted(text: str) -> str:
    ruff = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(TARGET), "-"]
    return subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    TARGET.write_text(generate(SOURCE.read_text("utf-8")), "utf-8")
    REVIEWS_TARGET.write_text(generate(REVIEWS_SOURCE.read_text("utf-8"), REVIEWS_HEAD), "utf-8")
    WORKSTREAMS_TARGET.write_text(generate(WORKSTREAMS_SOURCE.read_text("utf-8"), WORKSTREAMS_HEAD), "utf-8")
