"""`accept`, on the command line."""

from __future__ import annotations

import pytest
from tests.stubs.fake_agents import AT
from tests.unit.doors.cli.test_agents import asked, fake

from everkept.api.workstream_views import Offer
from everkept.doors.cli.main import run
from everkept.errors import LeaseLost


def an_offer(**other: str | None) -> Offer:
    return Offer.model_validate({
        "id": "off_4", "agent": "codex", "native_id": "c1", "state": "acknowledged", "handoff_id": "hnd_1",
        "launch_id": "lch_2", "offered_at": AT, "shown_at": None, "acknowledged_at": AT, **other,
    })  # fmt: skip


@pytest.mark.parametrize(
    ("launch", "handoff", "told"),
    [("lch_2", "hnd_1", "lch_2 and hnd_1"), (None, "hnd_1", ": hnd_1"), (None, None, "nothing that waits for it")],
)
def test_accepting_says_what_was_taken_up(launch, handoff, told, capsys):
    service = fake(accept_offer=an_offer(launch_id=launch, handoff_id=handoff))
    assert run(["accept", "off_4"], opener=service) == 0
    assert asked(service, "accept_offer") == {"0": "off_4"}
    assert told in capsys.readouterr().err


def test_accepting_prints_the_shape_of_http(capsys):
    assert run(["accept", "off_4", "--json"], opener=fake(accept_offer=an_offer())) == 0
    assert Offer.model_validate_json(capsys.readouterr().out) == an_offer()


def test_an_offer_of_a_launch_that_was_taken_over_is_refused(capsys):
    assert run(["accept", "off_4"], opener=fake(accept_offer=LeaseLost("somebody has taken over"))) == 1
    assert "somebody has taken over" in capsys.readouterr().err
