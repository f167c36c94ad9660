"""procrastinate's side of the bench of jobs on PostgreSQL; it runs in an environment of its own.

procrastinate_jobs.py prepare|enqueue N|hold|work SLOTS
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys

import procrastinate
from peer import HELD_S, Ran, note_run

URL = os.environ["BENCH_URL"]
app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=URL, max_size=20))
ran = Ran()


@app.task(name="nothing")
async def nothing(n: int) -> None:
    ran.note()


@app.task(name="hold", retry=True)
async def hold() -> None:
    if await asyncio.to_thread(note_run, URL) == 0:
        await asyncio.sleep(HELD_S)


@app.periodic(cron="*/10 * * * * *")
@app.task(name="retry_stalled", queueing_lock="retry_stalled", pass_context=True)
async def retry_stalled(context: procrastinate.JobContext, timestamp: int) -> None:
    """As its documentation says: nothing takes back what a dead worker had but a task of one's own."""
    for job in await app.job_manager.get_stalled_jobs():
        await app.job_manager.retry_job(job)


async def main() -> None:
    logging.disable(logging.ERROR)
    async with app.open_async():
        match sys.argv[1:]:
            case ["prepare"]:
                await app.schema_manager.apply_schema_async()
            case ["enqueue", count]:
                await nothing.batch_defer_async(*({"n": n} for n in range(int(count))))
            case ["hold"]:
                await hold.defer_async()
            case ["work", slots]:
                working = asyncio.create_task(app.run_worker_async(concurrency=int(slots)))
                ran.ready()
                await asyncio.wait([working])
                ran.tell()


if __name__ == "__main__":
    asyncio.run(main())
