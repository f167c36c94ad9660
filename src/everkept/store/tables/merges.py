"""Projects that were merged into others: how far each merge is, and what it had to call otherwise."""

from __future__ import annotations

from sqlalchemy import BigInteger, CheckConstraint, Column, ForeignKey, Index, Integer, Table, text

from everkept.store.tables.columns import AUTO, ID, Text, metadata, row_number, time

merges = Table(
    "merges", metadata, row_number(),
    Column("source_id", ID, ForeignKey("projects.id"), nullable=False),
    Column("target_id", ID, ForeignKey("projects.id"), nullable=False),
    Column("source_name", Text, nullable=False),  # as it was when it was merged
    Column("erasure", BigInteger, nullable=False),  # the newest erase of the store then
    Column("change", BigInteger),  # of the target, after the source's that all its followers had heard; null: not yet
    time("asked_at", required=True),
    Column("working_on", ID),  # the subject that moves; 0: what the project has beside its subjects
    Column("stage", Integer, nullable=False, server_default="0"),
    Column("after", BigInteger, nullable=False, server_default="0"),  # how far its stage has come
    Column("after_seq", BigInteger, nullable=False, server_default="0"),
    Column("moved", Text, nullable=False, server_default="{}"),  # rows by kind
    Column("renamed", Text, nullable=False, server_default="[]"),  # JSON list of [what, its name, its new name]
    time("done_at"),
    CheckConstraint("source_id <> target_id", name="itself"),
    Index("uq_merges_source", "source_id", unique=True, sqlite_where=text("done_at is null"),
          postgresql_where=text("done_at is null")),
    Index("ix_merges_target", "target_id", sqlite_where=text("done_at is null"),
          postgresql_where=text("done_at is null")),
    **AUTO,
)  # fmt: skip
