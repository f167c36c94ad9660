"""What one store call of a worker is about: the lease under which it writes, and what its effect would change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from everkept.domain.jobs import Lease
from everkept.work.job import JobContext


def lease_of(function: Callable[..., Any], args: Sequence[Any]) -> Lease | None:
    """The lease under which a worker's call would write; None for calls that need none."""
    match function.__name__:
        case "_commit":
            context: JobContext = function.__self__  # type: ignore[attr-defined]
            return context.lease
        case "_book" | "erase_chunk":
            lease: Lease = args[0]
            return lease
        case "_fail":
            failed: JobContext = args[0]
            return failed.lease
        case _:
            return None


def effect_of(rows: Callable[..., list[tuple[Any, ...]]], lease: Lease) -> tuple[Any, ...] | None:
    """(the job as it is booked, what its effect would change)."""
    effects = {
        "open_window": ("select covered_seq from streams where id = ?", (lease.key,)),
        "summarise_episode": (
            "select summary_at from slices where window_id = ? and slice = ?", tuple(lease.key.split("."))
        ),
        "extract_facts": (
            "select facts_at, (select count(*) from facts f where f.window_id = slices.window_id) from slices"
            " where window_id = ? and slice = ?", tuple(lease.key.split("."))
        ),
        "fold_summary": ("select summary_through from streams where id = ?", (lease.key,)),
        "judge_conflicts": (
            "select count(*) from verdicts where subject_id = ? and verdict is null", (lease.key,)
        ),
    }  # fmt: skip
    booked = rows("select state, fence, owner from jobs where id = ?", lease.job)
    if lease.kind not in effects:
        return booked, ()
    sql, params = effects[lease.kind]
    return booked, rows(sql, *params)
