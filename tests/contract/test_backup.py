"""A backup is one instant and whole, a restore never leaves nothing, and what was erased is in neither (G04, G10)."""

from __future__ import annotations

import asyncio
import json
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.factories import World, open_store

from everkept.domain.erase import StreamTarget
from everkept.domain.ids import ProjectId, StreamId
from everkept.errors import Conflict, InvalidInput, NotFound, StoreNotSupported
from everkept.ports.clock import SystemClock, VirtualClock
from everkept.store.backup import back_up, restore, verify
from everkept.store.erase import erase
from everkept.store.inspection import inspect_store
from everkept.store.sqlite import choose_driver
from everkept.store.store import Store
from everkept.store.streams import append_events

pytestmark = pytest.mark.only_on("sqlite", reason="a backup copies a file; a server has its own (docs/self-hosting.md)")
ROOT = Path(__file__).parents[2]
NOW = datetime(2026, 3, 1, tzinfo=UTC)
CLIENTS = 16


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    clock = VirtualClock()
    (tmp_path / "home").mkdir()
    world = World(open_store(tmp_path / "home" / "everkept.db", clock), tmp_path, clock)
    yield world
    world.close()
    world.store.close()


def said(path: Path) -> list[str]:
    raw = choose_driver().module.connect(f"{path.as_uri()}?mode=ro", uri=True)
    try:
        return [row[0] for row in raw.execute("select content from events where content is not null order by 1")]
    finally:
        raw.close()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# ---- backup


def test_a_backup_holds_what_was_said_and_nothing_lies_beside_it(world: World, tmp_path: Path) -> None:
    world.add("t", "hello")
    (tmp_path / "out").mkdir()
    verified = back_up(world.file, tmp_path / "out" / "b.db")

    assert verified.counts == {"projects": 1, "threads": 1, "messages": 1, "facts": 0}
    assert said(tmp_path / "out" / "b.db") == ["hello"]
    assert names(tmp_path / "out") == ["b.db"]
    assert (tmp_path / "out" / "b.db").stat().st_mode & 0o777 == 0o600


def test_a_backup_replaces_a_file_only_by_force(world: World, tmp_path: Path) -> None:
    target = tmp_path / "b.db"
    target.write_text("precious")
    with pytest.raises(Conflict, match="--force"):
        back_up(world.file, target)
    assert target.read_text() == "precious"

    world.add("t", "hello")
    back_up(world.file, target, force=True)
    assert said(target) == ["hello"]


def test_a_backup_of_or_to_a_wrong_place_is_refused(world: World, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no store"):
        back_up(tmp_path / "nothing.db", tmp_path / "b.db")
    for target in (world.file, world.file.with_name("everkept.db-wal"), tmp_path, tmp_path / "no" / "b.db"):
        with pytest.raises(InvalidInput):
            back_up(world.file, target, force=True)


def test_a_backup_has_no_word_that_was_erased(world: World, tmp_path: Path) -> None:
    world.add("t", "the password is xylophonic-marzipan")
    stream = StreamTarget(stream=StreamId(world.stream("t")))
    world.write(erase, ProjectId(world.project.id), stream)
    world.run_until_idle()
    assert world.value("select residue from erasures") == 0
    back_up(world.file, tmp_path / "b.db")

    assert b"marzipan" not in (tmp_path / "b.db").read_bytes()


def test_a_backup_while_sixteen_clients_append_is_one_instant_and_loses_nothing(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    clock = VirtualClock()
    world = World(open_store(tmp_path / "home" / "everkept.db", clock), tmp_path, clock)
    batches = [[world.batch(f"t{client}", f"{client}-{n}") for n in range(400)] for client in range(CLIENTS)]
    world.close()
    world.store.close()
    file = tmp_path / "home" / "everkept.db"
    store = Store(file, clock=SystemClock())
    store.open()
    accepted: list[str] = []
    stop, warm = threading.Event(), threading.Barrier(CLIENTS + 1)

    def client(number: int) -> None:
        for n, batch in enumerate(batches[number]):
            if stop.is_set():
                return
            asyncio.run(store.write_item(append_events, batch))
            accepted.append(f"{number}-{n}")
            if n == 3:
                warm.wait(60)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    warm.wait(60)
    before = set(accepted)
    back_up(file, tmp_path / "b.db")
    stop.set()
    for thread in threads:
        thread.join()
    store.close()

    kept = set(said(tmp_path / "b.db"))
    assert before <= kept
    assert kept <= set(said(file))
    for number in range(CLIENTS):  # no hole in what one client said
        own = sorted(int(text.split("-")[1]) for text in kept if text.startswith(f"{number}-"))
        assert own == list(range(len(own)))


def test_a_backup_that_does_not_fit_leaves_nothing_and_says_so(world: World, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()

    def small_disk() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    code = (
        "import sys; from pathlib import Path; from everkept.errors import StoreFull\n"
        "from everkept.store.backup import back_up\n"
        "try: back_up(Path(sys.argv[1]), Path(sys.argv[2]))\n"
        "except StoreFull as error: sys.exit(str(error))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(world.file), str(tmp_path / "out" / "b.db")],
        preexec_fn=small_disk, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "could not be written" in done.stderr
    assert "Traceback" not in done.stderr
    assert names(tmp_path / "out") == []


# ---- restore


def test_a_restore_brings_back_the_backup_and_keeps_the_store_that_was_there(world: World, tmp_path: Path) -> None:
    world.add("t", "first")
    back_up(world.file, tmp_path / "b.db")
    world.add("t", "second")
    world.store.close()
    done = restore(tmp_path / "b.db", world.file, NOW)

    assert said(world.file) == ["first"]
    assert done.replaced == world.file.with_name("everkept.replaced-20260301T000000Z.db")
    assert said(done.replaced) == ["first", "second"]
    assert names(world.file.parent) == ["everkept.db", done.replaced.name]
    assert said(tmp_path / "b.db") == ["first"]
    again = restore(tmp_path / "b.db", world.file, NOW)
    assert again.replaced is not None
    assert again.replaced.name == "everkept.replaced-20260301T000000Z-2.db"


def test_a_restored_store_can_be_used(world: World, tmp_path: Path) -> None:
    world.add("t", "first")
    back_up(world.file, tmp_path / "b.db")
    restore(tmp_path / "b.db", tmp_path / "other" / "everkept.db", NOW)
    other = World(open_store(tmp_path / "other" / "everkept.db", world.clock), tmp_path, world.clock)
    assert [accepted.seq for accepted in other.add("t", "second")] == [2]
    other.close()
    other.store.close()
    assert [finding for finding in inspect_store(tmp_path / "other" / "everkept.db").findings if not finding.ok] == []


def test_a_restore_is_refused_while_another_process_has_the_store_open(world: World, tmp_path: Path) -> None:
    world.add("t", "hello")
    back_up(world.file, tmp_path / "b.db")
    world.store.close()
    code = (
        "import sys; from pathlib import Path; from everkept.store.store import Store\n"
        "store = Store(Path(sys.argv[1])); store.open(); store.read_now(lambda conn: None)\n"
        "print('open', flush=True); sys.stdin.read(); store.close()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(world.file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(Conflict, match="another process"):
            restore(tmp_path / "b.db", world.file, NOW)
        assert not [name for name in names(world.file.parent) if "replaced" in name or "partial" in name]
        holder.communicate("")
    restore(tmp_path / "b.db", world.file, NOW)


def test_a_damaged_backup_is_refused_before_anything_moves(world: World, tmp_path: Path) -> None:
    world.add("t", *(f"message {n} " + "words " * 50 for n in range(50)))
    back_up(world.file, tmp_path / "b.db")
    world.store.close()
    whole = (tmp_path / "b.db").read_bytes()
    middle = len(whole) // 2 // 4096 * 4096
    before = names(world.file.parent)
    for damaged in (whole[:middle], whole[:4096] + b"\xff" * 8192 + whole[12288:], b"no database at all" * 99, b""):
        (tmp_path / "b.db").write_bytes(damaged)
        with pytest.raises(StoreNotSupported):
            restore(tmp_path / "b.db", world.file, NOW)
    assert names(world.file.parent) == before


def test_a_backup_of_a_newer_everkept_is_refused(world: World, tmp_path: Path) -> None:
    back_up(world.file, tmp_path / "b.db")
    raw = choose_driver().module.connect(str(tmp_path / "b.db"))
    raw.execute("pragma user_version = 999")
    raw.close()
    with pytest.raises(StoreNotSupported, match="use a newer Everkept"):
        verify(tmp_path / "b.db")


def test_a_restore_lists_what_was_erased_after_the_backup(world: World, tmp_path: Path) -> None:
    world.add("kept", "hello")
    world.add("t", "a secret")
    back_up(world.file, tmp_path / "b.db")
    world.write(erase, ProjectId(world.project.id), StreamTarget(stream=StreamId(world.stream("t"))))
    world.store.close()
    done = restore(tmp_path / "b.db", world.file, NOW)

    assert done.erasures_known
    assert [(each.kind, each.project, each.name) for each in done.erased_since] == [("stream", "default", "t")]
    assert restore(tmp_path / "b.db", world.file, NOW).erased_since == ()


def test_a_store_that_cannot_be_read_is_replaced_and_kept_with_its_log(world: World, tmp_path: Path) -> None:
    world.add("t", "hello")
    back_up(world.file, tmp_path / "b.db")
    world.store.close()
    world.file.write_bytes(b"this was a database once" * 1000)
    world.file.with_name("everkept.db-wal").write_bytes(b"and this its log")
    done = restore(tmp_path / "b.db", world.file, NOW)

    assert not done.erasures_known
    assert said(world.file) == ["hello"]
    kept = "everkept.replaced-20260301T000000Z.db"
    assert {"everkept.db", kept, f"{kept}-wal"} <= set(names(world.file.parent))
    assert not world.file.with_name("everkept.db-wal").exists()


def test_a_restore_killed_at_any_step_leaves_the_old_or_the_new_store_whole(world: World, tmp_path: Path) -> None:
    world.add("t", "new")
    back_up(world.file, tmp_path / "b.db")
    world.add("t", "old")
    world.store.close()
    command = [sys.executable, "-m", "tests.stubs.killed_restore", str(world.file), str(tmp_path / "b.db")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stderr)
    assert len(told) > 5
    assert set(told) == {"new,old", "new"}
    assert told == sorted(told, reverse=True)  # never back to the old one
