"""Background work: erasures, jobs and lanes, workers, providers and the journal of replies."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
    text,
)

from everkept.store.tables.columns import AUTO, ID, Text, metadata, project, row_number, time

erasures = Table(
    "erasures",
    metadata,
    row_number(),
    project(),
    Column("kind", Text, nullable=False),  # event, stream, subject, project
    Column("subject_id", ID),
    Column("stream_id", ID),
    Column("seq", BigInteger),
    time("asked_at", required=True),
    Column("working_on", ID),  # of a project: the subject that is being destroyed
    Column("stage", Integer, nullable=False, server_default="0"),
    Column("after", BigInteger, nullable=False, server_default="0"),  # how far its stage has come
    Column("after_seq", BigInteger, nullable=False, server_default="0"),
    Column("destroyed", Text, nullable=False, server_default="{}"),  # rows by kind
    Column("residue", Integer),  # what the probe found at the end
    Column("cleanings", Integer, nullable=False, server_default="0"),  # how often its end could not clean the file
    Column("unclean", Text),  # why the file may still hold the words, once it has ended
    time("done_at"),
    Index(
        "ix_erasures_open", "project_id", sqlite_where=text("done_at is null"), postgresql_where=text("done_at is null")
    ),
    **AUTO,
)

_HELD = "uses in ('held_local', 'held_model', 'held_embedder')"
jobs = Table(
    "jobs",
    metadata,
    row_number(),
    project(),
    Column("kind", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("lane_id", ID, ForeignKey("lanes.id"), nullable=False),
    # local, model, embedder: whose permits and circuit it needs; held_… while it is ready and its kind is paused
    Column("uses", Text, nullable=False),
    Column("serial_key", Text),
    Column("args", Text, nullable=False),
    Column("traceparent", Text),  # W3C's, of the first that asked for its next run, where that was traced
    Column("state", Text, nullable=False),
    time("due_at", required=True),
    time("first_due_at"),
    Column("generation", BigInteger, nullable=False, server_default="1"),
    Column("leased_generation", BigInteger, nullable=False, server_default="0"),
    Column("owner", Text),
    time("lease_until"),
    Column("fence", BigInteger, nullable=False, server_default="0"),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("crashes", Integer, nullable=False, server_default="0"),
    Column("error", Text),
    Column("error_class", Text),
    Column("history", Text, nullable=False, server_default="[]"),
    Column("budget", Integer, nullable=False, server_default="1"),  # how many times a hand gave it a new one, plus one
    Column("charged_s", Float, nullable=False, server_default="0"),  # what the claim charged its lane, to be corrected
    time("created_at", required=True),
    time("started_at"),
    time("finished_at"),
    UniqueConstraint("kind", "key"),
    CheckConstraint("state in ('waiting', 'ready', 'leased', 'done', 'dead', 'discarded')", name="state"),
    CheckConstraint("state = 'ready' or uses in ('local', 'model', 'embedder')", name="held"),
    CheckConstraint("(state = 'leased') = (owner is not null and lease_until is not null)", name="lease"),
    Index("ix_jobs_lane", "lane_id", "id"),
    Index(
        "ix_jobs_due",
        "due_at",
        "id",
        sqlite_where=text("state = 'waiting'"),
        postgresql_where=text("state = 'waiting'"),
    ),
    Index(
        "ix_jobs_ready",
        "lane_id",
        "uses",
        "serial_key",  # a claim skips a whole key that is leased
        "due_at",
        "id",
        sqlite_where=text("state = 'ready'"),
        postgresql_where=text("state = 'ready'"),
    ),
    Index("ix_jobs_held", "kind", sqlite_where=text(_HELD), postgresql_where=text(_HELD)),
    Index(
        "ix_jobs_leased",
        "lease_until",
        sqlite_where=text("state = 'leased'"),
        postgresql_where=text("state = 'leased'"),
    ),
    Index(
        "uq_jobs_serial",
        "serial_key",
        unique=True,
        sqlite_where=text("state = 'leased' and serial_key is not null"),
        postgresql_where=text("state = 'leased' and serial_key is not null"),
    ),
    Index(
        "ix_jobs_finished", "finished_at", sqlite_where=text("state = 'done'"), postgresql_where=text("state = 'done'")
    ),
    Index("ix_jobs_dead", "finished_at", sqlite_where=text("state = 'dead'"), postgresql_where=text("state = 'dead'")),
    # What `retry all` walks, without a look at the rows.
    Index(
        "ix_jobs_dead_project",
        "project_id",
        "id",
        "kind",
        "error_class",
        sqlite_where=text("state = 'dead'"),
        postgresql_where=text("state = 'dead'"),
    ),
    Index(
        "ix_jobs_unsettled",
        "project_id",
        sqlite_where=text("state in ('waiting', 'ready', 'leased') and kind <> 'open_window'"),
        postgresql_where=text("state in ('waiting', 'ready', 'leased') and kind <> 'open_window'"),
    ),
    # What status counts; a timer is in neither, unless it failed, so that an append pays for a comparison only.
    Index(
        "ix_jobs_stages",
        "kind",
        sqlite_where=text("state <> 'done' and kind in ('summarise_episode', 'extract_facts')"),
        postgresql_where=text("state <> 'done' and kind in ('summarise_episode', 'extract_facts')"),
    ),
    Index(
        "ix_jobs_troubled",
        "finished_at",
        "kind",
        sqlite_where=text("history <> '[]'"),
        postgresql_where=text("history <> '[]'"),
    ),
    **AUTO,
)

# Whose turn it is, in two levels: project, then subject. `served` is virtual time: run seconds over weight.
_READY = ("ready_local", "ready_model", "ready_embedder")


def _turns(name: str, *parent: str) -> list[Column[Any] | Index]:
    """`served`, what is running, and what is ready by what it uses, each with the index that finds the next turn."""
    counts: list[Column[Any] | Index] = [Column(c, Integer, nullable=False, server_default="0") for c in _READY]
    turns: list[Column[Any] | Index] = [
        Index(
            f"ix_{name}_{c}",
            *parent,
            "served",
            "id",  # many stand at the same place, and one is to be found at once
            sqlite_where=text(f"{c} > 0"),
            postgresql_where=text(f"{c} > 0"),
        )
        for c in _READY
    ]
    served = Column("served", Float, nullable=False, server_default="0")
    return [served, Column("running", Integer, nullable=False, server_default="0"), *counts, *turns]


lane_groups = Table(
    "lane_groups", metadata, row_number(), project(),
    Column("weight", Float, nullable=False, server_default="1"),
    Column("virtual", Float, nullable=False, server_default="0"),  # where a lane that was idle starts
    *_turns("lane_groups"),
    UniqueConstraint("project_id"),
    **AUTO,
)  # fmt: skip

lanes = Table(
    "lanes", metadata, row_number(),
    Column("group_id", ID, ForeignKey("lane_groups.id"), nullable=False),
    Column("subject_id", ID, nullable=False),  # 0 for work of the project itself
    *_turns("lanes", "group_id"),
    UniqueConstraint("group_id", "subject_id"),
    **AUTO,
)  # fmt: skip

workers = Table(
    "workers", metadata,
    Column("id", Text, primary_key=True),
    Column("slots", Integer, nullable=False),
    time("started_at", required=True),
    time("seen_at", required=True),
)  # fmt: skip

providers = Table(
    "providers", metadata,
    Column("pool", Text, primary_key=True),
    Column("circuit", Text, nullable=False, server_default="closed"),  # closed, open, limited
    Column("reason", Text),
    time("since"),
    time("not_before"),  # no claim before this; then one probe
    Column("failures", Integer, nullable=False, server_default="0"),  # in a row, for the back-off of probes
    Column("permits", Float, nullable=False),  # adaptive: at most this many jobs of the pool at once
)  # fmt: skip

pauses = Table(
    "pauses", metadata,  # what a hand has stopped, for the whole store
    Column("what", Text, nullable=False),  # kind, provider
    Column("name", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("paused_by", Text, nullable=False),
    time("since", required=True),
    CheckConstraint("what in ('kind', 'provider')", name="what"),
    PrimaryKeyConstraint("what", "name"),
    sqlite_with_rowid=False,
)  # fmt: skip

periodic = Table(
    "periodic", metadata,
    Column("name", Text, primary_key=True),
    Column("every_us", BigInteger, nullable=False),
    time("last_start_at"),
    time("last_success_at"),
    Column("last_error", Text),
    time("next_due_at", required=True),
    Column("rows_repaired", BigInteger, nullable=False, server_default="0"),
    Column("cursor", BigInteger, nullable=False, server_default="0"),
)  # fmt: skip

counters = Table(
    "counters",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Float, nullable=False, server_default="0"),
)

replies = Table(
    "replies", metadata, row_number(), project(),
    Column("subject_id", ID),
    Column("work", Text, nullable=False),
    Column("step", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("ask", Integer, nullable=False),
    Column("request_hash", LargeBinary, nullable=False),
    Column("recipe", Text, nullable=False, server_default="{}"),  # event range and ids shown, never the prompt's text
    Column("asked", Integer, nullable=False, server_default="1"),  # how many times this question was sent
    time("asked_at", required=True),
    Column("text", Text),  # null until a reply was committed
    Column("tokens_in", Integer),
    Column("tokens_out", Integer),
    Column("usd", Float),
    time("replied_at"),
    Column("rejected_because", Text),
    UniqueConstraint("project_id", "work", "step", "version", "model", "ask"),
    Index("ix_replies_time", "replied_at"),
    # What was spent, without a look at the rows, which hold whole replies: it is asked before every question.
    Index("ix_replies_spent", "project_id", "replied_at", "step", "model", "tokens_in", "tokens_out", "usd"),
    Index("ix_replies_subject", "subject_id"),
    **AUTO,
)  # fmt: skip
