"""Sessions that are called alike in two places are two; one that moves is one (H04)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.stubs.agent_desk import Desk, a_checkout, a_desk, a_worktree

SESSION = "019ae2f0-6b1d-7c3e-9a52-4f1d08b7c6e1"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with a_desk(tmp_path / "home") as made:
        yield made


def prompts(desk: Desk) -> list[tuple[str, str, str]]:
    """(project, worktree, prompt) in the order of the sessions."""
    return [(name, Path(worktree).name, said) for name, worktree, said in desk.rows(
        "select p.name, x.worktree, e.content from events e join sessions x on x.stream_id = e.stream_id"
        " join projects p on p.id = x.project_id where e.role = 'user' order by e.stream_id, e.seq")]  # fmt: skip


@pytest.mark.parametrize("native", ["1", "main", "2026-11-30"])
def test_a_session_name_in_two_projects_is_two_sessions(desk: Desk, tmp_path: Path, native: str) -> None:
    for name in ("app", "other"):
        place = a_checkout(tmp_path / name, remote=f"https://example.com/acme/{name}")
        desk.hook("aider", "UserPromptSubmit", place, session_id=native, prompt="Go on")
    desk.settle()
    assert prompts(desk) == [("example.com/acme/app", "app", "Go on"), ("example.com/acme/other", "other", "Go on")]


def test_a_session_name_in_two_worktrees_of_one_project_is_two_sessions(desk: Desk, tmp_path: Path) -> None:
    app = a_checkout(tmp_path / "app")
    for place in (app, a_worktree(tmp_path / "feature", app, branch="feature")):
        desk.hook("aider", "UserPromptSubmit", place, session_id="main", prompt="Go on")
        desk.edit("aider", "main", place, "a.py", id_="call-1")
    desk.settle()
    assert [(place, said) for _, place, said in prompts(desk)] == [("app", "Go on"), ("feature", "Go on")]
    assert desk.rows("select genuine from sessions order by stream_id") == [(2,), (2,)], "the same call id, twice"


def test_a_session_name_in_the_same_folder_of_two_containers_is_two_sessions(desk: Desk, tmp_path: Path) -> None:
    for name in ("app", "other"):
        place = a_checkout(tmp_path / "work", remote=f"https://example.com/acme/{name}")
        desk.hook("aider", "UserPromptSubmit", place, session_id="main", prompt="Go on")
        shutil.rmtree(place)
    desk.settle()
    assert [name for name, _, _ in prompts(desk)] == ["example.com/acme/app", "example.com/acme/other"]


def test_a_session_name_of_two_agents_is_two_sessions(desk: Desk, tmp_path: Path) -> None:
    app = a_checkout(tmp_path / "app")
    for agent in ("aider", "goose"):
        desk.hook(agent, "UserPromptSubmit", app, session_id=SESSION, prompt="Go on")
    desk.settle()
    assert desk.rows("select agent, native_id from sessions order by agent") == [("aider", SESSION), ("goose", SESSION)]


def test_a_session_with_an_id_of_its_own_is_one_through_worktrees_and_other_projects(
    desk: Desk, tmp_path: Path
) -> None:
    app = a_checkout(tmp_path / "app")
    other = a_checkout(tmp_path / "other", remote="https://example.com/acme/other")
    for number, place in enumerate((app, a_worktree(tmp_path / "feature", app, branch="feature"), other)):
        desk.hook("codex", "UserPromptSubmit", place, session_id=SESSION, prompt=f"Go on {number}")
    desk.settle()
    assert [said for _, _, said in prompts(desk)] == ["Go on 0", "Go on 1", "Go on 2"]
    assert len(desk.rows("select 1 from sessions")) == 1


def test_a_session_name_goes_with_its_repository_into_the_folders_below(desk: Desk, tmp_path: Path) -> None:
    app = a_checkout(tmp_path / "app")
    (app / "src").mkdir()
    for place in (app, app / "src"):
        desk.hook("aider", "UserPromptSubmit", place, session_id="main", prompt=f"Go on in {place.name}")
    desk.settle()
    assert len(desk.rows("select 1 from sessions")) == 1


def test_what_a_session_was_shown_counts_for_it_alone(desk: Desk, tmp_path: Path) -> None:
    app = a_checkout(tmp_path / "app")
    feature = a_worktree(tmp_path / "feature", app, branch="feature")
    desk.work("codex", SESSION, app)
    assert desk.start("aider", "main", app) != ""
    assert desk.start("aider", "main", app, source="resume") == ""
    assert desk.start("aider", "main", feature, source="resume") != ""


def test_a_short_name_of_a_sub_agent_belongs_to_the_session_that_started_it(desk: Desk, tmp_path: Path) -> None:
    app = a_checkout(tmp_path / "app")
    for parent in (SESSION, SESSION.replace("0", "9")):
        desk.hook("claude-code", "UserPromptSubmit", app, session_id=parent, prompt="Look into it")
        desk.hook(
            "claude-code", "PostToolUse", app, session_id=parent, agent_id="5f0c1f0e", tool_name="Bash",
            tool_use_id="call-1", tool_input={"command": "ls"}, tool_response={"stdout": "a.py"},
        )  # fmt: skip
    desk.settle()
    children = desk.rows("select parent, genuine from sessions where parent is not null order by stream_id")
    assert children == [(SESSION, 1), (SESSION.replace("0", "9"), 1)]


def test_the_agents_own_name_is_what_is_shown(desk: Desk, tmp_path: Path) -> None:
    app = a_checkout(tmp_path / "app")
    desk.hook("aider", "UserPromptSubmit", app, session_id="main", prompt="Go on")
    desk.settle()
    [session] = desk.run(desk.service(app).list_sessions()).items
    assert session.native_id == "main"
