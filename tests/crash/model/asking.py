"""What every part of the state machine of conversations stands on: the process, the oracle, and how a client asks."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine
from tests.crash.model.oracle import Oracle
from tests.crash.model.process import Process
from tests.crash.model.safety import Safety
from tests.crash.model.trouble import Killed
from tests.factories import open_store, settings_of

from everkept.config import Settings
from everkept.errors import KeyConflict, NotFound, StoreFull, StoreUnavailable, SubjectConflict
from everkept.ports.clock import VirtualClock
from everkept.store.projects import ensure_project

T = TypeVar("T")
SECRET = bytes(range(32))
PROJECTS = ("default", "other")
SUBJECTS = ("ana", "ben")
HOUR_S = 3600.0

project_names = st.sampled_from(("default", "default", "other"))
subject_names = st.sampled_from(SUBJECTS)
thread_numbers = st.integers(0, 2)
workers = st.integers(1, 3)
picks = st.integers(0, 1000)


class Unknown:
    """No answer, or one that tells nothing: what was asked may be done or not."""


UNKNOWN = Unknown()
REFUSALS = (KeyConflict, SubjectConflict, NotFound)


@cache
def template() -> tuple[Path, Settings]:
    """(an empty database file with both projects, settings), made once."""
    home = Path(tempfile.mkdtemp(prefix="everkept-model-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    path = home / "empty.db"
    store = open_store(path, VirtualClock())
    for name in PROJECTS:
        store.write_now(ensure_project, name, SECRET)
    store.close()
    settings = settings_of(
        home, window__events_max=5, work__slots=3, work__lease_s=60, work__heartbeat_s=15, models__permits_max=4
    )
    return path, settings


class Asking(RuleBasedStateMachine):
    tally: ClassVar[Counter[str]] = Counter()
    """What really happened, over all runs of this process."""

    def __init__(self) -> None:
        super().__init__()
        empty, self.base = template()
        self.directory = Path(tempfile.mkdtemp(prefix="run-", dir=empty.parent))
        path = self.directory / "everkept.db"
        shutil.copy(empty, path)
        self.clock = VirtualClock()
        self.oracle = Oracle()
        self.process = Process(path, self.clock, self.base, self.oracle, self.tally)
        self.numbers = {
            name: number for name, number in self.process.rows("select name, id from projects") if name in PROJECTS
        }
        self.safety = Safety(self.process, self.oracle, self.numbers, self.tally)
        self.steps = 0
        self.said = 0
        self.batches_made = 0

    # ---- asking the store, as a client

    def ask(self, function: Callable[..., T], *args: Any) -> T | Unknown:
        """The answer; raises what is a definite refusal; UNKNOWN where the process or the disk failed."""
        store = self.process.store
        try:
            return store.write_now(function, *args)
        except Killed:
            self.process.die()
        except REFUSALS:
            raise
        except StoreFull:
            self.tally["told.full"] += 1
        except (StoreUnavailable, RuntimeError):
            self.tally["told.failed"] += 1
        return UNKNOWN

    def revive(self) -> None:
        if self.process.dead:
            self.process.restart()

    def count(self, what: str) -> None:
        self.tally[f"rule.{what}"] += 1
