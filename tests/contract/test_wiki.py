"""The wiki on disk follows the pages and takes edits in: nothing is overwritten, nothing comes back, and what is erased
leaves the history too (E03, G10, G11). With a real git and a real store, killed at every instant."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract.test_erase import SETTINGS
from tests.contract.test_sessions import Agents

from everkept.api.base import Parts
from everkept.api.wiki import WikiProjector, wiki_reports
from everkept.deliver.git import BRANCH, PROJECTED, WRITTEN
from everkept.deliver.page_file import parse
from everkept.deliver.report import WikiReport
from everkept.deliver.work_tree import MARKER
from everkept.derive.tools import Tools
from everkept.domain.erase import ProjectTarget, StreamTarget
from everkept.domain.pages import PageText
from everkept.store.changes import find_cursor, lease_consumer, prune_changes
from everkept.store.erase import erase
from everkept.store.pages import (
    NewPage,
    PageRow,
    delete_page,
    get_page,
    list_pages,
    page_history,
    write_page,
)
from everkept.store.projects import ensure_project
from everkept.store.store import Store

LONG_AGO_S = 1_700_000_000


def parts_of(store: Store) -> Parts:
    def no_search() -> Any:
        raise AssertionError("the wiki searches nothing")

    tools = Tools(model=None, words=None, embedder=None)
    return Parts(store=store, settings=SETTINGS, clock=store.clock, tools=tools, searcher=no_search, model_name="none")


class Wikis(Agents):
    """Coding agents at work in a store, and the wiki of it beside."""

    def __init__(self, home: Path) -> None:
        super().__init__(home / "memory.db")
        self.home = home
        self.folder = home / "wiki" / "home"
        self.projector = self.another()

    def another(self, program: str = "git") -> WikiProjector:
        """Of another process."""
        return WikiProjector(parts_of(self.store), self.home, program=program, settle_s=0)

    def write(self, slug: str, body: str, *, author: str = "hand", kind: str = "note", **more: Any) -> PageRow:
        self.clock.advance(1)
        text = PageText(title=slug.title(), body=body)
        new = NewPage(project=self.project, kind=kind, slug=slug, text=text, author=author, **more)
        row = self.store.write_now(write_page, new)
        assert row is not None
        return row

    def delete(self, slug: str) -> None:
        self.store.write_now(delete_page, self.project, slug)

    def page(self, slug: str) -> PageRow:
        return self.store.read_now(get_page, self.project, slug)

    def slugs(self) -> list[str]:
        return sorted(
            p.slug for p in self.store.read_now(lambda c: list_pages(c, self.project, current=False, limit=1000))
        )

    def authors(self, slug: str) -> list[str]:
        return [v.author for v in self.store.read_now(page_history, self.page(slug).id)][::-1]

    def follow(self, projector: WikiProjector | None = None) -> None:
        """Until nothing is left to do."""
        for _ in range(10):
            if not (projector or self.projector).step_now():
                return
        pytest.fail("the wiki does not come to rest")

    # ---- the folder

    def git(self, *words: str, name: str = "Ann Smith") -> str:
        who = {"GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": "ann@example.org", "GIT_COMMITTER_NAME": name,
               "GIT_COMMITTER_EMAIL": "ann@example.org", "GIT_CONFIG_GLOBAL": os.devnull}  # fmt: skip
        done = subprocess.run(["git", *words], cwd=self.folder, env=os.environ | who, capture_output=True, text=True,
                              check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def read(self, path: str) -> str:
        return (self.folder / path).read_text("utf-8")

    def body(self, path: str) -> str:
        return parse((self.folder / path).read_bytes()).body

    def edit(self, path: str, old: str, new: str) -> None:
        """As an editor does it."""
        text = self.read(path)
        assert old in text
        (self.folder / path).write_text(text.replace(old, new), "utf-8")

    def files(self) -> list[str]:
        return sorted(str(p.relative_to(self.folder)) for p in self.folder.rglob("*.md") if ".git" not in p.parts)

    def commits(self) -> list[str]:
        """`author: message`, oldest first."""
        return self.git("log", "--reverse", "--format=%an: %s").splitlines()

    def report(self) -> WikiReport:
        (report,) = wiki_reports(self.home)
        return report

    def waits_because(self) -> str:
        return self.projector.waiting.get("home", "")

    def check(self) -> None:
        """The folder, the branch, our references and the pages are alike, and git's own commands see nothing amiss."""
        assert self.projector.waiting == {}
        rows = self.store.read_now(lambda conn: list_pages(conn, self.project, current=False, limit=1000))
        files = {path: parse((self.folder / path).read_bytes()) for path in self.files() if ".conflict" not in path}
        expected = {f"{r.kind}/{r.slug}.md": (r.id, r.version, r.title, r.body.strip("\n")) for r in rows}
        assert expected == {path: (f.page, f.version, f.title, f.body) for path, f in files.items()}
        status = self.git("status", "--porcelain", "--untracked-files=all").splitlines()
        assert [line for line in status if ".conflict" not in line] == []
        tips = {self.git("rev-parse", name) for name in (BRANCH, PROJECTED, WRITTEN)}
        assert len(tips) == 1
        self.git("fsck", "--strict", "--no-dangling")
        head = self.rows("select change_seq from projects where id = :p", p=self.project)[0][0]
        assert head == self.store.read_now(find_cursor, self.project, "wiki")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Wikis]:
    made = Wikis(tmp_path)
    yield made
    made.store.close()


# ---- projecting


def test_pages_stand_as_files_of_their_kind_with_front_matter(world: Wikis) -> None:
    world.write("use-sqlite", "We use SQLite, see [[limits]].", kind="decision", author="distiller")
    world.write("limits", "One writer.\n\n## Why\nLocks.", source="file:docs/limits.md", supersedes="old")
    world.follow()
    assert world.files() == ["decision/use-sqlite.md", "note/limits.md"]
    row = world.page("limits")
    assert world.read("note/limits.md") == (
        f"---\nid: pag_{row.id}\nkind: note\nslug: limits\ntitle: Limits\nversion: 1\nauthor: hand\n"
        'updated: 2025-06-15T15:06:42Z\nsource: "file:docs/limits.md"\n---\n\nOne writer.\n\n## Why\nLocks.\n'
    )
    assert "[[limits]]" in world.read("decision/use-sqlite.md")
    world.check()


def test_a_page_that_another_supersedes_says_so(world: Wikis) -> None:
    world.write("old", "Use MySQL.", kind="decision")
    world.follow()
    world.write("new", "Use SQLite.", kind="decision", supersedes="old")
    world.follow()
    assert "supersedes: [old]\n" in world.read("decision/new.md")
    assert "superseded_by: new\n" in world.read("decision/old.md")
    world.check()


def test_one_commit_has_the_versions_of_one_author(world: Wikis) -> None:
    world.write("a", "1", author="hand")
    world.follow()
    world.write("b", "1", author="hand")
    world.write("c", "1", author="hand")
    world.write("d", "1", author="digest")
    world.write("a", "2", author="hand")
    world.follow()
    assert world.commits() == ["hand: note/a.md: version 1", "hand: 2 pages", "digest: note/d.md: version 1",
                               "hand: note/a.md: version 2"]  # fmt: skip
    world.check()


def test_a_step_with_nothing_new_commits_nothing_and_takes_no_lease(world: Wikis) -> None:
    world.write("a", "1")
    world.follow()
    before = world.git("rev-parse", "HEAD"), world.rows("select fence from consumers")
    assert [world.projector.step_now() for _ in range(3)] == [0, 0, 0]
    assert (world.git("rev-parse", "HEAD"), world.rows("select fence from consumers")) == before


def test_a_project_without_pages_gets_no_folder(world: Wikis) -> None:
    world.say("chat", "I live in Porto.")
    world.follow()
    assert not (world.home / "wiki").exists()


def test_a_deleted_page_loses_its_file_and_stays_deleted(world: Wikis) -> None:
    world.write("a", "1")
    world.write("b", "1")
    world.follow()
    world.delete("a")
    world.follow()
    assert world.files() == ["note/b.md"]
    world.follow(world.another())
    assert world.slugs() == ["b"]
    world.check()


def test_a_page_of_another_kind_moves(world: Wikis) -> None:
    world.write("a", "1")
    world.follow()
    world.write("a", "1", kind="rule")
    world.follow()
    assert world.files() == ["rule/a.md"]
    world.check()


@pytest.mark.parametrize("slug", ["../../outside", "a/b", "CON", "Ümlaut Groß", "…", "x" * 120, "語" * 120])
def test_no_name_of_a_page_leaves_its_folder_or_is_too_long(world: Wikis, slug: str) -> None:
    row = world.write(slug, "text")
    world.follow()
    (path,) = world.files()
    assert path.startswith("note/")
    assert path.count("/") == 1
    assert parse((world.folder / path).read_bytes()).slug == slug
    assert (world.page(slug).version, row.version) == (1, 1)
    world.edit(path, "text", "edited")
    world.follow()
    assert world.page(slug).body == "edited"
    assert world.files() == [path]


def test_a_cursor_that_expired_starts_from_a_snapshot(world: Wikis) -> None:
    world.write("a", "1")
    world.write("b", "1")
    world.follow()
    world.write("a", "2")
    world.delete("b")
    world.clock.advance(100)
    assert world.store.write_now(prune_changes, 10.0)
    world.write("c", "1")
    world.follow()
    assert world.files() == ["note/a.md", "note/c.md"]
    world.check()


def test_a_folder_that_was_removed_is_made_again_and_deletes_nothing(world: Wikis) -> None:
    world.write("a", "1")
    world.follow()
    subprocess.run(["rm", "-rf", str(world.folder)], check=True)
    world.follow()
    assert world.slugs() == ["a"]
    world.check()


def test_somebody_elses_lease_holds_the_projector_back(world: Wikis) -> None:
    world.write("a", "1")
    assert world.store.write_now(lease_consumer, world.project, "wiki", "other", 60.0)
    assert world.projector.step_now() == 0
    assert not (world.folder / "note").exists()
    world.clock.advance(61)
    world.follow()
    world.check()


def test_two_projects_of_like_names_have_a_folder_each(world: Wikis) -> None:
    other = world.store.write_now(ensure_project, "HOME!", b"o" * 32).id
    world.write("a", "ours")
    text = PageText(title="A", body="theirs")
    world.store.write_now(write_page, NewPage(project=other, kind="note", slug="a", text=text, author="hand"))
    world.follow()
    folders = sorted(p.name for p in (world.home / "wiki").iterdir())
    assert folders == ["home", f"home-{other}"]
    assert "ours" in world.read("note/a.md")
    assert "theirs" in (world.home / "wiki" / f"home-{other}" / "note" / "a.md").read_text("utf-8")


def test_without_git_there_is_a_reason_and_nothing_else_suffers(world: Wikis, monkeypatch: pytest.MonkeyPatch) -> None:
    world.write("a", "1")
    monkeypatch.setenv("PATH", str(world.home))
    assert world.projector.step_now() == 0
    assert "git is not installed" in world.projector.waiting[""]
    assert world.write("a", "2").version == 2
    monkeypatch.undo()
    world.follow()
    assert world.projector.waiting == {}
    world.check()


def test_in_a_process_with_threads_a_step_follows_beside_other_work(tmp_path: Path) -> None:
    store = Store(tmp_path / "memory.db")
    store.open()

    async def work() -> list[str]:
        project = await store.write(ensure_project, "github.com/acme/app", b"s" * 32)
        projector = WikiProjector(parts_of(store), tmp_path, settle_s=0)
        new = NewPage(project=project.id, kind="note", slug="a", text=PageText(title="A", body="one"), author="hand")
        await store.write(write_page, new)
        assert await projector.step() == 1
        (tmp_path / "wiki/github-com-acme-app/note/a.md").write_text("two", "utf-8")
        while await projector.step():
            pass
        page = await store.read(get_page, project.id, "a")
        return [page.author, page.body]

    assert asyncio.run(work()) == ["disk", "two"]
    store.close()


# ---- edits


def test_an_edit_on_disk_is_the_next_version_by_disk(world: Wikis) -> None:
    world.write("a", "First line.\n\nSecond line.", author="digest")
    world.follow()
    world.edit("note/a.md", "Second", "Another")
    world.follow()
    page = world.page("a")
    assert (page.version, page.author, page.body) == (2, "disk", "First line.\n\nAnother line.")
    assert "version: 2" in world.read("note/a.md")
    assert world.commits()[-1] == "disk: note/a.md: version 2"
    world.check()


def test_a_commit_by_somebody_else_is_a_version_by_its_author(world: Wikis) -> None:
    world.write("a", "one")
    world.follow()
    world.edit("note/a.md", "one", "two")
    world.git("commit", "-qam", "say it better")
    world.edit("note/a.md", "two", "three")
    world.follow()
    assert world.authors("a") == ["hand", "Ann Smith", "disk"]
    assert world.page("a").body == "three"
    assert "Ann Smith: say it better" in world.commits()
    world.check()


@pytest.mark.parametrize("name", ["import", "digest", "distiller"])
def test_no_git_name_makes_a_person_a_machine(world: Wikis, name: str) -> None:
    world.write("a", "one")
    world.follow()
    world.edit("note/a.md", "one", "two")
    world.git("commit", "-qam", "x", name=name)
    world.follow()
    assert world.authors("a") == ["hand", "disk"]


def test_title_and_kind_can_be_edited_in_the_front_matter(world: Wikis) -> None:
    world.write("a", "text")
    world.follow()
    world.edit("note/a.md", "title: A\n", "title: 'It''s new'\n")
    world.edit("note/a.md", "kind: note", "kind: rule")
    world.follow()
    page = world.page("a")
    assert (page.title, page.kind, page.version) == ("It's new", "rule", 2)
    assert world.files() == ["rule/a.md"]
    world.check()


def test_moving_a_file_to_another_kinds_folder_changes_its_kind(world: Wikis) -> None:
    world.write("a", "text")
    world.follow()
    (world.folder / "rule").mkdir()
    (world.folder / "note/a.md").rename(world.folder / "rule/a.md")
    world.follow()
    assert (world.page("a").kind, world.page("a").version) == ("rule", 2)
    world.check()


def test_a_new_file_is_a_new_page(world: Wikis) -> None:
    world.write("a", "text")
    world.follow()
    (world.folder / "gotcha").mkdir()
    (world.folder / "gotcha/Mind the Gap.md").write_text("# Mind it\n\nIt bites.\n", "utf-8")
    world.follow()
    page = world.page("mind-the-gap")
    assert (page.kind, page.title, page.author, page.version) == ("gotcha", "Mind it", "disk", 1)
    assert world.files() == ["gotcha/mind-the-gap.md", "note/a.md"]
    world.check()


def test_a_secret_in_an_edit_is_not_kept(world: Wikis) -> None:
    world.write("a", "text")
    world.follow()
    token = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"
    world.edit("note/a.md", "text", f"use {token} to log in")
    world.follow()
    assert "[redacted:" in world.page("a").body
    assert token not in world.read("note/a.md")
    world.check()


def test_what_an_edit_marks_as_private_is_not_kept(world: Wikis) -> None:
    world.write("a", "First.")
    world.follow()
    world.edit("note/a.md", "First.", "Ship it. <private>The safe opens with 4711.</private>")
    world.follow()
    assert world.page("a").body == "Ship it. "
    assert "4711" not in world.read("note/a.md")
    world.check()


def test_a_file_saved_with_other_line_ends_is_no_edit(world: Wikis) -> None:
    world.write("a", "one\n\ntwo")
    world.follow()
    data = (world.folder / "note/a.md").read_bytes()
    (world.folder / "note/a.md").write_bytes(b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"))
    world.follow()
    assert world.page("a").version == 1
    world.check()


def test_two_edits_of_one_version_are_a_conflict_and_both_are_kept(world: Wikis) -> None:
    world.write("a", "one")
    world.follow()
    world.edit("note/a.md", "one", "by disk")
    world.write("a", "by the digest", author="digest")
    world.follow()
    assert (world.page("a").body, world.body("note/a.md")) == ("by the digest", "by the digest")
    assert world.body("note/a.conflict.md") == "by disk"
    assert world.report().conflicts == {"note/a.conflict.md": "it was made on version 1, and the page is at version 2"}
    assert world.authors("a") == ["hand", "digest"]
    world.check()
    (world.folder / "note/a.conflict.md").unlink()
    world.write("a", "three")
    world.follow()
    assert world.report().conflicts == {}
    assert world.slugs() == ["a"]


def test_every_conflict_has_a_file_of_its_own(world: Wikis) -> None:
    world.write("a", "one")
    world.follow()
    for turn in ("x", "y"):
        world.edit("note/a.md", "one" if turn == "x" else "theirs x", f"ours {turn}")
        world.write("a", f"theirs {turn}")
        world.follow()
    assert world.files() == ["note/a.conflict-2.md", "note/a.conflict.md", "note/a.md"]
    assert (world.body("note/a.conflict.md"), world.body("note/a.conflict-2.md")) == ("ours x", "ours y")


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"", b"---\nid: pag_1\n---\n\n", b"a\0b", b"x" * 200_001])
def test_what_cannot_be_a_page_is_kept_beside_it(world: Wikis, data: bytes) -> None:
    world.write("a", "one")
    world.follow()
    (world.folder / "note/a.md").write_bytes(data)
    world.follow()
    assert (world.folder / "note/a.conflict.md").read_bytes() == data
    assert world.page("a").version == 1
    world.check()


def test_an_edit_of_a_page_that_was_deleted_does_not_bring_it_back(world: Wikis) -> None:
    world.write("a", "one")
    world.write("b", "one")
    world.follow()
    world.delete("a")
    world.edit("note/a.md", "one", "two")
    world.follow()
    assert world.slugs() == ["b"]
    assert world.files() == ["note/a.conflict.md", "note/b.md"]
    assert "stays deleted" in world.report().conflicts["note/a.conflict.md"]


def test_a_deleted_page_does_not_come_back_from_its_file(world: Wikis) -> None:
    world.write("a", "one")
    world.write("b", "one")
    world.follow()
    text = world.read("note/a.md")
    world.delete("a")
    world.follow()
    for name in ("note/a.md", "note/another-name.md"):
        (world.folder / name).write_text(text, "utf-8")
        world.follow()
    assert world.slugs() == ["b"]


def test_a_file_that_is_being_saved_is_left_alone(world: Wikis) -> None:
    world.write("a", "one")
    world.follow()
    slow = WikiProjector(parts_of(world.store), world.home, settle_s=30)
    world.edit("note/a.md", "one", "two")
    world.write("a", "three")
    assert slow.step_now() == 0
    assert world.body("note/a.md") == "two"
    (world.folder / "note/a.md").unlink()
    assert slow.step_now() == 0
    assert world.slugs() == ["a"]


def test_history_that_was_rewritten_loses_no_version_and_deletes_nothing(world: Wikis) -> None:
    world.write("a", "one")
    world.follow()
    world.write("b", "one")
    world.write("a", "two")
    world.follow()
    world.git("reset", "-q", "--hard", "HEAD~1")
    assert world.files() == ["note/a.md"]
    world.follow()
    assert (world.slugs(), world.page("a").version) == (["a", "b"], 2)
    world.check()
    world.git("commit", "-q", "--amend", "-m", "mine")
    world.follow()
    world.check()


def test_another_branch_is_left_alone_until_ours_is_back(world: Wikis) -> None:
    world.write("a", "one")
    world.follow()
    world.git("checkout", "-q", "-b", "mine")
    world.edit("note/a.md", "one", "two")
    world.write("a", "three")
    assert [world.projector.step_now() for _ in range(2)] == [0, 0]
    assert "another branch" in world.waits_because()
    assert world.report().attention == world.waits_because()
    assert world.body("note/a.md") == "two"
    world.git("checkout", "-q", "--", ".")
    world.git("checkout", "-q", "main")
    world.follow()
    assert (world.waits_because(), world.report().attention) == ("", None)
    world.check()


def test_a_link_in_the_place_of_a_folder_is_not_followed(world: Wikis) -> None:
    world.write("a", "one")
    world.follow()
    outside = world.home / "outside"
    (world.folder / "note").rename(outside)
    (world.folder / "note").symlink_to(outside)
    world.write("a", "two")
    assert world.projector.step_now() == 0
    assert "note is a link" in world.waits_because()
    assert "one" in (outside / "a.md").read_text("utf-8")


def test_references_that_somebody_removed_are_made_again(world: Wikis) -> None:
    world.write("a", "one")
    world.follow()
    for name in (PROJECTED, WRITTEN):
        world.git("update-ref", "-d", name)
    world.write("a", "two")
    world.follow()
    assert world.authors("a") == ["hand", "hand"]
    world.check()


# ---- deletes on disk


def test_a_file_that_was_deleted_deletes_its_page(world: Wikis) -> None:
    for n in range(3):
        world.write(f"p{n}", "text")
    world.follow()
    (world.folder / "note/p0.md").unlink()
    world.git("rm", "-q", "note/p1.md")
    world.git("commit", "-qm", "gone")
    world.follow()
    assert world.slugs() == ["p2"]
    world.check()
    world.follow(world.another())
    assert world.slugs() == ["p2"]


def test_a_delete_of_a_version_that_is_not_the_newest_deletes_nothing(world: Wikis) -> None:
    world.write("a", "one")
    world.follow()
    (world.folder / "note/a.md").unlink()
    world.write("a", "two")
    world.follow()
    assert world.page("a").body == "two"
    world.check()


@pytest.mark.parametrize(("pages", "gone", "deleted"), [(10, 5, 5), (10, 6, 0), (140, 7, 7), (140, 8, 0)])
def test_at_most_five_files_or_five_per_cent_are_taken_for_deletes(
    world: Wikis, pages: int, gone: int, deleted: int
) -> None:
    for n in range(pages):
        world.write(f"p{n}", "text")
    world.follow()
    for n in range(gone):
        (world.folder / f"note/p{n}.md").unlink()
    world.follow()
    assert len(world.slugs()) == pages - deleted
    if deleted:
        world.check()
        return
    assert f"{gone} of {pages} pages are missing: nothing was deleted" in world.waits_because()
    world.git("checkout", "-q", "--", ".")
    world.follow()
    assert world.waits_because() == ""
    world.check()


def test_without_the_marker_a_missing_file_is_no_delete(world: Wikis) -> None:
    world.write("a", "one")
    world.write("b", "one")
    world.follow()
    (world.folder / "note/a.md").unlink()
    (world.folder / MARKER).unlink()
    world.follow()
    assert world.slugs() == ["a", "b"]
    assert MARKER in world.waits_because()
    world.git("checkout", "-q", "--", ".")
    world.follow()
    world.check()


# ---- erasing


def bytes_in(folder: Path) -> bytes:
    """Everything below a folder, also what git has packed."""
    found: list[bytes] = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            found += [str(path).encode(), data, *_inflated(data)]
    return b"\n".join(found)


def _inflated(data: bytes) -> Iterator[bytes]:
    at = data.find(b"\x78")
    while at >= 0:
        with contextlib.suppress(zlib.error):
            yield zlib.decompressobj().decompress(data[at:])
        at = data.find(b"\x78", at + 1)


def digested(world: Wikis, session: str, goal: str) -> str:
    world.work(session, goal)
    world.drain()
    page = world.session(session).page
    assert page is not None
    return str(page)


def test_erasing_a_session_leaves_nothing_of_it_in_the_repository(world: Wikis) -> None:
    doomed = digested(world, "s1", "Fix the Zanzibar login")
    world.write("kept", "Kept words.")
    world.follow()
    world.write("kept", "Kept words, second.")
    world.follow()
    world.edit(f"session/{doomed}.md", "Zanzibar", "Zanzibar-edited")
    world.git("commit", "-qam", "about zanzibar")
    world.git("branch", "mine")
    world.git("tag", "-a", "v1", "-m", "zanzibar")
    world.git("remote", "add", "origin", "https://user:pass@example.org/wiki.git")
    world.follow()
    world.edit(f"session/{doomed}.md", "Zanzibar-edited", "zanzibar, not committed")
    (world.folder / f"session/{doomed}.conflict.md").write_text(world.read(f"session/{doomed}.md"), "utf-8")
    assert b"anzibar" in bytes_in(world.folder)
    world.store.write_now(erase, world.project, StreamTarget(stream=world.session("s1").stream))
    world.follow()
    assert b"anzibar" not in bytes_in(world.folder)
    assert world.files() == ["note/kept.md"]
    assert world.report().out_of_reach == ["origin"]
    assert "hand: note/kept.md: version 1" in world.commits()
    assert b"user:pass" not in (world.folder / ".git/everkept-report.json").read_bytes()
    world.check()
    world.drain()
    world.write("kept", "Kept words, third.")
    world.follow(world.another())
    assert b"anzibar" not in bytes_in(world.folder)
    world.check()


def test_a_file_of_an_erased_page_that_comes_back_is_not_taken_in(world: Wikis) -> None:
    doomed = digested(world, "s1", "Fix the Zanzibar login")
    world.write("kept", "Kept words.")
    world.follow()
    text = world.read(f"session/{doomed}.md")
    world.store.write_now(erase, world.project, StreamTarget(stream=world.session("s1").stream))
    world.follow()
    (world.folder / "session").mkdir()
    (world.folder / f"session/{doomed}.md").write_text(text, "utf-8")
    world.follow()
    assert world.slugs() == ["kept"]


def test_erasing_the_project_removes_its_folder_without_git_too(world: Wikis, monkeypatch: pytest.MonkeyPatch) -> None:
    world.write("a", "one")
    world.follow()
    world.store.write_now(erase, world.project, ProjectTarget())
    monkeypatch.setenv("PATH", str(world.home))
    world.projector.step_now()
    assert list((world.home / "wiki").iterdir()) == []
