"""The spool's reading side, and the lock that keeps one worker awake."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from everkept.capture.spool import HALF_WRITTEN_AFTER_S, Spool, WorkerLock
from everkept.hook.hook_script import FORMAT, LOCK_FD, append, make_spool


@pytest.fixture
def home(tmp_path: Path) -> Path:
    make_spool(str(tmp_path / "home" / "spool"))
    return tmp_path / "home"


def write(home: Path, at_ns: int, **fields: Any) -> str:
    """As a hook does. Its name."""
    return append(str(home), {"format": FORMAT, "at_ns": at_ns, **fields}, durable=False)


NS = 1_700_000_000_000_000_000


def test_records_come_in_the_order_of_their_times(home: Path) -> None:
    names = [write(home, NS + offset, event=str(offset)) for offset in (5, 1, 300, 20)]
    found = Spool(home).records(3)
    assert [record.fields["event"] for record in found] == ["1", "5", "20"]
    assert [record.name for record in found] == [names[1], names[0], names[3]]


def test_only_what_came_before_a_record_is_looked_for(home: Path) -> None:
    first, second, third = (write(home, NS + offset) for offset in (1, 2, 3))
    assert [record.name for record in Spool(home).records(10, before=third)] == [first, second]
    assert Spool(home).records(10, before=first) == []


def test_a_home_without_a_spool_has_no_records(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "nowhere")
    assert spool.records(10) == []
    assert (spool.state().waiting, spool.state().oldest_at_us, spool.state().aside) == (0, None, 0)


def test_records_stay_until_they_are_done(home: Path) -> None:
    name = write(home, NS)
    spool = Spool(home)
    assert [record.name for record in spool.records(10)] == [name]
    assert [record.name for record in spool.records(10)] == [name]  # the caller died before its commit
    spool.done([name])
    spool.done([name])  # and after it, before the files were gone
    assert spool.records(10) == []


@pytest.mark.parametrize("name", ["../config.toml", "a.json", "", "/etc/passwd"])
def test_only_a_records_own_name_is_taken_away(home: Path, name: str) -> None:
    with pytest.raises(ValueError, match="no record's name"):
        Spool(home).done([name])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "torn or no JSON"),
        (b'{"format": 1, "ev', "torn or no JSON"),
        (b"\xff\xfe\x00", "torn or no JSON"),
        (b"[" * 100_000, "torn or no JSON"),
        (b"[]", "not a record of a hook"),
        (b"{}", "not a record of a hook"),
        (b'{"format": "1"}', "not a record of a hook"),
        (json.dumps({"format": FORMAT + 1}).encode(), "newer than this program"),
    ],
)
def test_what_cannot_be_read_is_set_aside_with_the_reason(home: Path, content: bytes, reason: str) -> None:
    good = write(home, NS)
    bad = f"{NS - 1:020d}-1-0.json"
    (home / "spool" / "new" / bad).write_bytes(content)
    spool = Spool(home)
    assert [record.name for record in spool.records(1)] == [good]
    aside = home / "spool" / "aside"
    assert (aside / bad).read_bytes() == content
    assert reason in (aside / f"{bad}.reason").read_text()
    assert spool.state().aside == 1
    assert spool.state().waiting == 1


@pytest.mark.parametrize("name", [".DS_Store", "1-2-3.json", "note.txt"])
def test_a_file_that_no_hook_wrote_is_set_aside(home: Path, name: str) -> None:
    (home / "spool" / "new" / name).write_text("{}")
    assert Spool(home).records(10) == []
    assert (home / "spool" / "aside" / name).exists()


def test_a_link_in_the_spool_is_not_followed(home: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(json.dumps({"format": 1}))
    name = f"{NS:020d}-1-0.json"
    (home / "spool" / "new" / name).symlink_to(tmp_path / "secret")
    assert Spool(home).records(10) == []
    assert (tmp_path / "secret").exists()
    assert Spool(home).state().aside == 1


def half_written(home: Path, content: str, *, age_s: float) -> Path:
    path = home / "spool" / "tmp" / f"{NS:020d}-9-0.json"
    path.write_text(content)
    then = time.time() - age_s
    os.utime(path, (then, then))
    return path


def test_a_torn_file_of_a_killed_hook_is_set_aside_after_an_hour(home: Path) -> None:
    torn = half_written(home, '{"format": 1, "pay', age_s=HALF_WRITTEN_AFTER_S + 60)
    assert Spool(home).records(10) == []
    assert not torn.exists()
    assert "killed" in (home / "spool" / "aside" / f"{torn.name}.reason").read_text()


def test_a_file_that_a_hook_may_still_be_writing_is_left_alone(home: Path) -> None:
    torn = half_written(home, '{"format": 1, "pay', age_s=HALF_WRITTEN_AFTER_S - 60)
    assert Spool(home).records(10) == []
    assert torn.exists()
    assert Spool(home).state().aside == 0


def test_a_whole_record_of_a_killed_hook_is_taken_in(home: Path) -> None:
    whole = half_written(home, '{"format": 1, "event": "Stop"}', age_s=HALF_WRITTEN_AFTER_S + 60)
    assert [(record.name, record.fields["event"]) for record in Spool(home).records(10)] == [(whole.name, "Stop")]


def test_the_state_says_how_much_waits_and_since_when(home: Path) -> None:
    for offset in (7_000, 3_000, 9_000):
        write(home, NS + offset)
    state = Spool(home).state()
    assert (state.waiting, state.oldest_at_us, state.aside) == (3, NS // 1_000 + 3, 0)


def test_who_finds_the_folder_for_halves_finds_the_other_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many hooks that make the spool at once, one writes as soon as another has made `tmp`."""
    made: list[str] = []
    mkdir = os.mkdir

    def noted(path: str, mode: int = 0o777) -> None:
        made.append(Path(path).name)
        mkdir(path, mode)

    monkeypatch.setattr(os, "mkdir", noted)
    make_spool(str(tmp_path / "fresh" / "spool"))
    assert made == ["fresh", "spool", "new", "tmp"]


# ---- the lock


class Drain:
    """Takes in all that waits, as a worker does."""

    def __init__(self, home: Path) -> None:
        self._spool = Spool(home)
        self.taken: list[str] = []

    def __call__(self) -> int:
        names = [record.name for record in self._spool.records(1_000)]
        self._spool.done(names)
        self.taken += names
        return len(names)


class Clock:
    """Time that passes only where the worker pauses."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds


def stay(lock: WorkerLock, drain: Any, clock: Clock, idle_s: float = 60.0) -> bool:
    return lock.until_idle(drain, idle_s, poll_s=1.0, pause=clock.pause, clock=clock)


def test_a_worker_drains_and_ends_when_nothing_came_for_long(home: Path) -> None:
    names = [write(home, NS + number) for number in range(3)]
    drain, clock = Drain(home), Clock()
    assert stay(WorkerLock(home), drain, clock)
    assert drain.taken == names
    assert clock.now == 60.0


def test_what_comes_meanwhile_keeps_the_worker_awake(home: Path) -> None:
    drain, clock = Drain(home), Clock()

    def pause(seconds: float) -> None:
        clock.pause(seconds)
        if clock.now in (30.0, 70.0):
            write(home, NS + int(clock.now))

    lock = WorkerLock(home)
    assert lock.until_idle(drain, 60.0, poll_s=1.0, pause=pause, clock=clock)
    assert len(drain.taken) == 2
    assert clock.now == 130.0


def test_only_one_worker_is_awake_and_a_lock_is_free_again_when_it_is_released(home: Path) -> None:
    first, second = WorkerLock(home), WorkerLock(home)
    assert first.take()
    assert first.take()
    assert not second.take()
    assert not stay(second, Drain(home), Clock())
    first.release()
    assert second.take()
    second.close()
    assert first.take()
    first.close()


class LateLock(WorkerLock):
    """A hook writes after the last look and before the release: it sees the lock held, and starts nobody."""

    def __init__(self, home: Path, late: int) -> None:
        super().__init__(home)
        self._home, self._late = home, late

    def release(self) -> None:
        if self._late:
            self._late -= 1
            write(self._home, NS + self._late)
        super().release()


@pytest.mark.parametrize("late", [1, 3])
def test_what_came_between_the_last_look_and_the_release_is_not_left(home: Path, late: int) -> None:
    drain, clock = Drain(home), Clock()
    assert stay(LateLock(home, late), drain, clock)
    assert len(drain.taken) == late
    assert Spool(home).state().waiting == 0


def test_without_the_second_look_the_test_above_would_fail(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: whoever releases the lock does not look again."""
    monkeypatch.setattr(WorkerLock, "_came_since", lambda *_: False)
    assert stay(LateLock(home, 1), Drain(home), Clock())
    assert Spool(home).state().waiting == 1


def test_what_cannot_be_taken_in_keeps_nobody_awake(home: Path) -> None:
    write(home, NS)
    clock = Clock()
    assert stay(WorkerLock(home), lambda: 0, clock)
    assert clock.now == 60.0
    assert Spool(home).state().waiting == 1


def test_a_drain_that_raises_frees_the_lock(home: Path) -> None:
    def drain() -> int:
        raise RuntimeError("the store is away")

    lock = WorkerLock(home)
    with pytest.raises(RuntimeError):
        stay(lock, drain, Clock())
    other = WorkerLock(home)
    assert other.take()
    other.close()
    lock.close()


def test_hooks_and_workers_in_a_race_leave_no_record_with_nobody_awake(home: Path) -> None:
    """Hooks write, then start a worker where the lock is free; workers end as soon as nothing waits."""
    workers: list[threading.Thread] = []
    taken: list[str] = []
    guard = threading.Lock()

    def work(lock: WorkerLock) -> None:
        drain = Drain(home)
        lock.until_idle(drain, 0.0, poll_s=0.0)
        lock.close()
        with guard:
            taken.extend(drain.taken)

    def hooks(first: int) -> None:
        for number in range(first, first + 150):
            write(home, NS + number)
            lock = WorkerLock(home)
            if not lock.take():
                lock.close()
                continue
            worker = threading.Thread(target=work, args=(lock,))  # which has the lock from its birth
            worker.start()
            with guard:
                workers.append(worker)

    senders = [threading.Thread(target=hooks, args=(1_000 * number,)) for number in range(4)]
    for thread in senders:
        thread.start()
    for thread in senders:
        thread.join()
    for thread in workers:
        thread.join()
    assert Spool(home).state().waiting == 0
    assert sorted(taken) == sorted(set(taken))
    assert len(taken) == 600


@pytest.fixture
def holder(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that holds the lock."""
    code = (
        "import sys; from pathlib import Path; from everkept.capture.spool import WorkerLock\n"
        f"lock = WorkerLock(Path({str(home)!r})); print(lock.take(), flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"True\n"
    yield process
    process.kill()
    process.communicate()


def test_a_lock_is_freed_by_its_holders_death(home: Path, holder: subprocess.Popen[bytes]) -> None:
    lock = WorkerLock(home)
    assert not lock.take()
    holder.kill()
    holder.wait()
    assert lock.take()
    lock.close()


@pytest.mark.skipif(sys.platform == "win32", reason="locks are not handed over there")
def test_a_worker_takes_over_the_lock_that_its_hook_took_for_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hook = WorkerLock(home)
    assert hook.take()
    assert hook._file is not None
    handed_over = os.dup(hook._file)
    os.set_inheritable(handed_over, True)
    monkeypatch.setenv(LOCK_FD, str(handed_over))
    worker = WorkerLock(home)
    assert LOCK_FD not in os.environ
    assert not os.get_inheritable(handed_over)
    assert worker.take()
    assert not WorkerLock(home).take()
    worker.close()
    hook._held = False  # one lock, and the worker has released it
    assert hook.take()
    hook.close()


@pytest.mark.parametrize("told", ["", "x", "-1", "999999", "0"])
def test_a_lock_that_was_not_handed_over_is_taken_as_usual(
    home: Path, monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    monkeypatch.setenv(LOCK_FD, told)
    lock = WorkerLock(home)
    assert lock.take()
    lock.close()
