"""The life of a job: one table of transitions, the outcomes a run can have, and what each failure costs (G7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

JobState = Literal["waiting", "ready", "leased", "done", "dead", "discarded"]
Uses = Literal["local", "model", "embedder"]

TRANSITIONS: Mapping[tuple[str, str], str] = {
    ("new", "schedule"): "waiting",
    ("waiting", "due"): "ready",
    ("ready", "postpone"): "waiting",
    ("ready", "claim"): "leased",
    ("leased", "finish"): "done",
    ("leased", "rearm"): "waiting",
    ("leased", "snooze"): "waiting",
    ("leased", "retry"): "waiting",
    ("leased", "give_up"): "dead",
    ("leased", "expire"): "waiting",
    ("leased", "expire_last"): "dead",
    ("leased", "release"): "waiting",
    ("leased", "discard"): "discarded",
    ("waiting", "discard"): "discarded",
    ("ready", "discard"): "discarded",
    ("dead", "discard"): "discarded",
    ("dead", "retry_by_hand"): "waiting",
    ("dead", "schedule_timer"): "waiting",
    ("done", "schedule"): "waiting",
    ("discarded", "schedule"): "waiting",
}
"""(state, what happens) → next state. Anything else is a bug; docs/operations.md draws this table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A wish for work, written in the transaction that causes it. Equal (kind, key) is the same job."""

    kind: str
    key: str
    project: int
    lane: int
    due_at_us: int
    uses: Uses = "local"
    serial_key: str | None = None
    args: str = "{}"
    debounce_max_us: int | None = None
    """Given: a later due time wins, up to this long after the first. None: the earlier one wins."""
    rearm_dead: bool = False
    """A stream's timer and a subject's judge start again from dead; a job of one window stays there, visible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A claimed job, and until when its worker may write (G6)."""

    job: int
    kind: str
    key: str
    project: int
    lane: int
    subject: int
    uses: Uses
    args: dict[str, Any]
    fence: int
    generation: int
    attempts: int
    crashes: int
    budget: int
    until_us: int
    charged_s: float
    alone: bool
    """True when an earlier worker died over it: it runs with no other beside it."""
    traceparent: str | None
    """The span in which it was asked for, where that was traced."""


@dataclass(frozen=True, slots=True)
class Done:
    """The work is finished."""


@dataclass(frozen=True, slots=True)
class Snooze:
    """Not now: look again at `until_us`. Spends nothing."""

    until_us: int
    why: str | None = None
    """What a person should see meanwhile, as the job's error of class `snoozed`; None where waiting is routine."""


@dataclass(frozen=True, slots=True)
class Discard:
    """There is nothing to do any more."""

    why: str


@dataclass(frozen=True, slots=True)
class Retry:
    """It failed; again at `at_us`. `spend` says whether an attempt was used up."""

    at_us: int
    error_class: str
    error: str
    spend: bool


@dataclass(frozen=True, slots=True)
class GiveUp:
    """It failed for good: a dead letter."""

    error_class: str
    error: str


Outcome = Done | Snooze | Discard | Retry | GiveUp


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPolicy:
    """How often a kind of job may fail and how long one run may take."""

    attempts_max: int
    timeout_s: float
    estimate_s: float = 0.05
    """What a claim charges the lane before the real run time is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    first_s: float
    max_s: float

    def delay_s(self, failures: int, jitter: float) -> float:
        """Doubles with each failure up to `max_s`; `jitter` in [0, 1) spreads it over the upper half."""
        full = min(self.max_s, self.first_s * 2.0 ** min(failures, 30))
        return full * (0.5 + 0.5 * jitter)


SPENDS_NOTHING = frozenset({
    "rate_limited", "provider_down", "over_budget", "subject_moved", "store_unavailable", "store_full", "drained",
})  # fmt: skip
"""Classes of failure that say nothing about the work itself."""
FINAL = frozenset({"refused", "permanent", "invalid_output"})
"""Classes that asking again cannot mend."""


def after_failure(
    policy: JobPolicy, backoff: Backoff, *, error_class: str, error: str, attempts: int, now_us: int,
    jitter: float, retry_after_s: float | None = None, blame_provider: bool = False,
) -> Retry | GiveUp:  # fmt: skip
    """What becomes of a job that failed, from the class of its error alone.

    `attempts` are those spent before this one, since the job was made or a hand retried it.
    With `blame_provider` the provider has failed everybody lately, which says nothing about this job.
    """
    if error_class in ("subject_moved", "drained"):
        return Retry(now_us, error_class, error, spend=False)
    if error_class in SPENDS_NOTHING or (blame_provider and error_class not in FINAL):
        wait_s = backoff.delay_s(0, jitter) if retry_after_s is None else retry_after_s
        return Retry(now_us + int(wait_s * 1e6), error_class, error, spend=False)
    if error_class in FINAL or attempts + 1 >= policy.attempts_max:
        return GiveUp(error_class, error)
    return Retry(now_us + int(backoff.delay_s(attempts, jitter) * 1e6), error_class, error, spend=True)
