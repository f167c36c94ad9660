"""A disk that is full, and places that can only be read: clear errors, reads that go on, and recovery by itself (G03).

A full disk is met in every way that this machine has: see `disks`. Each test fills it in the middle of something else.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import structlog
from tests.load.disks import Disk, LimitedFiles, can_bind, can_mount, only_read, tmpfs
from tests.stubs.llm_server import LlmServer, Say
from tests.stubs.real_server import serving

from everkept import Memory, Thread
from everkept.bootstrap import Application, open_application
from everkept.config import load
from everkept.errors import StoreFull, StoreUnavailable
from everkept.prove.checks import check, check_drained
from everkept.store.backup import back_up

if sys.platform != "linux":
    pytest.skip("a disk is filled by means of Linux", allow_module_level=True)

WAIT_S = 60.0
SAID = "I live in Lisbon."
LONG = ("It rained all day, and nobody knew why. " * 500).strip()
FACTS = {"facts": [{
    "entity": "the speaker", "predicate": "lives in", "object": "Lisbon", "statement": "The speaker lives in Lisbon.",
    "quote": SAID, "seq": 1, "confidence": 0.9, "valid_from": "", "valid_until": "", "change": "state", "replaces": "",
    "holds": "one", "kind": "entity", "object_type": "place",
}]}  # fmt: skip
SUMMARY = {"summary": "They said where they live.", "learnings": []}
MODEL_TAKES_S = 0.6
SHORT = {
    "EVERKEPT_WORK__TICK_S": "0.1", "EVERKEPT_WORK__HEARTBEAT_S": "0.5", "EVERKEPT_WORK__LEASE_S": "5",
    "EVERKEPT_WORK__BACKOFF_FIRST_S": "0.05", "EVERKEPT_WORK__BACKOFF_MAX_S": "1", "EVERKEPT_MODELS__PROBE_S": "1",
}  # fmt: skip
MOUNTS = can_mount()
needs_mount = pytest.mark.skipif(not MOUNTS, reason="this test mounts a file system, which is not allowed here")
WAYS = ["limit", pytest.param("tmpfs", marks=needs_mount)]


@contextmanager
def disk_of(way: str, place: Path) -> Iterator[Disk]:
    if way == "limit":
        place.mkdir()
        yield LimitedFiles(place)
        return
    with tmpfs(place) as disk:
        yield disk


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for another process."""
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, f"not within {WAIT_S:.0f} s: {what}"
        time.sleep(0.02)


class Served:
    """The real server on a small disk, and what it was told."""

    def __init__(self, disk: Disk, pid: int, url: str, model: LlmServer) -> None:
        self.disk = disk
        self.model = model
        self.pid = pid
        self.http = httpx2.Client(base_url=url, timeout=WAIT_S)

    @property
    def store(self) -> Path:
        return self.disk.place / "home" / "everkept.db"

    @contextmanager
    def full(self) -> Iterator[None]:
        """Full until the block ends; then the server must be ready again by itself."""
        with self.disk.full(self.pid):
            yield
        until(lambda: self.http.get("/readyz").status_code == 200, "the server is ready again")

    def add(self, thread: str, text: str, key: str) -> httpx2.Response:
        body = {"content": text, "subject": f"{thread}-subject"}
        return self.http.post(f"/v1/threads/{thread}/messages", json=body, headers={"Idempotency-Key": key})

    def leave_no_room(self) -> None:
        """Whoever is refused moves the log into the file, and so makes some room: fill that, until there is no more."""
        refused = 0
        for n in range(200):
            self.disk.fill(self.pid)
            refused = refused + 1 if self.add("filler", LONG, f"filler-{n}").status_code == 507 else 0
            if refused == 3:
                return
        raise AssertionError("the disk is never full")

    def said(self, thread: str) -> list[str]:
        return [m["content"] for m in self.http.get(f"/v1/threads/{thread}/messages").json()["items"]]

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.http.get("/v1/status").json()
        return found

    def receipts(self, thread: str) -> set[str]:
        events = [m["event_id"] for m in self.http.get(f"/v1/threads/{thread}/messages").json()["items"]]
        return {self.http.get(f"/v1/receipts/{event}").json()["state"] for event in events}


@pytest.fixture(scope="module", params=WAYS)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    script = {"facts": [Say(value=FACTS, latency_s=MODEL_TAKES_S)], "summary": [Say(value=SUMMARY)]}
    with disk_of(request.param, tmp_path_factory.mktemp("disk") / "small") as disk, LlmServer(script) as model:
        environment = {
            **SHORT, "EVERKEPT_MODEL": "openai:gpt-5-mini", "OPENAI_API_KEY": "sk-not-real-0123",
            "OPENAI_BASE_URL": model.url,
        }  # fmt: skip
        with serving(disk.place / "home", **environment) as (process, url):
            server = Served(disk, process.pid, url, model)
            yield server
            server.http.close()
        assert check(server.store) == []


def assert_full(answer: httpx2.Response) -> None:
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (507, "store_full")
    assert "could not be written" in error["message"]


def test_an_append_to_a_full_disk_is_refused_and_everything_else_goes_on(served: Served) -> None:
    for number in range(3):
        assert served.add("early", f"{SAID} {number}", f"early-{number}").status_code == 201
    with served.full():
        served.leave_no_room()
        before = served.said("early")
        assert_full(served.add("early", LONG, "late"))
        ready = served.http.get("/readyz")
        assert (ready.status_code, list(ready.json()["reasons"])) == (503, ["store"])
        assert served.http.get("/healthz").status_code == 200
        assert served.status()["store"]["failing"]
        assert served.said("early") == before
        found = served.http.post("/v1/recall", json={"query": "Where do I live?", "subject": "early-subject"})
        assert [r["text"] for r in found.json()["results"]].count(f"{SAID} 0") == 1
    assert served.status()["store"]["failing"] is None
    assert [served.add("early", LONG, "late").status_code for _ in range(2)] == [201, 200]
    assert served.said("early") == [*before, LONG]


def test_of_many_appends_at_once_exactly_those_that_were_acknowledged_are_there(served: Served) -> None:
    """The disk fills in the middle of the writer's groups; what was refused may be sent again with its key."""
    answers: dict[str, list[int]] = {f"{client}-{n}": [] for client in range(8) for n in range(6)}

    def talk(client: int) -> None:
        for n in range(6):
            key = f"{client}-{n}"
            answers[key].append(served.add("many", f"{key} {LONG[:8000]}", f"many-{key}").status_code)

    def all_at_once() -> None:
        clients = [threading.Thread(target=talk, args=(client,)) for client in range(8)]
        for thread in clients:
            thread.start()
        for thread in clients:
            thread.join()

    def there() -> Counter[str]:
        return Counter(text.split()[0] for text in served.said("many"))

    assert served.add("many", "first", "many").status_code == 201
    filling = threading.Timer(0.05, served.disk.fill, [served.pid])
    filling.start()
    try:
        all_at_once()
        filling.join()
        assert {key for key, told in answers.items() if told == [201]} == set(there()) - {"first"}
        assert {told[0] for told in answers.values()} <= {201, 507}
    finally:
        filling.join()
        served.disk.free(served.pid)
    until(lambda: served.http.get("/readyz").status_code == 200, "the server is ready again")
    all_at_once()
    assert {tuple(told) for told in answers.values()} <= {(201, 200), (507, 201)}
    assert there() == Counter(["first", *answers])


def test_a_reply_that_could_not_be_kept_is_not_paid_for_again(served: Served) -> None:
    """The disk fills while a model answers: neither its reply nor the job's outcome can be written, for a while."""

    def asked() -> int:
        return sum(each.step == "facts" and SAID in str(each.body["messages"]) for each in served.model.asked)

    assert served.add("job", SAID, "job").status_code == 201
    assert served.http.post("/v1/threads/job/end").status_code == 200
    until(lambda: asked() == 1, "the question is asked")
    with served.full():
        time.sleep(2 * MODEL_TAKES_S)  # its reply arrives, and more ticks go by
    until(lambda: served.receipts("job") == {"remembered"}, "it is remembered, by itself")
    facts = served.http.get("/v1/facts", params={"subject": "job-subject"}).json()["items"]
    assert [fact["quote"] for fact in facts] == [SAID]
    assert asked() == 1
    assert served.status()["given_up"] == []


def test_an_erase_that_met_a_full_disk_ends_by_itself(served: Served) -> None:
    for batch in range(4):
        body = {"subject": "gone-subject", "messages": [{"content": f"zanzibar {n} {LONG[:500]}"} for n in range(100)]}
        assert served.http.post(f"/v1/threads/gone-{batch}/messages", json=body).status_code == 201

    def erase() -> None:
        served.http.delete("/v1/subjects/gone-subject")

    asking = threading.Thread(target=erase)
    asking.start()
    time.sleep(0.05)
    with served.full():
        time.sleep(0.5)
    asking.join()
    assert served.http.delete("/v1/subjects/gone-subject").status_code in (200, 404)
    until(lambda: served.status()["backlog_due"] == 0, "the erase has ended")
    found = served.http.post("/v1/recall", json={"query": "zanzibar"}).json()["results"]
    assert not [result for result in found if "zanzibar" in result["text"]]
    until(lambda: not [v for v in check_drained(served.store) if v.guarantee == "G10"], "nothing of it is left")


# ---- without a server


@contextmanager
def opened(home: Path, **environment: str) -> Iterator[Application]:
    """The parts of a process that serves, in this one."""
    settings = load({"EVERKEPT_HOME": str(home), **SHORT, **environment}, home)
    with asyncio.Runner() as runner:
        application = runner.run(open_application(settings))
        try:
            yield application
        finally:
            runner.run(application.close(drain_s=1))


def kept(home: Path) -> list[str | None]:
    with Memory.open(home, worker=False) as memory:
        return [message.content for message in memory.thread("t").messages()]


@pytest.fixture(params=WAYS)
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    with disk_of(request.param, tmp_path / "small") as disk:
        yield disk
        disk.free(os.getpid())


ADD_AND_DIE = """
import os, sys
from everkept import Memory
Memory.open(sys.argv[1], worker=False).thread("t", subject="ana").add("user", sys.argv[2])
os._exit(0)
"""


def test_a_store_on_a_full_disk_opens_to_be_read_and_is_written_once_there_is_room(disk: Disk) -> None:
    home = disk.place / "home"
    with Memory.open(home, worker=False) as memory:
        memory.thread("t", subject="ana").add("user", SAID)
    assert_opens_to_be_read(disk, home)


@needs_mount
def test_a_store_whose_process_was_killed_on_a_full_disk_opens_as_well(tmp_path: Path) -> None:
    """What its log holds has to be read first, and a place for the log's index has to be found."""
    with tmpfs(tmp_path / "small") as disk:
        home = disk.place / "home"
        subprocess.run([sys.executable, "-c", ADD_AND_DIE, str(home), SAID], check=True)
        assert (home / "everkept.db-wal").stat().st_size > 0
        assert_opens_to_be_read(disk, home)


def added_until_full(thread: Thread) -> int:
    """How many long messages were taken: the log of the process before may have room in it."""
    for taken in range(200):
        try:
            thread.add("user", LONG)
        except StoreFull:
            return taken
    raise AssertionError("the disk is never full")


def assert_opens_to_be_read(disk: Disk, home: Path) -> None:
    with disk.full(os.getpid()), Memory.open(home, worker=False) as memory:
        thread, told = memory.thread("t"), [SAID]
        assert [message.content for message in thread.messages()] == told
        assert [result.text for result in memory.recall("Where do I live?", subject="ana").results] == told
        assert memory.status().store["failing"]
        told += [LONG] * added_until_full(thread)
        disk.free(os.getpid())
        thread.add("user", "I moved.")
        assert memory.status().store["failing"] is None
    assert kept(home) == [*told, "I moved."]
    assert check(home / "everkept.db") == []


def test_a_new_store_on_a_full_disk_is_refused_by_name_and_made_later(disk: Disk) -> None:
    home = disk.place / "home"
    with disk.full(os.getpid()), pytest.raises(StoreFull, match=r"everkept\.db|home"):
        Memory.open(home, worker=False).__enter__()
    with Memory.open(home, worker=False) as memory:
        memory.thread("t", subject="ana").add("user", SAID)
    assert kept(home) == [SAID]


def test_a_backup_to_a_full_disk_leaves_nothing_there(disk: Disk, tmp_path: Path) -> None:
    with Memory.open(tmp_path / "home", worker=False) as memory:
        memory.thread("t", subject="ana").add("user", SAID)
        with disk.full(os.getpid()), pytest.raises(StoreFull, match=r"b\.db"):
            back_up(tmp_path / "home" / "everkept.db", disk.place / "b.db")
        assert [found.name for found in disk.place.iterdir() if "b.db" in found.name] == []
        assert back_up(tmp_path / "home" / "everkept.db", disk.place / "b.db").counts["messages"] == 1


@needs_mount
def test_a_checkpoint_that_finds_no_room_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit fits into the log, and what it wrote not into the file: it is durable all the same."""
    monkeypatch.setattr("everkept.store.sqlite_transactions.CHECKPOINT_ROWS", 0)
    with tmpfs(tmp_path / "small") as disk, structlog.testing.capture_logs() as logs:
        home = disk.place / "home"
        with Memory.open(home, worker=False) as memory:
            thread = memory.thread("t", subject="ana")
            thread.add("user", SAID)
            told, room_bytes, length = [SAID], 40_000, 12_000
            while not [log for log in logs if log.get("what") == "_tidy"]:
                disk.leave(room_bytes)
                text = f"{len(told)} {LONG[:length]}"
                try:
                    thread.add("user", text)
                except StoreFull:  # which empties the log, too
                    room_bytes, length = room_bytes + 10_000, 12_000
                    disk.free()
                else:  # now the log is long enough for a shorter one, and the file is not
                    told.append(text)
                    room_bytes, length = 0, 9_000
                assert len(told) < 20, "no checkpoint ever failed"
            disk.fill()
            shutil.copytree(home, tmp_path / "killed")  # as a kill would leave it
            disk.free()
            thread.add("user", "later")
        assert kept(tmp_path / "killed") == told
        assert kept(home) == [*told, "later"]


# ---- places that can only be read


@contextmanager
def read_only(what: str, home: Path) -> Iterator[None]:
    with only_read({"folder": home, "file": home / "everkept.db", "file system": home.parent}[what]):
        yield


needs_bind = pytest.mark.skipif(not can_bind(), reason="root is bound by no mode, and may mount nothing here")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with Memory.open(tmp_path / "place" / "home", worker=False) as memory:
        memory.thread("t", subject="ana").add("user", SAID)
    return tmp_path / "place" / "home"


@needs_bind
@pytest.mark.parametrize("what", ["folder", "file", "file system"])
def test_a_store_that_can_only_be_read_is_read(home: Path, what: str) -> None:
    with read_only(what, home), Memory.open(home, worker=False) as memory:
        assert [result.text for result in memory.recall("Where do I live?", subject="ana").results] == [SAID]
        with pytest.raises(StoreUnavailable, match=r"could not be written: .*permissions"):
            memory.thread("t").add("user", LONG)
        assert "permissions" in str(memory.status().store["failing"])
    assert kept(home) == [SAID]


@needs_bind
def test_a_process_on_a_store_that_can_only_be_read_says_so_and_recovers(home: Path) -> None:
    with asyncio.Runner() as runner:
        settings = load({"EVERKEPT_HOME": str(home), **SHORT}, home)
        with only_read(home):
            application = runner.run(open_application(settings))
            reasons = runner.run(application.ready())
            assert list(reasons) == ["store"]
            assert "permissions" in reasons["store"]
        try:
            assert runner.run(application.ready()) == {}
        finally:
            runner.run(application.close(drain_s=1))


@needs_bind
def test_the_command_line_reads_what_it_may_and_says_what_it_may_not(home: Path) -> None:
    def run(*arguments: str, place: Path = home) -> tuple[int, str, str]:
        plain = {name: value for name, value in os.environ.items() if not name.startswith("EVERKEPT_")}
        done = subprocess.run(
            [sys.executable, "-m", "everkept", *arguments],
            env={**plain, "EVERKEPT_HOME": str(place), "EVERKEPT_BIND": "127.0.0.1:0"},
            capture_output=True, text=True, timeout=WAIT_S, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    with only_read(home.parent):
        code, out, _ = run("recall", "Where do I live?", "--subject", "ana", "--json")
        assert (code, [r["text"] for r in json.loads(out)["results"]]) == (0, [SAID])
        code, out, told = run("add", "--thread", "t", "--subject", "ana", "I moved.")
        assert (code, out) == (3, "")
        assert "permissions" in told
        assert "Traceback" not in told
        code, out, told = run("serve", place=home.parent / "none")
        assert (code, out) == (3, "")
        assert f"error: {home.parent / 'none'}: " in told
        assert "Traceback" not in told


def test_nothing_of_these_was_left_limited() -> None:
    """A limit left behind would make every later test fail in its own way."""
    with (Path("/proc/self/limits")).open(encoding="ascii") as limits:
        assert [line.split()[3] for line in limits if line.startswith("Max file size")] == ["unlimited"]


def test_signals_of_the_limit_do_not_end_a_process() -> None:
    assert signal.getsignal(signal.SIGXFSZ) == signal.SIG_IGN
