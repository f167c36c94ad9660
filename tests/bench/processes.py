"""Processes under measurement: the server, its bare peer, and a place on disk for their stores."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_LISTENS = re.compile(r"listens on http://[^ ]*:(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A server that listens."""

    port: int
    pid: int

    def resident_mb(self) -> float:
        """Anonymous memory of the process: file mappings (libraries, the database) are the system's to give back."""
        for line in Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) / 1024
        raise RuntimeError(f"no RssAnon of process {self.pid}")


@contextmanager
def temporary_home(place: Path) -> Iterator[Path]:
    """A directory on the disk of `place` (the current directory is one; /tmp is often memory), removed at the end."""
    with tempfile.TemporaryDirectory(prefix=".everkept-bench-", dir=place) as home:
        yield Path(home)


@contextmanager
def everkept(home: Path, *, worker: bool, environment: Mapping[str, str] | None = None) -> Iterator[Served]:
    """`everkept serve` on a store under `home`, with no model key and no setting of the caller's."""
    arguments = [
        sys.executable,
        "-m",
        "everkept",
        "serve",
        "--bind",
        "127.0.0.1:0",
        *([] if worker else ["--workers", "0"]),
    ]
    with _served(arguments, {"EVERKEPT_HOME": str(home), **(environment or {})}) as served:
        yield served


@contextmanager
def bare_app(file: Path, *, group: bool) -> Iterator[Served]:
    arguments = [sys.executable, "-m", "tests.bench.bare_app", str(file), *(["--group"] if group else [])]
    with _served(arguments, {}) as served:
        yield served


@contextmanager
def _served(arguments: Sequence[str], environment: Mapping[str, str]) -> Iterator[Served]:
    keep = {k: v for k, v in os.environ.items() if not k.startswith("EVERKEPT_") and not k.endswith("_API_KEY")}
    keep.pop("PYTHONDONTWRITEBYTECODE", None)  # else its start would compile all it imports
    process = subprocess.Popen(arguments, cwd=ROOT, env={**keep, **environment}, stderr=subprocess.PIPE, text=True)
    try:
        port = _port(process)
        yield Served(port=port, pid=process.pid)
    finally:
        process.terminate()
        try:
            process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _port(process: subprocess.Popen[str]) -> int:
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        found = _LISTENS.search(line)
        if found:
            return int(found[1])
        said += line
    raise RuntimeError(f"the server ended before it listened:\n{said}")
