"""From the command line: reading in a folder that nobody knows makes no project, and a marker file waits for trust."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.acceptance.test_agent_commands import REMOTE, Desk, desk
from tests.acceptance.test_cli import environment

__all__ = ["desk", "environment"]
"""Fixtures that are other modules'."""


def projects(desk: Desk) -> list[str]:
    return sorted(project["name"] for project in desk.json("projects")["items"])


def test_reading_in_a_folder_that_nobody_knows_makes_no_project(desk: Desk) -> None:
    reading = [
        ["sessions"], ["pages"], ["handoffs"], ["timeline"], ["sessions", "show", "ses_1"], ["pages", "show", "x"],
        ["handoffs", "show", "hnd_1"], ["handoffs", "take", "hnd_1"], ["why", "ses_1"], ["why", "some-page"],
        ["pages", "delete", "x"], ["erase", "--session", "ses_1", "--yes"],
    ]  # fmt: skip
    for arguments in reading:
        done = desk(*arguments)
        assert (done.returncode, done.stdout) == (4, ""), arguments
        assert f"there is no memory of {desk.clone} yet" in done.stderr, arguments
    assert desk("why", "fct_1").returncode == 4
    for arguments in (["recall", "login"], ["facts"], ["episodes"], ["threads"], ["status"], ["doctor"]):
        assert desk(*arguments).returncode in (0, 5), arguments
    assert projects(desk) == ["default"]


def test_a_marker_counts_once_it_is_trusted_and_doctor_and_every_answer_say_so(desk: Desk) -> None:
    (desk.clone / ".everkept.toml").write_text('project = "mine"\n', "utf-8")
    assert desk("import", "claude-code").returncode == 0
    assert projects(desk) == ["default", REMOTE]
    told = desk("sessions").stderr
    assert f"project {REMOTE}, found by the remote\n" in told
    assert "names the project mine, and counts once you trust it: everkept projects trust" in told

    refused = desk("projects", "trust")
    assert (refused.returncode, refused.stdout) == (4, "")
    assert "there is no project 'mine'; `everkept projects create mine` makes it" in refused.stderr
    assert desk("projects", "create", "mine").returncode == 0
    assert desk("projects", "trust").stdout == f"this folder is project mine, named by the marker mine in {REMOTE}\n"
    after = desk("sessions")
    assert "project mine, found by the marker" in after.stderr
    assert "note:" not in after.stderr
    assert desk("sessions", "--project", REMOTE).stdout != "", "what was captured before stays where it is"


def test_a_folder_without_a_marker_has_nothing_to_trust(desk: Desk, tmp_path: Path) -> None:
    refused = desk("projects", "trust")
    assert refused.returncode == 2
    assert f"no .everkept.toml of {desk.clone} names a project" in refused.stderr


@pytest.mark.parametrize("kind", ["session", "page", "handoff"])
def test_why_of_what_an_agent_left_answers_in_its_folder(desk: Desk, kind: str) -> None:
    desk("import", "claude-code")
    session = desk.json("sessions")["items"][0]
    handoff = desk.json("handoffs")["items"][0]
    id_ = {"session": session["id"], "page": session["page"], "handoff": handoff["id"]}[kind]
    done = desk("why", id_)
    assert done.returncode == 0, done.stderr
    assert session["id"] in done.stdout
    assert f"project {REMOTE}, found by the remote" in done.stderr
    elsewhere = desk("why", session["id"], "--project", "default")
    assert elsewhere.returncode == 4
