"""JSON with comments and trailing commas, read with the place of each part, so that its text can be edited.

Settings files are people's own: what is not ours must stay byte for byte, which parsing and dumping cannot do.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal

DEPTH_MAX: Final = 200
_BLANKS = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")
_LINE_END = re.compile(r"\r?\n")
_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-")


class JsonFault(ValueError):
    """The text is not JSON (comments and trailing commas are fine); `line` counts from 1."""

    def __init__(self, what: str, line: int) -> None:
        super().__init__(f"line {line}: {what}")
        self.what = what
        self.line = line


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A member of an object, or an item of an array."""

    key: str | None
    """None for an item."""
    start: int
    """Where its key begins; of an item, where its value begins."""
    value: Node
    comma: int | None
    """Where the comma after it is."""

    @property
    def end(self) -> int:
        return self.value.end


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One value: `text[start:end]`."""

    kind: Literal["object", "array", "scalar"]
    start: int
    end: int
    value: Any
    children: tuple[Child, ...] = ()

    def member(self, key: str) -> Node | None:
        """The value that counts for this key: the last one, as everywhere in JSON."""
        return next((child.value for child in reversed(self.children) if child.key == key), None)

    def find(self, path: tuple[str, ...]) -> Node | None:
        node: Node | None = self
        for key in path:
            node = node.member(key) if node is not None and node.kind == "object" else None
        return node


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    start: int
    end: int
    to_line_end: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    text: str
    root: Node
    comments: tuple[Comment, ...]


@lru_cache(maxsize=4)
def parse(text: str) -> Document:
    """Read a whole text. Raises JsonFault.

    The last few are remembered: an edit looks at the same text many times, and a large file takes a second to read.
    """
    reader = _Reader(text)
    root = reader.value(0)
    reader.skip()
    if reader.at < len(text):
        raise reader.fault("there is something after the end")
    return Document(text=text, root=root, comments=tuple(reader.comments))


def line_of(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.comments: list[Comment] = []

    def fault(self, what: str) -> JsonFault:
        return JsonFault(what, line_of(self.text, self.at))

    def peek(self) -> str:
        return self.text[self.at] if self.at < len(self.text) else ""

    def skip(self) -> None:
        """Go over blanks and comments."""
        while True:
            self.at = _BLANKS.match(self.text, self.at).end()  # type: ignore[union-attr]  # it also matches nothing
            if self.peek() != "/":
                return
            end = comment_end(self.text, self.at)
            if end is None:
                return
            if end < 0:
                raise self.fault("this comment does not end")
            self.comments.append(Comment(start=self.at, end=end, to_line_end=self.text.startswith("//", self.at)))
            self.at = end

    def value(self, depth: int) -> Node:
        self.skip()
        if depth > DEPTH_MAX:
            raise self.fault(f"nested deeper than {DEPTH_MAX}")
        match self.peek():
            case "{":
                return self._box("object", "}", depth)
            case "[":
                return self._box("array", "]", depth)
            case '"':
                return self._scalar(_STRING, "this string does not end, or has a character that must be escaped")
            case "":
                raise self.fault("a value is missing: the file ends here")
            case _:
                return self._scalar(_SCALAR, "this is not a JSON value")

    def _scalar(self, pattern: re.Pattern[str], what: str) -> Node:
        found = pattern.match(self.text, self.at)
        if found is None or (pattern is _SCALAR and self.text[found.end() : found.end() + 1] in _WORD):
            raise self.fault(what)
        start, self.at = self.at, found.end()
        if found[0][0] == '"' and "\\" not in found[0]:
            return Node(kind="scalar", start=start, end=self.at, value=found[0][1:-1])
        try:
            value = json.loads(found[0])
        except ValueError:  # a number of thousands of digits: nothing of ours, and only its text matters
            value = found[0]
        return Node(kind="scalar", start=start, end=self.at, value=value)

    def _box(self, kind: Literal["object", "array"], close: str, depth: int) -> Node:
        start = self.at
        self.at += 1
        children: list[Child] = []
        while True:
            self.skip()
            if self.peek() == close:
                self.at += 1
                break
            if children and children[-1].comma is None:
                raise self.fault(f"a comma or {close} is missing")
            children.append(self._child(kind, depth))
        value: Any = (
            {child.key: child.value.value for child in children}
            if kind == "object"
            else [child.value.value for child in children]
        )
        return Node(kind=kind, start=start, end=self.at, value=value, children=tuple(children))

    def _child(self, kind: Literal["object", "array"], depth: int) -> Child:
        start, key = self.at, None
        if kind == "object":
            if self.peek() != '"':
                raise self.fault("a key in quotes is missing")
            key = str(self._scalar(_STRING, "this key does not end").value)
            self.skip()
            if self.peek() != ":":
                raise self.fault("a colon is missing")
            self.at += 1
        value = self.value(depth + 1)
        self.skip()
        comma = self.at if self.peek() == "," else None
        self.at += comma is not None
        return Child(key=key, start=start, value=value, comma=comma)


def comment_end(text: str, at: int) -> int | None:
    """Where the comment that begins here ends; None: none begins here; -1: it does not end."""
    if text.startswith("//", at):
        found = _LINE_END.search(text, at)
        return found.start() if found else len(text)
    if text.startswith("/*", at):
        end = text.find("*/", at + 2)
        return end + 2 if end >= 0 else -1
    return None
