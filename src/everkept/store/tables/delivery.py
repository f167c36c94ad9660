"""The outbox and those who follow it."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, PrimaryKeyConstraint, Table, Text

from everkept.store.tables.columns import ID, metadata, project, time

changes = Table(
    "changes", metadata, project(),
    Column("seq", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("subject_id", ID),
    Column("stream_id", ID),
    Column("ref", Text, nullable=False),
    Column("data", Text, nullable=False, server_default="{}"),
    time("at", required=True),
    PrimaryKeyConstraint("project_id", "seq"),
    sqlite_with_rowid=False,
)  # fmt: skip

consumers = Table(
    "consumers", metadata, project(),
    Column("name", Text, nullable=False),
    Column("cursor", BigInteger, nullable=False, server_default="0"),
    Column("owner", Text),
    time("lease_until"),
    Column("fence", BigInteger, nullable=False, server_default="0"),
    time("acked_at"),
    time("created_at", required=True),
    PrimaryKeyConstraint("project_id", "name"),
)  # fmt: skip
