"""Get every change exactly as often as you acknowledge it: read, act, acknowledge.

    python examples/follow_changes.py            # what has happened so far, then end
    python examples/follow_changes.py --forever  # and whatever comes

A crash between acting and acknowledging gives the same changes again, so acting twice must do no harm: here the number
of the change is the key of what is written.
"""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

import sys
import time

from everkept import CursorExpired, Memory

CONSUMER = "example-mirror"
PAUSE_S = 1.0


def act(mirror: dict[int, str], seq: int, line: str) -> None:
    """Yours: write to another system under the change's own number."""
    mirror[seq] = line


def follow(memory: Memory, mirror: dict[int, str]) -> int:
    """Work one page of changes; how many there were."""
    page = memory.changes(consumer=CONSUMER, limit=100)
    for change in page.changes:
        act(mirror, change.seq, f"{change.kind} {change.ref} ({change.subject})")
    if page.changes:
        memory.ack(CONSUMER, page.next_after)  # only now is it done
    return len(page.changes)


def main() -> None:
    mirror: dict[int, str] = {}
    with Memory.open() as memory:
        while True:
            try:
                found = follow(memory, mirror)
            except CursorExpired as error:
                raise SystemExit(f"{error}: export what you need, then acknowledge up to {error.details}") from error
            if not found:
                if "--forever" not in sys.argv:
                    break
                time.sleep(PAUSE_S)
    for seq, line in sorted(mirror.items()):
        print(seq, line)


if __name__ == "__main__":
    main()
