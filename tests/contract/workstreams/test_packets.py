"""A packet is one range of the ledger: shown or counted, never passed over; accepted as a whole or offered again (I01,
I02)."""

from __future__ import annotations

import pytest
from tests.stubs.line_of_work import CLAUDE, CODEX, OTHER, LineOfWork, prompt, said, text_of

from everkept.errors import LeaseLost


def test_what_others_did_is_told_until_it_is_accepted_and_then_no_more(line: LineOfWork) -> None:
    """I01: a reader that died before it had the packet is given it again."""
    line.worked(prompt("Build the login"), said("It is built"), key="k1")
    for key in ("k2", "k3"):
        launch = line.prepare(key, agent="codex", native_session=CODEX)
        assert "Build the login" in text_of(launch)
        assert "It is built" in text_of(launch)
        line.clock.advance(91)  # it dies
    launch = line.prepare("k4", agent="codex", native_session=CODEX)
    line.accept(launch)
    line.finish(launch)
    assert text_of(line.prepare("k5", agent="codex", native_session=CODEX)) == ""


def test_a_new_session_of_the_same_agent_is_told_of_the_earlier_ones(line: LineOfWork) -> None:
    line.worked(prompt("Build the login"), key="k1")
    assert "Build the login" in text_of(line.prepare("k2"))


def test_the_sessions_own_events_are_covered_and_not_told(line: LineOfWork) -> None:
    line.worked(prompt("Build the login"), key="k1")
    line.worked(prompt("Write the docs", CODEX, "codex"), agent="codex", key="k2")
    launch = line.prepare("k3", native_session=CLAUDE)
    assert "Write the docs" in text_of(launch)
    assert "Build the login" not in text_of(launch)
    line.accept(launch)
    line.finish(launch)
    assert text_of(line.prepare("k4", native_session=CLAUDE)) == ""


def test_what_a_sub_agent_of_its_sub_agent_did_is_its_own_too(line: LineOfWork) -> None:
    line.worked(
        prompt("Build the login"), prompt("Look for the form", OTHER, parent=CLAUDE),
        prompt("Read the style", "below", parent=OTHER), key="k1",
    )  # fmt: skip
    assert line.rows("select count(*) from launch_sessions") == [(3,)]
    assert text_of(line.prepare("k2", native_session=CLAUDE)) == ""


def test_earlier_events_of_a_long_range_are_counted_and_the_cursor_passes_none(line: LineOfWork) -> None:
    """I02: shown and counted are all there are, and the next packet begins where this one ends."""
    line.worked(
        *(prompt(f"Step {n} of the work, in so many words as it takes to say it") for n in range(150)), key="k1"
    )
    launch = line.prepare("k2", agent="codex", native_session=CODEX, tokens=600)
    packet = launch.packet
    assert packet is not None
    assert packet.shown + packet.counted == 150
    assert packet.tokens <= 700
    assert packet.text.endswith(f"(about {packet.tokens} tokens)"), "what it says of itself is what every door says"
    assert "Step 149" in packet.text
    assert f"The first {packet.counted} are only counted here (claude-code {packet.counted})" in packet.text
    line.accept(launch)
    line.finish(launch)
    line.worked(prompt("One more step"), key="k3")
    after = line.prepare("k4", agent="codex", native_session=CODEX)
    assert after.packet is not None
    assert (after.packet.start, after.packet.shown, after.packet.counted) == (packet.through, 1, 0)


def test_what_is_taken_in_after_it_was_prepared_comes_with_the_next_packet(line: LineOfWork) -> None:
    line.worked(prompt("Build the login"), key="k1")
    launch = line.prepare("k2", agent="codex", native_session=CODEX)
    line.desk.run(line.service.launch_events("lch_1", [said("One word more")], first=2))
    line.accept(launch)
    line.finish(launch)
    assert "One word more" in text_of(line.prepare("k3", agent="codex", native_session=CODEX))


@pytest.mark.parametrize("before_finish", [True, False])
def test_accepting_before_or_after_the_finish_and_twice_is_accepting_once(
    line: LineOfWork, before_finish: bool
) -> None:
    line.worked(prompt("Build the login"), key="k1")
    launch = line.prepare("k2", agent="codex", native_session=CODEX)
    if not before_finish:
        line.finish(launch)
    first = line.accept(launch, fence=launch.fence)
    line.clock.advance(5)
    assert line.accept(launch).accepted_at == first.accepted_at
    moved = line.rows("select delivered from workstream_cursors where agent = 'codex'")
    assert launch.packet is not None
    assert moved == [(launch.packet.through,)]
    assert line.rows("select count(*) from changes where kind = 'launch.accepted'") == [(2,)]


def test_an_older_packet_that_is_accepted_late_moves_no_cursor_back(line: LineOfWork) -> None:
    line.worked(prompt("Build the login"), key="k1")
    old = line.prepare("k2", agent="codex", native_session=CODEX)
    line.finish(old)
    line.worked(said("It is built"), key="k3")
    new = line.prepare("k4", agent="codex", native_session=CODEX)
    line.accept(new)
    line.accept(old)
    assert new.packet is not None
    assert line.rows("select max(delivered) from workstream_cursors where agent = 'codex'") == [(new.packet.through,)]


def test_a_packet_that_does_not_continue_what_a_session_has_moves_nothing(line: LineOfWork) -> None:
    """The resumed session came back under a new id: what came before the packet was never told to that one."""
    line.worked(prompt("Build the login"), key="k1")
    first = line.prepare("k2", agent="codex", native_session=CODEX)
    line.accept(first)
    line.finish(first)
    line.worked(said("It is built"), key="k3")
    second = line.prepare("k4", agent="codex", native_session=CODEX)
    line.accept(second, native_session=OTHER)
    line.finish(second)
    assert "Build the login" in text_of(line.prepare("k5", agent="codex", native_session=OTHER))


def test_a_new_sessions_packet_that_was_accepted_first_is_the_first_linked_sessions(line: LineOfWork) -> None:
    line.worked(prompt("Build the login"), key="k1")
    launch = line.prepare("k2", agent="codex")
    line.accept(launch)
    line.tell(launch, prompt("Write the docs", CODEX, "codex"), prompt("After a clear", OTHER, "codex"))
    line.finish(launch)
    assert line.desk.run(line.service.get_launch(launch.id)).native_id == CODEX
    assert "Build the login" not in text_of(line.prepare("k3", agent="codex", native_session=CODEX))
    line.clock.advance(91)
    assert "Build the login" in text_of(line.prepare("k4", agent="codex", native_session=OTHER))


def test_an_old_fence_cannot_accept(line: LineOfWork) -> None:
    launch = line.prepare("k1")
    line.clock.advance(91)
    line.prepare("k1")
    with pytest.raises(LeaseLost):
        line.accept(launch, fence=launch.fence)


def test_a_setting_bounds_the_packet(line: LineOfWork) -> None:
    line.worked(*(prompt(f"Step {n} of the work, in so many words as it takes to say it") for n in range(99)), key="k1")
    line.desk.run(line.service.update_project("default", settings={"workstreams.packet_tokens": 400}))
    line.service = line.desk.run(line.desk.app.service())
    packet = line.prepare("k2", agent="codex").packet
    assert packet is not None
    assert packet.tokens <= 500
