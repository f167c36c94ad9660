"""The full-text index of SQLite, which is no table of the schema."""

from __future__ import annotations

from typing import Final

FULL_TEXT_SQLITE: Final = (
    # Columns hold analysed terms (domain/text.py), so the tokenizer only splits at spaces: `ascii` takes every other
    # character as a letter, also those that are newer than SQLite's Unicode tables. The scope is a term too. Ranking is
    # not SQLite's (recall/rank.py): the index says which column of which row holds a term, and keeps neither the places
    # in it nor a row of lengths a passage. It is a quarter smaller so, and a fifth cheaper to write.
    "create virtual table passage_text using fts5(scope, speaker, own, said, before,"
    " tokenize = \"ascii tokenchars '_-./:@&+#'\", detail = column, columnsize = 0)",
    "insert into passage_text(passage_text, rank) values('secure-delete', 1)",
    "create virtual table passage_terms using fts5vocab(passage_text, 'row')",
)
