"""The full-text index in PostgreSQL: GIN over lexemes that name their column, the scope as typed columns beside them.

The searched table holds ids and lexemes. The terms that ranking reads lie in another, and how often each occurs in a
third, because PostgreSQL's own ranking knows no document frequencies.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Final

from sqlalchemy import TextClause, text

from everkept.store.connection import Connection, Row
from everkept.store.text_rows import TextRow, scope_terms

_PUT_INDEX = text("""
insert into passage_index(passage_id, project_id, subject_id, stream_id, kind, lexemes)
values(cast(:id as bigint), cast(:project as bigint), cast(:subject as bigint), cast(:stream as bigint),
  cast(:kind as text), array_to_tsvector(string_to_array(cast(:lexemes as text), ' ')))""")
_PUT_TERMS = text("""
insert into passage_text(id, speaker, own, said, before)
values(cast(:id as bigint), cast(:speaker as text), cast(:own as text), cast(:said as text),
  cast(:before as text))""")
_COUNT = text("""
insert into passage_terms(term, passages) values(cast(:term as text), cast(:passages as bigint))
on conflict (term) do update set passages = passage_terms.passages + excluded.passages""")
_SIZE = text("select passages, terms from passage_totals where id = 1")
_RESIZE = text("""
insert into passage_totals(id, passages, terms) values(1, :passages, :terms)
on conflict (id) do update set passages = passage_totals.passages + excluded.passages,
  terms = passage_totals.terms + excluded.terms""")
_FREQUENCIES = text("""
select term, passages from passage_terms where term in (select value from words(:terms)) and passages > 0""")


def _found(query: str, within: str) -> str:
    return f"""(select string_agg(passage_id::text, ',') from passage_index
  where lexemes @@ cast({query} as tsquery) and passage_id > :after{within})"""


def _both(within: str = "") -> TextClause:
    """The ids that hold a term themselves, and those after one that holds it: in one trip."""
    return text(f"select {_found(':held', within)}, {_found(':before', within)}")


_ANYWHERE = _both()
_WITHIN: Final = {
    letter: _both(f" and {column} in (select value from numbers(:ids))")
    for letter, column in (("p", "project_id"), ("s", "subject_id"), ("t", "stream_id"))
}
"""The scope is a term of the query, too: a common word would be read in every project. The column makes it sure."""
_TERMS = text("select id, speaker, own, said from passage_text where id in (select value from numbers(:ids))")
_ROWS = text("""
select t.id, i.project_id, i.subject_id, i.stream_id, i.kind, t.speaker, t.own, t.said, t.before
from passage_text t join passage_index i on i.passage_id = t.id where t.id in (select value from numbers(:ids))""")
_DELETE_INDEX = text("delete from passage_index where passage_id in (select value from numbers(:ids))")
_DELETE_TERMS = text("delete from passage_text where id in (select value from numbers(:ids))")
_UNUSED = text("delete from passage_terms where passages <= 0")
_HELD: Final = "spd"
"""The letters of the columns of what a passage holds itself: speaker, own (plain) and date; `b` is the turn before."""


class PostgresText:
    def put(self, conn: Connection, rows: Sequence[TextRow]) -> None:
        conn.many_in_order(_PUT_INDEX, [(r.id, *r.place, _lexemes(r)) for r in rows])
        conn.many_in_order(_PUT_TERMS, [(r.id, r.speaker, r.own, r.said, r.before) for r in rows])
        self._count(conn, rows, 1)

    def _count(self, conn: Connection, rows: Sequence[TextRow], by: int) -> None:
        counts: Counter[str] = Counter()
        for row in rows:
            counts.update({*scope_terms(*row.place), *" ".join(row[2:]).split()})
        conn.share()
        conn.many_in_order(_COUNT, [(term, by * n) for term, n in sorted(counts.items())])
        conn.put(_RESIZE, {"passages": by * len(rows), "terms": by * sum(len(row.own.split()) for row in rows)})

    def _rows(self, conn: Connection, passage_ids: Sequence[int]) -> list[TextRow]:
        rows = conn.rows(_ROWS, {"ids": json.dumps(list(passage_ids))})
        return [TextRow(r[0], (r[1], r[2], r[3], r[4]), *r[5:]) for r in rows]

    def delete(self, conn: Connection, passage_ids: Sequence[int]) -> None:
        ids = {"ids": json.dumps(list(passage_ids))}
        self._count(conn, self._rows(conn, passage_ids), -1)
        conn.run(_DELETE_INDEX, ids)
        conn.run(_DELETE_TERMS, ids)
        conn.run(_UNUSED)

    def clear_before(self, conn: Connection, passage_ids: Sequence[int]) -> None:
        rows = [row for row in self._rows(conn, passage_ids) if row.before]
        self.delete(conn, [row.id for row in rows])
        self.put(conn, [row._replace(before="") for row in rows])

    def size(self, conn: Connection) -> tuple[int, float]:
        row = conn.first(_SIZE)
        return (0, 1.0) if row is None or not row[0] else (row[0], max(1.0, row[1] / row[0]))

    def frequencies(self, conn: Connection, terms: Sequence[str]) -> dict[str, int]:
        return dict(conn.rows(_FREQUENCIES, {"terms": json.dumps(list(terms))}))

    def postings(
        self, conn: Connection, within: Sequence[str] | None, term: str, kinds: Sequence[str], also_any: Sequence[str],
        after: int,
    ) -> list[tuple[float, str]]:  # fmt: skip
        """The kinds are only asked for where most passages are of none of them; the caller passes over the others."""
        asked = [
            _any("i", within or ()),
            _any("i", [] if "turn" in kinds else [f"k{kind}" for kind in kinds]),
            _any(f"{_HELD}b", also_any),
        ]
        found = conn.first(_ANYWHERE if within is None else _WITHIN[within[0][0]], {
            "ids": json.dumps([int(scope[1:]) for scope in within or ()]),
            "held": _all([_any(_HELD, (term,)), *asked]),
            "before": _all([_any("b", (term,)), *asked]),
            "after": after,
        })  # fmt: skip
        assert found is not None
        return [(weight, ids) for weight, ids in zip((1.0, 0.5), found, strict=True) if ids]

    def terms(self, conn: Connection, passage_ids: Sequence[int]) -> list[Row]:
        return conn.rows(_TERMS, {"ids": json.dumps(list(passage_ids))}) if passage_ids else []


def _lexemes(row: TextRow) -> str:
    """Each term once a column, behind the column's letter, with blanks between; `i` is where the passage lies."""
    columns = (("s", row.speaker), ("p", row.own), ("d", row.said), ("b", row.before))
    placed = {f"i:{term}" for term in scope_terms(*row.place)}
    return " ".join(sorted(placed | {f"{letter}:{term}" for letter, terms in columns for term in terms.split()}))


def _any(columns: str, terms: Sequence[str]) -> str:
    """A query for any of the terms in any of the columns; "" for none."""
    wanted = [f"'{letter}:{_quoted(term)}'" for term in terms for letter in columns]
    return f"({' | '.join(wanted)})" if wanted else ""


def _all(queries: Sequence[str]) -> str:
    return " & ".join(filter(None, queries))


def _quoted(term: str) -> str:
    return term.replace("\\", "\\\\").replace("'", "''")
