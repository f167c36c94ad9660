"""What a kind of job is, and what its `run` gets."""

from __future__ import annotations

import asyncio
import math
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from everkept.config import Settings
from everkept.domain.jobs import Discard, Done, JobPolicy, Lease, Outcome, Snooze
from everkept.errors import EverkeptError
from everkept.ports.clock import Clock
from everkept.ports.faults import Faults
from everkept.ports.tracing import Span
from everkept.store.connection import Connection
from everkept.store.leases import finish, require_lease
from everkept.store.providers import note_answer
from everkept.store.store import Store

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Finished:
    """The job's effect and its completion are committed; there is nothing left to book."""


@dataclass(frozen=True, slots=True)
class JobKind(Generic[T]):
    """One kind of work. `run` may be repeated at any point up to its commit."""

    name: str
    policy: JobPolicy
    read_args: Callable[[Mapping[str, Any]], T]
    run: Callable[[T, JobContext], Awaitable[Outcome | Finished]]


@dataclass(slots=True)
class Trust:
    """How long this worker may believe in its lease, on its own monotonic clock."""

    until_s: float
    ends_s: float = math.inf
    """When the job's own time is up, whatever its lease."""
    limit: asyncio.Timeout | None = None
    """What cancels the run at the earlier of the two, while it runs."""

    def left_s(self, now_s: float) -> float:
        return max(0.0, min(self.ends_s, self.until_s) - now_s)

    def extend(self, now_s: float) -> None:
        """In the loop's thread: the lease was renewed, so the run may go on."""
        if self.limit is not None and not self.limit.expired():
            self.limit.reschedule(asyncio.get_running_loop().time() + self.left_s(now_s))


def error_text(error: Exception) -> str:
    """What a person is shown of it: our own errors speak for themselves, others are named too."""
    if isinstance(error, EverkeptError):
        return str(error)
    return "".join(traceback.format_exception_only(error)).strip()


class JobContext:
    """A leased job's view of the world. Nothing it does counts until `finish` has committed."""

    def __init__(
        self,
        store: Store,
        lease: Lease,
        settings: Settings,
        clock: Clock,
        faults: Faults,
        tools: Any,
        *,
        pool: str | None,
        started_s: float,
        span: Span,
    ) -> None:
        self.store = store
        self.lease = lease
        self.settings = settings
        self.tools = tools
        self._clock = clock
        self._faults = faults
        self._pool = pool
        self._started_s = started_s
        self.span = span
        self.answered = False
        """Whether the provider answered a question of this run."""
        self.at_fault = False
        """Whether the provider answers others, and fails at this run's question alone."""

    def heard(self) -> None:
        """The provider answered: with this run's booking its circuit closes. A run on kept replies tells nothing."""
        self.answered = True

    async def read(self, function: Callable[Concatenate[Connection, P], R], *args: P.args, **kw: P.kwargs) -> R:
        return await self.store.read(function, *args, **kw)

    async def finish(self, effect: Callable[..., object], *args: object) -> Finished:
        """Commit the effect with the job's completion, under the lease's fence (G6).

        Where `effect` returns an Outcome, that is the job's. Raises LeaseLost or SubjectMoved; nothing is written then.
        """
        self._faults.reach("runner.before_finish")
        await self.store.write(self._commit, effect, args)
        self._faults.reach("runner.after_finish")
        return Finished()

    def _commit(self, conn: Connection, effect: Callable[..., object], args: tuple[object, ...]) -> None:
        require_lease(conn, self.lease)  # first, so that an effect never meets a scope that was taken away from it
        result = effect(conn, *args)
        outcome = result if isinstance(result, Done | Snooze | Discard) else Done()
        finish(conn, self.lease, outcome, self._clock.monotonic_s() - self._started_s)
        if self._pool is not None and self.answered:
            note_answer(conn, self._pool, self.settings.models.permits_max)
