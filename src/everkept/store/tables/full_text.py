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
FULL_TEXT_POSTGRES: Final = (
    # What is searched holds ids and lexemes, and no text; what ranking reads of a passage lies beside it.
    "create table passage_index (passage_id bigint primary key, project_id bigint not null, subject_id bigint not null,"
    " stream_id bigint, kind text not null, lexemes tsvector not null)",
    "create index ix_passage_index_lexemes on passage_index using gin (lexemes)",
    "create table passage_text (id bigint primary key, speaker text not null, own text not null, said text not null,"
    " before text not null)",
    # Written with every message: with room in its pages, a count is changed where it stands and no index with it.
    'create table passage_terms (term text collate "C" primary key, passages bigint not null) with (fillfactor = 50)',
    "create table passage_totals (id int primary key, passages bigint not null, terms bigint not null)",
)
