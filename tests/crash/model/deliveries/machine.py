"""The state machine of deliveries: whatever happens, everybody is told of it, in order, and nobody does it twice (G11).

Consumers lease, read, do and acknowledge, and die at any moment; webhooks are sent by two processes to receivers that
fail, hang and recover; meanwhile projects are merged, words erased, and the process is killed at any statement. After
each step nothing behind a cursor may be unheard of; at the end the faults stop, and everybody must hear of everything.
"""

from __future__ import annotations

import shutil
import sys

from hypothesis.stateful import initialize, invariant
from tests.crash.model.deliveries.clients import OWNERS
from tests.crash.model.deliveries.following import Following
from tests.crash.model.deliveries.happening import Happenings
from tests.crash.model.deliveries.receiver import Hook
from tests.crash.model.deliveries.sending import Sending
from tests.crash.model.oracle import must

ROUNDS_MAX = 400
DAY_S = 86_400.0


class Deliveries(Happenings, Following, Sending):
    @initialize()
    def begin(self) -> None:
        """Something has happened everywhere, and somebody follows."""
        for project in ("default", "other", "third", "default"):
            self.say(project=project, subject="ana", n=0, size=2)
        for project in ("default", "other"):
            self.take(project=project, name="mirror", owner="a", keep=False)
            self.add_hook(project=project, name="crm", from_start=True, parks=True)
            self.look()

    @invariant()
    def safe(self) -> None:
        self.revive()
        if self.office.violations:
            raise self.office.violations[0]
        self._note_merges()
        self.look()
        self.everything_said_is_told()
        self._followers_moved()
        for (project, _), follower in self.followers.items():
            follower.skips_nothing(self.outbox, project)
            follower.does_nothing_twice()
        self.hooks_hold()
        self.steps += 1
        self.tally["steps"] += 1

    def _followers_moved(self) -> None:
        """Those of a project that was merged go on in the other one, or as the one of their name there."""
        there = {
            (p, n): (c, f) for p, n, c, f in self.office.rows("select project_id, name, cursor, fence from consumers")
        }
        for (project, name), follower in list(self.followers.items()):
            if project not in self.merged or not follower.there or (project, name) in there:
                continue
            del self.followers[project, name]
            target = self.merged[project]
            cursor, fence = there[target, name]
            self.tally["follower.moved"] += 1
            joined = self.followers.get((target, name))
            if joined is not None and joined.there:
                joined.passed |= follower.known
                follower.effects.close()
                continue
            must(
                fence > follower.lease.fence, "G11", f"{name} came with fence {fence}, not above {follower.lease.fence}"
            )
            follower.cursor = follower.offered = follower.handed_out = cursor
            follower.lease.end(fence)
            follower.holders.clear()
            follower.pass_by(self.outbox, target, cursor, but_of=self.lineage[project])
            self.followers[target, name] = follower

    # ---- at the end

    def teardown(self) -> None:
        try:
            if sys.exc_info()[0] is None:
                self.drain()
                self.tally["runs"] += 1
        finally:
            self.close()

    def close(self) -> None:
        self.office.close()
        for follower in self.followers.values():
            follower.effects.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def drain(self) -> None:
        """The faults stop, time passes: merges and erases end, and everybody hears of everything."""
        self.office.trouble.calm()
        self.revive()
        self.office.provider.weather = "fine"
        for hook in self.hooks():
            hook.mood = "well"
        for waiting in self.receivers.hanging:
            if not waiting.done():
                waiting.set_result("well")
        self.office.settle()
        for owner in OWNERS:  # whoever was frozen comes back, and goes on
            self.office.nudge(self.office.sender(owner), None)
        self.safe()
        self._work_ends()
        self._followers_hear_all()
        self._hooks_hear_all()
        self.safe()

    def _work_ends(self) -> None:
        worker = self.office.worker(1)
        for _ in range(ROUNDS_MAX):
            self.office.beat(worker)
            self.office.maintain(worker)
            while self.office.look_for_work(worker, None):
                pass
            self.safe()
            busy, following = self.office.rows(
                "select count(*), min(case when lease_until > ? then lease_until when due_at > ? then due_at end)"
                " from jobs where state in ('waiting', 'ready', 'leased')", *[self.clock.now_us()] * 2,
            )[0]  # fmt: skip
            if not busy:
                break
            self.clock.advance(5.0 if following is None else max(1.0, (following - self.clock.now_us()) / 1e6 + 0.001))
        for what in ("merges", "erasures"):
            left = self.office.value(f"select count(*) from {what} where done_at is null")
            must(not left, "G12", f"{left} {what} never end")

    def _followers_hear_all(self) -> None:
        self.clock.advance(61.0)
        for follower in self.followers.values():
            follower.holders.clear()
        for (project, name), follower in list(self.followers.items()):
            if project in self.merged or not follower.there:
                continue
            called = next(name for name, number in self.numbers.items() if number == project)
            self.take(project=called, name=name, owner="last", keep=False)
            while follower.cursor < self.outbox.head(project):
                before = follower.cursor
                self.go_on(pick=0, limit=50, n=50)
                must(follower.cursor > before, "G11", f"{name} of project {project} comes no further than {before}")
            follower.holders.clear()
            follower.skips_nothing(self.outbox, project)
            self.tally["follower.heard_all"] += 1

    def _hooks_hear_all(self) -> None:
        for hook in self.hooks():
            self.handle_all(hook)
        sender = self.office.sender("a")
        for _ in range(ROUNDS_MAX):
            self.clock.advance(61.0)
            if not self.office.look_for_webhooks(sender, None):
                break
        for hook in self.hooks():
            self._hook_heard_all(hook)

    def _hook_heard_all(self, hook: Hook) -> None:
        self.clock.advance(DAY_S)
        self.office.look_for_webhooks(self.office.sender("a"), None)
        self.hooks_hold()
        head = self.outbox.head(hook.project)
        must(hook.cursor == head, "G11", f"webhook {hook.name} of project {hook.project} is at {hook.cursor} of {head}")
        must(not hook.parked, "G11", f"{hook.parked} stay parked with {hook.name}, which takes everything now")
        self.tally["hook.heard_all"] += 1
