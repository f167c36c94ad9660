"""What every part of the state machine of deliveries stands on: the process, the outbox, and how a client asks."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine
from tests.crash.model.deliveries.followers import Follower
from tests.crash.model.deliveries.ground import PostOffice
from tests.crash.model.deliveries.outbox import Happening, Outbox
from tests.crash.model.deliveries.receiver import Hook, Receivers
from tests.crash.model.oracle import must
from tests.crash.model.trouble import Killed
from tests.factories import open_store, settings_of

from everkept.config import Settings
from everkept.errors import StoreFull, StoreUnavailable
from everkept.ports.clock import VirtualClock
from everkept.store.connection import Connection
from everkept.store.merging import require_unmerged
from everkept.store.projects import ensure_project, ensure_subject

T = TypeVar("T")
SECRET = bytes(range(32))
PROJECTS = ("default", "other", "third")
SUBJECTS = ("ana", "ben")
OWNERS = ("a", "b")
LEASE_S = 60.0
projects = st.sampled_from(("default", "default", "default", "other", "other", "third"))
owners = st.sampled_from(OWNERS)
picks = st.integers(0, 1000)
seldom = st.sampled_from((False, False, False, False, True))


class Unknown:
    """No answer, or one that tells nothing: what was asked may be done or not."""


UNKNOWN = Unknown()


@cache
def template() -> tuple[Path, Settings]:
    """(an empty database file with all projects and subjects, settings), made once."""
    home = Path(tempfile.mkdtemp(prefix="everkept-deliveries-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    path = home / "empty.db"
    store = open_store(path, VirtualClock())
    for name in PROJECTS:
        project = store.write_now(ensure_project, name, SECRET).id
        for subject in SUBJECTS:
            store.write_now(ensure_subject, project, subject)
    store.close()
    settings = settings_of(home, window__events_max=5, work__slots=3, work__lease_s=60, work__heartbeat_s=15)
    return path, settings


def as_now(conn: Connection, project: int, function: Callable[..., T], *args: Any) -> T:
    """What every door does for whoever holds a project: one that was merged meanwhile is refused."""
    require_unmerged(conn, project)
    return function(conn, project, *args)


class Clients(RuleBasedStateMachine):
    tally: ClassVar[Counter[str]] = Counter()
    """What really happened, over all runs of this process."""

    def __init__(self) -> None:
        super().__init__()
        empty, self.settings = template()
        self.directory = Path(tempfile.mkdtemp(prefix="run-", dir=empty.parent))
        path = self.directory / "everkept.db"
        shutil.copy(empty, path)
        self.clock = VirtualClock()
        self.outbox = Outbox()
        self.receivers = Receivers(self.outbox, self.clock, self.tally, lambda: self.office.die())
        self.office = PostOffice(path, self.clock, self.settings, self._post, self.tally)
        self.numbers: dict[str, int] = dict(self.office.rows("select name, id from projects"))
        self.merged: dict[int, int] = {}
        """Project → the one that it was merged into."""
        self.lineage = {number: frozenset({number}) for number in self.numbers.values()}
        """Project → those whose followers are its own by now."""
        self.followers: dict[tuple[int, str], Follower] = {}
        self.said: dict[int, int] = {}
        """Stream → how many messages its clients were told of."""
        self.steps = 0
        self.look()

    async def _post(self, url: str, headers: Any, body: bytes) -> Any:
        return await self.office.watched(lambda: self.receivers(url, headers, body))

    # ---- asking the store, as a client

    def ask(self, function: Callable[..., T], *args: Any) -> T | Unknown:
        """The answer; a definite refusal is raised; UNKNOWN where the process or the disk failed."""
        try:
            return self.office.store.write_now(function, *args)
        except Killed:
            self.office.die()
        except StoreFull:
            self.tally["told.full"] += 1
        except (StoreUnavailable, RuntimeError):
            self.tally["told.failed"] += 1
        self.revive()
        return UNKNOWN

    def ask_of(self, project: int, function: Callable[..., T], *args: Any) -> T | Unknown:
        return self.ask(as_now, project, function, *args)

    def revive(self) -> None:
        if self.office.dead:
            self.office.restart()
            self.receivers.hanging.clear()

    def count(self, what: str) -> None:
        self.tally[f"rule.{what}"] += 1

    def number(self, project: str) -> int:
        """Of the project that the name means by now."""
        found = self.numbers[project]
        while found in self.merged:
            found = self.merged[found]
        return found

    def hooks(self) -> list[Hook]:
        return list(self.receivers.hooks.values())

    # ---- looking

    def look(self) -> None:
        """All that happened until now, as the file tells it."""
        joined = dict(self.office.rows("select id, merged_into from subjects where merged_into is not null"))
        rows = self.office.rows(
            "select project_id, seq, coalesce(born, project_id || '_' || seq) || '_' || at, kind, subject_id"
            " from changes order by project_id, seq"
        )
        self.outbox.see(
            dict(self.office.rows("select id, change_seq from projects")),
            [(p, seq, Happening(name=name, kind=kind, subject=_of(joined, of))) for p, seq, name, kind, of in rows],
        )
        for hook in self.hooks():
            hook.wants = replace(hook.wants, subject=_of(joined, hook.wants.subject))
        for follower in self.followers.values():
            follower.wants = replace(follower.wants, subject=_of(joined, follower.wants.subject))

    def everything_said_is_told(self) -> None:
        """Every message that was accepted is in one change, and only in one."""
        told: dict[int, list[tuple[int, int]]] = {}
        for stream, first, last in self.office.rows(
            "select stream_id, data->>'first_seq', data->>'last_seq' from changes where kind = 'messages.appended'"
        ):
            told.setdefault(stream, []).append((first, last))
        for stream, stretches in told.items():
            end = 0
            for first, last in sorted(stretches):
                must(first == end + 1, "G11", f"of stream {stream} changes tell {sorted(stretches)}")
                end = last
            must(end >= self.said.get(stream, 0), "G11", f"{self.said[stream]} messages of {stream}, {end} are told")
        untold = [stream for stream in self.said if stream not in told]
        must(not untold, "G11", f"no change tells of {untold}")


def _of(joined: dict[int, int], subject: int | None) -> int | None:
    while subject in joined:
        subject = joined[subject]
    return subject
