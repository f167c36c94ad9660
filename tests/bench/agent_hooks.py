"""Context as an agent waits for it: the hook as a process, with a server awake, and with nobody awake."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.bench.processes import everkept
from tests.bench.report import Figure, Goal

from everkept.hook import install_hook

FLOOR = "python -I -S -c pass"
_BARE = [sys.executable, "-I", "-S", "-c", "pass"]
_WORKER = [sys.executable, "-P", "-m", "everkept", "worker", "--until-idle"]
_START_MS, _PROMPT_MS, _COLD_MS = 150.0, 60.0, 1_000.0
_WAIT_S = 30.0


def measure(home: Path, folder: Path, *, quick: bool) -> Iterator[Figure]:
    """`home` holds the store; agents work in `folder`."""
    install_hook(home)
    hook = [sys.executable, "-I", "-S", str(home / "hook.py"), "--agent", "codex"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("EVERKEPT_") and not k.endswith("_API_KEY")}
    environment["EVERKEPT_BIND"] = "127.0.0.1:1"
    yield from _warm(hook, home, folder, environment, rounds=10 if quick else 50)
    yield from _cold(hook, home, folder, environment, rounds=3 if quick else 10)


def _warm(
    hook: Sequence[str], home: Path, folder: Path, environment: Mapping[str, str], *, rounds: int
) -> Iterator[Figure]:
    took: dict[str, list[float]] = {"start": [], "prompt": [], FLOOR: []}
    with everkept(home, worker=True):
        _wait_for(home / "context.sock")
        for number in range(rounds + 1):
            session = f"warm-{number}"
            start = _run(hook, environment, _said(folder, session, "SessionStart", source="startup"))
            asked = "Which command did the tests fail with?"
            prompt = _run(hook, environment, _said(folder, session, "UserPromptSubmit", prompt=asked))
            if number:
                took["start"].append(start)
                took["prompt"].append(prompt)
                took[FLOOR].append(_run(_BARE, environment, b""))
    yield from _figures("start context through the hook, warm", took["start"], took[FLOOR], _START_MS)
    yield from _figures("prompt context through the hook, warm", took["prompt"], took[FLOOR], _PROMPT_MS)


def _cold(
    hook: Sequence[str], home: Path, folder: Path, environment: Mapping[str, str], *, rounds: int
) -> Iterator[Figure]:
    """Nobody is awake: the hook starts the worker, and waits for it as long as an agent may be held."""
    (home / "worker.json").write_text(json.dumps(_WORKER))
    took, floor = [], []
    for number in range(rounds):
        said = _said(folder, f"cold-{number}", "SessionStart", source="startup")
        took.append(_run(hook, environment, said))
        floor.append(_run(_BARE, environment, b""))
        _end_worker(home)
    (home / "worker.json").unlink()
    yield from _figures("start context through the hook, cold", took, floor, _COLD_MS)


def _figures(name: str, mine: Sequence[float], floor: Sequence[float], most_ms: float) -> Iterator[Figure]:
    for share in (0.5, 0.95):
        goal = Goal(of="value", sense="most", bound=most_ms) if share == 0.95 else None
        yield Figure(name=f"{name}, p{share * 100:.0f}", value=at_share(mine, share), unit="ms", peer=FLOOR,
                     peer_value=at_share(floor, share), goal=goal)  # fmt: skip


def at_share(figures: Sequence[float], share: float) -> float:
    """The percentile of that share."""
    ordered = sorted(figures)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def _run(command: Sequence[str], environment: Mapping[str, str], said: bytes) -> float:
    """Milliseconds until the agent may go on."""
    start = time.perf_counter()
    subprocess.run(command, input=said, capture_output=True, check=True, env=environment)
    return (time.perf_counter() - start) * 1e3


def _said(folder: Path, session: str, event: str, **fields: Any) -> bytes:
    return json.dumps({"hook_event_name": event, "session_id": session, "cwd": str(folder), **fields}).encode()


def _wait_for(path: Path) -> None:
    end = time.monotonic() + _WAIT_S
    while not path.exists():
        if time.monotonic() > end:
            raise RuntimeError(f"nobody listens on {path}")
        time.sleep(0.02)


def _end_worker(home: Path) -> None:
    """The worker that a hook started, known by its home, and its socket with it."""
    _wait_for(home / "context.sock")
    mark = f"EVERKEPT_HOME={home}".encode()
    for process in Path("/proc").iterdir():
        if process.name.isdecimal() and mark in _environment(process):
            os.kill(int(process.name), signal.SIGTERM)
    end = time.monotonic() + _WAIT_S
    while (home / "context.sock").exists() and time.monotonic() < end:
        time.sleep(0.05)


def _environment(process: Path) -> list[bytes]:
    try:
        return (process / "environ").read_bytes().split(b"\0")
    except OSError:  # another user's, or it has ended
        return []
