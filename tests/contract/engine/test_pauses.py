"""A paused kind or provider: nothing of it is begun, nothing of it is lost, and everything says why."""

from __future__ import annotations

import pytest
from tests.factories import HOUR_S, World, assert_lanes_count_right

from everkept.domain.jobs import Done
from everkept.store.claims import HOLDS_MAX
from everkept.store.joblist import list_jobs
from everkept.store.jobs_by_hand import discard_by_hand, put_back
from everkept.store.pauses import list_pauses, pause, resume
from everkept.store.receipts import receipts_of
from everkept.store.status import read_status


def keys(leases) -> list[str]:
    return [lease.key for lease in leases]


def uses_of(world: World, key: str) -> str:
    return str(world.job(key)["uses"])


@pytest.mark.parametrize("made_ready_before", [True, False])
def test_a_job_of_a_paused_kind_is_not_claimed_until_it_is_resumed(world: World, made_ready_before: bool) -> None:
    world.schedule("a")
    if made_ready_before:
        world.promote()
    world.write(pause, "kind", "work", "prices", "hand")

    assert world.claim(free=4) == []
    assert world.job("a")["state"] == "ready"
    assert_lanes_count_right(world)
    assert world.write(resume, "kind", "work")
    assert keys(world.claim(free=4)) == ["a"]
    assert_lanes_count_right(world)


def test_what_is_not_paused_goes_on_in_the_same_lane(world: World) -> None:
    world.schedule("a")
    world.schedule("b", kind="other")
    world.write(pause, "kind", "work", "prices", "hand")

    assert keys(world.claim(free=4)) == ["b"]


def test_what_runs_when_its_kind_is_paused_ends_as_ever(world: World) -> None:
    world.schedule("a")
    (lease,) = world.claim()
    world.write(pause, "kind", "work", "prices", "hand")

    assert world.finish(lease, Done()) == "done"


def test_other_lanes_have_their_turn_although_the_first_ones_are_all_paused(world: World) -> None:
    for n in range(6):
        world.schedule(f"a{n}", lane=world.lane(f"s{n}"))
    world.promote()
    world.schedule("b", kind="other", lane=world.lane("last"))
    world.write(pause, "kind", "work", "prices", "hand")

    assert keys(world.claim(free=1)) == ["b"]


def test_one_claim_holds_no_more_than_its_share_and_the_next_goes_on(world: World) -> None:
    for n in range(HOLDS_MAX + 1):
        world.schedule(f"a{n}")
    world.promote()
    world.write(pause, "kind", "work", "prices", "hand")

    held = "select count(*) from jobs where uses like 'held%'"
    assert world.claim(free=1) == []
    assert world.value(held) == HOLDS_MAX
    assert world.claim(free=1) == []
    assert world.value(held) == HOLDS_MAX + 1
    assert_lanes_count_right(world)


def test_a_held_job_can_be_discarded_and_scheduled_anew(world: World) -> None:
    world.schedule("a")
    world.write(pause, "kind", "work", "prices", "hand")
    world.claim()
    assert uses_of(world, "a").startswith("held_")

    assert world.write(discard_by_hand, world.project.id, world.job("a")["id"], "not now")
    assert_lanes_count_right(world)
    world.write(resume, "kind", "work")
    world.schedule("a")
    assert keys(world.claim()) == ["a"]
    assert_lanes_count_right(world)


def test_a_held_job_that_is_put_back_comes_due_again(world: World) -> None:
    world.schedule("a")
    world.write(pause, "kind", "work", "prices", "hand")
    world.claim()

    assert world.write(put_back, world.project.id, world.job("a")["id"])
    assert_lanes_count_right(world)
    world.write(resume, "kind", "work")
    assert keys(world.claim()) == ["a"]


def test_a_job_that_is_put_off_while_it_is_held_waits_for_its_new_time(world: World) -> None:
    world.schedule("a", due_in=1, debounce_max_us=10**12)
    world.tick(1)
    world.write(pause, "kind", "work", "prices", "hand")
    world.claim()
    world.schedule("a", due_in=60, debounce_max_us=10**12)
    world.write(resume, "kind", "work")

    assert world.claim() == []
    world.tick(60)
    assert keys(world.claim()) == ["a"]


def test_days_of_a_paused_kind_cost_no_attempt_and_end_as_without_them(modelled: World) -> None:
    modelled.write(pause, "kind", "extract_facts", "prices", "hand")
    modelled.add("chat", "I live in Lisbon.")
    modelled.end("chat")
    modelled.live(48 * HOUR_S, every=HOUR_S)

    (receipt,) = modelled.read(receipts_of, modelled.project.id, [(1, 1)], modelled.settings)
    assert (receipt.summary, receipt.facts, receipt.state) == ("completed", "pending", "embedded")
    assert "kind extract_facts is paused by hand since" in str(receipt.reason)
    assert receipt.next_try_at is None
    assert modelled.value("select max(attempts) + max(crashes) from jobs") == 0

    modelled.write(resume, "kind", "extract_facts")
    modelled.run_until_idle()
    (receipt,) = modelled.read(receipts_of, modelled.project.id, [(1, 1)], modelled.settings)
    assert receipt.state == "remembered"


def test_a_paused_timer_says_so_in_the_receipt(world: World) -> None:
    world.write(pause, "kind", "open_window", "moving house", "ana")
    world.add("chat", "I live in Lisbon.")
    world.end("chat")
    world.run_until_idle()

    (receipt,) = world.read(receipts_of, world.project.id, [(1, 1)], world.settings)
    assert receipt.reason is not None
    assert receipt.reason.startswith("its episode: kind open_window is paused by ana since")
    assert receipt.reason.endswith(": moving house")


def test_a_paused_provider_is_not_asked_and_others_are(modelled: World) -> None:
    assert modelled.model is not None
    modelled.add("chat", "I live in Lisbon.")
    modelled.end("chat")
    modelled.write(pause, "provider", modelled.model.pool.partition(":")[0], "prices", "hand")
    modelled.run_until_idle()

    assert modelled.model.questions == []
    assert modelled.value("select count(*) from windows") == 1
    (receipt,) = modelled.read(receipts_of, modelled.project.id, [(1, 1)], modelled.settings)
    assert "is paused by hand" in str(receipt.reason)
    modelled.write(resume, "provider", modelled.model.pool.partition(":")[0])
    modelled.run_until_idle()
    (receipt,) = modelled.read(receipts_of, modelled.project.id, [(1, 1)], modelled.settings)
    assert receipt.state == "remembered"


def test_status_and_lists_name_what_is_paused(world: World) -> None:
    world.schedule("a")
    world.write(pause, "kind", "work", "prices", "hand")
    world.write(pause, "kind", "work", "holidays", "ana")
    world.claim()
    world.tick(HOUR_S)

    (row,) = world.read(list_pauses)
    assert (row.what, row.name, row.why, row.by) == ("kind", "work", "holidays", "ana")
    status = world.read(read_status, None, world.settings)
    assert status.pauses == [row]
    assert [item.error for item in status.stuck] == [row.words()]
    assert status.backlog.due == 1
    assert [job.state for job in world.read(list_jobs, world.project.id, None, None, None, 10)] == ["ready"]
    assert world.write(resume, "kind", "work")
    assert not world.write(resume, "kind", "work")
