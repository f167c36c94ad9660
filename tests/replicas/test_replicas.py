"""Several `everkept serve` on one PostgreSQL: no leader, and nothing lost or done twice though one is killed."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx2
import psycopg
from tests.postgres import new_database
from tests.stubs.real_server import WAIT_S, serving

CITIES = ("Lisbon", "Porto", "Berlin", "Vienna", "Madrid", "Oslo", "Prague", "Rome", "Athens", "Dublin", "Bern", "Riga")
PEOPLE = 24
QUICK = {"EVERKEPT_WORK__LEASE_S": "5", "EVERKEPT_WORK__HEARTBEAT_S": "1"}


def tell(urls: Sequence[str], first: int) -> None:
    """Tell each person's city to each server under one key, starting with another one each time; one may be dead."""
    for n in range(PEOPLE):
        person = (first + n) % PEOPLE
        for url in (urls[n % len(urls)], urls[(n + 1) % len(urls)]):
            asked(url, f"/v1/threads/thread-{person}/messages", {
                "messages": [{"role": "user", "content": f"I live in {CITIES[person % len(CITIES)]}."}],
                "subject": f"person-{person}",
            }, key=f"said-{person}")  # fmt: skip
            asked(url, f"/v1/threads/thread-{person}/end", {})


def asked(url: str, path: str, body: dict[str, Any], *, key: str | None = None) -> None:
    headers = {} if key is None else {"Idempotency-Key": key}
    try:
        answer = httpx2.post(url + path, json=body, headers=headers, timeout=60)
    except httpx2.TransportError:  # it was killed
        return
    assert answer.is_success or answer.status_code == 404, answer.text


def wait_until(holds: Callable[[], bool]) -> bool:
    ends = time.monotonic() + WAIT_S
    while not holds() and time.monotonic() < ends:
        time.sleep(0.5)
    return holds()


def test_what_three_servers_were_told_is_kept_and_done_once_though_one_of_them_is_killed(tmp_path: Path) -> None:
    database = new_database()
    environment = {**QUICK, "EVERKEPT_DATABASE_URL": database}

    def rows(sql: str) -> list[Any]:
        with psycopg.connect(database) as raw:
            return raw.execute(sql).fetchall()

    with (
        serving(tmp_path / "a", **environment) as (_, one),
        serving(tmp_path / "b", **environment) as (_, two),
        serving(tmp_path / "c", **environment) as (third, three),
    ):
        tellers = [
            threading.Thread(target=tell, args=((one, two, three)[n:] + (one, two, three)[:n], 13 * n))
            for n in range(3)
        ]
        for teller in tellers:
            teller.start()
        assert wait_until(lambda: rows("select count(*) from events")[0][0] > PEOPLE // 4)
        third.send_signal(signal.SIGKILL)
        for teller in tellers:
            teller.join()
        assert wait_until(lambda: rows("select count(*) from facts where live")[0][0] >= PEOPLE)
        workers = {worker["id"] for worker in httpx2.get(f"{one}/v1/status").json()["workers"]}

    facts = rows("select u.name, f.text from facts f join subjects u on u.id = f.subject_id where f.live")
    assert sorted(name for name, _ in facts) == sorted(f"person-{person}" for person in range(PEOPLE))
    for name, statement in facts:
        assert CITIES[int(name.removeprefix("person-")) % len(CITIES)] in statement
    assert rows("select count(*), count(distinct key_hash) from events") == [(PEOPLE, PEOPLE)]
    assert rows("select count(*) from jobs where state = 'dead'") == [(0,)]
    numbers = [seq for (seq,) in rows("select seq from changes order by seq")]
    assert numbers == list(range(1, len(numbers) + 1)), "the changes of a project are dense, whoever wrote them"
    assert len(workers) >= 2
