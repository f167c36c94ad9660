"""Which statements take many rows at once."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from everkept.store.batches import together
from everkept.store.connection import _compile
from everkept.store.dialect import postgres_dialect


def sql(statement: str) -> str:
    return _compile(text(statement), postgres_dialect()).sql


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("insert into workspaces(name, created_at) values(lower(:name), :now)", "a type is not known"),
        ("insert into unheard_of(name) values(:name)", "nor is that table"),
        ("insert into workspaces(name, created_at) values(:name, :now) returning id", "answers are a row each"),
        ("insert into workspaces(name, created_at) select :name, :now", "no list of values"),
        ("update streams set last_seq = last_seq + :n where id = :id", "a type is not known"),
        ("update streams set last_seq = :n where project_id = :project", "rows may meet"),
        ("delete from workspaces where id = :id", "neither"),
    ],
)
def test_what_cannot_be_sure_is_sent_row_by_row(statement: str, why: str) -> None:
    assert together(sql(statement)) is None, why
