"""What is kept in memory of a few projects at a time: those that were used lately."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

V = TypeVar("V")


class KeptOfProjects(Generic[V]):
    """A value a project, as many as fit into `bytes_max`; the one that was not asked for the longest goes first.

    The newest is kept whatever its size, for it is about to be used. Threads may share it.
    """

    def __init__(self, bytes_max: int, size_of: Callable[[V], int]) -> None:
        self._bytes_max = bytes_max
        self._size_of = size_of
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, V] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, project: int) -> V | None:
        with self._lock:
            value = self._kept.get(project)
            if value is not None:
                self._kept.move_to_end(project)
            return value

    def put(self, project: int, value: V) -> None:
        with self._lock:
            self._take_out(project)
            self._kept[project] = value
            self._bytes += self._size_of(value)
            while self._bytes > self._bytes_max and len(self._kept) > 1:
                self._take_out(next(iter(self._kept)))

    def _take_out(self, project: int) -> None:
        gone = self._kept.pop(project, None)
        if gone is not None:
            self._bytes -= self._size_of(gone)
