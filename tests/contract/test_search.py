"""Passages in a real database: what is written is found, in its scope and nowhere else, and what is deleted is gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.factories import open_store
from tests.postgres import TestedDatabase

from everkept.domain.ids import ProjectId, StreamId, SubjectId
from everkept.domain.passage import SITTING_GAP_US, analyse
from everkept.domain.scope import Scope
from everkept.errors import InvalidInput
from everkept.models.pooling import Pooling
from everkept.ports.clock import VirtualClock
from everkept.recall.search import Query, Searcher, choose
from everkept.recall.words import WordsMemo
from everkept.store import search as store
from everkept.store.connection import Connection
from everkept.store.projects import ensure_project
from everkept.store.search import NewPassage, NewVectors
from everkept.store.store import Store

HERE, ELSEWHERE = ProjectId(1), ProjectId(2)
START_US = 1_750_000_000_000_000
MINUTE_US = 60_000_000


class LetterVectors:
    """Word vectors made of letters: words that share letters are near each other."""

    name = "letters"
    dim = 64

    def lookup(self, words: Sequence[str]) -> npt.NDArray[np.float32]:
        out = np.zeros((len(words), self.dim), np.float32)
        for row, word in enumerate(words):
            for letter in word:
                rng = np.random.default_rng(ord(letter))
                out[row] += rng.standard_normal(self.dim).astype(np.float32)
            out[row] /= max(float(np.linalg.norm(out[row])), 1e-9)
        return out


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Store]:
    """A store with two projects."""
    made = open_store(tmp_path / "s.db", VirtualClock())
    for name in ("here", "elsewhere"):
        made.write_now(ensure_project, name, b"s" * 32)
    yield made
    made.close()


@pytest.fixture
def conn(opened: Store) -> Iterator[Connection]:
    """Each statement is a transaction of its own."""
    raw = opened.database.connect(read_only=False)
    if opened.database.path is None:  # no transaction says what it reaches, so the connection does
        raw.execute("select set_config('everkept.everything', 'on', false)")
    yield Connection(raw, opened.database.dialect, opened.clock)
    raw.close()


def turn(
    text: str, *, seq: int = 1, stream: int = 1, subject: int = 1, project: int = 1, speaker: str = "Ann", at: int = 0
) -> NewPassage:
    when = START_US + (at or seq * MINUTE_US)
    return NewPassage(
        project=ProjectId(project),
        subject=SubjectId(subject),
        stream=StreamId(stream),
        seq=seq,
        kind="turn",
        speaker=speaker,
        occurred_at_us=when,
        analysed=analyse(text, speaker=speaker, occurred_at_us=when),
    )


def fact(text: str, ref: int) -> NewPassage:
    return NewPassage(
        project=HERE, subject=SubjectId(1), kind="fact", ref=ref, occurred_at_us=START_US, analysed=analyse(text)
    )


def found(
    conn: Connection, text: str, searcher: Searcher | None = None, scope: Scope | None = None, **query: Any
) -> list[int]:
    scope = scope or Scope(project=HERE, subject=SubjectId(1))
    ranked = (searcher or Searcher(None)).search(conn, scope, Query(text=text, **query))
    return [r.hit.id for r in ranked.hits]


def columns(conn: Connection, id_: int) -> tuple[str, str]:
    own, before = conn.raw.execute(f"select own, before from passage_text where {id_of_text(conn)} = {id_}").fetchone()
    return own, before


def id_of_text(conn: Connection) -> str:
    return "rowid" if conn.dialect.name == "sqlite" else "id"


# ---- writing


def test_index_passages_gives_ids_in_order_and_links_neighbours(conn: Connection) -> None:
    ids = store.index_passages(conn, [turn("red dog", seq=1), turn("blue cat", seq=2)])
    (third,) = store.index_passages(conn, [turn("green bird", seq=3, speaker="Bob")])
    assert ids == [1, 2]
    assert columns(conn, 2)[1] == "ann red dog"
    assert columns(conn, third)[1] == "ann blue cat"


def test_long_pause_starts_a_new_sitting(conn: Connection) -> None:
    later = START_US + SITTING_GAP_US + 2 * MINUTE_US - START_US
    store.index_passages(
        conn, [turn("red dog", seq=1), turn("blue cat", seq=2, at=later), turn("bird", seq=3, at=later + 1)]
    )
    assert columns(conn, 2)[1] == ""
    assert [r[0] for r in conn.raw.execute("select sitting from passages order by id")] == [1, 2, 2]


def test_streams_do_not_mix(conn: Connection) -> None:
    store.index_passages(
        conn, [turn("red dog", stream=1, seq=1), turn("blue cat", stream=2, seq=1), turn("x", stream=2, seq=2)]
    )
    assert columns(conn, 2)[1] == ""
    assert columns(conn, 3)[1] == "ann blue cat"


def test_corpus_size_counts_passages_and_their_length(conn: Connection) -> None:
    assert store.corpus_size(conn) == (0, 1.0)
    store.index_passages(conn, [turn("a b c d"), turn("a b", stream=2)])
    assert store.corpus_size(conn) == (2, 3.0)
    assert store.document_frequencies(conn, ["a", "d", "zzz"]) == {"a": 2, "d": 1}


# ---- finding


def test_search_never_leaves_its_scope(conn: Connection) -> None:
    store.index_passages(
        conn,
        [
            turn("my dog", stream=1, subject=1),
            turn("my dog", stream=2, subject=2),
            turn("my dog", stream=3, project=2, subject=3),
            turn("my dog", stream=4, subject=1),
        ],
    )
    assert set(found(conn, "dog")) == {1, 4}
    assert set(found(conn, "dog", scope=Scope(project=HERE))) == {1, 2, 4}
    assert set(found(conn, "dog", scope=Scope(project=HERE, subject=SubjectId(1), stream=StreamId(4)))) == {4}
    assert found(conn, "dog", scope=Scope(project=ELSEWHERE, subject=SubjectId(1))) == []


def test_other_subjects_do_not_crowd_out_the_answer(conn: Connection) -> None:
    store.index_passages(conn, [turn("dog dog dog", stream=2, subject=2, seq=n) for n in range(1, 400)])
    store.index_passages(conn, [turn("a long sentence in which a dog is hidden", stream=1)])
    assert found(conn, "dog") == [400]


def test_most_of_the_index_in_scope_still_keeps_to_the_scope(conn: Connection) -> None:
    store.index_passages(conn, [turn("dog", seq=n) for n in range(1, 300)] + [turn("dog", stream=2, subject=2)])
    assert 300 not in found(conn, "dog", Searcher(None, lexical=1000))


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("我住在柏林", "柏林"),
        ("東京タワーへ行った", "タワー"),
        ("ฉันชอบแมวมาก", "แมว"),
        ("القطة في البيت", "القطة"),
        ("मेरी बिल्ली सो रही है", "बिल्ली"),
        ("o coração dela", "coracao"),
        ("the foo_bar flag", "foo_bar"),
        ("a/b.py", "b.py"),
        ("use C++", "C++"),
        ("so happy 🤖", "🤖"),
        ('he said "hello"', '"hello"'),
        ("a bench near us", "AND NEAR( this"),
    ],
)
def test_every_script_and_sign_is_found(conn: Connection, text: str, asked: str) -> None:
    store.index_passages(conn, [turn("something else", stream=2), turn(text)])
    assert found(conn, asked)[0] == 2


@pytest.mark.parametrize(
    "asked", ['"', "NEAR(a b", "*", "(", "a AND OR NOT b", "x" * 20_000, "word " * 4_000, "漢字" * 5_000, "{own} : a"]
)
def test_no_query_breaks_the_search(conn: Connection, asked: str) -> None:
    store.index_passages(conn, [turn("a word")])
    try:
        found(conn, asked)
    except InvalidInput:
        assert not any(c.isalnum() for c in asked)


def test_long_query_is_reduced_to_its_rarest_terms(conn: Connection) -> None:
    store.index_passages(conn, [turn("needle", seq=1), *[turn(f"w{n} common", stream=9, seq=n) for n in range(1, 60)]])
    assert 1 in found(conn, " ".join(f"w{n}" for n in range(60)) + " needle common")


def test_empty_query_and_unknown_kind_are_invalid(conn: Connection) -> None:
    for query in (Query(text="  "), Query(text="dog", kinds=("pages",)), Query(text="dog", kinds=())):
        with pytest.raises(InvalidInput):
            Searcher(None).search(conn, Scope(project=HERE), query)


def test_kinds_limit_what_is_found(conn: Connection) -> None:
    store.index_passages(conn, [turn("my dog"), fact("Ann has a dog", 7)])
    assert found(conn, "dog", kinds=("fact",)) == [2]
    assert found(conn, "dog", kinds=("turn",)) == [1]
    assert set(found(conn, "dog")) == {1, 2}


def test_same_saying_is_shown_once(conn: Connection) -> None:
    store.index_passages(
        conn,
        [
            fact("Ann has a dog", 7),
            fact("Ann has a dog", 8),
            fact("Ann has a big dog", 9),
            turn("dog"),
            turn("dog", seq=2),
        ],
    )
    ranked = Searcher(None).search(conn, Scope(project=HERE, subject=SubjectId(1)), Query(text="dog"))
    shown, withheld = choose(ranked.hits, 10, {3: "retired"})
    assert sorted(r.hit.kind for r in shown) == ["fact", "turn"]
    assert [r.hit.id for r in withheld] == [3]
    assert len(choose(ranked.hits, 2)[0]) == 2
    assert choose(ranked.hits, 0)[0] == []


def test_words_in_memory_are_the_same_after_they_were_forgotten(conn: Connection) -> None:
    store.index_passages(conn, [turn("my old dog", seq=n) for n in range(1, 6)])
    memo, plenty = WordsMemo(words_max=4), WordsMemo()
    for ids in (np.array([1, 2]), np.array([5, 1, 99]), np.array([2, 3, 4])):
        few, all_ = memo.of(conn, ids), plenty.of(conn, ids)
        assert few.lengths.tolist() == all_.lengths.tolist() == [3 * (i < 99) for i in ids]
        assert few.hashes.tolist() == all_.hashes.tolist() == [hash(t) for t in ("my", "old", "dog")] * sum(ids < 99)
        assert [few.sets[c] for c in few.speaker] == [{"ann"} if i < 99 else set() for i in ids]
    conn.raw.execute(f"delete from passage_text where {id_of_text(conn)} = 1")
    assert plenty.of(conn, np.array([1])).lengths.tolist() == [3]
    plenty.clear()
    assert plenty.of(conn, np.array([1])).lengths.tolist() == [0]


def test_as_of_shows_only_what_was_said_until_then(conn: Connection) -> None:
    store.index_passages(conn, [turn("old dog", seq=1), turn("new dog", seq=2)])
    assert found(conn, "dog", said_until_us=START_US + MINUTE_US) == [1]
    assert found(conn, "dog", said_until_us=START_US) == []


def test_fresh_turn_is_found_beside_embedded_ones(conn: Connection) -> None:
    searcher = Searcher(LetterVectors())
    ids = store.index_passages(conn, [turn(f"dog {n}", stream=n) for n in range(1, 5)])
    embed(conn, {i: f"dog {i}" for i in ids})
    store.index_passages(conn, [turn("dog dog", stream=9)])
    assert 5 in found(conn, "dog", searcher)[:3]


# ---- vectors


def embed(conn: Connection, texts: dict[int, str], project: ProjectId = HERE) -> None:
    pooling = Pooling(LetterVectors(), passages=10, frequencies={})
    store.write_vectors(conn, project, "letters", [NewVectors(i, *pooling.passage(t, [])) for i, t in texts.items()])


def test_dense_candidates_need_no_common_word(conn: Connection) -> None:
    store.index_passages(conn, [turn("rosebud", stream=1), turn("kiwi", stream=2)])
    embed(conn, {1: "rosebud", 2: "kiwi"})
    ranked = Searcher(LetterVectors(), dense=1).search(
        conn, Scope(project=HERE, subject=SubjectId(1)), Query(text="buds rose")
    )
    assert [r.hit.id for r in ranked.hits] == [1]
    assert not ranked.lexical_only
    assert sum(ranked.signals(ranked.hits[0]).values()) == pytest.approx(ranked.hits[0].score, abs=1e-4)


def test_vector_cache_follows_new_and_erased_vectors(conn: Connection) -> None:
    searcher = Searcher(LetterVectors())
    store.index_passages(conn, [turn("rosebud", stream=1), turn("rosebuds", stream=2)])
    embed(conn, {1: "rosebud"})
    assert found(conn, "buds rose", searcher) == [1]
    embed(conn, {2: "rosebuds"})
    assert set(found(conn, "buds rose", searcher)) == {1, 2}
    store.hide_passages(conn, HERE, [1])
    assert found(conn, "buds rose", searcher) == [2]
    store.delete_passages(conn, HERE, [2])
    assert found(conn, "buds rose", searcher) == []


def test_vectors_of_other_projects_are_not_written(conn: Connection) -> None:
    store.index_passages(conn, [turn("rosebud")])
    embed(conn, {1: "rosebud"}, project=ELSEWHERE)
    assert conn.raw.execute("select count(*) from vectors").fetchone() == (0,)


# ---- taking away


def test_hidden_passage_is_never_shown(conn: Connection) -> None:
    searcher = Searcher(None)
    store.index_passages(conn, [turn("my dog", seq=1), turn("yes", seq=2)])
    assert found(conn, "dog", searcher) == [1, 2]
    store.hide_passages(conn, HERE, [1])
    assert 1 not in found(conn, "dog", searcher)


def test_warm_cache_follows_what_is_appended(conn: Connection) -> None:
    searcher = Searcher(None)
    store.index_passages(conn, [turn("my dog", seq=1)])
    assert found(conn, "dog barks", searcher) == [1]
    store.index_passages(conn, [turn("it barks", seq=2), turn("a dog", stream=2)])
    assert set(found(conn, "dog barks", searcher)) == {1, 2, 3}


def test_warm_cache_keeps_projects_and_subjects_apart(conn: Connection) -> None:
    searcher = Searcher(None)
    scopes = [Scope(project=HERE, subject=SubjectId(n)) for n in (1, 2)] + [Scope(project=ELSEWHERE)]
    for seq in (1, 2):  # the second time everything is remembered from the first
        store.index_passages(
            conn,
            [
                turn("my dog", stream=1, subject=1, seq=seq),
                turn("my dog", stream=2, subject=2, seq=seq),
                turn("my dog", stream=3, subject=3, project=2, seq=seq),
            ],
        )
        for place, scope in enumerate(scopes, 1):
            mine = {place, place + 3} if seq == 2 else {place}
            assert set(found(conn, "dog", searcher, scope)) == mine
    assert found(conn, "dog", searcher, Scope(project=ELSEWHERE, subject=SubjectId(1))) == []


def test_warm_cache_never_shows_what_was_taken_away(conn: Connection) -> None:
    searcher = Searcher(None)
    store.index_passages(conn, [turn("my dog", seq=n) for n in range(1, 5)])
    assert len(found(conn, "dog", searcher)) == 4
    # Behind the cache's back, as it looks to one that has not seen the project's revision move yet.
    conn.raw.execute("update passages set hidden = true where id = 2")
    assert set(found(conn, "dog", searcher)) == {1, 3, 4}
    assert len(found(conn, "dog", searcher, depth=3)) == 3
    conn.raw.execute("insert into erasures(id, project_id, kind, subject_id, asked_at) values(1, 1, 'subject', 1, 0)")
    assert found(conn, "dog", searcher) == []


def test_words_of_an_erased_turn_find_nobody(conn: Connection) -> None:
    searcher = Searcher(None)
    store.index_passages(conn, [turn("xylophone", seq=1), turn("yes", seq=2), turn("a xylophone", stream=2)])
    assert set(found(conn, "xylophone", searcher)) == {1, 2, 3}
    store.delete_passages(conn, HERE, [1])
    assert found(conn, "xylophone", searcher) == [3]


def test_known_at_shows_only_what_was_recorded_until_then(conn: Connection) -> None:
    store.index_passages(conn, [turn("old dog", seq=1), turn("new dog", seq=2)])
    assert found(conn, "dog", recorded_until_us=START_US) == []  # no event is recorded for either


def test_depth_limits_to_the_best(conn: Connection) -> None:
    store.index_passages(conn, [turn("dog", stream=1), turn("dog cat", stream=2), turn("dog x y z", stream=3)])
    everything = found(conn, "dog cat")
    assert found(conn, "dog cat", depth=2) == everything[:2]


def test_delete_leaves_no_word_behind(opened: Store, conn: Connection) -> None:
    store.index_passages(
        conn, [turn("before", seq=1), turn("xylophone secret", seq=2), turn("after", seq=3), turn("later", seq=4)]
    )
    embed(conn, {1: "before", 2: "xylophone", 3: "after", 4: "later"})
    store.mark_embedded(conn, HERE, [1, 2, 3, 4], "letters")
    assert store.delete_passages(conn, HERE, [2]) == 1
    assert columns(conn, 1) == ("befor", "")
    assert columns(conn, 3)[1] == ""
    assert store.document_frequencies(conn, ["xylophon"]) == {}
    assert [r[0] for r in conn.raw.execute("select passage_id from vectors order by 1")] == [1]
    assert [r[0] for r in conn.raw.execute("select id from passages where embedded is null order by 1")] == [3, 4]
    assert "xylophon" not in held(opened, conn)


def held(opened: Store, conn: Connection) -> str:
    """All that is in the file once it was written anew, or in any row."""
    if isinstance(opened.database, TestedDatabase):
        return opened.database.every_value()
    assert opened.path is not None
    conn.raw.execute("pragma secure_delete = on")
    conn.raw.execute("vacuum")
    return opened.path.read_bytes().decode("latin-1")


def test_delete_keeps_to_its_project(conn: Connection) -> None:
    store.index_passages(conn, [turn("my dog")])
    assert store.delete_passages(conn, ELSEWHERE, [1]) == 0
    assert found(conn, "dog") == [1]


def test_vectors_that_rest_on_a_deleted_turn_go_with_it(conn: Connection) -> None:
    """Those of the two turns after it were made with its words in view; they are made again without."""
    store.index_passages(conn, [turn(word, seq=n) for n, word in enumerate(("kiwi", "rose", "oak", "fig"), 1)])
    embed(conn, {1: "kiwi", 2: "rose", 3: "oak", 4: "fig"})
    store.mark_embedded(conn, HERE, [1, 2, 3, 4], "letters")
    store.delete_passages(conn, HERE, [1])
    assert conn.raw.execute("select passage_id from vectors").fetchall() == [(4,)]
    assert [p.id for p in store.pending_embeddings(conn, HERE)] == [2, 3]


def test_a_turn_without_words_is_no_hit(conn: Connection) -> None:
    store.index_passages(conn, [turn("my dog is old"), turn("", seq=2)])
    ranked = Searcher(None).search(conn, Scope(project=HERE, subject=SubjectId(1)), Query(text="dog"))
    assert {r.hit.seq for r in ranked.hits} >= {1, 2}
    assert {r.hit.seq for r in choose(ranked.hits, 10)[0]} == {1}
