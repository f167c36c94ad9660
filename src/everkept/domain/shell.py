"""What a shell command line, or a patch as `apply_patch` takes it, changes in which files. Tolerant: it never raises.

A reading of the words, not a shell: variables, globs and command substitutions are not resolved, and a path that needs
one is left out. Whether the command succeeded is another question, and whether `>` met an existing file is unknown:
it counts as "created", `>>` as "edited".
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

Change = tuple[str, str]
"""(path, "created" | "edited" | "deleted" | "moved to NEW")"""

_PATCH_BEGINS: Final = "*** Begin Patch"
_PATCH_WORDS: Final = {"*** Add File: ": "created", "*** Update File: ": "edited", "*** Delete File: ": "deleted"}
_PATCH_MOVE: Final = "*** Move to: "

_MAY_CHANGE = re.compile(r">|\b(?:rm|mv|cp|touch|tee|unlink|rmdir|sed|perl)\b|\*\*\* ")
"""Most command lines change no file by name; only those that hold one of these are taken apart."""
_HEREDOC = re.compile(r"(?<!<)<<-?[ \t]*(['\"]?)(\w+)\1")
_TOKEN = re.compile(
    r"""(?P<comment>\#[^\n]*)
      | (?P<redirect>(?:\d|&)?>>?[|&]?|\d?<{1,3}[-&]?)
      | (?P<ends>\|[|&]?|&&?|;;?|\n|[()])
      | (?P<word>(?:[^\s;<>|&()'"\\]++|\\.|'[^']*+'|"(?:\\.|[^"\\])*+")+)
      | (?P<open>['"\\])""",
    re.VERBOSE | re.DOTALL,
)
_ASSIGNMENT = re.compile(r"\w+=")
_BEFORE_COMMANDS: Final = frozenset(["sudo", "time", "nohup", "command", "env", "exec", "then", "do", "else", "{", "!"])
_SHELLS: Final = frozenset(["sh", "bash", "zsh", "dash", "ksh"])
_NO_FILES: Final = ("/dev/", "/proc/")
_DEPTH_MAX: Final = 3


def changes_of(command: str) -> tuple[Change, ...]:
    """(path, change) of redirects, `rm`, `mv`, `cp`, `touch`, `tee`, `sed -i` and patches, in their order, each once.

    Paths stand as they were given; after a `cd` in the same command line they are joined to its folder.
    """
    if not _MAY_CHANGE.search(command):
        return ()
    found = dict.fromkeys(_changes(command, depth=0))
    return tuple((path, change) for path, change in found if _is_file(path) and _is_file(change))


def changes_of_patch(patch: str) -> tuple[Change, ...]:
    """(path, change) of each file of a patch that `apply_patch` takes; () for any other text."""
    return tuple(dict.fromkeys(_patched(patch)))


def _changes(command: str, *, depth: int) -> Iterator[Change]:
    if _PATCH_BEGINS in command:
        yield from _patched(command)
    folder = ""
    for words, redirects in _simple_commands(_without_documents(command.replace("\\\n", " "))):
        words = _from_its_name(words)
        if words[:1] == ["cd"] and len(words) > 1:
            folder = posixpath.join(folder, words[1]) if _is_file(words[1]) else ""
            continue
        if words[:1] == ["[["]:  # there, `>` compares
            continue
        done = [*_done_by(words), *redirects]
        if words and posixpath.basename(words[0]) in _SHELLS and depth < _DEPTH_MAX:
            done += _changes(_script_of(words), depth=depth + 1)
        yield from (_below(folder, path, change) for path, change in done)


def _simple_commands(text: str) -> Iterator[tuple[list[str], list[Change]]]:
    """(words, redirects) of each simple command; stops at a quote that is never closed."""
    words: list[str] = []
    redirects: list[Change] = []
    redirect = ""
    for token in _TOKEN.finditer(text):
        kind, value = token.lastgroup, token.group()
        if kind == "open":
            break
        if kind == "redirect":
            redirect = value
        elif kind == "ends":
            redirect = ""
            yield words, redirects
            words, redirects = [], []
        elif kind == "word":
            word = _plain(value)
            if not redirect:
                words.append(word)
            elif "<" not in redirect and not (redirect.endswith("&") and (word.isdigit() or word == "-")):  # no 2>&1
                redirects.append((word, "edited" if ">>" in redirect else "created"))
            redirect = ""
    yield words, redirects


def _without_documents(text: str) -> str:
    """The text without the bodies of its here-documents, which are data and may hold anything."""
    if "<<" not in text:
        return text
    kept: list[str] = []
    ends: list[str] = []
    for line in text.split("\n"):
        if not ends:
            kept.append(line)
            ends = [end for _, end in _HEREDOC.findall(line)]
        elif line.strip() == ends[0]:
            ends.pop(0)
    return "\n".join(kept)


def _plain(word: str) -> str:
    """The word without its quotes and escapes."""
    if not any(mark in word for mark in "'\"\\"):
        return word
    try:
        return "".join(shlex.split(word))
    except ValueError:
        return word


def _from_its_name(words: list[str]) -> list[str]:
    """The words from the command's name on: what stands before it (FOO=1, sudo, then) falls away."""
    for at, word in enumerate(words):
        if word not in _BEFORE_COMMANDS and not _ASSIGNMENT.match(word):
            return words[at:]
    return []


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


def _script_of(words: list[str]) -> str:
    """What `bash -lc SCRIPT` runs, else nothing."""
    for option, script in pairwise(words):
        if option.startswith("-") and option.endswith("c"):
            return script
    return ""


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


def _below(folder: str, path: str, change: str) -> Change:
    if not folder:
        return path, change
    new = change.removeprefix("moved to ")
    return _join(folder, path), change if new == change else f"moved to {_join(folder, new)}"


def _join(folder: str, path: str) -> str:
    return path if path.startswith("~") else posixpath.normpath(posixpath.join(folder, path))


def _is_file(path: str) -> bool:
    return bool(path) and not path.startswith((*_NO_FILES, "&")) and not any(mark in path for mark in "$`\n{}")
