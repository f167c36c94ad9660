"""`everkept worker --until-idle` attends to NATS: what waits there is taken and worked, what waits here published."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.factories import World
from tests.nats.broker import Broker
from tests.nats.test_processes import Kept, environment, settled
from tests.stubs.nats_server import NatsServer

from everkept.config import Nats

pytestmark = pytest.mark.parametrize("store", ["sqlite"], indirect=True)  # of the broker's side
UNAVAILABLE = 3


def work_until_idle(home: Path, settings: Nats) -> subprocess.CompletedProcess[str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("EVERKEPT_")}
    return subprocess.run(
        [sys.executable, "-m", "everkept", "worker", "--until-idle", "--json"], capture_output=True, text=True,
        check=False, env={**plain, "EVERKEPT_HOME": str(home), **environment(settings)},
    )  # fmt: skip


def test_events_that_wait_are_taken_and_worked_and_every_change_is_published(
    broker: Broker, world: World, settings: Nats, server: NatsServer, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    broker.make_streams()
    for n in range(5):
        body = {"thread": "chat", "subject": "ana", "role": "user", "content": f"I have {n} cats."}
        broker.send(body, key=f"m-{n}")
    broker.send(b"{", key="bad")
    done = work_until_idle(home, settings)
    kept = Kept(home)
    assert done.returncode == 0, done.stderr
    assert kept.texts == [f"I have {n} cats." for n in range(5)]
    assert kept("select error_class from jobs where state = 'dead'") == ["invalid_input"]
    assert kept.published()
    assert settled(broker)
    status = json.loads(done.stdout)
    assert (status["nats"]["pending"], status["unpublished"]["changes"]) == (0, 0)


def test_a_nats_that_does_not_answer_holds_up_no_work_and_is_told(
    broker: Broker, world: World, settings: Nats, server: NatsServer, tmp_path: Path
) -> None:
    broker.make_streams()
    server.kill()
    try:
        done = work_until_idle(tmp_path / "home", settings)
    finally:
        server.start()
    assert done.returncode == UNAVAILABLE
    assert "what waits in NATS and for NATS stays there" in done.stderr
    assert json.loads(done.stdout)["backlog_due"] == 0
