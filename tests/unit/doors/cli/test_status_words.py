"""The words of the status page for NATS and a database server, and what makes it ask for attention."""

from __future__ import annotations

import asyncio
import io

import pytest
from rich.console import Console
from tests.stubs.fake_service import FakeApplication
from tests.unit.doors.http.test_web_overview import BEHIND, NATS, SERVER

from everkept.api import views as v
from everkept.doors.cli.status_page import server_words, status_page, unpublished_words


def test_what_nats_lacks_is_said_in_a_line() -> None:
    assert unpublished_words(BEHIND) == "1,207 changes of 2 projects, the oldest for 2 min"
    assert unpublished_words(v.Unpublished(projects=0, changes=0, oldest_s=None)) == "nothing: NATS has every change"


def test_a_server_is_said_in_a_line_with_what_there_should_be_none_of() -> None:
    assert server_words(SERVER) == "40 of 97 connections, 18 of them ours (3 processes of at most 6 each)"
    amiss = server_words(SERVER.model_copy(update={"deadlocks": 1, "conflicts": 2}))
    assert amiss.endswith("1 deadlock since it counts · 2 transactions of this process ended because of another")


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        ({"nats": NATS.model_copy(update={"connected": False, "trouble": "refused"})}, "nats.example:4222: refused"),
        (
            {"server": SERVER.model_copy(update={"deaf": "gone"})},
            "other processes are not heard, and polled instead: gone",
        ),
        ({"price_unknown": "the price of x is unknown"}, "the price of x is unknown"),
        ({}, None),
    ],
)
def test_what_wants_a_hand_is_said_first(figures: dict[str, object], said: str | None) -> None:
    status = asyncio.run(FakeApplication().services["default"].status())
    well = [check.model_copy(update={"ok": True}) for check in status.checks]
    console = Console(file=io.StringIO(), width=200)
    console.print(status_page(status.model_copy(update={"checks": well, **figures})))
    first, *rest = console.file.getvalue().splitlines()  # type: ignore[attr-defined]  # it is the buffer above
    assert first.startswith("● healthy" if said is None else "● needs attention")
    assert said is None or rest[0].strip().endswith(said)
