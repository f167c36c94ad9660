"""Recall at 1k, 10k and 100k turns, of one subject and spread over a project, beside plain FTS5 over the same rows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tests.bench.corpus import make_questions, make_texts
from tests.bench.report import Figure, Goal
from tests.bench.store_append import prepare

from everkept.bootstrap import Application, open_application
from everkept.config import load
from everkept.domain.ids import ProjectId
from everkept.domain.text import query_terms
from everkept.models.pooling import Pooling
from everkept.ports.embedder import WordVectors
from everkept.store.connection import Connection
from everkept.store.projects import find_project
from everkept.store.search import NewVectors, corpus_size, mark_embedded, pending_embeddings, write_vectors
from everkept.store.sqlite import choose_driver, open_file
from everkept.store.streams import append_events

SUBJECTS = 200
THREAD_TURNS = 500
WARM = 20
"""Questions that warm the caches and are not counted."""
_GOALS = {
    (4_000, 50): Goal(of="value", sense="most", bound=5.0),
    (10_000, 50): Goal(of="value", sense="most", bound=8.0),
    (100_000, 95): Goal(of="value", sense="most", bound=50.0),
}


def measure(home: Path, *, quick: bool) -> Iterator[Figure]:
    """Stores that grow. Caches are warm, as in a running service: the first questions are not counted."""
    sizes = (1_000, 4_000, 10_000) if quick else (1_000, 4_000, 10_000, 100_000)
    yield from asyncio.run(_measure(home / "one", sizes, subjects=1))
    yield from asyncio.run(_measure(home / "spread", [n for n in sizes if n != 4_000], subjects=SUBJECTS))


async def _measure(home: Path, sizes: Sequence[int], *, subjects: int) -> list[Figure]:
    """Recall over one subject, or over a project of many."""
    application = await open_application(load({"EVERKEPT_HOME": str(home)}, home), worker=False)
    plain_index = _open_plain(home / "plain.db")
    figures: list[Figure] = []
    try:
        texts = make_texts(max(sizes))
        had = 0
        for size in sizes:
            await _grow(application, texts, had, size, subjects)
            had = size
            _copy_rows(application, plain_index)
            mine, plain = await _ask(
                application, plain_index, make_questions(texts[:size], 220), _subject(0) if subjects == 1 else None
            )
            figures += [
                Figure(
                    name=f"recall over {size:,} turns{'' if subjects == 1 else f' of {subjects} subjects'}, p{share}",
                    value=float(np.percentile(mine, share)),
                    unit="ms",
                    peer="FTS5 bm25, any word, best 10",
                    peer_value=float(np.percentile(plain, share)),
                    goal=_GOALS.get((size, share)),
                )
                for share in (50, 95)
            ]
    finally:
        plain_index.close()
        await application.close()
    return figures


async def _ask(
    application: Application, plain_index: Any, questions: Sequence[str], subject: str | None
) -> tuple[list[float], list[float]]:
    """Milliseconds of each recall, and of plain FTS5 for some; the first ones warm up."""
    service = await application.service()
    mine, plain = [], []
    for number, question in enumerate(questions):
        start = time.perf_counter()
        await service.recall(question, subject=subject)
        mine.append((time.perf_counter() - start) * 1e3)
        if number % 4 == 0:  # it takes long in a large store
            start = time.perf_counter()
            _plain_search(plain_index, question)
            plain.append((time.perf_counter() - start) * 1e3)
        if number == WARM - 1:
            mine.clear()
            plain.clear()
    return mine, plain


def _subject(number: int) -> str:
    return f"user_{number}"


async def _grow(application: Application, texts: Sequence[str], had: int, size: int, subjects: int) -> None:
    """Append turns until there are `size`, and give them their vectors, without the worker's pauses."""
    store, settings = application.parts.store, application.settings
    project = store.read_now(find_project, "default")
    assert project is not None
    turns = THREAD_TURNS if subjects == 1 else 20
    for start in range(had, size, turns):
        some = texts[start : min(size, start + turns)]
        who = _subject(start // turns % subjects)
        for batch in prepare(some, project, settings, thread=f"t{start}", subject=who):
            await store.write_item(append_events, batch)
    words = application.parts.tools.words
    assert words is not None
    while await store.write(_embed_some, ProjectId(project.id), words):
        pass


_FREQUENCIES: dict[str, int] = {}


def _embed_some(conn: Connection, project: ProjectId, words: WordVectors) -> int:
    """What the job `embed_passages` does, 2,000 passages at a time."""
    pending = pending_embeddings(conn, project, 2_000)
    pooling = Pooling(words, passages=corpus_size(conn).passages, frequencies=_FREQUENCIES, names=frozenset())
    rows = [NewVectors(p.id, *pooling.passage(p.text or "", [text for _, text in p.before])) for p in pending]
    write_vectors(conn, project, words.name, rows)
    mark_embedded(conn, project, [p.id for p in pending], words.name)
    return len(pending)


def _open_plain(file: Path) -> Any:
    """An index of FTS5's own settings: Everkept's keeps nothing that bm25 needs, and would be slow at it."""
    raw = open_file(choose_driver(), file)
    raw.execute(
        "create virtual table words using fts5(scope, speaker, own, said, before,"
        " tokenize = \"ascii tokenchars '_-./:@&+#'\")"
    )
    return raw


def _copy_rows(application: Application, plain: Any) -> None:
    """Everkept's rows that the plain index does not have yet."""
    after = plain.execute("select coalesce(max(rowid), 0) from words").fetchone()[0]
    rows = application.parts.store.read_now(
        lambda conn: conn.raw.execute(
            "select id, c0, c1, c2, c3, c4 from passage_text_content where id > ?", (after,)
        ).fetchall()
    )
    plain.execute("begin")
    plain.executemany("insert into words(rowid, scope, speaker, own, said, before) values(?, ?, ?, ?, ?, ?)", rows)
    plain.execute("commit")


def _plain_search(plain: Any, question: str) -> list[tuple[int, float]]:
    """The ten best by FTS5's own bm25 in the project: the least that such a search costs."""
    any_word = " OR ".join(f'"{term}"' for term in query_terms(question))
    found: list[tuple[int, float]] = plain.execute(
        "select rowid, rank from words where words match ? order by rank limit 10",
        (f'scope : "p1" AND {{speaker own said}} : ({any_word})',),
    ).fetchall()
    return found
