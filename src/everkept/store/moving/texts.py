"""The rows of the full-text index, which each database keeps in tables of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from everkept.store.connection import Connection, Row
from everkept.store.full_text import full_text
from everkept.store.text_rows import TextRow, scope_terms

_ON_SQLITE: Final = "select id, c0, c1, c2, c3, c4 from passage_text_content"
_ON_POSTGRES: Final = (
    "select id, project_id, subject_id, stream_id, kind, speaker, own, said, before"
    " from passage_text join passage_index on passage_id = id"
)


class Texts:
    """`kept.Kept`: (id, scope, speaker, own, said, before), terms joined by spaces, the scope as `text_rows` has it."""

    name = "passage_text"

    def place(self, dialect: str) -> tuple[str, tuple[str, ...]]:
        return ("passage_text_content" if dialect == "sqlite" else "passage_text"), ("id",)

    def key(self, row: Row) -> tuple[Any, ...]:
        return (row[0],)

    def after(self, conn: Connection, key: tuple[Any, ...] | None, limit: int) -> list[Row]:
        return self._rows(conn, f"where id > {int(key[0]) if key else 0} order by id limit {limit}")

    def at(self, conn: Connection, keys: Sequence[tuple[Any, ...]]) -> list[Row]:
        return self._rows(conn, f"where id in ({', '.join(str(int(key[0])) for key in keys)})") if keys else []

    def put(self, conn: Connection, keys: Sequence[tuple[Any, ...]], rows: Sequence[Row]) -> None:
        index = full_text(conn)
        there = [row[0] for row in self.at(conn, keys)]
        if there:
            index.delete(conn, there)
            conn.raw.execute("savepoint written_out")  # see `SqliteText.clear_before`
            conn.raw.execute("release written_out")
        if rows:
            index.put(conn, [TextRow(row[0], _place(row[1]), *row[2:]) for row in rows])

    def _rows(self, conn: Connection, which: str) -> list[Row]:
        if conn.dialect.name == "sqlite":
            return [tuple(row) for row in conn.raw.execute(f"{_ON_SQLITE} {which}").fetchall()]
        rows = conn.raw.execute(f"{_ON_POSTGRES} {which}").fetchall()
        return [(row[0], " ".join(scope_terms(*row[1:5])), *row[5:]) for row in rows]


def _place(scope: str) -> tuple[int, int, int | None, str]:
    """Project, subject, stream, kind: what `scope_terms` was given."""
    terms = {term[0]: term[1:] for term in scope.split()}
    return int(terms["p"]), int(terms["s"]), int(terms["t"]) if "t" in terms else None, terms["k"]
