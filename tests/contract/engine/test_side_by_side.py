"""Projects are written side by side on a server: nobody waits for a project that is not theirs, and nobody in a circle.

The processes of a server are stores here, each with a writer and connections of its own.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.factories import World, assert_lanes_count_right

from everkept.domain.jobs import Done, Lease, Outcome, Retry, Schedule, Snooze
from everkept.store import postgres
from everkept.store.claims import ClaimRequest, claim
from everkept.store.connection import Connection
from everkept.store.counters import count
from everkept.store.destroy import drop_jobs
from everkept.store.jobs import promote_due, schedule
from everkept.store.jobs_by_hand import discard_by_hand, release_by_hand
from everkept.store.lanes import ensure_lane
from everkept.store.leases import expire_leases, finish, renew_leases
from everkept.store.projects import ensure_project
from everkept.store.providers import note_answer, note_failure, permits_left
from everkept.store.reach import Across, Reach
from everkept.store.store import Store

pytestmark = pytest.mark.only_on("postgresql", reason="a file has one lock, whoever writes")
PATIENCE_S = 20.0
POOL = "stub:1"
TURNS = 80


@pytest.fixture
def processes(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Store]]:
    # A test holds a transaction open for as long as it likes, however slow the machine is.
    monkeypatch.setattr(postgres, "_SET", tuple(said for said in postgres._SET if "idle" not in said))
    opened: list[Store] = []

    def another() -> Store:
        store = Store(world.store.database)
        store.open()
        opened.append(store)
        return store

    yield another
    for store in opened:
        store.close()


def drop(conn: Connection, project: int, job: int, _why: str) -> None:
    """As an erase drops it."""
    drop_jobs(conn, project, [("work", f"{project}.a")])


@contextmanager
def writing(store: Store, reach: Reach) -> Iterator[None]:
    """A transaction that reaches so far is open."""
    begun, ends = threading.Event(), threading.Event()

    def hold(conn: Connection) -> None:
        begun.set()
        assert ends.wait(PATIENCE_S)

    held = threading.Thread(target=store.reaching(reach).write_now, args=(hold,))
    held.start()
    assert begun.wait(PATIENCE_S)
    try:
        yield
    finally:
        ends.set()
        held.join()


def is_held_up(store: Store, reach: Reach) -> bool:
    """Whether a transaction that reaches so far cannot begin at this moment."""
    begun = threading.Event()
    waiting = threading.Thread(target=store.reaching(reach).write_now, args=(lambda _: begun.set(),))
    waiting.start()
    held_up = not begun.wait(1.0)
    if not held_up:
        waiting.join()
    return held_up


@pytest.mark.parametrize(
    ("first", "second", "held_up"),
    [
        (1, 2, False),
        (1, 1, True),
        (1, Across.QUEUE, False),
        (1, Across.LEASES, False),
        (Across.QUEUE, Across.LEASES, False),
        (Across.QUEUE, Across.QUEUE, True),
        (1, Across.EVERYTHING, True),
        (Across.EVERYTHING, 1, True),
        (Across.QUEUE, Across.EVERYTHING, True),
    ],
)
def test_one_waits_for_another_only_where_both_reach(
    processes: Callable[[], Store], first: Reach, second: Reach, held_up: bool
) -> None:
    one, other = processes(), processes()
    with writing(one, first):
        assert is_held_up(other, second) == held_up


def test_who_looks_for_work_passes_by_a_project_in_whose_lanes_somebody_counts(
    world: World, processes: Callable[[], Store]
) -> None:
    ours = world.project.id
    other = world.write(ensure_project, "other", b"x" * 32).id
    for project in (ours, other):
        world.write(add_jobs, project, ["a", "b"])
    one, two = processes(), processes()
    world.promote()
    lease = take(one, "one", 1)[0]
    assert lease.project == ours
    begun, ends = threading.Event(), threading.Event()

    def slowly(conn: Connection) -> None:
        finish(conn, lease, Done(), 0.1)
        begun.set()
        assert ends.wait(PATIENCE_S)

    held = threading.Thread(target=one.reaching(ours).write_now, args=(slowly,))
    held.start()
    assert begun.wait(PATIENCE_S)
    woken: list[int] = []
    two.on_due = woken.append
    assert [found.project for found in take(two, "two", 4)] == [other, other]
    assert woken  # so that it looks again at once
    ends.set()
    held.join()
    assert [found.project for found in take(two, "two", 4)] == [ours]


@pytest.mark.parametrize("by_hand", [discard_by_hand, drop])
@pytest.mark.parametrize("step", ["made ready", "claimed"])
def test_what_is_discarded_while_somebody_looks_for_work_is_counted_as_what_it_became(
    world: World, processes: Callable[[], Store], step: str, by_hand: Callable[..., Any]
) -> None:
    project = world.project.id
    world.write(add_jobs, project, ["a"])
    if step == "claimed":
        world.promote()
    one, two = processes(), processes()
    looked, ends = threading.Event(), threading.Event()

    def slowly(conn: Connection) -> None:
        if step == "claimed":
            look_for(conn, "one", 1)
        else:
            promote_due(conn, 100)
        looked.set()
        assert ends.wait(PATIENCE_S)

    looking = threading.Thread(target=one.reaching(Across.QUEUE).write_now, args=(slowly,))
    looking.start()
    assert looked.wait(PATIENCE_S)
    discarding = threading.Thread(target=two.reaching(project).write_now, args=(by_hand, project, 1, "no more"))
    discarding.start()
    discarding.join(0.5)
    ends.set()
    looking.join()
    discarding.join()

    assert_lanes_count_right(world)
    assert world.read(lambda conn: conn.raw.execute("select count(*) from jobs where state = 'leased'").fetchone()) == (
        0,
    )


def add_jobs(conn: Connection, project: int, keys: list[str]) -> None:
    lane = ensure_lane(conn, project, 0)
    schedule(conn, [
        Schedule(project=project, kind="work", key=f"{project}.{key}", lane=lane, due_at_us=conn.now()) for key in keys
    ])  # fmt: skip


def take(store: Store, owner: str, free: int) -> list[Lease]:
    return store.reaching(Across.QUEUE).write_now(look_for, owner, free)


def look_for(conn: Connection, owner: str, free: int) -> list[Lease]:
    permits_left(conn, POOL, 0, 8)
    promote_due(conn, 100)
    request = ClaimRequest(
        owner=owner, free=free, slots=64, lease_s=60, uses={"local": free}, idle=True, estimates_s={}
    )
    return claim(conn, request).leases


@dataclass
class Rush:
    """What several processes do at once, for a while."""

    projects: list[int]
    done: Counter[int] = field(default_factory=Counter)
    added: int = 0
    errors: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, store: Store, owner: str) -> None:
        draw = random.Random(owner)
        held: list[Lease] = []
        try:
            for turn in range(10 * TURNS):
                if turn > TURNS and not held:
                    break
                self._turn(store, owner, draw, held, ends=turn > TURNS)
        except Exception as error:  # noqa: BLE001  (the test tells it)
            self.errors.append(repr(error))

    def _turn(self, store: Store, owner: str, draw: random.Random, held: list[Lease], *, ends: bool) -> None:
        project = draw.choice(self.projects)
        what = draw.random()
        if what < 0.25 and not ends:
            with self.lock:
                keys = [str(self.added + n) for n in range(3)]
                self.added += 3
            store.reaching(project).write_now(add_jobs, project, keys)
        elif what < 0.55 and not ends:
            held += take(store, owner, 4)
        elif what < 0.65:
            store.reaching(Across.LEASES).write_now(renew_leases, owner, 4, 60.0)
        elif what < 0.7:
            store.write_now(expire_leases, 5)
        elif held:
            self._end(store, draw, held.pop(draw.randrange(len(held))))

    def _end(self, store: Store, draw: random.Random, lease: Lease) -> None:
        def end(conn: Connection) -> bool:
            if draw.random() < 0.3:
                count(conn, "tried")
            if draw.random() < 0.3:
                note_failure(conn, POOL, "transient", "no", probe_s=1, retry_after_s=None)
            done = draw.random() < 0.7
            later: list[Outcome] = [Snooze(conn.now()), Retry(conn.now(), "transient", "once more", spend=False)]
            finish(conn, lease, Done() if done else draw.choice(later), 0.01)
            note_answer(conn, POOL, 8)
            return done

        if draw.random() < 0.1:
            store.reaching(lease.project).write_now(release_by_hand, lease.project, lease.job)
            return
        if store.reaching(lease.project).write_now(end):
            with self.lock:
                self.done[lease.job] += 1


def test_many_at_once_wait_for_each_other_in_no_circle_and_count_right(
    world: World, processes: Callable[[], Store]
) -> None:
    projects = [world.project.id, *(world.write(ensure_project, name, b"x" * 32).id for name in "bcd")]
    before = deadlocks(world)
    rush = Rush(projects=projects)
    stores = [processes() for _ in range(4)]
    threads = [threading.Thread(target=rush.run, args=(store, f"w{n}")) for n, store in enumerate(stores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rush.errors == []
    assert rush.added > 20
    rest: list[Lease] = []
    while leases := take(stores[0], "last", 50):
        rest += leases
        for lease in leases:
            stores[0].reaching(lease.project).write_now(finish, lease, Done(), 0.01)
            rush.done[lease.job] += 1
    assert world.value("select count(*) from jobs where state = 'done'") == rush.added
    assert Counter(rush.done.values()) == {1: rush.added}
    assert_lanes_count_right(world)
    assert deadlocks(world) == before


def deadlocks(world: World) -> Any:
    world.value("select pg_stat_clear_snapshot()::text")
    return world.value("select deadlocks from pg_stat_database where datname = current_database()")
