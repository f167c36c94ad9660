"""A packet that was made for one session and comes to another: nothing is passed that this one was not told (G11)."""

from __future__ import annotations

from tests.stubs.line_of_work import CODEX, OTHER, LineOfWork, prompt, said, text_of


def test_a_packet_of_a_session_that_was_told_more_does_not_move_one_that_was_told_less(line: LineOfWork) -> None:
    line.worked(prompt("Build the login"), key="k1")
    for key, native in (("k2", CODEX), ("k3", OTHER)):
        launch = line.prepare(key, agent="codex", native_session=native)
        line.accept(launch)
        line.finish(launch)
        line.worked(said(f"It is built, {key}"), key=f"{key}-more")
    newest = line.prepare("k4", agent="codex", native_session=OTHER)
    assert "It is built, k2" not in text_of(newest), "the other session has that already"
    line.accept(newest, native_session=CODEX)
    line.finish(newest)
    told = text_of(line.prepare("k5", agent="codex", native_session=CODEX))
    assert "It is built, k2" in told
    assert "It is built, k3" in told
