"""Hearing what other processes commit: hints that shorten a poll, and never the only way to learn of anything."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable
from typing import Any, Final

import psycopg
import structlog

log = structlog.get_logger("everkept.store")
CHANGED: Final = "everkept_changed"
"""The channel whose notes are ids of projects that have new changes."""
DUE: Final = "everkept_due"
"""The channel whose notes are moments for which work was scheduled, microseconds since 1970."""
AGAIN_S: Final = 2.0
"""Between two tries to hear again."""


class Listening:
    """A thread with a connection of its own. Where the connection is lost, polls do without until there is another."""

    def __init__(
        self, connect: Callable[[], psycopg.Connection[Any]], *, changed: Callable[[int], None],
        due: Callable[[int], None],
    ) -> None:  # fmt: skip
        self._connect = connect
        self._heard: dict[str, Callable[[int], None]] = {CHANGED: changed, DUE: due}
        self._stopped, self._stop = socket.socketpair()
        self.trouble: str | None = None
        """Why nothing is heard now."""
        threading.Thread(target=self._run, name="everkept-listener", daemon=True).start()

    def stop(self) -> None:
        self._stop.close()  # which the other end can be read for

    def _run(self) -> None:
        with self._stopped:
            while not self._is_stopped(0):
                try:
                    self._listen()
                except psycopg.Error as error:
                    before, self.trouble = self.trouble, _first_line(error)
                    if before is None:
                        log.warning("other processes are not heard; polls go on without", error=self.trouble)
                    if self._is_stopped(AGAIN_S):
                        return

    def _is_stopped(self, wait_s: float) -> bool:
        return bool(select.select([self._stopped], [], [], wait_s)[0])

    def _listen(self) -> None:
        with self._connect() as raw:
            for channel in self._heard:
                raw.execute(f"listen {channel}")
            self.trouble = None
            while True:
                select.select([raw.fileno(), self._stopped.fileno()], [], [])
                if self._is_stopped(0):
                    return
                for note in raw.notifies(timeout=0):
                    if note.payload.isdecimal():
                        self._heard[note.channel](int(note.payload))


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
