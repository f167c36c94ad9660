"""The folder of a wiki: what stands in its files, and replacing one only while it is what it is known to be."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from everkept.deliver.git import BRANCH, blob_id
from everkept.deliver.page_file import conflict_path, is_conflict, is_page_path
from everkept.domain.pages import PAGE_KINDS
from everkept.errors import Unavailable

MARKER: Final = ".everkept-wiki"
MARKER_TEXT: Final = b"""\
The pages of an Everkept project, written from its database and read back from here.

Edit a page or delete its file: it becomes the next version, by you. While this file is missing, missing pages are not
taken for deleted ones.
"""
RACY_S: Final = 2.0
"""A file that was changed so shortly before it was read may change again without a new time."""
Stat = tuple[int, int, int]


class Disturbed(Unavailable):
    """A file changed while its folder was being worked on; it is looked at again."""


class NotOurs(Unavailable):
    """Something stands in the folder where pages go that is no file of a page."""


class WorkTree:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[str, tuple[Stat, str]] = {}

    # ---- looking

    def signature(self) -> tuple[object, ...]:
        """Differs whenever a page's file, its commit or the branch may have changed. Reads no file."""
        git = self.folder / ".git"
        places = [git / "HEAD", git / BRANCH, git / "packed-refs", git / "MERGE_HEAD", self.folder / MARKER]
        return (*((str(p.name), _stat(p)) for p in places), *((e.path, _entry_stat(e)) for e in self._entries()))

    def files(self) -> dict[str, str]:
        """{path: blob id} of every file where pages stand, with the marker and what is kept beside pages.

        Raises NotOurs for a link or a folder there.
        """
        found: dict[str, str] = {}
        for entry in self._entries():
            path = f"{Path(entry.path).parent.name}/{entry.name}"
            if is_page_path(path) or is_conflict(path):
                if not entry.is_file(follow_symlinks=False):
                    raise NotOurs(f"{path} is not a plain file", path=path)
                found[path] = self._id(path, entry)
        marker = self.read(MARKER)
        return found if marker is None else found | {MARKER: blob_id(marker)}

    def _entries(self) -> Iterator[os.DirEntry[str]]:
        for kind in PAGE_KINDS:
            folder = self.folder / kind
            if folder.is_symlink():
                raise NotOurs(f"{kind} is a link", path=kind)
            try:
                with os.scandir(folder) as entries:
                    yield from sorted((e for e in entries if e.name.endswith(".md")), key=lambda e: e.name)
            except FileNotFoundError:
                continue
            except NotADirectoryError as error:
                raise NotOurs(f"{kind} is not a folder", path=kind) from error

    def _id(self, path: str, entry: os.DirEntry[str]) -> str:
        stat = _entry_stat(entry)
        known = self._known.get(path)
        if known is not None and known[0] == stat:
            return known[1]
        id_ = blob_id(Path(entry.path).read_bytes())
        if stat[0] / 1e9 < time.time() - RACY_S:
            self._known[path] = (stat, id_)
        return id_

    def read(self, path: str) -> bytes | None:
        try:
            return (self.folder / path).read_bytes()
        except FileNotFoundError:
            return None

    def age_s(self, path: str) -> float:
        """For how long nobody has changed a file; a time in the future counts as long ago."""
        try:
            age = time.time() - (self.folder / path).stat().st_mtime
        except FileNotFoundError:
            return 0.0
        return age if age >= 0 else float("inf")

    # ---- changing

    def put(self, path: str, data: bytes, known: Collection[str]) -> None:
        """Put a file in the place of one whose content is among `known` (ids), or of none. Raises Disturbed."""
        new = blob_id(data)
        if self._holds(path, {*known, new}) == new:
            return
        place = self.folder / path
        place.parent.mkdir(exist_ok=True)
        half = self.folder / ".git" / "everkept-half"
        half.write_bytes(data)
        half.replace(place)

    def remove(self, path: str, known: Collection[str]) -> None:
        """Remove a file whose content is among `known` (ids), and its folder with the last one. Raises Disturbed."""
        if self._holds(path, known) is None:
            return
        place = self.folder / path
        place.unlink()
        if not any(place.parent.iterdir()):
            place.parent.rmdir()

    def _holds(self, path: str, known: Collection[str]) -> str | None:
        there = self.read(path)
        found = None if there is None else blob_id(there)
        if found is not None and found not in known:
            raise Disturbed(f"{path} was changed just now", path=path)
        return found

    def keep_beside(self, path: str, data: bytes) -> str:
        """Keep an edit of `path` that was not taken in; where. Keeping the same one again keeps one."""
        number = 1
        while True:
            place = conflict_path(path, number)
            there = self.read(place)
            if there is None or there == data:
                self.put(place, data, ())
                return place
            number += 1


def _entry_stat(entry: os.DirEntry[str]) -> Stat:
    found = entry.stat(follow_symlinks=False)
    return found.st_mtime_ns, found.st_size, found.st_ino


def _stat(path: Path) -> Stat | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
