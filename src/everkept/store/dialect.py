"""Where the two databases differ, each difference once.

Statements are written in SQL that both understand, and a few functions of ours for what they spell differently:

- `numbers(x)`, `words(x)`, `objects(x)`: a row `value` for each member of the JSON list `x`; `numbers(x, 'k')` of the
  list under a key. One parameter holds a list of any length, so no list exceeds the limit of bound parameters.
- `number_pairs(x)`, `word_pairs(x)`: a row `one, two` for each pair of the JSON list `x`.
- `word_at(x, n)`: the n-th member of the JSON list `x`.
- `list_of(x)`: the values of a group as a JSON list; `min(a, b)`, `max(a, b)` and `instr` as SQLite has them.
- `for no key update [skip locked]` at the end of a select: these rows are ours until the end of the transaction. A file
  has one lock for all.
- `word_in(x, 'k')`, `number_in(x, 'k')`, `flag_in(x, 'k')`: the value under a key of the JSON object `x`; null where
  there is none.

PostgreSQL has them as functions of the schema (`POSTGRES_FUNCTIONS`); for SQLite `spelled` writes them out.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect

_ARGUMENT = r"([\w.?:]+)"
_SQLITE: Final = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\s+for no key update( of \w+)?( skip locked)?", ""),
        (rf"\b(?:numbers|words|objects)\({_ARGUMENT}\)", r"json_each(\1)"),
        (rf"\b(?:numbers|words|objects)\({_ARGUMENT}, '(\w+)'\)", r"json_each(\1, '$.\2')"),
        (
            rf"\b(?:number|word)_pairs\({_ARGUMENT}\)",
            r"(select value->>0 as one, value->>1 as two from json_each(\1))",
        ),
        (rf"\b(?:word|number)_in\({_ARGUMENT}, '(\w+)'\)", r"(\1->>'\2')"),
        (rf"\bword_at\({_ARGUMENT}, (\d)\)", r"(\1->>\2)"),
        (rf"\blist_of\({_ARGUMENT}\)", r"json_group_array(\1)"),
        (rf"\bflag_in\({_ARGUMENT}, '(\w+)'\)", r"(\1->>'\2' = 1)"),
        (rf"\bflag_in\({_ARGUMENT}, '(\w+)', '(\w+)'\)", r"(\1->'\2'->>'\3' = 1)"),
    )
)
# Strict, so that a statement never has them written out: the cast inside, which may say something of a row in an error,
# would keep `id in (select value from numbers(…))` behind a policy, and walk through the table instead.
_GIVING_ROWS: Final = tuple(
    f"create function {head} language sql immutable strict parallel safe rows 20 as $$ {body} $$"
    for head, body in (
        (
            "numbers(list text) returns table(value bigint)",
            "select v::bigint from json_array_elements_text(list::json) v",
        ),
        (
            "numbers(list text, key text) returns table(value bigint)",
            "select v::bigint from json_array_elements_text(list::json->key) v",
        ),
        ("words(list text) returns table(value text)", "select v from json_array_elements_text(list::json) v"),
        ("objects(list text) returns table(value text)", "select v::text from json_array_elements(list::json) v"),
        (
            "number_pairs(list text) returns table(one bigint, two bigint)",
            "select (v->>0)::bigint, (v->>1)::bigint from json_array_elements(list::json) v",
        ),
        (
            "word_pairs(list text) returns table(one text, two text)",
            "select v->>0, v->>1 from json_array_elements(list::json) v",
        ),
    )
)
POSTGRES_FUNCTIONS: Final = (
    "create function instr(hay text, needle text) returns int language sql immutable parallel safe"
    " as $$ select strpos(hay, needle) $$",
    *(
        f"create function {name}(a bigint, b bigint) returns bigint language sql immutable strict parallel safe"
        f" as $$ select {of}(a, b) $$"
        for name, of in (("min", "least"), ("max", "greatest"))
    ),
    *_GIVING_ROWS,
    "create function word_in(object text, key text) returns text language sql immutable parallel safe"
    " as $$ select object::json->>key $$",
    "create function word_at(list text, place int) returns text language sql immutable parallel safe"
    " as $$ select list::json->>place $$",
    "create function number_in(object text, key text) returns bigint language sql immutable parallel safe"
    " as $$ select (object::json->>key)::numeric::bigint $$",
    "create function flag_in(object text, key text) returns boolean language sql immutable parallel safe"
    " as $$ select (object::json->>key) in ('true', '1') $$",
    "create function flag_in(object text, outer_key text, key text) returns boolean language sql immutable"
    " parallel safe as $$ select (object::json->outer_key->>key) in ('true', '1') $$",
)


@lru_cache(maxsize=1)
def sqlite_dialect() -> Dialect:
    """One for the whole process: statements are compiled once a dialect, not once a store."""
    return sqlite.dialect(paramstyle="qmark")


@lru_cache(maxsize=1)
def postgres_dialect() -> Dialect:
    """One for the whole process, as psycopg binds: by place."""
    dialect: Dialect = postgresql.psycopg.dialect(paramstyle="format")  # type: ignore[no-untyped-call]
    return dialect


def spelled(sql: str, dialect: Dialect) -> str:
    """A compiled statement with our own functions as the database knows them."""
    if dialect.name == "sqlite":
        for pattern, replacement in _SQLITE:
            sql = pattern.sub(replacement, sql)
        return sql
    sql = _LIST_OF.sub(r"json_agg(\1)::text", sql)
    return _NULL.sub(r"%s::text is \1null", sql)


_LIST_OF = re.compile(rf"\blist_of\({_ARGUMENT}\)")
_NULL = re.compile(r"%s is (not )?null")
"""PostgreSQL asks of each parameter what type it has, also of one that is only asked whether it is there."""


def allocate(raw: Any, dialect: Dialect, table: str, count: int) -> int:
    """The first of `count` new row numbers in a row of `table`, in the transaction that is open on `raw`."""
    if dialect.name == "sqlite":
        row = raw.execute("select seq from sqlite_sequence where name = ?", (table,)).fetchone()
        first = (row[0] if row else 0) + 1
        if row:
            raw.execute("update sqlite_sequence set seq = ? where name = ?", (first + count - 1, table))
        else:
            raw.execute("insert into sqlite_sequence(name, seq) values(?, ?)", (table, first + count - 1))
        return int(first)
    while True:
        row = raw.execute(_TAKE_NUMBERS.format(table=table, count=count)).fetchone()
        first, last = int(row[0]), int(row[1])
        if last - first == count - 1:
            return first
        # Another project's writer took some in between: a gap costs nothing.


_TAKE_NUMBERS: Final = """
select min(n), max(n) from (
  select nextval(pg_get_serial_sequence('{table}', 'id')) as n from generate_series(1, {count})) as taken"""
