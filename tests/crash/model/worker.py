"""One worker process with its runner and its heartbeat."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from tests.crash.model.gated import Gated, Port

from everkept.derive.kinds import job_kinds, periodic_tasks
from everkept.derive.tools import Tools
from everkept.models.journaled import JournaledModel
from everkept.store.journal import StoreJournal
from everkept.store.store import Store
from everkept.work.maintenance import Maintenance
from everkept.work.runner import Runner

if TYPE_CHECKING:
    from tests.crash.model.ground import Ground


class Worker(Gated):
    def __init__(self, ground: Ground, name: str) -> None:
        super().__init__(name)
        self.maintained = False
        self.port = cast(Store, Port(ground, self))
        journaled = JournaledModel(
            ground.provider, StoreJournal(self.port, ground.settings), ground.trouble,
            asks_max=ground.settings.models.asks_max,
        )  # fmt: skip
        self.maintenance = Maintenance(self.port, periodic_tasks(ground.settings), ground.clock)
        self.runner = Runner(
            self.port, job_kinds(ground.settings), ground.settings, Tools(model=journaled, words=None, embedder=None),
            owner=name, clock=ground.clock, faults=ground.trouble, pools={"model": ground.provider.pool},
            maintenance=self.maintenance,
        )  # fmt: skip

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        return [task for _, task, _ in self.runner._running.values()]
