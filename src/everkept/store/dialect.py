"""Where the two databases differ, each difference once."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sqlalchemy import BindParameter, Integer, bindparam
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import ColumnElement
from sqlalchemy.sql.compiler import SQLCompiler


class in_list(ColumnElement[bool]):  # noqa: N801  (reads as SQL)
    """`column in (…)` for a list of any length given as one parameter: JSON text on SQLite, an array on PostgreSQL.

    One statement serves every length, and no list can exceed the limit of bound parameters.
    """

    inherit_cache = False
    type = Integer()  # type: ignore[assignment]

    def __init__(self, name: str, parameter: str) -> None:
        self.name = name
        self.parameter: BindParameter[Any] = bindparam(parameter)


@compiles(in_list, "sqlite")
def _in_list_sqlite(element: in_list, compiler: SQLCompiler, **kw: Any) -> str:
    return f"{element.name} in (select value from json_each({compiler.process(element.parameter, **kw)}))"


@compiles(in_list, "postgresql")
def _in_list_postgresql(element: in_list, compiler: SQLCompiler, **kw: Any) -> str:
    return f"{element.name} = any({compiler.process(element.parameter, **kw)})"


@lru_cache(maxsize=1)
def sqlite_dialect() -> Dialect:
    """One for the whole process: statements are compiled once a dialect, not once a store."""
    return sqlite.dialect(paramstyle="qmark")
