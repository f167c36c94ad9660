"""Writing pages into the repository and its folder: commit first, then files, each step safe to be done again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from everkept.deliver.disk_edits import Look, Trees
from everkept.deliver.git import BRANCH, PROJECTED, WRITTEN, ZERO, Author, Git, blob_id
from everkept.deliver.history import replay
from everkept.deliver.intake import TakenIn
from everkept.deliver.page_file import (
    conflict_of,
    file_path,
    is_conflict,
    is_page_path,
    parse,
    places_of,
    render,
)
from everkept.deliver.work_tree import MARKER, MARKER_TEXT, WorkTree
from everkept.store.store import Store
from everkept.store.wiki_pages import WikiBatch, WikiPage, pages_named

EVERKEPT: Final = "Everkept"
_NOTHING: Final = Trees(common={}, projected={}, written={}, branch={}, disk={})


class Projection:
    """Of one project's wiki; begun anew in every step."""

    def __init__(self, git: Git, tree: WorkTree, store: Store, project: int) -> None:
        self._git = git
        self._tree = tree
        self._store = store
        self._project = project

    def begin(self, look: Look | None, taken: TakenIn) -> None:
        """`look`: None for a repository that has no commit of ours yet."""
        self._trees = _NOTHING if look is None else look.trees
        self._taken = taken
        self._tip = None if look is None else look.tip
        self._projected = None if look is None else look.projected
        self._behind = look is not None and not look.descends
        self._target: dict[str, str] = dict(self._trees.branch)
        self._drop = set(taken.drop)

    # ---- the commit

    def commit(self, batch: WikiBatch) -> None:
        """Put the pages of a batch on the branch. Raises BranchMoved where somebody else committed meanwhile."""
        wanted = _files(batch.pages)
        gone = {place for page in batch.pages for place in places_of(page)} | self._drop
        if batch.snapshot:
            gone |= {path for path in self._target if is_page_path(path)}
        changes: dict[str, str | None] = {path: None for path in gone if path in self._target and path not in wanted}
        changes |= self._keep({path: data for path, data in wanted.items() if self._target.get(path) != blob_id(data)})
        tip = self._tip
        if changes or tip is None or self._behind:
            parents = [p for p in (tip, self._projected if self._behind else None) if p is not None]
            tip = self._git.commit(
                tip, changes, parents=parents, author=self._author(batch), message=_message(batch, changes),
                now_s=self._now_s(),
            ) or tip  # fmt: skip
        assert tip is not None
        if (tip, tip) != (self._tip, self._projected):
            self._git.move({BRANCH: (tip, self._tip or ZERO), PROJECTED: (tip, self._projected or ZERO)})
        self._target = _changed(self._target, changes)
        self._tip = self._projected = tip
        self._behind = False

    def _keep(self, files: Mapping[str, bytes]) -> dict[str, str]:
        """Store contents in the repository; their ids by path."""
        self._git.keep(files.values())
        return {path: blob_id(data) for path, data in files.items()}

    def _author(self, batch: WikiBatch) -> Author:
        at_us = max((page.updated_at for page in batch.pages), default=self._store.clock.now_us())
        return Author(name=batch.author or EVERKEPT, at_s=at_us // 1_000_000)

    def _now_s(self) -> int:
        return self._store.clock.now_us() // 1_000_000

    # ---- the files

    def write(self) -> None:
        """Make the folder as the branch is. Raises Disturbed where a file is not what it is known to be."""
        assert self._tip is not None
        written = self._git.refs().get(WRITTEN)
        before = self._git.tree(written) if written else {}
        wrong = self._put_files(before)
        if wrong or written != self._tip:
            self._git.show_to_people(self._tip)
            self._git.move({WRITTEN: (self._tip, written or ZERO)})

    def _put_files(self, before: Mapping[str, str]) -> int:
        """How many were not as they should be. `before`: what was last written."""
        disk = self._tree.files()
        places = {path for path in (*before, *self._target, *self._drop) if is_page_path(path) or path == MARKER}
        wrong = sorted(path for path in places if disk.get(path) != self._target.get(path))
        contents = self._git.blobs(self._target[path] for path in wrong if path in self._target)
        for path in wrong:
            known = {*self._trees.known(path), *self._taken.replaceable.get(path, ()), *_one(before, path)}
            if path in self._target:
                self._tree.put(path, contents[self._target[path]], known)
            else:
                self._tree.remove(path, known)
        self._drop = set()
        return len(wrong)

    # ---- anew, after an erase

    def rebuild(self, batch: WikiBatch) -> None:
        """Leave nothing but the pages there are, in the folder and in the history. Done again, it does the rest."""
        assert self._tip is not None
        self._forget_kept_beside()
        other = {path: blob for path, blob in self._trees.branch.items() if self._is_of_people(path)}
        history = replay(self._git, self._store, self._project)
        self._target = other | self._keep(_files(batch.pages))
        commit = self._git.commit(
            None, self._target, parents=[] if history is None else [history], author=self._author(batch),
            message="Made anew after an erase\n", now_s=self._now_s(),
        )  # fmt: skip
        assert commit is not None
        self._put_files(dict.fromkeys((*self._trees.projected, *self._trees.written, *self._trees.branch), ""))
        self._git.forget_all_but(commit)

    def _is_of_people(self, path: str) -> bool:
        """Whether a file is neither a page's nor kept beside a page that is erased."""
        if is_page_path(path) or path == MARKER:
            return False
        return not is_conflict(path) or (self._tree.folder / path).exists()

    def _forget_kept_beside(self) -> None:
        """Edits that were kept beside pages which are erased go with them."""
        for path in [p for p in self._tree.files() if is_conflict(p)]:
            data = self._tree.read(path)
            if data is not None and not self._has_page(path, data):
                self._tree.remove(path, {blob_id(data)})

    def _has_page(self, path: str, data: bytes) -> bool:
        try:
            page = parse(data).page
        except UnicodeDecodeError:
            page = None
        if page is None:  # its front matter is gone: the page that it stands beside has to have a file
            return (self._tree.folder / conflict_of(path)).exists() and conflict_of(path) in self._target
        return any(p.id == page for p in self._store.read_now(pages_named, self._project, [page]))


def _files(pages: Iterable[WikiPage]) -> dict[str, bytes]:
    """What stands where, with the marker."""
    return {MARKER: MARKER_TEXT} | {file_path(page): render(page) for page in pages if not page.deleted}


def _one(tree: Mapping[str, str], path: str) -> list[str]:
    return [tree[path]] if path in tree else []


def _changed(tree: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    merged = {**tree, **changes}
    return {path: blob for path, blob in merged.items() if blob is not None}


def _message(batch: WikiBatch, changes: Mapping[str, str | None]) -> str:
    versions = {file_path(page): page.version for page in batch.pages if not page.deleted}
    lines = [
        f"{path}: {'deleted' if blob is None else f'version {versions[path]}'}"
        for path, blob in sorted(changes.items()) if blob is None or path in versions
    ]  # fmt: skip
    if len(lines) == 1:
        return f"{lines[0]}\n"
    return f"{len(lines)} pages\n" + ("\n" + "\n".join(lines) + "\n" if lines else "")
