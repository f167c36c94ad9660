"""What people changed in a wiki since it was last written: found by comparing trees, without touching anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from everkept.deliver.page_file import is_page_path

VANISHED_MAX: Final = 5
VANISHED_SHARE_MAX: Final = 0.05
Tree = Mapping[str, str]
"""{path: blob id}."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trees:
    """Five states of the same files. Where nothing happened they are all alike."""

    common: Tree
    """What the branch and our last commit descend from: our last commit, unless somebody rewrote history."""
    projected: Tree
    """Our last commit."""
    written: Tree
    """Our last commit that was wholly put on disk."""
    branch: Tree
    disk: Tree

    def known(self, path: str) -> frozenset[str]:
        """Contents of the file that are no news: each stands in a commit."""
        trees = (self.common, self.projected, self.written, self.branch)
        return frozenset(tree[path] for tree in trees if path in tree)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A page's file that somebody changed or added."""

    path: str
    blob: str
    where: Literal["branch", "disk"]
    of: frozenset[str]
    """Contents that it may have been made on; none for a new file."""
    moved_from: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    edits: list[Edit]
    """Commits first: what is on disk was made after them."""
    vanished: dict[str, str]
    """{path: what it last was} of files that are neither on disk nor anywhere else."""
    undone: list[str]
    """Paths where the branch is behind our last commit without an edit: they are projected again."""
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The repository at the beginning of a step, beside what people changed in it."""

    common: str
    tip: str
    projected: str
    trees: Trees
    edits: Edits

    @property
    def descends(self) -> bool:
        """Whether the branch still has our last commit: nobody rewrote its history."""
        return self.common == self.projected


def find_edits(trees: Trees) -> Edits:
    pages = [path for path in trees.projected if is_page_path(path)]
    vanished = {p: trees.projected[p] for p in pages if p in trees.written and p not in trees.disk}
    found = [*_committed(trees), *_on_disk(trees)]
    edits = [_as_move(edit, vanished) for edit in found]
    for edit in edits:
        if edit.moved_from is not None:
            vanished.pop(edit.moved_from, None)
    edited = {edit.path for edit in edits if edit.where == "branch"}
    undone = [p for p in pages if trees.branch.get(p) != trees.projected[p] and p not in edited and p not in vanished]
    return Edits(edits=edits, vanished=vanished, undone=undone, files=len(pages))


def _committed(trees: Trees) -> list[Edit]:
    return [
        Edit(path=path, blob=blob, where="branch", of=_made_on(trees, path))
        for path, blob in sorted(trees.branch.items())
        if is_page_path(path) and blob not in _made_on(trees, path)
    ]


def _made_on(trees: Trees, path: str) -> frozenset[str]:
    return frozenset(tree[path] for tree in (trees.common, trees.projected, trees.written) if path in tree)


def _on_disk(trees: Trees) -> list[Edit]:
    return [
        Edit(path=path, blob=blob, where="disk", of=trees.known(path))
        for path, blob in sorted(trees.disk.items())
        if is_page_path(path) and blob not in trees.known(path)
    ]


def _as_move(edit: Edit, vanished: Mapping[str, str]) -> Edit:
    """A new file in the folder of another kind, of the name of one that vanished, is that page as another kind."""
    if edit.of:
        return edit
    name = edit.path.partition("/")[2]
    before = next((path for path in vanished if path.partition("/")[2] == name), None)
    return edit if before is None else replace(edit, of=frozenset({vanished[before]}), moved_from=before)


def too_many(vanished: int, files: int) -> bool:
    """Whether so much is gone that it was hardly meant."""
    return vanished > VANISHED_MAX and vanished > files * VANISHED_SHARE_MAX
