"""The real server as a process, and what it holds."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
START_MAX_S = 120.0
STOP_MAX_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What the process holds now."""

    anonymous_bytes: int
    """Memory of its own; mapped files are the system's to give back."""
    handles: int
    threads: int


class Server:
    """`everkept serve` over the store in `home`; what it logs goes to `server.log` beside."""

    def __init__(self, home: Path, environment: Mapping[str, str]) -> None:
        self.home = home
        self.port = _free_port()
        plain = {k: v for k, v in os.environ.items() if not k.startswith("EVERKEPT_") and not k.endswith("_API_KEY")}
        plain.pop("PYTHONDONTWRITEBYTECODE", None)  # else each start would compile all it imports
        bind = f"127.0.0.1:{self.port}"
        self._environment = {**plain, "EVERKEPT_HOME": str(home), "EVERKEPT_BIND": bind, **environment}
        self._process: subprocess.Popen[bytes] | None = None
        home.mkdir(parents=True, exist_ok=True)
        self._log = (home / "server.log").open("ab")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def store(self) -> Path:
        return self.home / "everkept.db"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "everkept", "serve"], env=self._environment, cwd=ROOT, stderr=self._log
        )

    def wait_until_it_listens(self) -> None:
        assert self._process is not None
        end = time.monotonic() + START_MAX_S
        while time.monotonic() < end and self._process.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.05)
        raise RuntimeError(f"the server did not come up; see {self.home / 'server.log'}")

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        assert self._process is not None
        self._process.wait(STOP_MAX_S)

    def stop(self) -> None:
        """Drain and end."""
        if self._process is None or self._process.poll() is not None:
            return
        self.signal(signal.SIGTERM)
        self._process.wait(STOP_MAX_S)

    def close(self) -> None:
        try:
            self.stop()
        finally:
            if self._process is not None and self._process.poll() is None:
                self.kill()
            self._log.close()

    def resources(self) -> Resources:
        """Raises FileNotFoundError once the process has ended."""
        place = Path(f"/proc/{self.pid}")
        said = dict(line.split(":", 1) for line in (place / "status").read_text(encoding="ascii").splitlines())
        return Resources(
            anonymous_bytes=int(said["RssAnon"].split()[0]) * 1024,
            handles=len(list((place / "fd").iterdir())),
            threads=int(said["Threads"]),
        )


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port
