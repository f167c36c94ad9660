"""One live launch a workstream: prepared, kept by heartbeats, taken over when its lease ends, fenced off (I04)."""

from __future__ import annotations

import pytest
from tests.stubs.line_of_work import CLAUDE, HERE, OWNER, LineOfWork, prompt, said, text_of

from everkept.errors import Conflict, InvalidInput, KeyConflict, LeaseLost, NotFound
from everkept.store.tables import metadata


def test_a_launch_without_a_workstream_makes_one_and_the_next_continues_it(line: LineOfWork) -> None:
    first = line.prepare("k1")
    assert (first.workstream, first.state, first.agent) == ("app/main", "prepared", "claude-code")
    assert "called after folder and branch" in first.chosen_because
    line.finish(first)
    second = line.prepare("k2")
    assert (second.workstream_id, second.fence) == (first.workstream_id, first.fence + 1)
    assert "selected in this worktree" in second.chosen_because


def test_a_named_workstream_is_taken_whatever_is_selected_and_an_unknown_one_is_an_error(line: LineOfWork) -> None:
    line.desk.run(line.service.create_workstream("docs"))
    line.desk.run(line.service.create_workstream("login", place="/code/app"))
    assert line.prepare("k1", workstream="docs").workstream == "docs"
    assert line.prepare("k2").workstream == "login"
    with pytest.raises(NotFound, match="no workstream 'else'"):
        line.prepare("k3", workstream="else")


def test_the_agent_is_the_last_one_that_is_available_else_the_first(line: LineOfWork) -> None:
    line.worked(agent="codex", key="k1")
    again = line.prepare("k2", agent=None, available=["claude-code", "codex"])
    assert (again.agent, "codex ran last" in again.chosen_because) == ("codex", True)
    line.finish(again)
    other = line.prepare("k3", agent=None, available=["gemini", "claude-code"])
    assert (other.agent, "first that is available" in other.chosen_because) == ("gemini", True)
    with pytest.raises(InvalidInput, match="name an agent"):
        line.prepare("k4", agent=None)


def test_a_second_launch_is_told_who_holds_the_workstream_and_until_when(line: LineOfWork) -> None:
    held = line.prepare("k1")
    with pytest.raises(Conflict) as refused:
        line.prepare("k2", owner="bo@desk/2")
    assert refused.value.details["holder"] == OWNER
    assert refused.value.details["launch"] == held.id
    assert refused.value.details["lease_until"] == held.lease_until.replace(microsecond=0).isoformat()
    assert line.rows("select count(*) from launches") == [(1,)]


def test_the_same_key_is_the_same_launch_with_the_same_bytes(line: LineOfWork) -> None:
    line.worked(prompt("Build the login"), said("It is built"), key="k1")
    first = line.prepare("k2", agent="codex")
    line.desk.run(line.service.heartbeat_launch(first.id, fence=first.fence))
    line.tell(first, prompt("And the docs", "0199dddd-1111-7222-8333-444455556666", "codex"))
    again = line.prepare("k2", agent="codex")
    assert (again.id, again.fence, text_of(again)) == (first.id, first.fence, text_of(first))
    assert "Build the login" in text_of(again)
    with pytest.raises(KeyConflict):
        line.prepare("k2", agent="gemini")


def test_the_key_of_another_owner_is_another_key(line: LineOfWork) -> None:
    first = line.prepare("k1")
    line.finish(first)
    assert line.prepare("k1", owner="bo@desk/2").id != first.id


def test_heartbeats_keep_a_lease_and_none_brings_back_one_that_ended(line: LineOfWork) -> None:
    launch = line.prepare("k1")
    for _ in range(5):
        line.clock.advance(60)
        assert line.desk.run(line.service.heartbeat_launch(launch.id, fence=launch.fence)).state == "running"
    line.clock.advance(91)
    assert line.desk.run(line.service.get_launch(launch.id)).state == "expired"
    with pytest.raises(LeaseLost, match="prepare it again with the same key"):
        line.desk.run(line.service.heartbeat_launch(launch.id, fence=launch.fence))


def test_a_holder_back_from_sleep_takes_its_free_lease_again_under_a_new_fence(line: LineOfWork) -> None:
    launch = line.prepare("k1")
    line.clock.advance(3_600)
    again = line.prepare("k1")
    assert (again.id, again.state, again.fence) == (launch.id, "prepared", launch.fence + 1)
    with pytest.raises(LeaseLost):
        line.desk.run(line.service.heartbeat_launch(launch.id, fence=launch.fence))
    assert line.desk.run(line.service.heartbeat_launch(again.id, fence=again.fence)).state == "running"


def test_a_take_over_fences_the_old_holder_off(line: LineOfWork) -> None:
    """I04: it may tell what happened, and changes nothing else."""
    old = line.prepare("k1")
    line.tell(old, prompt("Build it"))
    line.clock.advance(91)
    new = line.prepare("k2", owner="bo@desk/2", agent="codex")
    assert new.fence == old.fence + 1
    for refused in (
        line.service.heartbeat_launch(old.id, fence=old.fence),
        line.service.cancel_launch(old.id, fence=old.fence),
        line.service.accept_launch(old.id),
    ):
        with pytest.raises(LeaseLost):
            line.desk.run(refused)
    with pytest.raises(Conflict):
        line.prepare("k1")
    late = line.finish(old, events=[said("It is built")], source_cursor="120", native_session=CLAUDE, exit_code=0)
    assert (late.cursor, late.launch.state, late.sessions[0].stored) == ("refused", "lost", 1)
    assert line.texts() == ["Build it", "It is built"]
    assert line.desk.run(line.service.get_launch(new.id)).state == "prepared"
    assert line.rows("select source_cursor from workstream_cursors where source_cursor is not null") == []


def test_who_lost_its_lease_takes_it_again_once_it_is_free(line: LineOfWork) -> None:
    old = line.prepare("k1")
    line.clock.advance(91)
    line.finish(line.prepare("k2", owner="bo@desk/2"))
    again = line.prepare("k1")
    assert (again.id, again.state, again.fence) == (old.id, "running", old.fence + 2)


def test_cancelling_frees_the_workstream_and_is_refused_after_a_finish(line: LineOfWork) -> None:
    launch = line.prepare("k1")
    for _ in range(2):
        assert line.desk.run(line.service.cancel_launch(launch.id, fence=launch.fence)).state == "cancelled"
    other = line.prepare("k2")
    line.finish(other)
    with pytest.raises(Conflict, match="finished already"):
        line.desk.run(line.service.cancel_launch(other.id, fence=other.fence))
    with pytest.raises(Conflict, match="nobody was given its packet"):
        line.accept(launch)


def test_the_database_itself_refuses_a_second_live_launch(line: LineOfWork) -> None:
    line.prepare("k1")
    columns = ", ".join(c.name for c in metadata.tables["launches"].c if c.name not in ("id", "key_hash"))
    sql = f"insert into launches(key_hash, {columns}) select 'other', {columns} from launches"
    with pytest.raises(Exception, match=r"UNIQUE constraint failed: launches\.workstream_id|uq_launches_live"):
        line.desk.app.parts.store.write_now(lambda conn: conn.raw.execute(sql))


def test_where_the_agent_works_is_kept_with_its_launch(line: LineOfWork) -> None:
    launch = line.prepare("k1")
    assert (launch.directory, launch.worktree, launch.branch) == (HERE.cwd, HERE.top, HERE.branch)
    (kept,) = line.rows("select fingerprint from launches")
    assert "example.com/acme/app" in kept[0]


def test_a_launch_of_a_project_that_was_merged_goes_on_under_the_keys_that_it_had(line: LineOfWork) -> None:
    """Its lease had ended, so that the merge did not wait for it."""
    here = line.service
    line.desk.run(here.create_project("old"))
    line.service = line.desk.run(line.desk.app.service("old"))
    for n in range(20):  # else the ledger of the source would be ahead of the target's changes
        line.desk.run(here.create_workstream(f"line {n}"))
    events = [prompt("Mend the login"), said("It is mended")]
    launch = line.prepare("k1")
    line.tell(launch, *events, key="batch-1")
    with pytest.raises(Conflict, match="an agent is at work"):
        line.desk.run(here.merge_project("old", into="default"))
    line.clock.advance(91)
    line.desk.run(here.merge_project("old", into="default"))
    line.desk.settle()
    line.service = line.desk.run(line.desk.app.service("old"))
    again = line.prepare("k1")
    assert (again.id, again.fence) == (launch.id, launch.fence + 1)
    assert line.tell(again, *events, key="batch-1").acknowledged == 2
    with pytest.raises(KeyConflict):
        line.tell(again, *events, prompt("And the docs"), key="batch-1")
    with pytest.raises(Conflict, match="was another one"):
        line.tell(again, prompt("And the docs"), first=2)
    assert line.tell(again, prompt("And the docs"), first=3, key="batch-2").acknowledged == 3
    assert line.finish(again).launch.state == "finished"
