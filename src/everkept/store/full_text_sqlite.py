"""The full-text index in SQLite: FTS5, whose scope column names project, subject, stream and kind as terms.

So a search never leaves its scope before the limit is applied.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from sqlalchemy import text

from everkept.store.connection import Connection, Row
from everkept.store.text_rows import TextRow, scope_terms

_INSERT = text(
    "insert into passage_text(rowid, scope, speaker, own, said, before)"
    " values(:id, :scope, :speaker, :own, :said, :before)"
)
_AVERAGES = text("select block from passage_text_data where id = 1")
_FREQUENCIES = text("select term, doc from passage_terms where term in (select value from words(:terms))")
_POSTINGS = text("select group_concat(rowid) from passage_text where passage_text match :match and rowid > :after")
_IN_COLUMNS: Final = (("{speaker own said}", 1.0), ("before", 0.5))
# Columns 1 to 3 of the table in which FTS5 keeps its rows: read through the virtual table they take four times as long.
_TERMS = text("select id, c1, c2, c3 from passage_text_content where id in (select value from numbers(:ids))")
_WITH_BEFORE = text(
    "select rowid, scope, speaker, own, said from passage_text"
    " where rowid in (select value from numbers(:ids)) and before <> ''"
)
_DELETE = text("delete from passage_text where rowid in (select value from numbers(:ids))")
_OWN_COLUMN: Final = 2


class SqliteText:
    def put(self, conn: Connection, rows: Sequence[TextRow]) -> None:
        scopes: dict[tuple[int, int, int | None, str], str] = {}
        conn.many_in_order(_INSERT, [
            (id_, scopes.get(at) or scopes.setdefault(at, " ".join(scope_terms(*at))), speaker, own, said, before)
            for id_, at, speaker, own, said, before in rows
        ])  # fmt: skip

    def delete(self, conn: Connection, passage_ids: Sequence[int]) -> None:
        conn.run(_DELETE, {"ids": json.dumps(list(passage_ids))})

    def clear_before(self, conn: Connection, passage_ids: Sequence[int]) -> None:
        """Not with an update: FTS5 then keeps words of a long row for good when that row is deleted later, if
        `secure-delete` is on (SQLite 3.53.4 and 3.54.1). Between a delete and an insert of the same row its buffer has
        to be written out, which a savepoint makes it do.
        """
        rows = conn.rows(_WITH_BEFORE, {"ids": json.dumps(list(passage_ids))})
        if not rows:
            return
        self.delete(conn, [row[0] for row in rows])
        conn.raw.execute("savepoint written_out")
        conn.raw.execute("release written_out")
        conn.many_in_order(_INSERT, [(*row, "") for row in rows])

    def size(self, conn: Connection) -> tuple[int, float]:
        """From the record that FTS5 keeps for its own bm25 (varints: rows, then terms per column)."""
        record = conn.scalar(_AVERAGES)
        numbers = _varints(bytes(record)) if record else []
        if len(numbers) < 1 + _OWN_COLUMN + 1 or numbers[0] == 0:
            return 0, 1.0
        return numbers[0], max(1.0, numbers[1 + _OWN_COLUMN] / numbers[0])

    def frequencies(self, conn: Connection, terms: Sequence[str]) -> dict[str, int]:
        return dict(conn.rows(_FREQUENCIES, {"terms": json.dumps(list(terms))}))

    def postings(
        self, conn: Connection, within: Sequence[str] | None, term: str, kinds: Sequence[str], also_any: Sequence[str],
        after: int,
    ) -> list[tuple[float, str]]:  # fmt: skip
        asked = [] if within is None else [_any_scope(within)]
        if "turn" not in kinds:  # else most passages are wanted, and the caller passes over the others
            asked.append(_any_scope([f"k{kind}" for kind in kinds]))
        if also_any:
            asked.append("({speaker own said before} : (" + " OR ".join(f'"{t}"' for t in also_any) + "))")
        found = []
        for columns, weight in _IN_COLUMNS:
            ids = conn.scalar(_POSTINGS, {"match": " AND ".join([f'{columns} : "{term}"', *asked]), "after": after})
            if ids:
                found.append((weight, ids))
        return found

    def terms(self, conn: Connection, passage_ids: Sequence[int]) -> list[Row]:
        return conn.rows(_TERMS, {"ids": json.dumps(list(passage_ids))}) if passage_ids else []


def _any_scope(terms: Sequence[str]) -> str:
    return "(" + " OR ".join(f'scope : "{term}"' for term in terms) + ")"


def _varints(blob: bytes) -> list[int]:
    """SQLite's varints of at most eight bytes: seven bits each, high bit set while more follow."""
    found, value = [], 0
    for byte in blob:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            found.append(value)
            value = 0
    return found
