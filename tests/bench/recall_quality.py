"""Turn-level evidence recall through the real store and Searcher.

    python tests/bench/recall_quality.py LOCOMO.json            # LoCoMo (CC BY-NC, not part of this project)
    python tests/bench/recall_quality.py --own                  # our own sets in tests/data/recall
    python -m tests.bench.recall_quality --own --postgresql     # the same on PostgreSQL

All conversations stand in one store, one subject each; a question is asked in its subject's scope, with turns only.
recall@k is the share of a question's evidence turns among the first k, averaged over questions. No answer, category or
evidence is shown to the ranker.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from pysqlite3 import dbapi2
from sqlalchemy.schema import CreateIndex, CreateTable

from everkept.domain.ids import ProjectId, StreamId, SubjectId
from everkept.domain.passage import analyse
from everkept.domain.scope import Scope
from everkept.domain.text import stem
from everkept.models.pooling import Pooling, content_words, names_of
from everkept.models.word_vectors import WordllamaVectors
from everkept.ports.clock import SystemClock
from everkept.recall.search import Query, Searcher
from everkept.store import search as store
from everkept.store.connection import Connection
from everkept.store.dialect import sqlite_dialect
from everkept.store.search import NewPassage, NewVectors
from everkept.store.tables import FULL_TEXT_SQLITE, metadata

OWN_SETS = Path(__file__).parent.parent / "data" / "recall"
HERE = ProjectId(1)
KS = (5, 10, 20)


@dataclass(kw_only=True)
class Asked:
    question: str
    evidence: set[str]
    category: str


@dataclass(kw_only=True)
class Talk:
    name: str
    sessions: list[tuple[datetime, list[tuple[str, str, str]]]]
    """(date, turns of (id, speaker, text))"""
    asked: list[Asked] = field(default_factory=list)


def open_store(path: str = ":memory:") -> Connection:
    raw = dbapi2.connect(path, isolation_level=None)
    dialect = sqlite_dialect()
    for table in metadata.sorted_tables:
        raw.execute(str(CreateTable(table).compile(dialect=dialect)))
        for index in table.indexes:
            raw.execute(str(CreateIndex(index).compile(dialect=dialect)))
    for statement in FULL_TEXT_SQLITE:
        raw.execute(statement)
    raw.execute("insert into workspaces(id, name, created_at) values(1, 'default', 0)")
    raw.execute("insert into projects(id, workspace_id, name, secret, created_at) values(1, 1, 'default', x'00', 0)")
    return Connection(raw, dialect, SystemClock())


def open_served() -> Connection:
    """A new database of the server that the tests use."""
    from tests.postgres import new_database

    from everkept.store.postgres import PostgresDatabase

    database = PostgresDatabase(new_database())
    database.prepare(SystemClock())
    raw = database.connect(read_only=False)
    raw.execute("insert into projects(workspace_id, name, secret, created_at) values(1, 'default', '', 0)")
    return Connection(raw, database.dialect, SystemClock())


# ---- data


def read_locomo(path: Path) -> Iterator[Talk]:
    for sample in json.loads(path.read_text(encoding="utf-8")):
        talk, sessions = sample["conversation"], []
        for number in sorted(int(m[1]) for key in talk if (m := re.fullmatch(r"session_(\d+)", key))):
            at = datetime.strptime(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
            turns = []
            for t in talk[f"session_{number}"]:
                text = (t.get("text") or "").strip()
                if t.get("blip_caption"):
                    text += f" [shared image: {t['blip_caption']}]"
                turns.append((_clean_id(t["dia_id"]), t["speaker"], text))
            sessions.append((at, turns))
        known = {i for _, turns in sessions for i, _, _ in turns}
        asked = []
        for q in sample["qa"]:
            evidence = {
                _clean_id(m) for e in q.get("evidence") or [] for m in re.findall(r"D\s*:?\s*\d+\s*:\s*\d+", str(e))
            }
            if evidence & known:
                asked.append(Asked(question=str(q["question"]), evidence=evidence & known, category=str(q["category"])))
        yield Talk(name=sample["sample_id"], sessions=sessions, asked=asked)


def _clean_id(text: str) -> str:
    session, turn = re.findall(r"\d+", text)[:2]
    return f"D{int(session)}:{int(turn)}"


def read_own(folder: Path) -> Iterator[Talk]:
    for file in sorted(folder.glob("*.json")):
        data = json.loads(file.read_text(encoding="utf-8"))
        for one in data if isinstance(data, list) else [data]:
            yield _own_talk(one)


def _own_talk(one: dict[str, Any]) -> Talk:
    sessions = []
    for s in one["sessions"]:
        at = datetime.fromisoformat(s["date"])
        turns = [(t["id"], t.get("speaker") or t.get("role") or "user", t["text"]) for t in s["turns"]]
        sessions.append((at if at.tzinfo else at.replace(tzinfo=UTC), turns))
    asked = [Asked(question=q["q"], evidence=set(q["evidence"]), category=str(q["category"])) for q in one["questions"]]
    return Talk(name=f"{one['language']} {one['id']}", sessions=sessions, asked=asked)


# ---- measuring


def index(conn: Connection, talks: Iterable[Talk], words: WordllamaVectors) -> dict[tuple[int, str], int]:
    """Put the talks into the store, one subject each; (subject, turn id) → passage id."""
    passage_of: dict[tuple[int, str], int] = {}
    texts: list[tuple[int, str, list[str], str]] = []
    stream = 0
    for subject, talk in enumerate(talks, 1):
        for at, turns in talk.sessions:
            stream += 1
            us = int(at.timestamp() * 1e6)
            batch = [
                NewPassage(
                    project=HERE,
                    subject=SubjectId(subject),
                    stream=StreamId(stream),
                    seq=seq,
                    kind="turn",
                    speaker=speaker,
                    occurred_at_us=us + seq,
                    analysed=analyse(text, speaker=speaker, occurred_at_us=us + seq),
                )
                for seq, (_, speaker, text) in enumerate(turns, 1)
            ]
            ids = store.index_passages(conn, batch)
            for place, ((name, speaker, text), id_) in enumerate(zip(turns, ids, strict=True)):
                passage_of[subject, name] = id_
                texts.append((id_, text, [t for _, _, t in turns[max(0, place - 2) : place]], speaker))
    corpus = store.corpus_size(conn)
    stems = {stem(word) for _, text, before, _ in texts for said in (text, *before) for word in content_words(said)}
    frequencies = store.document_frequencies(conn, sorted(stems))
    names = names_of(s for *_, s in texts)
    pooling = Pooling(words, passages=corpus.passages, frequencies=frequencies, names=names)
    rows = [NewVectors(id_, *pooling.passage(text, before)) for id_, text, before, _ in texts]
    store.write_vectors(conn, HERE, words.name, rows)
    return passage_of


def measure(conn: Connection, talks: list[Talk], searcher: Searcher, passage_of: dict[tuple[int, str], int]) -> None:
    found: dict[str, list[list[float]]] = defaultdict(list)
    times: list[float] = []
    for round_ in (1, 2):  # the second with warm caches, as in a running service
        times.clear()
        found.clear()
        for subject, talk in enumerate(talks, 1):
            scope = Scope(project=HERE, subject=SubjectId(subject))
            for q in talk.asked:
                start = time.perf_counter()
                ranked = searcher.search(conn, scope, Query(text=q.question, kinds=("turn",)))
                times.append((time.perf_counter() - start) * 1e3)
                ids = [r.hit.id for r in ranked.hits[: max(KS)]]
                evidence = {passage_of[subject, e] for e in q.evidence}
                shares = [100 * len(evidence & set(ids[:k])) / len(evidence) for k in KS]
                found[f"category {q.category}"].append(shares)
                found[talk.name].append(shares)
                found["all"].append(shares)
                if q.category != "5":
                    found["categories 1-4"].append(shares)
        print(
            f"round {round_}: {len(times)} questions, ms p50 {np.median(times):.2f} p95 {np.percentile(times, 95):.2f}"
        )
    for name in sorted(found):
        values = np.array(found[name])
        error = values[:, 1].std() / len(values) ** 0.5
        shown = " / ".join(f"{v:.1f}" for v in values.mean(axis=0))
        print(f"{name:28} {len(values):5} questions   R@5 / 10 / 20  {shown}   (± {error:.1f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("locomo", nargs="?", type=Path)
    parser.add_argument("--own", action="store_true", help=f"measure the sets in {OWN_SETS}")
    parser.add_argument("--no-vectors", action="store_true", help="without static vectors (recipe L)")
    parser.add_argument("--postgresql", action="store_true", help="in a database of the server that the tests use")
    given = parser.parse_args()
    if not given.locomo and not given.own:
        parser.print_help(sys.stderr)
        sys.exit(2)
    words = WordllamaVectors()
    for talks in ([list(read_locomo(given.locomo))] if given.locomo else []) + (
        [list(read_own(OWN_SETS))] if given.own else []
    ):
        conn = open_served() if given.postgresql else open_store()
        start = time.perf_counter()
        passage_of = index(conn, talks, words)
        print(f"{len(passage_of)} turns of {len(talks)} talks indexed in {time.perf_counter() - start:.1f} s")
        measure(conn, talks, Searcher(None if given.no_vectors else words), passage_of)


if __name__ == "__main__":
    main()
