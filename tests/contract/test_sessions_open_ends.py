"""What a session leaves open is carried by the next one of its worktree, in whatever order they are digested (D03)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from tests.contract.test_erase import SETTINGS
from tests.contract.test_sessions import Agents, edit, prompt, said

from everkept.derive.digest_session import make_digest
from everkept.domain.session import AgentEvent
from everkept.store.digests import digest_input, write_digest
from everkept.store.handoffs import acknowledge_handoff, list_handoffs
from everkept.store.sessions import list_sessions

QUESTION = "Should the invoices keep the old currency rounding rule?"
DAY_US = 86_400_000_000
AGO_US = 10 * DAY_US


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Agents]:
    made = Agents(tmp_path / "memory.db")
    yield made
    made.store.close()


def session_of(world: Agents, name: str, day: int) -> list[AgentEvent]:
    """Of a day not long ago; the one called `a` ends with a question."""
    at = world.clock.now_us() - AGO_US + day * DAY_US
    last = QUESTION if name == "a" else f"The parser of module {name} is renamed now."
    asked = prompt(name, f"Rename the parser of module {name} and everything that calls it")
    events = [asked, edit(name, f"{name}-1", f"src/{name}.py"), said(name, last)]
    return [replace(event, occurred_at_us=at + n) for n, event in enumerate(events)]


def take(world: Agents, name: str, day: int) -> None:
    world.told(name, *session_of(world, name, day), ended=True)


def ends(world: Agents) -> dict[str, list[tuple[str, int]]]:
    return {h.native: [(end.kind, end.carried) for end in h.open_ends] for h in world.handoffs()}


@pytest.mark.parametrize("order", list(permutations("abc")), ids="".join)
def test_open_ends_are_carried_whatever_order_sessions_are_digested_in(world: Agents, order: tuple[str, ...]) -> None:
    for name in order:
        take(world, name, "abc".index(name))
        world.drain()
    assert ends(world) == {"c": [("question", 2)], "b": [("question", 1)], "a": [("question", 0)]}
    [offered] = world.handoffs("open")
    assert offered.native == "c"
    assert "old currency rounding rule" in offered.body
    assert "open since 2 sessions before" in offered.body
    jobs = world.rows("select distinct state from jobs where kind = 'digest_session'")
    assert jobs == [("done",)], "it comes to rest"


def test_a_session_that_is_digested_again_keeps_what_it_carries(world: Agents) -> None:
    take(world, "a", 0)
    take(world, "b", 1)
    world.drain()
    more = prompt("b", "Rename the printer as well", id_="more", at=world.clock.now_us() - 1)
    world.told("b", more, edit("b", "b-2", "src/printer.py"), ended=True)
    world.drain()
    [offered] = world.handoffs("open")
    assert [(end.kind, end.carried) for end in offered.open_ends if end.carried] == [("question", 1)]


@pytest.mark.parametrize(("by", "carried"), [("claude-code/b", [("question", 1)]), ("a person", [])])
def test_what_a_session_took_up_and_did_not_settle_it_carries(
    world: Agents, by: str, carried: list[tuple[str, int]]
) -> None:
    take(world, "a", 0)
    world.drain()
    world.store.write_now(acknowledge_handoff, world.project, world.handoffs()[0].id, by)
    take(world, "b", 1)
    world.drain()
    assert ends(world)["b"] == carried


def test_an_older_session_that_is_digested_meanwhile_is_not_lost_on_a_newer_one(world: Agents) -> None:
    """The newer one was read before the older one's digest was written, and is written after it."""
    take(world, "b", 1)
    world.drain()
    [(window,)] = world.rows("select max(id) from windows where stream_id = :s", s=world.session("b").stream)
    found = world.store.read_now(digest_input, window, SETTINGS)
    assert found is not None
    take(world, "a", 0)
    world.drain()
    world.store.write_now(write_digest, make_digest(found))
    world.drain()
    assert ends(world)["b"] == [("question", 1)]


def test_lists_go_by_the_time_of_the_session_and_their_cursor_goes_on(world: Agents) -> None:
    for name, day in (("c", 2), ("a", 0), ("b", 1)):
        take(world, name, day)
        world.drain()

    def natives(limit: int, before: int | None) -> list[str]:
        rows = world.store.read_now(lambda conn: list_sessions(conn, world.project, before=before, limit=limit))
        return [row.native for row in rows]

    assert natives(9, None) == ["c", "b", "a"]
    assert natives(9, world.session("c").stream) == ["b", "a"]
    assert natives(1, world.session("b").stream) == ["a"]
    left = world.handoffs()
    assert [h.native for h in left] == ["c", "b", "a"]
    rest = world.store.read_now(lambda conn: list_handoffs(conn, world.project, before=left[0].id))
    assert [h.native for h in rest] == ["b", "a"]
