"""What hooks left on a machine, published to the stream that its server takes events from (H02, G1)."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from tests.factories import World
from tests.nats.broker import Broker
from tests.nats.test_taking import MESSAGE, Desk
from tests.stubs.agent_desk import a_checkout
from tests.unit.api.test_remote_drain import aside, leave

from everkept.api.nats_sending import NatsSending
from everkept.api.remote_drain import RemoteDrain
from everkept.capture.spool import Spool
from everkept.config import Nats
from everkept.deliver.nats_link import connected
from everkept.domain.nats_subjects import subject_of
from everkept.errors import ConfigInvalid, Unavailable


class NoServer:
    """Nothing is sent to it but what this asks for."""

    async def take_events(self, body: Any) -> Any:
        raise AssertionError("what hooks left goes over NATS")

    async def give_context(self, body: Any, *, within_s: float) -> Any:
        return body, within_s


@pytest.fixture
def desk(broker: Broker, world: World, settings: Nats) -> Desk:
    broker.make_streams()
    return Desk(world, settings)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "laptop"


def drain(desk: Desk, home: Path, settings: Nats | None = None) -> int:
    sending = NatsSending(settings or desk.settings, NoServer())
    return desk.world.run(RemoteDrain(Spool(home), sending).some()).records


def test_records_leave_the_spool_once_the_stream_has_them_and_reach_the_project_of_their_folder(
    desk: Desk, home: Path, tmp_path: Path
) -> None:
    folder = a_checkout(tmp_path / "app")
    for number in range(3):
        leave(home, "UserPromptSubmit", number, prompt=f"prompt {number}", cwd=str(folder))
    assert drain(desk, home) == 3
    assert (Spool(home).state().waiting, desk.texts) == (0, [])
    assert desk.step() == 1
    assert (desk.texts, desk.left, desk.aside) == ([f"prompt {n}" for n in range(3)], (0, 0), {})
    [(project,)] = desk.world.rows("select p.name from projects p join streams s on s.project_id = p.id")
    assert project != "default"


def test_while_the_broker_is_away_records_wait(desk: Desk, home: Path) -> None:
    leave(home, "UserPromptSubmit", 1, prompt="prompt 1")
    nobody = dataclasses.replace(desk.settings, url="nats://127.0.0.1:1")
    with pytest.raises(Unavailable):
        drain(desk, home, nobody)
    missing = dataclasses.replace(desk.settings, prefix="nobody-listens")
    with pytest.raises(Unavailable):
        drain(desk, home, missing)
    assert Spool(home).state().waiting == 1
    assert drain(desk, home) == 1


def test_what_is_too_large_for_the_broker_is_sent_in_parts(desk: Desk, home: Path) -> None:
    """The server takes a mebibyte."""
    for number in range(40):
        leave(home, "UserPromptSubmit", number, prompt=f"{number} " + "word " * 8_000)
    assert drain(desk, home) == 40
    while desk.step():
        continue
    assert len(desk.texts) == 40
    assert aside(home) == []


def test_messages_of_a_thread_name_their_project(desk: Desk, broker: Broker) -> None:
    async def publish() -> None:
        async with connected(desk.settings) as link:
            body = b'{"thread": "chat", "subject": "ana", "role": "user", "content": "Hello."}'
            await link.stream.publish(subject_of(desk.settings.prefix, None, "events"), body)

    desk.world.run(publish())
    broker.send(MESSAGE, key="m-1")
    desk.step()
    assert list(desk.work().values()) == [("dead", "invalid_input")]
    assert desk.texts == ["I live in Lisbon."]


def test_context_is_asked_of_the_server(desk: Desk) -> None:
    sending = NatsSending(desk.settings, NoServer())
    assert desk.world.run(sending.give_context({"a": 1}, within_s=2.0)) == ({"a": 1}, 2.0)  # type: ignore[comparison-overlap]


def test_without_a_server_of_nats_the_setting_is_an_error() -> None:
    with pytest.raises(ConfigInvalid):
        NatsSending(Nats(), NoServer())
