"""pgqueuer's side of the bench of jobs on PostgreSQL; it runs in an environment of its own.

pgqueuer_jobs.py prepare|enqueue N|hold|work SLOTS
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import asyncpg
from peer import HELD_S, Ran, note_run
from pgqueuer import PgQueuer, Queries
from pgqueuer.db import AsyncpgPoolDriver
from pgqueuer.models import Job

URL = os.environ["BENCH_URL"]


async def work(driver: AsyncpgPoolDriver) -> None:
    ran = Ran()
    queue = PgQueuer(driver)

    @queue.entrypoint("nothing")
    async def nothing(_job: Job) -> None:
        ran.note()

    @queue.entrypoint("hold")
    async def hold(_job: Job) -> None:
        if await asyncio.to_thread(note_run, URL) == 0:
            await asyncio.sleep(HELD_S)

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, queue.shutdown.set)
    ran.ready()
    await queue.run(batch_size=10)
    ran.tell()


async def main() -> None:
    async with asyncpg.create_pool(URL, min_size=2, max_size=10) as pool:
        driver = AsyncpgPoolDriver(pool)
        queries = Queries(driver)
        match sys.argv[1:]:
            case ["prepare"]:
                await queries.install()
            case ["enqueue", count]:
                n = int(count)
                await queries.enqueue(["nothing"] * n, [None] * n, [0] * n)
            case ["hold"]:
                await queries.enqueue("hold", None)
            case ["work", _slots]:
                await work(driver)


if __name__ == "__main__":
    asyncio.run(main())
