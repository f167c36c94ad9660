"""Named points at which a test may stop, kill or fail the program.

Every point is listed in `POINTS`; a test walks the list, so that a new point without a test fails.
"""

from __future__ import annotations

from typing import Protocol

POINTS = (
    "writer.before_begin", "writer.before_commit", "writer.after_commit",
    "runner.after_claim", "runner.before_finish", "runner.after_finish",
    "journal.before_ask", "journal.after_reply", "journal.after_commit",
)  # fmt: skip


class Faults(Protocol):
    def reach(self, point: str) -> None:
        """Called as the program passes `point`; may raise, block or end the process."""
        ...


class NoFaults:
    def reach(self, point: str) -> None:
        return None
