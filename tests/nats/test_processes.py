"""Real processes: `everkept serve` and the server of NATS, killed while events come in and changes go out."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.factories import World
from tests.nats.broker import Broker
from tests.stubs.nats_server import NatsServer
from tests.stubs.real_server import serving

from everkept.config import Nats

EXAMPLE = Path(__file__).parents[2] / "examples" / "nats_events.py"
WITHIN_S = 120
EVENTS = 60
"""Each is a message of its own, in one thread."""

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX"),
    pytest.mark.parametrize("store", ["sqlite"], indirect=True),  # of the broker's side; the processes have their own
]


def environment(settings: Nats) -> dict[str, str]:
    return {
        "EVERKEPT_NATS_URL": str(settings.url), "EVERKEPT_NATS__PREFIX": settings.prefix,
        "EVERKEPT_NATS__EVENTS_STREAM": settings.events_stream,
        "EVERKEPT_NATS__CHANGES_STREAM": settings.changes_stream, "EVERKEPT_NATS__DURABLE": settings.durable,
        "EVERKEPT_NATS__ACK_WAIT_S": "1",
    }  # fmt: skip


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.05)


class Kept:
    """The store of the processes, read beside them."""

    def __init__(self, home: Path) -> None:
        self.path = home / "everkept.db"

    def __call__(self, sql: str) -> list[Any]:
        if not self.path.exists():
            return []
        with sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=30) as reader:
            found = [row[0] for row in reader.execute(sql)]
        reader.close()
        return found

    @property
    def texts(self) -> list[str]:
        return self("select content from events order by stream_id, seq")

    def published(self) -> bool:
        return self(
            "select 1 from consumers c join projects p on p.id = c.project_id where c.name = 'nats'"
            " and c.cursor = p.change_seq"
        ) == [1]


def test_a_kill_of_everkept_and_one_of_the_broker_lose_nothing_and_double_nothing(
    broker: Broker, world: World, settings: Nats, server: NatsServer, tmp_path: Path
) -> None:
    home = tmp_path / "served"
    kept = Kept(home)
    said = [f"I have {n} cats." for n in range(EVENTS)]
    broker.make_streams()
    for n, text in enumerate(said):
        body = {"thread": "chat", "subject": "ana", "role": "user", "content": text}
        broker.send(body, key=f"m-{n}")
    with serving(home, **environment(settings)) as (process, _):
        until(lambda: len(kept.texts) >= 5)
        process.send_signal(signal.SIGKILL)
        process.wait()
    with serving(home, **environment(settings)):
        server.kill()
        server.start()
        until(lambda: len(kept.texts) >= EVENTS)
        until(kept.published)
        until(lambda: settled(broker))
    assert sorted(kept.texts) == sorted(said)
    told = broker.seqs()
    assert list(dict.fromkeys(told)) == list(range(1, max(told) + 1))
    assert len(told) == len(set(told)), "within the window of duplicates each change is stored once"


def settled(broker: Broker) -> bool:
    async def waiting(link: Any) -> int:
        info = await link.stream.consumer_info(broker.settings.events_stream, broker.settings.durable)
        return int(info.num_pending + info.num_ack_pending)

    return broker.run(waiting) == 0


def told(url: str) -> Any:
    """By the server itself, as of its last look."""
    return httpx2.get(f"{url}/v1/status").json()["nats"]


def command(home: Path, settings: Nats, *words: str) -> Any:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("EVERKEPT_")}
    done = subprocess.run(
        [sys.executable, "-m", "everkept", *words, "--json"], capture_output=True, text=True, check=False,
        env={**plain, "EVERKEPT_HOME": str(home), **environment(settings)},
    )  # fmt: skip
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_doctor_and_status_tell_what_waits_and_what_voids_the_promises(
    broker: Broker, world: World, settings: Nats, server: NatsServer, tmp_path: Path
) -> None:
    home = tmp_path / "served"
    broker.make_streams()
    broker.send(b"{", key="bad")
    kept = Kept(home)
    with serving(home, **environment(settings)) as (_, url):
        until(lambda: kept("select error_class from jobs where state = 'dead'") == ["invalid_input"])
        until(lambda: settled(broker))
        until(lambda: (told(url)["pending"], told(url)["unacknowledged"]) == (0, 0))  # as of its next look
        assert (told(url)["connected"], told(url)["trouble"]) == (True, None)
    away = command(home, settings, "doctor")
    assert away["nats"]["connected"]
    causes = {finding["cause"]: finding["chosen"] for finding in away["findings"]}
    assert causes["nats_one_replica"] is True
    server.kill()
    try:
        down = command(home, settings, "doctor")
    finally:
        server.start()
    assert not down["nats"]["connected"]
    assert "nats_unreachable" in {finding["cause"] for finding in down["findings"]}


def test_the_example_says_something_and_reads_what_follows(world: World, server: NatsServer, tmp_path: Path) -> None:
    broker = Broker(world, dataclasses.replace(Nats(), url=server.url))
    with serving(tmp_path / "served", EVERKEPT_NATS_URL=server.url) as (_, url):
        until(lambda: told(url) is not None and told(url)["connected"])
        shown = subprocess.run(
            [sys.executable, "-W", "error", str(EXAMPLE)], capture_output=True, text=True, check=True,
            env={**os.environ, "EVERKEPT_NATS_URL": server.url},
        ).stdout.splitlines()  # fmt: skip
    broker.delete_streams()
    assert shown[0] == "accepted as message 1"
    assert shown[1].startswith("1 messages.appended ")
