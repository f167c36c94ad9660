"""`ground.Ground` of a PostgreSQL database, for a role that owns its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from everkept.store.connection import Connection
from everkept.store.migrate import revision
from everkept.store.moving.ground import AWAY_TABLES
from everkept.store.moving.kept import Kept
from everkept.store.postgres import MOVED, is_bounded

_BESIDE: Final = ("passage_index", "passage_text", "passage_terms", "passage_totals", "vector_graphs")
"""Tables that are none of the schema's own."""
_UNIQUE: Final = """
select 'unique', format('alter table %s drop constraint %I', conrelid::regclass, conname),
  format('alter table %s add constraint %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
from pg_constraint where contype = 'u' and connamespace = current_schema()::regnamespace
union all
select 'unique', format('drop index %s', indexrelid::regclass), pg_get_indexdef(indexrelid)
from pg_index i join pg_class c on c.oid = i.indexrelid
where i.indisunique and not i.indisprimary and c.relnamespace = current_schema()::regnamespace
  and not exists (select 1 from pg_constraint where conindid = i.indexrelid)"""
_REFERENCES: Final = """
select 'reference', format('alter table %s drop constraint %I', conrelid::regclass, conname),
  format('alter table %s add constraint %I %s not valid', conrelid::regclass, conname, pg_get_constraintdef(oid))
from pg_constraint where contype = 'f' and connamespace = current_schema()::regnamespace"""
# Policies ask for the project of what a row is a part of, which may come after it.
_FORCED: Final = """
select 'reference', format('alter table %s no force row level security', oid::regclass),
  format('alter table %s force row level security', oid::regclass)
from pg_class where relforcerowsecurity and relnamespace = current_schema()::regnamespace"""
# In the server, and not in a trip each: there are some two hundred.
_LOOSEN: Final = """
do $loosen$ declare kind text; loosen text; mend text; begin
  for kind, loosen, mend in {found} loop
    insert into move_loosened(kind, mend) values(kind, mend);
    execute loosen;
  end loop;
end $loosen$"""
_MEND: Final = """
do $mend$ declare statement text; begin
  for statement in delete from move_loosened where kind = '{kind}' returning mend loop
    execute statement;
  end loop;
end $mend$"""
_PROVE: Final = """
do $prove$ declare prove text; begin
  perform set_config('everkept.everything', 'on', true); -- what a policy hides is taken for missing
  for prove in
    select format('alter table %s validate constraint %I', conrelid::regclass, conname) from pg_constraint
    where not convalidated and contype = 'f' and connamespace = current_schema()::regnamespace
  loop
    execute prove;
  end loop;
end $prove$"""

_NUMBERS: Final = """
select name, coalesce(pg_sequence_last_value(pg_get_serial_sequence(name, 'id')::regclass), 0)
from unnest(%s::text[]) as numbered(name)"""
_SET_NUMBERS: Final = """
select setval(pg_get_serial_sequence(name, 'id'), greatest(last, 1), last > 0)
from unnest(%s::text[], %s::bigint[]) as numbered(name, last)"""


class PostgresGround:
    def make_away_tables(self, conn: Connection) -> None:
        conn.raw.execute(
            "create table if not exists move_out(id int primary key check (id = 1), move text not null,"
            " target text not null, state text not null, since bigint not null)"
        )
        conn.raw.execute(
            "create table if not exists move_touched(number bigserial primary key, name text not null,"
            " key text not null)"
        )
        conn.raw.execute("grant select on move_out to public")  # whoever uses the memory is told where it went

    def track(self, conn: Connection, kept: Kept, refusal: str) -> None:
        table, keys = kept.place("postgresql")
        old, new = (f"json_build_array({_of(image, keys)})::text" for image in ("old", "new"))
        same = " and ".join(f'old."{key}" = new."{key}"' for key in keys)
        quoted = refusal.replace("%", "%%").replace("'", "''")
        # It writes as its owner: the role of the program has no right to these tables.
        conn.raw.execute(f"""
create or replace function move_touch_{kept.name}() returns trigger language plpgsql security definer
set search_path from current as $touch$
begin
  if exists (select 1 from move_out where state = 'moved') then
    raise exception '{quoted}' using errcode = '{MOVED}';
  end if;
  if tg_op <> 'INSERT' then
    insert into move_touched(name, key) values ('{kept.name}', {old});
  end if;
  if tg_op = 'INSERT' then
    insert into move_touched(name, key) values ('{kept.name}', {new});
  elsif tg_op = 'UPDATE' then
    if not ({same}) then
      insert into move_touched(name, key) values ('{kept.name}', {new});
    end if;
  end if;
  return null;
end $touch$;
create or replace trigger move_touch after insert or update or delete on "{table}"
for each row execute function move_touch_{kept.name}()""")

    def untrack(self, conn: Connection, kept: Sequence[Kept]) -> None:
        for each in kept:
            conn.raw.execute(f"drop trigger if exists move_touch on {_list(each.place('postgresql')[:1])}")
            conn.raw.execute(f"drop function if exists move_touch_{each.name}()")
        for table in AWAY_TABLES:
            conn.raw.execute(f"drop table if exists {table}")

    def hold(self, conn: Connection, kept: Sequence[Kept]) -> None:
        tables = [each.place("postgresql")[0] for each in kept]
        conn.raw.execute(f"lock table {_list(tables)} in share mode")

    def set_up(self, raw: Any) -> None:
        raw.prepare_threshold = None  # hardly a statement comes again, and tables change under them

    def make_in_tables(self, conn: Connection) -> None:
        conn.raw.execute(
            "create table move_in(id int primary key check (id = 1), move text not null, source text not null,"
            " stage text not null, run text not null)"
        )
        conn.raw.execute(
            "create table move_progress(name text primary key, after text, rows bigint not null, done int not null)"
        )
        conn.raw.execute("create table move_loosened(number bigserial, kind text not null, mend text not null)")

    def loosen(self, conn: Connection) -> None:
        for found in (_FORCED, _REFERENCES, _UNIQUE):
            conn.raw.execute(_LOOSEN.format(found=found))

    def tighten(self, conn: Connection) -> None:
        self._mend(conn, "unique")
        conn.raw.execute("analyze")

    def bind(self, conn: Connection) -> None:
        self._mend(conn, "reference")

    def _mend(self, conn: Connection, kind: str) -> None:
        conn.raw.execute(_MEND.format(kind=kind))

    def prove(self, conn: Connection) -> None:
        conn.raw.execute(_PROVE)

    def empty(self, conn: Connection) -> None:
        from everkept.store.tables import metadata

        tables = [*(table.name for table in metadata.sorted_tables), *_BESIDE]
        conn.raw.execute(f"truncate {_list(tables)} restart identity")

    def stamp(self, conn: Connection, schema: int) -> None:
        conn.raw.execute("update alembic_version set version_num = %s", (revision(schema),))

    def has_table(self, conn: Connection, name: str) -> bool:
        return conn.raw.execute("select to_regclass(%s)", (name,)).fetchone()[0] is not None

    def hurry_not(self, conn: Connection) -> None:
        conn.raw.execute("set local statement_timeout = 0")
        conn.raw.execute("set local idle_in_transaction_session_timeout = 0")
        if is_bounded(conn.raw):
            conn.raw.execute("set local transaction_timeout = 0")

    def numbers(self, conn: Connection, tables: Sequence[str]) -> dict[str, int]:
        given: dict[str, int] = dict(conn.raw.execute(_NUMBERS, (list(tables),)).fetchall())
        return given

    def set_numbers(self, conn: Connection, numbers: Mapping[str, int]) -> None:
        conn.raw.execute(_SET_NUMBERS, (list(numbers), list(numbers.values())))


def _of(image: str, keys: Sequence[str]) -> str:
    return ", ".join(f'{image}."{key}"' for key in keys)


def _list(tables: Sequence[str]) -> str:
    return ", ".join(f'"{table}"' for table in tables)
