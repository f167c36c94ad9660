"""Rules and skills as coding agents read them without asking: a marked block in an instruction file, a SKILL.md folder.

Pure: texts in, texts out. The same pages give the same bytes; what was changed by hand between the marks is found
again, by page; and without the block a file is what it was before it, to the byte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from everkept.errors import Conflict

BLOCK_KINDS: Final = ("rule", "procedure")
SKILL_KIND: Final = "skill"
END: Final = "<!-- everkept:rules:end -->"
INTRO: Final = "What was agreed on in this project. Edit it here or with `everkept pages`: either way it is kept."
_OPEN: Final = "after-an-open-line"
_NEW: Final = "new-file"
_BEGIN = re.compile(r"<!-- everkept:rules:begin(?P<words>(?: [^\s<>]+)*) -->")
_RULE = re.compile(r"^<!-- everkept:rule (?P<slug>[^\s<>@]+)@(?P<version>\d+) -->$", re.MULTILINE)
_TITLE = re.compile(r"\A## (?P<title>[^\n]+)\n*")
_SKILL = re.compile(
    r"\A---\nname: (?P<name>[^\n]+)\ndescription: (?P<description>[^\n]+)\n"
    r"everkept: (?P<slug>[^\s@]+)@(?P<version>\d+)\n---\n"
)
_SKILL_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+){0,62}")
SKILL_NAME_MAX: Final = 64
DESCRIPTION_MAX: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class RulePage:
    """A page at one version, as a file shows it: without empty lines around its body."""

    slug: str
    version: int
    title: str
    body: str

    @property
    def name(self) -> str:
        return f"{self.slug}@{self.version}"


def can_be_shown(page: RulePage) -> bool:
    """Whether its words can be told from our marks."""
    return "<!-- everkept:" not in page.title + page.body


# ---- a block in an instruction file


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """What stands between the marks."""

    listed: dict[str, int]
    """{slug: version} that were written."""
    found: tuple[RulePage, ...]
    """What is there now, whoever wrote it."""


def block_in(text: str) -> Block | None:
    """Raises Conflict where the marks do not pair."""
    place = _place(text)
    if place is None:
        return None
    begin = _BEGIN.search(text)
    assert begin is not None
    words = [word for word in begin["words"].split() if "@" in word]
    listed = {slug: int(version) for slug, _, version in (word.rpartition("@") for word in words)}
    inner = text[begin.end() : place[1] - len(END)].replace("\r\n", "\n")
    marks = list(_RULE.finditer(inner))
    ends = [mark.start() for mark in marks[1:]] + [len(inner)]
    found = [_read(mark, inner[mark.end() : end]) for mark, end in zip(marks, ends, strict=True)]
    return Block(listed=listed, found=tuple(found))


def _read(mark: re.Match[str], words: str) -> RulePage:
    words = words.strip("\n")
    title = _TITLE.match(words)
    return RulePage(
        slug=mark["slug"], version=int(mark["version"]), title="" if title is None else title["title"].strip(),
        body=words if title is None else words[title.end() :],
    )  # fmt: skip


def with_block(text: str, pages: Sequence[RulePage], *, is_new: bool = False) -> str:
    """The text with these pages in its block: where it stands, else at the end. Raises Conflict.

    `is_new`: there was no file; its removal leaves none.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    place = _place(text)
    if place is not None:
        begin = _BEGIN.search(text)
        assert begin is not None
        kept = [word for word in begin["words"].split() if "@" not in word]
        return text[: place[0]] + _block(pages, kept, newline) + text[place[1] :]
    kept = [_NEW] if is_new else [] if not text or text.endswith("\n") else [_OPEN]
    return text + _gap(text, newline) + _block(pages, kept, newline) + newline


def _gap(text: str, newline: str) -> str:
    return "" if not text else newline if text.endswith("\n") else newline * 2


def _block(pages: Sequence[RulePage], kept: Sequence[str], newline: str) -> str:
    begin = " ".join(["<!-- everkept:rules:begin", *kept, *(page.name for page in pages), "-->"])
    parts = [f"<!-- everkept:rule {page.name} -->\n## {page.title}\n\n{page.body}\n" for page in pages]
    return newline.join("\n".join([begin, INTRO, "", *parts, END]).splitlines())


def without_block(text: str) -> str | None:
    """The text as it was before the block; None where there was no file. Raises Conflict."""
    place = _place(text)
    if place is None:
        return text
    begin = _BEGIN.search(text)
    assert begin is not None
    newline = "\r\n" if text[place[1] :].startswith("\r\n") or "\r\n" in text[: place[1]] else "\n"
    head, tail = text[: place[0]], text[place[1] :].removeprefix(newline)
    head = head.removesuffix(newline * 2 if _OPEN in begin["words"].split() and not tail else newline)
    return None if _NEW in begin["words"].split() and not (head + tail).strip() else head + tail


def _place(text: str) -> tuple[int, int] | None:
    """Where the block begins and ends."""
    begins, ends = list(_BEGIN.finditer(text)), text.count(END)
    if not begins and not ends:
        return None
    end = text.find(END, begins[0].end()) if begins else -1
    if len(begins) != 1 or ends != 1 or end < 0:
        raise Conflict("the marks `everkept:rules:begin` and `everkept:rules:end` do not pair; mend or delete them")
    return begins[0].start(), end + len(END)


# ---- a folder with a SKILL.md


def skill_file(page: RulePage) -> str:
    """The text of its SKILL.md."""
    first = " ".join(page.body.split("\n\n", 1)[0].split())
    description = f"{page.title}: {first}"[:DESCRIPTION_MAX]
    return (
        f"---\nname: {page.slug}\ndescription: {json.dumps(description, ensure_ascii=False)}\n"
        f"everkept: {page.name}\n---\n\n{page.body}\n"
    )


def can_be_skill(page: RulePage) -> bool:
    """Whether agents accept its name as that of a skill."""
    return len(page.slug) <= SKILL_NAME_MAX and _SKILL_NAME.fullmatch(page.slug) is not None


def skill_in(text: str) -> RulePage | None:
    """What a SKILL.md of ours says now; its title is not in it. None for one that is not ours."""
    head = _SKILL.match(text.replace("\r\n", "\n"))
    if head is None:
        return None
    body = text.replace("\r\n", "\n")[head.end() :].strip("\n")
    return RulePage(slug=head["slug"], version=int(head["version"]), title="", body=body)
