"""Waking those who wait for changes of a project: the bell is rung after each commit that recorded some."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Bell:
    """Only shortens a poll: what another process commits rings nothing here. Rung from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listening: dict[asyncio.Event, tuple[asyncio.AbstractEventLoop, int | None]] = {}

    def ring(self, project: int) -> None:
        with self._lock:
            heard = [(loop, event) for event, (loop, of) in self._listening.items() if of in (None, project)]
        for loop, event in heard:
            try:
                loop.call_soon_threadsafe(event.set)
            except RuntimeError:  # the loop has ended since, and whoever waited on it
                continue

    @contextmanager
    def listening(self, project: int | None = None) -> Iterator[asyncio.Event]:
        """An event that is set after each commit of the project (None: of any) from now on; the listener clears it."""
        event = asyncio.Event()
        with self._lock:
            self._listening[event] = (asyncio.get_running_loop(), project)
        try:
            yield event
        finally:
            with self._lock:
                del self._listening[event]
