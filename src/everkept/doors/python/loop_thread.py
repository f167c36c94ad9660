"""One event loop on one daemon thread: where a `Memory` runs what `AsyncMemory` does."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from everkept.errors import InvalidInput, Unavailable

T = TypeVar("T")


class LoopThread:
    """Started at once; never keeps the interpreter alive."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._run, name="everkept", daemon=True)
        self._thread.start()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run on the loop and wait for the result; an interrupt cancels the work.

        Raises Unavailable once stopped, or in a forked child, which has no such thread.
        """
        if problem := self._problem():
            work.close()
            raise problem
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """Idempotent. What still runs is cancelled."""
        if self._problem() is None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def _problem(self) -> Exception | None:
        if self._pid != os.getpid():
            return Unavailable("this memory was opened before the process forked; open one in the child")
        if not self._thread.is_alive():
            return Unavailable("this memory is closed")
        if threading.current_thread() is self._thread:
            return InvalidInput("a Memory cannot be called from inside itself; use AsyncMemory there")
        return None

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()
