"""Every statement that Everkept has, so that none can be written without a scenario that is killed at it."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from sqlalchemy import TextClause
from sqlalchemy.sql.dml import UpdateBase

import everkept.derive
import everkept.store
import everkept.work
from everkept.store.connection import _compile
from everkept.store.dialect import sqlite_dialect

PACKAGES = (everkept.store, everkept.derive, everkept.work)
"""Where statements are; a test keeps SQL out of all other packages."""
_OF_A_SERVER = ("everkept.store.full_text_postgres.", "everkept.store.nearest_postgres.")
_WRITES = re.compile(r"\s*(?:with\b.*?\)\s*)?(insert|update|delete|replace)\b", re.IGNORECASE | re.DOTALL)


@lru_cache(maxsize=1)
def all_statements() -> dict[str, Any]:
    """{where it stands: the statement} of the constants of all modules, also those inside tuples and dicts."""
    found: dict[str, Any] = {}
    for package in PACKAGES:
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if ".migrations" in module.name:
                continue
            names = vars(importlib.import_module(module.name))
            for name, value in names.items():
                found |= dict(_inside(value, f"{module.name}.{name}"))
    return found


def _inside(value: Any, where: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, TextClause | UpdateBase):
        yield where, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _inside(inner, f"{where}[{getattr(key, '__name__', key)}]")
    elif isinstance(value, tuple | list):
        for index, inner in enumerate(value):
            yield from _inside(inner, f"{where}[{index}]")


def writing_statements() -> dict[str, str]:
    """{SQL as the driver gets it: where it stands} of those that write to a file, which is what is killed."""
    found: dict[str, str] = {}
    for where, statement in all_statements().items():
        if where.startswith(_OF_A_SERVER):
            continue
        sql = _compile(statement, sqlite_dialect()).sql
        if _WRITES.match(sql):
            found.setdefault(sql, where)
    return found


def compile_all() -> None:
    """Compile every statement once, so that a forked process finds it done."""
    for statement in all_statements().values():
        _compile(statement, sqlite_dialect())
