"""`memory.follow`: every change, acknowledged after it was worked, whatever breaks in between."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.stubs.fake_memory import embedded
from tests.stubs.fake_service import FakeApplication, FakeService

from everkept import Memory
from everkept.doors.python import following
from everkept.doors.python.following import AsyncFollow
from everkept.errors import Conflict, CursorExpired, LeaseLost, Unavailable


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> FakeService:
    for pause in ("PAUSE_FIRST_S", "PAUSE_MAX_S", "STAND_BY_S"):
        monkeypatch.setattr(following, pause, 0.0)
    return FakeApplication(None).services["default"]


def follow(service: FakeService, **more: Any) -> list[int]:
    async def go() -> list[int]:
        return [change.seq async for change in AsyncFollow(service, "crm", until_idle=True, **more)]

    return asyncio.run(go())


def asked(service: FakeService, name: str) -> list[dict[str, Any]]:
    return [given for called, given in service.calls if called == name]


def test_each_change_is_acknowledged_once_the_next_is_asked_for(service: FakeService) -> None:
    async def go() -> list[tuple[int, int]]:
        changes = AsyncFollow(service, "crm", until_idle=True)
        return [(change.seq, service.cursors.get("crm", 0)) async for change in changes]

    assert (asyncio.run(go()), service.cursors["crm"]) == ([(1, 0), (2, 1), (3, 2)], 3)
    assert follow(service) == []


def test_what_was_in_hand_when_the_loop_was_left_is_given_again(service: FakeService) -> None:
    async def leave() -> None:
        changes = aiter(AsyncFollow(service, "crm", ack_every=100))
        await anext(changes)
        await anext(changes)
        await changes.aclose()

    asyncio.run(leave())
    assert (service.cursors["crm"], service.holders) == (1, {})
    assert follow(service) == [2, 3]


@pytest.mark.parametrize("error", [Unavailable(), LeaseLost()], ids=["server away", "lease lost"])
def test_who_leaves_is_let_go_though_it_cannot_be_acknowledged(service: FakeService, error: Exception) -> None:
    async def leave() -> None:
        changes = aiter(AsyncFollow(service, "crm", ack_every=100))
        await anext(changes)
        await anext(changes)
        service.fail_next.append(error)
        await changes.aclose()

    asyncio.run(asyncio.wait_for(leave(), 30))
    assert service.holders == {}
    assert follow(service) == [1, 2, 3]


def test_acknowledging_now_and_then_ends_at_the_same_place(service: FakeService) -> None:
    assert follow(service, ack_every=2) == [1, 2, 3]
    assert [given["up_to"] for given in asked(service, "ack")] == [2, 3]


def test_what_was_filtered_out_is_acknowledged_too(service: FakeService) -> None:
    assert follow(service, kinds=["page"]) == []
    assert service.cursors["crm"] == 3


@pytest.mark.parametrize("error", [Unavailable(), LeaseLost()], ids=["server away", "lease lost"])
def test_it_goes_on_where_it_stands_after(service: FakeService, error: Exception) -> None:
    async def go() -> list[int]:
        seen = []
        async for change in AsyncFollow(service, "crm", until_idle=True):
            seen.append(change.seq)
            if len(seen) == 2:
                service.fail_next.append(error)
        return seen

    assert asyncio.run(go()) == [1, 2, 2, 3]
    assert service.cursors["crm"] == 3


def test_a_consumer_that_somebody_else_holds_is_waited_for(service: FakeService) -> None:
    service.fail_next += [Conflict("held", holder="other", free_in_s=0.0) for _ in range(3)]
    assert follow(service) == [1, 2, 3]
    assert len(asked(service, "lease_consumer")) == 3 + 2, "refused, taken, and given up"


def test_a_consumer_that_is_behind_what_is_kept_is_told(service: FakeService) -> None:
    service.cursors["crm"] = -1
    with pytest.raises(CursorExpired):
        follow(service)


def test_the_lease_is_kept_while_one_change_takes_long(service: FakeService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "LEASE_S", 0.03)

    async def go() -> None:
        async for _ in AsyncFollow(service, "crm", until_idle=True):
            while not any(given["fence"] for given in asked(service, "lease_consumer")):  # noqa: ASYNC110 - work is long
                await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(go(), 30))
    assert service.cursors["crm"] == 3


def test_a_plain_loop_follows_too(service: FakeService) -> None:
    with Memory._start(embedded(service)) as memory:
        seen = []
        for change in memory.follow("crm", until_idle=True):
            seen.append(change.seq)
            if change.seq == 2:
                break
        assert (seen, service.cursors["crm"], service.holders) == ([1, 2], 1, {})
        assert [change.seq for change in memory.follow("crm", until_idle=True)] == [2, 3]
        assert list(memory.follow("crm", until_idle=True)) == []
