"""The schema, for both databases.

Times are `BIGINT` microseconds since 1970 (UTC), written and compared by one clock; JSON is text. Row numbers are never
used twice (`AUTOINCREMENT`), because public ids and caches name rows by them.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Computed,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)
_Id = BigInteger().with_variant(Integer, "sqlite")


def _id() -> Column[int]:
    return Column("id", _Id, primary_key=True, autoincrement=True)


def _time(name: str, *, required: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=not required)


def _project() -> Column[int]:
    return Column("project_id", _Id, ForeignKey("projects.id"), nullable=False)


_AUTO: dict[str, Any] = {"sqlite_autoincrement": True}

workspaces = Table(
    "workspaces",
    metadata,
    _id(),
    Column("name", Text, nullable=False, unique=True),
    _time("created_at", required=True),
    **_AUTO,
)

projects = Table(
    "projects",
    metadata,
    _id(),
    Column("workspace_id", _Id, ForeignKey("workspaces.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("settings", Text, nullable=False, server_default="{}"),
    Column("secret", LargeBinary, nullable=False),  # keys the hashes of idempotency keys
    Column("change_seq", BigInteger, nullable=False, server_default="0"),
    Column("finished_seq", BigInteger, nullable=False, server_default="0"),  # of digests, in the order of their commits
    Column(
        "vectors_revision", BigInteger, nullable=False, server_default="0"
    ),  # raised when vectors or visibility change
    _time("created_at", required=True),
    _time("erased_at"),
    UniqueConstraint("workspace_id", "name"),
    UniqueConstraint("id", "workspace_id"),  # what reviews name, so that none can pair a project with another's
    **_AUTO,
)

subjects = Table(
    "subjects", metadata, _id(), _project(),
    Column("name", Text, nullable=False),
    Column("revision", BigInteger, nullable=False, server_default="0"),  # raised by every write of facts
    Column("epoch", BigInteger, nullable=False, server_default="0"),  # raised by every erase
    _time("created_at", required=True),
    _time("erased_at"),  # the name is then no longer its own; a later use of it makes a new subject
    UniqueConstraint("project_id", "name"),
    **_AUTO,
)  # fmt: skip

streams = Table(
    "streams",
    metadata,
    _id(),
    _project(),
    Column("subject_id", _Id, ForeignKey("subjects.id"), nullable=False),
    Column("lane_id", _Id, ForeignKey("lanes.id"), nullable=False),  # where its timer waits its turn
    Column("kind", Text, nullable=False),  # thread, session
    Column("name", Text, nullable=False),
    Column("settings", Text, nullable=False, server_default="{}"),
    Column("last_seq", BigInteger, nullable=False, server_default="0"),
    _time("last_recorded_at"),
    Column("covered_seq", BigInteger, nullable=False, server_default="0"),
    Column("pending_tokens", BigInteger, nullable=False, server_default="0"),  # of events that no window covers yet
    Column(
        "end_through", BigInteger, nullable=False, server_default="0"
    ),  # an explicit end asked for windows up to here
    _time("pulled_due_at"),  # a sibling's start pulled the timer to here; the next message clears it
    Column("summary", Text),
    Column("summary_through", BigInteger, nullable=False, server_default="0"),
    _time("created_at", required=True),
    _time("erased_at"),
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
    **_AUTO,
)

events = Table(
    "events", metadata,
    Column("stream_id", _Id, ForeignKey("streams.id"), nullable=False),
    Column("seq", BigInteger, nullable=False),
    _project(),
    Column("role", Text, nullable=False),
    Column("name", Text),
    Column("content", Text),  # null once erased
    _time("occurred_at", required=True),
    Column("zone_min", Integer),  # the sender's offset from UTC in minutes, where it was given
    _time("recorded_at", required=True),
    Column("key_hash", Text),
    Column("payload_hash", Text),
    Column("evidence", Integer, nullable=False),  # 0 never shown to an extractor, 1 shown, 2 said while memory was off
    Column("metadata", Text),
    Column("tokens", Integer, nullable=False),
    Column("model", Text),
    _time("erased_at"),
    Column("revises", BigInteger, Computed("metadata->>'revises'", persisted=False)),  # seq of the telling it completes
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
    "windows", metadata, _id(), _project(),
    Column("subject_id", _Id, nullable=False),
    Column("stream_id", _Id, ForeignKey("streams.id"), nullable=False),
    Column("start_seq", BigInteger, nullable=False),
    Column("end_seq", BigInteger, nullable=False),
    Column("prev_end", BigInteger),
    _time("opened_at", required=True),
    Column("opened_because", Text, nullable=False),
    Column("slices", Integer, nullable=False, server_default="1"),
    Column("skipped_because", Text),  # the setting that kept it from being worked
    Column("archived", Boolean, nullable=False, server_default=text("false")),
    Column("summary", Text),
    Column("learnings", Text),
    _time("summary_at"),
    _time("facts_at"),
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
    **_AUTO,
)  # fmt: skip

slices = Table(
    "slices", metadata,
    Column("window_id", _Id, ForeignKey("windows.id"), nullable=False),
    Column("slice", Integer, nullable=False),
    Column("summary", Text),
    Column("learnings", Text),
    _time("summary_at"),
    _time("facts_at"),
    Column("rejected", Text),  # drafts that were not taken, each with its reason
    PrimaryKeyConstraint("window_id", "slice"),
    sqlite_with_rowid=False,
)  # fmt: skip

passages = Table(
    "passages", metadata, _id(), _project(),
    Column("subject_id", _Id, nullable=False),
    Column("stream_id", _Id),
    Column("seq", BigInteger),
    Column("kind", Text, nullable=False),  # turn, fact, episode, page
    Column("ref_id", _Id),  # the fact, window or section of a page
    Column("speaker", Text),
    _time("occurred_at"),
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
    **_AUTO,
)  # fmt: skip

vectors = Table(
    "vectors", metadata,
    Column("passage_id", _Id, ForeignKey("passages.id"), nullable=False),
    Column("model", Text, nullable=False),
    _project(),
    Column("own", LargeBinary, nullable=False),  # of the passage's own text; sign bits or int8 (recall/vectors.py)
    Column("around", LargeBinary, nullable=False),  # with the turns before it
    PrimaryKeyConstraint("passage_id", "model"),
    Index("ix_vectors_project", "project_id", "model", "passage_id"),
    sqlite_with_rowid=False,
)  # fmt: skip

embeddings = Table(
    "embeddings", metadata, _project(),
    Column("model", Text, nullable=False),
    Column("dim", Integer, nullable=False),
    Column("text_hash", Text, nullable=False),
    Column("vector", LargeBinary, nullable=False),
    _time("created_at", required=True),
    PrimaryKeyConstraint("project_id", "model", "dim", "text_hash"),
    sqlite_with_rowid=False,
)  # fmt: skip

entities = Table(
    "entities", metadata, _id(), _project(),
    Column("subject_id", _Id, ForeignKey("subjects.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("norm", Text, nullable=False),
    Column("type", Text, nullable=False),
    _time("created_at", required=True),
    UniqueConstraint("subject_id", "norm"),
    **_AUTO,
)  # fmt: skip

entity_aliases = Table(
    "entity_aliases", metadata,
    Column("subject_id", _Id, nullable=False),
    Column("norm", Text, nullable=False),
    Column("entity_id", _Id, ForeignKey("entities.id"), nullable=False),
    Column("name", Text, nullable=False),
    PrimaryKeyConstraint("subject_id", "norm"),
    Index("ix_entity_aliases_entity", "entity_id"),
)  # fmt: skip

facts = Table(
    "facts",
    metadata,
    _id(),
    _project(),
    Column("subject_id", _Id, ForeignKey("subjects.id"), nullable=False),
    Column("entity_id", _Id, ForeignKey("entities.id"), nullable=False),
    Column("object_entity_id", _Id, ForeignKey("entities.id")),  # where the object is an entity of its own
    Column("window_id", _Id),  # null where a hand wrote it
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
    _time("valid_from"),
    _time("valid_until"),
    _time("said_at", required=True),
    Column("zone_min", Integer),  # the sender's offset from UTC when it was said: dates are shown in it
    Column("said_stream", _Id),
    Column("said_seq", BigInteger),
    Column("said_index", Integer, nullable=False),
    _time("recorded_at", required=True),
    # What follows is settled from the set of the subject's facts (domain/timeline.py), never by the order of work.
    _time("closed_at"),
    Column("closed_by", _Id),
    _time("closed_known_at"),
    _time("retired_at"),
    Column("retired_because", Text),
    Column("retired_by_hand", Boolean, nullable=False, server_default=text("false")),
    Column("superseded_by", _Id),
    Column("duplicate_of", _Id),
    Column("live", Boolean, nullable=False, server_default=text("true")),
    Column("unsettled", Boolean, nullable=False, server_default=text("false")),
    Column("pinned", Boolean, nullable=False, server_default=text("false")),
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
    Index("ix_facts_live", "project_id", sqlite_where=text("live"), postgresql_where=text("live")),
    **_AUTO,
)

fact_events = Table(
    "fact_events", metadata,
    Column("fact_id", _Id, ForeignKey("facts.id"), nullable=False),
    Column("stream_id", _Id, nullable=False),
    Column("seq", BigInteger, nullable=False),
    PrimaryKeyConstraint("fact_id", "stream_id", "seq"),
    Index("ix_fact_events_event", "stream_id", "seq"),
    sqlite_with_rowid=False,
)  # fmt: skip

forgotten = Table(
    "forgotten", metadata,  # what a hand had retired, while its window is derived again after an erase
    Column("window_id", _Id, ForeignKey("windows.id"), nullable=False),
    Column("statement", Text, nullable=False),  # its draft key, hashed with the project's secret
    PrimaryKeyConstraint("window_id", "statement"),
    sqlite_with_rowid=False,
)  # fmt: skip

verdicts = Table(
    "verdicts", metadata,
    Column("subject_id", _Id, nullable=False),
    Column("earlier_fact", _Id, ForeignKey("facts.id"), nullable=False),
    Column("later_fact", _Id, ForeignKey("facts.id"), nullable=False),
    Column("verdict", Text),  # old, new, both; null while the conflict is open
    Column("reason", Text),
    _time("opened_at", required=True),
    _time("judged_at"),
    PrimaryKeyConstraint("earlier_fact", "later_fact"),
    Index("ix_verdicts_subject", "subject_id"),
    Index("ix_verdicts_later", "later_fact"),
    sqlite_with_rowid=False,
)  # fmt: skip

# ---- coding agents

project_aliases = Table(
    "project_aliases", metadata,  # what a checkout says of itself → whose memory it is
    Column("kind", Text, nullable=False),  # marker, remote, root, common_dir, path
    Column("value", Text, nullable=False),
    _project(),
    _time("created_at", required=True),
    PrimaryKeyConstraint("kind", "value"),
    Index("ix_project_aliases_project", "project_id"),
    sqlite_with_rowid=False,
)  # fmt: skip

sessions = Table(
    "sessions", metadata,  # what a session's stream has beside its events
    Column("stream_id", _Id, ForeignKey("streams.id"), primary_key=True, autoincrement=False),
    _project(),
    Column("agent", Text, nullable=False),
    Column("native_id", Text, nullable=False),  # unique by the stream's name
    Column("parent", Text),  # native id of the session that started it as its sub-agent
    Column("origin", Text, nullable=False),  # hook, import: how it came first
    Column("title", Text),
    Column("cwd", Text),
    Column("worktree", Text),  # its top folder
    Column("branch", Text),
    Column("model", Text),
    Column("transcript", Text),  # a file of this machine that its hooks named
    Column("genuine", Integer, nullable=False, server_default="0"),  # genuine prompts and results; none: a phantom
    _time("started_at"),
    _time("last_event_at"),
    Column("digested_seq", BigInteger, nullable=False, server_default="0"),
    Column("digest_hash", Text),
    Column("trivial_because", Text),  # why its digest made no page
    Column("finished_seq", BigInteger),  # of its newest digest that changed anything
    UniqueConstraint("stream_id", "project_id"),
    Index("ix_sessions_project", "project_id", "stream_id"),
    Index("ix_sessions_native", "agent", "native_id"),
    Index("ix_sessions_worktree", "project_id", "worktree"),
    Index("ix_sessions_transcript", "last_event_at",
          sqlite_where=text("transcript is not null"), postgresql_where=text("transcript is not null")),
    Index("uq_sessions_finished", "project_id", "finished_seq", unique=True,
          sqlite_where=text("finished_seq is not null"), postgresql_where=text("finished_seq is not null")),
)  # fmt: skip

natural_keys = Table(
    "natural_keys", metadata, _project(),
    Column("key_hash", Text, nullable=False),  # keyed with the project's secret; never expires
    Column("stream_id", _Id, nullable=False),
    Column("seq", BigInteger, nullable=False),  # of the newest revision
    Column("payload_hash", Text, nullable=False),
    Column("rank", Integer, nullable=False),  # how much its source tells: the poorer never replaces the richer
    Column("heard", Integer, nullable=False),  # bits of the sources that told of it
    Column("prompt_at", BigInteger),  # of what has no id: when, so that two tellings of it are matched
    PrimaryKeyConstraint("project_id", "key_hash"),
    Index("ix_natural_keys_stream", "stream_id", "prompt_at"),
    Index("ix_natural_keys_words", "stream_id", "payload_hash", "prompt_at",
          sqlite_where=text("prompt_at is not null"), postgresql_where=text("prompt_at is not null")),
    sqlite_with_rowid=False,
)  # fmt: skip

transcripts = Table(
    "transcripts", metadata,  # files that were read, so that an unchanged one is passed by
    Column("path", Text, primary_key=True),
    Column("agent", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("mtime_ns", BigInteger, nullable=False),
    Column("inode", BigInteger, nullable=False),
    Column("end_hash", Text, nullable=False),  # of its last bytes: a rewrite may keep size and time
    _time("read_at", required=True),
    sqlite_with_rowid=False,
)  # fmt: skip

_MAINTAINED = "kind <> 'session' and deleted_at is null and superseded_by is null"
_STANDING = "kind in ('rule', 'slot') and deleted_at is null and superseded_by is null"
pages = Table(
    "pages", metadata, _id(), _project(),
    Column("subject_id", _Id, ForeignKey("subjects.id"), nullable=False),
    Column("kind", Text, nullable=False),  # session, decision, gotcha, procedure, concept, rule, note, slot
    Column("slug", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("stream_id", _Id),  # the session that it is the digest of, or was distilled from
    Column("source", Text),  # the file that it came from
    Column("superseded_by", _Id),
    _time("created_at", required=True),
    _time("updated_at", required=True),
    _time("pinned_at"),  # no proposal changes it
    _time("deleted_at"),  # its slug and source stay taken: what was deleted is not imported again
    UniqueConstraint("project_id", "slug"),
    Index("ix_pages_stream", "stream_id", sqlite_where=text("stream_id is not null"),
          postgresql_where=text("stream_id is not null")),
    Index("uq_pages_source", "project_id", "source", unique=True,
          sqlite_where=text("source is not null"), postgresql_where=text("source is not null")),
    Index("ix_pages_project", "project_id", "id"),
    Index("ix_pages_maintained", "project_id", "updated_at", sqlite_where=text(_MAINTAINED),
          postgresql_where=text(_MAINTAINED)),
    Index("ix_pages_standing", "project_id", "kind", "updated_at", sqlite_where=text(_STANDING),
          postgresql_where=text(_STANDING)),
    **_AUTO,
)  # fmt: skip

page_versions = Table(
    "page_versions", metadata,
    Column("page_id", _Id, ForeignKey("pages.id"), nullable=False),
    Column("version", Integer, nullable=False),
    Column("base", Integer),  # the version it was written on
    Column("title", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("author", Text, nullable=False),  # digest, distiller, hand, import, disk or git's author
    Column("reason", Text),
    Column("content_hash", Text, nullable=False),
    _time("created_at", required=True),
    PrimaryKeyConstraint("page_id", "version"),
    sqlite_with_rowid=False,
)  # fmt: skip

page_sections = Table(
    "page_sections", metadata, _id(),  # of the newest version: what is searched
    Column("page_id", _Id, ForeignKey("pages.id"), nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("anchor", Text, nullable=False),
    Column("heading", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("text_hash", Text, nullable=False),
    UniqueConstraint("page_id", "anchor"),
    **_AUTO,
)  # fmt: skip

page_links = Table(
    "page_links", metadata,
    Column("page_id", _Id, ForeignKey("pages.id"), nullable=False),
    Column("target", Text, nullable=False),  # a slug, whether or not there is such a page
    PrimaryKeyConstraint("page_id", "target"),
    sqlite_with_rowid=False,
)  # fmt: skip

handoffs = Table(
    "handoffs", metadata, _id(), _project(),
    Column("stream_id", _Id, ForeignKey("streams.id"), nullable=False),  # the session that left it
    Column("worktree", Text),
    Column("branch", Text),
    Column("title", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("open_ends", Text, nullable=False),  # JSON list
    Column("state", Text, nullable=False),  # open, acknowledged, replaced, expired
    Column("replaced_by", _Id),
    Column("acknowledged_by", Text),  # agent and native session
    _time("created_at", required=True),
    _time("expires_at", required=True),
    _time("settled_at"),
    Index("ix_handoffs_open", "project_id", "worktree", "created_at",
          sqlite_where=text("state = 'open'"), postgresql_where=text("state = 'open'")),
    Index("ix_handoffs_newest", "project_id", "created_at",
          sqlite_where=text("state = 'open'"), postgresql_where=text("state = 'open'")),
    Index("ix_handoffs_branch", "project_id", "branch", "created_at",
          sqlite_where=text("state = 'open'"), postgresql_where=text("state = 'open'")),
    Index("ix_handoffs_stream", "stream_id"),
    **_AUTO,
)  # fmt: skip

offers = Table(
    "offers", metadata, _id(), _project(),  # what was given to one session's context
    Column("agent", Text, nullable=False),
    Column("native_id", Text, nullable=False),
    Column("epoch", Integer, nullable=False),  # clear and compaction begin a new one
    Column("handoff_id", _Id),
    Column("items", Text, nullable=False),  # JSON list of what it shows, by id and version
    Column("body", Text, nullable=False),  # the exact text
    Column("state", Text, nullable=False),  # offered, shown, acknowledged, expired
    _time("offered_at", required=True),
    _time("shown_at"),
    Column("shown_seq", BigInteger),  # of the receiving session's stream when it was shown
    _time("acknowledged_at"),
    Index("ix_offers_receiver", "project_id", "agent", "native_id", "epoch"),
    Index("ix_offers_handoff", "handoff_id"),
    **_AUTO,
)  # fmt: skip

# ---- reviews

review_states = Table(
    "review_states", metadata,  # one row a project: how far its sessions have been looked at
    Column("project_id", _Id, ForeignKey("projects.id"), primary_key=True, autoincrement=False),
    Column("watermark", BigInteger, nullable=False, server_default="0"),  # every generation up to it has passed
    _time("reached_at"),  # end of the watermark's session
    _time("woke_at"),  # when the scheduler last looked
    _time("rests_until"),  # it looks again no sooner, so that a restart changes nothing about its cadence
    CheckConstraint("watermark >= 0", name="watermark"),
)  # fmt: skip

generations = Table(
    "generations", metadata,  # a stretch of a session that was digested: what is reviewed once
    _project(),
    Column("seq", BigInteger, nullable=False),  # the project's dense `finished_seq`
    Column("stream_id", _Id),  # null: it was erased, and only the number is left
    Column("digest_hash", Text, nullable=False),
    Column("state", Text, nullable=False),  # waiting, reviewing, reviewed, skipped, dead, imported, superseded, erased
    Column("reason", Text),
    _time("ended_at"),  # of the session, as far as it was digested
    _time("finished_at", required=True),
    _time("passed_at"),
    PrimaryKeyConstraint("project_id", "seq"),
    UniqueConstraint("project_id", "stream_id", "seq"),
    ForeignKeyConstraint(["stream_id", "project_id"], ["sessions.stream_id", "sessions.project_id"],
                         onupdate="CASCADE"),
    CheckConstraint("state in ('waiting', 'reviewing', 'reviewed', 'skipped', 'dead', 'imported', 'superseded', "
                    "'erased')", name="state"),
    CheckConstraint("(passed_at is null) = (state in ('waiting', 'reviewing'))", name="passed"),
    CheckConstraint("(stream_id is null) = (state = 'erased')", name="erased"),
    Index("ix_generations_stream", "stream_id"),
    Index("ix_generations_open", "project_id", "state", "seq", sqlite_where=text("passed_at is null"),
          postgresql_where=text("passed_at is null")),
    Index("ix_generations_dead", "project_id", sqlite_where=text("state = 'dead'"),
          postgresql_where=text("state = 'dead'")),
    sqlite_with_rowid=False,
)  # fmt: skip

reviews = Table(
    "reviews", metadata, _id(),  # one generation's review: made once, by one conditional insert
    Column("workspace_id", _Id, nullable=False),
    Column("project_id", _Id, nullable=False),
    Column("stream_id", _Id, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("asked_by", Text, nullable=False),  # scheduler, hand
    Column("refused", Text, nullable=False, server_default="[]"),  # JSON: (what, why) of drafts that were not staged
    Column("note", Text),
    Column("staged", Integer, nullable=False, server_default="0"),
    _time("created_at", required=True),
    _time("completed_at"),
    UniqueConstraint("workspace_id", "project_id", "stream_id", "generation"),
    ForeignKeyConstraint(["project_id", "workspace_id"], ["projects.id", "projects.workspace_id"],
                         onupdate="CASCADE"),
    ForeignKeyConstraint(["stream_id", "project_id"], ["sessions.stream_id", "sessions.project_id"],
                         onupdate="CASCADE"),
    ForeignKeyConstraint(["project_id", "stream_id", "generation"],
                         ["generations.project_id", "generations.stream_id", "generations.seq"], onupdate="CASCADE"),
    Index("ix_reviews_stream", "stream_id"),
    **_AUTO,
)  # fmt: skip

observations = Table(
    "observations", metadata, _project(),  # what reviews saw, so that it is counted across sessions
    Column("signature", Text, nullable=False),
    Column("stream_id", _Id, ForeignKey("streams.id"), nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("shape", Text, nullable=False),
    Column("quote", Text, nullable=False),
    Column("detail", Text, nullable=False, server_default=""),
    _time("at", required=True),
    PrimaryKeyConstraint("project_id", "signature", "stream_id", "seq"),
    Index("ix_observations_stream", "stream_id"),
    Index("ix_observations_corrections", "project_id", "at", sqlite_where=text("kind = 'correction'"),
          postgresql_where=text("kind = 'correction'")),
    sqlite_with_rowid=False,
)  # fmt: skip

proposals = Table(
    "proposals", metadata, _id(), _project(),
    Column("review_id", _Id, ForeignKey("reviews.id")),  # none: made by hand, or by the count of outcomes
    Column("stream_id", _Id),  # the session whose review made it
    Column("action", Text, nullable=False),  # create, append, add_section, replace_section, retire
    Column("kind", Text, nullable=False),  # of its page: rule, procedure, skill, gotcha
    Column("slug", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("section", Text, nullable=False, server_default=""),
    Column("section_hash", Text, nullable=False, server_default=""),
    Column("base", Integer),  # the version of the page that it was written on
    Column("body", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("confidence", Float, nullable=False),
    Column("signature", Text, nullable=False),  # of what it answers: its outcome is counted by it
    Column("fingerprint", Text, nullable=False),  # target, section and signature, not the wording
    Column("reviewer", Text, nullable=False),  # rules, or the model's name
    Column("state", Text, nullable=False),  # staged, approved, rejected, superseded, expired, conflict, rolled_back
    Column("state_reason", Text),
    Column("decided_by", Text),
    _time("created_at", required=True),
    _time("expires_at", required=True),
    _time("decided_at"),
    Column("page_id", _Id),  # that its approval wrote
    Column("version", Integer),  # that its approval made
    Column("previous", Integer),  # the version before it; none: it made the page
    Column("undone_by", Integer),  # the version that rolled it back
    CheckConstraint("state in ('staged', 'approved', 'rejected', 'superseded', 'expired', 'conflict', 'rolled_back')",
                    name="state"),
    Index("uq_proposals_staged", "project_id", "fingerprint", unique=True, sqlite_where=text("state = 'staged'"),
          postgresql_where=text("state = 'staged'")),
    Index("ix_proposals_fingerprint", "project_id", "fingerprint"),
    Index("ix_proposals_project", "project_id", "state", "id"),
    Index("ix_proposals_expiring", "expires_at", sqlite_where=text("state = 'staged'"),
          postgresql_where=text("state = 'staged'")),
    Index("ix_proposals_page", "page_id"),
    Index("ix_proposals_stream", "stream_id"),
    **_AUTO,
)  # fmt: skip

proposal_quotes = Table(
    "proposal_quotes", metadata,  # a proposal's evidence, a row a quote, so that an erase finds its own
    Column("proposal_id", _Id, ForeignKey("proposals.id"), nullable=False),
    Column("stream_id", _Id, ForeignKey("streams.id"), nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("quote", Text, nullable=False),
    PrimaryKeyConstraint("proposal_id", "stream_id", "seq"),
    Index("ix_proposal_quotes_stream", "stream_id"),
    sqlite_with_rowid=False,
)  # fmt: skip

erasures = Table(
    "erasures",
    metadata,
    _id(),
    _project(),
    Column("kind", Text, nullable=False),  # event, stream, subject, project
    Column("subject_id", _Id),
    Column("stream_id", _Id),
    Column("seq", BigInteger),
    _time("asked_at", required=True),
    Column("working_on", _Id),  # of a project: the subject that is being destroyed
    Column("stage", Integer, nullable=False, server_default="0"),
    Column("after", BigInteger, nullable=False, server_default="0"),  # how far its stage has come
    Column("after_seq", BigInteger, nullable=False, server_default="0"),
    Column("destroyed", Text, nullable=False, server_default="{}"),  # rows by kind
    Column("residue", Integer),  # what the probe found at the end
    Column("cleanings", Integer, nullable=False, server_default="0"),  # how often its end could not clean the file
    Column("unclean", Text),  # why the file may still hold the words, once it has ended
    _time("done_at"),
    Index(
        "ix_erasures_open", "project_id", sqlite_where=text("done_at is null"), postgresql_where=text("done_at is null")
    ),
    **_AUTO,
)

jobs = Table(
    "jobs",
    metadata,
    _id(),
    _project(),
    Column("kind", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("lane_id", _Id, ForeignKey("lanes.id"), nullable=False),
    Column("uses", Text, nullable=False),  # local, model, embedder: whose permits and circuit it needs
    Column("serial_key", Text),
    Column("args", Text, nullable=False),
    Column("state", Text, nullable=False),
    _time("due_at", required=True),
    _time("first_due_at"),
    Column("generation", BigInteger, nullable=False, server_default="1"),
    Column("leased_generation", BigInteger, nullable=False, server_default="0"),
    Column("owner", Text),
    _time("lease_until"),
    Column("fence", BigInteger, nullable=False, server_default="0"),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("crashes", Integer, nullable=False, server_default="0"),
    Column("error", Text),
    Column("error_class", Text),
    Column("history", Text, nullable=False, server_default="[]"),
    Column("budget", Integer, nullable=False, server_default="1"),  # how many times a hand gave it a new one, plus one
    Column("charged_s", Float, nullable=False, server_default="0"),  # what the claim charged its lane, to be corrected
    _time("created_at", required=True),
    _time("started_at"),
    _time("finished_at"),
    UniqueConstraint("kind", "key"),
    CheckConstraint("state in ('waiting', 'ready', 'leased', 'done', 'dead', 'discarded')", name="state"),
    CheckConstraint("(state = 'leased') = (owner is not null and lease_until is not null)", name="lease"),
    Index("ix_jobs_due", "due_at", sqlite_where=text("state = 'waiting'"), postgresql_where=text("state = 'waiting'")),
    Index(
        "ix_jobs_ready",
        "lane_id",
        "uses",
        "serial_key",  # a claim skips a whole key that is leased
        "due_at",
        sqlite_where=text("state = 'ready'"),
        postgresql_where=text("state = 'ready'"),
    ),
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
    **_AUTO,
)

# Whose turn it is, in two levels: project, then subject. `served` is virtual time: run seconds over weight.
_READY = ("ready_local", "ready_model", "ready_embedder")


def _turns(name: str, *parent: str) -> list[Column[Any] | Index]:
    """`served`, what is running, and what is ready by what it uses, each with the index that finds the next turn."""
    counts: list[Column[Any] | Index] = [Column(c, Integer, nullable=False, server_default="0") for c in _READY]
    turns: list[Column[Any] | Index] = [
        Index(f"ix_{name}_{c}", *parent, "served", sqlite_where=text(f"{c} > 0"), postgresql_where=text(f"{c} > 0"))
        for c in _READY
    ]
    served = Column("served", Float, nullable=False, server_default="0")
    return [served, Column("running", Integer, nullable=False, server_default="0"), *counts, *turns]


lane_groups = Table(
    "lane_groups", metadata, _id(), _project(),
    Column("weight", Float, nullable=False, server_default="1"),
    Column("virtual", Float, nullable=False, server_default="0"),  # where a lane that was idle starts
    *_turns("lane_groups"),
    UniqueConstraint("project_id"),
    **_AUTO,
)  # fmt: skip

lanes = Table(
    "lanes", metadata, _id(),
    Column("group_id", _Id, ForeignKey("lane_groups.id"), nullable=False),
    Column("subject_id", _Id, nullable=False),  # 0 for work of the project itself
    *_turns("lanes", "group_id"),
    UniqueConstraint("group_id", "subject_id"),
    **_AUTO,
)  # fmt: skip

workers = Table(
    "workers", metadata,
    Column("id", Text, primary_key=True),
    Column("slots", Integer, nullable=False),
    _time("started_at", required=True),
    _time("seen_at", required=True),
)  # fmt: skip

providers = Table(
    "providers", metadata,
    Column("pool", Text, primary_key=True),
    Column("circuit", Text, nullable=False, server_default="closed"),  # closed, open, limited
    Column("reason", Text),
    _time("since"),
    _time("not_before"),  # no claim before this; then one probe
    Column("failures", Integer, nullable=False, server_default="0"),  # in a row, for the back-off of probes
    Column("permits", Float, nullable=False),  # adaptive: at most this many jobs of the pool at once
)  # fmt: skip

periodic = Table(
    "periodic", metadata,
    Column("name", Text, primary_key=True),
    Column("every_us", BigInteger, nullable=False),
    _time("last_start_at"),
    _time("last_success_at"),
    Column("last_error", Text),
    _time("next_due_at", required=True),
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
    "replies", metadata, _id(), _project(),
    Column("subject_id", _Id),
    Column("work", Text, nullable=False),
    Column("step", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("ask", Integer, nullable=False),
    Column("request_hash", LargeBinary, nullable=False),
    Column("recipe", Text, nullable=False, server_default="{}"),  # event range and ids shown, never the prompt's text
    Column("asked", Integer, nullable=False, server_default="1"),  # how many times this question was sent
    _time("asked_at", required=True),
    Column("text", Text),  # null until a reply was committed
    Column("tokens_in", Integer),
    Column("tokens_out", Integer),
    Column("usd", Float),
    _time("replied_at"),
    Column("rejected_because", Text),
    UniqueConstraint("project_id", "work", "step", "version", "model", "ask"),
    Index("ix_replies_time", "replied_at"),
    Index("ix_replies_subject", "subject_id"),
    **_AUTO,
)  # fmt: skip

changes = Table(
    "changes", metadata, _project(),
    Column("seq", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("subject_id", _Id),
    Column("stream_id", _Id),
    Column("ref", Text, nullable=False),
    Column("data", Text, nullable=False, server_default="{}"),
    _time("at", required=True),
    PrimaryKeyConstraint("project_id", "seq"),
    sqlite_with_rowid=False,
)  # fmt: skip

consumers = Table(
    "consumers", metadata, _project(),
    Column("name", Text, nullable=False),
    Column("cursor", BigInteger, nullable=False, server_default="0"),
    Column("owner", Text),
    _time("lease_until"),
    Column("fence", BigInteger, nullable=False, server_default="0"),
    _time("acked_at"),
    _time("created_at", required=True),
    PrimaryKeyConstraint("project_id", "name"),
)  # fmt: skip

api_keys = Table(
    "api_keys", metadata, _id(),
    Column("project_id", _Id, ForeignKey("projects.id")),
    Column("name", Text, nullable=False),
    Column("token_hash", LargeBinary, nullable=False, unique=True),
    _time("created_at", required=True),
    _time("revoked_at"),
    **_AUTO,
)  # fmt: skip

FULL_TEXT_SQLITE = (
    # Columns hold analysed terms (domain/text.py), so the tokenizer only splits at spaces: `ascii` takes every other
    # character as a letter, also those that are newer than SQLite's Unicode tables. The scope is a term too. Ranking is
    # not SQLite's (recall/rank.py): the index says which column of which row holds a term, and keeps neither the places
    # in it nor a row of lengths a passage. It is a quarter smaller so, and a fifth cheaper to write.
    "create virtual table passage_text using fts5(scope, speaker, own, said, before,"
    " tokenize = \"ascii tokenchars '_-./:@&+#'\", detail = column, columnsize = 0)",
    "insert into passage_text(passage_text, rank) values('secure-delete', 1)",
    "create virtual table passage_terms using fts5vocab(passage_text, 'row')",
)
