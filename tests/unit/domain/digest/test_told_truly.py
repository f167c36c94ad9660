"""What a page and a handoff say of last words, answers and errors is what happened."""

from __future__ import annotations

from tests.unit.domain.digest.sessions import edit, event, failing, prompt, said, shell, stream, tool

from everkept.domain.digest import Digest, digest_session, to_handoff, to_page
from everkept.domain.session import AgentEvent

ASKED = "The importer is done. Should I delete the old one?"


def digest_of(*events: AgentEvent) -> Digest:
    return digest_session(stream(events))


def test_last_words_that_only_the_end_of_a_turn_tells_are_what_the_agent_said() -> None:
    digest = digest_of(prompt("go"), edit("a.py"), event("turn_end", ASKED, source="hook"))
    assert [one.text for one in digest.said] == [ASKED]
    assert [(end.kind, end.text) for end in digest.open_ends] == [
        ("question", "The agent asked: “Should I delete the old one?”")
    ]
    assert f"> {ASKED}" in to_page(digest)
    assert "Where it stands, in the agent's last words:" in to_handoff(digest).text


def test_last_words_that_are_told_twice_are_said_once_where_they_were_said() -> None:
    digest = digest_of(prompt("go"), said(ASKED), event("turn_end", ASKED.replace(" ", "  "), source="hook"))
    assert [(one.seq, one.text) for one in digest.said] == [(2, ASKED)]


def test_the_error_that_ends_a_turn_is_nothing_that_the_agent_said() -> None:
    for detail in ("failed", "error", "interrupted"):
        assert digest_of(prompt("go"), event("turn_end", "no credit", source="hook", detail=detail)).said == ()


def test_a_commit_of_nothing_is_no_failure_and_did_not_come_out_well() -> None:
    digest = digest_of(
        prompt("go"),
        failing("git commit -m x", "nothing to commit, working tree clean"),
        said("There was nothing new."),
    )
    assert "- `git commit -m x`: no failure (nothing to commit)" in to_page(digest)
    assert digest.failed == ()
    assert "git commit" not in to_handoff(digest).text


def test_a_call_that_is_no_command_does_not_fail_under_commands() -> None:
    page = to_page(digest_of(prompt("go"), tool("Skill", outcome="failed", output="Unknown skill: deploy"), said("x")))
    assert "## Errors\n\n- error of `Skill`: “Unknown skill: deploy”" in page
    assert "## Commands" not in page


def test_a_session_that_stops_at_a_call_without_a_name_says_so() -> None:
    [end] = digest_of(prompt("go"), tool("unknown")).open_ends
    assert end.text == (
        "The session stops in the middle of a turn, after a call of a tool without a name (working on: “go”)"
    )


def test_a_command_that_worked_is_still_told_as_one_that_did() -> None:
    assert "Came out well last: `pytest`" in to_handoff(digest_of(prompt("go"), shell("pytest"), said("x"))).text
