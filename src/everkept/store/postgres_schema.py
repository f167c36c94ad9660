"""The schema in a PostgreSQL database: what makes it, who may use it, and which one is there."""

from __future__ import annotations

from typing import Any

from everkept.errors import StoreNotSupported
from everkept.store.dialect import postgres_dialect
from everkept.store.migrate import (
    MOVING_IN,
    MOVING_IN_TOLD,
    SCHEMA,
    is_newer_and_known,
    revision,
    schema_statements,
    stamp_statements,
)


def making_statements() -> list[str]:
    """What makes the schema in an empty database, but for `SEED`."""
    return [*schema_statements(postgres_dialect()), *stamp_statements()]


def administrators_statements(role: str = "everkept") -> list[str]:
    """What an administrator runs in an empty database for a program that connects as `role` and owns nothing."""
    return [
        f"create role {role} login",
        *making_statements(),
        "insert into workspaces(id, name, created_at)"
        " values(1, 'default', (extract(epoch from now()) * 1000000)::bigint)",
        "select setval(pg_get_serial_sequence('workspaces', 'id'), 1)",
        *granting_statements(role),
    ]


def granting_statements(role: str) -> list[str]:
    """What `role` may do: granted again after an upgrade, for what that has made."""
    return [
        f"grant select, insert, update, delete on all tables in schema public to {role}",
        f"revoke insert, update, delete on alembic_version, schema_support from {role}",
        f"grant usage, select, update on all sequences in schema public to {role}",
    ]


def read_revision(raw: Any) -> str | None:
    """The migration that the database stands at; None where there is no schema."""
    if raw.execute("select to_regclass('alembic_version')").fetchone()[0] is None:
        return None
    row = raw.execute("select version_num from alembic_version").fetchone()
    return None if row is None else str(row[0])


def read_oldest_program(raw: Any, schema: int) -> int | None:
    """The oldest schema whose programs run on `schema`; None where the database says nothing of that one."""
    if raw.execute("select to_regclass('schema_support')").fetchone()[0] is None:
        return None
    row = raw.execute("select oldest_program from schema_support where schema = %s", (schema,)).fetchone()
    return None if row is None else int(row[0])


def require(raw: Any, found: str | None) -> None:
    """Raises StoreNotSupported for a schema that this program does not run on."""
    needed = revision(SCHEMA)
    if found is None:
        raise StoreNotSupported(
            "the database has no schema of Everkept yet: the first `everkept serve` makes it", known=needed
        )
    if found == needed or is_newer_and_known(int(found), SCHEMA, read_oldest_program(raw, int(found))):
        return
    if found == revision(MOVING_IN):
        raise StoreNotSupported(MOVING_IN_TOLD, moving_in=True)
    mend = "use a newer Everkept" if found > needed else "run `everkept db upgrade`"
    raise StoreNotSupported(
        f"the database has schema {found}, and this Everkept needs {needed}: {mend}", found=found, known=needed
    )
