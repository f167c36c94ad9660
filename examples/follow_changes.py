"""Get every change, and let each have its effect once: followed one after the other, with an inbox in your database.

    python examples/follow_changes.py            # what has happened so far, then end
    python examples/follow_changes.py --forever  # and whatever comes

Run several of it: one works, and another takes over where it ends or dies. A change that was worked when the process
died is given again; the inbox knows it, because the effect and its mark are one transaction of the database.
"""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from everkept import CursorExpired, Inbox, Memory

CONSUMER = "example-mirror"


def main() -> None:
    file = next((word for word in sys.argv[1:] if not word.startswith("--")), "mirror.db")
    with closing(sqlite3.connect(Path(file))) as mirror, Memory.open() as memory:
        mirror.execute("create table if not exists told(seq integer, line text)")
        inbox = Inbox(mirror)
        try:
            for change in memory.follow(CONSUMER, until_idle="--forever" not in sys.argv):
                with inbox.once(change) as new:
                    if new:  # yours: whatever this change means in your own tables
                        line = f"{change.kind} {change.ref} ({change.subject})"
                        mirror.execute("insert into told values(?, ?)", (change.seq, line))
                        print(change.seq, line)
        except CursorExpired as error:
            raise SystemExit(f"{error}: export what you need, then memory.replay({CONSUMER!r}, …)") from error


if __name__ == "__main__":
    main()
