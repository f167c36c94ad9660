"""Writing what was agreed on into a checkout, for agents that ask no memory: AGENTS.md, CLAUDE.md, SKILL.md folders.

Only on the machine that has the checkout. What was changed by hand there is taken in as a version of its page first,
and a file that says something else than both is left alone and told of.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from everkept.api import views as v
from everkept.api.service import Service
from everkept.deliver.rule_files import (
    BLOCK_KINDS,
    SKILL_KIND,
    RulePage,
    block_in,
    can_be_shown,
    can_be_skill,
    skill_file,
    skill_in,
    with_block,
    without_block,
)
from everkept.errors import CannotWire, Conflict, NotFound
from everkept.store.pages import BY_ITSELF
from everkept.wiring import files

AGREED_BY: Final = frozenset({"review", "hand"})
"""Authors of a version that say that somebody wants the page: an approved proposal, a person."""
AUTHOR: Final = "disk"
"""Of what was changed in a file."""
INSTRUCTIONS: Final = ("AGENTS.md", "CLAUDE.md")
SKILL_FOLDERS: Final = {"AGENTS.md": ".agents/skills", "CLAUDE.md": ".claude/skills"}
SKILL_FILE: Final = "SKILL.md"
PAGES_MAX: Final = 500
REMOVED_MAX: Final = 5
"""Rules that a person takes out of a block at once; more is taken for a broken block."""


@dataclass(slots=True, kw_only=True)
class Written:
    """What was done to the files of one checkout."""

    files: list[str] = field(default_factory=list)
    """Written or removed."""
    taken_in: list[str] = field(default_factory=list)
    """Pages that got a version by hand, or that a person took out."""
    left_alone: dict[str, str] = field(default_factory=dict)
    """{file that was not touched: why}"""


async def write_rule_files(memory: Service, root: Path) -> Written:
    """Make the files of the checkout at `root` show what is agreed on now. Raises OSError."""
    told = Written()
    await _take_in(memory, root, told)
    pages = await _agreed(memory)
    for path in _instruction_files(root):
        if str(path) not in told.left_alone:
            await asyncio.to_thread(_write_block, path, [p for p in pages if p.kind in BLOCK_KINDS], told)
    skills = [p.shown for p in pages if p.kind == SKILL_KIND and can_be_skill(p.shown)]
    for folder in _skill_folders(root):
        await asyncio.to_thread(_write_skills, folder, skills, told)
    return told


async def remove_rule_files(memory: Service, root: Path) -> Written:
    """Leave the files as they were without us; what was changed by hand is taken in first. Raises OSError."""
    told = Written()
    await _take_in(memory, root, told)
    for name in INSTRUCTIONS:
        path = root / name
        if str(path) not in told.left_alone:
            await asyncio.to_thread(_remove_block, path, told)
    for folder in SKILL_FOLDERS.values():
        await asyncio.to_thread(_write_skills, root / folder, [], told)
    return told


# ---- which pages


@dataclass(frozen=True, slots=True, kw_only=True)
class _Agreed:
    kind: str
    shown: RulePage


async def _agreed(memory: Service) -> list[_Agreed]:
    """Pages that a person wrote or approved, in an order that does not change by itself: by kind and name."""
    found = []
    for kind in (*BLOCK_KINDS, SKILL_KIND):
        for listed in (await memory.list_pages(kind=kind, limit=PAGES_MAX)).items:
            if listed.source is None and listed.author not in BY_ITSELF and await _is_agreed(memory, listed):
                page = shown(await memory.get_page(listed.slug))
                if can_be_shown(page):
                    found.append(_Agreed(kind=kind, shown=page))
    return sorted(found, key=lambda each: ((*BLOCK_KINDS, SKILL_KIND).index(each.kind), each.shown.slug))


async def _is_agreed(memory: Service, page: v.KnowledgePage) -> bool:
    if page.author in AGREED_BY:
        return True
    return any(version.author in AGREED_BY for version in await memory.page_history(page.slug))


def shown(page: v.KnowledgePage) -> RulePage:
    body = (page.body or "").replace("\r\n", "\n").strip("\n")
    return RulePage(slug=page.slug, version=page.version, title=" ".join(page.title.split()), body=body)


# ---- what was changed by hand


async def _take_in(memory: Service, root: Path, told: Written) -> None:
    for name in INSTRUCTIONS:
        path = root / name
        words = await asyncio.to_thread(_read, path)
        if words is not None:
            try:
                await _take_in_block(memory, path, words, told)
            except Conflict as conflict:
                told.left_alone[str(path)] = conflict.message
    for folder in SKILL_FOLDERS.values():
        for path in sorted((root / folder).glob(f"*/{SKILL_FILE}")):
            text = await asyncio.to_thread(_read, path)
            skill = None if text is None else skill_in(text)
            try:
                if skill is not None:
                    await _take_in_page(memory, path, skill, told)
            except Conflict as conflict:
                told.left_alone[str(path)] = conflict.message


async def _take_in_block(memory: Service, path: Path, text: str, told: Written) -> None:
    block = block_in(text)
    if block is None:
        return
    for page in block.found:
        await _take_in_page(memory, path, page, told)
    taken_out = {slug: n for slug, n in block.listed.items() if slug not in {page.slug for page in block.found}}
    if len(taken_out) > REMOVED_MAX:
        raise Conflict(f"{len(taken_out)} rules are gone from the block; delete their pages by hand if they are to go")
    for slug, version in taken_out.items():
        now = await _newest(memory, slug)
        if now is not None and now.version == version:
            await memory.delete_page(slug)
            told.taken_in.append(f"{slug}: taken out of {path.name}")


async def _take_in_page(memory: Service, path: Path, found: RulePage, told: Written) -> None:
    """A version for what was changed since `found.version` was written. Raises Conflict where the page moved on too."""
    now = await _newest(memory, found.slug)
    if now is None:
        return
    try:
        written = shown(await memory.get_page(found.slug, version=found.version))
    except NotFound:
        raise Conflict(f"version {found.version} of {found.slug}, which it shows, is not there any more") from None
    title = found.title or written.title
    if (title, found.body) == (written.title, written.body) or (title, found.body) == (now.title, now.body):
        return
    if not found.body.strip():
        raise Conflict(f"the words of {found.slug} are gone; delete the page by hand if it is to go")
    page = await memory.write_page(
        title, f"{found.body}\n", kind=await _kind(memory, found.slug), slug=found.slug, base=found.version,
        author=AUTHOR, reason=f"changed in {path.name}",
    )  # fmt: skip
    told.taken_in.append(f"{page.slug}: version {page.version}, changed in {path.name}")


async def _newest(memory: Service, slug: str) -> RulePage | None:
    try:
        return shown(await memory.get_page(slug))
    except NotFound:
        return None


async def _kind(memory: Service, slug: str) -> str:
    return (await memory.get_page(slug)).kind


# ---- files


def _instruction_files(root: Path) -> list[Path]:
    """Those that are there, each file once whatever its names; AGENTS.md where none is. One that takes in AGENTS.md
    anyway needs no block of its own."""
    there = [root / name for name in INSTRUCTIONS if (root / name).is_file()]
    if not there:
        return [root / INSTRUCTIONS[0]]
    chosen = {path.resolve(): path for path in reversed(there)}
    if len(chosen) > 1 and "@AGENTS.md" in (_read(root / "CLAUDE.md") or ""):
        chosen.pop((root / "CLAUDE.md").resolve())
    return sorted(chosen.values())


def _skill_folders(root: Path) -> Iterator[Path]:
    claude = (root / "CLAUDE.md").exists() or (root / ".claude").is_dir()
    if claude:
        yield root / SKILL_FOLDERS["CLAUDE.md"]
    if (root / "AGENTS.md").exists() or not claude:
        yield root / SKILL_FOLDERS["AGENTS.md"]


def _write_block(path: Path, pages: Sequence[_Agreed], told: Written) -> None:
    text = _read(path)
    try:
        new = with_block(text or "", [page.shown for page in pages], is_new=text is None) if pages else (
            None if text is None else without_block(text)
        )  # fmt: skip
    except Conflict as conflict:
        told.left_alone[str(path)] = conflict.message
        return
    _replace(path, text, new, told)


def _remove_block(path: Path, told: Written) -> None:
    text = _read(path)
    if text is not None:
        try:
            _replace(path, text, without_block(text), told)
        except Conflict as conflict:
            told.left_alone[str(path)] = conflict.message


def _write_skills(folder: Path, skills: Sequence[RulePage], told: Written) -> None:
    """Only files of ours are replaced or removed, and a folder that is empty then goes with its file."""
    wanted = {folder / page.slug / SKILL_FILE: skill_file(page) for page in skills}
    ours = [path for path in sorted(folder.glob(f"*/{SKILL_FILE}")) if skill_in(_read(path) or "") is not None]
    for path in dict.fromkeys([*wanted, *ours]):
        text = _read(path)
        if str(path) in told.left_alone:
            continue
        if text is not None and path not in ours:
            told.left_alone[str(path)] = "there is a skill of this name that is not ours"
            continue
        _replace(path, text, wanted.get(path), told)
        if path not in wanted:
            _remove_empty(path.parent, up_to=folder.parent)


def _remove_empty(folder: Path, *, up_to: Path) -> None:
    while folder != up_to and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def _read(path: Path) -> str | None:
    """Raises CannotWire for what is not UTF-8, or cannot be read."""
    content = files.read_bytes(path)
    if content is None:
        return None
    mark, text = files.decoded(content, path)
    return mark.decode("utf-8") + text


def _replace(path: Path, old: str | None, new: str | None, told: Written) -> None:
    """Only while the file is what it was when it was read. Raises CannotWire, OSError."""
    if old == new:
        return
    files.check_writable(path)
    if _read(path) != old:
        raise CannotWire(f"{path} was changed just now; run this again", path=str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    files.replace(path, None if new is None else new.encode("utf-8"))
    told.files.append(str(path))
