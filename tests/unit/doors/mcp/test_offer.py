"""The tool `handoff` with the id of an offer: packet and handoff are taken up together."""

from __future__ import annotations

from tests.unit.doors.cli.test_accept import an_offer
from tests.unit.doors.mcp.memories import OneMemory
from tests.unit.doors.mcp.test_calls import call

from everkept.api.workstream_views import Offer


class Accepts:
    def __init__(self) -> None:
        self.accepted: list[str] = []

    async def accept_offer(self, offer_id: str) -> Offer:
        self.accepted.append(offer_id)
        return an_offer()


def test_an_offer_is_taken_up_whole():
    service = Accepts()
    answer = call(OneMemory(service), "handoff", id="off_4", take=True)
    assert (service.accepted, answer.failed) == (["off_4"], False)
    assert answer.data["offer"]["launch_id"] == "lch_2"


def test_reading_an_offer_takes_nothing_up():
    service = Accepts()
    answer = call(OneMemory(service), "handoff", id="off_4")
    assert (service.accepted, answer.failed) == ([], True)
    assert "take=true" in answer.text
