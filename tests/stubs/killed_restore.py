"""A process that restores a backup and dies at each step it takes with files, in turn."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

from everkept.store.backup import restore
from everkept.store.sqlite import choose_driver

STEPS_MAX = 200
STEPS = ("open", "os.", "sqlite3.connect")
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def restore_and_die(backup: Path, store: Path, at: int) -> None:
    count = 0

    def count_down(event: str, _details: object) -> None:
        nonlocal count
        if event.startswith(STEPS):
            count += 1
            if count == at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count_down)
    restore(backup, store, NOW)


def says(path: Path) -> str:
    raw = choose_driver().module.connect(f"{path.as_uri()}?mode=rw", uri=True)
    try:
        assert raw.execute("pragma integrity_check").fetchone()[0] == "ok"
        return str(raw.execute("select group_concat(content) from events").fetchone()[0])
    finally:
        raw.close()


def main(store: Path, backup: Path) -> None:
    """Prints what the store says after each kill, and at last after a restore that came to its end."""
    told = []
    for at in range(1, STEPS_MAX):
        trial = store.parent / f"trial-{at}"
        trial.mkdir()
        shutil.copy(store, trial / store.name)
        child = os.fork()
        if child == 0:
            restore_and_die(backup, trial / store.name, at)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        told.append(says(trial / store.name))
        kept = [says(path) for path in trial.glob("*.replaced-*.db")]
        assert set(kept) <= {told[0]}
        shutil.rmtree(trial)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
            assert kept
            print(json.dumps(told), file=sys.stderr)  # noqa: T201
            return
    raise AssertionError("it never came to its end")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
