"""Add, replace and remove single values in the text of a JSON file; every other byte stays.

Each function takes a text and gives a text. What is added follows the file's own line ends and indentation.
"""

from __future__ import annotations

import json
import re
from typing import Any

from everkept.errors import CannotWire
from everkept.wiring.jsonc import Child, Document, Node, comment_end, line_of, parse

Path = tuple[str, ...]


def box_at(document: Document, path: Path, kind: str) -> Node | None:
    """The object or array at a path, or None. Raises CannotWire where something else is there."""
    node = document.root.find(path)
    for length in range(len(path) + 1):
        above = document.root.find(path[:length])
        wanted = kind if length == len(path) else "object"
        if above is not None and above.kind != wanted:
            where = f"`{'.'.join(path[:length])}`" if length else "the whole"
            line = line_of(document.text, above.start)
            raise CannotWire(f"line {line}: {where} is not an {wanted}", line=line)
    return node


def set_member(text: str, path: Path, key: str, value: Any) -> str:
    """Put a member into the object at a path; objects that are missing on the way are made."""
    document = parse(text)
    box = box_at(document, path, "object")
    if box is None:
        return set_member(text, path[:-1], path[-1], {key: value})
    found = box.member(key)
    if found is not None:
        return _replaced(document, found, value)
    return _inserted(document, box, key, value)


def append_item(text: str, path: Path, value: Any) -> str:
    """Put an item at the end of the array at a path, which exists."""
    document = parse(text)
    box = box_at(document, path, "array")
    assert box is not None
    return _inserted(document, box, None, value)


def replace_value(text: str, node: Node, value: Any) -> str:
    """Put another value where this one is."""
    return _replaced(parse(text), node, value)


def drop_child(text: str, box: Node, index: int) -> str:
    """Take a member or an item out, with its line and the comma that it needed."""
    document = parse(text)
    child = box.children[index]
    after = child.end if child.comma is None else child.comma + 1
    if len(box.children) == 1:
        return _emptied(document, box, child, after)
    blank = _blank_before(text, child.start)
    start, after = _line_cut(document, blank, child.start, after)
    if index == 0 and "\n" not in text[blank : child.start]:
        start, after = child.start, _over(text, after, " \t")
    last = index == len(box.children) - 1
    before = box.children[index - 1].comma if last and child.comma is None else None
    head = text[:start] if before is None else text[:before] + text[before + 1 : start]
    return head + text[after:]


def drop_member(text: str, path: Path, key: str) -> str:
    box = parse(text).root.find(path)
    assert box is not None
    index = max(place for place, child in enumerate(box.children) if child.key == key)
    return drop_child(text, box, index)


# ---- places in the text


def _inserted(document: Document, box: Node, key: str | None, value: Any) -> str:
    text, newline, unit = document.text, newline_of(document.text), _unit(document)
    inside = text[box.start + 1 : box.end - 1]
    if not box.children:
        base = _indent(text, box.start)
        anchor = max(
            (each.end for each in document.comments if box.start < each.start < box.end), default=box.start + 1
        )
        tail = "" if "\n" in text[anchor : box.end - 1] else newline + base
        piece = newline + base + unit + _rendered(key, value, newline + base + unit, unit)
        return text[:anchor] + piece + tail + text[anchor:]
    last = box.children[-1]
    anchor = _after_comments(text, last.end if last.comma is None else last.comma + 1)
    if "\n" in inside:
        lead = newline + _child_indent(text, box, unit)
        piece = lead + _rendered(key, value, lead, unit)
    else:
        piece = " " + _rendered(key, value, None, unit)
    if last.comma is None:
        return text[: last.end] + "," + text[last.end : anchor] + piece + text[anchor:]
    return text[:anchor] + piece + "," + text[anchor:]


def _replaced(document: Document, node: Node, value: Any) -> str:
    text = document.text
    one_line = node.kind == "scalar" or "\n" not in text[node.start : node.end]
    lead = None if one_line else newline_of(text) + _indent(text, node.start)
    return text[: node.start] + _rendered(None, value, lead, _unit(document)) + text[node.end :]


def _emptied(document: Document, box: Node, child: Child, after: int) -> str:
    text = document.text
    if not (text[box.start + 1 : child.start] + text[after : box.end - 1]).strip():
        return text[: box.start + 1] + text[box.end - 1 :]
    start, after = _line_cut(document, _blank_before(text, child.start), child.start, after)
    return text[:start] + text[after:]


def _line_cut(document: Document, blank: int, start: int, after: int) -> tuple[int, int]:
    """What to cut so that neither an empty line nor a swallowed bracket is left: from the last line end before it."""
    text = document.text
    line_end = text.rfind("\n", blank, start)
    if line_end < 0:
        return blank, after
    if line_end > blank and text[line_end - 1] == "\r":
        line_end -= 1
    rest = _over(text, after, " \t")
    ends_here = text[rest : rest + 1] in ("\r", "\n") or text.startswith("//", rest)
    under_comment = any(each.to_line_end and each.end == line_end for each in document.comments)
    return (start, rest) if under_comment and not ends_here else (line_end, after)


def _rendered(key: str | None, value: Any, lead: str | None, unit: str) -> str:
    """As JSON: on one line without `lead`, else over lines that each begin with it."""
    name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
    if lead is None:
        return name + json.dumps(value, ensure_ascii=False)
    return name + json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", lead)


def newline_of(text: str) -> str:
    """The line end of a text: that of its first line."""
    found = re.search(r"\r?\n", text)
    return found[0] if found else "\n"


def _unit(document: Document) -> str:
    """One step of indentation, as the file's first indented member has it."""
    text = document.text
    for child in document.root.children[:1]:
        own = _indent(text, child.start)
        if text[_blank_before(text, child.start) : child.start].count("\n") and own:
            return own.removeprefix(_indent(text, document.root.start)) or "  "
    return "  "


def _child_indent(text: str, box: Node, unit: str) -> str:
    for child in box.children:
        if "\n" in text[_blank_before(text, child.start) : child.start]:
            return _indent(text, child.start)
    return _indent(text, box.start) + unit


def _indent(text: str, place: int) -> str:
    line = text.rfind("\n", 0, place) + 1
    return text[line : _over(text, line, " \t")]


def _blank_before(text: str, place: int) -> int:
    while place > 0 and text[place - 1] in " \t\r\n":
        place -= 1
    return place


def _over(text: str, place: int, letters: str) -> int:
    while place < len(text) and text[place] in letters:
        place += 1
    return place


def _after_comments(text: str, place: int) -> int:
    """Behind the comments that follow on this line: they belong to what stands before them."""
    while True:
        start = _over(text, place, " \t")
        end = comment_end(text, start)
        if end is None or end < 0 or "\n" in text[start:end]:
            return place
        place = end
