"""Whose memory a folder is: only writing makes a project, and a marker file counts once somebody trusted it (H04)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.stubs.agent_desk import Desk, a_checkout, a_desk

from everkept.api.context_ask import ContextAsk
from everkept.capture.identity import Checkout, look_at, with_root
from everkept.errors import InvalidInput, NotFound


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with a_desk(tmp_path / "home") as made:
        yield made


@pytest.fixture
def app(tmp_path: Path) -> Path:
    return a_checkout(tmp_path / "app")


def projects(desk: Desk) -> list[str]:
    return [name for (name,) in desk.rows("select name from projects where erased_at is null order by id")]


def marked(top: Path, project: str = "mine") -> Path:
    (top / ".everkept.toml").write_text(f'project = "{project}"\n')
    return top


# ---- reading makes nothing


def test_asking_for_an_unknown_folder_makes_no_project_and_saying_so_makes_one(desk: Desk, app: Path) -> None:
    checkout = look_at(app)
    with pytest.raises(NotFound, match="no memory of"):
        desk.run(desk.app.resolve_scope(checkout))
    ask = ContextAsk(agent="codex", session="s1", checkout=checkout)
    contexts = desk.app.contexts(project=None, confined=False)
    assert desk.run(contexts.give(ask)).scope is None
    assert projects(desk) == ["default"]

    made = desk.run(desk.app.resolve_scope(checkout, create=True))
    assert (made.project, made.found_by) == ("example.com/acme/app", "remote")
    assert desk.run(desk.app.resolve_scope(checkout)) == made == desk.run(desk.app.resolve_scope(checkout, create=True))
    assert projects(desk) == ["default", "example.com/acme/app"]


def test_a_named_project_that_is_not_there_is_an_error_for_context_too(desk: Desk, app: Path) -> None:
    ask = ContextAsk(agent="codex", session="s1", checkout=look_at(app))
    with pytest.raises(NotFound, match="there is no project 'nowhere'"):
        desk.run(desk.app.contexts(project="nowhere", confined=False).give(ask))
    assert projects(desk) == ["default"]


# ---- the marker


def test_a_marker_counts_for_nothing_until_it_is_trusted_and_then_before_everything(desk: Desk, app: Path) -> None:
    desk.run(desk.app.resolve_scope(Checkout(cwd="/elsewhere", remote="h/mine"), create=True))
    desk.work("claude-code", "s1", marked(app, "h/mine"))
    assert desk.project_of("s1") == "example.com/acme/app"

    trusted = desk.run(desk.app.trust_marker(look_at(app)))
    assert (trusted.project, trusted.found_by) == ("h/mine", "marker")
    assert desk.run(desk.app.resolve_scope(look_at(app))) == trusted
    desk.work("claude-code", "s2", app, "Fix the other login test")
    assert desk.project_of("s2") == "h/mine"
    assert "Fix the other login test" in desk.start("codex", "s3", app)
    assert "found by marker" in desk.start("codex", "s4", app)
    desk.work("claude-code", "s1", app, "Go on")
    assert desk.project_of("s1") == "example.com/acme/app", "a session stays where it began"


def test_a_clone_of_the_same_repository_is_trusted_with_it_and_one_of_another_is_not(
    desk: Desk, app: Path, tmp_path: Path
) -> None:
    desk.run(desk.app.resolve_scope(Checkout(cwd="/elsewhere", remote="h/mine"), create=True))
    desk.run(desk.app.trust_marker(look_at(marked(app, "h/mine"))))
    again = marked(a_checkout(tmp_path / "again", remote="git@example.com:Acme/App.git"), "h/mine")
    assert desk.run(desk.app.resolve_scope(look_at(again))).project == "h/mine"
    foreign = marked(a_checkout(tmp_path / "foreign", remote="https://example.com/evil/app"), "h/mine")
    desk.work("claude-code", "s1", foreign)
    assert desk.project_of("s1") == "example.com/evil/app"
    marked(app, "h/other")
    desk.work("claude-code", "s2", app)
    assert desk.project_of("s2") != "h/other", "another name is another thing to trust"


def test_a_repository_without_a_remote_is_known_with_its_first_commit_and_without(desk: Desk) -> None:
    desk.run(desk.app.resolve_scope(Checkout(cwd="/elsewhere", remote="h/mine"), create=True))
    here = {"cwd": "/code/app", "top": "/code/app", "common_dir": "/code/app/.git", "marker": "h/mine"}
    desk.run(desk.app.trust_marker(Checkout(**here, root="a" * 40)))
    for root in ("a" * 40, None):
        assert desk.run(desk.app.resolve_scope(Checkout(**here, root=root))).found_by == "marker"


def test_there_must_be_a_marker_and_a_project_to_trust(desk: Desk, app: Path) -> None:
    with pytest.raises(InvalidInput, match=r'no \.everkept\.toml of .* names a project; the line `project = "NAME"`'):
        desk.run(desk.app.trust_marker(look_at(app)))
    with pytest.raises(NotFound, match="`everkept projects create mine` makes it"):
        desk.run(desk.app.trust_marker(look_at(marked(app))))


def test_the_hook_and_everybody_else_read_the_same_marker(desk: Desk, app: Path, tmp_path: Path) -> None:
    """The highest one that names a project, within the checkout; outside of git from the root of the disk down."""
    package = app / "packages" / "web"
    package.mkdir(parents=True)
    (app / ".everkept.toml").write_text("prompts = true\n")
    marked(package, "web")
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    marked(outside, "outside")
    marked(outside / "deep", "deeper")
    for folder, project in [(package, "web"), (app, None), (outside / "deep", "outside")]:
        record = desk.hook("codex", "SessionStart", folder, session_id="s1")
        assert record.get("place", {}).get("marker") == project
        assert with_root(look_at(folder)).marker == project
