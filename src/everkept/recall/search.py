"""One recall, inside one read transaction: terms → candidates → features → ranking.

Caches hold ids, words, numbers and bits. Whatever is returned was looked up in this snapshot under the whole scope and
`hidden = false`, so that a stale cache can miss something and never show it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np

from everkept.domain import text as analyser
from everkept.domain.ids import ProjectId
from everkept.domain.scope import Scope
from everkept.errors import InvalidInput
from everkept.models.pooling import Pooling, Vector, content_words, cosines_of_int8, names_of
from everkept.ports.embedder import WordVectors
from everkept.recall import rank
from everkept.recall.authority import lifts
from everkept.recall.candidates import Pool, first_of, kept_true, lexical_order, shown_places
from everkept.recall.memo import FrequencyMemo, PostingsMemo
from everkept.recall.question import TERMS_MAX, Question, read_question
from everkept.recall.table import Columns, Ints, PassageTable, Rows, TableCache
from everkept.recall.vectors import ProjectVectors, VectorCache
from everkept.recall.words import WordsMemo
from everkept.store import search as store
from everkept.store.connection import Connection
from everkept.store.search import KINDS, Hit
from everkept.store.text_rows import scope_term

_DENSE_FILTERED: Final = 400
_LITTLE: Final = 10_000
"""Dense candidates looked through where the scan cannot see the filter (stream, kind, time)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is asked. `vector` is the question as embedded by the neural embedder `model`, which the caller has done."""

    text: str
    kinds: tuple[str, ...] = KINDS
    said_until_us: int | None = None
    """Only turns said up to then (`as_of`)."""
    recorded_until_us: int | None = None
    """Only turns recorded up to then (`known_at`)."""
    vector: Vector | None = None
    model: str | None = None
    depth: int | None = None
    """How many of the best are wanted; None for every candidate."""


class RankedHit(NamedTuple):
    hit: Hit
    score: float
    words: bytes
    """Equal for passages that say the same."""
    place: int
    """Its row in the features of `Ranked`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """The candidates, best first, as many as were wanted. `lexical_only`: no vector could be used."""

    hits: Sequence[RankedHit]
    people: Sequence[str]
    """The participants among what was found."""
    lexical_only: bool
    note: str | None = None
    """Why there are no vectors, where that is not simply because nothing has been embedded yet."""
    features: Mapping[str, Vector] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)

    def signals(self, one: RankedHit) -> dict[str, float]:
        """Feature → its share of the score, for `explain`; together they are the score."""
        shares = {name: self.weights[name] * float(values[one.place]) for name, values in self.features.items()}
        return {name: share for name, share in shares.items() if share}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Static:
    """The vectors of the project and the question's own."""

    vectors: ProjectVectors
    question: Vector


class Searcher:
    """Finds and ranks passages. One instance for the process; safe to share among threads."""

    def __init__(
        self, words: WordVectors | None, weights: rank.Weights | None = None, *, lexical: int = 150, dense: int = 40,
        kept: int = 20,
    ) -> None:  # fmt: skip
        self._words = words
        self._weights = weights or rank.Weights()
        self._lexical = lexical
        self._dense = dense
        self._kept = kept
        self._vectors = VectorCache(words.name, words.dim) if words else None
        self._frequencies = FrequencyMemo()
        self._words_of = WordsMemo()
        self._tables = TableCache()
        self._postings = PostingsMemo()
        self._revisions: dict[int, int] = {}

    def is_quick(self, project: ProjectId) -> bool:
        """Whether a search takes a few milliseconds: all is in memory, and it is little. Then a thread costs more."""
        size = self._tables.size(project)
        return size is not None and size <= _LITTLE

    def search(self, conn: Connection, scope: Scope, query: Query) -> Ranked:
        """Rank what the scope holds. Raises InvalidInput for an unknown kind or a query without a single term."""
        kinds = _known_kinds(query.kinds)
        question = read_question(query.text)
        pool = self._pool(conn, scope, query, kinds)
        stems = [analyser.stem(w) for w in question.words]
        terms = [*question.terms, *stems, scope_term(scope)]
        frequencies = self._frequencies.read(conn, terms, pool.snapshot.newest)
        question = _rarest_terms(question, frequencies)
        ids, static = self._candidates(pool, query, question, frequencies)
        if not ids.size:
            return Ranked(hits=(), people=(), lexical_only=static is None)
        window = self._window(conn, pool.table, ids)
        features = rank.features_of(question, window, frequencies)
        if static is not None:
            own, around = static.vectors.cosines(static.question, ids)
            features |= {"static_turn": _unknown_as_median(own), "static_3": _unknown_as_median(around)}
        neural = _neural_features(conn, scope.project, query, ids.tolist())
        features |= neural
        weights = self._weights.of(static=static is not None, neural=bool(neural))
        scores = rank.score(features, weights)
        features["maintained"] = lifts(question, window, frequencies, scores)
        return Ranked(
            hits=_ranked(pool, window, scores + features["maintained"], query.depth),
            people=rank.people_of(window.candidates, window.names),
            lexical_only=static is None and not neural,
            features=features,
            weights=weights,
        )

    def _pool(self, conn: Connection, scope: Scope, query: Query, kinds: tuple[str, ...]) -> Pool:
        snapshot = store.read_snapshot(conn, scope.project, self._vectors.model if self._vectors else None)
        self._follow_erasures(scope, snapshot.revision)
        return Pool(
            conn=conn,
            table=self._tables.follow(conn, scope.project, snapshot.revision, snapshot.newest),
            scope=scope,
            kinds=kinds,
            said_until_us=query.said_until_us,
            recorded_until_us=query.recorded_until_us,
            snapshot=snapshot,
        )

    def _follow_erasures(self, scope: Scope, revision: int) -> None:
        """Words of what was erased or hidden since the last look are forgotten, also as somebody's neighbour."""
        if self._revisions.get(scope.project, revision) != revision:
            self._words_of.clear()
            self._postings.clear()
        self._revisions[scope.project] = revision

    def _candidates(
        self, pool: Pool, query: Query, question: Question, frequencies: rank.Frequencies
    ) -> tuple[Ints, _Static | None]:
        order = lexical_order(pool, question.terms, frequencies, self._postings)
        ids = _joined(first_of(pool, order, self._lexical), kept_true(pool, order, self._kept))
        static = self._static(pool, query.text, ids, frequencies)
        if static is not None:
            limit = _DENSE_FILTERED if pool.narrow else self._dense
            nearest = static.vectors.nearest(static.question, pool.scope.subject, limit)
            nearest = first_of(pool, nearest[pool.visible(nearest)], self._dense)
            ids = _joined(ids, nearest)
        return ids, static

    def _static(self, pool: Pool, text: str, ids: Ints, frequencies: rank.Frequencies) -> _Static | None:
        if self._words is None or self._vectors is None:
            return None
        snapshot = pool.snapshot
        vectors = self._vectors.follow(pool.conn, pool.scope.project, snapshot.revision, snapshot.newest_vector)
        if vectors is None:
            return None
        names = names_of(rank.people_of(pool.table.take(pool.table.rows_of(ids)), pool.table.names))
        pooling = Pooling(self._words, passages=frequencies.passages, frequencies=frequencies.of_term, names=names)
        vector = pooling.pool(content_words(text))
        return _Static(vectors=vectors, question=vector) if vector.any() else None

    def _window(self, conn: Connection, table: PassageTable, ids: Ints) -> rank.Window:
        """The candidates with their neighbours of the same sitting."""
        mine = table.rows_of(ids)
        beside = table.beside(mine, tuple(rank.NEAR))
        rows, near = _with_neighbours(mine, beside)
        passages = table.take(rows)
        return rank.Window(
            passages=passages,
            names=table.names,
            words=self._words_of.of(conn, passages.id),
            size=len(mine),
            near=dict(zip(rank.NEAR, near, strict=True)),
        )


def choose(
    ranked: Sequence[RankedHit], limit: int, held: Mapping[int, str] | None = None
) -> tuple[list[RankedHit], list[RankedHit]]:
    """(shown, held back): the best `limit` that are not held back (`held`: passage id → why), each saying once.

    A turn without words is found by those around it alone, and says nothing: it is neither.
    """
    shown: list[RankedHit] = []
    withheld: list[RankedHit] = []
    seen: set[tuple[object, ...]] = set()
    for one in ranked:
        if one.hit.kind == "turn" and not one.words:
            continue
        if held and one.hit.id in held:
            withheld.append(one)
        elif len(shown) < limit and not (names := _sayings(one)) & seen:
            seen |= names
            shown.append(one)
    return shown, withheld


def _sayings(one: RankedHit) -> set[tuple[object, ...]]:
    """What makes a hit the same as another one: who says a thing nine times has said one thing (F04)."""
    kind = one.hit.kind
    return {(kind, one.hit.speaker, one.words)} if kind == "turn" else {(kind, one.hit.ref), (kind, one.words)}


def _joined(ids: Ints, more: Ints) -> Ints:
    had = set(ids.tolist())
    return np.concatenate([ids, np.array([i for i in more.tolist() if i not in had], np.int64)])


def _known_kinds(kinds: Sequence[str]) -> tuple[str, ...]:
    unknown = [k for k in kinds if k not in KINDS]
    if unknown or not kinds:
        raise InvalidInput(f"kinds are any of {', '.join(KINDS)}", field="kinds", unknown=unknown)
    return tuple([k for k in KINDS if k in kinds])


def _rarest_terms(question: Question, frequencies: rank.Frequencies) -> Question:
    if len(question.terms) <= TERMS_MAX:
        return question
    there = [t for t in question.terms if frequencies.of_term.get(t, 0)] or list(question.terms)
    kept = set(sorted(there, key=frequencies.idf, reverse=True)[:TERMS_MAX])
    return replace(question, terms=tuple([t for t in question.terms if t in kept]))


def _with_neighbours(mine: Rows, beside: Rows) -> tuple[Rows, Rows]:
    """(`mine` and then all rows of `beside` that are not among them, the place of each of `beside` in that).

    Both are -1 where there is no neighbour.
    """
    rows, at = np.unique(np.concatenate([mine, beside.ravel()]), return_inverse=True)
    place = np.full(rows.size, -1, np.intp)
    place[at[: mine.size]] = np.arange(mine.size)
    others = np.flatnonzero((place < 0) & (rows >= 0))
    place[others] = mine.size + np.arange(others.size)
    return np.concatenate([mine, rows[others]]), place[at[mine.size :]].reshape(beside.shape)


def _unknown_as_median(cosines: Vector) -> Vector:
    """What has no vector yet is neither near nor far, so that a turn can be found before it is embedded."""
    unknown = np.isnan(cosines)
    if unknown.any():
        cosines = np.where(unknown, 0.0 if unknown.all() else np.nanmedian(cosines), cosines).astype(np.float32)
    return cosines


def _neural_features(conn: Connection, project: ProjectId, query: Query, ids: Sequence[int]) -> dict[str, Vector]:
    if query.vector is None or query.model is None:
        return {}
    rows = {r[0]: (r[1], r[2]) for r in store.load_vectors(conn, project, query.model, ids)}
    if not rows:
        return {}
    features = {}
    for column, name in enumerate(("mini_turn", "mini_prev")):
        cosines = cosines_of_int8([rows[i][column] if i in rows else b"" for i in ids], query.vector)
        cosines[[i not in rows for i in ids]] = np.nan
        features[name] = _unknown_as_median(cosines)
    return features


def _ranked(pool: Pool, window: rank.Window, scores: Vector, depth: int | None) -> list[RankedHit]:
    """The best that this snapshot shows, best first; the newer one first among equals."""
    ids = window.candidates.id
    order = np.lexsort((-ids, -scores))
    order = order[shown_places(pool, ids[order], order.size if depth is None else depth)]
    hits = Columns(*[column[order] for column in window.candidates]).hits(window.names)
    places = order.tolist()
    return list(map(RankedHit, hits, scores[order].tolist(), window.words.keys(places), places))
