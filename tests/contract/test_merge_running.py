"""Merging two projects while others read, write, review and follow, and erasing what was merged (G10, G11, G12)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract.merging import OLD_SECRET, Merging, check
from tests.contract.reviewing import AGE_S, INTERVAL_S

from everkept import AsyncMemory
from everkept.capture.identity import Checkout
from everkept.domain.erase import ProjectTarget, StreamTarget, SubjectTarget
from everkept.doors.http.callers import Caller
from everkept.errors import Conflict, CursorExpired, Forbidden, NotFound, Unavailable
from everkept.store.changes import acknowledge, read_changes
from everkept.store.consumers import list_consumers
from everkept.store.entity_merges import merge_entities
from everkept.store.erase import erase, residue
from everkept.store.launches import NewLaunch, NewPacket, cancel_launch
from everkept.store.merge import begin_merge, merge_chunk, plan_merge
from everkept.store.merging import last_merge, running_merges
from everkept.store.packets import prepare_with_packet
from everkept.store.projects import (
    add_key,
    ensure_project,
    find_key,
    find_project,
    find_subject,
    names_of,
)
from everkept.store.review_schedule import look
from everkept.store.search import find_postings
from everkept.store.streams import find_thread, get_thread
from everkept.store.webhook_sending import due_webhooks, next_batch
from everkept.store.webhooks import NewWebhook, add_webhook
from everkept.store.wiki_pages import project_is_erased, wiki_states
from everkept.store.workstreams import ensure_workstream, select_workstream


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Merging]:
    made = Merging(tmp_path)
    yield made
    made.shut()


# ---- while it runs


def test_what_is_on_its_way_is_not_taken_for_what_never_was(world: Merging) -> None:
    with world.in_old():
        world.add("chat", "Blue")
        world.work_on("one")
    world.begin()
    assert world.read(find_thread, world.here.id, "chat") is None
    with pytest.raises(Unavailable, match="on its way"):
        world.read(get_thread, world.here.id, "chat")
    with pytest.raises(Unavailable, match="on its way"):
        world.add("chat", "Red")
    with pytest.raises(Unavailable, match="on its way"):
        world.work_on("one")
    with pytest.raises(NotFound):
        world.read(get_thread, world.here.id, "nobody")
    world.add("another", "Green")
    world.run_until_idle()
    assert world.stream("chat") > 0
    check(world)


def test_whoever_holds_the_source_still_is_told_where_it_went(world: Merging) -> None:
    with world.in_old():
        world.add("chat", "Blue")
    world.merge()
    with world.in_old(), pytest.raises(Conflict, match="merged into 'default'"):
        world.add("chat", "Red")
    with world.in_old(), pytest.raises(Conflict, match="merged into 'default'"):
        world.add("new", "Red")
    assert world.left_in_old() == {}


def test_a_long_thread_and_a_long_session_come_in_short_chunks(world: Merging) -> None:
    with world.in_old():
        for n in range(8):
            world.add("chat", *(f"Harbour number {n}-{m}" for m in range(90)))
        world.work_on("one")
    world.begin()
    world.run_until_idle()
    assert world.value("select count(*) from events e join streams s on s.id = e.stream_id"
                       " where e.project_id <> s.project_id") == 0  # fmt: skip
    assert len(world.recalled("harbour")) > 0
    check(world)


# ---- reviews


def test_each_generation_of_either_is_reviewed_once_and_the_watermark_only_grows(world: Merging) -> None:
    world.digested("one")
    world.live(AGE_S + INTERVAL_S)
    with world.in_old():
        world.digested("two")
    world.live(AGE_S + INTERVAL_S)
    with world.in_old():
        world.digested("three")
        world.digested("four")
    world.digested("five")
    assert world.watermark() == 1
    world.merge()
    assert world.rows("select seq, state, project_id from generations order by seq") == [
        (1, "reviewed", world.here.id), (2, "waiting", world.here.id), (3, "reviewed", world.here.id),
        (4, "waiting", world.here.id), (5, "waiting", world.here.id),
    ]  # fmt: skip
    assert world.watermark() == 1
    world.live(AGE_S + 2 * INTERVAL_S)
    assert set(world.states().values()) == {"reviewed"}
    assert world.watermark() == 5
    assert world.value("select count(*) from reviews") == 5
    assert world.rows("select x.finished_seq = max(g.seq) from sessions x join generations g on"
                      " g.stream_id = x.stream_id group by x.stream_id") == [(1,)] * 5  # fmt: skip
    check(world)


def test_a_review_in_flight_goes_on_in_the_target(world: Merging) -> None:
    with world.in_old():
        world.digested("one")
    world.tick(AGE_S + INTERVAL_S)
    leases = [lease for _ in range(4) for lease in world.claim(free=1)]
    assert "schedule_reviews" in [lease.kind for lease in leases]
    world.write(look, world.old.id, world.settings)
    world.promote()
    reviewing = world.claim(free=1)
    assert [lease.kind for lease in reviewing] == ["review_session"]
    assert world.states() == {1: "reviewing"}
    world.merge()
    world.live(AGE_S + INTERVAL_S)
    assert world.states() == {1: "reviewed"}
    assert world.value("select count(*) from reviews where completed_at is not null") == 1
    check(world)


# ---- erasing afterwards


def test_an_erase_after_the_merge_leaves_nothing_of_either(world: Merging) -> None:
    world.add("here", "The harbour opens at nine", subject="ana")
    with world.in_old():
        world.add("there", "The lighthouse closes at five", subject="ana")
        world.know("ana", "lives in", "Lisbon")
    world.merge()
    ana = world.read(find_subject, world.here.id, "ana")
    assert ana is not None
    world.write(erase, world.here.id, SubjectTarget(subject=ana))
    world.run_until_idle()
    assert world.value("select count(*) from events where content is not null") == 0
    assert world.value("select count(*) from facts") == 0
    assert world.read(find_postings, None, "lighthous", ("turn",)) == []
    assert world.value("select count(*) from subjects where name = 'ana'") == 0


def test_an_erased_thread_goes_from_what_the_merge_had_to_call_otherwise(world: Merging) -> None:
    world.add("anna.meier@example.com", "Blue")
    world.add("chat", "Green")
    with world.in_old():
        there = StreamTarget(stream=world.add("anna.meier@example.com", "Red")[0].stream)
        world.add("chat", "Yellow")
    world.merge()
    assert world.read(residue, world.here.id, there)["names in merges"] == 1
    world.write(erase, world.here.id, there)
    world.run_until_idle()
    assert world.value("select renamed from merges") == '[["thread", "chat", "chat~old"]]'
    assert set(world.read(residue, world.here.id, there).values()) == {0}


def test_erasing_the_target_takes_the_sources_name_and_keys(world: Merging) -> None:
    world.write(add_key, world.old.id, "laptop", b"hash")
    world.write(ensure_project, "new", bytes(32))
    world.write(begin_merge, "old", "new")
    world.run_until_idle()
    new = world.named("old")
    assert new.name == "new"
    world.write(erase, new.id, ProjectTarget())
    world.run_until_idle()
    assert world.read(find_project, "old") is None
    assert world.read(find_key, b"hash") is None
    assert world.value("select count(*) from projects where name in ('old', 'new')") == 0
    assert world.value("select count(*) from projects where secret = ?", OLD_SECRET) == 0
    assert world.value("select count(*) from merges where source_name = 'old'") == 0


# ---- those who follow


def test_a_follower_of_the_source_hears_all_that_it_had_not_heard(world: Merging) -> None:
    world.add("here", "Blue")
    with world.in_old():
        world.add("there", "Red")
        world.write(acknowledge, world.old.id, "mine", 1)
        world.add("later", "Green")
    world.merge()
    cursor = {c.name: c.cursor for c in world.read(list_consumers, world.here.id)}["mine"]
    rows, _ = world.read(read_changes, world.here.id, cursor, 100)
    told = [(kind, ref) for _, kind, _, _, ref, *_ in rows]
    assert told[0] == ("project.merged", f"prj_{world.old.id}")
    assert ("messages.appended", "later") in told
    check(world)


def test_a_change_is_named_alike_before_and_after_a_merge_and_no_other_one_is_named_so(world: Merging) -> None:
    """A receiver that keeps the names of what it did does nothing twice, and passes nothing by."""
    for n in range(4):
        world.add(f"here {n}", "Blue")
    with world.in_old():
        for n in range(5):
            world.add(f"there {n}", "Red")
        world.write(acknowledge, world.old.id, "slow", 0)
    before = {
        row[7]: row[4] for of in (world.old, world.here) for row in world.read(read_changes, of.id, 0, 100)[0]
    }  # fmt: skip
    world.merge()
    rows, _ = world.read(read_changes, world.here.id, 0, 100)
    after = {row[7]: row[4] for row in rows}
    assert len(after) == len(rows)
    assert {name: after[name] for name in before} == before
    check(world)


def test_a_plan_tells_what_would_move_and_changes_nothing(world: Merging) -> None:
    world.add("chat", "Blue")
    with world.in_old():
        world.add("chat", "Red", "Green")
    plan = world.read(plan_merge, "old", "default")
    assert (plan.rows["threads"], plan.rows["messages"], plan.same_threads, plan.same_subjects) == (1, 2, 1, 1)
    assert world.read(running_merges) == []


def test_a_webhook_goes_on_in_the_target_with_what_it_had_set_aside(world: Merging) -> None:
    hook = NewWebhook(name="crm", url="https://crm.example", secret="s" * 32)
    world.write(add_webhook, world.here.id, hook)
    for n in range(5):
        world.add("here", f"Blue {n}")
    with world.in_old():
        there = world.write(add_webhook, world.old.id, hook)
        world.add("set aside", "Red")
        world.add("heard", "Green")
        world.add("not heard", "White")
    world.do("insert into parked_changes(webhook_id, seq, reason, tries, at) values(?, 1, 'no', 5, 1)", there)
    world.do("update consumers set cursor = 2 where project_id = ? and name = 'webhook:crm'", world.old.id)
    world.merge()
    cursors = {c.name: c.cursor for c in world.read(list_consumers, world.here.id)}
    assert "webhook:crm~old" in cursors
    assert world.value("select name from webhooks where id = ?", there) == "crm~old"
    parked = world.value("select seq from parked_changes where webhook_id = ?", there)
    rows, _ = world.read(read_changes, world.here.id, 0, 100)
    refs = {seq: ref for seq, kind, _, _, ref, *_ in rows if kind == "messages.appended"}
    assert refs[parked] == "set aside"
    assert "not heard" in [ref for seq, ref in refs.items() if seq > cursors["webhook:crm~old"]]
    assert sorted(refs.values()) == sorted([*["here"] * 5, "set aside", "heard", "not heard"])
    check(world)


def test_a_webhook_that_lags_waits_for_the_merge_and_is_not_told_that_its_changes_are_gone(world: Merging) -> None:
    hook = NewWebhook(name="crm", url="https://crm.example", secret="s" * 32)
    with world.in_old():
        there = world.write(add_webhook, world.old.id, hook)
        world.add("heard", "Red")
        world.add("not heard", "Green")
    world.do("update consumers set cursor = 1 where project_id = ? and name = 'webhook:crm'", world.old.id)
    assert world.read(due_webhooks, "me") == [(world.old.id, there)]
    world.begin()
    merging = next(lease for lease in world.claim(free=4, slots=9) if lease.kind == "merge_projects")
    while world.value("select project_id from webhooks where id = ?", there) == world.old.id:
        assert world.read(due_webhooks, "me") == []
        assert world.read(next_batch, world.old.id, there) is None
        world.write(merge_chunk, merging, world.read(running_merges)[0].id)
    assert world.read(due_webhooks, "me") == [(world.here.id, there)]
    batch = world.read(next_batch, world.here.id, there)
    assert batch is not None
    assert "not heard" in [change[4] for change in batch.changes]


def test_what_was_parked_and_then_pruned_does_not_become_another_change(world: Merging) -> None:
    for n in range(3):
        world.add("here", f"Blue {n}")
    hook = NewWebhook(name="crm", url="https://crm.example", secret="s" * 32)
    with world.in_old():
        there = world.write(add_webhook, world.old.id, hook)
        for n in range(5):
            world.add(f"there {n}", "Red")
    head = world.value("select change_seq from projects where id = ?", world.old.id)
    gone = world.value("select change_seq from projects where id = ?", world.here.id) + 1
    world.do("delete from changes where project_id = ? and seq <= ?", world.old.id, gone)
    for seq in (gone, head):
        world.do("insert into parked_changes(webhook_id, seq, reason, tries, at) values(?, ?, 'no', 5, 1)", there, seq)
    world.do("update consumers set cursor = ? where project_id = ? and name = 'webhook:crm'", head, world.old.id)
    world.merge()
    parked = [seq for (seq,) in world.rows("select seq from parked_changes where webhook_id = ?", there)]
    rows, _ = world.read(read_changes, world.here.id, 0, 100)
    assert [ref for seq, _, _, _, ref, *_ in rows if seq in parked] == ["there 4"]
    assert len(parked) == 1
    merge = world.read(last_merge, world.here.id)
    assert merge is not None
    assert merge.moved["parked changes no longer kept"] == 1
    check(world)


def test_an_offer_never_stands_in_a_project_without_the_launch_that_it_gives(world: Merging) -> None:
    line = world.write(ensure_workstream, world.old.id, "login")
    packet = NewPacket(text="", start=0, through=0, shown=0, counted=0, erasure=0)
    launch = world.write(prepare_with_packet, NewLaunch(
        project=world.old.id, workstream=line.id, key_hash="k", request_hash="r", agent="codex", owner="me",
        directory="/code/app", worktree="/code/app", branch=None, fingerprint="{}", chosen_because="", resumes=None,
        packet=packet,
    ))  # fmt: skip
    assert launch is not None
    world.write(cancel_launch, world.old.id, launch.id, launch.fence)
    world.do(
        "insert into offers(project_id, agent, native_id, epoch, launch_id, items, body, state, offered_at)"
        " values(?, 'codex', 'one', 0, ?, '[]', '', 'shown', 1)", world.old.id, launch.id,
    )  # fmt: skip
    world.begin()
    merging = next(lease for lease in world.claim(free=4, slots=9) if lease.kind == "merge_projects")
    more = True
    while more:
        more = world.write(merge_chunk, merging, world.read(running_merges)[0].id)
        assert world.value(
            "select count(*) from offers o join launches l on l.id = o.launch_id"
            " where o.project_id = ? and l.project_id <> o.project_id", world.here.id,
        ) == 0  # fmt: skip
    check(world)


def test_one_handoff_of_a_worktree_stays_open_and_what_both_proposed_is_proposed_once(world: Merging) -> None:
    for n, where in enumerate((world.old, world.here)):
        world.project = where
        for session in ("one", "two"):
            world.digested(f"{session}-{n}")
    world.project = world.here
    world.do("update handoffs set worktree = '/code/app', state = 'open', replaced_by = null")
    world.live(AGE_S + INTERVAL_S)
    staged = world.rows("select project_id, fingerprint from proposals where state = 'staged'")
    assert len(staged) == 2 * len({fingerprint for _, fingerprint in staged}) > 0
    world.merge()
    assert world.value("select count(*) from handoffs where state = 'open'") == 1
    assert world.value("select max(created_at) from handoffs") == world.value(
        "select created_at from handoffs where state = 'open'"
    )
    states = world.rows("select state, count(*) from proposals group by state order by state")
    assert states == [("staged", len(staged) // 2), ("superseded", len(staged) // 2)]


def test_workstreams_of_one_name_are_kept_apart_with_their_places(world: Merging) -> None:
    here = world.write(ensure_workstream, world.here.id, "login")
    there = world.write(ensure_workstream, world.old.id, "login")
    world.write(select_workstream, world.here.id, here.id, "/code/app")
    for place in ("/code/app", "/code/b"):
        world.write(select_workstream, world.old.id, there.id, place)
    world.add("chat", "Blue")
    world.add("more", "Blue")
    world.merge()
    assert world.rows("select name from workstreams order by id") == [("login",), ("login~old",)]
    assert world.rows("select place, workstream_id from workstream_selections order by place") == [
        ("/code/app", here.id), ("/code/b", there.id),
    ]  # fmt: skip
    check(world)


def test_a_late_write_of_somebody_who_had_read_the_source_before_is_brought_too(world: Merging) -> None:
    with world.in_old():
        thread = world.add("chat", "Blue")[0].stream
    world.begin()
    merging = next(lease for lease in world.claim(free=4, slots=9) if lease.kind == "merge_projects")
    merge = world.read(running_merges)[0]
    while world.value("select project_id from streams where id = ?", thread) == world.old.id:
        world.write(merge_chunk, merging, merge.id)
    ana = world.value("select subject_id from streams where id = ?", thread)
    world.do(
        "insert into streams(project_id, subject_id, lane_id, kind, name, created_at)"
        " select ?, ?, lane_id, 'thread', 'late', 1 from streams where id = ?", world.old.id, ana, thread,
    )  # fmt: skip
    while world.write(merge_chunk, merging, merge.id):
        pass
    assert world.stream("late") > thread
    assert world.left_in_old() == {}


def test_the_wiki_of_the_source_goes_with_the_first_erase_in_the_target(world: Merging) -> None:
    with world.in_old():
        stream = world.add("chat", "Blue")[0].stream
    identity = f"{world.old.id}.{world.old.created_at}"
    world.merge()
    assert world.old.id not in [state.project for state in world.read(wiki_states)]
    assert not world.read(project_is_erased, identity)
    world.write(erase, world.here.id, StreamTarget(stream=stream))
    assert world.read(project_is_erased, identity)


def test_a_key_of_either_may_name_both_and_no_other(world: Merging) -> None:
    world.merge()
    caller = Caller(project="old", also=world.read(names_of, "old"))
    assert [caller.confine(name) for name in ("old", "default")] == ["old", "default"]
    with pytest.raises(Forbidden):
        caller.confine("another")


def test_changes_are_followed_under_the_targets_name(tmp_path: Path) -> None:
    async def go() -> None:
        async with AsyncMemory.open(tmp_path) as memory:
            await memory.create_project("old")
            await memory.merge_project("old", into="default")
            assert await memory.settle(timeout_s=30)
            async with AsyncMemory.open(tmp_path, project="old", worker=False) as old:
                with pytest.raises(CursorExpired, match="'default'"):
                    await old.changes(after=0)
                with pytest.raises(CursorExpired, match="'default'"):
                    await old.ack("mine", 1)
            assert "project.merged" in [change.kind for change in (await memory.changes(after=0)).changes]

    asyncio.run(go())


def test_whoever_had_opened_the_source_before_writes_nothing_that_nobody_finds(tmp_path: Path) -> None:
    async def go() -> None:
        async with AsyncMemory.open(tmp_path) as memory:
            await memory.create_project("old")
        async with AsyncMemory.open(tmp_path) as memory, AsyncMemory.open(tmp_path, project="old", worker=False) as old:
            service: Any = old._service
            await memory.merge_project("old", into="default")
            assert await memory.settle(timeout_s=30)
            here = Checkout(cwd="/code/app", top="/code/app")
            for write in (
                service.create_workstream("login"), service.prepare_launch("me", checkout=here, agent="codex", key="k"),
                service.lease_consumer("mine", owner="me"), service.ack("mine", 0), service.replay_consumer("mine", 0),
                service.add_webhook("crm", "https://93.184.216.34/hook"),
                service.remember("Ana owns a boat", subject="ana"),
            ):  # fmt: skip
                with pytest.raises(Conflict, match="merged into 'default'"):
                    await write

    asyncio.run(go())


def test_a_workstream_and_a_follower_that_came_late_are_brought_too(world: Merging) -> None:
    world.begin()
    merging = next(lease for lease in world.claim(free=4, slots=9) if lease.kind == "merge_projects")
    merge = world.read(running_merges)[0]
    while world.value("select count(*) from consumers where project_id = ?", world.old.id) > 0:
        world.write(merge_chunk, merging, merge.id)
    for sql in (
        "insert into workstreams(project_id, name, created_at) values(?, 'late', 1)",
        "insert into consumers(project_id, name, created_at) values(?, 'late', 1)",
        "insert into offers(project_id, agent, native_id, epoch, items, body, state, offered_at)"
        " values(?, 'codex', 'one', 0, '[]', '', 'shown', 1)",
    ):
        world.do(sql, world.old.id)
    while world.write(merge_chunk, merging, merge.id):
        pass
    assert world.left_in_old() == {}


@pytest.mark.parametrize("first", ["ana", "annie"])
def test_what_a_hand_said_of_two_names_in_the_source_holds_for_those_of_the_target(world: Merging, first: str) -> None:
    other = {"ana": "annie", "annie": "ana"}[first]
    with world.in_old():
        for name in (first, other):
            world.know("ana", "owns", f"a boat of {name}", entity=name, key=name)
        ids = dict(world.rows("select norm, id from entities where norm in ('ana', 'annie')"))
        world.write(merge_entities, world.old.id, ids["annie"], ids["ana"], "me")
    for name in ("ana", "annie"):
        world.know("ana", "lives in", f"the town of {name}", entity=name, key=f"here {name}")
    world.merge()
    rows = world.rows(
        "select e.norm, c.norm from entities e left join entities c on c.id = e.merged_into"
        " where e.norm in ('ana', 'annie') order by e.norm"
    )
    assert rows == [("ana", None), ("annie", "ana")]
    assert world.value("select count(*) from entities e where e.merged_into not in (select id from entities)") == 0
    check(world)
