"""Two versions of the program on one PostgreSQL, while it is upgraded and taken back: nobody notices."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
from tests.postgres import new_database
from tests.replicas.journeys import SHORT
from tests.replicas.rolling import Pair, Tellers, pair, said_by, talking_to_both
from tests.stubs.next_version import NEXT, build_next_version
from tests.stubs.real_server import WAIT_S

from everkept.store.migrate import SCHEMA


def everkept(version: Path, home: Path, database: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A command of the version in the folder."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("EVERKEPT_")}
    environment = {
        **plain, "EVERKEPT_HOME": str(home), "EVERKEPT_DATABASE_URL": database, "PYTHONPATH": str(version)
    }  # fmt: skip
    command = [sys.executable, "-m", "everkept", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=WAIT_S, check=False)


def rows(database: str, sql: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(database) as raw:
        return raw.execute(sql.encode()).fetchall()


def roll(servers: Pair, tellers: Tellers, version: Path, home: Path, database: str) -> None:
    """Upgrade the schema, then each server."""
    needed = everkept(version, home, database, "db", "upgrade", "--check")
    assert (needed.returncode, needed.stdout.strip()) == (
        5,
        f"schema {SCHEMA}, and {NEXT} is needed: everkept db upgrade",
    )
    done = everkept(version, home, database, "db", "upgrade")
    assert (done.returncode, done.stdout.strip()) == (0, f"upgraded from schema {SCHEMA} to {NEXT}"), done.stderr
    tellers.wait_for(3)
    servers.replace(servers.urls[0], version)
    tellers.wait_for(3)


def wait_for_all(count: Callable[[], int], wanted: int) -> None:
    """However long it takes, as long as it goes on."""
    seen, since = count(), time.monotonic()
    while seen < wanted and time.monotonic() - since < WAIT_S:
        time.sleep(0.5)
        if (now := count()) != seen:
            seen, since = now, time.monotonic()


def assert_kept_and_remembered_once(database: str, tellers: Tellers) -> None:
    """What was acknowledged is there, each once, and so is what was made of it."""
    live = (
        "select s.name, f.text from facts f join subjects s on s.id = f.subject_id"
        " where f.live and s.name like 'person-%'"
    )
    wait_for_all(lambda: len(rows(database, live)), len(tellers.acknowledged))
    told = rows(database, "select t.name, e.content from events e join streams t on t.id = e.stream_id"
                " where t.name like 'person-%'")  # fmt: skip
    assert sorted(name for name, _ in told) == sorted(tellers.acknowledged)
    assert dict(told) == {name: said_by(int(name.partition("-")[2])) for name in tellers.acknowledged}
    remembered = rows(database, live)
    assert sorted(name for name, _ in remembered) == sorted(tellers.acknowledged)
    assert rows(database, "select count(*) from jobs where state = 'dead'") == [(0,)]
    numbers = [seq for (seq,) in rows(database, "select seq from changes where project_id = 1 order by seq")]
    assert numbers == list(range(1, len(numbers) + 1)), (
        "the changes of a project are dense, whichever version wrote them"
    )


def test_a_rolling_upgrade_and_its_way_back_lose_nothing_and_fail_nobody(tmp_path: Path) -> None:
    database, version = new_database(), build_next_version(tmp_path / "next")
    with pair(tmp_path, database) as servers:
        first = servers.start()
        servers.start()
        with Tellers(servers) as tellers:
            tellers.wait_for(3)
            roll(servers, tellers, version, tmp_path / "hand", database)
            with talking_to_both(servers, "mixed") as client:
                newer = (
                    client.get("/v1/status").json()["store"]["newer"],
                    client.get("/v1/status").json()["store"]["newer"],
                )
                assert sorted(map(str, newer)) == [
                    "None",
                    f"the schema is {NEXT}, newer than this program's {SCHEMA}, which goes on with it",
                ]
                for journey in SHORT:
                    journey(client)
            assert first not in servers.urls
            upgraded = servers.replace(servers.urls[0], version)
            tellers.wait_for(3)
            servers.replace(upgraded)
            tellers.wait_for(3)
        assert tellers.faults == []
        assert_kept_and_remembered_once(database, tellers)
