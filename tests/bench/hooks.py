"""The hook as an agent waits for it: a process from start to end, beside the bare start of the same interpreter."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.report import Figure, Goal

from everkept.hook import install_hook

FLOOR = "python -I -S -c pass"
_LINE = "src/app/main.py:42: the quick brown fox jumps over 13 lazy dogs\n"
_OVER_FLOOR_MS = 15.0
_LARGE_OVER_FLOOR_MS = 40.0
Took = tuple[float, float]
"""ms from start to end, ms of processor time"""


def measure(home: Path, *, quick: bool) -> Iterator[Figure]:
    """Every round runs each of them once, in turn, so that all meet the same load."""
    install_hook(home)
    hook = [sys.executable, "-I", "-S", str(home / "hook.py"), "--agent", "claude-code"]
    runs: dict[str, Callable[[], Took]] = {
        FLOOR: _timed([sys.executable, "-I", "-S", "-c", "pass"], b""),
        "tool result, 2 KB": _timed(hook, _tool_result(_LINE * 32)),
        "tool result, 64 KB": _timed(hook, _tool_result(_LINE * 1_000)),
        "tool result, 2 KB with a secret": _timed(hook, _tool_result(_LINE * 32 + "export API_KEY=" + "k3y" * 10)),
        "tool result, 2 KB, .everkept.toml": _timed(hook, _tool_result(_LINE * 32, cwd=str(_narrowed(home)))),
        "prompt, synced to the disk": _timed(hook, _said(hook_event_name="UserPromptSubmit", prompt=_LINE)),
    }
    took: dict[str, list[Took]] = {name: [] for name in runs}
    for _ in range(40 if quick else 200):
        for name, run in runs.items():
            took[name].append(run())
    for name in list(runs)[1:]:
        mine, floor = ([sorted(each) for each in zip(*took[which], strict=True)] for which in (name, FLOOR))
        yield from _figures(name, mine[0], floor[0])
        yield Figure(name=f"{name}, processor time, p50", value=median(mine[1]), unit="ms", peer=FLOOR,
                     peer_value=median(floor[1]))  # fmt: skip


def _figures(name: str, mine: Sequence[float], floor: Sequence[float]) -> Iterator[Figure]:
    for share in (0.5, 0.95):
        at = int(share * len(mine))
        yield Figure(name=f"{name}, p{share * 100:.0f}", value=mine[at], unit="ms", peer=FLOOR, peer_value=floor[at])
    at = int(0.95 * len(mine))
    yield Figure(
        name=f"{name}, p95 over the floor",
        value=mine[at] - floor[at],
        unit="ms",
        peer=FLOOR,
        peer_value=floor[at],
        goal=Goal(of="value", sense="most", bound=_LARGE_OVER_FLOOR_MS if "64 KB" in name else _OVER_FLOOR_MS),
    )


def _timed(command: Sequence[str], said: bytes) -> Callable[[], Took]:
    def run() -> Took:
        used, start = _children_s(), time.perf_counter()
        done = subprocess.run(command, input=said, capture_output=True, check=True)
        took = time.perf_counter() - start
        if done.stdout or done.stderr:
            raise RuntimeError(f"the hook said something: {done.stdout!r} {done.stderr!r}")
        return took * 1e3, (_children_s() - used) * 1e3

    return run


def _children_s() -> float:
    """Processor time of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _narrowed(home: Path) -> Path:
    folder = home / "narrowed"
    folder.mkdir()
    (folder / ".everkept.toml").write_text('ignore = ["secrets/**", "*.pem"]  # not these\n')
    return folder


def _tool_result(output: str, **fields: Any) -> bytes:
    return _said(
        hook_event_name="PostToolUse",
        tool_name="Bash",
        tool_use_id="toolu_01",
        tool_input={"command": "make test", "description": "Run the tests"},
        tool_response={"stdout": output, "stderr": "", "interrupted": False},
        **fields,
    )


def _said(**fields: Any) -> bytes:
    return json.dumps(
        {"session_id": "s-1", "transcript_path": "/tmp/t.jsonl", "cwd": str(Path.cwd()), **fields}
    ).encode()
