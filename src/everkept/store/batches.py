"""Many rows in one statement, as PostgreSQL takes them: a list a column, in place of a round of messages a row.

What is rewritten is a plain `insert … values(…)` and an `update … where id = …` whose parameters each have the type of
a column or of a cast; the rows of any other are sent one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

from everkept.store.dialect import postgres_dialect

Row = tuple[Any, ...]

_INSERT: Final = re.compile(r"\s*insert into (\w+)\s*\(([^)]*)\)\s*values\s*\(", re.IGNORECASE)
_UPDATE: Final = re.compile(r"\s*update (\w+) set (.*\bwhere id = %s.*)$", re.IGNORECASE | re.DOTALL)
_ASSIGNED: Final = re.compile(r"\b(\w+) = %s")
_CAST: Final = re.compile(r"cast\(%s as ([\w ]+)\)", re.IGNORECASE)
_UPSERT: Final = re.compile(r"\s*on conflict\s*\(([^)]*)\)\s*do update\b", re.IGNORECASE)


class Together(NamedTuple):
    """A statement for many rows. Its parameters: a list for each place in `listed`, then the values in `same`.

    Places are those of the statement for one row.
    """

    sql: str
    listed: tuple[Callable[[Iterable[Any]], str], ...]
    """Of what each row has its own of: how their values are spelled as a list."""
    same: range
    """Of what all rows must have in common."""
    once: tuple[int, ...]
    """Of what no two rows may have in common: the statement writes each row of its table once."""

    def runs(self, rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
        """In order, as many at a time as the statement takes."""
        if not self.same:
            yield from self._distinct(rows)
            return
        for _, alike in groupby(rows, key=itemgetter(*self.same)):
            yield from self._distinct(list(alike))

    def _distinct(self, rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
        if not self.once:
            yield rows
            return
        names = list(map(itemgetter(*self.once), rows))
        if len(set(names)) == len(names):
            yield rows
            return
        start, seen = 0, set[Any]()
        for at, name in enumerate(names):
            if name in seen:
                yield rows[start:at]
                start, seen = at, set()
            seen.add(name)
        yield rows[start:]

    def values(self, run: Sequence[Row]) -> list[Any]:
        """Those of the statement."""
        columns = zip(*run, strict=True)  # ends with the shorter: what all have in common is taken from the first row
        lists: list[Any] = [spell(column) for spell, column in zip(self.listed, columns, strict=False)]
        return lists + [run[0][place] for place in self.same]


@lru_cache(maxsize=512)
def together(sql: str) -> Together | None:
    """A compiled statement for one row, as one for many; None where there is none."""
    if (found := _INSERT.match(sql)) is not None:
        return _insert(sql, found)
    if (found := _UPDATE.match(sql)) is not None:
        return _update(found[1], found[2])
    return None


def _insert(sql: str, found: re.Match[str]) -> Together | None:
    given = _Given(found[1])
    columns = [name.strip() for name in found[2].split(",")]
    items, rest = _items(sql, found.end())
    values, places = [], dict[str, int]()
    for column, item in zip(columns, items, strict=True):
        if item == "%s" and _type_of(given.table, column) is not None:
            places[column] = len(given.types)
            values.append(given.take(column))
        else:
            values.append(_CAST.sub(lambda cast: given.take_as(cast[1]), item))
    upsert = _UPSERT.match(rest)
    if not given.types or any("%s" in value for value in values) or "returning" in rest:
        return None
    if "do update" in rest and upsert is None:
        return None
    target = [name.strip() for name in upsert[1].split(",")] if upsert is not None else []
    count = len(given.types)
    return Together(
        f"insert into {given.table}({', '.join(columns)}) select {', '.join(values)} {given.rows()}"
        f" order by given.place{rest}",
        listed=given.spelling(),
        same=range(count, count + rest.count("%s")),
        once=tuple(places[name] for name in target if name in places),
    )


def _update(table: str, assigned: str) -> Together | None:
    given = _Given(table)
    named: list[str] = []

    def take(found: re.Match[str]) -> str:
        if _type_of(table, found[1]) is None:
            return found[0]
        named.append(found[1])
        return f"{found[1]} = {given.take(found[1])}"

    changed = _ASSIGNED.sub(take, assigned)
    if "%s" in changed or "returning" in changed or named.count("id") != 1:
        return None
    what, _, which = changed.rpartition("where id = ")
    return Together(
        f"update {table} set {what}{given.rows()} where id = {which}",
        listed=given.spelling(),
        same=range(0),
        once=(named.index("id"),),
    )


class _Given:
    """The lists of a statement, as a table of rows: a column `v1`, `v2`, … for each parameter, and their `place`."""

    def __init__(self, table: str) -> None:
        self.table = table
        self.types: list[str] = []

    def take(self, column: str) -> str:
        """A parameter of that column's type."""
        return self.take_as(str(_type_of(self.table, column)))

    def take_as(self, its_type: str) -> str:
        self.types.append(its_type)
        return f"given.v{len(self.types)}"

    def spelling(self) -> tuple[Callable[[Iterable[Any]], str], ...]:
        return tuple(_SPELLING.get(its_type.upper(), _numbers) for its_type in self.types)

    def rows(self) -> str:
        lists = ", ".join(f"%s::{its_type}[]" for its_type in self.types)
        names = ", ".join(f"v{number}" for number in range(1, len(self.types) + 1))
        return f"from unnest({lists}) with ordinality as given({names}, place)"


def _list(members: Iterable[str]) -> str:
    return "{" + ",".join(members) + "}"


def _numbers(values: Iterable[Any]) -> str:
    return _list(["null" if value is None else str(value) for value in values])


def _texts(values: Iterable[Any]) -> str:
    return _list(["null" if value is None else _quoted(value) for value in values])


def _quoted(value: Any) -> str:
    text: str = value if isinstance(value, str) else str(value)
    if "\\" in text or '"' in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + text + '"'


def _bytes(values: Iterable[bytes | None]) -> str:
    return _list(["null" if value is None else '"\\\\x' + value.hex() + '"' for value in values])


_SPELLING: Final = {"TEXT": _texts, "BYTEA": _bytes}
"""How a list is spelled by the type of its members. The driver's own way takes ten times as long."""


def _type_of(table: str, column: str) -> str | None:
    from everkept.store.tables import metadata

    if table not in metadata.tables:  # as what full text is searched in: such a statement has its casts
        return None
    its_type = metadata.tables[table].columns[column].type.compile(postgres_dialect())
    return str(its_type).partition(" COLLATE ")[0]


def _items(sql: str, start: int) -> tuple[list[str], str]:
    """What stands between commas from `start` to the bracket that closes, and what follows that."""
    items, depth, since = list[str](), 0, start
    for at in range(start, len(sql)):
        sign = sql[at]
        if depth == 0 and sign in ",)":
            items.append(sql[since:at].strip())
            if sign == ")":
                return items, sql[at + 1 :]
            since = at + 1
        depth += {"(": 1, ")": -1}.get(sign, 0)
    raise ValueError(f"a bracket stays open: {sql}")
