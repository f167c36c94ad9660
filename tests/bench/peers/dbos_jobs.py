"""DBOS' side of the bench of jobs on PostgreSQL; it runs in an environment of its own.

dbos_jobs.py prepare|enqueue N|hold|work SLOTS
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import sqlalchemy as sa
from dbos import DBOS, DBOSClient
from peer import HELD_S, Ran, note_run

URL = os.environ["BENCH_URL"]
ran = Ran()
DBOS(config={
    "name": "bench", "system_database_url": URL, "application_version": "1", "log_level": "ERROR",
    "executor_id": os.environ.get("BENCH_WORKER", "local"),
})  # fmt: skip


@DBOS.workflow(name="nothing")
def nothing() -> None:
    ran.note()


@DBOS.workflow(name="hold")
def hold() -> None:
    if note_run(URL) == 0:
        time.sleep(HELD_S)


def main() -> None:
    match sys.argv[1:]:
        case ["prepare"]:
            DBOS.launch()
            DBOS.register_queue("bench", worker_concurrency=16)
            DBOS.destroy()
        case ["enqueue", count]:
            client = DBOSClient(system_database_url=URL)
            engine = sa.create_engine(URL.replace("postgresql:", "postgresql+psycopg:"))
            with engine.begin() as conn:  # all of them at once, as the others do
                for _ in range(int(count)):
                    client.enqueue_in_transaction(conn, {"queue_name": "bench", "workflow_name": "nothing"})
        case ["hold"]:
            DBOSClient(system_database_url=URL).enqueue({"queue_name": "bench", "workflow_name": "hold"})
        case ["work", _slots]:
            ended = threading.Event()
            signal.signal(signal.SIGTERM, lambda *_: ended.set())
            DBOS.launch()
            ran.ready()
            ended.wait()
            ran.tell()
            os._exit(0)


if __name__ == "__main__":
    main()
