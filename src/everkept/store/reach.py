"""How far a transaction reaches: into one project, or across them.

A file has one lock, whoever writes. On PostgreSQL those that reach into different projects are written side by side:

- **a project** (its id): holds that project's lock from its beginning to its end, so that within a project everything
  is written one after another. It may wait for rows; of rows that all projects share it writes in one order only
  (`Connection.share`).
- **the queue**: whoever looks for work in all projects. One at a time, and it takes only rows that nobody has
  (`skip locked`): it never waits while it holds one, so it is never part of a deadlock.
- **leases**: renews what a process holds. It may wait, so nothing else is in its transaction.
- **everything**: alone in the whole database.
"""

from __future__ import annotations

from enum import Enum


class Across(Enum):
    EVERYTHING = "everything"
    QUEUE = "queue"
    LEASES = "leases"


Reach = int | Across
"""A project, or across them."""


def together(one: Reach, other: Reach) -> bool:
    """Whether two calls may be written in one transaction where projects are written side by side."""
    if isinstance(one, int) and isinstance(other, int):
        return True
    return one is other and one is not Across.LEASES
