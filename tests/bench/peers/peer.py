"""What the peers of the bench share: each counts what it ran and says so, as Everkept's worker does."""

from __future__ import annotations

import json
import time

HELD_S = 500.0


class Ran:
    """What this process ran, by the clock that all processes of the machine share."""

    def __init__(self) -> None:
        self.jobs = 0
        self.first_s = 0.0

    def note(self) -> None:
        if not self.jobs:
            self.first_s = time.monotonic()
        self.jobs += 1

    def ready(self) -> None:
        print("ready", flush=True)

    def tell(self) -> None:
        print(json.dumps({"jobs": self.jobs, "first_s": self.first_s}), flush=True)


def note_run(url: str) -> int:
    """Write down that the held job was begun; how often it was before."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as raw:
        row = raw.execute(
            "insert into runs(at) values(clock_timestamp()) returning (select count(*) from runs)"
        ).fetchone()
        return int(row[0])
