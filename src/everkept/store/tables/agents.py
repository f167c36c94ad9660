"""Coding agents: sessions, pages, handoffs and offers."""

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

project_aliases = Table(
    "project_aliases", metadata,  # what a checkout says of itself → whose memory it is
    Column("kind", Text, nullable=False),  # marker, remote, root, common_dir, path
    Column("value", Text, nullable=False),
    project(),
    time("created_at", required=True),
    PrimaryKeyConstraint("kind", "value"),
    Index("ix_project_aliases_project", "project_id"),
    sqlite_with_rowid=False,
)  # fmt: skip

sessions = Table(
    "sessions", metadata,  # what a session's stream has beside its events
    Column("stream_id", ID, ForeignKey("streams.id"), primary_key=True, autoincrement=False),
    project(),
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
    time("started_at"),
    time("last_event_at"),
    Column("digested_seq", BigInteger, nullable=False, server_default="0"),
    Column("digest_hash", Text),
    Column("trivial_because", Text),  # why its digest made no page
    Column("finished_seq", BigInteger),  # of its newest digest that changed anything
    UniqueConstraint("stream_id", "project_id"),
    Index("ix_sessions_project", "project_id", "stream_id"),
    Index("ix_sessions_native", "agent", "native_id"),
    Index("ix_sessions_parent", "project_id", "agent", "parent",
          sqlite_where=text("parent is not null"), postgresql_where=text("parent is not null")),
    Index("ix_sessions_worktree", "project_id", "worktree"),
    Index("ix_sessions_transcript", "last_event_at",
          sqlite_where=text("transcript is not null"), postgresql_where=text("transcript is not null")),
    Index("uq_sessions_finished", "project_id", "finished_seq", unique=True,
          sqlite_where=text("finished_seq is not null"), postgresql_where=text("finished_seq is not null")),
)  # fmt: skip

natural_keys = Table(
    "natural_keys", metadata, project(),
    Column("key_hash", Text, nullable=False),  # keyed with the project's secret; never expires
    Column("stream_id", ID, nullable=False),
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
    time("read_at", required=True),
    sqlite_with_rowid=False,
)  # fmt: skip

_MAINTAINED = "kind <> 'session' and deleted_at is null and superseded_by is null"
_STANDING = "kind in ('rule', 'slot') and deleted_at is null and superseded_by is null"
pages = Table(
    "pages", metadata, row_number(), project(),
    Column("subject_id", ID, ForeignKey("subjects.id"), nullable=False),
    Column("kind", Text, nullable=False),  # session, decision, gotcha, procedure, concept, rule, note, slot
    Column("slug", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("stream_id", ID),  # the session that it is the digest of, or was distilled from
    Column("source", Text),  # the file that it came from
    Column("superseded_by", ID),
    time("created_at", required=True),
    time("updated_at", required=True),
    time("pinned_at"),  # no proposal changes it
    time("deleted_at"),  # its slug and source stay taken: what was deleted is not imported again
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
    **AUTO,
)  # fmt: skip

page_versions = Table(
    "page_versions", metadata,
    Column("page_id", ID, ForeignKey("pages.id"), nullable=False),
    Column("version", Integer, nullable=False),
    Column("base", Integer),  # the version it was written on
    Column("title", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("author", Text, nullable=False),  # digest, distiller, hand, import, disk or git's author
    Column("reason", Text),
    Column("content_hash", Text, nullable=False),
    time("created_at", required=True),
    PrimaryKeyConstraint("page_id", "version"),
    sqlite_with_rowid=False,
)  # fmt: skip

page_sections = Table(
    "page_sections", metadata, row_number(),  # of the newest version: what is searched
    Column("page_id", ID, ForeignKey("pages.id"), nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("anchor", Text, nullable=False),
    Column("heading", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("text_hash", Text, nullable=False),
    UniqueConstraint("page_id", "anchor"),
    **AUTO,
)  # fmt: skip

page_links = Table(
    "page_links", metadata,
    Column("page_id", ID, ForeignKey("pages.id"), nullable=False),
    Column("target", Text, nullable=False),  # a slug, whether or not there is such a page
    PrimaryKeyConstraint("page_id", "target"),
    Index("ix_page_links_target", "target"),
    sqlite_with_rowid=False,
)  # fmt: skip

handoffs = Table(
    "handoffs", metadata, row_number(), project(),
    Column("stream_id", ID, ForeignKey("streams.id"), nullable=False),  # the session that left it
    Column("worktree", Text),
    Column("branch", Text),
    Column("title", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("open_ends", Text, nullable=False),  # JSON list
    Column("state", Text, nullable=False),  # open, acknowledged, replaced, expired
    Column("replaced_by", ID),
    Column("acknowledged_by", Text),  # agent and native session
    time("created_at", required=True),
    time("expires_at", required=True),
    time("settled_at"),
    Index("ix_handoffs_project", "project_id", "created_at"),
    Index("ix_handoffs_open", "project_id", "state", "worktree", "created_at"),
    Index("ix_handoffs_newest", "project_id", "state", "created_at"),
    Index("ix_handoffs_branch", "project_id", "state", "branch", "created_at"),
    Index("ix_handoffs_stream", "stream_id"),
    **AUTO,
)  # fmt: skip

offers = Table(
    "offers", metadata, row_number(), project(),  # what was given to one session's context
    Column("agent", Text, nullable=False),
    Column("native_id", Text, nullable=False),
    Column("epoch", Integer, nullable=False),  # clear and compaction begin a new one
    Column("handoff_id", ID),
    Column("launch_id", ID),  # whose packet is in it
    Column("items", Text, nullable=False),  # JSON list of what it shows, by id and version
    Column("body", Text, nullable=False),  # the exact text
    Column("state", Text, nullable=False),  # offered, shown, acknowledged, expired
    time("offered_at", required=True),
    time("shown_at"),
    Column("shown_seq", BigInteger),  # of the receiving session's stream when it was shown
    time("acknowledged_at"),
    Index("ix_offers_receiver", "project_id", "agent", "native_id", "epoch"),
    Index("ix_offers_handoff", "handoff_id"),
    **AUTO,
)  # fmt: skip
