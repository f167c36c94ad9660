"""An outbox full of changes, as other commits would have left them."""

from __future__ import annotations

import time
from pathlib import Path

from everkept import Memory
from everkept.store.changes import NewChange, record_changes
from everkept.store.projects import find_project
from everkept.store.store import Store

PER_COMMIT = 500


def fill_outbox(home: Path, changes: int) -> float:
    """So many changes in the project `default`, more than it has; the seconds that writing them took."""
    with Memory.open(home, worker=False):
        pass
    store = Store(home / "everkept.db", threads=False)
    store.open()
    try:
        project = store.read_now(find_project, "default")
        assert project is not None
        begun = time.perf_counter()
        for first in range(0, changes, PER_COMMIT):
            some = range(first, min(changes, first + PER_COMMIT))
            store.write_now(record_changes, project.id, [NewChange(kind="fact.added", ref=f"fct_{n}") for n in some])
        return time.perf_counter() - begun
    finally:
        store.close()
