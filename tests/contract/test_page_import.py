"""Instruction files become pages: a version for each change of the file, and nothing comes back (E03)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.test_sessions import prompt
from tests.contract.test_wiki import Wikis, parts_of

from everkept.api.page_files import PagesReport, import_pages, import_pages_of
from everkept.errors import NotFound


class Checkout(Wikis):
    """A checkout and a home beside the store."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.root = folder / "app"
        self.person = folder / "person"
        (self.root / ".git").mkdir(parents=True)
        self.person.mkdir()

    def put(self, name: str, text: str) -> None:
        (self.root / name).write_text(text, "utf-8")

    def take(self, project: str = "home") -> PagesReport:
        self.clock.advance(1)
        return asyncio.run(import_pages(parts_of(self.store), project, self.root, self.person))

    def outcomes(self) -> dict[str, str]:
        return {page.source.removeprefix("file:"): page.outcome for page in self.take().pages}


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Checkout]:
    made = Checkout(tmp_path)
    yield made
    made.store.close()


def test_a_file_is_a_page_with_its_source_and_each_change_a_version(checkout: Checkout) -> None:
    checkout.put("CLAUDE.md", "Use tabs.")
    assert checkout.outcomes() == {"CLAUDE.md": "new"}
    assert checkout.outcomes() == {"CLAUDE.md": "unchanged"}
    checkout.put("CLAUDE.md", "Use spaces.")
    assert checkout.outcomes() == {"CLAUDE.md": "changed"}
    page = checkout.page("claude-md")
    assert (page.kind, page.source, page.body, page.version) == ("rule", "file:CLAUDE.md", "Use spaces.", 2)
    assert checkout.authors("claude-md") == ["import", "import"]


def test_a_deleted_page_stays_deleted_however_the_file_changes(checkout: Checkout) -> None:
    checkout.put("CLAUDE.md", "Use tabs.")
    checkout.take()
    checkout.delete("claude-md")
    checkout.put("CLAUDE.md", "Use spaces.")
    assert checkout.outcomes() == {"CLAUDE.md": "deleted"}
    assert checkout.slugs() == []


def test_a_file_that_vanished_deletes_nothing(checkout: Checkout) -> None:
    checkout.put("CLAUDE.md", "Use tabs.")
    checkout.take()
    (checkout.root / "CLAUDE.md").unlink()
    assert checkout.outcomes() == {}
    assert checkout.slugs() == ["claude-md"]


def test_an_unchanged_file_does_not_undo_what_a_person_wrote(checkout: Checkout) -> None:
    checkout.put("CLAUDE.md", "Use tabs.")
    checkout.take()
    checkout.write("claude-md", "Use tabs, but not in YAML.", kind="rule")
    assert checkout.outcomes() == {"CLAUDE.md": "unchanged"}
    assert checkout.page("claude-md").body == "Use tabs, but not in YAML."
    checkout.put("CLAUDE.md", "Use spaces.")
    (taken,) = checkout.take().pages
    assert (taken.outcome, taken.because) == ("changed", "version 2 by hand stays in the history")


def test_a_page_of_another_origin_with_the_same_name_is_left_alone(checkout: Checkout) -> None:
    checkout.write("claude-md", "By hand.")
    checkout.put("CLAUDE.md", "Use tabs.")
    (taken,) = checkout.take().pages
    assert taken.outcome == "new"
    assert taken.slug != "claude-md"
    assert checkout.page("claude-md").body == "By hand."
    assert checkout.outcomes() == {"CLAUDE.md": "unchanged"}


def test_an_imported_page_edited_in_the_wiki_keeps_its_source(checkout: Checkout) -> None:
    checkout.put("CLAUDE.md", "Use tabs.")
    checkout.take()
    checkout.follow()
    checkout.edit("rule/claude-md.md", "tabs", "spaces")
    checkout.follow()
    assert checkout.page("claude-md").source == "file:CLAUDE.md"
    assert checkout.outcomes() == {"CLAUDE.md": "unchanged"}
    checkout.check()


def test_skipped_files_are_told_with_the_reason(checkout: Checkout) -> None:
    checkout.put("AGENTS.md", "")
    report = checkout.take()
    assert (report.count("skipped"), report.pages[0].because) == (1, "it is empty")


def test_an_unknown_project_is_an_error(checkout: Checkout) -> None:
    with pytest.raises(NotFound, match="no project 'nowhere'"):
        checkout.take("nowhere")


# ---- a person's own files


def of_person(checkout: Checkout) -> list[tuple[str, str, str]]:
    """(project, slug, body) of the pages of a person's files, from what is in the store."""
    return checkout.rows("select p.name, g.slug, v.body from pages g join projects p on p.id = g.project_id"
                         " join page_versions v on v.page_id = g.id and v.version = g.version"
                         " where g.source like 'file:~/%' order by 1, 2")  # fmt: skip


def test_a_persons_own_files_hold_everywhere_and_are_taken_in_once(checkout: Checkout) -> None:
    (checkout.person / ".claude").mkdir()
    (checkout.person / ".claude" / "CLAUDE.md").write_text("Always use tabs.", "utf-8")
    checkout.put("CLAUDE.md", "Use spaces here.")
    sessions = set()
    for number in (1, 2):
        told = checkout.told(f"s{number}", prompt(f"s{number}", "hello"), worktree=str(checkout.root))
        assert told.stream is not None
        sessions.add(("home", told.stream))

    def take() -> list[tuple[str, str, str]]:
        report = asyncio.run(import_pages_of(parts_of(checkout.store), sessions, checkout.person))
        return [(page.project, page.source, page.outcome) for page in report.pages]

    assert take() == [("home", "file:CLAUDE.md", "new"), ("default", "file:~/.claude/CLAUDE.md", "new")]
    assert [outcome for _, _, outcome in take()] == ["unchanged", "unchanged"]
    assert of_person(checkout) == [("default", "claude-claude-md", "Always use tabs.")]
    assert checkout.slugs() == ["claude-md"]


def test_nothing_of_a_person_is_taken_in_where_no_session_was(checkout: Checkout) -> None:
    (checkout.person / ".codex").mkdir()
    (checkout.person / ".codex" / "AGENTS.md").write_text("Always use tabs.", "utf-8")
    assert asyncio.run(import_pages_of(parts_of(checkout.store), set(), checkout.person)).pages == []
    assert of_person(checkout) == []
