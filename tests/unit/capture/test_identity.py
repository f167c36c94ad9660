"""Whose memory a checkout is (H04)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from everkept.capture.identity import Checkout, look_at, name_for, normalise_remote


@pytest.mark.parametrize(
    "url",
    [
        "git@github.com:Acme/App.git",
        "https://github.com/acme/app",
        "https://user:secret@github.com/acme/app.git/",
        "ssh://git@github.com:22/acme/app.git",
        "git+ssh://git@GitHub.com/acme/app",
        "  https://github.com:443/acme/app.git  ",
    ],
)
def test_every_way_to_write_a_remote_is_one_remote(url: str) -> None:
    assert normalise_remote(url) == "github.com/acme/app"


@pytest.mark.parametrize(
    "url", ["/srv/git/app.git", "../app", "C:\\code\\app", "file:///srv/app.git", "", "https://", "x:"]
)
def test_what_two_machines_do_not_share_is_no_remote(url: str) -> None:
    assert normalise_remote(url) is None


def test_another_port_is_another_remote() -> None:
    assert normalise_remote("ssh://git@host:2222/a/b") == "host:2222/a/b"


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def test_worktrees_clones_and_sub_folders_of_one_repository_have_one_sign(tmp_path: Path) -> None:
    app = tmp_path / "app"
    app.mkdir()
    git(app, "init")
    git(app, "remote", "add", "origin", "git@example.org:acme/app.git")
    git(app, "commit", "--allow-empty", "-m", "first")
    git(app, "worktree", "add", "../other", "-b", "feature")
    (app / "src" / "deep").mkdir(parents=True)
    here, deep, other = look_at(app), look_at(app / "src" / "deep"), look_at(tmp_path / "other")
    assert {c.remote for c in (here, deep, other)} == {"example.org/acme/app"}
    assert {c.common_dir for c in (here, deep, other)} == {str(app / ".git")}
    assert (here.top, deep.top, other.top) == (str(app), str(app), str(tmp_path / "other"))
    assert (here.branch, other.branch) == ("main", "feature")


def test_a_folder_without_git_is_told_by_its_path(tmp_path: Path) -> None:
    assert look_at(tmp_path).signs() == [("path", str(tmp_path))]


def test_the_root_counts_only_without_a_remote() -> None:
    signs = dict(Checkout(cwd="/a", remote="h/a", root="abc", common_dir="/a/.git").signs())
    assert signs == {"remote": "h/a", "common_dir": "/a/.git", "path": "/a"}
    assert "root" in dict(Checkout(cwd="/a", root="abc").signs())


def test_a_marker_is_trusted_only_with_its_place() -> None:
    mine, theirs = Checkout(cwd="/a", remote="h/a", marker="secret"), Checkout(cwd="/b", remote="h/b", marker="secret")
    assert mine.signs()[0] != theirs.signs()[0]


def test_two_folders_of_the_same_name_are_two_projects() -> None:
    assert name_for(Checkout(cwd="/one/app").signs()) != name_for(Checkout(cwd="/two/app").signs())
    assert name_for([("common_dir", "/one/app/.git")]).startswith("app-")
    assert name_for(Checkout(cwd="/a", remote="github.com/acme/app", root="29a03178").signs()) == "github.com/acme/app"


def test_a_repository_without_a_remote_is_named_by_its_folder_and_its_first_commit() -> None:
    root = "29a031787836ca5879ed9d3b590d9e905dfc104f"
    here = Checkout(cwd="/code/cli/src", top="/code/cli", common_dir="/code/cli/.git", root=root)
    assert name_for(here.signs()) == "cli-29a03178"
    worktree = Checkout(cwd="/tmp/w1", top="/tmp/w1", common_dir="/code/cli/.git", root=root)
    assert name_for(worktree.signs()) == "cli-29a03178"
    assert name_for(Checkout(cwd="/code/cli", root="f" * 40).signs()) == "cli-ffffffff"
