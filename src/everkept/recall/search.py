"""One recall, inside one read transaction: terms → candidates → features → ranking.

Caches hold ids, words and bits. Whatever is returned was read in this snapshot under the whole scope and `hidden =
false`, so that a stale cache can miss something and never show it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from everkept.domain import text as analyser
from everkept.domain.scope import Scope
from everkept.errors import InvalidInput
from everkept.models.pooling import Pooling, Vector, content_words, cosines_of_int8, names_of
from everkept.ports.embedder import WordVectors
from everkept.recall import rank
from everkept.recall.candidates import lexical_order, load_first
from everkept.recall.memo import FrequencyMemo, Recent
from everkept.recall.question import TERMS_MAX, Question, read_question
from everkept.recall.vectors import SignBits, VectorCache
from everkept.store import search as store
from everkept.store.connection import Connection
from everkept.store.search import KINDS, Hit, TimeLimit

_PARSED_MAX: Final = 8_192
_DENSE_FILTERED: Final = 400
"""Dense candidates looked through where the scan cannot see the filter (stream, kind, time)."""
_NO_WORDS: Final = rank.Words("", "", "")


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


class RankedHit(NamedTuple):
    hit: Hit
    score: float
    words: str
    """The analysed words of the passage: equal for passages that say the same."""
    place: int
    """Its row in the features of `Ranked`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """Every candidate, best first. `lexical_only`: no vector could be used."""

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

    bits: SignBits
    question: Vector


class Searcher:
    """Finds and ranks passages. One instance for the process; safe to share among threads."""

    def __init__(
        self, words: WordVectors | None, weights: rank.Weights | None = None, *, lexical: int = 150, dense: int = 40
    ) -> None:
        self._words = words
        self._weights = weights or rank.Weights()
        self._lexical = lexical
        self._dense = dense
        self._bits = VectorCache(words.name, words.dim) if words else None
        self._frequencies = FrequencyMemo()
        self._parsed: Recent[int, rank.Words] = Recent(_PARSED_MAX)
        self._places: Recent[tuple[int, int], Hit] = Recent(_PARSED_MAX)
        self._revisions: dict[int, int] = {}

    def search(self, conn: Connection, scope: Scope, query: Query) -> Ranked:
        """Rank what the scope holds. Raises InvalidInput for an unknown kind or a query without a single term."""
        kinds = _known_kinds(query.kinds)
        question = read_question(query.text)
        self._follow_erasures(conn, scope)
        stems = [analyser.stem(w) for w in question.words]
        frequencies = self._frequencies.read(conn, [*question.terms, *stems, store.scope_term(scope)])
        question = _rarest_terms(question, frequencies)
        hits, static = self._candidates(conn, scope, query, question, kinds, frequencies)
        if not hits:
            return Ranked(hits=(), people=(), lexical_only=static is None)
        window = self._window(conn, hits)
        features = rank.features_of(question, window, frequencies)
        ids = [h.id for h in hits]
        if static is not None:
            own, around = static.bits.cosines(static.question, ids)
            features |= {"static_turn": _unknown_as_median(own), "static_3": _unknown_as_median(around)}
        neural = _neural_features(conn, query, ids)
        features |= neural
        weights = self._weights.of(static=static is not None, neural=bool(neural))
        return Ranked(
            hits=_ranked(hits, window, rank.score(features, weights)),
            people=rank.people_of(hits),
            lexical_only=static is None and not neural,
            features=features,
            weights=weights,
        )

    def _follow_erasures(self, conn: Connection, scope: Scope) -> None:
        """Words of what was erased or hidden since the last look are forgotten, also as somebody's neighbour."""
        revision = store.vectors_revision(conn, scope.project)
        if self._revisions.get(scope.project, revision) != revision:
            self._parsed.clear()
            self._places.clear()
        self._revisions[scope.project] = revision

    def _candidates(
        self,
        conn: Connection,
        scope: Scope,
        query: Query,
        question: Question,
        kinds: Sequence[str],
        frequencies: rank.Frequencies,
    ) -> tuple[list[Hit], _Static | None]:
        timed = query.said_until_us is not None or query.recorded_until_us is not None
        limit = (
            TimeLimit(said_until_us=query.said_until_us, recorded_until_us=query.recorded_until_us) if timed else None
        )

        def wanted(hit: Hit) -> bool:
            return hit.kind in kinds

        order = lexical_order(conn, scope, question.terms, kinds, frequencies)
        hits = load_first(conn, scope, order, self._lexical, limit=limit, keep=wanted)
        static = self._static(conn, scope, query.text, hits, frequencies)
        if static is not None:
            filtered = timed or scope.stream is not None or set(kinds) != set(KINDS)
            nearest = static.bits.nearest(static.question, scope.subject, _DENSE_FILTERED if filtered else self._dense)
            had = {h.id for h in hits}
            hits += load_first(conn, scope, nearest, self._dense, limit=limit, keep=wanted, had=had)
        return hits, static

    def _static(
        self, conn: Connection, scope: Scope, text: str, hits: Sequence[Hit], frequencies: rank.Frequencies
    ) -> _Static | None:
        if self._words is None or self._bits is None:
            return None
        bits = self._bits.follow(conn, scope.project)
        if not bits.ids.size:
            return None
        names = names_of(rank.people_of(hits))
        pooling = Pooling(self._words, passages=frequencies.passages, frequencies=frequencies.of_term, names=names)
        vector = pooling.pool(content_words(text))
        return _Static(bits=bits, question=vector) if vector.any() else None

    def _window(self, conn: Connection, hits: Sequence[Hit]) -> rank.Window:
        """The candidates with their neighbours of the same sitting."""
        had = {(h.stream, h.seq) for h in hits if h.kind == "turn"}
        wanted = {
            (h.stream, h.seq + d)
            for h in hits
            if h.kind == "turn" and h.stream is not None and h.seq is not None and h.sitting is not None
            for d in rank.NEAR
            if h.seq + d >= h.sitting
        } - had
        found, missing = self._places.get_many(wanted)
        loaded = {(h.stream, h.seq): h for h in store.load_turns_at(conn, missing)}
        self._places.put_many([(key, loaded[key]) for key in missing if key in loaded])
        everything = [*hits, *found.values(), *loaded.values()]
        return rank.Window(
            hits=everything, words=self._parse(conn, everything), size=len(hits), near=_near(everything, len(hits))
        )

    def _parse(self, conn: Connection, hits: Sequence[Hit]) -> list[rank.Words]:
        found, missing = self._parsed.get_many([h.id for h in hits])
        made = {r[0]: rank.Words(r[1], r[2], r[3]) for r in store.load_terms(conn, missing)}
        self._parsed.put_many(made.items())
        found |= made
        return [found.get(h.id, _NO_WORDS) for h in hits]


def choose(
    ranked: Sequence[RankedHit], limit: int, held: Mapping[int, str] | None = None
) -> tuple[list[RankedHit], list[RankedHit]]:
    """(shown, held back): the best `limit` that are not held back (keys of `held` are passage ids), each fact once."""
    shown: list[RankedHit] = []
    withheld: list[RankedHit] = []
    seen: set[tuple[str, int | str | None]] = set()
    for one in ranked:
        if held and one.hit.id in held:
            withheld.append(one)
        elif len(shown) < limit and not (names := _sayings(one)) & seen:
            seen |= names
            shown.append(one)
    return shown, withheld


def _sayings(one: RankedHit) -> set[tuple[str, int | str | None]]:
    """What makes a fact or episode the same as another one; a turn is only ever itself."""
    return set() if one.hit.kind == "turn" else {(one.hit.kind, one.hit.ref), (one.hit.kind, one.words)}


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


def _near(everything: Sequence[Hit], size: int) -> dict[int, npt.NDArray[np.intp]]:
    """For each distance, where the neighbour of each of the first `size` stands; -1 unless of the same sitting."""
    turn = np.array([h.kind == "turn" and h.stream is not None for h in everything])
    sitting = np.array([h.sitting or 0 for h in everything], np.int64)
    key = np.array([(h.stream or 0) << 32 | (h.seq or 0) for h in everything], np.int64)
    key[~turn] = -np.arange(1, np.count_nonzero(~turn) + 1)
    order = np.argsort(key)
    in_order = key[order]
    near = {}
    for distance in rank.NEAR:
        at = order[np.minimum(np.searchsorted(in_order, key[:size] + distance), len(order) - 1)]
        same = turn[:size] & (key[at] == key[:size] + distance) & (sitting[at] == sitting[:size])
        near[distance] = np.where(same, at, -1)
    return near


def _unknown_as_median(cosines: Vector) -> Vector:
    """What has no vector yet is neither near nor far, so that a turn can be found before it is embedded."""
    unknown = np.isnan(cosines)
    if unknown.any():
        cosines = np.where(unknown, 0.0 if unknown.all() else np.nanmedian(cosines), cosines).astype(np.float32)
    return cosines


def _neural_features(conn: Connection, query: Query, ids: Sequence[int]) -> dict[str, Vector]:
    if query.vector is None or query.model is None:
        return {}
    rows = {r[0]: (r[1], r[2]) for r in store.load_vectors(conn, query.model, ids)}
    if not rows:
        return {}
    features = {}
    for column, name in enumerate(("mini_turn", "mini_prev")):
        cosines = cosines_of_int8([rows[i][column] if i in rows else b"" for i in ids], query.vector)
        cosines[[i not in rows for i in ids]] = np.nan
        features[name] = _unknown_as_median(cosines)
    return features


def _ranked(hits: Sequence[Hit], window: rank.Window, scores: Vector) -> list[RankedHit]:
    """Best first; the newer one first among equals."""
    order = np.lexsort((-np.array([h.id for h in hits]), -scores)).tolist()
    values = scores.tolist()
    return [RankedHit(hits[i], values[i], window.words[i].own, i) for i in order]
