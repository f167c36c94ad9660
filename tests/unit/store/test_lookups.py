"""Who asks the same at once shares the way to the database, and nobody is told what was true before they asked."""

from __future__ import annotations

import asyncio

import pytest

from everkept.store.lookups import Lookups


def test_who_asks_the_same_at_once_shares_an_answer_that_began_after_they_asked() -> None:
    async def story() -> None:
        lookups, truth, told = Lookups(), [0], list[int]()
        gates = [asyncio.Event(), asyncio.Event()]

        async def look() -> int:
            number = len(told)
            told.append(seen := truth[0])
            await gates[number].wait()
            return seen

        first = asyncio.create_task(lookups.look_up("q", look))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        truth[0] = 1  # after the first began: whoever asks from now on must hear of it
        others = [asyncio.create_task(lookups.look_up("q", look)) for _ in range(5)]
        await asyncio.sleep(0)
        others.pop().cancel()  # one leaves, and the others are answered all the same
        gates[0].set()
        assert await first == 0
        gates[1].set()
        assert await asyncio.gather(*others) == [1, 1, 1, 1]
        assert told == [0, 1]

    asyncio.run(story())


def test_an_error_of_a_lookup_is_told_to_all_and_not_kept() -> None:
    async def story() -> None:
        lookups, tries = Lookups(), list[int]()

        async def look() -> str:
            tries.append(1)
            if len(tries) == 1:
                raise OSError("gone")
            return "there"

        with pytest.raises(OSError, match="gone"):
            await lookups.look_up("q", look)
        assert await lookups.look_up("q", look) == "there"

    asyncio.run(story())
