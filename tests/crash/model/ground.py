"""The system under test: the real store, and whoever works on it, in one thread, each moved one store call at a time.

Time is virtual, that of the event loop too, so that time-outs happen when the clock is moved. The process may die at
any statement, with all that was in its memory, and be started again over what the file holds.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.crash.model.gated import Gated
from tests.crash.model.oracle import must
from tests.crash.model.provider import Provider
from tests.crash.model.trouble import Connections, Killed, Trouble
from tests.crash.model.worker import Worker

from everkept.config import Settings
from everkept.ports.clock import VirtualClock
from everkept.store.store import Store

TURNS = 6
"""Turns of the loop after which everything that can run has come to its next gate."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose timers follow the virtual clock."""

    def __init__(self, clock: VirtualClock) -> None:
        self._virtual = clock
        super().__init__()

    def time(self) -> float:
        return self._virtual.monotonic_s()


class Ground:
    def __init__(
        self, path: Path, clock: VirtualClock, settings: Settings, provider: Provider, tally: Counter[str]
    ) -> None:
        self.path = path
        self.clock = clock
        self.settings = settings
        self.tally = tally
        self.trouble = Trouble()
        self.trouble.tally = tally
        self.provider = provider
        self.provider.tally = tally
        self.connections = Connections(self.trouble)
        self.loop = VirtualLoop(clock)
        self.loop.set_exception_handler(lambda _loop, _context: None)  # a killed task has nobody who awaits it
        self.dead = False
        self.workers: dict[str, Worker] = {}
        self._lives = 0
        self.store = self._open()

    # ---- life

    def _open(self) -> Store:
        store = Store(self.path, clock=self.clock, threads=False, faults=self.trouble, connect=self.connections.connect)
        store.open()
        return store

    def worker(self, number: int) -> Worker:
        """A worker has another name after each start of its process (C10)."""
        name = f"w{number}.{self._lives}"
        worker = self.workers.get(name)
        if worker is None or not worker.alive:
            if worker is not None:
                self._lives += 1
                name = f"w{number}.{self._lives}"
            worker = self.workers[name] = Worker(self, name)
        return worker

    @property
    def living(self) -> list[Worker]:
        return [w for w in self.workers.values() if w.alive]

    @property
    def doers(self) -> list[Gated]:
        """All who go with the process when it dies."""
        return list(self.living)

    def die(self) -> None:
        self.dead = True
        for doer in self.doers:
            doer.kill()

    def restart(self) -> None:
        """After a kill: what was not committed is gone; the file is opened again."""
        self.die()
        self.settle()
        self.connections.drop()
        self._forget()
        self._lives += 1
        self.dead = False
        armed = self.trouble.armed
        if armed:
            self.trouble.calm()
        self.store = self._open()
        self.tally["restart.after_kill"] += 1

    def _forget(self) -> None:
        """What was in the memory of a process that is gone."""
        self.workers.clear()
        self.provider.late.clear()

    def stop_and_start(self) -> None:
        """A polite end (SIGTERM): running jobs are handed back, the store is closed and opened again."""
        for worker in self.living:
            worker.move(None)
            for task in worker.tasks:
                task.cancel()
        self.settle()
        if self.dead:
            return
        for worker in self.living:
            must(not worker.tasks, "G7", f"{worker.name} was stopped and still runs a job")
            worker.kill()
        self.trouble.calm()
        self.store.close()
        self.connections.drop()
        self.workers.clear()
        self._lives += 1
        self.store = self._open()
        self.tally["restart.polite"] += 1

    def close(self) -> None:
        self.die()
        self.settle()
        self.connections.drop()
        self.loop.close()

    # ---- moving

    def settle(self) -> None:
        self.loop.run_until_complete(_turns())

    def look_for_work(self, worker: Worker, calls: int | None) -> int:
        """One round of a worker: claim what is next, and let its jobs do so many store calls; jobs started.

        Its first is preceded by maintenance, as in `Runner.run`: a clock that was set back is noticed by that.
        """
        if not worker.maintained:
            worker.maintained = True
            self.maintain(worker)

        async def go() -> int:
            worker.free = True
            try:
                return await worker.runner.step()
            except (Killed, asyncio.CancelledError):
                return 0
            except Exception as error:  # noqa: BLE001  (the runner says so and tries again each tick)
                self.tally[f"poll_failed.{type(error).__name__}"] += 1
                return 0
            finally:
                worker.stop_moving()

        started = self.loop.run_until_complete(go())
        self.move(worker, calls)
        return started

    def move(self, worker: Worker, calls: int | None) -> None:
        if not worker.alive:
            return
        worker.move(calls)
        self.settle()
        worker.stop_moving()

    def maintain(self, worker: Worker) -> int:
        async def go() -> int:
            worker.free = True
            try:
                return await worker.maintenance.step()
            except (Killed, asyncio.CancelledError):
                return 0
            except Exception as error:  # noqa: BLE001  (a store that is full or failing: the next tick tries again)
                self.tally[f"maintenance_failed.{type(error).__name__}"] += 1
                return 0
            finally:
                worker.stop_moving()

        return self.loop.run_until_complete(go())

    def beat(self, worker: Worker) -> None:
        try:
            worker.runner.heartbeat()
        except (Killed, asyncio.CancelledError):
            return
        except Exception as error:  # noqa: BLE001  (the next beat tries again)
            self.tally[f"beat_failed.{type(error).__name__}"] += 1
            return
        self.settle()

    # ---- one store call of whoever is moved

    def perform(self, doer: Gated, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        if not doer.alive or self.dead:
            raise asyncio.CancelledError
        try:
            return self.store.write_now(function, *args)
        except Killed:
            self.die()
            raise asyncio.CancelledError from None

    def note_read(self) -> None:
        """Somebody who is moved reads now."""

    # ---- looking, past the store

    def rows(self, sql: str, *params: object) -> list[tuple[Any, ...]]:
        """Read the file over a connection that the store knows nothing of."""
        if self.dead or self._looking_at is not self.store:
            self._looker = None
        if self._looker is None:
            self._looker = self.connections.connect(self.path, True)
            self._looking_at = self.store
        found: list[tuple[Any, ...]] = self._looker.execute(sql, params).fetchall()
        return found

    _looker: Any = None
    _looking_at: Store | None = None

    def value(self, sql: str, *params: object) -> Any:
        rows = self.rows(sql, *params)
        return rows[0][0] if rows else None

    def job(self, job: int) -> tuple[str, int, int, int] | None:
        """(state, attempts, crashes, fence)."""
        rows = self.rows("select state, attempts, crashes, fence from jobs where id = ?", job)
        return rows[0] if rows else None


async def _turns() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)
