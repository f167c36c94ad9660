"""What the generated `Memory` and `Thread` stand on: an asynchronous object, and the loop it lives on."""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401 - see the end of this file
import threading
from types import TracebackType
from typing import Generic, Self, TypeVar

from everkept.doors.python.async_memory import AsyncMemory
from everkept.doors.python.loop_thread import LoopThread
from everkept.doors.python.opening import Opening
from everkept.errors import EverkeptError

A = TypeVar("A")


class Facade(Generic[A]):
    def __init__(self, loop: LoopThread, inner: A) -> None:
        self._loop = loop
        self._inner = inner


class MemoryFacade(Facade[AsyncMemory]):
    """Closes itself when the interpreter ends, if nobody did."""

    @classmethod
    def _start(cls, opening: Opening[AsyncMemory]) -> Self:
        loop = LoopThread()
        try:
            memory = cls(loop, loop.wait(opening.opened()))
        except BaseException:
            loop.stop()
            raise
        _open.add(memory)
        return memory

    def close(self) -> None:
        """Finish what is due for at most 5 s and leave the rest to the next start. Closing twice is fine."""
        if self not in _open:
            return
        _open.discard(self)
        try:
            self._loop.wait(self._inner.close())
        finally:
            self._loop.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_open: set[MemoryFacade] = set()


def _close_all() -> None:
    """A script that ends without `close` still has its work drained; what it added was durable before."""
    for memory in list(_open):
        try:
            memory.close()
        except EverkeptError:
            _open.discard(memory)  # nobody is left to tell, and what was accepted is in the store


# Closing uses the thread pools of the standard library, which are shut before any `atexit` function runs. They are
# told to by this hook, last registered first; so the import above must have been made. Without it, `atexit` is tried.
getattr(threading, "_register_atexit", atexit.register)(_close_all)
