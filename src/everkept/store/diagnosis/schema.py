"""Causes that lie in a schema that was upgraded under this program."""

from __future__ import annotations

from everkept.store.connection import Connection
from everkept.store.diagnosis.causes import Finding
from everkept.store.diagnosis.look import Look
from everkept.store.migrate import SCHEMA
from everkept.store.newer_schema import find_newer_schema


def newer_schema(conn: Connection, _look: Look) -> list[Finding]:
    newer = find_newer_schema(conn)
    if newer is None:
        return []
    return [Finding(
        cause="schema_newer" if newer.works else "store_newer", what=str(newer), since=None,
        evidence={"schema": newer.schema, "known": SCHEMA},
        mend="pip install --upgrade everkept, then restart every process that is older",
    )]  # fmt: skip
