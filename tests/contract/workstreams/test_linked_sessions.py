"""The sessions of a workstream as they are listed: however many they are, a page at a time."""

from __future__ import annotations

from tests.stubs.line_of_work import CLAUDE, CODEX, OTHER, LineOfWork, prompt

from everkept.api import workstream_views as w
from everkept.doors.cli.launch_tail import _linked_sessions


def listed(line: LineOfWork, *, limit: int = 50, launch: str | None = None) -> list[list[str]]:
    """The pages, as the agents call their sessions."""
    pages, cursor = [], None
    while True:
        page = line.desk.run(
            line.service.list_linked_sessions("app/main", launch=launch, limit=limit, cursor=cursor)
        )  # fmt: skip
        pages.append([one.native_id for one in page.items])
        cursor = page.next_cursor
        if cursor is None:
            return pages


def shown(line: LineOfWork) -> w.Workstream:
    return line.desk.run(line.service.get_workstream("app/main"))


def with_parts(line: LineOfWork, count: int) -> None:
    parts = [prompt(f"Part {n}", f"part{n}", parent=CLAUDE) for n in range(1, count)]
    line.worked(prompt("Build the login"), *parts, key="k1")


def test_sessions_are_listed_a_page_at_a_time_the_newest_first(line: LineOfWork) -> None:
    with_parts(line, 5)
    assert listed(line, limit=2) == [["part4", "part3"], ["part2", "part1"], [CLAUDE]]
    assert listed(line, limit=1) == [["part4"], ["part3"], ["part2"], ["part1"], [CLAUDE]]
    assert listed(line, limit=5) == [["part4", "part3", "part2", "part1", CLAUDE]]


def test_a_workstream_shows_the_newest_of_many_sessions_and_says_how_many_there_are(line: LineOfWork) -> None:
    with_parts(line, 30)
    found = shown(line)
    assert (found.session_count, len(found.sessions), found.sessions[0].native_id) == (30, 20, "part29")
    (in_list,) = line.desk.run(line.service.list_workstreams()).items
    assert (in_list.session_count, in_list.sessions) == (30, [])


def test_sessions_that_nobody_has_heard_come_first_and_leave_room_for_others(line: LineOfWork) -> None:
    with_parts(line, 3)
    launch = line.prepare("k2", agent="codex")
    for native in (CODEX, OTHER):
        line.finish(launch, native_session=native)
    first, *others = listed(line, limit=2)
    assert (first[0] in (CODEX, OTHER), first[1], others) == (True, "part2", [["part1", CLAUDE]])
    assert sorted(listed(line)[0][:2]) == sorted([CODEX, OTHER])
    assert shown(line).session_count == 5


def test_a_session_that_is_resumed_is_of_both_launches_and_shown_once_with_the_last(line: LineOfWork) -> None:
    line.worked(prompt("Build the login"), key="k1")
    again = line.prepare("k2", native_session=CLAUDE)
    line.tell(again, prompt("Go on"), prompt("Look for the form", OTHER, parent=CLAUDE))
    assert [(one.native_id, one.launch_id) for one in shown(line).sessions] == [(OTHER, "lch_2"), (CLAUDE, "lch_2")]
    assert (listed(line, launch="lch_1"), listed(line, launch="lch_2")) == ([[OTHER, CLAUDE]], [[OTHER, CLAUDE]])
    assert shown(line).session_count == 2


def test_the_tail_of_a_launch_is_read_from_all_its_sessions(line: LineOfWork) -> None:
    """Also from one that is resumed, which an earlier launch had linked first."""
    line.worked(prompt("Build the login"), key="k1")
    again = line.prepare("k2", native_session=CLAUDE)
    line.tell(again, prompt("Go on"), prompt("Look for the form", OTHER, parent=CLAUDE))
    linked = line.desk.run(_linked_sessions(line.service, again.workstream_id, again.id))
    assert linked == {CLAUDE, OTHER}
