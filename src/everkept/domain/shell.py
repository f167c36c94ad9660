"""What a shell command line, or a patch as `apply_patch` takes it, changes in which files. Tolerant: it never raises.

A reading of the words, not a shell: variables, globs and command substitutions are not resolved, and a path that needs
one is left out. Whether the command succeeded is another question, and whether `>` met an existing file is unknown:
it counts as "created", `>>` as "edited".
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import Final

from everkept.domain.command_line import SHELLS, Redirect, Step, folder_after, program_words, script_of, steps_of

Change = tuple[str, str]
"""(path, "created" | "edited" | "deleted" | "moved to NEW")"""

_PATCH_BEGINS: Final = "*** Begin Patch"
_PATCH_WORDS: Final = {"*** Add File: ": "created", "*** Update File: ": "edited", "*** Delete File: ": "deleted"}
_PATCH_MOVE: Final = "*** Move to: "

_APPLIES: Final = frozenset({"apply_patch", "applypatch"})
CHANGES: Final = frozenset("git mkdir rm rmdir unlink mv cp touch tee sed perl".split()) | SHELLS | _APPLIES
"""Programs that may change files, or make folders, by names that stand in the command line."""
_MAY_CHANGE = re.compile(r">|\b(?:rm|mv|cp|touch|tee|unlink|rmdir|sed|perl)\b|\*\*\* ")
"""Most command lines change no file by name; only those that hold one of these are taken apart."""
_NO_FILES: Final = ("/dev/", "/proc/")
_DEPTH_MAX: Final = 3


def changes_of(command: str) -> tuple[Change, ...]:
    """(path, change) of redirects, `rm`, `mv`, `cp`, `touch`, `tee`, `sed -i` and patches, in their order, each once.

    Paths stand as they were given; after a `cd` in the same command line they are joined to its folder, and where that
    is not known, relative ones are left out.
    """
    return changes_in(steps_of(command)) if _MAY_CHANGE.search(command) else ()


def changes_in(steps: Sequence[Step]) -> tuple[Change, ...]:
    """The same of a command line that was taken apart."""
    found = dict.fromkeys(_changes(steps, depth=0))
    return tuple((path, change) for path, change in found if _is_file(path) and _is_file(change))


def changes_of_patch(patch: str) -> tuple[Change, ...]:
    """(path, change) of each file of a patch that `apply_patch` takes; () for any other text."""
    return tuple(dict.fromkeys(_patched(patch)))


def _changes(steps: Sequence[Step], *, depth: int) -> Iterator[Change]:
    folders: list[str | None] = [""]
    for step in steps:
        del folders[step.within + 1 :]
        folders += [folders[-1]] * (step.within + 1 - len(folders))
        folder = folders[-1]
        for path, change in _changes_by(step, depth=depth):
            if (placed := _below(folder, path)) and (told := _told_below(folder, change)):
                yield placed, told
        folders[-1] = folder_after(step, folder)
    yield from _patches_in(steps)


def _changes_by(step: Step, *, depth: int) -> Iterator[Change]:
    words = program_words(step)
    if words[:1] and words[0].text == "[[":  # there, `>` compares
        return
    yield from _done_by([word.text for word in words])
    for redirect in step.redirects:
        if writes(redirect):
            yield redirect.target.text, "edited" if ">>" in redirect.sign else "created"
    if depth < _DEPTH_MAX and (script := script_of(words)):
        yield from _changes(steps_of(script), depth=depth + 1)


def writes(redirect: Redirect) -> bool:
    """Into a file: not `2>&1`."""
    return ">" in redirect.sign and not (redirect.sign.endswith("&") and _NO_FILE.fullmatch(redirect.target.text))


_NO_FILE = re.compile(r"\d*-?")


def _patches_in(steps: Sequence[Step]) -> Iterator[Change]:
    """Those given to `apply_patch`, as its argument, its here-document, or through a pipe."""
    if any(posixpath.basename(word.text) in _APPLIES for step in steps for word in program_words(step)[:1]):
        for step in steps:
            for text in (step.here, *step.arguments):
                if _PATCH_BEGINS in text:
                    yield from _patched(text)


def _done_by(words: list[str]) -> Iterator[Change]:
    if not words:
        return
    name, rest = posixpath.basename(words[0]), words[1:]
    if name == "git" and rest[:1] in (["rm"], ["mv"]):
        name, rest = ("kept" if "--cached" in rest else rest[0]), rest[1:]
    options, paths = _options_and_paths(rest)
    match name:
        case "rm" | "unlink" | "rmdir":
            yield from ((path, "deleted") for path in paths)
        case "mv":
            yield from ((old, f"moved to {new}") for old, new in _pairs(paths))
        case "cp":
            yield from ((new, "created") for _, new in _pairs(paths))
        case "touch":
            yield from ((path, "created") for path in paths)
        case "tee":
            yield from ((path, "edited" if "-a" in options else "created") for path in paths)
        case "sed" | "perl":
            if any(option.startswith("-i") or (name == "perl" and "i" in option) for option in options):
                yield from ((path, "edited") for path in _edited_in_place(rest))


def _options_and_paths(words: list[str]) -> tuple[list[str], list[str]]:
    if "--" in words:
        at = words.index("--")
        options, paths = _options_and_paths(words[:at])
        return options, [*paths, *words[at + 1 :]]
    return [w for w in words if w.startswith("-")], [w for w in words if w and not w.startswith("-")]


def _pairs(paths: list[str]) -> Iterator[tuple[str, str]]:
    """(from, to) of `mv` and `cp`; several sources, or a target that ends in a slash, go into a folder."""
    if len(paths) < 2:
        return
    *sources, target = paths
    into = len(sources) > 1 or target.endswith("/")
    for source in sources:
        yield source, posixpath.join(target, posixpath.basename(source.rstrip("/"))) if into else target


def _edited_in_place(words: list[str]) -> Iterator[str]:
    """The files of `sed -i` and `perl -pi -e`: the words that are neither options nor the script."""
    script_is_next, script_seen = False, False
    for word in words:
        if script_is_next:
            script_is_next = False
        elif word.startswith("-"):
            script_is_next = word.rstrip("=") in ("-e", "-f", "--expression", "--file", "-pe", "-ne", "-pie")
            script_seen = script_seen or script_is_next
        elif word:
            if script_seen:
                yield word
            script_seen = True


def _patched(patch: str) -> Iterator[Change]:
    path = ""
    for line in patch.splitlines():
        if not line.startswith("*** "):
            continue
        if line.startswith(_PATCH_MOVE) and path:
            yield path, f"moved to {line.removeprefix(_PATCH_MOVE).strip()}"
        for word, change in _PATCH_WORDS.items():
            if line.startswith(word):
                path = line.removeprefix(word).strip()
                yield path, change


def _below(folder: str | None, path: str) -> str:
    """The path, joined to the folder that a `cd` led to; empty where that is not known."""
    if folder == "" or path.startswith(("/", "~")):
        return path
    return "" if folder is None else posixpath.normpath(posixpath.join(folder, path))


def _told_below(folder: str | None, change: str) -> str:
    new = change.removeprefix(_MOVED)
    if new == change:
        return change
    placed = _below(folder, new)
    return f"{_MOVED}{placed}" if placed else ""


_MOVED: Final = "moved to "


def _is_file(path: str) -> bool:
    return bool(path) and not path.startswith((*_NO_FILES, "&")) and not any(mark in path for mark in "$`\n{}")
