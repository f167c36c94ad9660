"""The web pages of workstreams show who holds them, how far their agents were told, and what was said, as text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.stubs.agent_desk import a_desk
from tests.stubs.line_of_work import LineOfWork, prompt, said

from everkept import config
from everkept.doors.http.app import create_app

ADMIN = "the-operators-own-key"


@pytest.fixture
def line(tmp_path: Path) -> Iterator[LineOfWork]:
    with a_desk(tmp_path / "home") as desk:
        yield LineOfWork(desk)


def page(line: LineOfWork, path: str) -> str:
    app = create_app(line.desk.app, config.load({"EVERKEPT_ADMIN_KEY": ADMIN}))

    async def ask() -> httpx2.Response:
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:7411") as client:
            return await client.get(path, headers={"Authorization": f"Bearer {ADMIN}"})

    answer = line.desk.run(ask())
    assert answer.status_code == 200, answer.text
    return answer.text


def test_a_workstream_is_listed_with_its_holder_and_shown_with_lease_packet_and_ledger(line: LineOfWork) -> None:
    line.worked(prompt("Mend the lamp"), said("<b>The wick was wet</b>"), key="k1")
    held = line.prepare("k2", agent="codex")
    listed = page(line, "/workstreams")
    assert f"/workstreams/{held.workstream_id}" in listed
    assert f"{held.owner} with codex" in listed
    shown = page(line, f"/workstreams/{held.workstream_id}")
    assert "&lt;b&gt;The wick was wet&lt;/b&gt;" in shown
    assert "Mend the lamp" in shown
    launch = f"/workstreams/{held.workstream_id}/launches/{held.id}"
    assert launch in shown
    told = page(line, launch)
    assert held.packet is not None
    assert f"The ledger from {held.packet.start} to {held.packet.through}" in told
    assert "&lt;b&gt;The wick was wet&lt;/b&gt;" in told
    assert "Not taken up yet." in told


def test_the_ledger_is_searched_and_says_so_where_nothing_is_found(line: LineOfWork) -> None:
    launch = line.worked(prompt("Mend the lamp"), said("The wick was wet"), key="k1")
    found = page(line, f"/workstreams/{launch.workstream_id}?q=wick")
    assert "The wick was wet" in found
    assert "Mend the lamp" not in found
    assert "No event has all of these words" in page(line, f"/workstreams/{launch.workstream_id}?q=harbour")


def test_without_any_the_page_says_so(line: LineOfWork) -> None:
    assert "None yet." in page(line, "/workstreams")
