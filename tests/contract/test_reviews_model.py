"""Whatever happens between digest and review, in any order: each generation is reviewed once or visibly passed by, none
is forfeited, and no watermark goes back (G12, I06, I08)."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from sqlalchemy import text
from tests.contract.reviewing import AGE_S, INTERVAL_S, Reviewing

from everkept.domain.jobs import Retry
from everkept.domain.review.values import PASSED
from everkept.errors import LeaseLost
from everkept.prove.invariants import ALWAYS
from everkept.store.connection import Row
from everkept.store.reviews import claim_review, reopen_imported

SESSIONS = st.sampled_from(["one", "two", "three"])
WORKERS = st.sampled_from(["w1", "w2"])
REVIEWED = text("""
select number_in(data, 'finished_seq'), count(*) from changes
where kind = 'session.reviewed' and word_in(data, 'state') = 'reviewed' group by 1""")
DRAIN_ROUNDS = 12


class Reviews(RuleBasedStateMachine):
    """Two schedulers and a hand over three sessions that go on. What was told is kept here, outside of the store."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory(prefix="everkept-reviews-")
        self.world = Reviewing(Path(self._folder.name), review__scheduler__sessions_max=2)
        self.digests: dict[int, str] = {}
        """By generation: the session whose stretch it is."""
        self.imported: set[str] = set()
        self.highest = 0
        self.passed: set[int] = set()
        """Generations that were seen to have passed, whatever became of them."""
        self.dying: list[Any] = []
        self.names = (f"restarted{n}" for n in itertools.count())

    def teardown(self) -> None:
        try:
            self.everything_is_looked_at_in_the_end()
        finally:
            self.world.shut()
            self._folder.cleanup()

    # ---- what happens

    @rule(session=SESSIONS, imported=st.booleans())
    def a_stretch_ends(self, session: str, imported: bool) -> None:
        lived = not imported or session in self.digests.values()
        self.world.work_on(session, goal=f"Goal {len(self.digests)}", origin="hook" if lived else "import")
        self.world.run_until_idle()
        seq = int(self.world.value("select finished_seq from projects"))
        assert seq == len(self.digests) + 1
        self.digests[seq] = session
        if not lived:
            self.imported.add(session)

    @rule(seconds=st.sampled_from([1.0, AGE_S, INTERVAL_S, 3 * INTERVAL_S]))
    def time_goes_by(self, seconds: float) -> None:
        self.world.tick(seconds)

    @rule(seconds=st.sampled_from([-86_400.0, -INTERVAL_S, INTERVAL_S, 3_600.0]))
    def the_clock_is_set(self, seconds: float) -> None:
        self.world.clock.step_wall(seconds)
        self.world.maintain()

    @rule(worker=WORKERS)
    def a_worker_looks(self, worker: str) -> None:
        self.world.step(worker)

    @rule()
    def a_worker_is_restarted(self) -> None:
        name = next(self.names)
        self.world.maintain(name)
        self.world.step(name)

    @rule()
    def a_worker_takes_up_what_is_next_and_dies(self) -> None:
        self.dying += self.world.claimed("dying").leases

    @precondition(lambda self: self.dying)
    @rule()
    def a_dead_worker_comes_back_too_late(self) -> None:
        lease = self.dying.pop()
        self.world.tick(self.world.settings.work.lease_s + 1)
        self.world.maintain()
        try:
            self.world.finish(lease, Retry(self.world.clock.now_us(), "transient", "late", spend=True))
        except LeaseLost:
            return
        raise AssertionError("a lease that had ended was booked")

    @rule(session=SESSIONS)
    def a_hand_claims(self, session: str) -> None:
        if session in self.digests.values():
            self.world.write(claim_review, self.world.project.id, self.world.stream_of(session))

    @rule()
    def old_history_is_asked_for(self) -> None:
        self.world.write(reopen_imported, self.world.project.id, None, 0, 100)
        self.imported.clear()

    # ---- what holds after each

    @invariant()
    def the_watermark_never_goes_back(self) -> None:
        mark = self.world.watermark()
        assert mark >= self.highest
        self.highest = mark

    @invariant()
    def the_watermark_stands_over_nothing_that_has_not_passed_once(self) -> None:
        self.passed |= {seq for seq, state in self.world.states().items() if state in PASSED}
        assert set(range(1, self.world.watermark() + 1)) <= self.passed

    def reviewed(self) -> list[Row]:
        """(number, how often it was told) of every generation that was reviewed."""
        return self.world.read(lambda conn: conn.rows(REVIEWED))

    @invariant()
    def nothing_is_reviewed_twice(self) -> None:
        assert [row for row in self.reviewed() if row[1] != 1] == []

    @invariant()
    def the_store_is_whole(self) -> None:
        assert {i.what: rows for i in ALWAYS if i.guarantee == "G12" and (rows := self.world.rows(i.query))} == {}

    def everything_is_looked_at_in_the_end(self) -> None:
        """The newest stretch of each session was reviewed or is old history; the others were, or gave way to it."""
        for _ in range(DRAIN_ROUNDS):
            self.world.live(INTERVAL_S, every=INTERVAL_S)
        states = self.world.states()
        newest = {session: seq for seq, session in sorted(self.digests.items())}
        assert states.keys() == self.digests.keys()
        for seq, session in self.digests.items():
            may_be = {"reviewed"} if newest[session] == seq else {"reviewed", "superseded", "imported"}
            assert states[seq] in may_be | ({"imported"} if session in self.imported else set()), (seq, states)
        assert dict(self.reviewed()) == {seq: 1 for seq, state in states.items() if state == "reviewed"}
        assert self.world.watermark() == len(self.digests)


OF_EACH = settings(
    max_examples=12, stateful_step_count=16, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)  # fmt: skip


@pytest.mark.only_on("sqlite", reason="a database for each of its histories; test_reviews has each rule on both")
def test_reviews_hold_whatever_is_done_in_whatever_order() -> None:
    run_state_machine_as_test(Reviews, settings=OF_EACH)
