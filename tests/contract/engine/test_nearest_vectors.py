"""The passages nearest to a question: the same on both databases, by all of a scope or by pgvector's graph of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import numpy as np
import numpy.typing as npt
import psycopg
import pytest
from sqlalchemy import text
from tests.postgres import new_database

from everkept.domain.ids import ProjectId, StreamId, SubjectId
from everkept.domain.passage import analyse
from everkept.errors import Conflict, StoreNotSupported
from everkept.ports.clock import VirtualClock
from everkept.recall.vectors import SignBits, VectorsInDatabase
from everkept.store import nearest_postgres
from everkept.store.connection import Connection
from everkept.store.pgvector import require_pgvector
from everkept.store.postgres import PostgresDatabase
from everkept.store.search import (
    NewPassage,
    NewVectors,
    delete_passages,
    hide_passages,
    index_passages,
    load_vectors_since,
    write_vectors,
)
from everkept.store.vector_graphs import make_graphs

pytestmark = pytest.mark.only_on("postgresql", reason="each test has both, side by side")
MODEL, DIM, BITS = "words", 256, 32
HERE, ELSEWHERE = ProjectId(1), ProjectId(2)
Floats = npt.NDArray[np.float32]


@pytest.fixture(scope="module")
def empty() -> str:
    """The URL of a database that has two projects."""
    url = new_database()
    PostgresDatabase(url).prepare(VirtualClock())
    with psycopg.connect(url, autocommit=True) as raw:
        for name in ("here", "elsewhere"):
            raw.execute("insert into projects(workspace_id, name, secret, created_at) values(1, %s, '', 0)", (name,))
    return url


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    """As a writer is, in autocommit."""
    database = PostgresDatabase(url)
    with database.connect(read_only=False) as raw:
        yield Connection(raw, database.dialect, VirtualClock())


@pytest.fixture
def conn(empty: str) -> Iterator[Connection]:
    with connected(new_database(like=empty)) as conn:
        yield conn


def remember(conn: Connection, project: ProjectId, bits: npt.NDArray[np.uint8], subjects: Sequence[int]) -> list[int]:
    """A passage a row of `bits`, each of the subject at its place; their ids."""
    analysed = analyse("x")
    with conn.raw.transaction():
        ids = index_passages(conn, [
            NewPassage(project, SubjectId(subject), "turn", analysed, StreamId(1000 * project + subject), seq)
            for seq, subject in enumerate(subjects, next(_SEQ))
        ])  # fmt: skip
        rows = [NewVectors(id_, row.tobytes(), row.tobytes()) for id_, row in zip(ids, bits, strict=True)]
        write_vectors(conn, project, MODEL, rows)
    return ids


_SEQ = iter(range(1, 10**9, 10**5))


def some_bits(dice: np.random.Generator, count: int) -> npt.NDArray[np.uint8]:
    """Of a few topics, as talk is; every tenth is said twice."""
    topics = dice.integers(0, 256, (20, BITS), np.uint8)
    turned = np.packbits(dice.random((count, DIM)) < 0.15, axis=1)
    bits = topics[dice.integers(0, len(topics), count)] ^ turned
    bits[1::10] = bits[::10][: len(bits[1::10])]
    return bits


def some_questions(dice: np.random.Generator, bits: npt.NDArray[np.uint8], count: int) -> list[Floats]:
    """Unit vectors near to some of the bits."""
    signs = np.unpackbits(bits[dice.integers(0, len(bits), count)], axis=1) * np.float32(2) - 1
    near = signs + dice.normal(0, 1, signs.shape).astype(np.float32)
    return list((near / np.linalg.norm(near, axis=1, keepdims=True)).astype(np.float32))


def in_database(conn: Connection, project: ProjectId = HERE) -> VectorsInDatabase:
    return VectorsInDatabase(conn, project, MODEL, DIM)


def nearest(conn: Connection, question: Floats, subject: int | None = None, limit: int = 40) -> list[int]:
    with conn.raw.transaction():
        found: list[int] = in_database(conn).nearest(question, subject, limit).tolist()
        return found


def graphs(conn: Connection) -> list[str]:
    rows = conn.raw.execute(
        "select c.relname from pg_class c join pg_am a on a.oid = c.relam where a.amname = 'hnsw' order by 1"
    )
    return [name for (name,) in rows]


def in_memory(conn: Connection, project: ProjectId = HERE) -> SignBits:
    return SignBits(0, DIM).extended(load_vectors_since(conn, project, MODEL, 0))


def test_the_nearest_are_the_same_in_memory_and_in_the_database(conn: Connection) -> None:
    """More than are looked at closely, many of them equally far; some hidden, some gone, some of another model."""
    dice = np.random.default_rng(1)
    bits = some_bits(dice, 1_200)
    subjects = dice.integers(1, 5, len(bits)).tolist()
    ids = remember(conn, HERE, bits, subjects)
    remember(conn, ELSEWHERE, bits, subjects)
    with conn.raw.transaction():
        hide_passages(conn, HERE, ids[::7])
        delete_passages(conn, HERE, ids[::11])
        write_vectors(conn, HERE, "another", [NewVectors(id_, b"\x01" * 32, b"\x01" * 32) for id_ in ids[:50]])
    kept = in_memory(conn)
    asked = np.array(sorted({*ids[:300], *ids[-5:]}), np.int64)
    for question in some_questions(dice, bits, 8):
        for subject in (None, 1, 4, 9):
            for limit in (10, 40, 400):
                assert nearest(conn, question, subject, limit) == kept.nearest(question, subject, limit).tolist()
        shown = np.isin(asked, kept.ids)
        for expected, found in zip(
            kept.cosines(question, asked), in_database(conn).cosines(question, asked), strict=True
        ):
            assert np.allclose(expected[shown], found[shown], atol=1e-6)
    assert 0 < shown.sum() < shown.size


def test_vectors_of_any_length_are_compared(conn: Connection) -> None:
    question = np.full(64, 1 / 8, np.float32)
    remember(conn, HERE, np.array([[0] * 8, [255] * 8, [255] * 4 + [0] * 4], np.uint8), [1, 1, 1])
    short = VectorsInDatabase(conn, HERE, MODEL, 64)
    assert short.nearest(question, None, 2).tolist() == [2, 3]
    assert nearest(conn, np.full(DIM, 1 / 16, np.float32)) == []


# ---- the graph


@pytest.fixture(scope="module")
def with_graph(empty: str) -> tuple[str, list[int], npt.NDArray[np.uint8]]:
    """(URL, passages, their bits) of a project with a graph of 1,500 vectors, ten of which are of subject 7."""
    bits = some_bits(np.random.default_rng(2), 1_500)
    url = new_database(like=empty)
    with connected(url) as conn:
        ids = remember(conn, HERE, bits, [7 if n % 150 == 0 else 1 for n in range(len(bits))])
        conn.raw.execute("analyze")
        assert [graph.vectors for graph in make_graphs(conn.raw, lacking_max=1_000)] == [1_500]
    return url, ids, bits


@pytest.fixture
def large(
    with_graph: tuple[str, list[int], npt.NDArray[np.uint8]], monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Connection, list[int], npt.NDArray[np.uint8]]]:
    """That project. A subject is looked for in the graph, too, and the planner takes it for a large one."""
    monkeypatch.setattr(nearest_postgres, "SCANNED_MAX", 0)
    url, ids, bits = with_graph
    with connected(new_database(like=url)) as conn:
        conn.raw.execute("set enable_sort = off")
        yield conn, ids, bits


Large = tuple[Connection, list[int], npt.NDArray[np.uint8]]


def test_the_graph_is_used_and_finds_nearly_all(large: Large) -> None:
    conn, _, bits = large
    kept = in_memory(conn)
    questions = some_questions(np.random.default_rng(3), bits, 20)
    shares = [
        len({*nearest(conn, question)} & {*kept.nearest(question, None, 40).tolist()}) / 40 for question in questions
    ]
    assert np.mean(shares) > 0.9
    asked = {"project": 1, "model": MODEL, "subject": 7, "signs": "01" * 128, "limit": 200, "until": 1_500}
    plan = conn.rows(text(f"explain {nearest_postgres._FOLLOW_GRAPH.text}"), asked)
    assert f"Index Scan using {graphs(conn)[0]}" in "\n".join(line for (line,) in plan)


@pytest.mark.parametrize("in_graph", [True, False])
def test_a_small_subject_of_a_large_project_gets_all_it_has(
    large: Large, monkeypatch: pytest.MonkeyPatch, in_graph: bool
) -> None:
    """Among the first hundreds that a graph finds there may be none of them."""
    conn, ids, bits = large
    if not in_graph:
        monkeypatch.setattr(nearest_postgres, "SCANNED_MAX", 20_000)
    for question in some_questions(np.random.default_rng(4), bits, 5):
        assert sorted(nearest(conn, question, subject=7, limit=10)) == ids[::150]


def test_a_project_among_many_gets_all_it_has(large: Large) -> None:
    conn, _, bits = large
    mine = remember(conn, ELSEWHERE, bits[:10], [1] * 10)
    for question in some_questions(np.random.default_rng(5), bits, 5):
        with conn.raw.transaction():
            assert sorted(in_database(conn, ELSEWHERE).nearest(question, None, 10).tolist()) == mine


def test_what_came_after_the_graph_is_found_and_what_went_is_not(large: Large) -> None:
    conn, ids, bits = large
    question = some_questions(np.random.default_rng(6), bits, 1)[0]
    signs = np.packbits(question > 0)[None, :]
    (new,) = remember(conn, HERE, signs, [1])
    assert nearest(conn, question)[0] == new
    with conn.raw.transaction():
        delete_passages(conn, HERE, [new])
    first, second = nearest(conn, question)[:2]
    with conn.raw.transaction():
        hide_passages(conn, HERE, [first])
    assert nearest(conn, question)[0] == second
    with conn.raw.transaction():
        write_vectors(conn, HERE, MODEL, [NewVectors(ids[5], signs.tobytes(), signs.tobytes())])
    assert nearest(conn, question)[0] == ids[5]
    assert second in nearest(conn, question)


def test_a_vector_that_is_written_again_or_moved_does_not_wait_for_its_place_in_a_graph(large: Large) -> None:
    conn, ids, bits = large
    mine = remember(conn, ELSEWHERE, bits[:3], [1] * 3)
    with conn.raw.transaction():
        write_vectors(conn, HERE, MODEL, [NewVectors(ids[0], bits[9].tobytes(), bits[9].tobytes())])
        conn.raw.execute("update vectors set project_id = 1 where project_id = 2")
    (until,) = conn.raw.execute("select written_until from vector_graphs").fetchone()
    outside = conn.raw.execute("select passage_id from vectors where written > %s order by 1", (until,)).fetchall()
    assert [id_ for (id_,) in outside] == [ids[0], *mine]


def test_a_graph_is_made_again_once_much_is_outside_of_it(large: Large) -> None:
    conn, _, bits = large
    old = graphs(conn)
    remember(conn, HERE, bits[:50], [1] * 50)
    assert list(make_graphs(conn.raw, lacking_max=50)) == []
    assert graphs(conn) == old
    assert [graph.vectors for graph in make_graphs(conn.raw, lacking_max=49)] == [50]
    (new,) = graphs(conn)
    assert [new] != old


def test_what_a_run_that_died_has_left_is_taken_away(large: Large) -> None:
    conn, _, _ = large
    kept = graphs(conn)
    conn.raw.execute("create index near_vectors_9_9 on vectors using hnsw ((signs::bit(256)) bit_hamming_ops)")
    list(make_graphs(conn.raw, lacking_max=10_000))
    assert graphs(conn) == kept


def test_of_two_runs_at_once_the_second_gives_way(large: Large) -> None:
    """To wait it would need a snapshot, and the first would wait for that."""
    conn, _, _ = large
    first = make_graphs(conn.raw, lacking_max=0)
    with PostgresDatabase(conn.raw.info.dsn).connect(read_only=False) as raw:
        conn.raw.execute("update vectors set project_id = project_id")  # all are outside of the graph now
        assert next(first).vectors == 1_500
        with pytest.raises(Conflict, match="another `everkept db index`"):
            list(make_graphs(raw))
        assert list(first) == []
        assert list(make_graphs(raw)) == []


def test_no_graph_is_kept_of_a_project_that_has_no_vectors(large: Large) -> None:
    conn, _, _ = large
    conn.raw.execute("delete from vectors")
    list(make_graphs(conn.raw))
    assert graphs(conn) == []


# ---- pgvector itself


def test_a_role_that_may_not_make_the_extension_is_told_what_to_run() -> None:
    url = new_database()
    with psycopg.connect(url, autocommit=True) as raw:
        if raw.execute("select 1 from pg_roles where rolname = 'everkept_owner'").fetchone() is None:
            raw.execute("create role everkept_owner login")
        raw.execute("grant all on schema public to everkept_owner")
    parts = urlsplit(url)
    owner = urlunsplit(parts._replace(netloc=f"everkept_owner@{parts.netloc.rpartition('@')[2]}"))
    with pytest.raises(StoreNotSupported, match='permission denied to create extension "vector"'):
        PostgresDatabase(owner).prepare(VirtualClock())
    with psycopg.connect(url, autocommit=True) as raw:
        raw.execute("create extension vector")
    PostgresDatabase(owner).prepare(VirtualClock())
    PostgresDatabase(owner).require_schema()


@pytest.mark.parametrize(
    ("version", "said"), [(None, "install its package"), ("0.7.4", "pgvector 0.7.4 is too old: 0.8 is needed")]
)
def test_a_server_without_pgvector_is_told_what_to_install(version: str | None, said: str) -> None:
    with psycopg.connect(new_database(), autocommit=True) as raw:
        raw.execute(
            "create temp table pg_available_extensions (name text, default_version text, installed_version text)"
        )
        raw.execute("set search_path = pg_temp, pg_catalog, public")
        if version is not None:
            raw.execute("insert into pg_available_extensions values('vector', %s, null)", (version,))
        with pytest.raises(StoreNotSupported, match=said):
            require_pgvector(raw)


def test_passages_without_vectors_have_no_cosine(conn: Connection) -> None:
    """As a turn is found by its words before it is embedded."""
    own, around = VectorsInDatabase(conn, HERE, MODEL, DIM).cosines(np.ones(DIM, np.float32), np.array([7], np.int64))
    assert np.isnan([*own, *around]).tolist() == [True, True]
