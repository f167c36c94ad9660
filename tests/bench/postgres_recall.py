"""Recall on PostgreSQL at 10k, 100k and 1M passages of one project: all vectors looked through, and pgvector's graph.

Passages are copied into the tables as the program would write them; 100,000 made-up turns are repeated, each time with
other vectors. What a graph misses is counted against looking through everything.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
from tests.bench.corpus import make_questions, make_texts
from tests.bench.report import Figure
from tests.postgres import new_database

from everkept.domain.ids import ProjectId, SubjectId
from everkept.domain.passage import analyse
from everkept.domain.scope import Scope
from everkept.models.pooling import Bits, Pooling, content_words, sign_bits
from everkept.models.word_vectors import WordllamaVectors
from everkept.ports.clock import SystemClock
from everkept.recall.search import Query, Searcher
from everkept.recall.vectors import VectorsInDatabase
from everkept.store.connection import Connection
from everkept.store.full_text_postgres import _lexemes
from everkept.store.postgres import PostgresDatabase
from everkept.store.projects import ensure_project
from everkept.store.text_rows import TextRow, scope_terms
from everkept.store.vector_graphs import make_graphs

TEXTS = 100_000
SUBJECTS = 20
SITTING = 20
"""Turns of a stream."""
POOLED = 10_000
"""Turns whose vectors are pooled of their words; those of the others are theirs with a tenth of the bits turned."""
ASKED = 60
WARM = 10
DENSE = 40
BUILD_MEMORY = "2GB"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Talk:
    """Made-up turns as the index wants them."""

    own: Sequence[str]
    traits: Sequence[int]
    bits: Bits


def measure(_home: Path, *, quick: bool) -> Iterator[Figure]:
    url = new_database()
    PostgresDatabase(url).prepare(SystemClock())
    texts = make_texts(TEXTS)
    talk, words = _prepared(texts), WordllamaVectors()
    questions = make_questions(texts[:10_000], WARM + ASKED)
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute(f"set maintenance_work_mem = '{BUILD_MEMORY}'; set max_parallel_maintenance_workers = 0")
        had = 0
        for size in (10_000, 100_000) if quick else (10_000, 100_000, 1_000_000):
            _copy(url, talk, had, size)
            had = size
            yield from _figures(url, owner, words, questions, size)


def _figures(url: str, owner: Any, words: WordllamaVectors, questions: Sequence[str], size: int) -> Iterator[Figure]:
    """The same questions before and after the project has a graph of all its vectors."""
    owner.execute("delete from vector_graphs")
    database = PostgresDatabase(url)
    vectors = _question_vectors(words, questions)
    with database.connect(read_only=True) as raw:
        conn = Connection(raw, database.dialect, SystemClock())
        asking = _Asking(database, conn, Searcher(words), questions, vectors)
        scanned, exact = asking.recalls(), asking.nearest()
        start = time.perf_counter()
        made = list(make_graphs(owner, lacking_max=0))
        build_s = time.perf_counter() - start
        assert [graph.vectors for graph in made] == [size]
        owner.execute("vacuum analyze vectors")
        followed, found = asking.recalls(), asking.nearest()
        one_subject = asking.recalls(SubjectId(1))
    bytes_ = owner.execute("select sum(pg_relation_size(name::regclass)) from vector_graphs").fetchone()[0]
    shares = [len(set(a) & set(b)) / len(a) for a, b in zip(exact.ids, found.ids, strict=True)]
    name = f"over {size:,} passages"
    for share in (50, 95):
        yield _figure(f"recall {name}, graph, p{share}", followed, "recall, all looked through", scanned, share)
    for share in (50, 95):
        yield _figure(f"nearest vectors {name}, graph, p{share}", found.ms, "all looked through", exact.ms, share)
    yield _figure(f"recall {name}, of one subject in {SUBJECTS}, p50", one_subject, "of all", followed, 50)
    yield Figure(
        name=f"nearest {DENSE} {name} that the graph finds", value=100 * float(np.mean(shares)), unit="%",
        peer="all looked through", peer_value=100.0,
    )  # fmt: skip
    yield Figure(
        name=f"graph {name}, made beside writers",
        value=build_s,
        unit="s",
        peer="its size, MB",
        peer_value=float(bytes_) / 1e6,
    )


def _figure(name: str, mine: Sequence[float], peer: str, others: Sequence[float], share: int) -> Figure:
    value, beside = (float(np.percentile(ms, share)) for ms in (mine, others))
    return Figure(name=name, value=value, unit="ms", peer=peer, peer_value=beside)


@dataclass(frozen=True, slots=True)
class _Nearest:
    ms: list[float]
    ids: list[list[int]]


class _Asking:
    def __init__(
        self, database: PostgresDatabase, conn: Connection, searcher: Searcher, questions: Sequence[str],
        vectors: Sequence[npt.NDArray[np.float32]],
    ) -> None:  # fmt: skip
        self._database = database
        self._conn = conn
        self._searcher = searcher
        self._questions = questions
        self._vectors = vectors

    def recalls(self, subject: SubjectId | None = None) -> list[float]:
        """Milliseconds of each whole search, its transaction with it."""
        scope = Scope(project=ProjectId(1), subject=subject)
        return [
            self._timed(self._searcher.search, self._conn, scope, Query(text=question, depth=10))[0]
            for question in self._questions
        ][WARM:]

    def nearest(self) -> _Nearest:
        in_database = VectorsInDatabase(self._conn, ProjectId(1), WordllamaVectors.name, WordllamaVectors.dim)
        timed = [self._timed(in_database.nearest, vector, None, DENSE) for vector in self._vectors][WARM:]
        return _Nearest([ms for ms, _ in timed], [ids.tolist() for _, ids in timed])

    def _timed(self, ask: Callable[..., Any], *given: Any) -> tuple[float, Any]:
        start = time.perf_counter()
        self._database.begin_read(self._conn.raw)
        found = ask(*given)
        self._database.end_read(self._conn.raw)
        return (time.perf_counter() - start) * 1e3, found


# ---- what is recalled


def _prepared(texts: Sequence[str]) -> _Talk:
    analysed = [analyse(text) for text in texts]
    pooling = Pooling(WordllamaVectors(), passages=len(texts), frequencies={})
    said = [content_words(text) for text in texts[:POOLED]]
    pooled = [
        sign_bits(pooling.pool([w for at in range(max(0, i - 2), i + 1) for w in said[at]])) for i in range(POOLED)
    ]
    bits = np.frombuffer(b"".join(row or bytes(32) for row in pooled), np.uint8).reshape(POOLED, -1)
    return _Talk(own=[a.own for a in analysed], traits=[a.traits for a in analysed], bits=bits)


def _question_vectors(words: WordllamaVectors, questions: Sequence[str]) -> list[npt.NDArray[np.float32]]:
    pooling = Pooling(words, passages=TEXTS, frequencies={})
    return [pooling.pool(content_words(question)) for question in questions]


def _turned(bits: Bits, dice: np.random.Generator) -> Bits:
    """With a tenth of the bits the other way."""
    turned: Bits = np.packbits(
        np.unpackbits(bits, axis=1) ^ (dice.random((len(bits), bits.shape[1] * 8)) < 0.1), axis=1
    )
    return turned


def _copy(url: str, talk: _Talk, had: int, size: int) -> None:
    """The passages with the ids above `had` up to `size`, with their words, counts and vectors."""
    counts: Counter[str] = Counter()
    with psycopg.connect(url, autocommit=True) as raw:
        ensure_project(Connection(raw, PostgresDatabase(url).dialect, SystemClock()), "default", bytes(32))
        raw.execute("set session_replication_role = replica")  # references hold: they are not looked up row by row
        for start in range(had, size, POOLED):
            ids = range(start + 1, min(start + POOLED, size) + 1)
            _copy_some(raw, talk, ids, counts)
        raw.cursor().executemany(
            "insert into passage_terms(term, passages) values(%s, %s)"
            " on conflict (term) do update set passages = passage_terms.passages + excluded.passages",
            list(counts.items()),
        )
        terms = sum(len(talk.own[n % TEXTS].split()) for n in range(had, size))
        raw.execute(
            "insert into passage_totals(id, passages, terms) values(1, %s, %s) on conflict (id) do update"
            " set passages = passage_totals.passages + excluded.passages,"
            " terms = passage_totals.terms + excluded.terms",
            (size - had, terms),
        )
        raw.execute("vacuum analyze")


def _copy_some(raw: Any, talk: _Talk, ids: range, counts: Counter[str]) -> None:
    cursor = raw.cursor()
    own = [talk.own[(n - 1) % TEXTS] for n in ids]
    before = ["" if n % SITTING == 1 else talk.own[(n - 2) % TEXTS] for n in ids]
    place = [(1, (n - 1) // SITTING % SUBJECTS + 1, (n - 1) // SITTING + 1, "turn") for n in ids]
    with cursor.copy(
        "copy passages(id, project_id, subject_id, stream_id, seq, kind, sitting, traits, embedded) from stdin"
    ) as rows:
        for n, (project, subject, stream, kind) in zip(ids, place, strict=True):
            seq = (n - 1) % SITTING + 1
            rows.write_row((n, project, subject, stream, seq, kind, 1, talk.traits[(n - 1) % TEXTS], "wordllama"))
    with cursor.copy("copy passage_text(id, speaker, own, said, before) from stdin") as rows:
        for row in zip(ids, own, before, strict=True):
            rows.write_row((row[0], "", row[1], "", row[2]))
    with cursor.copy(
        "copy passage_index(passage_id, project_id, subject_id, stream_id, kind, lexemes) from stdin"
    ) as rows:
        for n, here, text, earlier in zip(ids, place, own, before, strict=True):
            lexemes = _lexemes(TextRow(n, here, "", text, "", earlier))
            rows.write_row((n, *here, " ".join(f"'{lexeme}'" for lexeme in lexemes)))
            counts.update({*scope_terms(*here), *f"{text} {earlier}".split()})
    bits = _turned(talk.bits[: len(ids)], np.random.default_rng(ids.start))
    with cursor.copy("copy vectors(passage_id, model, project_id, subject_id, own, around) from stdin") as rows:
        for n, (project, subject, *_), row in zip(ids, place, bits, strict=True):
            rows.write_row((n, WordllamaVectors.name, project, subject, row.tobytes(), row.tobytes()))
