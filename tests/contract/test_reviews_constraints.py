"""The database itself refuses a review of a session for another project or workspace, and a second one (G12, G15)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract.reviewing import Reviewing

from everkept.store.projects import ensure_project
from everkept.store.reviews import open_review

REVIEW = """
insert into reviews(workspace_id, project_id, stream_id, generation, asked_by, created_at)
values(?, ?, ?, ?, 'raw', 1)"""
REFUSED = (
    "(FOREIGN KEY|UNIQUE|CHECK|NOT NULL) constraint failed|violates (foreign key|unique|check|not-null) constraint"
)
"""In the words of SQLite and of PostgreSQL."""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Reviewing]:
    """Projects 1 and 2 in workspace 1, workspace 2 beside it; session 1 of project 1 has generation 1."""
    made = Reviewing(tmp_path)
    made.digested("one")
    made.digested("two")
    made.write(ensure_project, "other", bytes(32))
    made.do("insert into workspaces(id, name, created_at) values(2, 'second', 1)")
    assert made.rows("select id, workspace_id from projects order by id") == [(1, 1), (2, 1)]
    assert made.rows("select project_id, seq, stream_id from generations order by seq") == [(1, 1, 1), (1, 2, 2)]
    yield made
    made.shut()


def refused(world: Reviewing, sql: str, *params: Any) -> None:
    with pytest.raises(Exception, match=REFUSED):
        world.do(sql, *params)


@pytest.mark.parametrize(
    ("workspace", "project", "stream", "generation"),
    [
        pytest.param(1, 2, 1, 1, id="another project's session"),
        pytest.param(2, 1, 1, 1, id="another workspace's project"),
        pytest.param(2, 2, 1, 1, id="another workspace and project"),
        pytest.param(1, 1, 1, 2, id="another session's generation"),
        pytest.param(1, 1, 2, 1, id="a generation of another session"),
        pytest.param(1, 1, 1, 9, id="a generation that never was"),
        pytest.param(None, 1, 1, 1, id="no workspace"),
        pytest.param(1, None, 1, 1, id="no project"),
        pytest.param(1, 1, None, 1, id="no session"),
        pytest.param(1, 1, 1, None, id="no generation"),
    ],
)
def test_no_insert_pairs_a_review_with_what_is_not_its_own(
    world: Reviewing, workspace: int | None, project: int | None, stream: int | None, generation: int | None
) -> None:
    with pytest.raises(Exception, match=REFUSED):
        world.do(REVIEW, workspace, project, stream, generation)
    assert world.value("select count(*) from reviews") == 0


@pytest.mark.parametrize(
    "change", ["project_id = 2", "workspace_id = 2", "stream_id = 2", "generation = 2", "project_id = 2, stream_id = 2"]
)
def test_no_update_pairs_a_review_with_what_is_not_its_own(world: Reviewing, change: str) -> None:
    world.do(REVIEW, 1, 1, 1, 1)
    refused(world, f"update reviews set {change}")
    assert world.rows("select workspace_id, project_id, stream_id, generation from reviews") == [(1, 1, 1, 1)]


@pytest.mark.parametrize("change", ["project_id = 2", "stream_id = null", "state = 'somewhere'", "state = 'reviewed'"])
def test_no_update_takes_a_generation_from_its_session_or_lets_it_pass_without_a_time(
    world: Reviewing, change: str
) -> None:
    refused(world, f"update generations set {change} where seq = 1")


def test_no_generation_is_of_another_projects_session(world: Reviewing) -> None:
    refused(world, "insert into generations values(2, 1, 1, '', 'waiting', null, null, 1, null)")


def test_a_generation_has_no_second_review(world: Reviewing) -> None:
    world.do(REVIEW, 1, 1, 1, 1)
    refused(world, REVIEW, 1, 1, 1, 1)
    world.do(REVIEW, 1, 1, 2, 2)
    refused(world, "update reviews set stream_id = 1, generation = 1 where generation = 2")


def test_what_is_under_review_is_neither_deleted_nor_parted_from_its_session(world: Reviewing) -> None:
    assert world.write(open_review, 1, 1, "scheduler") is not None
    refused(world, "delete from sessions where stream_id = 1")
    refused(world, "delete from generations where seq = 1")
    world.do("update sessions set project_id = 2 where stream_id = 1")
    assert world.rows("select project_id, stream_id, generation from reviews") == [(2, 1, 1)]
    assert world.rows("select project_id, seq from generations where stream_id = 1") == [(2, 1)]
