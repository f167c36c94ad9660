"""How fast this machine is right now: what every time in milliseconds has to be read against."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path
from statistics import median

from everkept import __version__
from everkept.store.sqlite import choose_driver

_LOOP = 1_000_000
_SYNCS = 50


def describe_machine(home: Path) -> dict[str, object]:
    return {
        "everkept": __version__,
        "Python": platform.python_version(),
        "SQLite": choose_driver().version,
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "ns a turn of an empty loop": round(_loop_ns()),
        "ms a sync of 4 KB": round(_sync_ms(home / "sync"), 2),
    }


def _loop_ns() -> float:
    """Best of three, in processor time: how fast the interpreter is while it has the core."""
    took = []
    for _ in range(3):
        start = time.process_time()
        for _ in range(_LOOP):
            pass
        took.append(time.process_time() - start)
    return min(took) / _LOOP * 1e9


def _sync_ms(file: Path) -> float:
    took = []
    with file.open("wb", buffering=0) as disk:
        for _ in range(_SYNCS):
            start = time.perf_counter()
            disk.write(bytes(4096))
            os.fsync(disk.fileno())
            took.append(time.perf_counter() - start)
    return median(took) * 1e3
