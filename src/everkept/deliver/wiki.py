"""The wiki of one project: its pages as files in a git repository, and edits of the files as versions of the pages.

A consumer of the outbox, at least once: what is new is committed and written, then acknowledged. Each step looks at
the folder first, takes in what people changed there, and only then replaces files, each one only while it is what it
is known to be. Killed at any instant, the next step finds the same differences again, or fewer; telling a page twice
tells the same bytes.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from everkept.deliver.disk_edits import Edits, Look, Trees, find_edits
from everkept.deliver.git import BRANCH, PROJECTED, WRITTEN, ZERO, Git
from everkept.deliver.intake import Clean, Intake, NeedsAttention, TakenIn
from everkept.deliver.projection import Projection
from everkept.deliver.report import WikiReport, read_report, write_report
from everkept.deliver.work_tree import MARKER, NotOurs, WorkTree
from everkept.errors import StoreUnavailable
from everkept.store.changes import acknowledge, lease_consumer
from everkept.store.store import Store
from everkept.store.wiki_pages import CONSUMER, WikiState, wiki_batch

LEASE_S: Final = 300.0
CHANGES_PER_COMMIT: Final = 200
COMMITS_PER_STEP: Final = 50
SETTLE_S: Final = 1.0
"""A file is taken in once nobody has changed it for so long: an editor may be in the middle of saving it."""
ERASURE: Final = "everkept.erasure"
"""Setting of the repository: the last erase that its history was rebuilt after."""
_AT_WORK: Final = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")


class Unsettled(Exception):
    """A file was changed or lost a moment ago; the next step looks again."""


class ProjectWiki:
    """Follows one project. Not for two threads at once; two processes are kept apart by the consumer's lease."""

    def __init__(
        self, store: Store, project: int, folder: Path, *, owner: str, clean: Clean, program: str = "git",
        settle_s: float = SETTLE_S, monotonic: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.folder = folder
        self._store = store.reaching(project)
        self._project = project
        self._owner = owner
        self._settle_s = settle_s
        self._monotonic = monotonic
        self._git = Git(folder, program)
        self._tree = WorkTree(folder)
        self._intake = Intake(self._store, project, self._git, self._tree, clean)
        self._projection = Projection(self._git, self._tree, self._store, project)
        self._quiet: tuple[object, ...] | None = None
        """How everything looked after a step that left nothing to do, or nothing but for a person."""
        self._waits_for: NeedsAttention | NotOurs | None = None
        self._missing: dict[str, float] = {}
        """{path: since when its file is missing}."""

    def step(self, state: WikiState) -> int:
        """Take in what was edited and project what is new; how much there was to do.

        Raises Unavailable (git fails, somebody else is at work, a person is needed), LeaseLost, OSError. Each leaves
        everything such that a later step can go on.
        """
        looks = (state.head, state.cursor, state.erasure, *self._tree.signature())
        if looks == self._quiet:
            if self._waits_for is not None:
                raise self._waits_for
            return 0
        fence = self._store.write_now(lease_consumer, self._project, CONSUMER, self._owner, LEASE_S)
        if fence is None:
            return 0
        self._quiet = self._waits_for = None
        try:
            done = self._work(state, fence)
        except Unsettled:
            return 0
        except (NeedsAttention, NotOurs) as waits:
            self._report(state, attention=waits.message)
            self._quiet, self._waits_for = looks, waits
            raise
        finally:
            self._release()
        if not done:
            self._quiet = looks
        return done

    def _work(self, state: WikiState, fence: int) -> int:
        self._git.free_stale_locks()
        refs = self._git.refs()
        if BRANCH not in refs and PROJECTED not in refs:
            return self._follow(state, fence, None, TakenIn())
        if PROJECTED not in refs:
            refs |= self._adopt(refs[BRANCH])
        look = self._look(refs)
        self._wait_until_settled(look.edits)
        taken = self._intake.take(look.edits, look.common, look.tip, may_delete=look.descends)
        self._report(state, conflicts=taken.set_aside)
        if state.erasure > int(self._git.setting(ERASURE) or 0):
            return self._forget(state, fence, look, taken)
        return self._follow(state, fence, look, taken)

    def _release(self) -> None:
        """Let another process go on at once; where that cannot be written, once the lease has run out."""
        with contextlib.suppress(StoreUnavailable):
            self._store.write_now(lease_consumer, self._project, CONSUMER, self._owner, 0.0)

    # ---- looking

    def _adopt(self, tip: str) -> dict[str, str]:
        """Our references were removed: what is on the branch counts as what we wrote."""
        self._git.move({PROJECTED: (tip, ZERO)})
        return {PROJECTED: tip}

    def _look(self, refs: dict[str, str]) -> Look:
        """Raises NeedsAttention while the branch is not ours to commit to."""
        busy = next((name for name in _AT_WORK if (self._git.dir / name).exists()), None)
        if busy is not None:
            raise NeedsAttention(f"a git command was left half done ({busy}); finish or abort it")
        if self._git.branch() != BRANCH or BRANCH not in refs:
            raise NeedsAttention("another branch is checked out; the wiki follows on main: `git checkout main`")
        tip, projected = refs[BRANCH], refs[PROJECTED]
        common = projected if tip == projected else self._git.common(projected, tip)
        if common is None:
            raise NeedsAttention(f"the branch main has another history than {PROJECTED}; set it back to that")
        trees = Trees(
            common=self._git.tree(common), projected=self._git.tree(projected), branch=self._git.tree(tip),
            written=self._git.tree(refs[WRITTEN]) if WRITTEN in refs else {}, disk=self._tree.files(),
        )  # fmt: skip
        return Look(common=common, tip=tip, projected=projected, trees=trees, edits=find_edits(trees))

    def _wait_until_settled(self, edits: Edits) -> None:
        """Raises Unsettled. Some editors save by taking the file away first."""
        now = self._monotonic()
        self._missing = {path: self._missing.get(path, now) for path in edits.vanished}
        if any(now - since < self._settle_s for since in self._missing.values()):
            raise Unsettled
        if any(e.where == "disk" and self._tree.age_s(e.path) < self._settle_s for e in edits.edits):
            raise Unsettled

    # ---- projecting

    def _follow(self, state: WikiState, fence: int, look: Look | None, taken: TakenIn) -> int:
        done = taken.edits + taken.deleted
        self._projection.begin(look, taken)
        afresh, also = look is None or MARKER not in look.trees.branch, sorted(taken.again)
        for _ in range(COMMITS_PER_STEP):
            batch = self._store.read_now(wiki_batch, self._project, CHANGES_PER_COMMIT, also, afresh=afresh)
            self._projection.commit(batch)
            self._projection.write()
            self._store.write_now(acknowledge, self._project, CONSUMER, batch.through, fence)
            done += len(batch.pages)
            if batch.through >= batch.head:
                break
            afresh, also = False, []
        self._report(state)
        return done

    def _forget(self, state: WikiState, fence: int, look: Look, taken: TakenIn) -> int:
        """Something of the project was erased: the repository is made anew from what remains, its history too (G10)."""
        remotes = self._git.remotes()
        self._projection.begin(look, taken)
        batch = self._store.read_now(wiki_batch, self._project, CHANGES_PER_COMMIT, (), afresh=True)
        self._projection.rebuild(batch)
        self._git.run("config", "--local", ERASURE, str(state.erasure))
        self._report(state, out_of_reach=remotes)
        self._store.write_now(acknowledge, self._project, CONSUMER, batch.through, fence)
        return len(batch.pages) + 1

    # ---- telling

    def _report(
        self, state: WikiState, *, attention: str | None = None, conflicts: dict[str, str] | None = None,
        out_of_reach: list[str] | None = None,
    ) -> None:  # fmt: skip
        before = read_report(self.folder) or WikiReport(project=state.name, folder=str(self.folder))
        write_report(replace(
            before, project=state.name, folder=str(self.folder), attention=attention,
            conflicts=before.conflicts | (conflicts or {}),
            out_of_reach=sorted({*before.out_of_reach, *(out_of_reach or ())}),
        ))  # fmt: skip
