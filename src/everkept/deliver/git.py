"""The few things that the wiki asks of git, in a way that a killed git leaves nothing behind that blocks.

Commits are built in an index of our own and put on the branch by comparing and setting it: the files `index` and
`index.lock` that people's commands need are never locked by us. What a killed git can leave is a lock on a reference,
which git itself holds for milliseconds; one that is older is removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from everkept.errors import Unavailable

BRANCH: Final = "refs/heads/main"
PROJECTED: Final = "refs/everkept/projected"
"""The last commit of ours on the branch."""
WRITTEN: Final = "refs/everkept/written"
"""The last commit whose files all stand in the folder."""
ZERO: Final = "0" * 40
GIT_S: Final = 120.0
LOCK_STALE_S: Final = 10.0
TREES_KEPT: Final = 4
_INDEX: Final = "everkept-index"
_COMMITTER: Final = ("Everkept", "wiki@everkept.invalid")


class GitMissing(Unavailable):
    """git is not installed, so there is no wiki on disk; everything else works."""


class GitFailed(Unavailable):
    """A git command failed."""


class BranchMoved(Unavailable):
    """Somebody else committed meanwhile; what was begun is begun again on that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    name: str
    at_s: int
    """Seconds since 1970."""


def blob_id(data: bytes) -> str:
    """What git calls a file of this content."""
    return hashlib.sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()


class Git:
    """One repository and its folder. Nothing of the user's or the machine's git settings counts, nor any hook."""

    def __init__(self, folder: Path, program: str = "git") -> None:
        self.folder = folder
        self.dir = folder / ".git"
        self._program = program
        self._trees: dict[str, dict[str, str]] = {}

    def run(self, *words: str, given: bytes = b"", env: Mapping[str, str] | None = None) -> bytes:
        """Raises GitMissing, GitFailed."""
        command = [self._program, "-c", "core.hooksPath=/dev/null", "-c", "core.autocrlf=false", "-c", "gc.auto=0",
                   "-c", "core.quotePath=false", "-c", "core.fsmonitor=false", *words]  # fmt: skip
        try:
            done = subprocess.run(
                command, input=given, capture_output=True, env=self._environment(env or {}), cwd=self.folder,
                timeout=GIT_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise GitFailed(f"git {words[0]} did not end within {GIT_S:.0f} s", folder=str(self.folder)) from error
        except OSError as error:
            if shutil.which(self._program) is None:
                raise GitMissing(folder=str(self.folder)) from error
            raise GitFailed(f"git cannot be run: {error.strerror}", folder=str(self.folder)) from error
        if done.returncode != 0:
            why = done.stderr.decode(errors="replace").strip().splitlines()
            said = why[-1] if why else f"exit code {done.returncode}"
            raise GitFailed(f"git {words[0]} failed: {said}", folder=str(self.folder))
        return done.stdout

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        plain = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        return plain | {
            "GIT_DIR": str(self.dir), "GIT_WORK_TREE": str(self.folder), "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C",
        } | dict(more)  # fmt: skip

    # ---- looking

    def refs(self) -> dict[str, str]:
        """Every reference with the commit (or tag) it names."""
        listed = self.run("for-each-ref", "--format=%(refname) %(objectname)").decode().splitlines()
        return {name: found for name, _, found in (line.partition(" ") for line in listed)}

    def branch(self) -> str:
        """The reference that HEAD names; "" where it names a commit."""
        head = (self.dir / "HEAD").read_text("utf-8").strip()
        return head.removeprefix("ref: ") if head.startswith("ref: ") else ""

    def tree(self, commit: str) -> dict[str, str]:
        """{path: blob} of all files of a commit, which is a hash: it never changes."""
        if commit in self._trees:
            return self._trees[commit]
        found: dict[str, str] = {}
        for entry in self.run("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0"):
            if entry:
                head, _, path = entry.partition(b"\t")
                _, kind, blob = head.decode().split()
                if kind == "blob":
                    found[path.decode(errors="surrogateescape")] = blob
        while len(self._trees) >= TREES_KEPT:
            self._trees.pop(next(iter(self._trees)))
        self._trees[commit] = found
        return found

    def blobs(self, ids: Iterable[str]) -> dict[str, bytes]:
        """Contents by id; an id that git does not have is left out."""
        wanted = sorted(set(ids))
        if not wanted:
            return {}
        out = self.run("cat-file", "--batch", given="".join(f"{i}\n" for i in wanted).encode())
        found: dict[str, bytes] = {}
        at = 0
        for one in wanted:
            end = out.index(b"\n", at)
            head = out[at:end].decode().split()
            at = end + 1
            if head[-1] != "missing":
                size = int(head[2])
                found[one] = out[at : at + size]
                at += size + 1
        return found

    def common(self, one: str, other: str) -> str | None:
        """The commit that both descend from; None where there is none."""
        try:
            return self.run("merge-base", one, other).decode().split()[0]
        except GitFailed:
            return None

    def last_author(self, since: str, until: str, path: str) -> str:
        """Who last changed a file between two commits; "" where nobody did."""
        said = self.run("log", "-1", "--format=%an", f"{since}..{until}", "--", f":(literal){path}")
        return said.decode(errors="replace").strip()

    def remotes(self) -> list[str]:
        return self.run("remote").decode().split()

    def setting(self, name: str) -> str | None:
        try:
            return self.run("config", "--local", "--get", name).decode().strip()
        except GitFailed:
            return None

    # ---- writing

    def keep(self, contents: Iterable[bytes]) -> None:
        """Put contents into the repository, all in one go: no file of each is made on the way."""
        stream = b"".join(b"blob\ndata %d\n%b\n" % (len(data), data) for data in contents)
        if stream:
            self.run("fast-import", "--quiet", given=stream)

    def commit(
        self, base: str | None, changes: Mapping[str, str | None], *, parents: Sequence[str], author: Author,
        message: str, now_s: int,
    ) -> str | None:  # fmt: skip
        """A commit of the tree of `base` (None: empty) with these files changed (None: without them), on no branch yet.

        None where that changes nothing of the only parent.
        """
        self._drop_index()
        env = {"GIT_INDEX_FILE": str(self.dir / _INDEX)}
        self.run("read-tree", *([base] if base else ["--empty"]), env=env)
        lines = b"".join(_index_line(path, blob) for path, blob in changes.items())
        self.run("update-index", "-z", "--index-info", given=lines, env=env)
        tree = self.run("write-tree", env=env).decode().strip()
        if list(parents) == [base] and tree == self.run("rev-parse", f"{base}^{{tree}}").decode().strip():
            return None
        who = {
            "GIT_AUTHOR_NAME": _person(author.name), "GIT_AUTHOR_EMAIL": f"{_address(author.name)}@everkept.invalid",
            "GIT_AUTHOR_DATE": f"@{author.at_s} +0000", "GIT_COMMITTER_NAME": _COMMITTER[0],
            "GIT_COMMITTER_EMAIL": _COMMITTER[1], "GIT_COMMITTER_DATE": f"@{now_s} +0000",
        }  # fmt: skip
        on = [word for parent in parents for word in ("-p", parent)]
        return self.run("commit-tree", tree, *on, given=message.encode(), env=who).decode().strip()

    def move(self, moves: Mapping[str, tuple[str, str]]) -> None:
        """Set references {name: (to, from)} together, if each still is where it was. Raises BranchMoved."""
        given = "".join(f"update {name} {to} {before}\n" for name, (to, before) in moves.items())
        try:
            self.run("update-ref", "--stdin", given=given.encode())
        except GitFailed as error:
            raise BranchMoved(error.message) from error

    def show_to_people(self, commit: str) -> None:
        """Give the commands of people the index of a commit whose files stand in the folder."""
        self._drop_index()
        env = {"GIT_INDEX_FILE": str(self.dir / _INDEX)}
        self.run("read-tree", commit, env=env)
        with contextlib.suppress(GitFailed):  # says so where a file differs: somebody edits it just now
            self.run("update-index", "-q", "--refresh", env=env)
        (self.dir / _INDEX).replace(self.dir / "index")

    def _drop_index(self) -> None:
        for name in (_INDEX, f"{_INDEX}.lock"):
            (self.dir / name).unlink(missing_ok=True)

    def free_stale_locks(self) -> None:
        """Remove locks on references and settings that a killed git left. Raises GitFailed while one is held."""
        before = time.time() - LOCK_STALE_S
        places = [self.dir / "HEAD.lock", self.dir / "packed-refs.lock", self.dir / "config.lock",
                  self.dir / "gc.pid.lock", self.dir / "packed-refs.new",
                  *(self.dir / "refs").rglob("*.lock")]  # fmt: skip
        for lock in places:
            try:
                left = lock.stat().st_mtime < before
            except FileNotFoundError:
                continue
            if not left:
                raise GitFailed(f"another git command is at work: {lock.name}", folder=str(self.folder))
            lock.unlink(missing_ok=True)

    # ---- forgetting

    def forget_all_but(self, commit: str) -> None:
        """Leave nothing but what `commit` has: no other reference, log or object. GitFailed where one is left."""
        others = [name for name in self.refs() if name not in (BRANCH, PROJECTED, WRITTEN)]
        given = [f"delete {name}\n" for name in others]
        given += [f"update {name} {commit}\n" for name in (BRANCH, PROJECTED, WRITTEN)]
        self.run("update-ref", "--stdin", given="".join(given).encode())
        for name in ("logs", "worktrees", "rebase-merge", "rebase-apply", "sequencer"):
            shutil.rmtree(self.dir / name, ignore_errors=True)
        for name in ("ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "COMMIT_EDITMSG",
                     "MERGE_MSG", "SQUASH_MSG", "AUTO_MERGE", "index", "shallow", "gc.pid"):  # fmt: skip
            (self.dir / name).unlink(missing_ok=True)
        self._drop_index()
        for kept in (self.dir / "objects" / "pack").glob("*.keep"):
            kept.unlink(missing_ok=True)
        self.show_to_people(commit)
        self.run("reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all")
        self.run("gc", "--quiet", "--force", "--prune=now")
        left = self.strangers()
        if left:
            raise GitFailed(f"{left} objects of the erased history are still there", folder=str(self.folder))

    def strangers(self) -> int:
        """How many objects belong to no reference."""
        all_ = set(self.run("cat-file", "--batch-all-objects", "--batch-check=%(objectname)").decode().split())
        reached = self.run("rev-list", "--objects", "--no-object-names", "--all").decode().split()
        return len(all_ - set(reached))


def make_repository(folder: Path, program: str, settings: Mapping[str, str]) -> None:
    """A repository with these settings, whole or not at all: it is made beside and moved into its place."""
    half = folder.parent / f".new.{folder.name}"
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    git = Git(half, program)
    git.run("init", "--quiet", "--template=", "--object-format=sha1")
    git.run("symbolic-ref", "HEAD", BRANCH)
    if git.setting("core.worktree") is not None:  # some gits write down where it was made
        git.run("config", "--local", "--unset", "core.worktree")
    for name, value in settings.items():
        git.run("config", "--local", name, value)
    if folder.is_dir():
        folder.rmdir()
    half.replace(folder)


def _index_line(path: str, blob: str | None) -> bytes:
    name = path.encode(errors="surrogateescape")
    return b"0 %b\t%b\0" % (ZERO.encode(), name) if blob is None else b"100644 %b\t%b\0" % (blob.encode(), name)


def _person(name: str) -> str:
    """A name as git can keep it."""
    return " ".join(name.translate({ord(c): " " for c in "<>\n\r\0"}).split()) or _COMMITTER[0]


def signature(name: str, at_s: int) -> str:
    """Who and when, as git writes it."""
    return f"{_person(name)} <{_address(name)}@everkept.invalid> {at_s} +0000"


def _address(name: str) -> str:
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in _person(name).lower())
    return kept.strip("-.") or "somebody"
