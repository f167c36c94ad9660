"""The first schema. Made by scripts/freeze_first_migration.py; frozen with the first release."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None
works_with = 1

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
BEFORE_TABLES: dict[str, tuple[str, ...]] = {
    "sqlite": (),
    "postgresql": (
        (
            "create function instr(hay text, needle text) returns int language sql immutable parallel "
            "safe as $$ select strpos(hay, needle) $$"
        ),
        (
            "create function min(a bigint, b bigint) returns bigint language sql immutable strict "
            "parallel safe as $$ select least(a, b) $$"
        ),
        (
            "create function max(a bigint, b bigint) returns bigint language sql immutable strict "
            "parallel safe as $$ select greatest(a, b) $$"
        ),
        (
            "create function numbers(list text) returns table(value bigint) language sql immutable "
            "strict parallel safe rows 20 as $$ select v::bigint from "
            "json_array_elements_text(list::json) v $$"
        ),
        (
            "create function numbers(list text, key text) returns table(value bigint) language sql "
            "immutable strict parallel safe rows 20 as $$ select v::bigint from "
            "json_array_elements_text(list::json->key) v $$"
        ),
        (
            "create function words(list text) returns table(value text) language sql immutable strict "
            "parallel safe rows 20 as $$ select v from json_array_elements_text(list::json) v $$"
        ),
        (
            "create function objects(list text) returns table(value text) language sql immutable strict"
            " parallel safe rows 20 as $$ select v::text from json_array_elements(list::json) v $$"
        ),
        (
            "create function number_pairs(list text) returns table(one bigint, two bigint) language sql"
            " immutable strict parallel safe rows 20 as $$ select (v->>0)::bigint, (v->>1)::bigint from"
            " json_array_elements(list::json) v $$"
        ),
        (
            "create function word_pairs(list text) returns table(one text, two text) language sql "
            "immutable strict parallel safe rows 20 as $$ select v->>0, v->>1 from "
            "json_array_elements(list::json) v $$"
        ),
        (
            "create function word_in(object text, key text) returns text language sql immutable "
            "parallel safe as $$ select object::json->>key $$"
        ),
        (
            "create function word_at(list text, place int) returns text language sql immutable parallel"
            " safe as $$ select list::json->>place $$"
        ),
        (
            "create function number_in(object text, key text) returns bigint language sql immutable "
            "parallel safe as $$ select (object::json->>key)::numeric::bigint $$"
        ),
        (
            "create function flag_in(object text, key text) returns boolean language sql immutable "
            "parallel safe as $$ select (object::json->>key) in ('true', '1') $$"
        ),
        (
            "create function flag_in(object text, outer_key text, key text) returns boolean language "
            "sql immutable parallel safe as $$ select (object::json->outer_key->>key) in ('true', '1') "
            "$$"
        ),
    ),
}
AFTER_TABLES: dict[str, tuple[str, ...]] = {
    "sqlite": (
        (
            "create virtual table passage_text using fts5(scope, speaker, own, said, before, tokenize ="
            " \"ascii tokenchars '_-./:@&+#'\", detail = column, columnsize = 0)"
        ),
        ("insert into passage_text(passage_text, rank) values('secure-delete', 1)"),
        ("create virtual table passage_terms using fts5vocab(passage_text, 'row')"),
    ),
    "postgresql": (
        (
            "create table passage_index (passage_id bigint primary key, project_id bigint not null, "
            "subject_id bigint not null, stream_id bigint, kind text not null, lexemes tsvector not "
            "null)"
        ),
        ("create index ix_passage_index_lexemes on passage_index using gin (lexemes)"),
        (
            "create table passage_text (id bigint primary key, speaker text not null, own text not "
            "null, said text not null, before text not null)"
        ),
        (
            'create table passage_terms (term text collate "C" primary key, passages bigint not null) '
            "with (fillfactor = 50)"
        ),
        ("create table passage_totals (id int primary key, passages bigint not null, terms bigint not null)"),
        ("create extension if not exists vector"),
        (
            "alter table vectors add column signs bit varying generated always as (case when "
            "octet_length(around) between 1 and 64 then ('x' || encode(around, 'hex'))::bit varying "
            "end) stored"
        ),
        ("alter table vectors add column written bigint not null generated by default as identity"),
        (
            "create function renumber_vector() returns trigger language plpgsql as $$ begin new.written"
            " = nextval(pg_get_serial_sequence('vectors', 'written')); return new; end $$"
        ),
        (
            "create trigger vectors_renumbered before update of around, project_id, subject_id on "
            "vectors for each row execute function renumber_vector()"
        ),
        (
            "create index ix_vectors_written on vectors (project_id, model, written) include "
            "(passage_id, subject_id, signs) where signs is not null"
        ),
        (
            "create index ix_vectors_subject on vectors (subject_id, model) include (passage_id, "
            "project_id, written, signs) where signs is not null"
        ),
        ("create index ix_passages_hidden on passages (id) where hidden"),
        (
            'create table vector_graphs (project_id bigint not null, model text collate "C" not null, '
            "written_until bigint not null, name text not null, primary key (project_id, model))"
        ),
        ("alter table api_keys enable row level security"),
        ("alter table api_keys force row level security"),
        (
            "create policy of_reached_projects on api_keys using ((select "
            "nullif(current_setting('everkept.everything', true), '') = 'on')   or project_id = any "
            "((select string_to_array(nullif(current_setting('everkept.projects', true), ''), "
            "','))::bigint[]))"
        ),
        ("alter table changes enable row level security"),
        ("alter table changes force row level security"),
        (
            "create policy of_reached_projects on changes using ((select "
            "nullif(current_setting('everkept.everything', true), '') = 'on')   or project_id = any "
            "((select string_to_array(nullif(current_setting('everkept.projects', true), ''), "
            "','))::bigint[]))"
        ),
        ("alter table consumers enable row level security"),
        ("alter table consumers force row level security"),
        (
            "create policy of_reached_projects on consumers using ((select "
            "nullif(current_setting('everkept.everything', true), '') = 'on')   or project_id = any "
            "((select string_to_array(nullif(current_setting('everkept.projects', true), ''), "
            "','))::bigint[]))"
        ),
        ("alter table embeddings enable row level security"),
        ("alter table embeddings force row level security"),
        (
            "create policy of_reached_projects on embeddings using ((select "
            "nullif(current_setting('everkept.everything', true), '') = 'on')   or project_id = any "
            "((select string_to_array(nullif(current_setting('everkept.projects', true), ''), "
            "','))::bigint[]))"
        ),
        ("alter table erasures enable row level security"),
        ("alter table erasures force row level security"),
        (
            "create policy of_reached_projects on erasures using ((select "
            "nullif(current_setting('everkept.everything', true), '') = 'on')   or project_id = any "
            "((select string_to_array(nullif(current_setting('everkept.projects', true), ''), "
            "','))::bigint[]))"
        ),
        ("alter table natural_keys enable row level security"),
        ("alter table natural_keys force row level security"),
        (
            "create policy of_reached_projects on natural_keys using ((select "
            "nullif(current_setting('everkept.everything', true), '') = 'on')   or project_id = any "
            "((select string_to_array(nullif(current_setting('everkept.projects', true), ''), "
            "','))::bigint[]))"
        ),
        ("alter table offers enable row level security"),
        ("alter table offers force row level security"),
        (
            "create policy of_reached_projects on offers using ((select "
            "nullif(current_setting('everkept.everything', true), '') = 'on')   or project_id = any "
            "((select string_to_array(nullif(current_setting('everkept.projects', true), ''), "
            "','))::bigint[]))"
        ),
        ("alter table passages enable row level security"),
        ("alter table passages force row level security"),
        (
            "create policy of_reached_projects on passages using ((select "
            "nullif(current_setting('everkept.everything', true), '') = 'on')   or project_id = any "
            "((select string_to_array(nullif(current_setting('everkept.projects', true), ''), "
            "','))::bigint[]))"
        ),
        ("alter table project_aliases enable row level security"),
        ("alter table project_aliases force row level security"),
        (
            "create policy of_reached_projects on project_aliases using ((select "
            "nullif(current_setting('everkept.everything', true), '') = 'on')   or project_id = any "
            "((select string_to_array(nullif(current_setting('everkept.projects', true), ''), "
            "','))::bigint[]))"
        ),
        ("alter table replies enable row level security"),
        ("alter table replies force row level security"),
        (
            "create policy of_reached_projects on replies using ((select "
            "nullif(current_setting('everkept.everything', true), '') = 'on')   or project_id = any "
            "((select string_to_array(nullif(current_setting('everkept.projects', true), ''), "
            "','))::bigint[]))"
        ),
        ("alter table review_states enable row level security"),
        ("alter table review_states force row level security"),
        (
            "create policy of_reached_projects on review_states using ((select "
            "nullif(current_setting('everkept.everything', true), '') = 'on')   or project_id = any "
            "((select string_to_array(nullif(current_setting('everkept.projects', true), ''), "
            "','))::bigint[]))"
        ),
        ("alter table subjects enable row level security"),
        ("alter table subjects force row level security"),
        (
            "create policy of_reached_projects on subjects using ((select "
            "nullif(current_setting('everkept.everything', true), '') = 'on')   or project_id = any "
            "((select string_to_array(nullif(current_setting('everkept.projects', true), ''), "
            "','))::bigint[]))"
        ),
        ("alter table workstreams enable row level security"),
        ("alter table workstreams force row level security"),
        (
            "create policy of_reached_projects on workstreams using ((select "
            "nullif(current_setting('everkept.everything', true), '') = 'on')   or project_id = any "
            "((select string_to_array(nullif(current_setting('everkept.projects', true), ''), "
            "','))::bigint[]))"
        ),
        ("alter table entities enable row level security"),
        ("alter table entities force row level security"),
        (
            "create policy of_reached_projects on entities using ((select "
            "nullif(current_setting('everkept.everything', true), '') = 'on')   or project_id = any "
            "((select string_to_array(nullif(current_setting('everkept.projects', true), ''), "
            "','))::bigint[]))"
        ),
        ("alter table launches enable row level security"),
        ("alter table launches force row level security"),
        (
            "create policy of_reached_projects on launches using ((select "
            "nullif(current_setting('everkept.everything', true), '') = 'on')   or project_id = any "
            "((select string_to_array(nullif(current_setting('everkept.projects', true), ''), "
            "','))::bigint[]))"
        ),
        ("alter table pages enable row level security"),
        ("alter table pages force row level security"),
        (
            "create policy of_reached_projects on pages using ((select "
            "nullif(current_setting('everkept.everything', true), '') = 'on')   or project_id = any "
            "((select string_to_array(nullif(current_setting('everkept.projects', true), ''), "
            "','))::bigint[]))"
        ),
        ("alter table webhooks enable row level security"),
        ("alter table webhooks force row level security"),
        (
            "create policy of_reached_projects on webhooks using ((select "
            "nullif(current_setting('everkept.everything', true), '') = 'on')   or project_id = any "
            "((select string_to_array(nullif(current_setting('everkept.projects', true), ''), "
            "','))::bigint[]))"
        ),
        ("alter table workstream_cursors enable row level security"),
        ("alter table workstream_cursors force row level security"),
        (
            "create policy of_reached_projects on workstream_cursors using (exists (select 1 from "
            "workstreams whose where whose.id = workstream_cursors.workstream_id))"
        ),
        ("alter table workstream_selections enable row level security"),
        ("alter table workstream_selections force row level security"),
        (
            "create policy of_reached_projects on workstream_selections using ((select "
            "nullif(current_setting('everkept.everything', true), '') = 'on')   or project_id = any "
            "((select string_to_array(nullif(current_setting('everkept.projects', true), ''), "
            "','))::bigint[]))"
        ),
        ("alter table entity_aliases enable row level security"),
        ("alter table entity_aliases force row level security"),
        (
            "create policy of_reached_projects on entity_aliases using (exists (select 1 from entities "
            "whose where whose.id = entity_aliases.entity_id))"
        ),
        ("alter table facts enable row level security"),
        ("alter table facts force row level security"),
        (
            "create policy of_reached_projects on facts using ((select "
            "nullif(current_setting('everkept.everything', true), '') = 'on')   or project_id = any "
            "((select string_to_array(nullif(current_setting('everkept.projects', true), ''), "
            "','))::bigint[]))"
        ),
        ("alter table jobs enable row level security"),
        ("alter table jobs force row level security"),
        (
            "create policy of_reached_projects on jobs using ((select "
            "nullif(current_setting('everkept.everything', true), '') = 'on')   or project_id = any "
            "((select string_to_array(nullif(current_setting('everkept.projects', true), ''), "
            "','))::bigint[]))"
        ),
        ("alter table launch_deliveries enable row level security"),
        ("alter table launch_deliveries force row level security"),
        (
            "create policy of_reached_projects on launch_deliveries using (exists (select 1 from "
            "launches whose where whose.id = launch_deliveries.launch_id))"
        ),
        ("alter table launch_events enable row level security"),
        ("alter table launch_events force row level security"),
        (
            "create policy of_reached_projects on launch_events using (exists (select 1 from launches "
            "whose where whose.id = launch_events.launch_id))"
        ),
        ("alter table page_links enable row level security"),
        ("alter table page_links force row level security"),
        (
            "create policy of_reached_projects on page_links using (exists (select 1 from pages whose "
            "where whose.id = page_links.page_id))"
        ),
        ("alter table page_sections enable row level security"),
        ("alter table page_sections force row level security"),
        (
            "create policy of_reached_projects on page_sections using (exists (select 1 from pages "
            "whose where whose.id = page_sections.page_id))"
        ),
        ("alter table page_versions enable row level security"),
        ("alter table page_versions force row level security"),
        (
            "create policy of_reached_projects on page_versions using (exists (select 1 from pages "
            "whose where whose.id = page_versions.page_id))"
        ),
        ("alter table parked_changes enable row level security"),
        ("alter table parked_changes force row level security"),
        (
            "create policy of_reached_projects on parked_changes using (exists (select 1 from webhooks "
            "whose where whose.id = parked_changes.webhook_id))"
        ),
        ("alter table streams enable row level security"),
        ("alter table streams force row level security"),
        (
            "create policy of_reached_projects on streams using ((select "
            "nullif(current_setting('everkept.everything', true), '') = 'on')   or project_id = any "
            "((select string_to_array(nullif(current_setting('everkept.projects', true), ''), "
            "','))::bigint[]))"
        ),
        ("alter table events enable row level security"),
        ("alter table events force row level security"),
        (
            "create policy of_reached_projects on events using ((select "
            "nullif(current_setting('everkept.everything', true), '') = 'on')   or project_id = any "
            "((select string_to_array(nullif(current_setting('everkept.projects', true), ''), "
            "','))::bigint[]))"
        ),
        ("alter table fact_events enable row level security"),
        ("alter table fact_events force row level security"),
        (
            "create policy of_reached_projects on fact_events using (exists (select 1 from facts whose "
            "where whose.id = fact_events.fact_id))"
        ),
        ("alter table handoffs enable row level security"),
        ("alter table handoffs force row level security"),
        (
            "create policy of_reached_projects on handoffs using ((select "
            "nullif(current_setting('everkept.everything', true), '') = 'on')   or project_id = any "
            "((select string_to_array(nullif(current_setting('everkept.projects', true), ''), "
            "','))::bigint[]))"
        ),
        ("alter table launch_sessions enable row level security"),
        ("alter table launch_sessions force row level security"),
        (
            "create policy of_reached_projects on launch_sessions using ((select "
            "nullif(current_setting('everkept.everything', true), '') = 'on')   or project_id = any "
            "((select string_to_array(nullif(current_setting('everkept.projects', true), ''), "
            "','))::bigint[]))"
        ),
        ("alter table observations enable row level security"),
        ("alter table observations force row level security"),
        (
            "create policy of_reached_projects on observations using ((select "
            "nullif(current_setting('everkept.everything', true), '') = 'on')   or project_id = any "
            "((select string_to_array(nullif(current_setting('everkept.projects', true), ''), "
            "','))::bigint[]))"
        ),
        ("alter table page_looks enable row level security"),
        ("alter table page_looks force row level security"),
        (
            "create policy of_reached_projects on page_looks using (exists (select 1 from pages whose "
            "where whose.id = page_looks.page_id))"
        ),
        ("alter table sessions enable row level security"),
        ("alter table sessions force row level security"),
        (
            "create policy of_reached_projects on sessions using ((select "
            "nullif(current_setting('everkept.everything', true), '') = 'on')   or project_id = any "
            "((select string_to_array(nullif(current_setting('everkept.projects', true), ''), "
            "','))::bigint[]))"
        ),
        ("alter table verdicts enable row level security"),
        ("alter table verdicts force row level security"),
        (
            "create policy of_reached_projects on verdicts using (exists (select 1 from facts whose "
            "where whose.id = verdicts.earlier_fact))"
        ),
        ("alter table windows enable row level security"),
        ("alter table windows force row level security"),
        (
            "create policy of_reached_projects on windows using ((select "
            "nullif(current_setting('everkept.everything', true), '') = 'on')   or project_id = any "
            "((select string_to_array(nullif(current_setting('everkept.projects', true), ''), "
            "','))::bigint[]))"
        ),
        ("alter table workstream_ledger enable row level security"),
        ("alter table workstream_ledger force row level security"),
        (
            "create policy of_reached_projects on workstream_ledger using (exists (select 1 from "
            "workstreams whose where whose.id = workstream_ledger.workstream_id))"
        ),
        ("alter table forgotten enable row level security"),
        ("alter table forgotten force row level security"),
        (
            "create policy of_reached_projects on forgotten using (exists (select 1 from windows whose "
            "where whose.id = forgotten.window_id))"
        ),
        ("alter table generations enable row level security"),
        ("alter table generations force row level security"),
        (
            "create policy of_reached_projects on generations using ((select "
            "nullif(current_setting('everkept.everything', true), '') = 'on')   or project_id = any "
            "((select string_to_array(nullif(current_setting('everkept.projects', true), ''), "
            "','))::bigint[]))"
        ),
        ("alter table slices enable row level security"),
        ("alter table slices force row level security"),
        (
            "create policy of_reached_projects on slices using (exists (select 1 from windows whose "
            "where whose.id = slices.window_id))"
        ),
        ("alter table reviews enable row level security"),
        ("alter table reviews force row level security"),
        (
            "create policy of_reached_projects on reviews using ((select "
            "nullif(current_setting('everkept.everything', true), '') = 'on')   or project_id = any "
            "((select string_to_array(nullif(current_setting('everkept.projects', true), ''), "
            "','))::bigint[]))"
        ),
        ("alter table proposals enable row level security"),
        ("alter table proposals force row level security"),
        (
            "create policy of_reached_projects on proposals using ((select "
            "nullif(current_setting('everkept.everything', true), '') = 'on')   or project_id = any "
            "((select string_to_array(nullif(current_setting('everkept.projects', true), ''), "
            "','))::bigint[]))"
        ),
        ("alter table proposal_quotes enable row level security"),
        ("alter table proposal_quotes force row level security"),
        (
            "create policy of_reached_projects on proposal_quotes using (exists (select 1 from "
            "proposals whose where whose.id = proposal_quotes.proposal_id))"
        ),
        ("alter table passage_text enable row level security"),
        ("alter table passage_text force row level security"),
        (
            "create policy of_reached_projects on passage_text using (exists (select 1 from passages "
            "whose where whose.id = passage_text.id))"
        ),
    ),
}


def upgrade() -> None:
    dialect = op.get_context().dialect.name
    for statement in BEFORE_TABLES[dialect]:
        op.execute(statement)
    _create_tables(_revises(dialect))
    for statement in AFTER_TABLES[dialect]:
        op.execute(statement)
    op.create_table(
        "schema_support",
        sa.Column("schema", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("oldest_program", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("schema", name="pk_schema_support"),
    )


def _revises(dialect: str) -> sa.Computed:
    if dialect == "sqlite":
        return sa.Computed("metadata->>'revises'", persisted=False)
    return sa.Computed("(metadata::json->>'revises')::bigint", persisted=True)


def _create_tables(revises: sa.Computed) -> None:
    op.create_table(
        "counters",
        sa.Column("name", TEXT, nullable=False),
        sa.Column("value", sa.Float(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_counters")),
    )
    op.create_table(
        "pauses",
        sa.Column("what", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("why", TEXT, nullable=False),
        sa.Column("paused_by", TEXT, nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("what in ('kind', 'provider')", name=op.f("ck_pauses_what")),
        sa.PrimaryKeyConstraint("what", "name", name=op.f("pk_pauses")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "periodic",
        sa.Column("name", TEXT, nullable=False),
        sa.Column("every_us", sa.BigInteger(), nullable=False),
        sa.Column("last_start_at", sa.BigInteger(), nullable=True),
        sa.Column("last_success_at", sa.BigInteger(), nullable=True),
        sa.Column("last_error", TEXT, nullable=True),
        sa.Column("next_due_at", sa.BigInteger(), nullable=False),
        sa.Column("rows_repaired", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("cursor", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_periodic")),
    )
    op.create_table(
        "providers",
        sa.Column("pool", TEXT, nullable=False),
        sa.Column("circuit", TEXT, server_default="closed", nullable=False),
        sa.Column("reason", TEXT, nullable=True),
        sa.Column("since", sa.BigInteger(), nullable=True),
        sa.Column("not_before", sa.BigInteger(), nullable=True),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("permits", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("pool", name=op.f("pk_providers")),
    )
    op.create_table(
        "transcripts",
        sa.Column("path", TEXT, nullable=False),
        sa.Column("agent", TEXT, nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("mtime_ns", sa.BigInteger(), nullable=False),
        sa.Column("inode", sa.BigInteger(), nullable=False),
        sa.Column("end_hash", TEXT, nullable=False),
        sa.Column("read_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("path", name=op.f("pk_transcripts")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "workers",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workers")),
    )
    op.create_table(
        "workspaces",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workspaces")),
        sa.UniqueConstraint("name", name=op.f("uq_workspaces_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "projects",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("workspace_id", ID, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("settings", TEXT, server_default="{}", nullable=False),
        sa.Column("secret", sa.LargeBinary(), nullable=False),
        sa.Column("change_seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("finished_seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("vectors_revision", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("last_fence", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("erased_at", sa.BigInteger(), nullable=True),
        sa.Column("merged_into", ID, nullable=True),
        sa.ForeignKeyConstraint(["merged_into"], ["projects.id"], name=op.f("fk_projects_merged_into")),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspaces.id"], name=op.f("fk_projects_workspace_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_projects")),
        sa.UniqueConstraint("id", "workspace_id", name=op.f("uq_projects_id_workspace_id")),
        sa.UniqueConstraint("workspace_id", "name", name=op.f("uq_projects_workspace_id_name")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_projects_merged",
        "projects",
        ["merged_into"],
        unique=False,
        sqlite_where=sa.text("merged_into is not null"),
        postgresql_where=sa.text("merged_into is not null"),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("project_id", ID, nullable=True),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_api_keys_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_api_keys_token_hash")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "changes",
        sa.Column("project_id", ID, nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("subject_id", ID, nullable=True),
        sa.Column("stream_id", ID, nullable=True),
        sa.Column("ref", TEXT, nullable=False),
        sa.Column("data", TEXT, server_default="{}", nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("born", TEXT, nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_changes_project_id")),
        sa.PrimaryKeyConstraint("project_id", "seq", name=op.f("pk_changes")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "consumers",
        sa.Column("project_id", ID, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("cursor", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("handed_out", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("owner", TEXT, nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=True),
        sa.Column("fence", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("acked_at", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_consumers_project_id")),
        sa.PrimaryKeyConstraint("project_id", "name", name=op.f("pk_consumers")),
    )
    op.create_table(
        "embeddings",
        sa.Column("project_id", ID, nullable=False),
        sa.Column("model", TEXT, nullable=False),
        sa.Column("dim", sa.Integer(), nullable=False),
        sa.Column("text_hash", TEXT, nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_embeddings_project_id")),
        sa.PrimaryKeyConstraint("project_id", "model", "dim", "text_hash", name=op.f("pk_embeddings")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "erasures",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("subject_id", ID, nullable=True),
        sa.Column("stream_id", ID, nullable=True),
        sa.Column("seq", sa.BigInteger(), nullable=True),
        sa.Column("asked_at", sa.BigInteger(), nullable=False),
        sa.Column("working_on", ID, nullable=True),
        sa.Column("stage", sa.Integer(), server_default="0", nullable=False),
        sa.Column("after", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("after_seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("destroyed", TEXT, server_default="{}", nullable=False),
        sa.Column("residue", sa.Integer(), nullable=True),
        sa.Column("cleanings", sa.Integer(), server_default="0", nullable=False),
        sa.Column("unclean", TEXT, nullable=True),
        sa.Column("done_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_erasures_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_erasures")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_erasures_open",
        "erasures",
        ["project_id"],
        unique=False,
        sqlite_where=sa.text("done_at is null"),
        postgresql_where=sa.text("done_at is null"),
    )
    op.create_table(
        "lane_groups",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("weight", sa.Float(), server_default="1", nullable=False),
        sa.Column("virtual", sa.Float(), server_default="0", nullable=False),
        sa.Column("served", sa.Float(), server_default="0", nullable=False),
        sa.Column("running", sa.Integer(), server_default="0", nullable=False),
        sa.Column("ready_local", sa.Integer(), server_default="0", nullable=False),
        sa.Column("ready_model", sa.Integer(), server_default="0", nullable=False),
        sa.Column("ready_embedder", sa.Integer(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_lane_groups_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_lane_groups")),
        sa.UniqueConstraint("project_id", name=op.f("uq_lane_groups_project_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_lane_groups_ready_embedder",
        "lane_groups",
        ["served", "id"],
        unique=False,
        sqlite_where=sa.text("ready_embedder > 0"),
        postgresql_where=sa.text("ready_embedder > 0"),
    )
    op.create_index(
        "ix_lane_groups_ready_local",
        "lane_groups",
        ["served", "id"],
        unique=False,
        sqlite_where=sa.text("ready_local > 0"),
        postgresql_where=sa.text("ready_local > 0"),
    )
    op.create_index(
        "ix_lane_groups_ready_model",
        "lane_groups",
        ["served", "id"],
        unique=False,
        sqlite_where=sa.text("ready_model > 0"),
        postgresql_where=sa.text("ready_model > 0"),
    )
    op.create_table(
        "merges",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("source_id", ID, nullable=False),
        sa.Column("target_id", ID, nullable=False),
        sa.Column("source_name", TEXT, nullable=False),
        sa.Column("erasure", sa.BigInteger(), nullable=False),
        sa.Column("change", sa.BigInteger(), nullable=True),
        sa.Column("asked_at", sa.BigInteger(), nullable=False),
        sa.Column("working_on", ID, nullable=True),
        sa.Column("stage", sa.Integer(), server_default="0", nullable=False),
        sa.Column("after", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("after_seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("moved", TEXT, server_default="{}", nullable=False),
        sa.Column("renamed", TEXT, server_default="[]", nullable=False),
        sa.Column("done_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("source_id <> target_id", name=op.f("ck_merges_itself")),
        sa.ForeignKeyConstraint(["source_id"], ["projects.id"], name=op.f("fk_merges_source_id")),
        sa.ForeignKeyConstraint(["target_id"], ["projects.id"], name=op.f("fk_merges_target_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_merges")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_merges_target",
        "merges",
        ["target_id"],
        unique=False,
        sqlite_where=sa.text("done_at is null"),
        postgresql_where=sa.text("done_at is null"),
    )
    op.create_index(
        "uq_merges_source",
        "merges",
        ["source_id"],
        unique=True,
        sqlite_where=sa.text("done_at is null"),
        postgresql_where=sa.text("done_at is null"),
    )
    op.create_table(
        "natural_keys",
        sa.Column("project_id", ID, nullable=False),
        sa.Column("key_hash", TEXT, nullable=False),
        sa.Column("stream_id", ID, nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("payload_hash", TEXT, nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("heard", sa.Integer(), nullable=False),
        sa.Column("prompt_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_natural_keys_project_id")),
        sa.PrimaryKeyConstraint("project_id", "key_hash", name=op.f("pk_natural_keys")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_natural_keys_stream", "natural_keys", ["stream_id", "prompt_at"], unique=False)
    op.create_index(
        "ix_natural_keys_words",
        "natural_keys",
        ["stream_id", "payload_hash", "prompt_at"],
        unique=False,
        sqlite_where=sa.text("prompt_at is not null"),
        postgresql_where=sa.text("prompt_at is not null"),
    )
    op.create_table(
        "offers",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("agent", TEXT, nullable=False),
        sa.Column("native_id", TEXT, nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("handoff_id", ID, nullable=True),
        sa.Column("launch_id", ID, nullable=True),
        sa.Column("items", TEXT, nullable=False),
        sa.Column("body", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("offered_at", sa.BigInteger(), nullable=False),
        sa.Column("shown_at", sa.BigInteger(), nullable=True),
        sa.Column("shown_seq", sa.BigInteger(), nullable=True),
        sa.Column("acknowledged_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_offers_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_offers")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_offers_handoff", "offers", ["handoff_id"], unique=False)
    op.create_index("ix_offers_receiver", "offers", ["project_id", "agent", "native_id", "epoch"], unique=False)
    op.create_table(
        "passages",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("subject_id", ID, nullable=False),
        sa.Column("stream_id", ID, nullable=True),
        sa.Column("seq", sa.BigInteger(), nullable=True),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("ref_id", ID, nullable=True),
        sa.Column("speaker", TEXT, nullable=True),
        sa.Column("occurred_at", sa.BigInteger(), nullable=True),
        sa.Column("sitting", sa.BigInteger(), nullable=True),
        sa.Column("traits", sa.Integer(), server_default="0", nullable=False),
        sa.Column("hidden", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.Column("embedded", TEXT, nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_passages_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_passages")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_passages_ref",
        "passages",
        ["kind", "ref_id"],
        unique=False,
        sqlite_where=sa.text("ref_id is not null"),
        postgresql_where=sa.text("ref_id is not null"),
    )
    op.create_index(
        "ix_passages_subject",
        "passages",
        ["subject_id", "id"],
        unique=False,
        sqlite_where=sa.text("kind <> 'turn'"),
        postgresql_where=sa.text("kind <> 'turn'"),
    )
    op.create_index(
        "ix_passages_turn",
        "passages",
        ["stream_id", "seq"],
        unique=True,
        sqlite_where=sa.text("kind = 'turn'"),
        postgresql_where=sa.text("kind = 'turn'"),
    )
    op.create_index(
        "ix_passages_unembedded",
        "passages",
        ["project_id", "id"],
        unique=False,
        sqlite_where=sa.text("embedded is null"),
        postgresql_where=sa.text("embedded is null"),
    )
    op.create_table(
        "project_aliases",
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("value", TEXT, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_project_aliases_project_id")),
        sa.PrimaryKeyConstraint("kind", "value", name=op.f("pk_project_aliases")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_project_aliases_project", "project_aliases", ["project_id"], unique=False)
    op.create_table(
        "replies",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("subject_id", ID, nullable=True),
        sa.Column("work", TEXT, nullable=False),
        sa.Column("step", TEXT, nullable=False),
        sa.Column("version", TEXT, nullable=False),
        sa.Column("model", TEXT, nullable=False),
        sa.Column("ask", sa.Integer(), nullable=False),
        sa.Column("request_hash", sa.LargeBinary(), nullable=False),
        sa.Column("recipe", TEXT, server_default="{}", nullable=False),
        sa.Column("asked", sa.Integer(), server_default="1", nullable=False),
        sa.Column("asked_at", sa.BigInteger(), nullable=False),
        sa.Column("text", TEXT, nullable=True),
        sa.Column("tokens_in", sa.Integer(), nullable=True),
        sa.Column("tokens_out", sa.Integer(), nullable=True),
        sa.Column("usd", sa.Float(), nullable=True),
        sa.Column("replied_at", sa.BigInteger(), nullable=True),
        sa.Column("rejected_because", TEXT, nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_replies_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_replies")),
        sa.UniqueConstraint(
            "project_id",
            "work",
            "step",
            "version",
            "model",
            "ask",
            name=op.f("uq_replies_project_id_work_step_version_model_ask"),
        ),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_replies_spent",
        "replies",
        ["project_id", "replied_at", "step", "model", "tokens_in", "tokens_out", "usd"],
        unique=False,
    )
    op.create_index("ix_replies_subject", "replies", ["subject_id"], unique=False)
    op.create_index("ix_replies_time", "replies", ["replied_at"], unique=False)
    op.create_table(
        "review_states",
        sa.Column("project_id", ID, autoincrement=False, nullable=False),
        sa.Column("watermark", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("reached_at", sa.BigInteger(), nullable=True),
        sa.Column("woke_at", sa.BigInteger(), nullable=True),
        sa.Column("rests_until", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("watermark >= 0", name=op.f("ck_review_states_watermark")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_review_states_project_id")),
        sa.PrimaryKeyConstraint("project_id", name=op.f("pk_review_states")),
    )
    op.create_table(
        "subjects",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("revision", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("epoch", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("erased_at", sa.BigInteger(), nullable=True),
        sa.Column("merged_into", ID, nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_subjects_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_subjects")),
        sa.UniqueConstraint("project_id", "name", name=op.f("uq_subjects_project_id_name")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_subjects_merged",
        "subjects",
        ["merged_into"],
        unique=False,
        sqlite_where=sa.text("merged_into is not null"),
        postgresql_where=sa.text("merged_into is not null"),
    )
    op.create_table(
        "workstreams",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("fence", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_workstreams_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workstreams")),
        sa.UniqueConstraint("project_id", "name", name=op.f("uq_workstreams_project_id_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "entities",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("subject_id", ID, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("norm", TEXT, nullable=False),
        sa.Column("type", TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("merged_into", ID, nullable=True),
        sa.Column("merged_by", TEXT, nullable=True),
        sa.Column("merged_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_entities_project_id")),
        sa.ForeignKeyConstraint(["subject_id"], ["subjects.id"], name=op.f("fk_entities_subject_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_entities")),
        sa.UniqueConstraint("subject_id", "norm", name=op.f("uq_entities_subject_id_norm")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_entities_merged",
        "entities",
        ["merged_into"],
        unique=False,
        sqlite_where=sa.text("merged_into is not null"),
        postgresql_where=sa.text("merged_into is not null"),
    )
    op.create_table(
        "lanes",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("group_id", ID, nullable=False),
        sa.Column("subject_id", ID, nullable=False),
        sa.Column("served", sa.Float(), server_default="0", nullable=False),
        sa.Column("running", sa.Integer(), server_default="0", nullable=False),
        sa.Column("ready_local", sa.Integer(), server_default="0", nullable=False),
        sa.Column("ready_model", sa.Integer(), server_default="0", nullable=False),
        sa.Column("ready_embedder", sa.Integer(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["group_id"], ["lane_groups.id"], name=op.f("fk_lanes_group_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_lanes")),
        sa.UniqueConstraint("group_id", "subject_id", name=op.f("uq_lanes_group_id_subject_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_lanes_ready_embedder",
        "lanes",
        ["group_id", "served", "id"],
        unique=False,
        sqlite_where=sa.text("ready_embedder > 0"),
        postgresql_where=sa.text("ready_embedder > 0"),
    )
    op.create_index(
        "ix_lanes_ready_local",
        "lanes",
        ["group_id", "served", "id"],
        unique=False,
        sqlite_where=sa.text("ready_local > 0"),
        postgresql_where=sa.text("ready_local > 0"),
    )
    op.create_index(
        "ix_lanes_ready_model",
        "lanes",
        ["group_id", "served", "id"],
        unique=False,
        sqlite_where=sa.text("ready_model > 0"),
        postgresql_where=sa.text("ready_model > 0"),
    )
    op.create_table(
        "launches",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("workstream_id", ID, nullable=False),
        sa.Column("key_hash", TEXT, nullable=False),
        sa.Column("request_hash", TEXT, nullable=False),
        sa.Column("agent", TEXT, nullable=False),
        sa.Column("owner", TEXT, nullable=False),
        sa.Column("directory", TEXT, nullable=False),
        sa.Column("worktree", TEXT, nullable=False),
        sa.Column("branch", TEXT, nullable=True),
        sa.Column("fingerprint", TEXT, nullable=False),
        sa.Column("chosen_because", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("lease_until", sa.BigInteger(), nullable=False),
        sa.Column("resumes", TEXT, nullable=True),
        sa.Column("native_id", TEXT, nullable=True),
        sa.Column("packet", TEXT, nullable=True),
        sa.Column("packet_from", sa.BigInteger(), nullable=False),
        sa.Column("packet_through", sa.BigInteger(), nullable=False),
        sa.Column("packet_shown", sa.Integer(), nullable=False),
        sa.Column("packet_counted", sa.Integer(), nullable=False),
        sa.Column("packet_erasure", sa.BigInteger(), nullable=False),
        sa.Column("offer_id", ID, nullable=True),
        sa.Column("accepted_at", sa.BigInteger(), nullable=True),
        sa.Column("acknowledged", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("source_cursor", TEXT, nullable=True),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("prepared_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_launches_project_id")),
        sa.ForeignKeyConstraint(["workstream_id"], ["workstreams.id"], name=op.f("fk_launches_workstream_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_launches")),
        sa.UniqueConstraint("project_id", "key_hash", name=op.f("uq_launches_project_id_key_hash")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_launches_workstream", "launches", ["workstream_id", "id"], unique=False)
    op.create_index("ix_launches_worktree", "launches", ["project_id", "worktree", "id"], unique=False)
    op.create_index(
        "uq_launches_live",
        "launches",
        ["workstream_id"],
        unique=True,
        sqlite_where=sa.text("state in ('prepared', 'running')"),
        postgresql_where=sa.text("state in ('prepared', 'running')"),
    )
    op.create_table(
        "pages",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("subject_id", ID, nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("slug", TEXT, nullable=False),
        sa.Column("title", TEXT, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("stream_id", ID, nullable=True),
        sa.Column("source", TEXT, nullable=True),
        sa.Column("superseded_by", ID, nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("pinned_at", sa.BigInteger(), nullable=True),
        sa.Column("deleted_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_pages_project_id")),
        sa.ForeignKeyConstraint(["subject_id"], ["subjects.id"], name=op.f("fk_pages_subject_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pages")),
        sa.UniqueConstraint("project_id", "slug", name=op.f("uq_pages_project_id_slug")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_pages_maintained",
        "pages",
        ["project_id", "updated_at"],
        unique=False,
        sqlite_where=sa.text("kind <> 'session' and deleted_at is null and superseded_by is null"),
        postgresql_where=sa.text("kind <> 'session' and deleted_at is null and superseded_by is null"),
    )
    op.create_index("ix_pages_project", "pages", ["project_id", "id"], unique=False)
    op.create_index(
        "ix_pages_standing",
        "pages",
        ["project_id", "kind", "updated_at"],
        unique=False,
        sqlite_where=sa.text("kind in ('rule', 'slot') and deleted_at is null and superseded_by is null"),
        postgresql_where=sa.text("kind in ('rule', 'slot') and deleted_at is null and superseded_by is null"),
    )
    op.create_index(
        "ix_pages_stream",
        "pages",
        ["stream_id"],
        unique=False,
        sqlite_where=sa.text("stream_id is not null"),
        postgresql_where=sa.text("stream_id is not null"),
    )
    op.create_index(
        "uq_pages_source",
        "pages",
        ["project_id", "source"],
        unique=True,
        sqlite_where=sa.text("source is not null"),
        postgresql_where=sa.text("source is not null"),
    )
    op.create_table(
        "vectors",
        sa.Column("passage_id", ID, nullable=False),
        sa.Column("model", TEXT, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("subject_id", ID, nullable=False),
        sa.Column("own", sa.LargeBinary(), nullable=False),
        sa.Column("around", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["passage_id"], ["passages.id"], name=op.f("fk_vectors_passage_id")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_vectors_project_id")),
        sa.PrimaryKeyConstraint("passage_id", "model", name=op.f("pk_vectors")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_vectors_project", "vectors", ["project_id", "model", "passage_id"], unique=False)
    op.create_table(
        "webhooks",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("url", TEXT, nullable=False),
        sa.Column("secret", TEXT, nullable=False),
        sa.Column("old_secret", TEXT, nullable=True),
        sa.Column("old_secret_until", sa.BigInteger(), nullable=True),
        sa.Column("kinds", TEXT, nullable=True),
        sa.Column("subject_id", ID, nullable=True),
        sa.Column("on_reject", TEXT, server_default="park", nullable=False),
        sa.Column("state", TEXT, server_default="active", nullable=False),
        sa.Column("reason", TEXT, nullable=True),
        sa.Column("tries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("rejections", sa.Integer(), server_default="0", nullable=False),
        sa.Column("next_try_at", sa.BigInteger(), nullable=True),
        sa.Column("failing_since", sa.BigInteger(), nullable=True),
        sa.Column("resumed_at", sa.BigInteger(), nullable=True),
        sa.Column("last_status", sa.Integer(), nullable=True),
        sa.Column("last_error", TEXT, nullable=True),
        sa.Column("delivered_at", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("on_reject in ('park', 'hold')", name=op.f("ck_webhooks_on_reject")),
        sa.CheckConstraint("state in ('active', 'paused', 'dead')", name=op.f("ck_webhooks_state")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_webhooks_project_id")),
        sa.ForeignKeyConstraint(["subject_id"], ["subjects.id"], name=op.f("fk_webhooks_subject_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhooks")),
        sa.UniqueConstraint("project_id", "name", name=op.f("uq_webhooks_project_id_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "workstream_cursors",
        sa.Column("workstream_id", ID, nullable=False),
        sa.Column("agent", TEXT, nullable=False),
        sa.Column("native_id", TEXT, nullable=False),
        sa.Column("delivered", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("source_cursor", TEXT, nullable=True),
        sa.ForeignKeyConstraint(
            ["workstream_id"], ["workstreams.id"], name=op.f("fk_workstream_cursors_workstream_id")
        ),
        sa.PrimaryKeyConstraint("workstream_id", "agent", "native_id", name=op.f("pk_workstream_cursors")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "workstream_selections",
        sa.Column("project_id", ID, nullable=False),
        sa.Column("place", TEXT, nullable=False),
        sa.Column("workstream_id", ID, nullable=False),
        sa.Column("selected_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_workstream_selections_project_id")),
        sa.ForeignKeyConstraint(
            ["workstream_id"], ["workstreams.id"], name=op.f("fk_workstream_selections_workstream_id")
        ),
        sa.PrimaryKeyConstraint("project_id", "place", name=op.f("pk_workstream_selections")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_workstream_selections_workstream", "workstream_selections", ["workstream_id"], unique=False)
    op.create_table(
        "entity_aliases",
        sa.Column("subject_id", ID, nullable=False),
        sa.Column("norm", TEXT, nullable=False),
        sa.Column("entity_id", ID, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.ForeignKeyConstraint(["entity_id"], ["entities.id"], name=op.f("fk_entity_aliases_entity_id")),
        sa.PrimaryKeyConstraint("subject_id", "norm", name=op.f("pk_entity_aliases")),
    )
    op.create_index("ix_entity_aliases_entity", "entity_aliases", ["entity_id"], unique=False)
    op.create_table(
        "facts",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("subject_id", ID, nullable=False),
        sa.Column("entity_id", ID, nullable=False),
        sa.Column("object_entity_id", ID, nullable=True),
        sa.Column("window_id", ID, nullable=True),
        sa.Column("draft_key", TEXT, nullable=False),
        sa.Column("predicate", TEXT, nullable=False),
        sa.Column("predicate_norm", TEXT, nullable=False),
        sa.Column("object", TEXT, nullable=False),
        sa.Column("object_norm", TEXT, nullable=False),
        sa.Column("text", TEXT, nullable=False),
        sa.Column("quote", TEXT, nullable=True),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.Column("single_valued", sa.Boolean(), nullable=True),
        sa.Column("closes", sa.Boolean(), nullable=False),
        sa.Column("correction", sa.Boolean(), nullable=False),
        sa.Column("replaces", TEXT, server_default="", nullable=False),
        sa.Column("valid_from", sa.BigInteger(), nullable=True),
        sa.Column("valid_until", sa.BigInteger(), nullable=True),
        sa.Column("said_at", sa.BigInteger(), nullable=False),
        sa.Column("zone_min", sa.Integer(), nullable=True),
        sa.Column("said_stream", ID, nullable=True),
        sa.Column("said_seq", sa.BigInteger(), nullable=True),
        sa.Column("said_index", sa.Integer(), nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.Column("closed_at", sa.BigInteger(), nullable=True),
        sa.Column("closed_by", ID, nullable=True),
        sa.Column("closed_known_at", sa.BigInteger(), nullable=True),
        sa.Column("retired_at", sa.BigInteger(), nullable=True),
        sa.Column("retired_because", TEXT, nullable=True),
        sa.Column("retired_by_hand", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.Column("superseded_by", ID, nullable=True),
        sa.Column("duplicate_of", ID, nullable=True),
        sa.Column("live", sa.Boolean(), server_default=sa.text("(true)"), nullable=False),
        sa.Column("unsettled", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.Column("pinned", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.Column("stated_by", TEXT, nullable=True),
        sa.Column("corrects", TEXT, nullable=True),
        sa.Column("corrects_stream", ID, nullable=True),
        sa.Column("corrects_seq", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["entity_id"], ["entities.id"], name=op.f("fk_facts_entity_id")),
        sa.ForeignKeyConstraint(["object_entity_id"], ["entities.id"], name=op.f("fk_facts_object_entity_id")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_facts_project_id")),
        sa.ForeignKeyConstraint(["subject_id"], ["subjects.id"], name=op.f("fk_facts_subject_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_facts")),
        sa.UniqueConstraint("subject_id", "draft_key", name=op.f("uq_facts_subject_id_draft_key")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_facts_corrects",
        "facts",
        ["corrects_stream", "corrects_seq"],
        unique=False,
        sqlite_where=sa.text("corrects_stream is not null"),
        postgresql_where=sa.text("corrects_stream is not null"),
    )
    op.create_index(
        "ix_facts_live",
        "facts",
        ["project_id"],
        unique=False,
        sqlite_where=sa.text("live"),
        postgresql_where=sa.text("live"),
    )
    op.create_index(
        "ix_facts_object",
        "facts",
        ["object_entity_id"],
        unique=False,
        sqlite_where=sa.text("object_entity_id is not null"),
        postgresql_where=sa.text("object_entity_id is not null"),
    )
    op.create_index(
        "ix_facts_pinned",
        "facts",
        ["subject_id"],
        unique=False,
        sqlite_where=sa.text("pinned"),
        postgresql_where=sa.text("pinned"),
    )
    op.create_index("ix_facts_project", "facts", ["project_id", "id"], unique=False)
    op.create_index("ix_facts_slot", "facts", ["entity_id", "predicate_norm"], unique=False)
    op.create_index("ix_facts_subject", "facts", ["subject_id", "id"], unique=False)
    op.create_index("ix_facts_window", "facts", ["window_id"], unique=False)
    op.create_table(
        "jobs",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("key", TEXT, nullable=False),
        sa.Column("lane_id", ID, nullable=False),
        sa.Column("uses", TEXT, nullable=False),
        sa.Column("serial_key", TEXT, nullable=True),
        sa.Column("args", TEXT, nullable=False),
        sa.Column("traceparent", TEXT, nullable=True),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("due_at", sa.BigInteger(), nullable=False),
        sa.Column("first_due_at", sa.BigInteger(), nullable=True),
        sa.Column("generation", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("leased_generation", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("owner", TEXT, nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=True),
        sa.Column("fence", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("crashes", sa.Integer(), server_default="0", nullable=False),
        sa.Column("error", TEXT, nullable=True),
        sa.Column("error_class", TEXT, nullable=True),
        sa.Column("history", TEXT, server_default="[]", nullable=False),
        sa.Column("budget", sa.Integer(), server_default="1", nullable=False),
        sa.Column("charged_s", sa.Float(), server_default="0", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "(state = 'leased') = (owner is not null and lease_until is not null)", name=op.f("ck_jobs_lease")
        ),
        sa.CheckConstraint("state = 'ready' or uses in ('local', 'model', 'embedder')", name=op.f("ck_jobs_held")),
        sa.CheckConstraint(
            "state in ('waiting', 'ready', 'leased', 'done', 'dead', 'discarded')", name=op.f("ck_jobs_state")
        ),
        sa.ForeignKeyConstraint(["lane_id"], ["lanes.id"], name=op.f("fk_jobs_lane_id")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_jobs_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
        sa.UniqueConstraint("kind", "key", name=op.f("uq_jobs_kind_key")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_jobs_dead",
        "jobs",
        ["finished_at"],
        unique=False,
        sqlite_where=sa.text("state = 'dead'"),
        postgresql_where=sa.text("state = 'dead'"),
    )
    op.create_index(
        "ix_jobs_dead_project",
        "jobs",
        ["project_id", "id", "kind", "error_class"],
        unique=False,
        sqlite_where=sa.text("state = 'dead'"),
        postgresql_where=sa.text("state = 'dead'"),
    )
    op.create_index(
        "ix_jobs_due",
        "jobs",
        ["due_at", "id"],
        unique=False,
        sqlite_where=sa.text("state = 'waiting'"),
        postgresql_where=sa.text("state = 'waiting'"),
    )
    op.create_index(
        "ix_jobs_finished",
        "jobs",
        ["finished_at"],
        unique=False,
        sqlite_where=sa.text("state = 'done'"),
        postgresql_where=sa.text("state = 'done'"),
    )
    op.create_index(
        "ix_jobs_held",
        "jobs",
        ["kind"],
        unique=False,
        sqlite_where=sa.text("uses in ('held_local', 'held_model', 'held_embedder')"),
        postgresql_where=sa.text("uses in ('held_local', 'held_model', 'held_embedder')"),
    )
    op.create_index("ix_jobs_lane", "jobs", ["lane_id", "id"], unique=False)
    op.create_index(
        "ix_jobs_leased",
        "jobs",
        ["lease_until"],
        unique=False,
        sqlite_where=sa.text("state = 'leased'"),
        postgresql_where=sa.text("state = 'leased'"),
    )
    op.create_index(
        "ix_jobs_ready",
        "jobs",
        ["lane_id", "uses", "serial_key", "due_at", "id"],
        unique=False,
        sqlite_where=sa.text("state = 'ready'"),
        postgresql_where=sa.text("state = 'ready'"),
    )
    op.create_index(
        "ix_jobs_stages",
        "jobs",
        ["kind"],
        unique=False,
        sqlite_where=sa.text("state <> 'done' and kind in ('summarise_episode', 'extract_facts')"),
        postgresql_where=sa.text("state <> 'done' and kind in ('summarise_episode', 'extract_facts')"),
    )
    op.create_index(
        "ix_jobs_troubled",
        "jobs",
        ["finished_at", "kind"],
        unique=False,
        sqlite_where=sa.text("history <> '[]'"),
        postgresql_where=sa.text("history <> '[]'"),
    )
    op.create_index(
        "ix_jobs_unsettled",
        "jobs",
        ["project_id"],
        unique=False,
        sqlite_where=sa.text("state in ('waiting', 'ready', 'leased') and kind <> 'open_window'"),
        postgresql_where=sa.text("state in ('waiting', 'ready', 'leased') and kind <> 'open_window'"),
    )
    op.create_index(
        "uq_jobs_serial",
        "jobs",
        ["serial_key"],
        unique=True,
        sqlite_where=sa.text("state = 'leased' and serial_key is not null"),
        postgresql_where=sa.text("state = 'leased' and serial_key is not null"),
    )
    op.create_table(
        "launch_deliveries",
        sa.Column("launch_id", ID, nullable=False),
        sa.Column("key_hash", TEXT, nullable=False),
        sa.Column("payload_hash", TEXT, nullable=False),
        sa.ForeignKeyConstraint(["launch_id"], ["launches.id"], name=op.f("fk_launch_deliveries_launch_id")),
        sa.PrimaryKeyConstraint("launch_id", "key_hash", name=op.f("pk_launch_deliveries")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "launch_events",
        sa.Column("launch_id", ID, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("key_hash", TEXT, nullable=False),
        sa.ForeignKeyConstraint(["launch_id"], ["launches.id"], name=op.f("fk_launch_events_launch_id")),
        sa.PrimaryKeyConstraint("launch_id", "number", name=op.f("pk_launch_events")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "page_links",
        sa.Column("page_id", ID, nullable=False),
        sa.Column("target", TEXT, nullable=False),
        sa.ForeignKeyConstraint(["page_id"], ["pages.id"], name=op.f("fk_page_links_page_id")),
        sa.PrimaryKeyConstraint("page_id", "target", name=op.f("pk_page_links")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_page_links_target", "page_links", ["target"], unique=False)
    op.create_table(
        "page_sections",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("page_id", ID, nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("anchor", TEXT, nullable=False),
        sa.Column("heading", TEXT, nullable=False),
        sa.Column("body", TEXT, nullable=False),
        sa.Column("text_hash", TEXT, nullable=False),
        sa.ForeignKeyConstraint(["page_id"], ["pages.id"], name=op.f("fk_page_sections_page_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_page_sections")),
        sa.UniqueConstraint("page_id", "anchor", name=op.f("uq_page_sections_page_id_anchor")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "page_versions",
        sa.Column("page_id", ID, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("base", sa.Integer(), nullable=True),
        sa.Column("title", TEXT, nullable=False),
        sa.Column("body", TEXT, nullable=False),
        sa.Column("author", TEXT, nullable=False),
        sa.Column("reason", TEXT, nullable=True),
        sa.Column("content_hash", TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["page_id"], ["pages.id"], name=op.f("fk_page_versions_page_id")),
        sa.PrimaryKeyConstraint("page_id", "version", name=op.f("pk_page_versions")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "parked_changes",
        sa.Column("webhook_id", ID, nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("wanted", sa.Integer(), server_default="0", nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("wanted in (0, 1)", name=op.f("ck_parked_changes_wanted")),
        sa.ForeignKeyConstraint(["webhook_id"], ["webhooks.id"], name=op.f("fk_parked_changes_webhook_id")),
        sa.PrimaryKeyConstraint("webhook_id", "seq", name=op.f("pk_parked_changes")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "streams",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("subject_id", ID, nullable=False),
        sa.Column("lane_id", ID, nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("settings", TEXT, server_default="{}", nullable=False),
        sa.Column("last_seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("last_recorded_at", sa.BigInteger(), nullable=True),
        sa.Column("covered_seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("pending_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("end_through", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("pulled_due_at", sa.BigInteger(), nullable=True),
        sa.Column("summary", TEXT, nullable=True),
        sa.Column("summary_through", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("erased_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("covered_seq <= last_seq", name=op.f("ck_streams_covered")),
        sa.ForeignKeyConstraint(["lane_id"], ["lanes.id"], name=op.f("fk_streams_lane_id")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_streams_project_id")),
        sa.ForeignKeyConstraint(["subject_id"], ["subjects.id"], name=op.f("fk_streams_subject_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_streams")),
        sa.UniqueConstraint("project_id", "kind", "name", name=op.f("uq_streams_project_id_kind_name")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_streams_subject", "streams", ["subject_id"], unique=False)
    op.create_index(
        "ix_streams_subject_uncaptured",
        "streams",
        ["subject_id", "pulled_due_at"],
        unique=False,
        sqlite_where=sa.text("covered_seq < last_seq"),
        postgresql_where=sa.text("covered_seq < last_seq"),
    )
    op.create_index(
        "ix_streams_uncaptured",
        "streams",
        ["id"],
        unique=False,
        sqlite_where=sa.text("covered_seq < last_seq"),
        postgresql_where=sa.text("covered_seq < last_seq"),
    )
    op.create_table(
        "events",
        sa.Column("stream_id", ID, nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("role", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=True),
        sa.Column("content", TEXT, nullable=True),
        sa.Column("occurred_at", sa.BigInteger(), nullable=False),
        sa.Column("zone_min", sa.Integer(), nullable=True),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.Column("key_hash", TEXT, nullable=True),
        sa.Column("payload_hash", TEXT, nullable=True),
        sa.Column("evidence", sa.Integer(), nullable=False),
        sa.Column("metadata", TEXT, nullable=True),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("model", TEXT, nullable=True),
        sa.Column("erased_at", sa.BigInteger(), nullable=True),
        sa.Column("revises", sa.BigInteger(), revises, nullable=True),
        sa.CheckConstraint("seq > 0", name=op.f("ck_events_seq")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_events_project_id")),
        sa.ForeignKeyConstraint(["stream_id"], ["streams.id"], name=op.f("fk_events_stream_id")),
        sa.PrimaryKeyConstraint("stream_id", "seq", name=op.f("pk_events")),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_events_erased",
        "events",
        ["project_id"],
        unique=False,
        sqlite_where=sa.text("erased_at is not null"),
        postgresql_where=sa.text("erased_at is not null"),
    )
    op.create_index(
        "ix_events_revises",
        "events",
        ["revises"],
        unique=False,
        sqlite_where=sa.text("revises is not null"),
        postgresql_where=sa.text("revises is not null"),
    )
    op.create_index(
        "uq_events_key",
        "events",
        ["project_id", "key_hash"],
        unique=True,
        sqlite_where=sa.text("key_hash is not null"),
        postgresql_where=sa.text("key_hash is not null"),
    )
    op.create_table(
        "fact_events",
        sa.Column("fact_id", ID, nullable=False),
        sa.Column("stream_id", ID, nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["fact_id"], ["facts.id"], name=op.f("fk_fact_events_fact_id")),
        sa.PrimaryKeyConstraint("fact_id", "stream_id", "seq", name=op.f("pk_fact_events")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_fact_events_event", "fact_events", ["stream_id", "seq"], unique=False)
    op.create_table(
        "handoffs",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("stream_id", ID, nullable=False),
        sa.Column("worktree", TEXT, nullable=True),
        sa.Column("branch", TEXT, nullable=True),
        sa.Column("title", TEXT, nullable=False),
        sa.Column("body", TEXT, nullable=False),
        sa.Column("open_ends", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("replaced_by", ID, nullable=True),
        sa.Column("acknowledged_by", TEXT, nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("settled_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_handoffs_project_id")),
        sa.ForeignKeyConstraint(["stream_id"], ["streams.id"], name=op.f("fk_handoffs_stream_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_handoffs")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_handoffs_branch", "handoffs", ["project_id", "state", "branch", "created_at"], unique=False)
    op.create_index("ix_handoffs_newest", "handoffs", ["project_id", "state", "created_at"], unique=False)
    op.create_index("ix_handoffs_open", "handoffs", ["project_id", "state", "worktree", "created_at"], unique=False)
    op.create_index("ix_handoffs_project", "handoffs", ["project_id", "created_at"], unique=False)
    op.create_index("ix_handoffs_stream", "handoffs", ["stream_id"], unique=False)
    op.create_table(
        "launch_sessions",
        sa.Column("project_id", ID, nullable=False),
        sa.Column("workstream_id", ID, nullable=False),
        sa.Column("launch_id", ID, nullable=False),
        sa.Column("agent", TEXT, nullable=False),
        sa.Column("native_id", TEXT, nullable=False),
        sa.Column("stream_id", ID, nullable=True),
        sa.Column("linked_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["launch_id"], ["launches.id"], name=op.f("fk_launch_sessions_launch_id")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_launch_sessions_project_id")),
        sa.ForeignKeyConstraint(["stream_id"], ["streams.id"], name=op.f("fk_launch_sessions_stream_id")),
        sa.ForeignKeyConstraint(["workstream_id"], ["workstreams.id"], name=op.f("fk_launch_sessions_workstream_id")),
        sa.PrimaryKeyConstraint("launch_id", "agent", "native_id", name=op.f("pk_launch_sessions")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_launch_sessions_native", "launch_sessions", ["project_id", "agent", "native_id"], unique=False)
    op.create_index("ix_launch_sessions_stream", "launch_sessions", ["stream_id", "workstream_id"], unique=False)
    op.create_index("ix_launch_sessions_workstream", "launch_sessions", ["workstream_id", "stream_id"], unique=False)
    op.create_table(
        "observations",
        sa.Column("project_id", ID, nullable=False),
        sa.Column("signature", TEXT, nullable=False),
        sa.Column("stream_id", ID, nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("shape", TEXT, nullable=False),
        sa.Column("quote", TEXT, nullable=False),
        sa.Column("detail", TEXT, server_default="", nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_observations_project_id")),
        sa.ForeignKeyConstraint(["stream_id"], ["streams.id"], name=op.f("fk_observations_stream_id")),
        sa.PrimaryKeyConstraint("project_id", "signature", "stream_id", "seq", name=op.f("pk_observations")),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_observations_corrections",
        "observations",
        ["project_id", "at"],
        unique=False,
        sqlite_where=sa.text("kind = 'correction'"),
        postgresql_where=sa.text("kind = 'correction'"),
    )
    op.create_index("ix_observations_stream", "observations", ["stream_id"], unique=False)
    op.create_table(
        "page_looks",
        sa.Column("page_id", ID, autoincrement=False, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("gone", TEXT, nullable=False),
        sa.Column("first_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["page_id", "version"],
            ["page_versions.page_id", "page_versions.version"],
            name=op.f("fk_page_looks_page_id_version"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("page_id", name=op.f("pk_page_looks")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "sessions",
        sa.Column("stream_id", ID, autoincrement=False, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("agent", TEXT, nullable=False),
        sa.Column("native_id", TEXT, nullable=False),
        sa.Column("parent", TEXT, nullable=True),
        sa.Column("origin", TEXT, nullable=False),
        sa.Column("title", TEXT, nullable=True),
        sa.Column("cwd", TEXT, nullable=True),
        sa.Column("worktree", TEXT, nullable=True),
        sa.Column("branch", TEXT, nullable=True),
        sa.Column("model", TEXT, nullable=True),
        sa.Column("transcript", TEXT, nullable=True),
        sa.Column("genuine", sa.Integer(), server_default="0", nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("last_event_at", sa.BigInteger(), nullable=True),
        sa.Column("digested_seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("digest_hash", TEXT, nullable=True),
        sa.Column("trivial_because", TEXT, nullable=True),
        sa.Column("finished_seq", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_sessions_project_id")),
        sa.ForeignKeyConstraint(["stream_id"], ["streams.id"], name=op.f("fk_sessions_stream_id")),
        sa.PrimaryKeyConstraint("stream_id", name=op.f("pk_sessions")),
        sa.UniqueConstraint("stream_id", "project_id", name=op.f("uq_sessions_stream_id_project_id")),
    )
    op.create_index("ix_sessions_native", "sessions", ["agent", "native_id"], unique=False)
    op.create_index(
        "ix_sessions_parent",
        "sessions",
        ["project_id", "agent", "parent"],
        unique=False,
        sqlite_where=sa.text("parent is not null"),
        postgresql_where=sa.text("parent is not null"),
    )
    op.create_index("ix_sessions_project", "sessions", ["project_id", "stream_id"], unique=False)
    op.create_index(
        "ix_sessions_transcript",
        "sessions",
        ["last_event_at"],
        unique=False,
        sqlite_where=sa.text("transcript is not null"),
        postgresql_where=sa.text("transcript is not null"),
    )
    op.create_index("ix_sessions_worktree", "sessions", ["project_id", "worktree"], unique=False)
    op.create_index(
        "uq_sessions_finished",
        "sessions",
        ["project_id", "finished_seq"],
        unique=True,
        sqlite_where=sa.text("finished_seq is not null"),
        postgresql_where=sa.text("finished_seq is not null"),
    )
    op.create_table(
        "verdicts",
        sa.Column("subject_id", ID, nullable=False),
        sa.Column("earlier_fact", ID, nullable=False),
        sa.Column("later_fact", ID, nullable=False),
        sa.Column("verdict", TEXT, nullable=True),
        sa.Column("reason", TEXT, nullable=True),
        sa.Column("opened_at", sa.BigInteger(), nullable=False),
        sa.Column("judged_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["earlier_fact"], ["facts.id"], name=op.f("fk_verdicts_earlier_fact")),
        sa.ForeignKeyConstraint(["later_fact"], ["facts.id"], name=op.f("fk_verdicts_later_fact")),
        sa.PrimaryKeyConstraint("earlier_fact", "later_fact", name=op.f("pk_verdicts")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_verdicts_later", "verdicts", ["later_fact"], unique=False)
    op.create_index("ix_verdicts_subject", "verdicts", ["subject_id"], unique=False)
    op.create_table(
        "windows",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("subject_id", ID, nullable=False),
        sa.Column("stream_id", ID, nullable=False),
        sa.Column("start_seq", sa.BigInteger(), nullable=False),
        sa.Column("end_seq", sa.BigInteger(), nullable=False),
        sa.Column("prev_end", sa.BigInteger(), nullable=True),
        sa.Column("opened_at", sa.BigInteger(), nullable=False),
        sa.Column("opened_because", TEXT, nullable=False),
        sa.Column("slices", sa.Integer(), server_default="1", nullable=False),
        sa.Column("skipped_because", TEXT, nullable=True),
        sa.Column("archived", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.Column("summary", TEXT, nullable=True),
        sa.Column("learnings", TEXT, nullable=True),
        sa.Column("summary_at", sa.BigInteger(), nullable=True),
        sa.Column("facts_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("end_seq >= start_seq", name=op.f("ck_windows_forward")),
        sa.CheckConstraint("start_seq = coalesce(prev_end, 0) + 1", name=op.f("ck_windows_tiles")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_windows_project_id")),
        sa.ForeignKeyConstraint(
            ["stream_id", "prev_end"],
            ["windows.stream_id", "windows.end_seq"],
            name=op.f("fk_windows_stream_id_prev_end"),
        ),
        sa.ForeignKeyConstraint(["stream_id"], ["streams.id"], name=op.f("fk_windows_stream_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_windows")),
        sa.UniqueConstraint("stream_id", "end_seq", name=op.f("uq_windows_stream_id_end_seq")),
        sa.UniqueConstraint("stream_id", "prev_end", name=op.f("uq_windows_stream_id_prev_end")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_windows_facts_at", "windows", ["facts_at", "project_id", "opened_at"], unique=False)
    op.create_index(
        "ix_windows_no_facts",
        "windows",
        ["id"],
        unique=False,
        sqlite_where=sa.text("facts_at is null and skipped_because is null"),
        postgresql_where=sa.text("facts_at is null and skipped_because is null"),
    )
    op.create_index(
        "ix_windows_no_summary",
        "windows",
        ["id"],
        unique=False,
        sqlite_where=sa.text("summary_at is null and skipped_because is null"),
        postgresql_where=sa.text("summary_at is null and skipped_because is null"),
    )
    op.create_index("ix_windows_project", "windows", ["project_id", "id"], unique=False)
    op.create_index(
        "ix_windows_skipped",
        "windows",
        ["project_id"],
        unique=False,
        sqlite_where=sa.text("skipped_because is not null"),
        postgresql_where=sa.text("skipped_because is not null"),
    )
    op.create_index("ix_windows_subject", "windows", ["subject_id", "id"], unique=False)
    op.create_index("ix_windows_summary_at", "windows", ["summary_at", "project_id", "opened_at"], unique=False)
    op.create_index(
        "uq_windows_first",
        "windows",
        ["stream_id"],
        unique=True,
        sqlite_where=sa.text("prev_end is null"),
        postgresql_where=sa.text("prev_end is null"),
    )
    op.create_table(
        "workstream_ledger",
        sa.Column("workstream_id", ID, nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("stream_id", ID, nullable=False),
        sa.Column("first_seq", sa.BigInteger(), nullable=False),
        sa.Column("last_seq", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["stream_id"], ["streams.id"], name=op.f("fk_workstream_ledger_stream_id")),
        sa.ForeignKeyConstraint(["workstream_id"], ["workstreams.id"], name=op.f("fk_workstream_ledger_workstream_id")),
        sa.PrimaryKeyConstraint("workstream_id", "seq", name=op.f("pk_workstream_ledger")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_workstream_ledger_stream", "workstream_ledger", ["stream_id", "workstream_id"], unique=False)
    op.create_table(
        "forgotten",
        sa.Column("window_id", ID, nullable=False),
        sa.Column("statement", TEXT, nullable=False),
        sa.Column("retired", sa.Boolean(), nullable=False),
        sa.Column("pinned", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["window_id"], ["windows.id"], name=op.f("fk_forgotten_window_id")),
        sa.PrimaryKeyConstraint("window_id", "statement", name=op.f("pk_forgotten")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "generations",
        sa.Column("project_id", ID, nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("stream_id", ID, nullable=True),
        sa.Column("digest_hash", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("reason", TEXT, nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("finished_at", sa.BigInteger(), nullable=False),
        sa.Column("passed_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "(passed_at is null) = (state in ('waiting', 'reviewing'))", name=op.f("ck_generations_passed")
        ),
        sa.CheckConstraint("(stream_id is null) = (state = 'erased')", name=op.f("ck_generations_erased")),
        sa.CheckConstraint(
            "state in ('waiting', 'reviewing', 'reviewed', 'skipped', 'dead', 'imported', 'superseded', 'erased')",
            name=op.f("ck_generations_state"),
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_generations_project_id")),
        sa.ForeignKeyConstraint(
            ["stream_id", "project_id"],
            ["sessions.stream_id", "sessions.project_id"],
            name=op.f("fk_generations_stream_id_project_id"),
            onupdate="CASCADE",
        ),
        sa.PrimaryKeyConstraint("project_id", "seq", name=op.f("pk_generations")),
        sa.UniqueConstraint("project_id", "stream_id", "seq", name=op.f("uq_generations_project_id_stream_id_seq")),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_generations_dead",
        "generations",
        ["project_id"],
        unique=False,
        sqlite_where=sa.text("state = 'dead'"),
        postgresql_where=sa.text("state = 'dead'"),
    )
    op.create_index(
        "ix_generations_open",
        "generations",
        ["project_id", "state", "seq"],
        unique=False,
        sqlite_where=sa.text("passed_at is null"),
        postgresql_where=sa.text("passed_at is null"),
    )
    op.create_index("ix_generations_stream", "generations", ["stream_id"], unique=False)
    op.create_table(
        "slices",
        sa.Column("window_id", ID, nullable=False),
        sa.Column("slice", sa.Integer(), nullable=False),
        sa.Column("summary", TEXT, nullable=True),
        sa.Column("learnings", TEXT, nullable=True),
        sa.Column("summary_at", sa.BigInteger(), nullable=True),
        sa.Column("facts_at", sa.BigInteger(), nullable=True),
        sa.Column("rejected", TEXT, nullable=True),
        sa.ForeignKeyConstraint(["window_id"], ["windows.id"], name=op.f("fk_slices_window_id")),
        sa.PrimaryKeyConstraint("window_id", "slice", name=op.f("pk_slices")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "reviews",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("workspace_id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("stream_id", ID, nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("asked_by", TEXT, nullable=False),
        sa.Column("refused", TEXT, server_default="[]", nullable=False),
        sa.Column("note", TEXT, nullable=True),
        sa.Column("staged", sa.Integer(), server_default="0", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("completed_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["project_id", "stream_id", "generation"],
            ["generations.project_id", "generations.stream_id", "generations.seq"],
            name=op.f("fk_reviews_project_id_stream_id_generation"),
            onupdate="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "workspace_id"],
            ["projects.id", "projects.workspace_id"],
            name=op.f("fk_reviews_project_id_workspace_id"),
            onupdate="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["stream_id", "project_id"],
            ["sessions.stream_id", "sessions.project_id"],
            name=op.f("fk_reviews_stream_id_project_id"),
            onupdate="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reviews")),
        sa.UniqueConstraint(
            "workspace_id",
            "project_id",
            "stream_id",
            "generation",
            name=op.f("uq_reviews_workspace_id_project_id_stream_id_generation"),
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_reviews_stream", "reviews", ["stream_id"], unique=False)
    op.create_table(
        "proposals",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("review_id", ID, nullable=True),
        sa.Column("stream_id", ID, nullable=True),
        sa.Column("action", TEXT, nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("slug", TEXT, nullable=False),
        sa.Column("title", TEXT, nullable=False),
        sa.Column("section", TEXT, server_default="", nullable=False),
        sa.Column("section_hash", TEXT, server_default="", nullable=False),
        sa.Column("base", sa.Integer(), nullable=True),
        sa.Column("body", TEXT, nullable=False),
        sa.Column("why", TEXT, nullable=False),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.Column("signature", TEXT, nullable=False),
        sa.Column("fingerprint", TEXT, nullable=False),
        sa.Column("reviewer", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("state_reason", TEXT, nullable=True),
        sa.Column("decided_by", TEXT, nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("decided_at", sa.BigInteger(), nullable=True),
        sa.Column("page_id", ID, nullable=True),
        sa.Column("version", sa.Integer(), nullable=True),
        sa.Column("previous", sa.Integer(), nullable=True),
        sa.Column("undone_by", sa.Integer(), nullable=True),
        sa.CheckConstraint(
            "state in ('staged', 'approved', 'rejected', 'superseded', 'expired', 'conflict', 'rolled_back')",
            name=op.f("ck_proposals_state"),
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_proposals_project_id")),
        sa.ForeignKeyConstraint(["review_id"], ["reviews.id"], name=op.f("fk_proposals_review_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_proposals")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_proposals_expiring",
        "proposals",
        ["expires_at"],
        unique=False,
        sqlite_where=sa.text("state = 'staged'"),
        postgresql_where=sa.text("state = 'staged'"),
    )
    op.create_index("ix_proposals_fingerprint", "proposals", ["project_id", "fingerprint"], unique=False)
    op.create_index("ix_proposals_page", "proposals", ["page_id"], unique=False)
    op.create_index("ix_proposals_project", "proposals", ["project_id", "state", "id"], unique=False)
    op.create_index("ix_proposals_stream", "proposals", ["stream_id"], unique=False)
    op.create_index(
        "uq_proposals_staged",
        "proposals",
        ["project_id", "fingerprint"],
        unique=True,
        sqlite_where=sa.text("state = 'staged'"),
        postgresql_where=sa.text("state = 'staged'"),
    )
    op.create_table(
        "proposal_quotes",
        sa.Column("proposal_id", ID, nullable=False),
        sa.Column("stream_id", ID, nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("quote", TEXT, nullable=False),
        sa.ForeignKeyConstraint(["proposal_id"], ["proposals.id"], name=op.f("fk_proposal_quotes_proposal_id")),
        sa.ForeignKeyConstraint(["stream_id"], ["streams.id"], name=op.f("fk_proposal_quotes_stream_id")),
        sa.PrimaryKeyConstraint("proposal_id", "stream_id", "seq", name=op.f("pk_proposal_quotes")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_proposal_quotes_stream", "proposal_quotes", ["stream_id"], unique=False)
