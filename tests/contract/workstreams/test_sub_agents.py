"""Sub-agents of a session that is linked to a workstream: they belong to it, whenever they came."""

from __future__ import annotations

from typing import Final

import pytest
from tests.stubs.line_of_work import CLAUDE, CODEX, OTHER, LineOfWork, prompt, text_of

from everkept.domain.erase import StreamTarget
from everkept.domain.session import AgentEvent
from everkept.store.connection import Connection
from everkept.store.launch_sessions import NativeSession, link_session

SESSIONS_ONE_LAUNCH: Final = "select native_id from launch_sessions where launch_id = 1 order by stream_id"


def told(line: LineOfWork, *events: AgentEvent) -> None:
    """Before any launch knows of their sessions."""
    line.desk.run(line.desk.app.ingest(project="default", confined=True).events(list(events)))


def test_sub_agents_of_a_session_that_is_linked_late_are_linked_with_it(line: LineOfWork) -> None:
    told(
        line, prompt("Build the login"), prompt("Look for the form", OTHER, parent=CLAUDE),
        prompt("Read the style", "below", parent=OTHER), prompt("Nobody's", CODEX),
    )  # fmt: skip
    launch = line.prepare("k1")
    line.finish(launch, native_session=CLAUDE)
    assert line.texts() == ["Build the login", "Look for the form", "Read the style"]
    line.finish(launch, native_session=CLAUDE)
    assert line.rows("select count(*) from launch_sessions") == [(3,)]
    assert line.rows("select count(*) from changes where kind = 'workstream.linked'") == [(3,)]
    assert text_of(line.prepare("k2", native_session=CLAUDE)) == "", "they are its own"


def test_a_sub_agent_that_told_before_its_parent_is_linked_when_that_comes(line: LineOfWork) -> None:
    told(line, prompt("Look for the form", OTHER, parent=CLAUDE))
    launch = line.prepare("k1")
    line.tell(launch, prompt("Build the login"))
    assert sorted(line.texts()) == ["Build the login", "Look for the form"]


def test_a_session_whose_parent_is_told_late_is_linked_once_it_is(line: LineOfWork) -> None:
    told(line, prompt("Look for the form", OTHER))
    line.tell(line.prepare("k1"), prompt("Build the login"))
    told(line, prompt("It is found", OTHER, parent=CLAUDE))
    assert line.texts() == ["Build the login", "Look for the form", "It is found"]


def test_an_erased_sub_agent_is_not_linked(line: LineOfWork) -> None:
    told(line, prompt("Build the login"), prompt("Look for the form", OTHER, parent=CLAUDE))
    ((stream,),) = line.rows(f"select stream_id from sessions where native_id = '{OTHER}'")
    line.erase(StreamTarget(stream=stream))
    line.finish(line.prepare("k1"), native_session=CLAUDE)
    assert line.texts() == ["Build the login"]
    assert [native for (native,) in line.rows(SESSIONS_ONE_LAUNCH)] == [CLAUDE]


def test_sub_agents_that_are_called_alike_belong_each_to_its_own_parent(line: LineOfWork) -> None:
    told(
        line, prompt("Build the login"), prompt("Of the login", "explore", parent=CLAUDE),
        prompt("Write the docs", OTHER), prompt("Of the docs", "explore", parent=OTHER),
    )  # fmt: skip
    line.finish(line.prepare("k1"), native_session=CLAUDE)
    assert line.texts() == ["Build the login", "Of the login"]


def test_a_session_that_names_itself_as_its_parent_is_nobodys_sub_agent(line: LineOfWork) -> None:
    launch = line.prepare("k1")
    line.tell(launch, prompt("Build the login", parent=CLAUDE))
    assert line.rows("select native_id, parent from sessions") == [(CLAUDE, None)]
    assert line.rows("select native_id from launches") == [(CLAUDE,)], "the packet was for it"


def test_sessions_that_name_each_other_as_their_parents_are_linked_once(line: LineOfWork) -> None:
    told(line, prompt("One", OTHER, parent=CLAUDE), prompt("Two", parent=OTHER))
    line.finish(line.prepare("k1"), native_session=CLAUDE)
    assert sorted(line.texts()) == ["One", "Two"]


@pytest.mark.only_on("sqlite", reason="it asks SQLite for its plan; PostgreSQL's are guarded at their full size")
def test_sub_agents_are_found_by_an_index(line: LineOfWork) -> None:
    told(line, prompt("Build the login"))
    launch = line.prepare("k1")
    plans: list[str] = []

    def link(conn: Connection) -> None:
        conn.raw.set_trace_callback(plans.append)
        link_session(conn, 1, NativeSession(agent="claude-code", native=CLAUDE, stream=1), 1)
        conn.raw.set_trace_callback(None)
        statement = next(sql for sql in plans if "recursive below" in sql)
        plans[:] = [row[3] for row in conn.raw.execute(f"explain query plan {statement}")]

    line.desk.run(line.desk.app.parts.store.write(link))
    assert launch.id == "lch_1"
    assert any("ix_sessions_parent" in step for step in plans), plans
    assert not any(step.startswith("SCAN") and "sessions" in step for step in plans)


def test_all_that_a_launch_linked_are_digested_when_it_ends(line: LineOfWork) -> None:
    """However many: none of the commits has more of them than a few."""
    told(line, prompt("Build the login"), *(prompt(f"Part {n}", f"part{n}", parent=CLAUDE) for n in range(60)))
    line.finish(line.prepare("k1"), native_session=CLAUDE)
    assert line.rows("select count(*) from streams where end_through = last_seq") == [(61,)]
