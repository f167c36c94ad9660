"""Our parts in JSON files: a handler at each event, and an entry among the MCP servers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from everkept.wiring.agent import SERVER, Commands, Kept
from everkept.wiring.command import is_our_hook, is_our_server
from everkept.wiring.json_edit import (
    append_item,
    box_at,
    drop_child,
    drop_member,
    newline_of,
    replace_value,
    set_member,
)
from everkept.wiring.jsonc import Node, parse

Scaffold = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class HookPart:
    """Our handler at each event, in the `hooks` of a JSON file."""

    path: Path
    home: Path
    events: tuple[str, ...]
    handler: Callable[[str, str], dict[str, Any]]
    """The handler for (event, command)."""
    nested: bool = True
    """event → [{matcher, hooks: [handler]}], else event → [handler]."""
    scaffold: Scaffold = field(default_factory=dict)
    """What a file of this kind cannot be without."""

    def add(self, text: str, commands: Commands) -> str:
        text = with_scaffold(text, self.scaffold)
        for event in self._foreign_events(text):
            text = self._remove_at(text, event, frozenset({"hooks"}))
        for event in self.events:
            text = self._set(text, event, self.handler(event, commands.hook))
        return text

    def _foreign_events(self, text: str) -> list[str]:
        """Events that an older version wired and this one does not."""
        return [event for event in self.wired_events(text) if event not in self.events]

    def _set(self, text: str, event: str, handler: dict[str, Any]) -> str:
        found = self._handlers(text, event)
        if found is None:
            return set_member(text, ("hooks",), event, [self._entry(handler)])
        if not found:
            return append_item(text, ("hooks", event), self._entry(handler))
        for _ in found[1:]:
            box, index = self._handlers(text, event)[-1]  # type: ignore[index]  # it was found, and is not the first
            text = self._drop(text, event, box, index)
        command = found[0][0].children[found[0][1]].value.member("command")
        assert command is not None
        # Only the command is put right: a matcher or a time limit that a person changed is theirs, and in Codex the
        # place of a hook is part of what was trusted.
        return text if command.value == handler["command"] else replace_value(text, command, handler["command"])

    def _entry(self, handler: dict[str, Any]) -> dict[str, Any]:
        return {"hooks": [handler]} if self.nested else handler

    def remove(self, text: str, kept: Kept) -> str:
        for event in self.wired_events(text):
            text = self._remove_at(text, event, kept)
        return restore_blanks(without_scaffold(text, self.scaffold, kept), kept)

    def _remove_at(self, text: str, event: str, kept: Kept) -> str:
        while found := self._handlers(text, event):
            text = self._drop(text, event, *found[-1])
        return prune(text, ("hooks", event), kept)

    def _drop(self, text: str, event: str, box: Node, index: int) -> str:
        if self.nested and len(box.children) == 1:
            groups = parse(text).root.find(("hooks", event))
            assert groups is not None
            place = next(nth for nth, group in enumerate(groups.children) if group.start <= box.start < group.end)
            return drop_child(text, groups, place)
        return drop_child(text, box, index)

    def _handlers(self, text: str, event: str) -> list[tuple[Node, int]] | None:
        """Ours at an event: (the array that holds it, its index); None: the event is not in the file."""
        groups = box_at(parse(text), ("hooks", event), "array")
        if groups is None:
            return None
        boxes = [groups]
        if self.nested:
            inner = (group.value.member("hooks") for group in groups.children if group.value.kind == "object")
            boxes = [box for box in inner if box is not None and box.kind == "array"]
        return [
            (box, index)
            for box in boxes
            for index, child in enumerate(box.children)
            if isinstance(child.value.value, dict) and is_our_hook(child.value.value.get("command"), self.home)
        ]

    def foreign(self, text: str) -> object:
        if not text.strip():
            return {}
        value = parse(text).root.value
        hooks = value.get("hooks")
        if isinstance(hooks, dict):
            others = {event: self._others(entries) for event, entries in hooks.items()}
            value = value | {"hooks": {event: entries for event, entries in others.items() if entries != []}}
        return _meaning(value, "hooks", self.scaffold)

    def _others(self, entries: Any) -> Any:
        if not isinstance(entries, list):
            return entries
        return [other for entry in entries if (other := self._other(entry)) is not None]

    def _other(self, entry: Any) -> Any:
        """An entry without our handler; None where nothing is left."""
        if not isinstance(entry, dict):
            return entry
        if not self.nested:
            return None if is_our_hook(entry.get("command"), self.home) else entry
        inner = entry.get("hooks")
        if not isinstance(inner, list):
            return entry
        others = [
            each for each in inner if not (isinstance(each, dict) and is_our_hook(each.get("command"), self.home))
        ]
        return None if inner and not others else entry | {"hooks": others}

    def wired_events(self, text: str) -> dict[str, str]:
        """The events that run our hook, each with its command."""
        if not text.strip():
            return {}
        hooks = box_at(parse(text), ("hooks",), "object")
        events = [] if hooks is None else [child.key or "" for child in hooks.children if child.value.kind == "array"]
        found = ((event, self._handlers(text, event)) for event in events)
        return {event: box[0][0].children[box[0][1]].value.value["command"] for event, box in found if box}

    def kept(self, text: str) -> Kept:
        return containers(text, [("hooks",), *(("hooks", event) for event in self.events)], self.scaffold)

    def is_bare(self, text: str) -> bool:
        return is_bare_json(text, self.scaffold)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPart:
    """Our MCP server in a JSON file."""

    path: Path
    entry: Callable[[list[str]], dict[str, Any]]
    """What stands under the server's name."""
    words: Callable[[dict[str, Any]], Any]
    """The command line of an entry, to tell ours."""
    above: Callable[[Any], tuple[str, ...]] = lambda _: ("mcpServers",)
    """Where servers are, in a file with this content."""
    scaffold: Scaffold = field(default_factory=dict)

    def add(self, text: str, commands: Commands) -> str:
        text = with_scaffold(text, self.scaffold)
        above, found = self.find(text)
        wanted = self.entry(commands.server)
        if found is None:
            return set_member(text, above, SERVER, wanted)
        if not self.is_ours(found) or all(found.get(key) == value for key, value in wanted.items()):
            return text
        return set_member(text, above, SERVER, found | wanted)

    def remove(self, text: str, kept: Kept) -> str:
        if not text.strip():
            return text
        above, found = self.find(text)
        if found is not None and self.is_ours(found):
            text = prune(drop_member(text, above, SERVER), above, kept)
        return restore_blanks(without_scaffold(text, self.scaffold, kept), kept)

    def find(self, text: str) -> tuple[tuple[str, ...], Any]:
        """(where servers are, what stands under our name)."""
        if not text.strip():
            return self.above({}), None
        document = parse(text)
        above = self.above(document.root.value)
        box = box_at(document, above, "object")
        node = None if box is None else box.member(SERVER)
        return above, None if node is None else node.value

    def is_ours(self, entry: Any) -> bool:
        return isinstance(entry, dict) and is_our_server(self.words(entry))

    def foreign(self, text: str) -> object:
        if not text.strip():
            return {}
        above, found = self.find(text)
        value = parse(text).root.value
        if found is not None and self.is_ours(found):
            value = _without_server(value, above)
        return _meaning(value, above[0], self.scaffold)

    def kept(self, text: str) -> Kept:
        above = self.find(text)[0]
        return containers(text, [above[: length + 1] for length in range(len(above))], self.scaffold)

    def is_bare(self, text: str) -> bool:
        return is_bare_json(text, self.scaffold)


# ---- what JSON files share


def with_scaffold(text: str, scaffold: Scaffold) -> str:
    """The text; where it holds nothing yet, with what a file of its kind cannot be without."""
    if not text.strip():
        newline = newline_of(text)
        return json.dumps(scaffold, indent=2).replace("\n", newline) + newline
    document = parse(text)
    box_at(document, (), "object")
    for key, value in scaffold.items() if not document.root.children else ():
        text = set_member(text, (), key, value)
    return text


def without_scaffold(text: str, scaffold: Scaffold, kept: Kept) -> str:
    """Without the members that we had to add, where nothing else is left that would need them."""
    value = parse(text).root.value if text.strip() else {}
    if isinstance(value, dict) and value.keys() <= scaffold.keys():
        for key in value.keys() - kept:
            text = drop_member(text, (), key)
    return text


def is_bare_json(text: str, scaffold: Scaffold) -> bool:
    if not text.strip():
        return True
    document = parse(text)
    value = document.root.value
    return isinstance(value, dict) and value.keys() <= scaffold.keys() and not document.comments


def containers(text: str, paths: list[tuple[str, ...]], scaffold: Scaffold) -> Kept:
    """Which of these are in the text; an empty one, and an empty file, with the blanks in it, as `path=blanks`.

    Raises CannotWire where one is of another kind.
    """
    if not text.strip():
        return frozenset({f"={text}"}) if text else frozenset()
    document = parse(text)
    for path in paths:
        box_at(document, path[:1], "object")
    there = {path: document.root.find(path) for path in ((), *paths, *((key,) for key in scaffold))}
    found = {"/".join(path): node for path, node in there.items() if node is not None}
    blanks = {f"{path}={inside_of(text, node)}" for path, node in found.items() if is_empty(node)}
    return frozenset({path for path in found if path} | blanks)


def restore_blanks(text: str, kept: Kept) -> str:
    """Containers that were empty before us with the blanks that they had."""
    for path, equals, blanks in (each.partition("=") for each in kept):
        if not equals or not text.strip():
            continue
        node = parse(text).root.find(tuple(path.split("/")) if path else ())
        if node is not None and is_empty(node) and inside_of(text, node).split() == blanks.split():
            text = text[: node.start + 1] + blanks + text[node.end - 1 :]
    return text


def is_empty(node: Node) -> bool:
    return node.kind != "scalar" and not node.children


def inside_of(text: str, node: Node) -> str:
    return text[node.start + 1 : node.end - 1]


def prune(text: str, path: tuple[str, ...], kept: Kept) -> str:
    """Take out the container at a path and those above it, as far as they are empty and were ours."""
    for length in range(len(path), 0, -1):
        node = parse(text).root.find(path[:length])
        if node is None:
            continue
        if node.children or "/".join(path[:length]) in kept or node.kind == "scalar":
            break
        inside = text[node.start + 1 : node.end - 1]
        if inside.strip():  # a comment was put there
            break
        text = drop_member(text, path[: length - 1], path[length - 1])
    return text


def _without_server(value: dict[str, Any], above: tuple[str, ...]) -> dict[str, Any]:
    if not above:
        return {key: each for key, each in value.items() if key != SERVER}
    inner = _without_server(value[above[0]], above[1:])
    return {key: each for key, each in (value | {above[0]: inner}).items() if key != above[0] or each}


def _meaning(value: dict[str, Any], container: str, scaffold: Scaffold) -> dict[str, Any]:
    """A file's content, where an empty container and what we may have had to add count as nothing."""
    return {
        key: each for key, each in value.items() if not (key == container and each == {}) and scaffold.get(key) != each
    }
