"""Worlds for the cases that are about this engine alone: a real store under a virtual clock, in one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.factories import World, open_store, plain_reply

from everkept.ports.clock import VirtualClock
from everkept.ports.models import Question
from everkept.store.receipts import ReceiptRow, receipts_of


@contextmanager
def a_world(folder: Path, **kw: Any) -> Iterator[World]:
    """A world on a new store of its own."""
    path = folder / "everkept.db"
    clock = VirtualClock()
    store = open_store(path, clock)
    world = World(store, folder / "home", clock, **kw)
    try:
        yield world
    finally:
        world.close()
        store.close()


def fact(quote: str, object: str, **more: Any) -> dict[str, Any]:
    """An item of a facts reply: the speaker lives in `object`."""
    return {
        "entity": "ana", "predicate": "lives in", "object": object, "statement": f"Ana lives in {object}.",
        "quote": quote, "seq": 1, "confidence": 0.9, "valid_from": "", "valid_until": "", "change": "state",
        "replaces": "", "holds": "one", "kind": "entity", "object_type": "place", **more,
    }  # fmt: skip


def replies(**of_step: Any) -> Callable[[Question], Any]:
    """`facts=[…]`: these to the questions of that step, the last one again for ever; plain ones to the others."""
    rest = {step: list(given) for step, given in of_step.items()}

    def answer(question: Question) -> Any:
        given = rest.get(question.step)
        if not given:
            return plain_reply(question)
        return given.pop(0) if len(given) > 1 else given[0]

    return answer


def say(world: World, text: str, *, thread: str = "t", subject: str = "ana") -> None:
    """One message, and the end of its window."""
    world.add(thread, text, subject=subject)
    world.end(thread)


def receipts(world: World) -> list[ReceiptRow]:
    places = world.rows("select stream_id, seq from events order by 1, 2")
    return world.read(receipts_of, world.project.id, places, world.settings)
