"""Lines of work across several agents' sessions: workstreams, their launches, ledgers and cursors."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
    text,
)

from everkept.store.tables.columns import AUTO, ID, Text, metadata, project, row_number, time

workstreams = Table(
    "workstreams", metadata, row_number(), project(),
    Column("name", Text, nullable=False),
    Column("fence", BigInteger, nullable=False, server_default="0"),  # of the newest lease on it
    time("created_at", required=True),
    UniqueConstraint("project_id", "name"),
    **AUTO,
)  # fmt: skip


def _workstream() -> Column[int]:
    return Column("workstream_id", ID, ForeignKey("workstreams.id"), nullable=False)


def _launch() -> Column[int]:
    return Column("launch_id", ID, ForeignKey("launches.id"), nullable=False)


workstream_selections = Table(
    "workstream_selections", metadata, project(),  # which one the launches of a worktree continue
    Column("place", Text, nullable=False),
    _workstream(),
    time("selected_at", required=True),
    PrimaryKeyConstraint("project_id", "place"),
    Index("ix_workstream_selections_workstream", "workstream_id"),
    sqlite_with_rowid=False,
)  # fmt: skip

_LIVE = "state in ('prepared', 'running')"
launches = Table(
    "launches", metadata, row_number(), project(), _workstream(),
    Column("key_hash", Text, nullable=False),  # of owner and idempotency key, keyed with the project's secret
    Column("request_hash", Text, nullable=False),
    Column("agent", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("directory", Text, nullable=False),
    Column("worktree", Text, nullable=False),
    Column("branch", Text),
    Column("fingerprint", Text, nullable=False),  # JSON: what the checkout said of itself
    Column("chosen_because", Text, nullable=False),
    Column("state", Text, nullable=False),  # domain/launch.py
    Column("fence", BigInteger, nullable=False),
    time("lease_until", required=True),
    Column("resumes", Text),  # native session that was to be resumed
    Column("native_id", Text),  # session that has the packet: the first that was linked, or that accepted it
    Column("packet", Text),  # null once erased
    Column("packet_from", BigInteger, nullable=False),
    Column("packet_through", BigInteger, nullable=False),
    Column("packet_shown", Integer, nullable=False),
    Column("packet_counted", Integer, nullable=False),
    Column("packet_erasure", BigInteger, nullable=False),  # the project's newest erase when it was made
    Column("offer_id", ID),  # the packet as an offer, with its exact bytes
    time("accepted_at"),
    Column("acknowledged", BigInteger, nullable=False, server_default="0"),  # numbered events without a gap
    Column("source_cursor", Text),
    Column("exit_code", Integer),
    time("prepared_at", required=True),
    time("ended_at"),
    UniqueConstraint("project_id", "key_hash"),
    Index("uq_launches_live", "workstream_id", unique=True,  # one live launch per workstream
          sqlite_where=text(_LIVE), postgresql_where=text(_LIVE)),
    Index("ix_launches_workstream", "workstream_id", "id"),
    Index("ix_launches_worktree", "project_id", "worktree", "id"),
    **AUTO,
)  # fmt: skip

launch_sessions = Table(
    "launch_sessions", metadata, project(), _workstream(), _launch(),
    Column("agent", Text, nullable=False),
    Column("native_id", Text, nullable=False),
    Column("stream_id", ID, ForeignKey("streams.id")),  # null until anything of it was taken in
    time("linked_at", required=True),
    PrimaryKeyConstraint("launch_id", "agent", "native_id"),
    Index("ix_launch_sessions_stream", "stream_id", "workstream_id"),
    Index("ix_launch_sessions_native", "project_id", "agent", "native_id"),
    Index("ix_launch_sessions_workstream", "workstream_id", "stream_id"),
    sqlite_with_rowid=False,
)  # fmt: skip

launch_events = Table(
    "launch_events", metadata, _launch(),  # which events a launch has told, as it counts them
    Column("number", BigInteger, nullable=False),
    Column("key_hash", Text, nullable=False),  # of its natural key
    PrimaryKeyConstraint("launch_id", "number"),
    sqlite_with_rowid=False,
)  # fmt: skip

launch_deliveries = Table(
    "launch_deliveries", metadata, _launch(),
    Column("key_hash", Text, nullable=False),
    Column("payload_hash", Text, nullable=False),
    PrimaryKeyConstraint("launch_id", "key_hash"),
    sqlite_with_rowid=False,
)  # fmt: skip

workstream_ledger = Table(
    "workstream_ledger", metadata, _workstream(),  # append-only: what linked sessions told, in the order of the commits
    Column("seq", BigInteger, nullable=False),  # the project's, of the change that told of it
    Column("stream_id", ID, ForeignKey("streams.id"), nullable=False),
    Column("first_seq", BigInteger, nullable=False),
    Column("last_seq", BigInteger, nullable=False),
    PrimaryKeyConstraint("workstream_id", "seq"),
    Index("ix_workstream_ledger_stream", "stream_id", "workstream_id"),
    sqlite_with_rowid=False,
)  # fmt: skip

workstream_cursors = Table(
    "workstream_cursors", metadata, _workstream(),
    Column("agent", Text, nullable=False),
    Column("native_id", Text, nullable=False),
    Column("delivered", BigInteger, nullable=False, server_default="0"),  # of the ledger
    Column("source_cursor", Text),  # how far its transcript was read, in the reader's own words
    PrimaryKeyConstraint("workstream_id", "agent", "native_id"),
    sqlite_with_rowid=False,
)  # fmt: skip
