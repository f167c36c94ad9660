"""What the overview shows an operator of NATS and of the database server, and what it asks a hand for."""

from __future__ import annotations

import re

import pytest
from tests.stubs.door_client import DoorClient
from tests.stubs.fake_service import FakeService

from everkept.api import views as v

NATS = v.Nats(
    server="nats.example:4222", connected=True, trouble=None, since=None, streams=[], pending=31, unacknowledged=12,
    redelivered=3,
)  # fmt: skip
BEHIND = v.Unpublished(projects=2, changes=1207, oldest_s=90.0)
SERVER = v.DatabaseServer(
    connections=40, connections_max=97, ours=18, processes=3, each_max=6, deadlocks=0, conflicts=0, deaf=None
)


def overview(monkeypatch: pytest.MonkeyPatch, **figures: object) -> str:
    """Its text."""
    before = FakeService.status

    async def status(self: FakeService, *, project_only: bool = False) -> v.Status:
        healthy = (await before(self, project_only=project_only)).model_copy(update={"given_up": [], "providers": []})
        well = [check.model_copy(update={"ok": True}) for check in healthy.checks]
        return healthy.model_copy(update={"checks": well, **figures})

    monkeypatch.setattr(FakeService, "status", status)
    answer = DoorClient()("GET", "/", headers={"Accept": "text/html"})
    assert answer.status_code == 200
    return " ".join(re.sub(r"<[^>]+>", " ", answer.text).split())


def test_nats_the_server_and_refused_finishes_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = overview(monkeypatch, nats=NATS, unpublished=BEHIND, server=SERVER, refused_finishes=4)
    assert "31 pending, 12 given and not acknowledged, 3 of them more than once" in shown
    assert "To publish 1 207 changes, the oldest for" in shown
    assert "40 of 97 connections; 3 processes with at most 6 each; 0 deadlocks" in shown
    assert "Refused finishes 4, after a lost lease" in shown
    assert "Everything is as it should be." in shown


def test_where_there_is_no_nats_and_no_server_nothing_is_said_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = overview(monkeypatch)
    assert "Everything is as it should be." in shown
    assert "NATS" not in shown
    assert "Database server" not in shown


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        ({"nats": NATS.model_copy(update={"connected": False, "trouble": "refused"})}, "nats.example:4222: refused"),
        ({"server": SERVER.model_copy(update={"deaf": "gone"})}, "Other processes are not heard, and polled instead"),
        ({"price_unknown": "the price of x is unknown"}, "the price of x is unknown"),
    ],
)
def test_what_wants_a_hand_is_said_first(
    monkeypatch: pytest.MonkeyPatch, figures: dict[str, object], said: str
) -> None:
    shown = overview(monkeypatch, **figures)
    assert "Needs attention" in shown
    assert said in shown
