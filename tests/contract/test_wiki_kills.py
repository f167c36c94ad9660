"""The wiki's projector and its gits killed in the middle: what is left is recovered, and nothing was lost or doubled.
The planted bugs at the end must each be seen by these tests."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract.test_wiki import Wikis, bytes_in, digested

from everkept.deliver import wiki as wiki_module
from everkept.deliver.disk_edits import Trees, find_edits
from everkept.deliver.git import LOCK_STALE_S, Git, blob_id
from everkept.deliver.projection import Projection
from everkept.deliver.wiki import ProjectWiki
from everkept.deliver.work_tree import WorkTree
from everkept.domain.erase import StreamTarget
from everkept.store.changes import acknowledge
from everkept.store.erase import erase
from everkept.store.store import Store
from everkept.store.wiki_pages import WikiBatch

Scene = Callable[[Wikis], None]
Plant = Callable[[pytest.MonkeyPatch], None]
INSTANTS_MAX = 200
STRIDE = 4
"""Of the instants that lie a statement apart, every fourth: a different set for each scene."""


# ---- what is going on when the kill comes


def busy(world: Wikis) -> None:
    """Pages were written, and people edited, committed and deleted files."""
    for slug in ("a", "b", "c", "e"):
        world.write(slug, "one")
    world.follow()
    world.edit("note/e.md", "one", "by Ann")
    world.git("commit", "-qam", "mine")
    world.edit("note/a.md", "one", "by disk")
    world.edit("note/b.md", "one", "by disk too")
    (world.folder / "note/c.md").unlink()
    world.write("b", "by the digest", author="digest")
    world.write("d", "new", author="digest")
    world.write("f", "new", author="hand")


def busy_ended_well(world: Wikis) -> None:
    world.check()
    assert world.slugs() == ["a", "b", "d", "e", "f"]
    assert {slug: world.authors(slug) for slug in "abe"} == {
        "a": ["hand", "disk"], "b": ["hand", "digest"], "e": ["hand", "Ann Smith"]}  # fmt: skip
    assert world.body("note/b.conflict.md") == "by disk too"
    assert not (world.folder / "note/b.conflict-2.md").exists()
    assert "Ann Smith: mine" in world.commits()


def erased(world: Wikis) -> None:
    digested(world, "s1", "Fix the Zanzibar login")
    world.write("kept", "Kept words.")
    world.follow()
    world.edit("note/kept.md", "Kept", "Well kept")
    world.store.write_now(erase, world.project, StreamTarget(stream=world.session("s1").stream))
    world.drain()


def erased_ended_well(world: Wikis) -> None:
    world.check()
    assert b"anzibar" not in bytes_in(world.folder)
    assert world.files() == ["note/kept.md"]
    assert world.authors("kept") == ["hand", "disk"]
    assert world.slugs() == ["kept"]


SCENES: dict[str, tuple[Scene, Scene]] = {"busy": (busy, busy_ended_well), "erased": (erased, erased_ended_well)}


# ---- killing


class Death:
    """Ends this process as it reaches the n-th instant: a git command, a file that is moved or removed, a commit."""

    def __init__(self, at: int) -> None:
        self._left = at

    def watch(self) -> None:
        for owner, name in ((Git, "run"), (Path, "replace"), (Path, "unlink"), (Store, "write_now")):
            setattr(owner, name, self._before(getattr(owner, name)))

    def _before(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def reached(*args: Any, **named: Any) -> Any:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **named)

        return reached


def step_in_a_child(home: Path, before: Callable[[], None]) -> bool:
    """Another process opens the store and follows; whether it lived."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # pytest's own threads do not matter to it
        child = os.fork()
    if child == 0:
        world = later(home, 1_000)
        before()
        world.follow()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return False
    assert os.waitstatus_to_exitcode(status) == 0
    return True


OF_A_FILE = pytest.mark.only_on("sqlite", reason="each kill begins with a copy of the home, and of the file in it")


@pytest.fixture(params=sorted(SCENES))
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Scene]:
    return stage(request.param, tmp_path)


def stage(name: str, folder: Path) -> tuple[Path, Scene]:
    """(home as it is before the kill, what must hold in the end)."""
    set_, ended_well = SCENES[name]
    home = folder / "before"
    home.mkdir()
    world = Wikis(home)
    set_(world)
    world.store.close()
    return home, ended_well


def later(home: Path, seconds: float) -> Wikis:
    world = Wikis(home)
    world.clock.advance(seconds)
    return world


def recovered(home: Path) -> Iterator[Wikis]:
    world = later(home, 10_000)  # the lease of the dead has run out
    age_locks(world.folder)
    world.follow()
    yield world
    world.store.close()


def age_locks(folder: Path) -> None:
    """As if some seconds had passed."""
    for lock in (folder / ".git").rglob("*.lock"):
        long_ago = lock.stat().st_mtime - 2 * LOCK_STALE_S
        os.utime(lock, (long_ago, long_ago))


def killed_everywhere(before: Path, ended_well: Scene, plant: Callable[[], None] = lambda: None) -> int:
    """How many instants there were to be killed at; each kill has the same beginning."""
    for instant in range(1 + len(ended_well.__name__) % STRIDE, INSTANTS_MAX, STRIDE):
        home = before.parent / "killed"
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(before, home, symlinks=True)

        def doomed(instant: int = instant) -> None:
            plant()
            Death(instant).watch()

        lived = step_in_a_child(home, doomed)
        for world in recovered(home):
            ended_well(world)
        if lived:
            return instant - 1
    raise AssertionError("it never came to its end")


@OF_A_FILE
def test_the_projector_may_be_killed_at_any_instant(scene: tuple[Path, Scene]) -> None:
    before, ended_well = scene
    assert killed_everywhere(before, ended_well) > 20


DYING_GIT = """#!/bin/sh
n=$(($(cat {count}) + 1))
echo $n > {count}
if [ $n -eq {at} ]; then
  for lock in refs/heads/main refs/everkept/projected refs/everkept/written packed-refs HEAD everkept-index; do
    mkdir -p $(dirname $GIT_DIR/$lock) && : > $GIT_DIR/$lock.lock
  done
  kill -9 $$
fi
exec git "$@"
"""


@OF_A_FILE
@pytest.mark.parametrize("name", sorted(SCENES))
def test_a_git_that_is_killed_leaves_nothing_that_blocks(name: str, tmp_path: Path) -> None:
    """It leaves every lock behind that it can hold."""
    before, ended_well = stage(name, tmp_path)
    program, count = tmp_path / "git-that-dies", tmp_path / "count"
    for at in range(1, INSTANTS_MAX, 2):
        home = tmp_path / "killed"
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(before, home, symlinks=True)
        count.write_text("0")
        program.write_text(DYING_GIT.format(count=count, at=at))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        world = later(home, 1_000)
        dying = world.another(str(program))
        dying.step_now()
        dead = "home" in dying.waiting
        if dead:  # the locks are fresh: somebody may be at work
            world.projector.step_now()
            assert "at work" in world.waits_because()
        world.store.close()
        for alive in recovered(home):
            ended_well(alive)
        if not dead:
            assert at > 10
            return
    raise AssertionError("it never came to its end")


def test_a_half_made_repository_is_made_again(tmp_path: Path) -> None:
    world = Wikis(tmp_path)
    world.write("a", "one")
    half = tmp_path / "wiki" / ".new.home"
    (half / ".git").mkdir(parents=True)
    (half / ".git" / "config.lock").touch()
    world.follow()
    world.check()
    assert not half.exists()
    world.store.close()


def test_a_half_removed_folder_of_an_erased_project_is_removed(tmp_path: Path) -> None:
    world = Wikis(tmp_path)
    (tmp_path / "wiki" / ".erased.7.7" / "note").mkdir(parents=True)
    world.follow()
    assert list((tmp_path / "wiki").iterdir()) == []
    world.store.close()


def test_an_edit_between_the_look_and_the_write_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = edited_in_mid_step(tmp_path, monkeypatch)
    assert world.body("note/a.conflict.md") == "typed just now"
    assert world.body("note/a.md") == "two"
    world.check()
    world.store.close()


def edited_in_mid_step(home: Path, monkeypatch: pytest.MonkeyPatch) -> Wikis:
    world = Wikis(home)
    world.write("a", "one")
    world.follow()
    world.write("a", "two")
    commit = Projection.commit

    def and_somebody_types(self: Projection, batch: WikiBatch) -> None:
        commit(self, batch)
        if "one" in world.read("note/a.md"):
            world.edit("note/a.md", "one", "typed just now")

    with monkeypatch.context() as patch:
        patch.setattr(Projection, "commit", and_somebody_types)
        world.projector.step_now()
    world.follow()
    return world


# ---- planted bugs


def cursor_first(self: ProjectWiki, *args: Any) -> int:
    """The cursor is moved, then the commit is made."""
    self._store.write_now(acknowledge, self._project, "wiki", args[0].head, args[1])
    return FOLLOW(self, *args)


FOLLOW = ProjectWiki._follow


@OF_A_FILE
def test_a_cursor_moved_before_the_commit_is_seen(tmp_path: Path) -> None:
    before, ended_well = stage("busy", tmp_path)

    def plant() -> None:
        setattr(ProjectWiki, "_follow", cursor_first)  # noqa: B010 - in a child that ends

    with pytest.raises(AssertionError):
        killed_everywhere(before, ended_well, plant)


@OF_A_FILE
def test_edits_on_disk_that_are_overwritten_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, ended_well = stage("busy", tmp_path)

    def blind(trees: Trees) -> Any:
        return find_edits(Trees(common=trees.common, projected=trees.projected, written=trees.written,
                                branch=trees.branch, disk=trees.written))  # fmt: skip

    monkeypatch.setattr(wiki_module, "find_edits", blind)
    monkeypatch.setattr(WorkTree, "_holds", careless)
    for world in recovered(before):
        with pytest.raises(AssertionError):
            ended_well(world)


def test_a_file_that_is_replaced_unseen_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WorkTree, "_holds", careless)
    world = edited_in_mid_step(tmp_path, monkeypatch)
    assert not (world.folder / "note/a.conflict.md").exists()
    world.store.close()


def careless(self: WorkTree, path: str, known: object) -> str | None:
    there = self.read(path)
    return None if there is None else blob_id(there)
