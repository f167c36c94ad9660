"""The end of a launch is told once, however often it is sent, and loses no event (I03, I04)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.stubs.line_of_work import CLAUDE, CODEX, LineOfWork, prompt, said

from everkept.domain.ids import parse_row_id
from everkept.errors import Conflict, KeyConflict
from everkept.store.connection import Connection
from everkept.store.launch_events import AHEAD_AT_ONCE, note_events
from everkept.store.launches import get_launch


def cursor(line: LineOfWork, agent: str = "claude-code") -> list[str | None]:
    return [r[0] for r in line.rows(f"select source_cursor from workstream_cursors where agent = '{agent}'")]


def test_a_second_finish_adds_the_events_that_the_first_did_not_carry(line: LineOfWork) -> None:
    """I03."""
    launch = line.prepare("k1")
    first = line.finish(launch, events=[prompt("Build it")], exit_code=0, native_session=CLAUDE, source_cursor="10")
    again = line.finish(launch, events=[prompt("Build it"), said("Built")], exit_code=1, source_cursor="20")
    assert (first.cursor, first.sessions[0].stored) == ("taken", 1)
    assert (again.cursor, again.sessions[0].stored, again.sessions[0].known) == ("kept", 1, 1)
    assert (again.launch.exit_code, cursor(line)) == (0, ["10"])
    assert line.texts() == ["Build it", "Built"]


def test_a_finish_that_told_neither_leaves_both_to_the_next(line: LineOfWork) -> None:
    launch = line.prepare("k1")
    assert line.finish(launch).cursor == "none"
    second = line.finish(launch, exit_code=3, native_session=CLAUDE, source_cursor="10")
    assert (second.cursor, second.launch.exit_code, cursor(line)) == ("taken", 3, ["10"])
    assert line.finish(launch, source_cursor="10", native_session=CLAUDE).cursor == "taken"


def test_a_late_cursor_is_refused_once_the_workstream_was_leased_again(line: LineOfWork) -> None:
    """Otherwise a source cursor would go back."""
    old = line.prepare("k1", native_session=CLAUDE)
    line.finish(old)
    new = line.prepare("k2", native_session=CLAUDE)
    assert line.finish(new, source_cursor="20").cursor == "taken"
    assert line.finish(old, source_cursor="10").cursor == "refused"
    assert cursor(line) == ["20"]
    assert line.prepare("k3", native_session=CLAUDE).source_cursor == "20"


def test_the_source_cursor_comes_with_the_completing_batch_alone(line: LineOfWork) -> None:
    launch = line.prepare("k1")
    line.tell(launch, prompt("First"), first=1)
    line.tell(launch, said("Third"), first=3)
    early = line.finish(launch, native_session=CLAUDE, source_cursor="30")
    assert (early.cursor, "event 2" in early.because) == ("refused", True)
    full = line.finish(launch, events=[said("Second")], first=2, native_session=CLAUDE, source_cursor="30")
    assert (full.cursor, full.launch.acknowledged) == ("taken", 3)


def test_batches_are_acknowledged_without_a_gap_and_may_be_sent_again(line: LineOfWork) -> None:
    launch = line.prepare("k1")
    assert line.tell(launch, prompt("One"), prompt("Two"), first=1, key="d1").acknowledged == 2
    assert line.tell(launch, prompt("Four"), first=4, key="d3").acknowledged == 2
    assert line.tell(launch, prompt("Three"), first=3, key="d2").acknowledged == 4
    again = line.tell(launch, prompt("One"), prompt("Two"), first=1, key="d1")
    assert (again.acknowledged, again.sessions[0].stored) == (4, 0)
    assert line.texts() == ["One", "Two", "Four", "Three"]
    with pytest.raises(KeyConflict):
        line.tell(launch, prompt("Else"), first=5, key="d1")
    with pytest.raises(Conflict, match="event 2 of lch_1 was another one"):
        line.tell(launch, prompt("Else"), first=2)
    assert len(line.texts()) == 4


def test_events_go_through_the_one_way_in(line: LineOfWork) -> None:
    """Redacted, under natural keys: a hook that tells of the same prompt adds nothing."""
    launch = line.prepare("k1")
    key = "AKIA" + "Z7VRSQ5TJN2XMHIO"
    line.tell(launch, prompt(f"Use {key} for it"))
    (told,) = line.texts()
    assert key not in told
    assert line.rows("select count(*) from natural_keys where payload_hash not in ('session')") == [(1,)]


def test_finishing_has_the_sessions_digested_at_once(line: LineOfWork) -> None:
    launch = line.prepare("k1")
    line.tell(launch, prompt("Fix the failing login test of the whole suite, please, and tell me how"))
    line.finish(launch)
    line.desk.settle(1)
    assert line.rows("select digested_seq from sessions") == [(1,)]


def test_a_finish_names_a_session_that_nobody_has_heard_of_yet(line: LineOfWork) -> None:
    """Its events come later, by an import: they belong to the workstream all the same."""
    launch = line.prepare("k1", agent="codex")
    line.finish(launch, native_session=CODEX)
    (linked,) = line.desk.run(line.service.get_workstream("app/main")).sessions
    assert (linked.native_id, linked.session_id, linked.launch_id) == (CODEX, None, launch.id)
    ingest = line.desk.app.ingest(project="default", confined=True)
    line.desk.run(ingest.events([prompt("Imported", CODEX, "codex")], origin="import"))
    assert line.texts() == ["Imported"]


def test_however_many_events_wait_behind_a_gap_a_batch_reads_few_of_them(
    line: LineOfWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch, many = line.prepare("k1"), 3 * AHEAD_AT_ONCE
    read: list[int] = []
    rows = Connection.rows

    def counted(conn: Connection, *asked: Any) -> Any:
        found = rows(conn, *asked)
        read.append(len(found))
        return found

    def note(conn: Connection, keys: list[str], first: int) -> int:
        row = get_launch(conn, line.service._project_id, parse_row_id("lch", launch.id))
        with monkeypatch.context() as patch:
            patch.setattr(Connection, "rows", counted)
            return note_events(conn, row, keys, first)

    def noted(keys: list[str], first: int) -> int:
        return line.desk.run(line.desk.app.parts.store.write(note, keys, first))

    assert noted([f"k{n}" for n in range(many)], 2) == 0
    read.clear()
    assert noted(["last"], many + 2) == 0
    assert sum(read) <= AHEAD_AT_ONCE
    assert noted(["first"], 1) == many + 2
