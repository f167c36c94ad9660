"""Instruction and memory files of coding agents, found and read as pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from everkept.capture.page_files import (
    FilePage,
    find_page_files,
    find_person_files,
    read_page_files,
    without_block,
)


def put(folder: Path, path: str, text: str | bytes = "Some words.\n") -> Path:
    place = folder / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(text if isinstance(text, bytes) else text.encode())
    return place


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "code" / "app"
    (made / ".git").mkdir(parents=True)
    return made


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    made.mkdir()
    return made


def pages(root: Path, home: Path) -> dict[str, FilePage]:
    return {page.source: page for page in read_page_files(find_page_files(root, home))}


def only(root: Path, home: Path) -> FilePage:
    (page,) = pages(root, home).values()
    return page


def test_every_known_file_of_a_checkout_is_found_with_its_place(root: Path, home: Path) -> None:
    names = ["CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "GEMINI.md", ".cursorrules", ".claude/CLAUDE.md",
             ".claude/rules/api/errors.md", ".cursor/rules/style.mdc", "web/.cursor/rules/css.mdc", "web/AGENTS.md",
             "web/src/CLAUDE.md"]  # fmt: skip
    for name in names:
        put(root, name, f"words of {name}")
    assert sorted(pages(root, home)) == sorted(f"file:{name}" for name in names)
    assert {page.kind for page in pages(root, home).values()} == {"rule"}


@pytest.mark.parametrize(
    "name",
    ["node_modules/x/CLAUDE.md", ".venv/lib/AGENTS.md", "README.md", ".cursor/rules/style.md", "docs/claude.md",
     "nested/.git/CLAUDE.md", "a/b/c/d/e/f/g/h/i/j/AGENTS.md"],
)  # fmt: skip
def test_other_files_and_other_peoples_code_are_not(root: Path, home: Path, name: str) -> None:
    put(root, name)
    assert pages(root, home) == {}


def test_a_checkout_inside_the_checkout_is_another_one(root: Path, home: Path) -> None:
    put(root, "sub/CLAUDE.md")
    put(root, "sub/.git", "gitdir: ../.git/modules/sub")
    assert pages(root, home) == {}


def test_a_persons_own_files_are_rules(root: Path, home: Path) -> None:
    for name in (".claude/CLAUDE.md", ".codex/AGENTS.md", ".gemini/GEMINI.md"):
        put(home, name, name)
    found = list(read_page_files(find_person_files(home)))
    assert [p.source for p in found] == ["file:~/.claude/CLAUDE.md", "file:~/.codex/AGENTS.md",
                                         "file:~/.gemini/GEMINI.md"]  # fmt: skip
    assert {page.kind for page in found} == {"rule"}
    assert pages(root, home) == {}, "they are of no checkout"


def test_a_persons_own_files_are_of_no_checkout_also_where_the_home_is_one(home: Path) -> None:
    put(home, ".claude/CLAUDE.md", "Use tabs")
    put(home, "AGENTS.md", "Keep it short")
    assert list(pages(home, home)) == ["file:AGENTS.md"]


def test_what_claude_noted_down_of_this_checkout_are_notes(root: Path, home: Path) -> None:
    name = re.sub(r"[^A-Za-z0-9]", "-", str(root))
    put(home, f".claude/projects/{name}/memory/MEMORY.md", "Index")
    put(home, f".claude/projects/{name}/memory/debugging.md", "Use pdb")
    put(home, ".claude/projects/-some-other/memory/MEMORY.md", "not of this one")
    put(home, f".claude/projects/{name}/session.jsonl")
    found = list(pages(root, home).values())
    assert [(p.title, p.kind) for p in found] == [
        ("Claude's memory: MEMORY.md", "note"), ("Claude's memory: debugging.md", "note")]  # fmt: skip


def test_a_worktree_has_the_memory_of_its_main_checkout(root: Path, home: Path, tmp_path: Path) -> None:
    (root / ".git" / "worktrees" / "other").mkdir(parents=True)
    put(root, ".git/worktrees/other/commondir", "../..")
    worktree = tmp_path / "other"
    put(worktree, ".git", f"gitdir: {root / '.git' / 'worktrees' / 'other'}")
    put(home, f".claude/projects/{re.sub(r'[^A-Za-z0-9]', '-', str(root))}/memory/MEMORY.md", "Index")
    assert only(worktree, home).body == "Index"


def test_our_own_block_is_left_out(root: Path, home: Path) -> None:
    block = "<!-- everkept:begin -->\n## Memory\nwords of ours\n<!-- everkept:end -->\n"
    put(root, "CLAUDE.md", f"# Rules\n\n{block}\nUse tabs.\n")
    put(root, "AGENTS.md", block)
    found = pages(root, home)
    assert found["file:CLAUDE.md"].body == "# Rules\n\n\nUse tabs."
    assert found["file:AGENTS.md"].skipped_because == "nothing is in it but Everkept's own block"


def test_a_mark_without_its_pair_takes_no_words_with_it() -> None:
    assert without_block("a\n<!-- everkept:begin -->\nb") == "a\n\nb"


def test_secrets_and_private_parts_are_not_read(root: Path, home: Path) -> None:
    token = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"
    put(root, "CLAUDE.md", f"Log in with {token}.\n<private>my diary</private>\nUse tabs.")
    body = only(root, home).body
    assert token not in body
    assert "diary" not in body
    assert "Use tabs." in body


def test_cursors_front_matter_is_told_in_words(root: Path, home: Path) -> None:
    put(root, ".cursor/rules/ts.mdc", "---\ndescription: Style of TypeScript\nglobs: **/*.ts, **/*.tsx\n"
        "alwaysApply: false\n---\n# TypeScript\nNo any.\n")  # fmt: skip
    page = only(root, home)
    assert page.body == (
        "Description: Style of TypeScript\nApplies to: **/*.ts, **/*.tsx\nAlways applies: false\n\n"
        "# TypeScript\nNo any."
    )


def test_front_matter_of_another_kind_or_none_is_no_trouble(root: Path, home: Path) -> None:
    put(root, "CLAUDE.md", "---\npaths:\n  - src/**\n---\nInner words.\n---\nMore.")
    put(root, "AGENTS.md", "---\nnot closed")
    found = pages(root, home)
    assert found["file:CLAUDE.md"].body == "- src/**\n\nInner words.\n---\nMore."
    assert found["file:AGENTS.md"].body == "---\nnot closed"


@pytest.mark.parametrize(
    ("data", "because"),
    [(b"", "it is empty"), (b"\n \n", "it is empty"), (b"\xff\xfe\x00", "it is not text in UTF-8"),
     (b"a\0b", "it holds a NUL character"), (b"x" * 200_001, "it is too long for a page"),
     (b"x" * 900_000, "it is too long for a page")],
)  # fmt: skip
def test_what_cannot_be_a_page_is_skipped_with_its_reason(root: Path, home: Path, data: bytes, because: str) -> None:
    put(root, "CLAUDE.md", data)
    assert only(root, home).skipped_because == because


def test_one_file_with_two_names_is_one_page(root: Path, home: Path) -> None:
    put(root, "AGENTS.md")
    (root / "CLAUDE.md").symlink_to("AGENTS.md")
    found = pages(root, home)
    assert [found[f"file:{n}"].skipped_because for n in ("AGENTS.md", "CLAUDE.md")] == [
        None, "the same file as file:AGENTS.md"]  # fmt: skip


def test_a_link_out_of_the_checkout_is_not_followed(root: Path, home: Path, tmp_path: Path) -> None:
    put(tmp_path, "secret.txt", "not yours")
    (root / "CLAUDE.md").symlink_to(tmp_path / "secret.txt")
    assert only(root, home).skipped_because == "it is a link that leads out of its folder"


@pytest.mark.parametrize("policy", ["off = true", "metadata_only = true", 'ignore = ["web/**"]'])
def test_what_the_folders_policy_keeps_out_is_not_read(root: Path, home: Path, policy: str) -> None:
    put(root, "web/CLAUDE.md")
    put(root, ".everkept.toml", policy)
    assert only(root, home).skipped_because == "kept out by .everkept.toml"
