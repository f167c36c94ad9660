"""Provider weather, shared by all workers: a circuit and permits per pool (vendor and key) (design §4).

A permit is a leased job of the pool, so there is nothing to give back and nothing to lose in a crash. A pool that may
not be asked is simply not claimed from: an outage costs no job anything and moves no row.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import text

from everkept.store.connection import Connection

FAILURES_TO_OPEN = 3
PROBE_MAX_S = 600.0
PERMITS_MIN = 1.0

_ADD = text("insert into providers(pool, permits) values(:pool, :permits) on conflict do nothing")
_GET = text("select circuit, not_before, failures, permits from providers where pool = :pool")
_SET = text("""
update providers set circuit = :circuit, reason = :reason, since = case when circuit = :circuit then since else :now end,
  not_before = :not_before, failures = :failures, permits = :permits where pool = :pool""")
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


def note_answer(conn: Connection, pool: str, permits_max: int) -> None:
    """The provider answered: the circuit closes, and permits grow back slowly."""
    row = conn.first(_GET, {"pool": pool})
    if row is None or (row[0] == "closed" and row[2] == 0 and row[3] >= permits_max):
        return
    permits = min(float(permits_max), row[3] + 1.0 / max(1.0, row[3]))
    _set(conn, pool, circuit="closed", reason=None, not_before=None, failures=0, permits=permits)


def note_failure(conn: Connection, pool: str, error_class: str, reason: str, *, probe_s: float, retry_after_s: float | None) -> bool:
    """The provider failed; True where the failure is the provider's and says nothing about the job.

    One failure after an answer is the job's own. From the second in a row it is the provider's, and from the third the
    circuit opens; a key, account or limit problem opens it at once.
    """
    row = conn.first(_GET, {"pool": pool})
    if row is None:
        return False
    circuit, _, failures, permits = row
    failures += 1
    wait_s = min(PROBE_MAX_S, probe_s * 2.0 ** min(failures - 1, 20))
    match error_class:
        case "rate_limited":
            not_before = conn.now() + int((wait_s if retry_after_s is None else max(retry_after_s, 0.0)) * 1e6)
            _set(conn, pool, circuit="limited", reason=reason, not_before=not_before, failures=failures,
                 permits=max(PERMITS_MIN, permits / 2))  # fmt: skip
            return True
        case "provider_down":
            opened = "open"
        case _:
            opened = "open" if failures >= FAILURES_TO_OPEN or circuit != "closed" else "closed"
    probe_at = conn.now() + int(wait_s * 1e6) if opened == "open" else None
    _set(conn, pool, circuit=opened, reason=reason, not_before=probe_at, failures=failures, permits=permits)
    return failures > 1 or opened == "open"


def _set(conn: Connection, pool: str, **values: Any) -> None:
    conn.run(_SET, {"pool": pool, "now": conn.now(), **values})


def list_providers(conn: Connection) -> list[tuple[Any, ...]]:
    """(pool, circuit, reason, since, not_before, permits)."""
    return conn.rows(_LIST)
