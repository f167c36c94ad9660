"""A look at NATS as doctor takes it: what waits, what voids the promises, and what a new stream lacks."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from tests.factories import World
from tests.nats.broker import Broker
from tests.nats.test_publishing import publish, tell
from tests.nats.test_taking import MESSAGE
from tests.stubs.nats_server import NatsServer, nats_server

from everkept.config import Nats
from everkept.deliver.nats_look import look_at_nats
from everkept.domain.nats_seen import NatsSeen
from everkept.store.consumers import replay_consumer
from everkept.store.diagnosis.causes import Finding
from everkept.store.diagnosis.look import Look
from everkept.store.diagnosis.nats import changes_missing, streams


def seen(world: World, settings: Nats) -> NatsSeen:
    found = world.run(look_at_nats(settings))
    assert found is not None
    return found


def findings(world: World, settings: Nats) -> dict[str, Finding]:
    look = Look(
        settings=dataclasses.replace(world.settings, nats=settings), name="a store", around=None,
        nats=seen(world, settings),
    )  # fmt: skip
    return {f.cause: f for f in (*world.read(streams, look), *world.read(changes_missing, look))}


def test_what_waits_is_counted_and_one_replica_is_a_choice_that_is_told(
    broker: Broker, world: World, settings: Nats
) -> None:
    broker.make_streams()
    broker.send(MESSAGE, key="m-1")
    assert (seen(world, settings).pending, seen(world, settings).redelivered) == (1, 0)
    [(cause, finding)] = findings(world, settings).items()
    assert (cause, finding.chosen, finding.evidence) == ("nats_one_replica", True, {"pending": 1, "redelivered": 0})


def test_where_nobody_answers_that_is_the_cause_and_no_password_is_told(world: World, settings: Nats) -> None:
    nobody = dataclasses.replace(settings, url="nats://ana:secret@127.0.0.1:1")
    [(cause, finding)] = findings(world, nobody).items()
    assert cause == "nats_unreachable"
    assert "127.0.0.1:1" in finding.what
    assert "secret" not in str(finding)
    assert world.run(look_at_nats(Nats())) is None


@pytest.mark.parametrize(("url", "credentials"), [
    ("nats://127.0.0.1:99999", None), ("nats://[::1", None), ("nats://nowhere.invalid:4222", None),
    ("nats://127.0.0.1:1", "missing.creds"), ("nats://127.0.0.1:1,nats://127.0.0.1:2", None),
])  # fmt: skip
def test_whatever_is_wrong_with_the_address_or_the_credentials_is_a_cause_and_no_crash(
    world: World, url: str, credentials: str | None
) -> None:
    settings = dataclasses.replace(Nats(), url=url, credentials=credentials)
    [(cause, finding)] = findings(world, settings).items()
    assert (cause, bool(finding.what)) == ("nats_unreachable", True)


def test_a_server_that_refuses_us_is_a_cause(world: World, server: NatsServer, tmp_path: Path) -> None:
    with nats_server(tmp_path / "guarded", "--user", "ana", "--pass", "secret") as guarded:
        settings = dataclasses.replace(Nats(), url=guarded.url.replace("//", "//ana:wrong@"))
        assert "uthorization" in findings(world, settings)["nats_unreachable"].what
        right = dataclasses.replace(settings, url=guarded.url.replace("//", "//ana:secret@"), take=False, publish=False)
        assert seen(world, right).connected


def test_a_stream_that_is_missing_is_said_and_not_made_by_a_look(broker: Broker, world: World, settings: Nats) -> None:
    for _ in range(2):
        assert set(findings(world, settings)) == {"nats_unreachable"}


def test_a_lost_stream_is_a_cause_until_it_was_replayed(broker: Broker, world: World, settings: Nats) -> None:
    tell(world, 3)
    world.run(publish(world, settings))
    assert "nats_stream_lost" not in findings(world, settings)
    broker.delete_streams()
    broker.make_streams()
    assert findings(world, settings)["nats_stream_lost"].evidence["missing"] == 3
    tell(world, 1)
    world.run(publish(world, settings))
    lost = findings(world, settings)["nats_stream_lost"]
    assert lost.mend == "everkept consumers replay nats --after 0"
    world.write(replay_consumer, world.project.id, "nats", 0)
    world.run(publish(world, settings))
    assert "nats_stream_lost" not in findings(world, settings)
