"""What a checkout has on its default branch, and what it had there once: asked of git, which changes nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Final

from everkept.deliver.git import Git, GitFailed
from everkept.domain.review.stale import Named

_MAKEFILES: Final = ("Makefile", "makefile", "GNUmakefile", "*.mk")
_PACKAGES: Final = ("package.json",)
_HEADS: Final = "refs/heads/"
_TASK: Final = re.compile(r"[A-Za-z0-9][\w:-]*")
_TARGETS: Final = re.compile(r"^([^\s#:=][^#:=]*)::?(?!=)", re.MULTILINE)


class CheckoutTree:
    """One commit with what came before it, and the folder's own files."""

    def __init__(self, root: Path, git: Git, commit: str) -> None:
        self._root = root
        self._git = git
        self._commit = commit

    def gone(self, names: Collection[Named]) -> frozenset[Named]:
        """Those that are neither in the commit nor in the folder, and were in a commit before.

        What git never knew may be made by a build, or lie in another repository: nothing is said of it.
        """
        files = [name for name in names if name.kind == "file" and not self._has_file(name.text)]
        deleted = self._deleted([name.text for name in files])
        tasks = (name for name in names if name.kind == "task")
        return frozenset([*(name for name in files if name.text in deleted), *filter(self._is_lost_task, tasks)])

    # ---- files

    @cached_property
    def _paths(self) -> _Paths:
        return _Paths(self._git.tree(self._commit))

    def _has_file(self, path: str) -> bool:
        return (self._root / path).exists() or path in self._paths

    def _deleted(self, paths: Collection[str]) -> _Paths:
        """Of the files of these names, in whatever folder, all that a commit deleted."""
        if not paths:
            return _Paths(())
        wanted = [f":(glob)**/{_literal(path)}{end}" for path in sorted(paths) for end in ("", "/**")]
        said = self._git.run(
            "log", "--no-renames", "--diff-filter=D", "--name-only", "--format=", "-z", self._commit, "--", *wanted
        )
        return _Paths(filter(None, (part.strip("\n") for part in said.decode(errors="replace").split("\0"))))

    # ---- tasks

    def _is_lost_task(self, task: Named) -> bool:
        program, _, rest = task.text.partition(" ")
        name = rest if program == "make" else rest.removeprefix("run ")
        if not _TASK.fullmatch(name):
            return False
        if program == "make":
            has = any(fnmatchcase(name, target.replace("%", "*")) for target in self._targets)
            return not has and self._was_defined(rf"^([^#:=]*[ ])?{name}[ ]*([ ][^#:=]*)?:([^=]|$)", _MAKEFILES)
        return name not in self._scripts and self._was_defined(rf'"{name}"[ ]*:', _PACKAGES)

    @cached_property
    def _targets(self) -> frozenset[str]:
        found = (match[1].split() for text in self._texts(_MAKEFILES) for match in _TARGETS.finditer(text))
        return frozenset(target for targets in found for target in targets)

    @cached_property
    def _scripts(self) -> frozenset[str]:
        return frozenset(script for text in self._texts(_PACKAGES) for script in _scripts_in(text))

    def _texts(self, names: Collection[str]) -> Iterator[str]:
        """Of the files of these names in the commit, and of the same files in the folder."""
        tree = self._git.tree(self._commit)
        paths = [path for path in tree if any(fnmatchcase(PurePosixPath(path).name, name) for name in names)]
        for content in self._git.blobs(tree[path] for path in paths).values():
            yield content.decode(errors="replace")
        for path in paths:
            if (self._root / path).is_file():
                yield (self._root / path).read_text("utf-8", "replace")

    def _was_defined(self, pattern: str, names: Collection[str]) -> bool:
        wanted = [f":(glob)**/{name}" for name in names]
        return bool(self._git.run(
            "log", "-1", "--format=%H", "--no-textconv", "--no-ext-diff", "-G", pattern, self._commit, "--", *wanted
        ).strip())  # fmt: skip


def tree_of(root: Path) -> CheckoutTree | None:
    """None where the folder is no checkout with commits, or is not on its default branch. Raises GitMissing."""
    if not (root / ".git").exists():
        return None
    git = Git(root)
    try:
        branch = git.run("symbolic-ref", "-q", "HEAD").decode().strip().removeprefix(_HEADS)
        commit = git.run("rev-parse", "--verify", "-q", "HEAD^{commit}").decode().strip()
        return CheckoutTree(root, git, commit) if branch == _default_branch(git) else None
    except GitFailed:  # a detached head, as in a rebase; no commit yet; nothing that git can read
        return None


def _default_branch(git: Git) -> str | None:
    """As the clone was told; without a remote `main` or `master`, or the only branch; None where that is no answer."""
    try:
        told = git.run("symbolic-ref", "-q", "refs/remotes/origin/HEAD").decode().strip()
    except GitFailed:
        branches = [ref.removeprefix(_HEADS) for ref in git.refs() if ref.startswith(_HEADS)]
        likely = [name for name in branches if name in ("main", "master")] or branches
        return likely[0] if len(likely) == 1 else None
    return told.removeprefix("refs/remotes/origin/")


class _Paths:
    """Files and the folders that they lie in, found also by the end of their paths, as people write them short."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._by_name: dict[str, set[str]] = {}
        for path in paths:
            self._add(path)

    def _add(self, path: str) -> None:
        while path:
            folder, _, name = path.rpartition("/")
            same_name = self._by_name.setdefault(name, set())
            if path in same_name:
                return
            same_name.add(path)
            path = folder

    def __contains__(self, path: str) -> bool:
        same_name = self._by_name.get(path.rpartition("/")[2], ())
        return any(one == path or one.endswith(f"/{path}") for one in same_name)


def _literal(path: str) -> str:
    return re.sub(r"([\[\]?*\\])", r"\\\1", path)


def _scripts_in(text: str) -> Collection[str]:
    try:
        found = json.loads(text)
    except ValueError:
        return ()
    scripts = found.get("scripts") if isinstance(found, dict) else None
    return tuple(scripts) if isinstance(scripts, dict) else ()
