"""Which passages are worth scoring: the best by rarity of the question's words, in the order found.

A term counts at its idf where the passage itself holds it and at half where an adjacent turn does. The rarest terms are
looked up whole; once they bring in enough, commoner ones are only looked up within what is already there, so that the
cost does not follow the commonest word of the question.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from everkept.domain.scope import Scope
from everkept.recall.rank import Frequencies
from everkept.store import search as store
from everkept.store.connection import Connection
from everkept.store.search import Hit, TimeLimit

POSTINGS_MAX: Final = 3000
"""Passages that the rarest terms may bring in before the commoner ones only add to those."""
_CHUNK: Final = 400
Ids = npt.NDArray[np.int64]


def lexical_order(
    conn: Connection, scope: Scope, terms: Sequence[str], kinds: Sequence[str], frequencies: Frequencies
) -> Ids:
    """Ids of all passages of the scope that hold one of the rare terms, best first; newer first among equals."""
    of_term = frequencies.of_term
    size = of_term.get(store.scope_term(scope), 0)
    known = sorted((t for t in terms if of_term.get(t, 0)), key=lambda t: of_term[t])
    rare: list[str] = []
    brought_in = 0
    for term in known:
        brought_in += min(of_term[term], size)
        if rare and brought_in > POSTINGS_MAX:
            break
        rare.append(term)
    # A scope that is most of the index costs more to look up than to sort out afterwards, in `load_first`.
    looked_up = None if size * 2 > frequencies.passages else scope
    ids, weights = [], []
    for term in known:
        within = () if term in rare else rare
        for weight, listed in store.find_postings(conn, looked_up, term, kinds, also_any=within):
            found = np.fromstring(listed, np.int64, sep=",")
            ids.append(found)
            weights.append(np.full(found.size, weight * frequencies.idf(term)))
    if not ids:
        return np.zeros(0, np.int64)
    unique, place = np.unique(np.concatenate(ids), return_inverse=True)
    total = np.bincount(place, weights=np.concatenate(weights))
    return np.asarray(unique[np.lexsort((-unique, -total))], np.int64)


def load_first(
    conn: Connection,
    scope: Scope,
    order: Ids,
    count: int,
    *,
    limit: TimeLimit | None,
    keep: Callable[[Hit], bool],
    had: Collection[int] = (),
) -> list[Hit]:
    """The first `count` of `order` that may be shown and that `keep` takes; those `had` already count, unread."""
    found: list[Hit] = []
    taken = start = 0
    step = count if limit is None else _CHUNK
    while start < len(order) and taken < count:
        chunk = order[start : start + step].tolist()
        start, step = start + step, _CHUNK
        hits = {h.id: h for h in store.load_hits(conn, scope, [i for i in chunk if i not in had], limit)}
        for id_ in chunk:
            hit = hits.get(id_)
            if hit is not None and keep(hit) and taken < count:
                found.append(hit)
                taken += 1
            elif id_ in had:
                taken += 1
    return found
