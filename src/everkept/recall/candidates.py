"""Which passages are worth scoring: the best by rarity of the question's words, in the order found.

A term counts at its idf where the passage itself holds it and at half where an adjacent turn does. The rarest terms are
looked up whole; once they bring in enough, commoner ones are only looked up within what is already there, so that the
cost does not follow the commonest word of the question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from everkept.domain.passage import Traits
from everkept.domain.scope import Scope
from everkept.recall.memo import CACHED_MAX, PostingsMemo, ids_of
from everkept.recall.rank import Frequencies
from everkept.recall.table import Ints, PassageTable
from everkept.store import search as store
from everkept.store.connection import Connection
from everkept.store.text_rows import scope_term

POSTINGS_MAX: Final = 3000
"""Passages that the rarest terms may bring in before the commoner ones only add to those."""
_SCOPED_FROM: Final = 8
"""A term that is this many times commoner than the scope is large is looked up inside the scope, and not kept."""
_CHUNK: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Where candidates come from: a scope, in one snapshot, as far as a filter lets it be seen."""

    conn: Connection
    table: PassageTable
    scope: Scope
    kinds: Sequence[str]
    said_until_us: int | None
    recorded_until_us: int | None
    snapshot: store.Snapshot

    @property
    def narrow(self) -> bool:
        """Whether more than a subject limits it: what is nearest in the subject is then looked further through."""
        limits = self.scope.stream, self.said_until_us, self.recorded_until_us
        return limits != (None, None, None) or len(self.kinds) < len(store.KINDS)

    def visible(self, ids: Ints) -> npt.NDArray[np.bool_]:
        """Which of these the table knows in the scope."""
        rows = self.table.rows_of(ids)
        known = rows >= 0
        known[known] = self.table.in_scope(rows[known], self.scope, self.kinds, self.said_until_us)
        return known


def lexical_order(pool: Pool, terms: Sequence[str], frequencies: Frequencies, postings: PostingsMemo) -> Ints:
    """Ids of all passages of the pool that hold one of the rare terms, best first; newer first among equals."""
    of_term = frequencies.of_term
    size = of_term.get(scope_term(pool.scope), 0)
    known = sorted((t for t in terms if of_term.get(t, 0)), key=lambda t: of_term[t])
    rare = _rare(known, of_term, size)
    ids = pool.table.all.id
    total = np.zeros(ids.size + 1)  # the last one is for what lies outside of the table, whose row is -1
    for term in rare:
        for weight, holding in _postings(pool, term, frequencies, postings):
            total[pool.table.rows_of(holding)] += weight * frequencies.idf(term)
    found = np.flatnonzero(total[:-1])[::-1]  # newest first
    found = found[pool.table.in_scope(found, pool.scope, pool.kinds, pool.said_until_us)]
    ids, total = ids[found], total[found]
    for term in known[len(rare) :]:
        for weight, holding in _postings(pool, term, frequencies, postings, within=rare):
            at = np.minimum(np.searchsorted(holding, ids), holding.size - 1)
            total += weight * frequencies.idf(term) * (holding[at] == ids)
    return ids[np.argsort(-total, kind="stable")]


def _rare(known: Sequence[str], of_term: Mapping[str, int], size: int) -> list[str]:
    rare: list[str] = []
    brought_in = 0
    for term in known:
        brought_in += min(of_term[term], size)
        if rare and brought_in > POSTINGS_MAX:
            break
        rare.append(term)
    return rare


def _postings(
    pool: Pool, term: str, frequencies: Frequencies, postings: PostingsMemo, within: Sequence[str] = ()
) -> list[tuple[float, Ints]]:
    """(weight, ids ascending) of a term; they may lie outside the scope, but for very common terms."""
    size = frequencies.of_term.get(scope_term(pool.scope), 0)
    if frequencies.of_term[term] <= min(CACHED_MAX, _SCOPED_FROM * size):
        return postings.of(pool.conn, term, pool.snapshot.newest)
    # A scope that is most of the index costs more to look up than to sort out afterwards.
    looked_up = None if size * 2 > frequencies.passages else pool.scope
    found = store.find_postings(pool.conn, looked_up, term, pool.kinds, also_any=within)
    return [(weight, ids_of(listed)) for weight, listed in found]


def first_of(pool: Pool, order: Ints, count: int) -> Ints:
    """The first `count` of `order` that the table takes to be shown; what it cannot tell is asked of the store."""
    return order[:count] if pool.recorded_until_us is None else take_shown(pool, order, count)


def kept_true(pool: Pool, order: Ints, count: int) -> Ints:
    """The first of `order` that somebody keeps true: no number of logs with the same words keeps them out (F04)."""
    traits = pool.table.all.traits[pool.table.rows_of(order)]
    return first_of(pool, order[(traits & Traits.MAINTAINED) > 0], count)


def take_shown(pool: Pool, order: Ints, count: int) -> Ints:
    """The first `count` of `order` that this snapshot shows."""
    return order[shown_places(pool, order, count)]


def shown_places(pool: Pool, order: Ints, count: int) -> list[int]:
    """Where in `order` the first `count` stand that this snapshot shows."""
    taken: list[int] = []
    start, step = 0, count
    while start < len(order) and len(taken) < count:
        chunk = order[start : start + step].tolist()
        shown = store.shown_passages(pool.conn, pool.scope, chunk, pool.recorded_until_us)
        taken += [place for place, id_ in enumerate(chunk, start) if id_ in shown][: count - len(taken)]
        start, step = start + step, _CHUNK
    return taken
