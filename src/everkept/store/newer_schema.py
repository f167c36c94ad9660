"""A schema that is newer than this program, as it is while versions follow each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import text

from everkept.store.connection import Connection
from everkept.store.migrate import SCHEMA

_NEWER: Final = text("select schema, oldest_program from schema_support where schema > :known")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewerSchema:
    """It was made before this program began, or under it."""

    schema: int
    works: bool
    """Whether this program goes on with it."""

    def __str__(self) -> str:
        but = "which goes on with it" if self.works else "which cannot work with it"
        return f"the schema is {self.schema}, newer than this program's {SCHEMA}, {but}"


def find_newer_schema(conn: Connection) -> NewerSchema | None:
    """None where the schema is this program's."""
    found = conn.first(_NEWER, {"known": SCHEMA})
    return None if found is None else NewerSchema(schema=found[0], works=found[1] <= SCHEMA)
