"""A worker: the runner on a thread and an event loop of its own, and the heartbeat on another thread.

The threads are daemons: they never keep an interpreter alive. What they had not finished is taken up by the next start.
"""

from __future__ import annotations

import asyncio
import threading

import structlog

from everkept.config import Settings
from everkept.errors import EverkeptError
from everkept.store.leases import expire_worker
from everkept.store.streams import projects_embedded_otherwise, reopen_chunk
from everkept.work.job import error_text
from everkept.work.presence import Presence
from everkept.work.runner import Runner

log = structlog.get_logger("everkept.work")


class Worker:
    """Start once, stop once."""

    def __init__(self, runner: Runner, settings: Settings, *, embedder_label: str) -> None:
        self.runner = runner
        self._settings = settings.work
        self._presence = Presence(settings.home, runner.store.database.name, runner.owner)
        self._label = embedder_label
        self._loop = asyncio.new_event_loop()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="everkept-worker", daemon=True)
        self._pulse = threading.Thread(target=self._beat, name="everkept-heartbeat", daemon=True)

    def start(self) -> None:
        self._presence.announce()
        self.runner.store.on_due = self.runner.notify
        self._thread.start()
        self._pulse.start()

    def _work(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._main())
        finally:
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

    async def _main(self) -> None:
        beside = [asyncio.create_task(self._reembed()), asyncio.create_task(self._succeed())]
        try:
            await self.runner.run()
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)

    async def _succeed(self) -> None:
        """What a worker of this home had begun when its process was killed is taken up now, not when it is missed."""
        told = set[str]()
        while True:
            for owner in self._presence.dead():
                try:
                    left = await self.runner.store.write(expire_worker, owner, self._settings.crashes_max)
                    self._presence.forget(owner)
                    log.warning(
                        "a worker ended without signing off; what it had begun is taken up",
                        worker=owner,
                        jobs=len(left),
                    )
                except Exception as error:  # noqa: BLE001  (it is tried again; without this look only heartbeats tell)
                    if owner not in told:
                        told.add(owner)
                        log.error(
                            "what a dead worker had begun could not be taken up yet", worker=owner,
                            error=error_text(error),
                        )  # fmt: skip
            await asyncio.sleep(self._settings.tick_s)

    async def _reembed(self) -> None:
        """Where another embedder made the vectors, make them again in the background."""
        store = self.runner.store
        try:
            for project in await store.read(projects_embedded_otherwise, self._label):
                log.info("passages are embedded again", project=project, embedder=self._label)
                while await store.write(reopen_chunk, project, self._label):
                    pass
        except EverkeptError as error:
            log.error("passages could not be marked for embedding again", error=str(error))

    @property
    def alive(self) -> bool:
        """Whether its thread works: from `start` until `stop`, unless something ended it."""
        return self._thread.is_alive()

    def _beat(self) -> None:
        """Ends with the worker's thread: what nobody works must not look alive, nor keep its leases."""
        while not self._ended.wait(0 if not self.runner.seen else self._settings.heartbeat_s) and self.alive:
            try:
                self.runner.heartbeat()
            except Exception as error:  # noqa: BLE001  (without a pulse the leases of a working worker would end)
                log.error("leases could not be renewed", error=error_text(error))
                self._ended.wait(1.0)

    def stop(self, drain_s: float) -> None:
        """Blocks until running jobs ended or were handed back."""
        self.runner.stop(drain_s)
        if self._thread.is_alive():
            self._thread.join()
        self._ended.set()
        if self._pulse.is_alive():
            self._pulse.join()
        self._presence.leave(signed_off=self.runner.signed_off)
