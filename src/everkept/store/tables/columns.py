"""What all tables are made with."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, Computed, ForeignKey, Integer, MetaData
from sqlalchemy import Text as AnyText
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import DDLCompiler

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)
Text = AnyText().with_variant(AnyText(collation="C"), "postgresql")
"""Compared by code point on both, whatever the locale of a database is: names and cursors sort alike."""
ID = BigInteger().with_variant(Integer, "sqlite")


def row_number() -> Column[int]:
    return Column("id", ID, primary_key=True, autoincrement=True)


def time(name: str, *, required: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=not required)


def project() -> Column[int]:
    return Column("project_id", ID, ForeignKey("projects.id"), nullable=False)


AUTO: dict[str, Any] = {"sqlite_autoincrement": True}


class Revised(Computed):
    """`revises` of an event's metadata as a column: made when it is read on SQLite, kept on PostgreSQL."""

    def __init__(self) -> None:
        super().__init__("metadata->>'revises'", persisted=False)


@compiles(Revised, "postgresql")
def _revised_postgresql(_column: Revised, _compiler: DDLCompiler, **_kw: Any) -> str:
    return "generated always as ((metadata::json->>'revises')::bigint) stored"
