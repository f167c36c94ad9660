"""The full-text index: what every database has to do for it, and which one does.

A row holds analysed terms (domain/text.py), joined by spaces, in the columns speaker, own, said (the date) and before
(the turn before in the same sitting), under the scope of its passage. It finds candidates; ranking is our own code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from everkept.store.connection import Connection, Row
from everkept.store.full_text_sqlite import SqliteText
from everkept.store.text_rows import TextRow


class FullText(Protocol):
    def put(self, conn: Connection, rows: Sequence[TextRow]) -> None: ...

    def delete(self, conn: Connection, passage_ids: Sequence[int]) -> None:
        """Words and all."""
        ...

    def clear_before(self, conn: Connection, passage_ids: Sequence[int]) -> None:
        """Take the words of the turn before out of these rows."""
        ...

    def size(self, conn: Connection) -> tuple[int, float]:
        """How many passages there are, and the mean number of terms in a passage's own text."""
        ...

    def frequencies(self, conn: Connection, terms: Sequence[str]) -> dict[str, int]:
        """In how many passages (themselves or the one before) each term occurs; one that occurs nowhere is missing."""
        ...

    def postings(
        self, conn: Connection, within: Sequence[str] | None, term: str, kinds: Sequence[str], also_any: Sequence[str],
        after: int,
    ) -> list[tuple[float, str]]:  # fmt: skip
        """As `search.find_postings`, `within` any of these scope terms, all of one letter."""
        ...

    def terms(self, conn: Connection, passage_ids: Sequence[int]) -> list[Row]:
        """(id, speaker, own, said) of each."""
        ...


def full_text(conn: Connection) -> FullText:
    """The index of the database behind a connection."""
    if conn.dialect.name == "sqlite":
        return _SQLITE
    from everkept.store.full_text_postgres import PostgresText

    return PostgresText()


_SQLITE = SqliteText()
