"""Which evidence is found: R@10 over our own sets (and a LoCoMo file where one is given), beside FTS5's own bm25."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean

from tests.bench.recall_quality import HERE, OWN_SETS, Talk, index, open_store, read_locomo, read_own
from tests.bench.report import Figure

from everkept.domain.ids import SubjectId
from everkept.domain.scope import Scope
from everkept.domain.text import query_terms
from everkept.models.word_vectors import WordllamaVectors
from everkept.recall.search import Query, Searcher
from everkept.store.connection import Connection

LOCOMO = "EVERKEPT_LOCOMO"
K = 10


def measure(_home: Path, *, quick: bool) -> Iterator[Figure]:
    own = list(read_own(OWN_SETS))
    words = WordllamaVectors()
    languages = sorted({talk.name.partition(" ")[0] for talk in own})
    for language in languages:
        talks = [talk for talk in own if talk.name.partition(" ")[0] == language]
        yield from _figures(f"own sets, {language}", talks, words)
    locomo = os.environ.get(LOCOMO)
    if locomo:
        yield from _figures("LoCoMo, all categories", list(read_locomo(Path(locomo))), words)


def _figures(name: str, talks: Sequence[Talk], words: WordllamaVectors) -> Iterator[Figure]:
    conn = open_store()
    passage_of = index(conn, talks, words)
    searcher = Searcher(words)
    mine, plain = [], []
    for subject, talk in enumerate(talks, 1):
        scope = Scope(project=HERE, subject=SubjectId(subject))
        for asked in talk.asked:
            evidence = {passage_of[subject, place] for place in asked.evidence}
            ranked = searcher.search(conn, scope, Query(text=asked.question, kinds=("turn",)))
            mine.append(_share([hit.hit.id for hit in ranked.hits[:K]], evidence))
            plain.append(_share(_bm25(conn, subject, asked.question), evidence))
    conn.raw.close()
    yield Figure(
        name=f"R@{K} {name} ({len(mine)} questions)",
        value=100 * mean(mine),
        unit="%",
        peer="FTS5 bm25",
        peer_value=100 * mean(plain),
    )


def _share(found: Sequence[int], evidence: set[int]) -> float:
    return len(evidence & set(found)) / len(evidence)


def _bm25(conn: Connection, subject: int, question: str) -> list[int]:
    any_word = " OR ".join(f'"{term}"' for term in query_terms(question))
    rows = conn.raw.execute(
        "select rowid from passage_text where passage_text match ? order by rank limit ?",
        (f'scope : "s{subject}" AND {{speaker own said}} : ({any_word})', K),
    ).fetchall()
    return [row[0] for row in rows]
