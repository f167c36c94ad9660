"""`everkept serve` as a process of its own."""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WAIT_S = 120


@contextmanager
def serving(home: Path, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """(process, URL) of `everkept serve` on a free port, over the store in `home`."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("EVERKEPT_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "everkept", "serve"],
        env={**plain, "EVERKEPT_HOME": str(home), "EVERKEPT_BIND": "127.0.0.1:0", **environment},
        stderr=subprocess.PIPE,
        text=True,
    )
    told: list[str] = []
    listens: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    reader = threading.Thread(target=_read, args=(process, told, listens))
    reader.start()
    try:
        url = listens.get(timeout=WAIT_S)
        assert url is not None, "".join(told)
        yield process, url
        process.send_signal(signal.SIGTERM)
        process.wait(WAIT_S)
    finally:
        process.kill()
        process.wait()
        reader.join()
        sys.stderr.write("".join(told))  # shown where a test failed


def _read(process: subprocess.Popen[str], told: list[str], listens: queue.SimpleQueue[str | None]) -> None:
    """Until the process ends; what it logs must not fill the pipe."""
    assert process.stderr is not None
    with process.stderr as lines:
        for line in lines:
            told.append(line)
            if found := re.search(r"Everkept listens on (http://\S+)", line):
                listens.put(found[1])
    listens.put(None)
