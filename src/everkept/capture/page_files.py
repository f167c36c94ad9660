"""Instruction and memory files of coding agents, read as pages that know which file they came from.

CLAUDE.md, AGENTS.md, GEMINI.md and Cursor's rules hold rules; what Claude noted down by itself are notes. `source` is
`file:<path below the checkout>`, or `file:~/…` for a person's own files: the same on every machine and in every
worktree.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from everkept.capture.agents.policy import policy_at
from everkept.capture.identity import look_at
from everkept.capture.redaction import cleaned
from everkept.domain.pages import BODY_CHARS_MAX, TITLE_CHARS_MAX

INSTRUCTIONS: Final = frozenset(
    ["CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "AGENTS.override.md", "GEMINI.md", ".cursorrules"]
)
OF_PERSON: Final = (".claude/CLAUDE.md", ".claude/rules/**/*.md", ".codex/AGENTS.md", ".gemini/GEMINI.md")
BELOW_ROOT: Final = (".claude/CLAUDE.md", ".claude/rules/**/*.md")
CURSOR_RULES: Final = ".cursor/rules/**/*.mdc"
FOLDERS_MAX: Final = 5_000
DEPTH_MAX: Final = 8
BYTES_MAX: Final = 4 * BODY_CHARS_MAX
_NOT_OURS: Final = frozenset(
    ["node_modules", "vendor", "venv", "site-packages", "target", "dist", "build", "third_party", "__pycache__"]
)
_BLOCK: Final = re.compile(
    r"<!-- everkept:begin -->.*?<!-- everkept:end -->(\r?\n)?"
    r"|<!-- everkept:rules:begin[^<>]* -->.*?<!-- everkept:rules:end -->(\r?\n)?", re.DOTALL
)  # fmt: skip
_MARK: Final = re.compile(r"<!-- everkept:(rules:)?(begin[^<>]*|end) -->")
_FRONT: Final = re.compile(r"\A---[ \t]*\n(.*?\n)?---[ \t]*(?:\n|\Z)", re.DOTALL)
_FIELD: Final = re.compile(r"^([A-Za-z]+):[ \t]*(.*)$")
_APPLIES: Final = {"globs": "Applies to", "alwaysApply": "Always applies", "paths": "Applies to"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFile:
    path: Path
    source: str
    kind: Literal["rule", "note"]
    title: str
    within: Path
    """The folder that a link may not lead out of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePage:
    """A file as a page; or why it makes none."""

    source: str
    kind: Literal["rule", "note"]
    title: str = ""
    body: str = ""
    skipped_because: str | None = None


# ---- finding


def find_page_files(root: Path, home: Path) -> list[FoundFile]:
    """The files of a checkout, and what a person's agents noted down of it, in a fixed order.

    Not those of checkouts and other code below it, nor those of the person, which hold everywhere.
    """
    persons = frozenset(_matching(home, OF_PERSON))  # a home may be a checkout itself
    found = [
        _found(path, root, path.relative_to(root).as_posix())
        for path in [*sorted(_in_checkout(root)), *_matching(root, BELOW_ROOT)]
        if path not in persons
    ]
    for folder in memory_folders(root, home):
        for path in _matching(folder, ("**/*.md",)):
            file = _found(path, home, f"~/{path.relative_to(home).as_posix()}")
            found.append(replace(file, kind="note", title=f"Claude's memory: {path.relative_to(folder).as_posix()}"))
    return list({file.source: file for file in found}.values())


def find_person_files(home: Path) -> list[FoundFile]:
    """What a person tells all agents, whatever they work on, in a fixed order."""
    return [_found(path, home, f"~/{path.relative_to(home).as_posix()}") for path in _matching(home, OF_PERSON)]


def _found(path: Path, within: Path, name: str) -> FoundFile:
    return FoundFile(path=path, source=f"file:{name}", kind="rule", title=name, within=within)


def file_of_source(source: str, title: str, root: Path, home: Path) -> FoundFile | None:
    """The file of a page that was made of one, here; None for a page of another origin. It may not exist."""
    if not source.startswith("file:"):
        return None
    name = source.removeprefix("file:")
    within, below = (home, name[2:]) if name.startswith("~/") else (root, name)
    return FoundFile(path=within / below, source=source, kind="rule", title=title, within=within)


def memory_folders(root: Path, home: Path) -> list[Path]:
    """Where Claude keeps what it noted down of a checkout: all worktrees share the folder of the main one."""
    main = look_at(root).common_dir
    places = [root] if main is None or Path(main).name != ".git" else [Path(main).parent, root]
    names = dict.fromkeys(re.sub(r"[^A-Za-z0-9]", "-", str(place)) for place in places)
    return [folder for name in names if (folder := home / ".claude" / "projects" / name / "memory").is_dir()]


def _in_checkout(root: Path) -> Iterator[Path]:
    seen = 0
    for folder, below, files in os.walk(root):
        here = Path(folder)
        seen += 1
        depth = len(here.relative_to(root).parts)
        if seen > FOLDERS_MAX or (here != root and (here / ".git").exists()):
            below.clear()
            continue
        yield from (here / name for name in files if name in INSTRUCTIONS)
        yield from _matching(here, (CURSOR_RULES,))
        keep = [n for n in below if not n.startswith(".") and n not in _NOT_OURS and depth < DEPTH_MAX]
        below[:] = sorted(keep)


def _matching(folder: Path, globs: Sequence[str]) -> list[Path]:
    return [path for glob in globs for path in sorted(folder.glob(glob)) if path.is_file()]


# ---- reading


def read_page_files(files: Sequence[FoundFile]) -> Iterator[FilePage]:
    """Each file as a page. Of one file with several names (a link), the first counts."""
    seen: dict[Path, str] = {}
    for file in files:
        real = file.path.resolve()
        if real in seen:
            yield _skipped(file, f"the same file as {seen[real]}")
            continue
        seen[real] = file.source
        yield read_page_file(file)


def read_page_file(file: FoundFile) -> FilePage:
    """Without our own block, private parts and secrets; what the folder's policy keeps out is not read."""
    if not file.path.resolve().is_relative_to(file.within.resolve()):
        return _skipped(file, "it is a link that leads out of its folder")
    policy = policy_at(file.path.parent)
    if policy.off or policy.metadata_only or policy.ignores(str(file.path)):
        return _skipped(file, "kept out by .everkept.toml")
    try:
        if file.path.stat().st_size > BYTES_MAX:
            return _skipped(file, "it is too long for a page")
        text = file.path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return _skipped(file, "it is not text in UTF-8")
    except OSError as error:
        return _skipped(file, f"it cannot be read: {error.strerror or error}")
    return _page(file, text)


def _page(file: FoundFile, text: str) -> FilePage:
    told, text = _front_matter(text)
    own = without_block(text)
    body = cleaned(own).strip("\n")
    if not body.strip():
        return _skipped(file, "nothing is in it but Everkept's own block" if own != text else "it is empty")
    body = f"{cleaned(told)}\n\n{body}" if told else body
    if len(body) > BODY_CHARS_MAX:
        return _skipped(file, "it is too long for a page")
    if "\0" in body:
        return _skipped(file, "it holds a NUL character")
    title = cleaned(file.title)[-TITLE_CHARS_MAX:]
    return FilePage(source=file.source, kind=file.kind, title=title, body=body)


def without_block(text: str) -> str:
    """The text without what Everkept itself wrote into it; of marks that do not pair, without the marks."""
    return _MARK.sub("", _BLOCK.sub("", text))


def _front_matter(text: str) -> tuple[str, str]:
    """(what it says of the rule, in words, the rest). Cursor's is no strict YAML: `globs: *.ts` stands for itself."""
    found = _FRONT.match(text)
    if found is None:
        return "", text
    said: list[str] = []
    for line in (found[1] or "").splitlines():
        field = _FIELD.match(line)
        value = "" if field is None else field[2].strip().strip("\"'")
        if field is not None and value:
            name = _APPLIES.get(field[1], field[1].capitalize())
            said.append(f"{name}: {value}")
        elif field is None and line.strip():
            said.append(line.strip())
    return "\n".join(said), text[found.end() :]


def _skipped(file: FoundFile, because: str) -> FilePage:
    return replace(FilePage(source=file.source, kind=file.kind), skipped_because=because)
