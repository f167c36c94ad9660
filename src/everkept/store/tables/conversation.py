"""Workspaces, projects and their keys; conversations and what was made of them."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
    text,
)

from everkept.store.tables.columns import AUTO, ID, Revised, Text, metadata, project, row_number, time

workspaces = Table(
    "workspaces",
    metadata,
    row_number(),
    Column("name", Text, nullable=False, unique=True),
    time("created_at", required=True),
    **AUTO,
)

projects = Table(
    "projects",
    metadata,
    row_number(),
    Column("workspace_id", ID, ForeignKey("workspaces.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("settings", Text, nullable=False, server_default="{}"),
    Column("secret", LargeBinary, nullable=False),  # keys the hashes of idempotency keys
    Column("change_seq", BigInteger, nullable=False, server_default="0"),
    Column("finished_seq", BigInteger, nullable=False, server_default="0"),  # of digests, in the order of their commits
    Column(
        "vectors_revision", BigInteger, nullable=False, server_default="0"
    ),  # raised when vectors or visibility change
    Column("last_fence", BigInteger, nullable=False, server_default="0"),  # of consumers that were removed
    time("created_at", required=True),
    time("erased_at"),
    Column("merged_into", ID, ForeignKey("projects.id")),  # then only its name, keys and secret are left of it
    UniqueConstraint("workspace_id", "name"),
    UniqueConstraint("id", "workspace_id"),  # what reviews name, so that none can pair a project with another's
    Index(
        "ix_projects_merged",
        "merged_into",
        sqlite_where=text("merged_into is not null"),
        postgresql_where=text("merged_into is not null"),
    ),
    **AUTO,
)

api_keys = Table(
    "api_keys", metadata, row_number(),
    Column("project_id", ID, ForeignKey("projects.id")),
    Column("name", Text, nullable=False),
    Column("token_hash", LargeBinary, nullable=False, unique=True),
    time("created_at", required=True),
    time("revoked_at"),
    **AUTO,
)  # fmt: skip

subjects = Table(
    "subjects", metadata, row_number(), project(),
    Column("name", Text, nullable=False),
    Column("revision", BigInteger, nullable=False, server_default="0"),  # raised by every write of facts
    Column("epoch", BigInteger, nullable=False, server_default="0"),  # raised by every erase
    time("created_at", required=True),
    time("erased_at"),  # the name is then no longer its own; a later use of it makes a new subject
    Column("merged_into", ID),  # one of its name in the project that its own was merged into
    UniqueConstraint("project_id", "name"),
    Index("ix_subjects_merged", "merged_into", sqlite_where=text("merged_into is not null"),
          postgresql_where=text("merged_into is not null")),
    **AUTO,
)  # fmt: skip

streams = Table(
    "streams",
    metadata,
    row_number(),
    project(),
    Column("subject_id", ID, ForeignKey("subjects.id"), nullable=False),
    Column("lane_id", ID, ForeignKey("lanes.id"), nullable=False),  # where its timer waits its turn
    Column("kind", Text, nullable=False),  # thread, session
    Column("name", Text, nullable=False),
    Column("settings", Text, nullable=False, server_default="{}"),
    Column("last_seq", BigInteger, nullable=False, server_default="0"),
    time("last_recorded_at"),
    Column("covered_seq", BigInteger, nullable=False, server_default="0"),
    Column("pending_tokens", BigInteger, nullable=False, server_default="0"),  # of events that no window covers yet
    Column(
        "end_through", BigInteger, nullable=False, server_default="0"
    ),  # an explicit end asked for windows up to here
    time("pulled_due_at"),  # a sibling's start pulled the timer to here; the next message clears it
    Column("summary", Text),
    Column("summary_through", BigInteger, nullable=False, server_default="0"),
    time("created_at", required=True),
    time("erased_at"),
    CheckConstraint("covered_seq <= last_seq", name="covered"),
    UniqueConstraint("project_id", "kind", "name"),
    Index("ix_streams_subject", "subject_id"),
    Index(
        "ix_streams_subject_uncaptured",
        "subject_id",
        "pulled_due_at",
        sqlite_where=text("covered_seq < last_seq"),
        postgresql_where=text("covered_seq < last_seq"),
    ),
    Index(
        "ix_streams_uncaptured",
        "id",
        sqlite_where=text("covered_seq < last_seq"),
        postgresql_where=text("covered_seq < last_seq"),
    ),
    **AUTO,
)

events = Table(
    "events", metadata,
    Column("stream_id", ID, ForeignKey("streams.id"), nullable=False),
    Column("seq", BigInteger, nullable=False),
    project(),
    Column("role", Text, nullable=False),
    Column("name", Text),
    Column("content", Text),  # null once erased
    time("occurred_at", required=True),
    Column("zone_min", Integer),  # the sender's offset from UTC in minutes, where it was given
    time("recorded_at", required=True),
    Column("key_hash", Text),
    Column("payload_hash", Text),
    Column("evidence", Integer, nullable=False),  # 0 never shown to an extractor, 1 shown, 2 said while memory was off
    Column("metadata", Text),
    Column("tokens", Integer, nullable=False),
    Column("model", Text),
    time("erased_at"),
    Column("revises", BigInteger, Revised()),  # seq of the telling it completes
    PrimaryKeyConstraint("stream_id", "seq"),
    CheckConstraint("seq > 0", name="seq"),
    Index("uq_events_key", "project_id", "key_hash", unique=True,
          sqlite_where=text("key_hash is not null"), postgresql_where=text("key_hash is not null")),
    Index("ix_events_erased", "project_id",
          sqlite_where=text("erased_at is not null"), postgresql_where=text("erased_at is not null")),
    Index("ix_events_revises", "revises",
          sqlite_where=text("revises is not null"), postgresql_where=text("revises is not null")),
    sqlite_with_rowid=False,
)  # fmt: skip

windows = Table(
    "windows", metadata, row_number(), project(),
    Column("subject_id", ID, nullable=False),
    Column("stream_id", ID, ForeignKey("streams.id"), nullable=False),
    Column("start_seq", BigInteger, nullable=False),
    Column("end_seq", BigInteger, nullable=False),
    Column("prev_end", BigInteger),
    time("opened_at", required=True),
    Column("opened_because", Text, nullable=False),
    Column("slices", Integer, nullable=False, server_default="1"),
    Column("skipped_because", Text),  # the setting that kept it from being worked
    Column("archived", Boolean, nullable=False, server_default=text("false")),
    Column("summary", Text),
    Column("learnings", Text),
    time("summary_at"),
    time("facts_at"),
    # G5: windows tile the stream.
    CheckConstraint("start_seq = coalesce(prev_end, 0) + 1", name="tiles"),
    CheckConstraint("end_seq >= start_seq", name="forward"),
    UniqueConstraint("stream_id", "end_seq"),
    UniqueConstraint("stream_id", "prev_end"),
    ForeignKeyConstraint(["stream_id", "prev_end"], ["windows.stream_id", "windows.end_seq"]),
    Index("uq_windows_first", "stream_id", unique=True,
          sqlite_where=text("prev_end is null"), postgresql_where=text("prev_end is null")),
    Index("ix_windows_subject", "subject_id", "id"),
    Index("ix_windows_project", "project_id", "id"),
    Index("ix_windows_no_summary", "id",
          sqlite_where=text("summary_at is null and skipped_because is null"),
          postgresql_where=text("summary_at is null and skipped_because is null")),
    Index("ix_windows_no_facts", "id",
          sqlite_where=text("facts_at is null and skipped_because is null"),
          postgresql_where=text("facts_at is null and skipped_because is null")),
    Index("ix_windows_skipped", "project_id",
          sqlite_where=text("skipped_because is not null"), postgresql_where=text("skipped_because is not null")),
    Index("ix_windows_summary_at", "summary_at", "project_id", "opened_at"),
    Index("ix_windows_facts_at", "facts_at", "project_id", "opened_at"),
    **AUTO,
)  # fmt: skip

slices = Table(
    "slices", metadata,
    Column("window_id", ID, ForeignKey("windows.id"), nullable=False),
    Column("slice", Integer, nullable=False),
    Column("summary", Text),
    Column("learnings", Text),
    time("summary_at"),
    time("facts_at"),
    Column("rejected", Text),  # drafts that were not taken, each with its reason
    PrimaryKeyConstraint("window_id", "slice"),
    sqlite_with_rowid=False,
)  # fmt: skip

passages = Table(
    "passages", metadata, row_number(), project(),
    Column("subject_id", ID, nullable=False),
    Column("stream_id", ID),
    Column("seq", BigInteger),
    Column("kind", Text, nullable=False),  # turn, fact, episode, page
    Column("ref_id", ID),  # the fact, window or section of a page
    Column("speaker", Text),
    time("occurred_at"),
    Column("sitting", BigInteger),  # seq of the first turn of its sitting (domain/passage.py)
    Column("traits", Integer, nullable=False, server_default="0"),  # domain/passage.py
    Column("hidden", Boolean, nullable=False, server_default=text("false")),
    Column("embedded", Text),  # name of the embedders whose vectors it has
    Index("ix_passages_turn", "stream_id", "seq", unique=True,
          sqlite_where=text("kind = 'turn'"), postgresql_where=text("kind = 'turn'")),
    Index("ix_passages_ref", "kind", "ref_id",
          sqlite_where=text("ref_id is not null"), postgresql_where=text("ref_id is not null")),
    # Turns, which are written with every message, are found through their stream.
    Index("ix_passages_subject", "subject_id", "id",
          sqlite_where=text("kind <> 'turn'"), postgresql_where=text("kind <> 'turn'")),
    Index("ix_passages_unembedded", "project_id", "id",
          sqlite_where=text("embedded is null"), postgresql_where=text("embedded is null")),
    **AUTO,
)  # fmt: skip

vectors = Table(
    "vectors", metadata,
    Column("passage_id", ID, ForeignKey("passages.id"), nullable=False),
    Column("model", Text, nullable=False),
    project(),
    Column("subject_id", ID, nullable=False),
    Column("own", LargeBinary, nullable=False),  # of the passage's own text; sign bits or int8 (recall/vectors.py)
    Column("around", LargeBinary, nullable=False),  # with the turns before it
    PrimaryKeyConstraint("passage_id", "model"),
    Index("ix_vectors_project", "project_id", "model", "passage_id"),
    sqlite_with_rowid=False,
)  # fmt: skip

embeddings = Table(
    "embeddings", metadata, project(),
    Column("model", Text, nullable=False),
    Column("dim", Integer, nullable=False),
    Column("text_hash", Text, nullable=False),
    Column("vector", LargeBinary, nullable=False),
    time("created_at", required=True),
    PrimaryKeyConstraint("project_id", "model", "dim", "text_hash"),
    sqlite_with_rowid=False,
)  # fmt: skip

entities = Table(
    "entities", metadata, row_number(), project(),
    Column("subject_id", ID, ForeignKey("subjects.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("norm", Text, nullable=False),
    Column("type", Text, nullable=False),
    time("created_at", required=True),
    Column("merged_into", ID),  # the one that it is another name of, as a hand said
    Column("merged_by", Text),
    time("merged_at"),
    UniqueConstraint("subject_id", "norm"),
    Index("ix_entities_merged", "merged_into", sqlite_where=text("merged_into is not null"),
          postgresql_where=text("merged_into is not null")),
    **AUTO,
)  # fmt: skip

entity_aliases = Table(
    "entity_aliases", metadata,
    Column("subject_id", ID, nullable=False),
    Column("norm", Text, nullable=False),
    Column("entity_id", ID, ForeignKey("entities.id"), nullable=False),
    Column("name", Text, nullable=False),
    PrimaryKeyConstraint("subject_id", "norm"),
    Index("ix_entity_aliases_entity", "entity_id"),
)  # fmt: skip

facts = Table(
    "facts",
    metadata,
    row_number(),
    project(),
    Column("subject_id", ID, ForeignKey("subjects.id"), nullable=False),
    Column("entity_id", ID, ForeignKey("entities.id"), nullable=False),
    Column("object_entity_id", ID, ForeignKey("entities.id")),  # where the object is an entity of its own
    Column("window_id", ID),  # null where a hand wrote it
    Column(
        "draft_key", Text, nullable=False
    ),  # window, slice, version and place, or the hand's key: an effect has one name
    Column("predicate", Text, nullable=False),
    Column("predicate_norm", Text, nullable=False),
    Column("object", Text, nullable=False),
    Column("object_norm", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("quote", Text),
    Column("confidence", Float, nullable=False),
    Column("single_valued", Boolean),  # null where nobody knows
    Column("closes", Boolean, nullable=False),
    Column("correction", Boolean, nullable=False),
    Column("replaces", Text, nullable=False, server_default=""),
    time("valid_from"),
    time("valid_until"),
    time("said_at", required=True),
    Column("zone_min", Integer),  # the sender's offset from UTC when it was said: dates are shown in it
    Column("said_stream", ID),
    Column("said_seq", BigInteger),
    Column("said_index", Integer, nullable=False),
    time("recorded_at", required=True),
    # What follows is settled from the set of the subject's facts (domain/timeline.py), never by the order of work.
    time("closed_at"),
    Column("closed_by", ID),
    time("closed_known_at"),
    time("retired_at"),
    Column("retired_because", Text),
    Column("retired_by_hand", Boolean, nullable=False, server_default=text("false")),
    Column("superseded_by", ID),
    Column("duplicate_of", ID),
    Column("live", Boolean, nullable=False, server_default=text("true")),
    Column("unsettled", Boolean, nullable=False, server_default=text("false")),
    Column("pinned", Boolean, nullable=False, server_default=text("false")),
    Column("stated_by", Text),  # whose hand put another one right with it
    Column("corrects", Text),  # the draft key of that other one, and where it was said: it may be derived again
    Column("corrects_stream", ID),
    Column("corrects_seq", BigInteger),
    UniqueConstraint("subject_id", "draft_key"),
    Index("ix_facts_subject", "subject_id", "id"),
    Index("ix_facts_project", "project_id", "id"),
    Index("ix_facts_window", "window_id"),
    Index("ix_facts_slot", "entity_id", "predicate_norm"),
    Index(
        "ix_facts_object",
        "object_entity_id",
        sqlite_where=text("object_entity_id is not null"),
        postgresql_where=text("object_entity_id is not null"),
    ),
    Index("ix_facts_pinned", "subject_id", sqlite_where=text("pinned"), postgresql_where=text("pinned")),
    Index(
        "ix_facts_corrects",
        "corrects_stream",
        "corrects_seq",
        sqlite_where=text("corrects_stream is not null"),
        postgresql_where=text("corrects_stream is not null"),
    ),
    Index("ix_facts_live", "project_id", sqlite_where=text("live"), postgresql_where=text("live")),
    **AUTO,
)

fact_events = Table(
    "fact_events", metadata,
    Column("fact_id", ID, ForeignKey("facts.id"), nullable=False),
    Column("stream_id", ID, nullable=False),
    Column("seq", BigInteger, nullable=False),
    PrimaryKeyConstraint("fact_id", "stream_id", "seq"),
    Index("ix_fact_events_event", "stream_id", "seq"),
    sqlite_with_rowid=False,
)  # fmt: skip

forgotten = Table(
    "forgotten", metadata,  # what a hand had retired or pinned, while its window is derived again after an erase
    Column("window_id", ID, ForeignKey("windows.id"), nullable=False),
    Column("statement", Text, nullable=False),  # its draft key, hashed with the project's secret
    Column("retired", Boolean, nullable=False),
    Column("pinned", Boolean, nullable=False),
    PrimaryKeyConstraint("window_id", "statement"),
    sqlite_with_rowid=False,
)  # fmt: skip

verdicts = Table(
    "verdicts", metadata,
    Column("subject_id", ID, nullable=False),
    Column("earlier_fact", ID, ForeignKey("facts.id"), nullable=False),
    Column("later_fact", ID, ForeignKey("facts.id"), nullable=False),
    Column("verdict", Text),  # old, new, both; null while the conflict is open
    Column("reason", Text),
    time("opened_at", required=True),
    time("judged_at"),
    PrimaryKeyConstraint("earlier_fact", "later_fact"),
    Index("ix_verdicts_subject", "subject_id"),
    Index("ix_verdicts_later", "later_fact"),
    sqlite_with_rowid=False,
)  # fmt: skip
