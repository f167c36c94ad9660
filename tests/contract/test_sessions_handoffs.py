"""However many handoffs are open, the right one is chosen and few are looked at (H06)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from tests.contract.test_sessions import Agents, prompt

from everkept.store import handoffs
from everkept.store.connection import Connection
from everkept.store.handoffs import OTHERS_MAX, NewHandoff, choose_handoff, leave_handoff

MANY = 536
SESSIONS = 5


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Agents]:
    """Sessions without a worktree have left many handoffs: the newest first, each on one of fifty branches."""
    made = Agents(tmp_path / "memory.db")
    for number in range(SESSIONS):
        made.told(f"s{number}", prompt(f"s{number}", f"Task {number}"), worktree=None)
    now = made.clock.now_us()
    add = text(
        "insert into handoffs(project_id, stream_id, worktree, branch, title, body, open_ends, state, created_at,"
        " expires_at) select :project, 1 + value % :sessions, null, 'b' || (value % 50), 'h' || value, 'body', '[]',"
        " 'open', :now - value, :now + 1000000000000 from numbers(:numbers)"
    )
    params = {"project": made.project, "sessions": SESSIONS, "now": now, "numbers": str(list(range(MANY)))}
    made.store.write_now(lambda conn: conn.run(add, params))
    yield made
    made.store.close()


def choose(world: Agents, **asked: Any) -> tuple[str | None, str, list[str]]:
    given = {"worktree": None, "branch": None, **asked}
    choice = world.store.read_now(lambda conn: choose_handoff(conn, world.project, **given))
    return (
        None if choice.chosen is None else choice.chosen.title, choice.because, [h.title for h in choice.others],
    )  # fmt: skip


def test_of_many_open_handoffs_the_one_that_fits_best_is_chosen(world: Agents) -> None:
    newest = [f"h{n}" for n in range(OTHERS_MAX + 1)]
    assert choose(world) == ("h0", "the newest of this project", newest[1:])
    assert choose(world, worktree="/x", branch="b7") == (
        "h7", "left on this branch", [title for title in newest if title != "h7"],
    )  # fmt: skip
    assert choose(world, branch="b33") == ("h33", "left on this branch", newest[:OTHERS_MAX])


def test_a_session_is_not_offered_what_it_left_itself(world: Agents) -> None:
    title, because, others = choose(world, for_stream=1)
    assert (title, because) == ("h1", "the newest of this project")
    assert not {f"h{n}" for n in range(0, MANY, SESSIONS)} & {title, *others}


def test_a_session_without_a_worktree_replaces_its_own_handoffs_and_no_others(world: Agents) -> None:
    now = world.clock.now_us()
    new = NewHandoff(project=world.project, stream=2, worktree=None, branch=None, title="new", body="b", open_ends=(),
                     left_at=now)  # fmt: skip
    left = world.store.write_now(leave_handoff, new)
    assert left.state == "open"
    mine = len(range(1, MANY, SESSIONS))
    assert world.rows("select state, count(*), min(stream_id), max(stream_id) from handoffs group by 1 order by 1") == [
        ("open", MANY - mine + 1, 1, SESSIONS), ("replaced", mine, 2, 2),
    ]  # fmt: skip


@pytest.mark.only_on("sqlite", reason="it asks SQLite for its plan; PostgreSQL's are guarded at their full size")
@pytest.mark.parametrize(
    ("statement", "index"),
    [
        ("_IN_WORKTREE", "ix_handoffs_open"), ("_ON_BRANCH", "ix_handoffs_branch"),
        ("_NEWEST_OPEN", "ix_handoffs_newest"), ("_IN_ITS_PLACE", "ix_handoffs_stream"),
        ("_BEFORE", "ix_handoffs_stream"), ("_AFTER", "ix_handoffs_stream"), ("_LAST_OF", "ix_handoffs_stream"),
    ],
)  # fmt: skip
def test_a_handoff_is_looked_up_by_an_index(world: Agents, statement: str, index: str) -> None:
    def plan(conn: Connection) -> str:
        asked = {"project": world.project, "worktree": "/x", "branch": "b1", "now": 0, "not_of": 0, "limit": 1,
                 "stream": 1, "at": 1}  # fmt: skip
        wanted = text(f"explain query plan {getattr(handoffs, statement)}")
        params = {name: asked[name] for name in wanted.compile().params}
        return "\n".join(row[3] for row in conn.rows(wanted, params))

    told = world.store.read_now(plan)
    assert index in told
    assert "SCAN h" not in told
