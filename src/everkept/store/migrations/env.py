"""Run by Alembic: migrate over the connection of the caller, who owns the transaction."""

from __future__ import annotations

from alembic import context

from everkept.store.tables import metadata


def _is_in_metadata(name: str | None, kind: str, _parents: object) -> bool:
    """Full text and its shadow tables are no tables of `metadata`; a migration writes them as SQL."""
    return kind != "table" or not (name or "").startswith(("passage_text", "passage_terms"))


context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    include_name=_is_in_metadata,
    render_as_batch=True,  # SQLite alters a table by making it again
)
with context.begin_transaction():
    context.run_migrations()
