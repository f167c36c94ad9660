"""The net effect of a session on each file: created and edited, moved, deleted; nothing where it came and went."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from everkept.domain.digest.commands import below
from everkept.domain.digest.effects import Change
from everkept.domain.digest.values import Effect, FileChange

_DRIVE = re.compile(r"^[A-Za-z]:[\\/]")


def placed(path: str, cwd: str | None, home: str | None) -> str:
    """A path as the digest names it: relative to the session's folder where it lies below it.

    `cwd`: the folder in which the call ran; `home`: the session's folder.
    """
    if _DRIVE.match(path) or "\\" in path:
        path = path.replace("\\", "/")
    if cwd and not path.startswith(("/", "~")) and not _DRIVE.match(path):
        path = posixpath.join(cwd.replace("\\", "/"), path)
    path = posixpath.normpath(path) if path else path
    return below(path, posixpath.normpath(home.replace("\\", "/")) if home else None)


@dataclass(slots=True)
class _File:
    """One file as the session goes on. `origin`: where it stood when the session began; None: it did not exist."""

    origin: str | None
    gone: bool = False
    edits: int = 0
    restored: bool = False
    sure: bool = True


class Files:
    """Takes changes in their order; paths are as `placed` gives them."""

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}
        self._folders: set[str] = set()
        self._there: set[str] = set()
        self._read: Counter[str] = Counter()
        self._above: set[str] = set()
        """Every folder that one of the files lies in, or lay in."""
        self.come_and_gone = 0
        """Files that were made and deleted again."""

    def see(self, path: str, *, sure: bool) -> None:
        """A call read it; `sure`: and found it there."""
        if path not in self._files:
            self._read[path] += 1
            if sure:
                self._there.add(path)

    def only_read(self) -> Iterator[str]:
        return (path for path, _ in self._read.most_common() if path not in self._files)

    def take(self, change: Change) -> str | None:
        """The path that counts as touched by it, if any."""
        path = change.path
        match change.what:
            case "folder":
                self._folders.add(path)
                return None
            case "deleted":
                self._delete(path, sure=change.sure)
            case "moved":
                return self._move(path, self._target(path, change.to), sure=change.sure)
            case "restored":
                self._restore(path)
            case _:
                self._write(path, change.what, sure=change.sure)
        return path

    def changes(self) -> Iterator[FileChange]:
        for path, file in self._files.items():
            effect = _net_effect(path, file)
            if effect is not None:
                yield FileChange(
                    path=path,
                    effect=effect,
                    edits=file.edits,
                    moved_from=file.origin if effect == "moved" else None,
                    restored=file.restored,
                    sure=file.sure,
                )

    def _write(self, path: str, what: str, *, sure: bool) -> None:
        file = self._files.get(path)
        if file is None:
            was_there = what == "edited" or path in self._there
            self._keep(path, _File(path, edits=1, sure=sure) if was_there else _File(None, sure=sure))
            return
        # Deleted and written anew: what was there has another content now.
        file.edits = 1 if file.gone else file.edits + 1
        file.gone, file.restored, file.sure = False, False, file.sure or sure

    def _delete(self, path: str, *, sure: bool) -> None:
        for name in self._inside(path):
            self._end(name)
        if path in self._files:
            self._end(path)
        elif path in self._folders:
            self._folders.discard(path)
        else:
            self._keep(path, _File(path, gone=True, sure=sure))

    def _inside(self, folder: str) -> list[str]:
        if folder not in self._above:
            return []
        return [name for name in self._files if name.startswith(f"{folder}/")]

    def _keep(self, path: str, file: _File) -> None:
        self._files[path] = file
        above = posixpath.dirname(path)
        while above and above not in self._above:
            self._above.add(above)
            above = posixpath.dirname(above)

    def _end(self, path: str) -> None:
        file = self._files[path]
        if file.origin is not None:
            file.gone, file.restored = True, False
            return
        del self._files[path]
        self.come_and_gone += 1

    def _move(self, path: str, target: str, *, sure: bool) -> str:
        inside = self._inside(path)
        for name in inside:
            self._put(name, target + name[len(path) :], sure=self._files[name].sure)
        if path in self._folders:
            self._folders.discard(path)
            self._folders.add(target)
        elif path in self._files or not inside:
            self._put(path, target, sure=sure)
        return target

    def _put(self, path: str, target: str, *, sure: bool) -> None:
        if path == target:
            return
        file = self._files.pop(path, None) or _File(path, sure=sure)
        over = self._files.pop(target, None)
        if over is not None and over.origin == target and file.origin is None:
            # A new file took the place of one that was there: that one was edited.
            over.gone, over.edits, over.restored = False, over.edits + 1, False
            file = over
        elif file.origin is not None and file.origin == path and over is not None and over.origin == target:
            self._keep(path, _File(path, gone=True, sure=sure))
            over.gone, over.edits = False, over.edits + 1
            file = over
        self._keep(target, file)

    def _target(self, path: str, target: str) -> str:
        """Into the target where that is known to be a folder."""
        is_folder = target in self._folders or bool(self._inside(target))
        return posixpath.join(target, posixpath.basename(path)) if is_folder else target

    def _restore(self, path: str) -> None:
        for name, file in self._files.items():
            if (name == path or path == "." or name.startswith(f"{path}/")) and file.origin == name:
                file.gone, file.restored = False, True


def _net_effect(path: str, file: _File) -> Effect | None:
    if file.origin is None:
        return None if file.gone else "created"
    if file.gone:
        return "deleted"
    if file.origin != path:
        return "moved"
    return "edited" if file.edits else None
