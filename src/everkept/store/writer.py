"""The one writer of a process: calls are grouped into one transaction, at full sync.

No result leaves before COMMIT has returned. A call may be run twice (its group can be rolled back under it), so a store
function has no ids, time or randomness of its own and no effect outside the connection; see `Connection.after_commit`.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Any, TypeVar

import structlog

from everkept.errors import StoreFull, StoreUnavailable
from everkept.ports.faults import Faults
from everkept.ports.tracing import TRACEPARENT
from everkept.store.connection import Connection
from everkept.store.reach import Across, Reach
from everkept.store.transactions import Transactions

log = structlog.get_logger("everkept.store")
GROUP_ROWS = 500
"""A group takes no more calls once they weigh this many rows: everybody else waits for its COMMIT."""
F = TypeVar("F", bound=Callable[..., Any])


def set_wise(function: F) -> F:
    """Mark `f(conn, items) -> results`: the writer hands it all waiting items at once.

    Its result has one entry an item, in order; an entry that is an exception is raised to that caller only.
    An item may have a `weight`: how many rows it writes, about. Without one it counts as one.
    """
    function.set_wise = True  # type: ignore[attr-defined]
    return function


def _is_set_wise(function: Callable[..., Any]) -> bool:
    return getattr(function, "set_wise", False)


@dataclass(slots=True)
class Call:
    """What somebody waits for: a thread, or a coroutine of `loop`."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    future: Future[Any] | asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop | None = None
    reach: Reach = Across.EVERYTHING
    traceparent: str | None = field(default_factory=TRACEPARENT.get)
    outcome: Any = None
    failed: bool = False

    @property
    def weight(self) -> int:
        """Rows, about."""
        return max(1, getattr(self.args[0], "weight", 1)) if _is_set_wise(self.function) else 1

    def answer(self) -> None:
        """In the loop's thread, where there is a loop."""
        if isinstance(self.future, Future):
            if not self.future.set_running_or_notify_cancel():
                return
        elif self.future.done():  # its coroutine was cancelled
            return
        if self.failed:
            self.future.set_exception(self.outcome)
        else:
            self.future.set_result(self.outcome)


def _answer(calls: Iterable[Call]) -> None:
    """All calls of one loop in one wake-up of it."""
    waiting: dict[asyncio.AbstractEventLoop, list[Call]] = {}
    for call in calls:
        if call.loop is None:
            call.answer()
        else:
            waiting.setdefault(call.loop, []).append(call)
    for loop, some in waiting.items():
        with suppress(RuntimeError):  # the loop has ended, and whoever waited with it
            loop.call_soon_threadsafe(_answer_here, some)


def _answer_here(calls: Sequence[Call]) -> None:
    for call in calls:
        call.answer()


class Writer:
    """Owns the write connection. `step()` works what waits; `start()` does so on a thread of its own."""

    def __init__(
        self, connect: Callable[[], Connection], faults: Faults, *, transactions: Transactions,
        translate: Callable[[Exception], Exception],
    ) -> None:  # fmt: skip
        self._connect = connect
        self._faults = faults
        self._transactions = transactions
        self._translate = translate
        self._connection: Connection | None = None
        self._calls: deque[Call] = deque()
        self._urgent: deque[Call] = deque()
        self._asked: dict[asyncio.AbstractEventLoop, list[Call]] = {}
        """What the coroutines of a loop asked in this turn of it."""
        self._waiting = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        self.failing: str | None = None
        """Why the last transaction could not be written at all; None once one could."""
        self.slow: dict[str, float] = {}
        """Store functions that took longer than 20 ms: name → longest run in seconds."""

    def submit(
        self, function: Callable[..., Any], *args: Any, urgent: bool = False, reach: Reach = Across.EVERYTHING
    ) -> Future[Any]:
        future: Future[Any] = Future()
        call = Call(function, args, future, reach=reach)
        with self._waiting:
            if self._closed:
                raise StoreUnavailable("the store is closed")
            (self._urgent if urgent else self._calls).append(call)
            self._waiting.notify()
        return future

    def ask(self, function: Callable[..., Any], *args: Any, reach: Reach = Across.EVERYTHING) -> asyncio.Future[Any]:
        """As `submit`, from a coroutine. What one turn of its loop asks is handed over together, and shares a group.

        A hand-over and a wake-up of each call's own cost the loop more than the call itself.
        """
        if self._closed:
            raise StoreUnavailable("the store is closed")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        asked = self._asked.setdefault(loop, [])
        asked.append(Call(function, args, future, loop, reach))
        if len(asked) == 1:
            loop.call_soon(self._hand_over, loop)
        return future

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        calls = self._asked.pop(loop)
        with self._waiting:
            closed = self._closed
            if not closed:
                self._calls.extend(calls)
                self._waiting.notify()
        if closed:
            for call in calls:
                call.outcome, call.failed = StoreUnavailable("the store is closed"), True
                call.answer()

    def share(self, raw: Any) -> None:
        self._transactions.share(raw)

    def overlap(self, raw: Any) -> AbstractContextManager[None]:
        return self._transactions.overlap(raw)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="everkept-writer", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Work what was submitted, then close the connection."""
        with self._waiting:
            self._closed = True
            self._waiting.notify()
        if self._thread is not None:
            self._thread.join()
        while self.step():
            pass
        if self._connection is not None:
            self._make_room()
            self._connection.raw.close()
            self._connection = None

    def _run(self) -> None:
        while True:
            with self._waiting:
                while not (self._calls or self._urgent or self._closed):
                    self._waiting.wait()
                if self._closed and not (self._calls or self._urgent):
                    return
            self.step()
            if pause_s := self._transactions.pause_s():
                time.sleep(pause_s)

    def step(self) -> int:
        """Work one group; the number of calls answered."""
        with self._waiting:
            calls = self._take()
        if not calls:
            return 0
        effects: list[Callable[[], None]] = []
        try:
            effects = self._group(self._usable(), calls)
        except Exception as error:  # noqa: BLE001  (the writer must outlive anything; every caller is told)
            self._fail(calls, error)
        for effect in effects:
            self._guard(effect)
        _answer(calls)
        self._guard(self._tidy)
        return len(calls)

    def _take(self) -> list[Call]:
        """The next group: what is urgent, then in order until it is heavy enough or the next reaches elsewhere."""
        calls: list[Call] = []
        weight = 0
        for queue in (self._urgent, self._calls):
            while queue and weight < GROUP_ROWS:
                if calls and not self._transactions.together(calls[0].reach, queue[0].reach):
                    return calls
                calls.append(queue.popleft())
                weight += calls[-1].weight
        return calls

    def _guard(self, what: Callable[[], None]) -> None:
        """What follows a COMMIT can fail and takes nothing back: the callers are told of their commit all the same."""
        try:
            what()
        except Exception as error:  # noqa: BLE001  (the writer must outlive anything)
            name = getattr(what, "__name__", repr(what))
            log.error("something failed beside a transaction", what=name, error=repr(error))

    def _fail(self, calls: Sequence[Call], error: Exception) -> None:
        ours = self._translate(error)
        for call in calls:
            call.outcome, call.failed = ours, True
        if isinstance(ours, StoreUnavailable):
            if self.failing is None:  # said once: the log may lie on the disk that is full
                log.warning("the store cannot be written", error=str(ours))
            self.failing = str(ours)
        if self._connection is not None:
            self._leave(self._connection.raw)
        if isinstance(ours, StoreFull):
            self._make_room()

    def _leave(self, raw: Any) -> None:
        if self._transactions.is_open(raw):
            self._guard(partial(raw.execute, "rollback"))
        if not self._transactions.is_usable(raw):
            self._guard(raw.close)
            self._connection = None

    def _make_room(self) -> None:
        """Move all of the WAL into the file: it may be what fills the disk. Where that cannot be, it stays durable."""
        try:
            self._tidy(everything=True)
        except Exception as error:  # noqa: BLE001  (as above; and the callers are told already)
            log.debug("the WAL could not be moved into the file", error=repr(error))

    def _group(self, connection: Connection, calls: Sequence[Call]) -> list[Callable[[], None]]:
        """One transaction over all calls; each call's failure is its own, unless the transaction itself is gone.

        That of the only call is the transaction's: raises it.
        """
        raw = connection.raw
        connection.take_effects()
        self._faults.reach("writer.before_begin")
        self._transactions.begin(raw, {call.reach for call in calls})
        if len(calls) == 1:
            self._perform(connection, calls)
        elif not self._each_guarded(connection, calls):
            return self._each_alone(calls)
        self._transactions.tell(raw, *connection.told())
        self._faults.reach("writer.before_commit")
        raw.execute("commit")
        self._transactions.committed()
        self.failing = next((str(c.outcome) for c in calls if c.failed and isinstance(c.outcome, StoreFull)), None)
        self._faults.reach("writer.after_commit")
        return connection.take_effects()

    def _each_guarded(self, connection: Connection, calls: Sequence[Call]) -> bool:
        """False where the whole transaction was lost."""
        batches = [list(g) for _, g in groupby(calls, key=_batch_key)]
        return all(self._guarded(connection, batch) for batch in batches)

    def _guarded(self, connection: Connection, batch: list[Call]) -> bool:
        """Run one batch inside a savepoint. False where the whole transaction was lost with it."""
        raw = connection.raw
        mark = connection.mark()
        self._transactions.mark(raw, {call.reach for call in batch})
        try:
            self._perform(connection, batch)
        except Exception as error:  # noqa: BLE001  (it belongs to the caller, who gets it)
            ours = self._translate(error)
            # A full disk rolls the whole transaction back, not the statement: what others wrote in it is gone too.
            if not self._transactions.is_open(raw):
                return False
            raw.execute("rollback to call")
            raw.execute("release call")
            connection.forget_effects(mark)
            if len(batch) > 1:
                return all(self._guarded(connection, [call]) for call in batch)
            batch[0].outcome, batch[0].failed = ours, True
            return True
        raw.execute("release call")
        return True

    def _each_alone(self, calls: Sequence[Call]) -> list[Callable[[], None]]:
        effects: list[Callable[[], None]] = []
        for call in calls:
            call.outcome, call.failed = None, False
            try:
                effects += self._group(self._usable(), [call])
            except Exception as error:  # noqa: BLE001  (it belongs to the caller, who gets it)
                self._fail([call], error)
        return effects

    def _usable(self) -> Connection:
        """The connection, or another where it was lost or given up. Raises what the driver does."""
        if self._connection is not None and not self._transactions.is_usable(self._connection.raw):
            self._guard(self._connection.raw.close)
            self._connection = None
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _perform(self, connection: Connection, batch: Sequence[Call]) -> None:
        start = time.perf_counter()
        function = batch[0].function
        connection.traceparent = batch[0].traceparent
        if _is_set_wise(function):
            outcomes = function(connection, [call.args[0] for call in batch])
            for call, outcome in zip(batch, outcomes, strict=True):
                call.outcome, call.failed = outcome, isinstance(outcome, Exception)
        else:
            batch[0].outcome = function(connection, *batch[0].args)
            batch[0].failed = False
        took = time.perf_counter() - start
        if took > 0.02:
            name = function.__name__
            self.slow[name] = max(took, self.slow.get(name, 0.0))

    def _tidy(self, *, everything: bool = False) -> None:
        if self._connection is not None:
            self._transactions.tidy(self._connection.raw, everything=everything)


def _batch_key(call: Call) -> Any:
    """What may be run at once. Each traced request is run alone, so that what it asks for is known as its own."""
    return (call.function, call.traceparent) if _is_set_wise(call.function) else id(call)
