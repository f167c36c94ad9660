"""What happens again and again made equal: error lines and commands with placeholders for what differs each time.

`Error: connect ECONNREFUSED 127.0.0.1:5432` and the same of another port are one error; `git tag v1.2.3` and
`git tag v1.3.0` are one step. Names stay: they are what an error or a command is about.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import Final

from everkept.domain.command_line import Step, program_words
from everkept.domain.digest.clip import clean, one_line

SHAPE_CHARS_MAX: Final = 240

_PLACEHOLDERS: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), name)
    for pattern, name in (
        (r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>]+", "<url>"),
        (r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "<id>"),
        (r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?", "<time>"),
        (r"\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?\b", "<time>"),
        (r"\b(?:localhost|\d{1,3}(?:\.\d{1,3}){3})(?::\d+)?\b|(?<!\S)::1(?::\d+)?", "<address>"),
        (r"\b0x[0-9a-f]+\b|\b(?=[0-9a-f]*\d)(?=[0-9]*[a-f])[0-9a-f]{7,}\b", "<id>"),
        (r"\b[a-z]:\\[^\s'\"<>|]+", "<path>"),
        # A path, with line and column; a scoped package (`@acme/ui`) is a name, and `and/or` no path.
        (r"(?<![\w@/.-])(?!@)(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]*(?::\d+)*(?<![.:])|(?<!\S)/[\w.@+-]+", "<path>"),
        (r"\b[\w-]+\.[a-z]{1,5}(?::\d+){1,2}\b", "<path>"),
        (r"\bv?\d+(?:\.\d+){1,3}(?:-[\w.]+)?(?:ms|s|m)?\b", "<n>"),
        (r"\b\d+(?:,\d{3})*(?:ms|s|m|k|kb|mb|gb|%)?\b", "<n>"),
    )
)  # fmt: skip


def text_shape(text: str) -> str:
    """A line of an output: caseless, on one line, at most `SHAPE_CHARS_MAX`."""
    text = clean(text[: SHAPE_CHARS_MAX * 4])
    for pattern, name in _PLACEHOLDERS:
        text = pattern.sub(name, text)
    return " ".join(text.casefold().split())[:SHAPE_CHARS_MAX].strip()


_PLACEHOLDER: Final = re.compile(r"<[a-z]+>")


def without_placeholders(shape: str) -> str:
    return " ".join(_PLACEHOLDER.sub(" ", shape).split())


_RUN_A_FILE: Final = frozenset("bash sh zsh node python python3 ruby perl php deno tsx ts-node bun go source".split())
"""Their first operand is what they run, and stays."""
_ON_FILES: Final = frozenset(
    "black cargo cat chmod chown cp eslint flake8 git go isort jest ln mkdir mocha mv mypy node nano open phpunit "
    "prettier pyright pytest python python3 rm rmdir rspec ruff rubocop shellcheck tar touch tsc unzip vim vitest "
    "zip".split()
)
"""Their operands are files, other ones each time; those of others are what they are about (`kubectl apply`)."""
_SAYS: Final = frozenset({"git", "gh", "hg", "glab"})
"""Their messages and branches are other ones each time."""
_MESSAGES: Final = frozenset({"-m", "-am", "-F", "--message", "--title", "--body", "-t", "--notes"})
_BRANCHES: Final = frozenset({"-b", "-B", "-c", "--branch"})
_VERSION: Final = re.compile(r"v?\d+(?:\.\d+)+(?:[-+][\w.]+)?")
_VERSION_AT_END: Final = re.compile(r"^(?P<name>[\w./-]+?)(?P<sign>[=@:]{1,2})v?\d+(?:\.\d+)+[\w.-]*$")
_HEX: Final = re.compile(r"(?=.*\d)(?=.*[a-f])[0-9a-f]{7,40}")
_FILE: Final = re.compile(r"[\w.@-]*\.[A-Za-z][A-Za-z0-9]{0,5}")


def step_shape(step: Step) -> str:
    """A simple command as it may be run again: messages, versions, branches and files are placeholders.

    On one line, at most `SHAPE_CHARS_MAX`; empty where nothing is run.
    """
    words = [word.raw for word in program_words(step)]
    if not words:
        return ""
    words[0] = words[0] if words[0].startswith(("./", "../")) else posixpath.basename(words[0]) or words[0]
    if words[:2] == ["git", "add"]:
        return "git add <path>"
    shown = list(_operands(words))
    kept = [word for at, word in enumerate(shown) if not (at and word == shown[at - 1] == "<path>")]
    return one_line(" ".join(kept), SHAPE_CHARS_MAX)


def _operands(words: Sequence[str]) -> Iterator[str]:
    """`git` alone says little: its verb is kept, and of an interpreter the file that it runs."""
    kept = 2 if words[0] in _RUN_A_FILE else 1
    on_files = any(word in _ON_FILES for word in words[:4])  # `uv run pytest`, `bundle exec rspec`
    before = ""
    for at, word in enumerate(words):
        if words[0] in _SAYS and before in _MESSAGES:
            yield "<text>"
        elif words[0] in _SAYS and before in _BRANCHES:
            yield "<branch>"
        elif at < kept:
            yield word
        else:
            yield _operand(word, is_file=on_files and not before.startswith("-"))
        before = word


def _operand(word: str, *, is_file: bool) -> str:
    bare = word.strip("'\"")
    if versioned := _VERSION_AT_END.match(bare):
        return f"{versioned['name']}{versioned['sign']}<version>"
    if any(char.isspace() for char in bare) or "<<" in word:
        return "<text>"
    if word.startswith("-"):
        return word
    if _VERSION.fullmatch(bare):
        return "<version>"
    if bare.isdigit():
        return "<n>"
    if _HEX.fullmatch(bare):
        return "<id>"
    if (
        is_file
        and bare != "./..."
        and not bare.startswith("@")
        and ("/" in bare or _FILE.fullmatch(bare))
        and "<" not in bare
    ):
        return "<path>"
    return word
