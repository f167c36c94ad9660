"""Calls of coroutines: handed over once a turn of the loop, answered once a group, and never lost on the way."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from everkept.errors import StoreUnavailable
from everkept.store.store import Store


@pytest.fixture
def shop(tmp_path: Path):
    """A store whose writer has a thread of its own; what is kept in it are names of counters."""
    store = Store(tmp_path / "shop.db")
    store.open()
    yield store
    store.close()


def keep(conn, what: str) -> str:
    conn.raw.execute("insert into counters(name, value) select ?, count(*) from counters", (what,))
    return what


def fail(conn) -> None:
    raise ValueError("no")


def kept(store: Store) -> list[str]:
    return store.read_now(
        lambda conn: [r[0] for r in conn.raw.execute("select name from counters order by value").fetchall()]
    )


def test_what_one_turn_of_the_loop_asks_keeps_its_order_and_gets_its_own_answers(shop: Store) -> None:
    async def ask() -> tuple[str | BaseException, BaseException | None, str | BaseException]:
        return await asyncio.gather(
            shop.write(keep, "a"), shop.write(fail), shop.write(keep, "c"), return_exceptions=True
        )

    first, second, third = asyncio.run(ask())
    assert (first, third, kept(shop)) == ("a", "c", ["a", "c"])
    assert isinstance(second, ValueError)


def test_a_caller_that_is_cancelled_takes_no_answer_of_the_others(shop: Store) -> None:
    async def ask() -> str:
        gone = asyncio.ensure_future(shop.write(keep, "gone"))
        stays = asyncio.ensure_future(shop.write(keep, "stays"))
        await asyncio.sleep(0)  # both have asked
        gone.cancel()
        return await stays

    assert asyncio.run(ask()) == "stays"


def test_a_loop_that_ended_meanwhile_does_not_stop_the_writer(shop: Store) -> None:
    held, asked = threading.Event(), threading.Event()

    def hold(conn) -> None:
        asked.set()
        held.wait()

    blocked = threading.Thread(target=shop.write_now, args=(hold,))
    blocked.start()
    asked.wait()

    async def leave() -> None:
        shop.writer.ask(keep, "left behind")
        await asyncio.sleep(0)  # handed over
        await asyncio.sleep(0)

    asyncio.run(leave())
    held.set()
    blocked.join()
    assert shop.write_now(keep, "later") == "later"
    assert kept(shop) == ["left behind", "later"]


def test_loops_of_two_threads_get_their_own_answers(shop: Store) -> None:
    async def ask(name: str) -> list[str]:
        return [await shop.write(keep, f"{name}{n}") for n in range(20)]

    answers: dict[str, list[str]] = {}
    threads = [
        threading.Thread(target=lambda name=name: answers.update({name: asyncio.run(ask(name))})) for name in "ab"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {name: [f"{name}{n}" for n in range(20)] for name in "ab"}


def test_a_closed_store_says_so(shop: Store) -> None:
    shop.close()
    with pytest.raises(StoreUnavailable):
        asyncio.run(shop.write(keep, "late"))
    with pytest.raises(StoreUnavailable):
        asyncio.run(shop.glance(lambda conn: conn.now()))


def test_a_store_that_closes_before_the_hand_over_tells_who_asked(shop: Store) -> None:
    async def ask() -> None:
        future = shop.writer.ask(keep, "late")
        shop.close()
        await future

    with pytest.raises(StoreUnavailable):
        asyncio.run(ask())


def test_a_glance_sees_what_was_committed(shop: Store) -> None:
    async def look() -> str:
        await shop.write(keep, "a")
        return await shop.glance(lambda conn: str(conn.raw.execute("select name from counters").fetchone()[0]))

    assert asyncio.run(look()) == "a"
