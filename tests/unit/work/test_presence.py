"""Which workers of a home live."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from everkept.work import presence
from everkept.work.presence import Presence

_LIVE = """
import sys, time
from pathlib import Path
from everkept.work.presence import Presence
Presence(Path(sys.argv[1]), "a database", sys.argv[2]).announce()
print("here", flush=True)
time.sleep(600)
"""
_MINE = presence._machine()
Another = Callable[[str], subprocess.Popen[str]]


@pytest.fixture
def another(tmp_path: Path) -> Iterator[Another]:
    """Another process that is a worker of this home."""
    started: list[subprocess.Popen[str]] = []

    def start(owner: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", _LIVE, str(tmp_path), owner], stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def dead(home: Path) -> list[str]:
    return list(Presence(home, "a database", "me").dead())


def files(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "workers").rglob("*") if path.is_file())


def test_a_worker_is_dead_once_its_process_was_killed_and_not_while_it_stands_still(
    tmp_path: Path, another: Another
) -> None:
    one, other = another("host.name-1"), another("host.name-2")
    assert dead(tmp_path) == []

    one.send_signal(signal.SIGSTOP)
    assert dead(tmp_path) == []

    one.kill()
    one.wait()
    assert dead(tmp_path) == ["host.name-1"]
    other.kill()
    other.wait()
    assert dead(tmp_path) == ["host.name-1", "host.name-2"]


def test_whoever_was_forgotten_or_left_by_itself_is_not_dead(tmp_path: Path, another: Another) -> None:
    process = another("killed")
    process.kill()
    process.wait()
    Presence(tmp_path, "a database", "me").forget("killed")
    Presence(tmp_path, "a database", "me").forget("killed")
    left = Presence(tmp_path, "a database", "left")
    left.announce()
    left.leave(signed_off=True)
    left.leave(signed_off=True)

    assert dead(tmp_path) == []
    assert files(tmp_path) == []


def test_whoever_could_not_sign_off_is_dead_once_it_has_left(tmp_path: Path) -> None:
    left = Presence(tmp_path, "a database", "left")
    left.announce()
    assert dead(tmp_path) == []
    left.leave(signed_off=False)
    assert dead(tmp_path) == ["left"]


def test_nobody_is_dead_of_whom_this_machine_knows_no_lock(tmp_path: Path) -> None:
    """A worker of another machine that shares the disk, and one that is just being announced."""
    mine = Presence(tmp_path, "a database", "me")
    mine.announce()
    folder = mine._folder
    (folder / "elsewhere").write_text("another boot")
    (folder / "coming").touch()
    (folder / "folder").mkdir()

    assert dead(tmp_path) == []
    (folder / "elsewhere").write_text(presence._machine())
    assert dead(tmp_path) == ["elsewhere"]
    mine.leave(signed_off=True)


def test_a_dead_worker_of_another_database_is_none_of_ours(tmp_path: Path, another: Another) -> None:
    process = another("killed")
    process.kill()
    process.wait()
    assert list(Presence(tmp_path, "another database", "me").dead()) == []
    assert dead(tmp_path) == ["killed"]


def test_what_nobody_can_call_dead_is_removed_after_a_day(tmp_path: Path, another: Another) -> None:
    another("alive")
    one = Presence(tmp_path, "a database", "one")
    one.announce()
    for name, said in (("old boot", "another boot"), ("new boot", "another boot"), ("half", ""), ("dead", _MINE)):
        (one._folder / name).write_text(said)
    for name in ("alive", "old boot", "half", "dead"):
        os.utime(one._folder / name, (0, 0))
    other = Presence(tmp_path, "a database", "other")
    other.announce()

    assert files(tmp_path) == ["alive", "dead", "new boot", "one", "other"]
    one.leave(signed_off=True)
    other.leave(signed_off=True)


@pytest.mark.parametrize("broken", ["no folder", "no lock", "a lock that is taken"])
def test_where_nothing_can_be_locked_a_worker_says_so_and_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def refuse(_file: int) -> bool:
        raise OSError("no locks here")

    if broken == "no folder":
        (tmp_path / "workers").write_text("in the way")
    else:
        monkeypatch.setattr(presence, "try_lock", refuse if broken == "no lock" else lambda _: False)
    mine = Presence(tmp_path, "a database", "mine")
    with capture_logs() as said:
        mine.announce()
    mine.leave(signed_off=True)

    assert [entry["log_level"] for entry in said] == ["warning"]
    assert dead(tmp_path) == []
    assert files(tmp_path) == []
