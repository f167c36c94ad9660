"""The outbox and those who follow it."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Integer,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
)

from everkept.store.tables.columns import AUTO, ID, Text, metadata, project, row_number, time

changes = Table(
    "changes", metadata, project(),
    Column("seq", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("subject_id", ID),
    Column("stream_id", ID),
    Column("ref", Text, nullable=False),
    Column("data", Text, nullable=False, server_default="{}"),
    time("at", required=True),
    Column("born", Text),  # project and number that it was made under, where a merge gave it others
    PrimaryKeyConstraint("project_id", "seq"),
    sqlite_with_rowid=False,
)  # fmt: skip

consumers = Table(
    "consumers", metadata, project(),
    Column("name", Text, nullable=False),
    Column("cursor", BigInteger, nullable=False, server_default="0"),
    Column("handed_out", BigInteger, nullable=False, server_default="0"),  # how far it was read since it was leased
    Column("owner", Text),
    time("lease_until"),
    Column("fence", BigInteger, nullable=False, server_default="0"),
    time("acked_at"),
    time("created_at", required=True),
    PrimaryKeyConstraint("project_id", "name"),
)  # fmt: skip

webhooks = Table(
    "webhooks", metadata, row_number(),  # a consumer named `webhook:<name>`, and where its changes go
    project(),
    Column("name", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("secret", Text, nullable=False),
    Column("old_secret", Text),  # signs beside the new one until then
    time("old_secret_until"),
    Column("kinds", Text),  # JSON list; null: every kind
    Column("subject_id", ID, ForeignKey("subjects.id")),  # null: everybody's
    Column("on_reject", Text, nullable=False, server_default="park"),
    Column("state", Text, nullable=False, server_default="active"),
    Column("reason", Text),  # why it is paused or dead
    Column("tries", Integer, nullable=False, server_default="0"),  # of the change at the cursor
    Column("rejections", Integer, nullable=False, server_default="0"),  # among them
    time("next_try_at"),
    time("failing_since"),  # no delivery has succeeded from there on
    time("resumed_at"),  # a hand let it go on: giving up counts from there
    Column("last_status", Integer),  # null: no answer came
    Column("last_error", Text),
    time("delivered_at"),
    time("created_at", required=True),
    UniqueConstraint("project_id", "name"),
    CheckConstraint("on_reject in ('park', 'hold')", name="on_reject"),
    CheckConstraint("state in ('active', 'paused', 'dead')", name="state"),
    **AUTO,
)  # fmt: skip

parked_changes = Table(
    "parked_changes", metadata,  # rejected by the receiver, and passed by
    Column("webhook_id", ID, ForeignKey("webhooks.id"), nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("status", Integer),
    Column("reason", Text, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("wanted", Integer, nullable=False, server_default="0"),  # 1: a hand asked for another try
    time("at", required=True),
    PrimaryKeyConstraint("webhook_id", "seq"),
    CheckConstraint("wanted in (0, 1)", name="wanted"),
    sqlite_with_rowid=False,
)  # fmt: skip
