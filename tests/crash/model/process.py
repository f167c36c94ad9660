"""The workers of conversations beside the oracle: what they were promised and what they report is told to it.

It is told from here, before and after each store call of a worker.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.crash.model.calls import effect_of, lease_of
from tests.crash.model.gated import Gated
from tests.crash.model.ground import Ground
from tests.crash.model.oracle import HeldLease, Message, Oracle, Violation, must
from tests.crash.model.provider import Provider, QuestionKey
from tests.crash.model.trouble import Killed
from tests.crash.model.worker import Worker

from everkept.config import Settings
from everkept.domain.jobs import Done, Lease, Snooze
from everkept.errors import LeaseLost, RateLimited, SubjectMoved
from everkept.ports.clock import VirtualClock
from everkept.store.claims import Claimed

SPENDS_NOTHING = ("rate_limited", "provider_down", "over_budget", "subject_moved", "store_unavailable", "store_full")
WITHOUT_LEASE = ("begin_ask", "commit_reply", "judge_reply", "refuse_finish", "clean_file")
"""All that a job may write without its lease: the journal, the count of refusals, and a file that is rewritten."""


class Process(Ground):
    def __init__(
        self, path: Path, clock: VirtualClock, settings: Settings, oracle: Oracle, tally: Counter[str]
    ) -> None:
        self.oracle = oracle
        self.violations: list[Violation] = []
        self._paid: dict[asyncio.Task[Any] | None, tuple[QuestionKey, bool]] = {}
        self._revisions: dict[asyncio.Task[Any] | None, dict[int, int]] = {}
        """What each subject was at when a job read first."""
        super().__init__(path, clock, settings, Provider(self._asked, self._answered), tally)

    def _forget(self) -> None:
        super()._forget()
        self._paid.clear()
        self._revisions.clear()

    def maintain(self, worker: Worker) -> int:
        repaired = super().maintain(worker)
        self.note_taken()
        return repaired

    # ---- one store call of a worker

    def perform(self, doer: Gated, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Do it, and compare with what the oracle expects. A violation is kept: a runner books whatever is raised."""
        try:
            assert isinstance(doer, Worker)
            return self._perform(doer, function, args)
        except Violation as violation:
            self.violations.append(violation)
            raise

    def _perform(self, worker: Worker, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        if not worker.alive or self.dead:
            raise asyncio.CancelledError
        name = function.__name__
        lease = lease_of(function, args)
        held = None if lease is None else self._held(lease)
        before = None if lease is None else effect_of(self.rows, lease)
        paid = self._paid.pop(_task(), None)
        must(
            paid is None or name in ("commit_reply", "_fail", "_book"),
            "G8", f"{name} came between a reply that was paid for and its commit",
        )  # fmt: skip
        read_at = self._revisions.get(_task(), {}) if name == "_commit" else {}
        must(
            lease is not None or name in WITHOUT_LEASE or _task() not in worker.tasks,
            "G6", f"a job wrote {name} without its lease",
        )  # fmt: skip
        if name in ("_fail", "_book"):  # cancelled between the answer and its commit: it never reached the journal
            self.tally["reply.lost"] += paid is not None
            paid = None
        try:
            result = self.store.write_now(function, *args)
        except Killed:
            self.die()
            if name == "follow_clock":
                self._clock_followed()
            if name == "_poll":
                self._claimed_unawares(worker)
            if lease is not None:
                self._both_or_neither(lease, before)
            raise asyncio.CancelledError from None
        except LeaseLost:
            must(paid is None, "G8", "a reply that was paid for was refused because a lease was lost")
            if lease is not None:
                self._refused(lease, held)
            raise
        except SubjectMoved:
            self.tally["subject_moved"] += 1
            raise
        except Exception as error:
            self.tally[f"call_failed.{type(error).__name__}"] += 1
            if name == "follow_clock":
                self._clock_followed()
            if name == "_poll":
                self._claimed_unawares(worker)
            if lease is not None:
                self._both_or_neither(lease, before)
                self._perhaps_reported(lease)
            raise
        if paid is not None:
            self.oracle.keeps(paid[0], good=paid[1])
            self.tally["reply.kept" if paid[1] else "reply.rejected"] += 1
        if name == "_poll":
            self._claimed(worker, result[0])
        elif name == "renew_leases":
            self._renewed(worker, result)
        elif name == "follow_clock":
            self._clock_followed()
        elif lease is not None:
            self._accepted(lease, held, name, function, args)
            if lease.kind == "extract_facts" and read_at:
                self._subject_stood_still(lease, moved_from=read_at[lease.subject])
        return result

    def note_read(self) -> None:
        """What facts are made of is read first; what is read later does not count."""
        task = _task()
        if task is not None and task.get_name().startswith("extract_facts ") and task not in self._revisions:
            self._revisions[task] = dict(self.rows("select id, revision from subjects"))

    def _subject_stood_still(self, lease: Lease, *, moved_from: int) -> None:
        """Writing facts moves the subject by one: any more was somebody else between the job's reading and this."""
        now = self.value("select revision from subjects where id = ?", lease.subject)
        must(
            now <= moved_from + 1,
            "G6", f"{lease.kind} {lease.key} read its subject at {moved_from}, and wrote facts to it at {now - 1}",
        )  # fmt: skip

    def _asked(self, key: QuestionKey) -> None:
        try:
            self.oracle.asked(key)
        except Violation as violation:
            self.violations.append(violation)
            raise

    def _answered(self, key: QuestionKey, good: bool) -> None:
        self._paid[_task()] = key, good

    def _claimed(self, worker: Worker, claimed: Claimed) -> None:
        now = self.clock.now_us()
        busy = len(worker.runner._running)
        must(
            busy + len(claimed.leases) <= worker.runner.slots, "G7", f"{worker.name} claimed more than its free slots"
        )  # fmt: skip
        self._lanes_are_shared(worker, claimed)
        for lease in claimed.leases:
            held = HeldLease(
                job=lease.job, fence=lease.fence, until_us=now + int(self.settings.work.lease_s * 1e6),
                owner=worker.name, kind=lease.kind, key=lease.key, project=lease.project,
            )  # fmt: skip
            self.tally["claim"] += 1
            must(
                lease.uses != "model" or now >= self.oracle.stay_away_until_us,
                "G7", f"{worker.name} took {lease.kind} {lease.key} though the provider asked to stay away",
            )  # fmt: skip
            self.tally["claim.alone"] += lease.alone
            self.oracle.claimed(
                held, crashes=lease.crashes, alone=lease.alone, beside=busy + len(claimed.leases) - 1, now_us=now
            )

    def _lanes_are_shared(self, worker: Worker, claimed: Claimed) -> None:
        """A lane that was just given a job leaves one slot of all that live to others (G13)."""
        since = self.clock.now_us() - int(3 * self.settings.work.heartbeat_s * 1e6)
        live = self.value("select coalesce(sum(slots), 0) from workers where seen_at > ?", since)
        most = max(1, max(live, worker.runner.slots) - 1)
        for lane in {lease.lane for lease in claimed.leases}:
            held = self.value("select count(*) from jobs where state = 'leased' and lane_id = ?", lane)
            must(held <= most, "G13", f"lane {lane} was given {held} slots, {most} are the most it may have")

    def _claimed_unawares(self, worker: Worker) -> None:
        """The answer to a claim was lost: what was committed is booked on a worker that does not know of it."""
        held = self.rows(
            "select id, fence, lease_until, kind, key, project_id, crashes from jobs"
            " where owner = ? and state = 'leased'",
            worker.name,
        )
        for job, fence, until, kind, key, project, crashes in held:
            if fence > self.oracle.fences.get(job, 0):
                lease = HeldLease(
                    job=job, fence=fence, until_us=until, owner=worker.name, kind=kind, key=key, project=project
                )
                self.tally["claim.unawares"] += 1
                now = self.clock.now_us()
                self.oracle.claimed(lease, crashes=crashes, alone=True, beside=0, now_us=now)

    def _renewed(self, worker: Worker, held: dict[int, int]) -> None:
        now = self.clock.now_us()
        self.oracle.seen_us[worker.name] = now
        for job, fence in held.items():
            lease = self.oracle.leases.get(job)
            must(
                lease is not None and lease.fence == fence and lease.holds(now),
                "G6", f"{worker.name} renewed a lease of job {job} that had ended",
            )  # fmt: skip
            assert lease is not None
            lease.until_us = now + int(self.settings.work.lease_s * 1e6)
            self.tally["renewed"] += 1

    def _clock_followed(self) -> None:
        """The wall clock was set back, and what was promised with it: a lease ends no later than before."""
        now = self.clock.now_us()
        for job, fence, until in self.rows("select id, fence, lease_until from jobs where state = 'leased'"):
            lease = self.oracle.leases.get(job)
            if lease is not None and lease.fence == fence and until < lease.until_us:
                lease.until_us = until
                self.tally["clock.followed"] += 1
        for name, seen in self.oracle.seen_us.items():
            self.oracle.seen_us[name] = min(seen, now)

    def _held(self, lease: Lease) -> HeldLease | None:
        held = self.oracle.leases.get(lease.job)
        return held if held is not None and held.fence == lease.fence else None

    def _accepted(
        self, lease: Lease, held: HeldLease | None, name: str, function: Callable[..., Any], args: tuple[Any, ...]
    ) -> None:
        """The store took what a holder brought."""
        now = self.clock.now_us()
        must(
            held is not None and held.holds(now),
            "G6", f"{name} of {lease.kind} {lease.key} was accepted from {held and held.owner} without its lease",
        )  # fmt: skip
        if lease.kind == "erase_scope":  # it takes the jobs of what it destroys, from whoever holds them
            for other in self._no_longer_leased():
                other.taken = other.erased_beside = True
        if name == "erase_chunk":
            return
        outcome = args[1] if name == "_book" else None
        clean = name == "_commit" or isinstance(outcome, Done | Snooze)
        row = self.job(lease.job)
        if row is not None:
            state, attempts, _, fence = row
            must(state != "leased" or fence != lease.fence, "G6", f"{name} left {lease.kind} {lease.key} leased")
            if name == "_fail":
                self._charged(lease, args[3], state, attempts)
                if isinstance(args[2], RateLimited):
                    self.oracle.told_to_stay_away(args[2].retry_after_s, now)
            clean = clean or state in ("done", "discarded")
        self.tally[f"report.{name}"] += 1
        self.tally[f"done.{lease.kind}"] += name == "_commit"
        self.oracle.reported(lease.job, clean=clean)

    def _charged(self, lease: Lease, error_class: str, state: str, attempts: int) -> None:
        """What a failure costs is decided by its class alone."""
        self.tally[f"failure.{error_class}"] += 1
        if error_class in SPENDS_NOTHING:
            must(
                state == "waiting" and attempts == lease.attempts,
                "G7", f"{error_class} cost {lease.kind} {lease.key} an attempt ({attempts}, {state})",
            )  # fmt: skip
        elif error_class in ("refused", "permanent", "invalid_output"):
            must(state == "dead", "G7", f"{error_class} left {lease.kind} {lease.key} {state}")
        else:
            must(attempts <= lease.attempts + 1, "G7", f"{error_class} cost {lease.kind} {lease.key} too much")

    def _refused(self, lease: Lease, held: HeldLease | None) -> None:
        now = self.clock.now_us()
        wrongly = held is not None and held.holds(now) and not held.erased_beside
        must(not wrongly, "G6", f"{lease.kind} {lease.key} was refused although its lease holds")
        self.tally["refused"] += 1
        if held is None or held.taken:
            self.tally["refused.taken"] += 1
        elif held.until_us <= now:
            self.tally["refused.ended"] += 1
        if held is not None and held.erased_beside:
            self.tally["refused.erased"] += 1

    # ---- effect and completion are one (G6)

    def _both_or_neither(self, lease: Lease, before: tuple[Any, ...] | None) -> None:
        """A call that was cut off: looked at after what was not committed is gone."""
        if before is None:
            return
        if self.dead:
            self.connections.drop()
        after = effect_of(self.rows, lease)
        assert after is not None
        still_leased = after[0] == before[0]
        must(
            not still_leased or after[1] == before[1],
            "G6", f"{lease.kind} {lease.key} was cut off with its effect committed and its completion not",
        )  # fmt: skip
        self.tally["cut_off"] += 1
        if not still_leased:
            self.tally["cut_off.committed"] += 1
            self.oracle.reported(lease.job, clean=True)

    def _perhaps_reported(self, lease: Lease) -> None:
        """An error after the commit: the worker was told of a failure, and the job is booked all the same."""
        row = self.job(lease.job)
        if row is not None and (row[0] != "leased" or row[3] != lease.fence) and lease.job in self.oracle.leases:
            self.oracle.reported(lease.job, clean=row[2] == 0)

    # ---- what others take

    def note_taken(self) -> None:
        """After the backstops: leases they have ended must have been over."""
        now = self.clock.now_us()
        unseen_us = int(3.5 * self.settings.work.heartbeat_s * 1e6)
        for lease in self._no_longer_leased():
            seen = self.oracle.seen_us.get(lease.owner)
            over = lease.erased_beside or lease.until_us <= now or (seen is not None and seen <= now - unseen_us)
            must(
                over,
                "G7",
                f"{lease.kind} {lease.key} was taken from {lease.owner}, who holds it: {lease} at {now}, seen {seen}",
            )
            lease.taken = True
            self.tally["expired"] += 1

    def _no_longer_leased(self) -> list[HeldLease]:
        leased = dict(self.rows("select id, fence from jobs where state = 'leased'"))
        return [x for x in self.oracle.leases.values() if not x.taken and leased.get(x.job) != x.fence]


def _task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def words_of(messages: Sequence[Message]) -> set[str]:
    return {m.word for m in messages}
