"""A disk that remembers what was done to it, and what of that a power cut may leave behind.

Nothing but a sync makes a write last. Until then each write, change of size and name is there, or not, or in part, in
any combination: what SQLite assumes of a disk (https://sqlite.org/psow.html, https://sqlite.org/atomiccommit.html),
and what POSIX promises of names. A torn write harms no byte outside itself.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

SECTOR_BYTES: Final = 512
IN_SECTOR_TEARS: Final = 0.05
"""How often a sector at the edge of a tear is itself written in part: a prefix or a suffix of it."""
KEPT: Final = (0.0, 0.1, 0.5, 0.9, 1.0)
"""How much of what was not synced survives, in the mean; each image takes one of these."""


@dataclass(frozen=True, slots=True)
class Write:
    node: int
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Truncate:
    node: int
    size: int


@dataclass(frozen=True, slots=True)
class Name:
    """Names that change at one stroke: path below the disk's root → the node it stands for, None where it is gone."""

    changes: Mapping[str, int | None]


@dataclass(frozen=True, slots=True)
class Sync:
    """All that was done to a node until now lasts."""

    node: int


@dataclass(frozen=True, slots=True)
class SyncFolder:
    """All names in a folder last as they are now. The root is the empty path."""

    folder: str


Deed = Write | Truncate | Name | Sync | SyncFolder
Image = dict[str, bytes | None]
"""What is found after the cut: path below the root → content of a file, None for a folder."""
FOLDER: Final = -1
"""Stands for any folder, where a name is given to a node."""


class Disk:
    """What was done below one folder, in order. `moment` is the number of deeds until now."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.start: Image = read_image(self.root)
        """All of it lasts."""
        self.deeds: list[Deed] = []
        self._names: dict[str, int] = {}
        self._nodes = 0
        for path, content in self.start.items():
            self._names[path] = FOLDER if content is None else self._new_node()

    @property
    def moment(self) -> int:
        return len(self.deeds)

    def place(self, path: str | Path) -> str | None:
        """The path below the root; None where it lies elsewhere."""
        whole = Path(path).absolute()
        if not whole.is_relative_to(self.root):
            whole = whole.parent.resolve() / whole.name
        return "" if whole == self.root else str(whole.relative_to(self.root)) if self.root in whole.parents else None

    def node(self, place: str) -> int | None:
        return self._names.get(place)

    def create(self, place: str) -> int:
        """The node of a file, which is new where the name is."""
        known = self._names.get(place)
        if known is not None:
            return known
        node = self._new_node()
        self.rename({place: node})
        return node

    def make_folder(self, place: str) -> None:
        self.rename({place: FOLDER})

    def rename(self, changes: Mapping[str, int | None]) -> None:
        self.deeds.append(Name(dict(changes)))
        for place, node in changes.items():
            if node is None:
                self._names.pop(place, None)
            else:
                self._names[place] = node

    def write(self, node: int, offset: int, data: bytes) -> None:
        self.deeds.append(Write(node, offset, data))

    def truncate(self, node: int, size: int) -> None:
        self.deeds.append(Truncate(node, size))

    def sync(self, node: int) -> None:
        self.deeds.append(Sync(node))

    def sync_folder(self, place: str) -> None:
        self.deeds.append(SyncFolder(place))

    def _new_node(self) -> int:
        self._nodes += 1
        return self._nodes


@dataclass(slots=True)
class _Node:
    lasting: bytearray
    pending: list[Write | Truncate] = field(default_factory=list)

    def now(self) -> bytes:
        content = bytearray(self.lasting)
        for deed in self.pending:
            _apply(content, deed)
        return bytes(content)

    def settle(self) -> None:
        for deed in self.pending:
            _apply(self.lasting, deed)
        self.pending.clear()


class Replay:
    """The disk at one moment after another, forwards only."""

    def __init__(self, disk: Disk) -> None:
        self._deeds = disk.deeds
        self.moment = 0
        self._nodes: dict[int, _Node] = {}
        self._lasting: dict[str, int] = {}
        self._pending: list[Name] = []
        for path, content in disk.start.items():
            self._lasting[path] = FOLDER
            if content is not None:
                self._lasting[path] = len(self._nodes) + 1
                self._nodes[self._lasting[path]] = _Node(bytearray(content))

    def go_to(self, moment: int) -> None:
        assert self.moment <= moment <= len(self._deeds)
        for deed in self._deeds[self.moment : moment]:
            self._do(deed)
        self.moment = moment

    def _do(self, deed: Deed) -> None:
        match deed:
            case Write() | Truncate():
                self._node(deed.node).pending.append(deed)
            case Sync():
                self._node(deed.node).settle()
            case Name():
                self._pending.append(deed)
            case SyncFolder():
                self._settle_names(deed.folder)

    def _node(self, number: int) -> _Node:
        return self._nodes.setdefault(number, _Node(bytearray()))

    def _settle_names(self, folder: str) -> None:
        """A change in two folders lasts once either is synced: it is one stroke."""
        left = []
        for name in self._pending:
            if any(_folder_of(place) == folder for place in name.changes):
                _put(self._lasting, name)
            else:
                left.append(name)
        self._pending = left

    def whole(self) -> Image:
        """The disk as its user sees it at this moment: nothing is lost."""
        names = dict(self._lasting)
        for name in self._pending:
            _put(names, name)
        return self._image(names, _Node.now)

    def cut(self, chance: random.Random) -> Image:
        """What a power cut at this moment may leave."""
        kept = chance.choice(KEPT)
        names = dict(self._lasting)
        for name in self._pending:
            if chance.random() < kept:
                _put(names, name)
        return self._image(names, lambda node: _torn(node, chance, kept))

    def _image(self, names: Mapping[str, int], content: Callable[[_Node], bytes]) -> Image:
        """A file whose folder was lost is lost with it."""
        contents: dict[int, bytes] = {}
        image: Image = {}
        for place in sorted(names):
            folder = _folder_of(place)
            if folder and names.get(folder) != FOLDER:
                continue
            node = names[place]
            if node != FOLDER and node not in contents:
                contents[node] = content(self._node(node))
            image[place] = None if node == FOLDER else contents[node]
        return image


def _folder_of(place: str) -> str:
    return place.rpartition("/")[0]


def _put(names: dict[str, int], change: Name) -> None:
    for place, node in change.changes.items():
        if node is None:
            names.pop(place, None)
        else:
            names[place] = node


def _apply(content: bytearray, deed: Write | Truncate) -> None:
    if isinstance(deed, Truncate):
        _resize(content, deed.size)
        return
    end = deed.offset + len(deed.data)
    _resize(content, max(len(content), end))
    content[deed.offset : end] = deed.data


def _resize(content: bytearray, size: int) -> None:
    if size < len(content):
        del content[size:]
    else:
        content.extend(bytes(size - len(content)))


def _torn(node: _Node, chance: random.Random, kept: float) -> bytes:
    """The content that lasts, with a part of what was not synced."""
    content = bytearray(node.lasting)
    for deed in node.pending:
        lot = chance.random()
        if isinstance(deed, Truncate):
            if lot < kept:
                _apply(content, deed)
        elif lot < kept / 2 or kept == 1.0:
            _apply(content, deed)
        elif lot < kept:
            _tear(content, deed, chance)
        elif chance.random() < kept:
            _grow(content, deed.offset + len(deed.data), chance)  # the size is there, the bytes are not
    return bytes(content)


def _tear(content: bytearray, deed: Write, chance: random.Random) -> None:
    """Each sector of a write by its own lot; a sector may hold the beginning or the end of what was written to it."""
    _grow(content, deed.offset + len(deed.data), chance)
    for start, end in _sectors(deed.offset, deed.offset + len(deed.data)):
        if chance.random() < 0.5:
            continue
        if chance.random() < IN_SECTOR_TEARS:
            middle = chance.randint(start, end)
            start, end = chance.choice(((start, middle), (middle, end)))
        content[start:end] = deed.data[start - deed.offset : end - deed.offset]


def _grow(content: bytearray, size: int, chance: random.Random) -> None:
    """A file that is longer than what was written to it holds zeros there, or what the disk held before."""
    for start, end in _sectors(len(content), size):
        content.extend(bytes(end - start) if chance.random() < 0.5 else chance.randbytes(end - start))


def _sectors(start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end:
        edge = min(end, (start // SECTOR_BYTES + 1) * SECTOR_BYTES)
        yield start, edge
        start = edge


def read_image(root: Path) -> Image:
    """All that is below a folder. Shared memory (`-shm`) is none of the disk's: SQLite makes it again."""
    return {
        str(path.relative_to(root)): None if path.is_dir() else path.read_bytes()
        for path in sorted(root.rglob("*"))
        if not path.name.endswith("-shm")
    }


def write_image(image: Image, root: Path) -> None:
    """Write an image into an empty folder."""
    for place, content in image.items():
        if content is None:
            (root / place).mkdir(mode=0o700)
        else:
            (root / place).write_bytes(content)
