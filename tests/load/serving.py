"""The real server as a process that is killed, frozen and started again, always at the same address."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
START_MAX_S = 120.0
STOP_MAX_S = 60.0
FROZEN_MAX_S = 6.0
"""Longer than a lease of these runs: a frozen worker loses its work."""


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


class Pulse:
    """How long nobody was answered after the server was taken away."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._down_since: float | None = None
        self.outages_s: list[float] = []

    def down(self) -> None:
        with self._lock:
            if self._down_since is None:
                self._down_since = time.monotonic()

    def answered(self, asked_at: float) -> None:
        """A success to what was asked at that time."""
        with self._lock:
            if self._down_since is not None and asked_at > self._down_since:
                self.outages_s.append(time.monotonic() - self._down_since)
                self._down_since = None


class Killer:
    """Takes the server away at random moments, and starts it again, until it is told to stop."""

    def __init__(self, server: Server, pulse: Pulse, seed: int, *, mean_s: float) -> None:
        self.counts = {"killed": 0, "killed while it recovered": 0, "frozen": 0, "drained": 0}
        self._server = server
        self._pulse = pulse
        self._random = random.Random(seed)
        self._mean_s = mean_s
        self._stop = threading.Event()
        self.failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="killer")

    @property
    def deaths(self) -> int:
        return self.counts["killed"] + self.counts["killed while it recovered"]

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Leaves the server up. Raises what ended the killer early."""
        self._stop.set()
        self._thread.join()
        if self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        try:
            while not self._stop.wait(self._random.expovariate(1 / self._mean_s)):
                self._strike()
        except Exception as error:  # noqa: BLE001  (it is raised again by `stop`)
            self.failure = error

    def _strike(self) -> None:
        match self._random.choices(("kill", "twice", "freeze", "drain"), (55, 20, 15, 10))[0]:
            case "kill":
                self._kill("killed")
                self._server.start()
            case "twice":
                self._kill("killed")
                self._server.start()
                time.sleep(self._random.uniform(0.0, 3.0))
                self._kill("killed while it recovered")
                self._server.start()
            case "freeze":
                self._pulse.down()
                self._server.signal(signal.SIGSTOP)
                self._stop.wait(self._random.uniform(0.5, FROZEN_MAX_S))
                self._server.signal(signal.SIGCONT)
                self.counts["frozen"] += 1
            case _:
                self._pulse.down()
                self._server.stop()
                self.counts["drained"] += 1
                self._server.start()
        self._server.wait_until_it_listens()

    def _kill(self, how: str) -> None:
        self._pulse.down()
        self._server.kill()
        self.counts[how] += 1
