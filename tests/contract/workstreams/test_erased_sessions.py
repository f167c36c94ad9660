"""What is erased is in no ledger, packet or offer any more, from the commit on that hides it (G10)."""

from __future__ import annotations

import pytest
from tests.stubs.line_of_work import CLAUDE, CODEX, LineOfWork, prompt, said, text_of

from everkept.domain.erase import EventTarget, ProjectTarget, StreamTarget, SubjectTarget, Target
from everkept.domain.ids import parse_event_id, parse_row_id
from everkept.errors import NotFound, PacketGone
from everkept.store.tables import metadata

SECRET_WORD = "Plumtree"


def worked(line: LineOfWork) -> None:
    line.worked(prompt(f"Build the {SECRET_WORD} login"), said("It is built"), key="k1")
    line.worked(prompt("Write the docs", CODEX, "codex"), agent="codex", key="k2")


def session_of_word(line: LineOfWork) -> StreamTarget:
    return StreamTarget(stream=parse_row_id("ses", line.events(query=SECRET_WORD)[0].session_id))


def event_of_word(line: LineOfWork) -> EventTarget:
    stream, seq = parse_event_id(line.events(query=SECRET_WORD)[0].event_id)
    return EventTarget(stream=stream, seq=seq)


def found_anywhere(line: LineOfWork) -> list[str]:
    """Tables that hold the word."""
    tables = [table.name for table in metadata.sorted_tables]
    return [
        t for t in tables
        if any(SECRET_WORD.lower() in repr(row).lower() for row in line.rows(f'select * from "{t}"'))
    ]  # fmt: skip


def test_a_packet_of_what_was_erased_is_gone_at_once_and_has_a_successor(line: LineOfWork) -> None:
    worked(line)
    launch = line.prepare("k3", agent="gemini")
    assert SECRET_WORD in text_of(launch)
    line.erase(event_of_word(line))
    with pytest.raises(PacketGone) as gone:
        line.accept(launch)
    successor = gone.value.details["successor"]
    assert launch.packet is not None
    assert (successor["start"], successor["through"]) == (launch.packet.start, launch.packet.through)
    assert SECRET_WORD not in successor["text"]
    assert "It is built" in successor["text"]
    assert line.accept(launch).accepted_at is not None
    assert line.desk.run(line.service.get_launch(launch.id)).offer == successor["offer"]


def test_preparing_again_after_an_erase_gives_what_remains(line: LineOfWork) -> None:
    worked(line)
    launch = line.prepare("k3", agent="gemini")
    line.erase(session_of_word(line))
    again = line.prepare("k3", agent="gemini")
    assert (again.id, again.fence) == (launch.id, launch.fence)
    assert SECRET_WORD not in text_of(again)
    assert "Write the docs" in text_of(again)
    assert text_of(line.prepare("k3", agent="gemini")) == text_of(again)


def test_an_erased_session_leaves_no_row_of_it(line: LineOfWork) -> None:
    worked(line)
    line.prepare("k3", native_session=CLAUDE)
    target = session_of_word(line)
    line.erase(target)
    assert [e.text for e in line.events()] == ["Write the docs"]
    line.desk.settle()
    assert found_anywhere(line) == []
    assert line.left_of(target) == {}
    for table in ("launch_sessions", "workstream_cursors", "launches"):
        assert CLAUDE not in repr(line.rows(f"select * from {table}"))
    assert line.rows("select done_at is not null, residue from erasures") == [(1, 0)]


@pytest.mark.parametrize("owner", [False, True])
def test_an_erase_takes_what_a_launch_read_of_the_session_that_it_made(line: LineOfWork, owner: bool) -> None:
    launch = line.prepare("k1")
    line.accept(launch)
    line.tell(launch, prompt(f"Build the {SECRET_WORD} login"))
    line.finish(launch, exit_code=0, native_session=CLAUDE, source_cursor=f"/home/ana/.claude/{CLAUDE}.jsonl")
    erased_without_a_trace(line, owner=owner)


@pytest.mark.parametrize("owner", [False, True])
def test_an_erase_takes_the_name_of_a_session_that_was_only_to_be_resumed(line: LineOfWork, owner: bool) -> None:
    worked(line)
    for name in ("another", "a third one"):
        line.desk.run(line.service.create_workstream(name))
    line.prepare("k3", native_session=CLAUDE, workstream="another")
    line.accept(line.prepare("k4", workstream="a third one"), native_session=CLAUDE)
    erased_without_a_trace(line, owner=owner)


def erased_without_a_trace(line: LineOfWork, *, owner: bool) -> None:
    target: Target = session_of_word(line)
    if owner:
        target = SubjectTarget(subject=line.rows("select id from subjects order by id limit 1")[0][0])
    assert line.left_of(target)["receivers"] > 0
    line.erase(target)
    line.desk.settle()
    for table in ("launch_sessions", "workstream_cursors", "launches"):
        assert CLAUDE not in repr(line.rows(f"select * from {table}"))
    assert line.left_of(target) == {}


def test_erasing_an_owner_leaves_workstreams_without_sessions(line: LineOfWork) -> None:
    worked(line)
    line.prepare("k3", agent="gemini")
    owner = line.rows("select id from subjects order by id limit 1")[0][0]
    line.erase(SubjectTarget(subject=owner))
    line.desk.settle()
    assert found_anywhere(line) == []
    assert line.rows("select count(*) from workstream_ledger") == [(0,)]
    assert line.desk.run(line.service.get_workstream("app/main")).sessions == []
    assert line.left_of(SubjectTarget(subject=owner)) == {}


def test_erasing_a_project_erases_its_workstreams(line: LineOfWork) -> None:
    worked(line)
    line.prepare("k3", agent="gemini")
    line.erase(ProjectTarget())
    line.desk.settle()
    for table in ("workstreams", "launches", "launch_sessions", "launch_events", "workstream_cursors", "offers"):
        assert line.rows(f"select count(*) from {table}") == [(0,)]
    assert line.left_of(ProjectTarget()) == {}


def test_what_an_erased_session_does_later_is_linked_anew(line: LineOfWork) -> None:
    launch = line.prepare("k1")
    line.tell(launch, prompt(f"Build the {SECRET_WORD} login", occurred_at_us=line.clock.now_us()))
    line.erase(session_of_word(line))
    line.desk.settle()
    line.clock.advance(60)
    line.tell(launch, prompt("Something else", occurred_at_us=line.clock.now_us()), first=2)
    assert line.texts() == ["Something else"]


def test_an_erased_offer_cannot_be_accepted(line: LineOfWork) -> None:
    worked(line)
    launch = line.prepare("k3", agent="gemini")
    assert launch.offer is not None
    line.erase(event_of_word(line))
    with pytest.raises(PacketGone):
        line.desk.run(line.service.accept_offer(launch.offer))
    line.desk.settle()
    with pytest.raises(NotFound):
        line.desk.run(line.service.accept_offer(launch.offer))
