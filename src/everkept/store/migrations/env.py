"""Run by Alembic: migrate over the connection of the caller, who owns the transaction, or print what would be run."""

from __future__ import annotations

from typing import Any

from alembic import context
from alembic.runtime.migration import MigrationContext, MigrationInfo

from everkept.store.migrate import support_statements
from everkept.store.tables import metadata

OURS_BESIDE = ("passage_text", "passage_terms", "schema_support")
"""Full text, its shadow tables and what migrations say of themselves are no tables of `metadata`."""


def _is_in_metadata(name: str | None, kind: str, _parents: object) -> bool:
    return kind != "table" or not (name or "").startswith(OURS_BESIDE)


def _say_who_goes_on(ctx: MigrationContext, step: MigrationInfo, *_more: Any, **_named: Any) -> None:
    """Each migration is bound to say it: one without `works_with` is an error, and nothing of it is kept."""
    migration: Any = step.up_revision
    for statement in support_statements(int(migration.revision), migration.module.works_with):
        ctx.execute(statement)


if context.is_offline_mode():
    where: dict[str, Any] = {"dialect_name": context.config.attributes["dialect"], "literal_binds": True}
else:
    where = {"connection": context.config.attributes["connection"]}
context.configure(
    **where,
    target_metadata=metadata,
    include_name=_is_in_metadata,
    on_version_apply=_say_who_goes_on,
    render_as_batch=True,  # SQLite alters a table by making it again
)
with context.begin_transaction():
    context.run_migrations()
