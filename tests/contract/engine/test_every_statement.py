"""Every statement of the store is one that PostgreSQL can prepare: none was written for one database alone."""

from __future__ import annotations

import itertools
import re

import psycopg
import pytest
from tests.postgres import empty_database

from everkept.prove.statements import all_statements
from everkept.store.batches import together
from everkept.store.connection import _compile
from everkept.store.dialect import postgres_dialect

OF_ONE_FILE = re.compile(r"everkept\.store\.(full_text_sqlite|sqlite\w*|described\._SQLITE)\b")


def fault_of(raw: psycopg.Connection[object], sql: str) -> str | None:
    """Why the server cannot prepare it."""
    number = itertools.count(1)
    numbered = re.sub(r"%s", lambda _: f"${next(number)}", sql).replace("%%", "%")
    try:
        raw.execute(f"prepare tried as {numbered}".encode())
    except psycopg.Error as error:
        return str(error).splitlines()[0]
    raw.execute("deallocate tried")
    return None


@pytest.mark.only_on("postgresql", reason="SQLite knows no types that a statement could get wrong")
def test_every_statement_can_be_prepared() -> None:
    statements = {where: said for where, said in all_statements().items() if not OF_ONE_FILE.match(where)}
    assert len(statements) > 900
    with psycopg.connect(empty_database(), autocommit=True) as raw:
        faults = {
            where: fault
            for where, said in statements.items()
            if (fault := fault_of(raw, _compile(said, postgres_dialect()).sql)) is not None
        }
        for where, said in statements.items():
            batch = together(_compile(said, postgres_dialect()).sql)
            if batch is not None and (fault := fault_of(raw, batch.sql)) is not None:
                faults[f"{where}, many rows"] = fault
    if faults:
        pytest.fail("\n".join(f"{where}: {fault}" for where, fault in sorted(faults.items())))
