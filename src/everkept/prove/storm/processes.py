"""One process of `everkept`: started, killed, frozen, thawed and drained, always under the same name and address."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

START_MAX_S = 120.0
STOP_MAX_S = 60.0


class Program:
    """`everkept serve` or `everkept worker`; what it logs goes to `<name>.log` in `folder`, over all its lives."""

    def __init__(
        self, name: str, arguments: Sequence[str], folder: Path, environment: Mapping[str, str], *,
        port: int | None = None,
    ) -> None:  # fmt: skip
        """`port`: where it listens, if it does."""
        self.name = name
        self.log = folder / f"{name}.log"
        self.port = port
        self.up_since_s: float | None = None
        """Since when it has neither been dead nor frozen, in monotonic seconds."""
        self._arguments = [sys.executable, "-m", "everkept", *arguments]
        self._folder = folder
        self._environment = _plain_environment() | dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._file = self.log.open("ab")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._arguments, env=self._environment, cwd=self._folder, stdout=self._file, stderr=self._file,
            start_new_session=True,
        )  # fmt: skip
        self.up_since_s = time.monotonic()

    def wait_until_it_listens(self) -> None:
        """Raises RuntimeError where it ends instead, or takes longer than START_MAX_S."""
        assert self._process is not None
        assert self.port is not None
        end = time.monotonic() + START_MAX_S
        while time.monotonic() < end and self._process.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.05)
        raise RuntimeError(f"{self.name} did not come up: {self._last_words()}")

    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """SIGKILL; a frozen one dies as well, and one that has ended stays so."""
        self._signal(signal.SIGKILL)
        assert self._process is not None
        self._process.wait(STOP_MAX_S)
        self.up_since_s = None

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)
        self.up_since_s = None

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)
        self.up_since_s = time.monotonic()

    def ask_to_stop(self) -> None:
        """SIGTERM: it drains and ends, in its own time."""
        self._signal(signal.SIGTERM)
        self.up_since_s = None

    def stop(self) -> bool:
        """Drain and end; whether it did so in time. It is killed where it did not."""
        assert self._process is not None
        self.ask_to_stop()
        try:
            self._process.wait(STOP_MAX_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        return True

    def close(self) -> None:
        if self.is_alive():
            self.kill()
        self._file.close()

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def _last_words(self) -> str:
        return self.log.read_text("utf-8", errors="replace")[-600:].strip()


def _plain_environment() -> dict[str, str]:
    """This process's own, without what would set up another Everkept, or pay for a model."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith("EVERKEPT_") and not k.endswith("_API_KEY")}
    plain.pop("PYTHONDONTWRITEBYTECODE", None)  # else each start would compile all it imports
    return plain


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port
