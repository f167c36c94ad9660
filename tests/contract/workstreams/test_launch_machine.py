"""Launches of several agents as a state machine: take-overs, retries, late and partial accepts, against an oracle.

The process may die at any commit, before or after it is durable: whoever had no answer asks again, under the same keys.

The oracle knows what was said in which order, and for each session what it was told by packets that it accepted. At
every step no cursor has gone back, and none stands past an event that its session was not told of; at the end, every
session that asks once more has been told of everything.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from everkept.api.workstream_views import Launch
from everkept.capture.identity import Checkout
from everkept.domain.session import AgentEvent, natural_key
from everkept.errors import Conflict, LeaseLost
from everkept.prove.stage import Cast, Stage

T = TypeVar("T")
HERE = Checkout(cwd="/code/app", top="/code/app", branch="main")
LEASE_S = 90
BACK = st.integers(0, 2)
"""Which launch it is, counted from the last one."""
LATER = st.sampled_from([1, 100])
"""Seconds that pass: a lease holds, or has ended."""
AGENTS = ("claude-code", "codex")
PLAIN = Cast(model=False, embedder=None)
COMMITS = st.sampled_from(["writer.before_commit", "writer.after_commit"])


class Died(BaseException):
    """The process is gone: nothing of ours runs after this."""


class Deaths:
    """Ends the process once, when it comes to this point for the n-th time."""

    def __init__(self) -> None:
        self.point: str | None = None
        self.left = 0
        self.died = 0

    def reach(self, point: str) -> None:
        if point != self.point:
            return
        self.left -= 1
        if self.left <= 0:
            self.point = None
            self.died += 1
            raise Died(point)


@dataclass
class Running:
    """A launch as its own process knows it, and what the oracle knows of it."""

    key: str
    agent: str
    native: str
    """The session that it works in; one that is new is not named when it is prepared."""
    named: bool
    launch: Launch
    until_s: float
    state: str = "live"
    accepted: bool = False
    linked: bool = False


@dataclass
class Told:
    """What one session was told: `cursor` as the oracle reckons it, and the events by their place."""

    cursor: int = 0
    events: set[int] = field(default_factory=set)


class LaunchMachine(RuleBasedStateMachine):
    @initialize()
    def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="everkept-launches-")
        self.deaths = Deaths()
        self.stage = Stage(Path(self.folder.name), PLAIN, faults=self.deaths)
        self.said: list[str] = []
        """Native session of each visible event, in the order in which they were taken in."""
        self.said_at: dict[int, int] = {0: 0}
        """{head of the ledger: events so far}."""
        self.sessions: dict[str, Told] = {}
        self.all: list[Running] = []
        self.now_s = 0.0

    def teardown(self) -> None:
        if not hasattr(self, "stage"):
            return
        self.everybody_is_told()
        self.stage.close()
        self.folder.cleanup()

    # ---- what processes do

    @rule(point=COMMITS, n=st.integers(1, 3))
    def die_soon(self, point: str, n: int) -> None:
        self.deaths.point, self.deaths.left = point, n

    @rule(agent=st.sampled_from(AGENTS), resumes=st.sampled_from([True, True, False]), after_s=LATER)
    def prepare(self, agent: str, resumes: bool, after_s: int) -> None:
        self._pass(after_s)
        native = self._native(agent, len(self.all)) if not resumes else self._native(agent, 1_000)
        self._prepare(agent, native, named=resumes)

    @precondition(lambda self: self.all)
    @rule(back=BACK)
    def prepare_again(self, back: int) -> None:
        """Its answer was lost, or it slept: the same launch and bytes, under a new fence where the lease had ended."""
        run = self._run_before(back)
        holder = self._holder()
        held = run.state == "live" and run.until_s > self.now_s
        try:
            again = self._asked(run.key, run.agent, run.native if run.named else None)
        except Conflict:
            assert holder is not None
            assert holder is not run
            assert run.state in ("live", "lost")
            return
        assert again.id == run.launch.id
        assert again.packet == run.launch.packet
        if run.state in ("finished", "cancelled"):
            assert again.fence == run.launch.fence
            return
        assert holder in (None, run)
        assert (again.fence == run.launch.fence) == held
        for other in self.all:  # one whose lease had ended without anybody noticing has lost it now
            if other is not run and other.state == "live":
                other.state = "lost"
        run.state, run.launch, run.until_s = "live", again, self.now_s + LEASE_S

    @precondition(lambda self: self.all)
    @rule(back=BACK, after_s=LATER)
    def heartbeat(self, back: int, after_s: int) -> None:
        self._pass(after_s)
        run = self._run_before(back)
        may = run.state == "live" and run.until_s > self.now_s
        try:
            self._run(lambda: self.stage.service().heartbeat_launch(run.launch.id, fence=run.launch.fence))
        except (LeaseLost, Conflict):
            assert not may
        else:
            assert may
            run.until_s = self.now_s + LEASE_S

    @precondition(lambda self: self.all)
    @rule(back=BACK, count=st.integers(1, 3), twice=st.booleans())
    def tell(self, back: int, count: int, twice: bool) -> None:
        """Whoever holds the workstream by now, what happened is taken in."""
        run = self._run_before(back)
        events = [self._event(run, len(self.said) + n) for n in range(count)]
        first = 1 + self._run(lambda: self.stage.service().get_launch(run.launch.id)).acknowledged
        for _ in range(1 + twice):
            taken = self._run(lambda: self.stage.service().launch_events(run.launch.id, events, first=first))
            assert taken.acknowledged == first + count - 1
        self.said += [run.native] * count
        self.said_at[self._head()] = len(self.said)
        self._linked(run)

    @precondition(lambda self: self.all)
    @rule(back=BACK, twice=st.booleans())
    def finish(self, back: int, twice: bool) -> None:
        run = self._run_before(back)
        for _ in range(1 + twice):
            self._run(lambda: self.stage.service().finish_launch(
                run.launch.id, fence=run.launch.fence, native_session=run.native, exit_code=0))  # fmt: skip
        self._linked(run)
        if run.state == "live":
            run.state = "finished"

    @precondition(lambda self: self.all)
    @rule(back=BACK)
    def cancel(self, back: int) -> None:
        run = self._run_before(back)
        try:
            self._run(lambda: self.stage.service().cancel_launch(run.launch.id, fence=run.launch.fence))
        except (LeaseLost, Conflict):
            assert run.state in ("lost", "finished")
        else:
            assert run.state in ("live", "cancelled")
            run.state = "cancelled"

    @precondition(lambda self: self.all)
    @rule(back=BACK)
    def accept(self, back: int) -> None:
        run = self._run_before(back)
        try:
            self._run(lambda: self.stage.service().accept_launch(run.launch.id, fence=run.launch.fence))
        except (LeaseLost, Conflict):
            assert run.state in ("lost", "cancelled")
            return
        assert run.state in ("live", "finished")
        self._accepted(run)

    @precondition(lambda self: self.all)
    @rule()
    def accept_the_newest_first(self) -> None:
        for back in range(len(self.all)):
            self.accept(back)

    # ---- what always holds

    @invariant()
    def cursors_are_as_reckoned(self) -> None:
        if not hasattr(self, "stage"):
            return
        rows = self.stage.read(lambda conn: conn.raw.execute(
            "select native_id, delivered from workstream_cursors").fetchall())  # fmt: skip
        kept = {native: delivered for native, delivered in rows if delivered}
        assert kept == {native: told.cursor for native, told in self.sessions.items() if told.cursor}

    @invariant()
    def nothing_before_a_cursor_was_skipped(self) -> None:
        for native, told in getattr(self, "sessions", {}).items():
            passed = {n for n in range(self.said_at[told.cursor]) if self.said[n] != native}
            assert passed <= told.events

    @invariant()
    def one_launch_is_live(self) -> None:
        if hasattr(self, "stage"):
            assert self.stage.value("select count(*) from launches where state in ('prepared', 'running')") <= 1

    def everybody_is_told(self) -> None:
        for native in list(self.sessions):
            agent = native.rpartition("/")[0]
            self._pass(LEASE_S + 1)
            run = self._prepare(agent, native, named=True)
            assert run is not None
            self.accept(0)
            self.finish(0, twice=False)
            assert {n for n, by in enumerate(self.said) if by != native} <= self.sessions[native].events

    # ---- the oracle

    def _prepare(self, agent: str, native: str, *, named: bool) -> Running | None:
        holder = self._holder()
        key = f"k{len(self.all)}-{len(self.said)}-{self.now_s}"
        try:
            launch = self._asked(key, agent, native if named else None)
        except Conflict as error:
            self._refused_by(holder, error)
            return None
        assert holder is None
        for other in self.all:
            if other.state == "live":
                other.state = "lost"
        run = Running(key=key, agent=agent, native=native, named=named, launch=launch, until_s=self.now_s + LEASE_S)
        self.all.append(run)
        told = self.sessions.setdefault(native, Told())
        packet = launch.packet
        assert packet is not None
        assert packet.start == (told.cursor if named else 0)
        new = self._range(run)
        own = native if named else ""
        assert packet.shown + packet.counted == len([n for n in new if self.said[n] != own])
        return run

    def _pass(self, seconds: int) -> None:
        self.now_s += seconds
        self.stage.clock.advance(seconds)

    def _run_before(self, back: int) -> Running:
        return self.all[-1 - back % len(self.all)]

    @staticmethod
    def _refused_by(holder: Running | None, error: Conflict) -> None:
        assert holder is not None
        assert error.details["launch"] == holder.launch.id

    def _range(self, run: Running) -> list[int]:
        packet = run.launch.packet
        assert packet is not None
        return list(range(self.said_at[packet.start], self.said_at[packet.through]))

    def _accepted(self, run: Running) -> None:
        run.accepted = True
        if run.named or run.linked:
            self._move(run)

    def _linked(self, run: Running) -> None:
        first = not run.linked
        run.linked = True
        if first and run.accepted:
            self._move(run)

    def _move(self, run: Running) -> None:
        packet = run.launch.packet
        assert packet is not None
        told = self.sessions[run.native]
        if packet.start <= told.cursor:
            told.events |= set(self._range(run))
            told.cursor = max(told.cursor, packet.through)

    def _holder(self) -> Running | None:
        return next((r for r in self.all if r.state == "live" and r.until_s > self.now_s), None)

    # ---- the system

    def _asked(self, key: str, agent: str, native: str | None) -> Launch:
        return self._run(lambda: self.stage.service().prepare_launch(
            "owner", checkout=HERE, agent=agent, native_session=native, key=key, tokens=300))  # fmt: skip

    def _run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Until there is an answer: after a death by another process, over what the file holds."""
        while True:
            try:
                return self.stage.run(work())
            except Died:
                now = self.stage.clock.now_us()
                self.stage.close()
                self.stage = Stage(Path(self.folder.name), PLAIN, faults=self.deaths, start_us=now)

    def _head(self) -> int:
        return int(self.stage.value("select coalesce(max(seq), 0) from workstream_ledger"))

    @staticmethod
    def _native(agent: str, number: int) -> str:
        return f"{agent}/0199aaaa-1111-7222-8333-{number:012d}"

    def _event(self, run: Running, place: int) -> AgentEvent:
        return AgentEvent(
            kind="said", agent=run.agent, session=run.native, key=natural_key(run.agent, f"e{place}"), source="launch",
            text=f"What was said as number {place}, in a few words more.",
        )  # fmt: skip


OF_EACH = settings(
    max_examples=40, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


@pytest.mark.only_on("sqlite", reason="processes die in it, whose connections nobody closes")
def test_launches_of_processes_that_die_hold_whatever_is_done() -> None:
    run_state_machine_as_test(LaunchMachine, settings=OF_EACH)
