"""`python -m tests.replicas.upgrade`: the HTTP journeys of the acceptance suite in each stage of a rolling upgrade.

Two servers on one PostgreSQL; each request goes to the other one, while tellers go on talking to both.
"""

from __future__ import annotations

import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from tests.postgres import new_database
from tests.replicas.journeys import OF_THE_WHOLE, all_journeys
from tests.replicas.rolling import Pair, Tellers, pair, talking_to_both
from tests.replicas.test_upgrade import assert_kept_and_remembered_once, everkept
from tests.stubs.next_version import build_next_version


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="everkept-upgrade-") as folder:
        place = Path(folder)
        database, version = new_database(), build_next_version(place / "next")
        with pair(place, database) as servers:
            servers.start()
            servers.start()
            stops = everkept(version, place / "hand", database, "serve")
            assert "run `everkept db upgrade`" in stops.stderr, stops.stderr
            stages: tuple[tuple[str, Callable[[], object]], ...] = (
                ("older-schema", lambda: None),
                (
                    "newer-schema",
                    lambda: everkept(version, place / "hand", database, "db", "upgrade").check_returncode(),
                ),
                ("one-newer", lambda: servers.replace(servers.urls[0], version)),
                ("both-newer", lambda: servers.replace(servers.urls[0], version)),
                ("one-back", lambda: servers.replace(servers.urls[0])),
            )
            with Tellers(servers) as tellers:
                failed = sum(_walk(name, change, servers, tellers) for name, change in stages)
            assert_kept_and_remembered_once(database, tellers)
            _say(f"{len(tellers.acknowledged)} messages acknowledged, all kept and remembered once")
            for fault in tellers.faults:
                _say(f"a request failed: {fault}")
    return 1 if failed or tellers.faults else 0


def _walk(stage: str, change: Callable[[], object], servers: Pair, tellers: Tellers) -> int:
    """All journeys after `change`, in a project of this stage; the number of those that failed."""
    change()
    tellers.wait_for(3)
    began, failed, walked = time.monotonic(), 0, 0
    for name, journey in all_journeys():
        of_the_whole = name.partition("[")[0] in OF_THE_WHOLE
        if of_the_whole and stage != "one-newer":
            continue
        with talking_to_both(servers, None if of_the_whole else stage) as client:
            walked += 1
            try:
                journey(client)
            except Exception:  # noqa: BLE001  (whatever it is, it is what is asked for)
                failed += 1
                _say(f"{stage}: {name}\n{traceback.format_exc()}")
    _say(f"{stage}: {walked - failed} of {walked} journeys in {time.monotonic() - began:.0f} s")
    return failed


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
