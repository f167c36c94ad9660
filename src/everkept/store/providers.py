"""Provider weather, shared by all workers: a circuit and permits per pool (vendor and key) (design §4).

A permit is a leased job of the pool, so there is nothing to give back and nothing to lose in a crash. A pool that may
not be asked is simply not claimed from: an outage costs no job anything and moves no row.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from sqlalchemy import text

from everkept.store.connection import Connection

FAILURES_TO_OPEN = 3
PROBE_MAX_S = 600.0
RETRY_AFTER_MAX_S = 86_400.0
"""Whoever is told to stay away for longer looks once a day all the same."""
PERMITS_MIN = 1.0

_ADD = text("insert into providers(pool, permits) values(:pool, :permits) on conflict do nothing")
_GET = text("select circuit, not_before, failures, permits from providers where pool = :pool")
_SET = text("""
update providers set circuit = :circuit, reason = :reason,
  since = case when circuit = :circuit then since else :now end, not_before = :not_before,
  failures = :failures, permits = :permits where pool = :pool""")
_FORGET = text("delete from providers where pool not in (select value from words(:pools)) returning circuit")
_WAKE = text("""
update jobs set due_at = :now where state = 'waiting' and due_at > :now
  and error_class in ('transient', 'rate_limited', 'provider_down')""")
_LIST = text("select pool, circuit, reason, since, not_before, permits from providers order by pool")


def permits_left(conn: Connection, pool: str, running: int, permits_max: int) -> int:
    """How many jobs of the pool may be claimed now: none while its circuit is open, one as a probe once that is due."""
    row = conn.first(_GET, {"pool": pool})
    if row is None:
        conn.run(_ADD, {"pool": pool, "permits": float(permits_max)})
        return max(0, permits_max - running)
    circuit, not_before, _, permits = row
    if circuit == "closed":
        return max(0, min(int(permits), permits_max) - running)
    return 1 if running == 0 and conn.now() >= (not_before or 0) else 0


def is_open(conn: Connection, pool: str) -> bool:
    """Whether the pool's next permit is a probe."""
    row = conn.first(_GET, {"pool": pool})
    return row is not None and row[0] != "closed"


def failures_in_a_row(conn: Connection, pool: str) -> int:
    row = conn.first(_GET, {"pool": pool})
    return 0 if row is None else int(row[2])


def opens_in_s(conn: Connection, pool: str) -> float:
    """Seconds until the pool may be asked again; 0 where that is now."""
    row = conn.first(_GET, {"pool": pool})
    not_before = None if row is None or row[0] == "closed" else row[1]
    return 0.0 if not_before is None else max(0.0, (not_before - conn.now()) / 1e6)


def note_answer(conn: Connection, pool: str, permits_max: int) -> None:
    """The provider answered: the circuit closes, and permits grow back slowly.

    An answer before the next probe is due was asked for before the circuit opened, and leaves it as it is.
    """
    if _heard_already(conn, pool, permits_max):
        return
    conn.share()
    row = conn.first(_GET, {"pool": pool})
    if row is None or opens_in_s(conn, pool) > 0:
        return
    permits = min(float(permits_max), row[3] + 1.0 / max(1.0, row[3]))
    _set(conn, pool, circuit="closed", reason=None, not_before=None, failures=0, permits=permits)


def _heard_already(conn: Connection, pool: str, permits_max: int) -> bool:
    row = conn.first(_GET, {"pool": pool})
    return row is None or (row[0] == "closed" and row[2] == 0 and row[3] >= permits_max)


def note_failure(
    conn: Connection, pool: str, error_class: str, reason: str, *, probe_s: float, retry_after_s: float | None
) -> bool:
    """The provider failed; True where the failure is the provider's and says nothing about the job.

    One failure after an answer is the job's own. From the second in a row it is the provider's, and from the third the
    circuit opens; a key, account or limit problem opens it at once. Calls that were under way when it opened fail
    together: they are one failure and make no wait longer, unless they bring a later time to come back.
    """
    conn.share()
    row = conn.first(_GET, {"pool": pool})
    if row is None:
        return False
    circuit, not_before, failures, permits = row
    if retry_after_s is not None and math.isnan(retry_after_s):
        retry_after_s = None
    limited = error_class == "rate_limited"
    if limited:
        permits = max(PERMITS_MIN, permits / 2)
    if opens_in_s(conn, pool) > 0:
        asked = conn.now() + _wait_us(retry_after_s or 0.0)
        _set(
            conn,
            pool,
            circuit=circuit,
            reason=reason,
            not_before=max(not_before, asked),
            failures=failures,
            permits=permits,
        )
        return True
    failures += 1
    opened = circuit != "closed" or limited or error_class == "provider_down" or failures >= FAILURES_TO_OPEN
    if not opened:
        _set(conn, pool, circuit="closed", reason=reason, not_before=None, failures=failures, permits=permits)
        return bool(failures > 1)
    growth = 2.0 ** min(failures - 1, 20)
    # A provider that asks to come back at once, and fails again, is asked less and less often too.
    wait_s = (
        min(PROBE_MAX_S, probe_s * growth) if retry_after_s is None else max(retry_after_s, min(PROBE_MAX_S, growth))
    )
    _set(conn, pool, circuit="limited" if limited else "open", reason=reason, not_before=conn.now() + _wait_us(wait_s),
         failures=failures, permits=permits)  # fmt: skip
    return True


def _wait_us(wait_s: float) -> int:
    return int(min(wait_s, RETRY_AFTER_MAX_S) * 1e6)


def _set(conn: Connection, pool: str, **values: Any) -> None:
    conn.run(_SET, {"pool": pool, "now": conn.now(), **values})


def forget_other_pools(conn: Connection, pools: Sequence[str]) -> None:
    """Drop the weather of keys and addresses that are no longer used; the jobs that waited for them try at once.

    A pool that another process still uses starts again with a closed circuit.
    """
    dropped = conn.rows(_FORGET, {"pools": json.dumps(list(pools))})
    if any(circuit != "closed" for (circuit,) in dropped):
        conn.run(_WAKE, {"now": conn.now()})


def list_providers(conn: Connection) -> list[tuple[Any, ...]]:
    """(pool, circuit, reason, since, not_before, permits)."""
    return conn.rows(_LIST)
