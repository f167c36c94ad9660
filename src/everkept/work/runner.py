"""The runner: claims what is next in turn, runs it, books what came of it. One per process, any number on a store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import structlog

from everkept.config import Settings
from everkept.domain.ids import row_id
from everkept.domain.jobs import Backoff, Lease, Outcome, Retry, Uses, after_failure
from everkept.errors import (
    EverkeptError,
    LeaseLost,
    ModelError,
    OverBudget,
    Permanent,
    Refused,
    StoreUnavailable,
    SubjectMoved,
    Transient,
)
from everkept.ports.clock import Clock
from everkept.ports.faults import Faults
from everkept.ports.tracing import Facts, Span, span
from everkept.store.claims import Claimed, ClaimRequest, claim, running_by_use
from everkept.store.connection import Connection
from everkept.store.jobs import promote_due
from everkept.store.lanes import USES
from everkept.store.leases import finish, live_slots, refuse_finish, remove_worker, renew_leases
from everkept.store.pauses import is_pool_paused
from everkept.store.providers import (
    failures_in_a_row,
    forget_other_pools,
    is_open,
    note_answer,
    note_failure,
    opens_in_s,
    permits_left,
)
from everkept.store.reach import Across
from everkept.store.store import Store
from everkept.work.job import Finished, JobContext, JobKind, Trust, error_text
from everkept.work.maintenance import Maintenance

log = structlog.get_logger("everkept.work")
PROMOTE_MAX = 200
ESTIMATE_WEIGHT = 0.2
UNKNOWN_KIND_US = 300_000_000
ORDINARY_EVERY = 6
"""With every so manyth failure of a provider in a row, about once an hour, it is asked an ordinary question."""
WEATHER = frozenset({"transient", "rate_limited", "provider_down"})
"""Classes of failure that tell of the provider; others are answers."""


class Runner:
    """`step()` makes one round (promote, claim, start); `run()` repeats it until `stop()`.

    The poll is at most the tick long and is cut short by every commit that schedules work.
    """

    def __init__(
        self,
        store: Store,
        kinds: Mapping[str, JobKind[Any]],
        settings: Settings,
        tools: Any,
        *,
        owner: str,
        clock: Clock,
        faults: Faults,
        pools: Mapping[Uses, str | None],
        maintenance: Maintenance,
    ) -> None:
        self.store = store
        self.owner = owner
        self.slots = settings.work.slots
        self._kinds = kinds
        self._settings = settings
        self._tools = tools
        self._clock = clock
        self._faults = faults
        self._pools = pools
        self._maintenance = maintenance
        self._running: dict[int, tuple[Lease, asyncio.Task[None], Trust]] = {}
        self._estimates = {name: kind.policy.estimate_s for name, kind in kinds.items()}
        self._next_due_us: int | None = None
        self._unbooked: list[tuple[Any, ...]] = []
        """Failures of jobs that could not be written down when they happened: what `_fail` takes."""
        self._uncounted: list[Lease] = []
        """Of finishes that were refused and could not be counted when that happened."""
        self._alone = False
        self._stopping = False
        self._drain_s = 0.0
        self.seen = False
        """Whether the store knows this worker: its first heartbeat was written."""
        self.signed_off = False
        """Whether it has ended and holds no lease: somebody else need not take back what it had begun."""
        self._wake: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    # ---- the round

    async def step(self) -> int:
        """Promote, claim and start what is next; the number of jobs started."""
        if self._alone and not self._running:
            self._alone = False
        free = 0 if self._alone else min(self.slots - len(self._running), self._settings.work.claim_max)
        self._loop = asyncio.get_running_loop()
        await self._book_late()
        trusted_from = self._clock.monotonic_s()
        claimed, self._next_due_us = await self.store.reaching(Across.QUEUE).write(self._poll, free)
        for lease in claimed.leases:
            self._start(lease, Trust(trusted_from + self._settings.work.lease_s))
        self._alone = self._alone or any(lease.alone for lease in claimed.leases)
        return len(claimed.leases)

    def _poll(self, conn: Connection, free: int) -> tuple[Claimed, int | None]:
        """One transaction: due jobs become ready, and free slots take what is next in turn."""
        uses = self._permitted(conn, free)
        _, next_due = promote_due(conn, PROMOTE_MAX)
        if free <= 0:
            return Claimed([], drain=False), next_due
        probes = frozenset(u for u in USES if (pool := self._pools.get(u)) is not None and is_open(conn, pool))
        slots = max(self.slots, live_slots(conn, 3 * self._settings.work.heartbeat_s))
        request = ClaimRequest(
            owner=self.owner, free=free, slots=slots, lease_s=self._settings.work.lease_s, uses=uses, probes=probes,
            idle=not self._running, estimates_s=self._estimates,
        )  # fmt: skip
        return claim(conn, request), next_due

    def _permitted(self, conn: Connection, free: int) -> dict[Uses, int]:
        """How many of each may be claimed now. First in its transaction: it may write a row that all share."""
        running = running_by_use(conn)
        uses: dict[Uses, int] = {}
        for use in USES:
            pool = self._pools.get(use)
            if pool is None:
                uses[use] = free
            elif not is_pool_paused(conn, pool):
                uses[use] = permits_left(conn, pool, running.get(use, 0), self._settings.models.permits_max)
        return uses

    def _start(self, lease: Lease, trust: Trust) -> None:
        if lease.job in self._running:  # taken from that run by a hand or an erase, and given to this worker anew
            self._running[lease.job][1].cancel()
        task = asyncio.get_running_loop().create_task(self._work(lease, trust), name=f"{lease.kind} {lease.key}")
        self._running[lease.job] = (lease, task, trust)
        task.add_done_callback(lambda _: self._ended(lease))

    def _ended(self, lease: Lease) -> None:
        if lease.job in self._running and self._running[lease.job][0] is lease:
            del self._running[lease.job]
        if self._wake is not None:
            self._wake.set()

    async def drain_started(self) -> None:
        """Wait for what runs now: what the simulations call between steps."""
        while self._running:
            await asyncio.gather(*(task for _, task, _ in self._running.values()))

    # ---- one job

    async def _work(self, lease: Lease, trust: Trust) -> None:
        """One job, known in every line of the log and traced below whoever asked for it."""
        whose = {"job": row_id("job", lease.job), "kind": lease.kind, "project": row_id("prj", lease.project)}
        facts: Facts = {f"everkept.{name}": value for name, value in whose.items()}
        with (
            structlog.contextvars.bound_contextvars(**whose),
            span(f"job {lease.kind}", "consumer", parent=lease.traceparent, facts=facts) as found,
        ):
            await self._work_leased(lease, trust, found)
            log.debug("job run ended", key=lease.key)

    async def _work_leased(self, lease: Lease, trust: Trust, found: Span) -> None:
        self._faults.reach("runner.after_claim")
        started = self._clock.monotonic_s()
        kind = self._kinds.get(lease.kind)
        context = JobContext(
            self._store_of(lease), lease, self._settings, self._clock, self._faults, self._tools,
            pool=self._pools.get(lease.uses), started_s=started, span=found,
        )  # fmt: skip
        try:
            outcome = await self._run(context, kind, trust, started)
            if not isinstance(outcome, Finished):
                await self._store_of(lease).write(self._book, lease, outcome, started)
        except LeaseLost:
            found.fail(LeaseLost.code)
            await self._refuse(lease)
        except asyncio.CancelledError:
            await self._give_back(lease, started)
            raise
        except Exception as error:  # noqa: BLE001  (a job's failure is booked, whatever it is; the worker goes on)
            await self._book_failure(context, kind, error, started)
        if kind is not None:
            self._learn(lease.kind, self._clock.monotonic_s() - started)

    async def _run(
        self, context: JobContext, kind: JobKind[Any] | None, trust: Trust, started: float
    ) -> Outcome | Finished:
        lease = context.lease
        if kind is None:
            why = f"this worker does not know jobs of kind {lease.kind!r}; a newer one may have made it"
            log.warning(why)
            return Retry(self._clock.now_us() + UNKNOWN_KIND_US, "unknown_kind", why, spend=False)
        trust.ends_s = started + kind.policy.timeout_s
        try:
            async with asyncio.timeout(trust.left_s(self._clock.monotonic_s())) as trust.limit:
                return await kind.run(kind.read_args(lease.args), context)
        except TimeoutError as error:
            if trust.until_s < trust.ends_s:  # no word about the provider, so it must not count as its failure
                raise Transient(
                    "its lease was not renewed: the worker or the store stood still", answered=True
                ) from error
            raise Transient(f"the job did not end within {kind.policy.timeout_s:.0f} s") from error
        finally:
            trust.limit = None

    def _store_of(self, lease: Lease) -> Store:
        return self.store.reaching(lease.project)

    def _book(self, conn: Connection, lease: Lease, outcome: Outcome, started: float) -> None:
        finish(conn, lease, outcome, self._clock.monotonic_s() - started)

    async def _book_failure(
        self, context: JobContext, kind: JobKind[Any] | None, error: Exception, started: float
    ) -> None:
        lease = context.lease
        error_class = error.code if isinstance(error, EverkeptError) else "internal"
        text = error_text(error)
        log.warning("job failed", key=lease.key, error_class=error_class, error=text[:300])
        context.span.fail(error_class)
        try:
            if await self._fails_alone(context, error):
                context.at_fault = True
                text = f"{text} (the provider answers other questions)"
            await context.store.write(self._fail, context, kind, error, error_class, text, started)
        except asyncio.CancelledError:
            await self._give_back(lease, started)
            raise
        except LeaseLost:
            await self._refuse(lease)
        except StoreUnavailable as full:
            log.warning("a failure cannot be booked yet", error=error_text(full))
            self._unbooked.append((context, kind, error, error_class, text, started))
        except Exception as lost:  # noqa: BLE001  (nobody awaits this task: the lease runs out, and the job is retaken)
            log.error("a failure could not be booked", error=error_text(lost))

    async def _fails_alone(self, context: JobContext, error: Exception) -> bool:
        """Whether the provider, which has failed for long, answers an ordinary question: then this one is at fault.

        Otherwise a question that it can never answer would be its only probe, for ever (C12).
        """
        pool = self._pools.get(context.lease.uses)
        if pool is None or not isinstance(error, Transient) or error.details.get("answered"):
            return False
        if (await self.store.read(failures_in_a_row, pool) + 1) % ORDINARY_EVERY:
            return False
        try:
            return bool(await self._tools.answer_ordinary(context))
        except (SubjectMoved, OverBudget):
            return False

    async def _book_late(self) -> None:
        """Book what could not be booked, so that its job need not wait for the end of its lease.

        Raises StoreUnavailable where the store still cannot be written.
        """
        await self._count_refused()
        while self._unbooked:
            try:
                await self._unbooked[0][0].store.write(self._fail, *self._unbooked[0])
            except LeaseLost:
                await self._refuse(self._unbooked[0][0].lease)
            except StoreUnavailable:
                raise
            except Exception as lost:  # noqa: BLE001  (one that never can be booked must not keep all others waiting)
                job = row_id("job", self._unbooked[0][0].lease.job)
                log.error("a failure could not be booked", job=job, error=error_text(lost))
            self._unbooked.pop(0)

    async def _refuse(self, lease: Lease) -> None:
        """Count a finish that came too late: now, or as soon as the store can be written."""
        log.warning("finish refused: the lease was lost", key=lease.key)
        self._uncounted.append(lease)
        with suppress(StoreUnavailable):
            await self._count_refused()

    async def _count_refused(self) -> None:
        """Raises StoreUnavailable where the store cannot be written."""
        while self._uncounted:
            lease = self._uncounted.pop()
            try:
                await self._store_of(lease).write(refuse_finish)
            except StoreUnavailable:
                self._uncounted.append(lease)
                raise
            except EverkeptError as error:
                log.error("a refused finish could not be counted", job=row_id("job", lease.job), error=str(error))

    def _fail(
        self,
        conn: Connection,
        context: JobContext,
        kind: JobKind[Any] | None,
        error: Exception,
        error_class: str,
        text: str,
        started: float,
    ) -> None:
        lease = context.lease
        blame = self._note_weather(conn, context, error, text)
        work = self._settings.work
        backoff, jitter = Backoff(first_s=work.backoff_first_s, max_s=work.backoff_max_s), self._clock.random()
        retry_after_s = getattr(error, "retry_after_s", None)
        if blame:  # behind those whose turn at the provider has not come yet
            retry_after_s = opens_in_s(conn, self._pools[lease.uses] or "") + backoff.delay_s(0, jitter)
        outcome = after_failure(
            self._policy(kind),
            backoff,
            error_class=error_class,
            error=text,
            attempts=lease.attempts,
            now_us=conn.now(),
            jitter=jitter,
            retry_after_s=retry_after_s,
            blame_provider=blame,
        )
        finish(conn, lease, outcome, self._clock.monotonic_s() - started)

    def _note_weather(self, conn: Connection, context: JobContext, error: Exception, text: str) -> bool:
        """Tell the provider's circuit how it was; True where the failure says nothing about the job."""
        pool = self._pools.get(context.lease.uses)
        if pool is None:
            return False
        models = self._settings.models
        answered = error.details.get("answered") if isinstance(error, ModelError) else None
        if isinstance(error, ModelError) and error.code in WEATHER and not answered and not context.at_fault:
            retry_after_s = getattr(error, "retry_after_s", None)
            return note_failure(conn, pool, error.code, text[:300], probe_s=models.probe_s, retry_after_s=retry_after_s)
        if context.answered or context.at_fault or isinstance(error, Refused | Permanent):
            note_answer(conn, pool, models.permits_max)
        return False

    def _policy(self, kind: JobKind[Any] | None) -> Any:
        return next(iter(self._kinds.values())).policy if kind is None else kind.policy

    async def _give_back(self, lease: Lease, started: float) -> None:
        """Cancelled (drained, or the lease was lost): hand the job back; the fence decides whether that counts."""
        retry = Retry(self._clock.now_us(), "drained", "the worker was stopped while it ran", spend=False)
        try:
            await self._store_of(lease).write(self._book, lease, retry, started)
        except EverkeptError as error:
            log.info("a job could not be handed back; its lease runs out", error=str(error))

    def _learn(self, kind: str, ran_s: float) -> None:
        self._estimates[kind] += ESTIMATE_WEIGHT * (ran_s - self._estimates[kind])

    # ---- life

    async def run(self) -> None:
        """Until `stop()`: rounds, maintenance, and a poll that sleeps until something is due."""
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        await self._forget_other_pools()
        while not self._stopping:
            started = 0
            try:
                self._wake.clear()
                await self._maintenance.step()
                started = await self.step()
            except Exception as error:  # noqa: BLE001  (full, locked or a bug: the worker says so and tries each tick)
                log.error("the worker could not look for work", error=error_text(error))
                self._next_due_us = None  # what is due already must not make it look again at once
            if not started or len(self._running) >= self.slots:
                await self._sleep()
        await self._drain()
        await self._tools.close()

    async def _forget_other_pools(self) -> None:
        """A key that was replaced is not shown as failing for ever."""
        try:
            await self.store.write(forget_other_pools, [pool for pool in self._pools.values() if pool is not None])
        except EverkeptError as error:
            log.info("old providers could not be forgotten", error=str(error))

    async def _sleep(self) -> None:
        assert self._wake is not None
        if self._stopping:
            return
        wait_s = self._settings.work.tick_s
        if self._next_due_us is not None:
            wait_s = min(wait_s, max(0.0, (self._next_due_us - self._clock.now_us()) / 1e6))
        if wait_s <= 0 and len(self._running) >= self.slots:
            wait_s = self._settings.work.tick_s
        try:
            async with asyncio.timeout(wait_s):
                await self._wake.wait()
        except TimeoutError:
            return

    def notify(self, due_at_us: int) -> None:
        """From any thread: work was scheduled. Only shortens the poll."""
        if self._loop is None or self._wake is None or self._loop.is_closed():
            return
        if self._next_due_us is None or due_at_us < self._next_due_us:
            self._next_due_us = due_at_us
        self._loop.call_soon_threadsafe(self._wake.set)

    def heartbeat(self) -> None:
        """Renew the leases of what runs here (from the heartbeat's thread); what is no longer held is cancelled.

        The lease of a job that runs no more, because its outcome could not be booked, runs out.
        """
        asked = self._clock.monotonic_s()
        running = list(self._running.items())  # before it asks: what is claimed meanwhile is not judged by this answer
        jobs = [job for job, _ in running]
        held = self.store.reaching(Across.LEASES).write_now(
            renew_leases, self.owner, self.slots, self._settings.work.lease_s, jobs, urgent=True
        )
        self.seen = True
        for job, (lease, task, trust) in running:
            if held.get(job) == lease.fence:
                trust.until_s = asked + self._settings.work.lease_s
                self._tell(trust.extend, asked)
            else:
                self._tell(task.cancel)

    def _tell(self, what: Callable[..., object], *args: object) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(what, *args)

    def stop(self, drain_s: float) -> None:
        """From any thread: claim nothing more, give running jobs `drain_s` to end, hand back the rest, leave `run`."""
        self._drain_s = drain_s
        self._stopping = True
        if self._loop is not None and self._wake is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake.set)

    async def _drain(self) -> None:
        tasks = [task for _, task, _ in self._running.values()]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=self._drain_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        try:
            self.signed_off = await self.store.write(remove_worker, self.owner)
        except EverkeptError as error:
            log.info("the worker could not sign off", error=str(error))

    @property
    def busy(self) -> int:
        return len(self._running)
