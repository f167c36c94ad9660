"""The engine under the rules: google-re2, whose time is linear whatever the text, else Python's `re`.

Patterns are written in RE2's syntax and run over the bytes of an image.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Final, Literal, Protocol

EngineName = Literal["re2", "re"]


class Match(Protocol):
    """What both engines' matches can do."""

    @property
    def lastindex(self) -> int | None: ...
    def span(self, group: int = ..., /) -> tuple[int, int]: ...
    def start(self, group: int = ..., /) -> int: ...
    def end(self, group: int = ..., /) -> int: ...


class Pattern(Protocol):
    """What both engines' patterns can do."""

    @property
    def groups(self) -> int: ...
    def search(self, image: bytes, start: int = ..., /) -> Match | None: ...
    def finditer(self, image: bytes, /) -> Iterator[Match]: ...


class NotTranslatable(ValueError):
    """An engine cannot run this pattern; the message says why."""


@cache
def default_engine() -> EngineName:
    """`re2` where google-re2 is installed."""
    return "re" if importlib.util.find_spec("re2") is None else "re2"


@cache
def compiled(pattern: str, engine: EngineName) -> Pattern:
    """The pattern, made ready once. Raises NotTranslatable."""
    return _with_re2(pattern) if engine == "re2" else _with_re(pattern)


def word_finder(words: Sequence[str], engine: EngineName) -> Callable[[bytes], set[int]]:
    """A function that says which of these lower-case words, by number, occur in an image in whatever case."""
    if engine == "re2":
        return _finder_with_re2(words)
    encoded = [word.encode() for word in words]

    def find(image: bytes) -> set[int]:
        lower = image.lower()
        return {number for number, word in enumerate(encoded) if word in lower}

    return find


def _re2() -> Any:
    """google-re2, which is not installed everywhere and ships no types."""
    return importlib.import_module("re2")


def _re2_options(*, case_sensitive: bool = True) -> Any:
    re2 = _re2()

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # a byte is a character
    options.log_errors = False
    options.case_sensitive = case_sensitive
    options.max_mem = 64 << 20
    return options


def _with_re2(pattern: str) -> Pattern:
    re2 = _re2()
    try:
        found: Pattern = re2.compile(pattern.encode(), _re2_options())
    except re2.error as error:
        raise NotTranslatable(error.args[0].decode(errors="replace")) from error
    return found


def _finder_with_re2(words: Sequence[str]) -> Callable[[bytes], set[int]]:
    re2 = _re2()
    table = re2.Set.SearchSet(_re2_options(case_sensitive=False))
    for word in words:
        table.Add(re2.escape(word))
    sentinel = table.Add("")  # always found, unless the engine ran out of memory
    table.Compile()
    everything = set(range(len(words)))

    def find(image: bytes) -> set[int]:
        found = set(table.Match(image) or ())
        if sentinel not in found:
            return everything
        found.discard(sentinel)
        return found

    return find


_UNBOUNDED_IN_UNBOUNDED: Final = re.compile(r"\.\*\)?\)\{|\(\?s:\.\)\{0,\d+\}\?")


def _with_re(pattern: str) -> Pattern:
    if _UNBOUNDED_IN_UNBOUNDED.search(pattern):
        raise NotTranslatable("its time in Python's re may be exponential")
    try:
        return re.compile(python_syntax(pattern).encode())
    except re.error as error:
        raise NotTranslatable(str(error)) from error


_TOKEN: Final = re.compile(r"\\z|\\.|\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]|\(\?i\)|\(|\)|\||[^\\\[()|]+|.", re.DOTALL)
_POSIX: Final = {"[:alnum:]": "a-zA-Z0-9", "[:alpha:]": "a-zA-Z", "[:digit:]": "0-9", "[:xdigit:]": "0-9a-fA-F"}


def python_syntax(pattern: str) -> str:
    """RE2's syntax in Python's: `\\z`, POSIX classes, and `(?i)` from the middle of a group to its end."""
    written: list[str] = []
    folded = [False]  # for each open group: is a `(?i:` of ours open in it?
    for token in _TOKEN.findall(pattern):
        if token == "(?i)":
            written.append("(?i:" if written and not folded[-1] else "" if folded[-1] else token)
            folded[-1] = folded[-1] or len(written) > 1
        elif token == "(":
            folded.append(False)
            written.append(token)
        elif token == ")":
            written.append("))" if folded.pop() else ")")
        elif token == "|" and folded[-1]:
            written.append(")|(?i:")
        else:
            written.append(_python_token(token))
    return "".join(written) + (")" if folded[-1] else "")


def _python_token(token: str) -> str:
    if token == r"\z":
        return r"\Z"
    if token.startswith("["):
        for posix, ranges in _POSIX.items():
            token = token.replace(posix, ranges)
    return token
