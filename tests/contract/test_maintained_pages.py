"""What a session's start reads of the pages: the right few, however many there are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text
from tests.contract.test_sessions import Agents

from everkept.domain.pages import PageText
from everkept.store import pages
from everkept.store.connection import Connection
from everkept.store.pages import NewPage, maintained_pages, write_page


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Agents]:
    made = Agents(tmp_path / "memory.db")
    yield made
    made.store.close()


def write(world: Agents, kind: str, slug: str) -> None:
    page = NewPage(project=world.project, kind=kind, slug=slug, text=PageText(title=slug, body="one"), author="hand")
    world.store.write_now(write_page, page)
    world.clock.advance(1)


def first(world: Agents, limit: int) -> list[str]:
    return [page.slug for page in world.store.read_now(maintained_pages, world.project, limit)]


def test_rules_come_first_then_slots_then_the_last_written(world: Agents) -> None:
    kinds = {"r1": "rule", "n1": "note", "s1": "slot", "d1": "decision", "r2": "rule", "n2": "note"}
    for slug, kind in kinds.items():
        write(world, kind, slug)
    assert first(world, 10) == ["r2", "r1", "s1", "n2", "d1", "n1"]
    assert first(world, 4) == ["r2", "r1", "s1", "n2"]
    assert first(world, 2) == ["r2", "r1"]


@pytest.mark.only_on("sqlite", reason="it asks SQLite for its plan; PostgreSQL's are guarded at their full size")
@pytest.mark.parametrize(
    ("statement", "index"),
    [("_STANDING_PAGES", "ix_pages_standing"), ("_OTHER_MAINTAINED_PAGES", "ix_pages_maintained")],
)
def test_the_pages_of_a_start_are_looked_up_by_an_index(world: Agents, statement: str, index: str) -> None:
    def plan(conn: Connection) -> list[str]:
        wanted = text(f"explain query plan {getattr(pages, statement)}")
        return [row[3] for row in conn.rows(wanted, {"project": world.project, "limit": 5})]

    told = world.store.read_now(plan)
    assert any(index in step for step in told)
    assert not any("SCAN g" in step or step == "USE TEMP B-TREE FOR ORDER BY" for step in told)
