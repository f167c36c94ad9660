"""Reviews: generations, what was observed, and proposals."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
    text,
)

from everkept.store.tables.columns import AUTO, ID, Text, metadata, project, row_number, time

review_states = Table(
    "review_states", metadata,  # one row a project: how far its sessions have been looked at
    Column("project_id", ID, ForeignKey("projects.id"), primary_key=True, autoincrement=False),
    Column("watermark", BigInteger, nullable=False, server_default="0"),  # every generation up to it has passed
    time("reached_at"),  # end of the watermark's session
    time("woke_at"),  # when the scheduler last looked
    time("rests_until"),  # it looks again no sooner, so that a restart changes nothing about its cadence
    CheckConstraint("watermark >= 0", name="watermark"),
)  # fmt: skip

generations = Table(
    "generations", metadata,  # a stretch of a session that was digested: what is reviewed once
    project(),
    Column("seq", BigInteger, nullable=False),  # the project's dense `finished_seq`
    Column("stream_id", ID),  # null: it was erased, and only the number is left
    Column("digest_hash", Text, nullable=False),
    Column("state", Text, nullable=False),  # waiting, reviewing, reviewed, skipped, dead, imported, superseded, erased
    Column("reason", Text),
    time("ended_at"),  # of the session, as far as it was digested
    time("finished_at", required=True),
    time("passed_at"),
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
    "reviews", metadata, row_number(),  # one generation's review: made once, by one conditional insert
    Column("workspace_id", ID, nullable=False),
    Column("project_id", ID, nullable=False),
    Column("stream_id", ID, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("asked_by", Text, nullable=False),  # scheduler, hand
    Column("refused", Text, nullable=False, server_default="[]"),  # JSON: (what, why) of drafts that were not staged
    Column("note", Text),
    Column("staged", Integer, nullable=False, server_default="0"),
    time("created_at", required=True),
    time("completed_at"),
    UniqueConstraint("workspace_id", "project_id", "stream_id", "generation"),
    ForeignKeyConstraint(["project_id", "workspace_id"], ["projects.id", "projects.workspace_id"],
                         onupdate="CASCADE"),
    ForeignKeyConstraint(["stream_id", "project_id"], ["sessions.stream_id", "sessions.project_id"],
                         onupdate="CASCADE"),
    ForeignKeyConstraint(["project_id", "stream_id", "generation"],
                         ["generations.project_id", "generations.stream_id", "generations.seq"], onupdate="CASCADE"),
    Index("ix_reviews_stream", "stream_id"),
    **AUTO,
)  # fmt: skip

observations = Table(
    "observations", metadata, project(),  # what reviews saw, so that it is counted across sessions
    Column("signature", Text, nullable=False),
    Column("stream_id", ID, ForeignKey("streams.id"), nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("shape", Text, nullable=False),
    Column("quote", Text, nullable=False),
    Column("detail", Text, nullable=False, server_default=""),
    time("at", required=True),
    PrimaryKeyConstraint("project_id", "signature", "stream_id", "seq"),
    Index("ix_observations_stream", "stream_id"),
    Index("ix_observations_corrections", "project_id", "at", sqlite_where=text("kind = 'correction'"),
          postgresql_where=text("kind = 'correction'")),
    sqlite_with_rowid=False,
)  # fmt: skip

proposals = Table(
    "proposals", metadata, row_number(), project(),
    Column("review_id", ID, ForeignKey("reviews.id")),  # none: made by hand, or by the count of outcomes
    Column("stream_id", ID),  # the session whose review made it
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
    time("created_at", required=True),
    time("expires_at", required=True),
    time("decided_at"),
    Column("page_id", ID),  # that its approval wrote
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
    **AUTO,
)  # fmt: skip

proposal_quotes = Table(
    "proposal_quotes", metadata,  # a proposal's evidence, a row a quote, so that an erase finds its own
    Column("proposal_id", ID, ForeignKey("proposals.id"), nullable=False),
    Column("stream_id", ID, ForeignKey("streams.id"), nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("quote", Text, nullable=False),
    PrimaryKeyConstraint("proposal_id", "stream_id", "seq"),
    Index("ix_proposal_quotes_stream", "stream_id"),
    sqlite_with_rowid=False,
)  # fmt: skip

page_looks = Table(
    "page_looks", metadata,  # a checkout was looked at, and what a page names was not there
    Column("page_id", ID, primary_key=True, autoincrement=False),
    Column("version", Integer, nullable=False),
    Column("gone", Text, nullable=False),  # JSON: places of what was gone among the names in the page, and no word
    time("first_at", required=True),
    ForeignKeyConstraint(["page_id", "version"], ["page_versions.page_id", "page_versions.version"],
                         ondelete="CASCADE"),
    sqlite_with_rowid=False,
)  # fmt: skip
