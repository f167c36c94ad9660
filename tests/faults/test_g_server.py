"""G: storage, on a database server: it restarts, cuts connections, is full, read-only, slow, or refuses the role.

Beside what `test_g_storage.py` asks of both. Each fault is a real one of a PostgreSQL of the tests' own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import psycopg
import pytest
from tests.databases import UrlOf
from tests.factories import HOUR_S
from tests.faults.adapter import (
    MemorySystem,
    Message,
    OpensSystems,
    Rejected,
    contents,
    copies,
    finds,
    let_it_work,
)
from tests.faults.everkept_system import EverkeptSystem
from tests.faults.wire import Failed
from tests.faults.worlds import a_world, say
from tests.postgres import TestedDatabase, administered, new_database, ordinary

from everkept.errors import StoreNotSupported, StoreUnavailable
from everkept.store import postgres
from everkept.store.store import Store

pytestmark = [
    pytest.mark.own_engine("its database server"),
    pytest.mark.usefixtures("each_database"),
    pytest.mark.only_on("postgresql", reason="it is about a server; test_g_storage.py has what a file has instead"),
]
SAID = "I live in Lisbon."
DURABLE = "&options=-c%20synchronous_commit%3Don"
"""The tests' server acknowledges before it has written; what a real one must not."""
AGAIN_S = 30.0
T = TypeVar("T")


@pytest.fixture
def url(tmp_path: Path, url_of: UrlOf) -> str:
    """Of the database of `another()`."""
    return url_of(tmp_path / "memory")


def tell(system: MemorySystem, text: str = SAID, *, key: str | None = None, thread: str = "t1") -> None:
    system.add(thread, [Message(content=text)], subject="ana", key=key or "-".join(text.split()))


def again(ask: Callable[[], T]) -> T:
    """As a client does that asks again what was not answered."""
    until = time.monotonic() + AGAIN_S
    while True:
        try:
            return ask()
        except Failed:
            assert time.monotonic() < until, "it fails for ever"
            time.sleep(0.1)


def refused(system: MemorySystem, text: str, why: str) -> None:
    """It is told so, once every connection that was cut was found to be."""
    until = time.monotonic() + AGAIN_S
    while True:
        with pytest.raises(Failed) as told:
            tell(system, text)
        if re.search(why, str(told.value)):
            return
        assert "not available" in str(told.value)
        assert time.monotonic() < until


def name_of(url: str) -> str:
    return urlsplit(url).path[1:]


def administer(url: str, *statements: str) -> list[tuple[object, ...]]:
    """Rows of the last one."""
    with psycopg.connect(administered(url), autocommit=True) as raw:
        for statement in statements:
            cursor = raw.execute(statement)
        return list(cursor.fetchall()) if cursor.description else []


CUT = """
select pg_terminate_backend(pid) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid()"""


# ---- G02: connections


def test_g02_a_connection_that_is_cut_in_its_transaction_loses_that_and_nothing_else(
    another: OpensSystems, url: str
) -> None:
    system = another(worker=False)
    assert isinstance(system, EverkeptSystem)
    tell(system, "the first")
    system.arm("writer.before_commit", how="hold")
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(tell, system, "the second")
        in_hand = "select 1 from pg_stat_activity where datname = current_database() and state = 'idle in transaction'"
        until = time.monotonic() + AGAIN_S
        while not administer(url, in_hand):
            assert time.monotonic() < until
            time.sleep(0.02)
        administer(url, CUT)
        system.let_go()
        with pytest.raises(Failed, match="not available"):
            held.result(AGAIN_S)
    again(lambda: tell(system, "the second"))
    assert again(lambda: contents(system, "ana", "message")) == ["the first", "the second"]


def test_g02_processes_that_hear_nothing_of_each_other_still_do_all_their_work(another: OpensSystems) -> None:
    """Notifications only shorten polls: here nobody can listen."""
    nowhere = "postgresql://nobody@127.0.0.1:1/nothing"
    accepting = another(worker=False, database_direct_url=nowhere)
    working = another(database_direct_url=nowhere)
    for n in range(3):
        tell(accepting, f"I like number {n}.", thread=f"t{n}")
    working.pass_time(HOUR_S)
    let_it_work(working)
    assert [copies(accepting, "ana", f"number {n}") for n in range(3)] == [1, 1, 1]
    assert {item.state for item in accepting.list(subject="ana", kind="message")} == {"remembered"}


# ---- G03: the server's disk and its end


def test_g03_a_server_that_ends_at_once_loses_nothing_that_was_acknowledged(another: OpensSystems, url: str) -> None:
    """One of its processes is killed: it ends all others, throws its memory away, and recovers from its log."""
    system = another(database_url=url + DURABLE)
    told = [f"I like number {n}." for n in range(12)]
    for n, text in enumerate(told):
        if n in (4, 8):
            end_at_once(url)
        again(partial(tell, system, text))
    assert again(lambda: contents(system, "ana", "message")) == told
    end_at_once(url)
    again(lambda: system.pass_time(HOUR_S))
    again(lambda: let_it_work(system))
    remembered = Counter(again(lambda: contents(system, "ana", "fact")))
    assert (len(remembered), set(remembered.values())) == (len(told), {1})


def end_at_once(url: str) -> None:
    with psycopg.connect(administered(url), autocommit=True) as raw:
        try:
            os.kill(raw.info.backend_pid, 9)
        except (ProcessLookupError, PermissionError):
            pytest.skip("the server is on another machine, or another's")


@contextmanager
def small_server_disk(url: str, size: str) -> Iterator[tuple[str, Path]]:
    """(URL, folder) of a database on a file system of its own, which holds no more than `size`."""
    [(data,)] = administer(url, "show data_directory")
    owner = os.stat(str(data))
    with ExitStack() as undo:
        folder = Path(tempfile.mkdtemp(prefix="everkept-small-"))
        undo.callback(shutil.rmtree, folder)
        if subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True, check=False
        ).returncode:
            pytest.skip("a small file system cannot be mounted here")
        undo.callback(subprocess.run, ["umount", "-l", str(folder)], check=False)
        folder.chmod(0o755)
        inside = folder / "space"
        inside.mkdir()
        os.chown(inside, owner.st_uid, owner.st_gid)
        small = new_database()
        administer(url, f"create tablespace small location '{inside}'")
        undo.callback(administer, url, "drop tablespace small")
        administer(url, f"alter database {name_of(small)} set tablespace small")
        undo.callback(administer, url, f"drop database {name_of(small)} with (force)")
        yield small, folder


def test_g03_a_servers_full_disk_is_said_costs_nothing_and_is_recovered_from(another: OpensSystems, url: str) -> None:
    with small_server_disk(url, "24m") as (small, folder):
        system = another(database_url=ordinary(small))
        ballast = folder / "ballast"
        ballast.write_bytes(bytes(shutil.disk_usage(folder).free - (1 << 20)))
        accepted: list[str] = []
        with pytest.raises(Failed, match="could not be written"):  # noqa: PT012  (which one is refused is open)
            for n in range(2_000):
                text = f"box {n} " + os.urandom(6_000).hex()
                tell(system, text, key=f"k{n}", thread=f"t{n}")
                accepted.append(text)
        assert accepted
        ballast.unlink()  # until then a server may have no room for another connection either
        assert again(lambda: contents(system, "ana", "message")) == accepted
        again(lambda: tell(system, "room again", thread="after"))
        assert contents(system, "ana", "message") == [*accepted, "room again"]
        system.kill()
        system.open()
        assert contents(system, "ana", "message") == [*accepted, "room again"]
        system.kill()


def test_g03_a_server_that_only_reads_is_said_and_recovered_from(another: OpensSystems, url: str) -> None:
    """As a replica is that was asked by mistake, or a primary whose disk an administrator protects."""
    name = name_of(url)
    system = another()
    tell(system)
    administer(url, f"alter database {name} set default_transaction_read_only = on", CUT)
    try:
        refused(system, "I like tea.", r"could not be written: .*read-only")
        assert again(lambda: finds(system, "ana", "Lisbon"))
        late = another()
        assert finds(late, "ana", "Lisbon")
    finally:
        administer(url, "set default_transaction_read_only = off", f"alter database {name} reset all", CUT)
    again(lambda: tell(system, "I like tea."))
    again(lambda: tell(late, "I like coffee."))
    assert again(lambda: contents(system, "ana", "message")) == [SAID, "I like tea.", "I like coffee."]


def test_g03_a_role_that_loses_its_rights_is_told_which_and_loses_nothing(another: OpensSystems, url: str) -> None:
    system = another()
    tell(system)
    administer(url, "revoke insert on events from everkept_tested")
    try:
        with pytest.raises(Rejected, match="refuses this role: permission denied for table events"):
            tell(system, "I like tea.")
        assert contents(system, "ana", "message") == [SAID]
    finally:
        administer(url, "grant insert on events to everkept_tested")
    tell(system, "I like tea.")
    assert contents(system, "ana", "message") == [SAID, "I like tea."]


def test_g03_a_statement_that_waits_too_long_is_given_up_and_done_when_it_can_be(
    tmp_path: Path, url_of: UrlOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        postgres, "_SET", tuple(s.replace(f"'{postgres.STATEMENT_S}s'", "'200ms'") for s in postgres._SET)
    )
    with a_world(tmp_path) as world:
        say(world, SAID)
        with psycopg.connect(administered(url_of(tmp_path))) as admin:
            admin.execute("lock table events in access exclusive mode")
            with pytest.raises(StoreUnavailable, match="timeout"):
                world.add("t2", "I like tea.")
            admin.rollback()
        world.add("t2", "I like tea.")
        assert world.value("select count(*) from events") == 2


# ---- G04: another program's schema


@pytest.mark.parametrize("found", ["0000", "9000"])
def test_g04_a_database_of_another_program_is_refused_by_name_and_not_touched(url: str, found: str) -> None:
    database = TestedDatabase(url)
    [(ours,)] = administer(url, "select version_num from alembic_version")
    administer(url, f"update alembic_version set version_num = '{found}'")
    before = database.every_value()
    try:
        with pytest.raises(StoreNotSupported, match=f"schema {found}"):
            Store(database, threads=False).open()
        assert database.every_value() == before
    finally:
        administer(url, f"update alembic_version set version_num = '{ours}'")
