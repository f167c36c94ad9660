"""Rules in files: written where asked, read back first, never over somebody's words, and gone to the byte."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from everkept.api.local import LocalService
from everkept.bootstrap import open_application
from everkept.capture.page_files import find_page_files, read_page_files
from everkept.config import load
from everkept.doors.cli.rule_files import follow
from everkept.errors import NotFound
from everkept.wiring.agreed_folders import agree, agreed_folders
from everkept.wiring.rule_files import Written, remove_rule_files, write_rule_files

OURS = "# Ours\n\nkeep this"


def run(tmp_path: Path, steps: Callable[[LocalService, Path], Awaitable[None]]) -> None:
    """A project with one rule that a person wrote, and a checkout with an AGENTS.md of its own."""
    root = tmp_path / "repo"
    root.mkdir()
    (root / "AGENTS.md").write_bytes(OURS.encode())

    async def all_of_it() -> None:
        application = await open_application(load({}, tmp_path / "home"), worker=False)
        try:
            service = await application.service("default")
            await service.write_page("Use uv", "Use uv, not pip.\n", kind="rule")
            await steps(service, root)
        finally:
            await application.close()

    asyncio.run(all_of_it())


def agents(root: Path) -> str:
    return (root / "AGENTS.md").read_text("utf-8")


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def edit(root: Path, old: str, new: str, name: str = "AGENTS.md") -> None:
    path = root / name
    path.write_bytes(path.read_bytes().replace(old.encode(), new.encode()))


def test_rules_are_written_once_and_removed_to_the_byte(tmp_path: Path) -> None:
    async def steps(service: LocalService, root: Path) -> None:
        first = await write_rule_files(service, root)
        assert first.files == [str(root / "AGENTS.md")]
        assert "<!-- everkept:rule use-uv@1 -->\n## Use uv\n\nUse uv, not pip.\n" in agents(root)
        assert await write_rule_files(service, root) == Written(), "the same pages give the same bytes"
        await remove_rule_files(service, root)
        assert (root / "AGENTS.md").read_bytes() == OURS.encode()

    run(tmp_path, steps)


def test_what_was_changed_by_hand_is_a_version_first(tmp_path: Path) -> None:
    async def steps(service: LocalService, root: Path) -> None:
        await write_rule_files(service, root)
        edit(root, "not pip", "never pip")
        told = await write_rule_files(service, root)
        assert told.taken_in == ["use-uv: version 2, changed in AGENTS.md"]
        page = await service.get_page("use-uv")
        assert (page.body, page.author, page.kind) == ("Use uv, never pip.\n", "disk", "rule")
        assert "use-uv@2" in agents(root)

    run(tmp_path, steps)


def test_a_rule_that_was_taken_out_by_hand_is_deleted_and_stays_so(tmp_path: Path) -> None:
    async def steps(service: LocalService, root: Path) -> None:
        await service.write_page("Lint first", "Always.", kind="procedure")
        await write_rule_files(service, root)
        text = agents(root)
        begin = text.index("<!-- everkept:rule use-uv")
        (root / "AGENTS.md").write_text(text[:begin] + text[text.index("<!-- everkept:rule lint-first") :], "utf-8")
        told = await write_rule_files(service, root)
        assert told.taken_in == ["use-uv: taken out of AGENTS.md"]
        with pytest.raises(NotFound, match="was deleted"):
            await service.get_page("use-uv")
        assert "uv" not in agents(root)
        assert "lint-first@1" in agents(root)

    run(tmp_path, steps)


def test_where_file_and_page_both_moved_on_the_file_is_left_alone(tmp_path: Path) -> None:
    async def steps(service: LocalService, root: Path) -> None:
        await write_rule_files(service, root)
        edit(root, "not pip", "never pip")
        await service.write_page("Use uv", "Use uv 1.0.\n", kind="rule")
        before = agents(root)
        for work in (write_rule_files, remove_rule_files):
            told = await work(service, root)
            assert (told.files, agents(root)) == ([], before)
            assert "is at version 2, and this was written on version 1" in told.left_alone[str(root / "AGENTS.md")]
        assert (await service.get_page("use-uv")).body == "Use uv 1.0.\n"

    run(tmp_path, steps)


def test_an_older_block_that_nobody_changed_is_brought_up_to_date(tmp_path: Path) -> None:
    async def steps(service: LocalService, root: Path) -> None:
        await write_rule_files(service, root)
        old = agents(root)
        await service.write_page("Use uv", "Use uv 1.0.\n", kind="rule")
        await write_rule_files(service, root)
        (root / "AGENTS.md").write_text(old, "utf-8")  # another branch was checked out
        assert (await write_rule_files(service, root)).taken_in == []
        assert "Use uv 1.0." in agents(root)

    run(tmp_path, steps)


def test_only_what_a_person_wrote_or_approved_is_published(tmp_path: Path) -> None:
    async def steps(service: LocalService, root: Path) -> None:
        await service.write_page("By itself", "Distilled.", kind="rule", author="distiller")
        await service.write_page("By an agent", "It says so.", kind="rule", author="codex")
        await service.write_page("A note", "No rule.", kind="note")
        await write_rule_files(service, root)
        assert all(words not in agents(root) for words in ("Distilled", "It says so", "No rule"))

    run(tmp_path, steps)


def test_a_skill_is_a_folder_of_its_own_and_others_stay(tmp_path: Path) -> None:
    async def steps(service: LocalService, root: Path) -> None:
        await service.write_page("Release", "1. tag\n2. push\n", kind="skill")
        await service.write_page("Deploy", "1. push\n", kind="skill")
        theirs = root / ".agents/skills/deploy/SKILL.md"
        theirs.parent.mkdir(parents=True)
        theirs.write_text("---\nname: deploy\ndescription: theirs\n---\n\nwords\n", "utf-8")
        told = await write_rule_files(service, root)
        ours = root / ".agents/skills/release/SKILL.md"
        assert ours.read_text("utf-8").startswith('---\nname: release\ndescription: "Release: 1. tag 2. push"\n')
        assert told.left_alone == {str(theirs): "there is a skill of this name that is not ours"}
        edit(root, "2. push", "2. push the tag", ".agents/skills/release/SKILL.md")
        await write_rule_files(service, root)
        assert (await service.get_page("release")).body == "1. tag\n2. push the tag\n"
        await remove_rule_files(service, root)
        assert not ours.parent.exists()
        assert theirs.is_file()

    run(tmp_path, steps)


def test_a_file_that_takes_in_agents_md_gets_no_block_of_its_own(tmp_path: Path) -> None:
    async def steps(service: LocalService, root: Path) -> None:
        (root / "CLAUDE.md").write_text("@AGENTS.md\n", "utf-8")
        assert (await write_rule_files(service, root)).files == [str(root / "AGENTS.md")]
        (root / "CLAUDE.md").write_text("# Claude\n", "utf-8")
        assert (await write_rule_files(service, root)).files == [str(root / "CLAUDE.md")]

    run(tmp_path, steps)


def test_a_file_that_was_made_for_the_rules_goes_with_them(tmp_path: Path) -> None:
    async def steps(service: LocalService, root: Path) -> None:
        (root / "AGENTS.md").unlink()
        await write_rule_files(service, root)
        assert "Use uv, not pip." in agents(root)
        await remove_rule_files(service, root)
        assert names_in(root) == []

    run(tmp_path, steps)


def test_a_broken_block_is_not_guessed_at(tmp_path: Path) -> None:
    async def steps(service: LocalService, root: Path) -> None:
        await write_rule_files(service, root)
        edit(root, "<!-- everkept:rules:end -->", "")
        before = agents(root)
        told = await write_rule_files(service, root)
        assert "do not pair" in told.left_alone[str(root / "AGENTS.md")]
        assert agents(root) == before

    run(tmp_path, steps)


def test_what_we_wrote_is_not_taken_in_again_with_the_file(tmp_path: Path) -> None:
    async def steps(service: LocalService, root: Path) -> None:
        await write_rule_files(service, root)
        (page,) = read_page_files(find_page_files(root, tmp_path / "nobody"))
        assert page.body == OURS

    run(tmp_path, steps)


def test_files_follow_by_themselves_only_where_that_was_agreed(tmp_path: Path) -> None:
    root = tmp_path / "repo"
    root.mkdir()
    home = tmp_path / "home"

    async def all_of_it() -> None:
        application = await open_application(load({}, home), worker=False)
        try:
            await (await application.service("default")).write_page("Use uv", "Use uv.\n", kind="rule")
            await follow(application, home)
            assert not (root / "AGENTS.md").exists()
            agree(home, root, "default")
            agree(home, tmp_path / "gone", "default")
            await follow(application, home)
            assert "Use uv." in agents(root)
        finally:
            await application.close()

    asyncio.run(all_of_it())
    agree(home, root, None)
    assert agreed_folders(home) == {tmp_path / "gone": "default"}
