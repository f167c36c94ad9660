"""What an embedder tells about names and statements: one thing under two names, and statements about the same thing.

Both err on the side of keeping things apart. People and animals are never merged by likeness: two short names can lie
near each other and mean two persons.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from everkept.domain.facts import FactDraft
from everkept.domain.predicates import normalise_name, normalise_predicate
from everkept.models.pooling import Vector, content_words
from everkept.ports.embedder import WordVectors
from everkept.store.facts import FactRow, KnownEntity

NEVER_MERGED = ("person", "animal", "other")


def known_objects(
    drafts: Sequence[FactDraft], known: Sequence[KnownEntity], words: WordVectors, cosine_min: float
) -> dict[str, str]:
    """{object as it was said: name of the known entity it means}, e.g. `hospital São Bento`: `Hospital de São Bento`.

    They must be of one type, share a word, and be at least `cosine_min` alike. The draft keeps its own words, so that
    it says nothing that its evidence does not, whatever else is erased.
    """
    names = {normalise_name(entity.name) for entity in known}
    found = {
        draft.object: _known_as(draft, known, words, cosine_min) for draft in drafts
        if draft.kind == "entity" and draft.object_type not in NEVER_MERGED
        and normalise_name(draft.object) not in names
    }  # fmt: skip
    return {said: name for said, name in found.items() if name is not None}


def _known_as(draft: FactDraft, known: Sequence[KnownEntity], words: WordVectors, cosine_min: float) -> str | None:
    mine = set(content_words(draft.object))
    best, name_of_best = cosine_min, None
    for entity in known:
        theirs = set(content_words(entity.name))
        if entity.type != draft.object_type or not mine & theirs:
            continue
        likeness = float(_mean(sorted(mine), words) @ _mean(sorted(theirs), words))
        if likeness >= best:
            best, name_of_best = likeness, entity.name
    return name_of_best


def near_statements(
    drafts: Sequence[FactDraft], known: Sequence[FactRow], words: WordVectors, cosine_min: float
) -> list[tuple[int, int]]:
    """(place among drafts, known fact) of statements about one entity that are alike and have other predicates.

    Those with the same predicate are compared by the timeline; these a judge has to read.
    """
    vectors = {f.id: _mean(content_words(f.text), words) for f in known}
    pairs = []
    for place, draft in enumerate(drafts):
        mine = _mean(content_words(draft.text), words)
        for fact in known:
            same_entity = normalise_name(fact.entity) == normalise_name(draft.entity)
            same_predicate = normalise_predicate(fact.predicate) == normalise_predicate(draft.predicate)
            if same_entity and not same_predicate and float(mine @ vectors[fact.id]) >= cosine_min:
                pairs.append((place, fact.id))
    return pairs


def _mean(text: Sequence[str], words: WordVectors) -> Vector:
    """Shape (dim,), unit length; zeros where no word has a vector."""
    if not text:
        return np.zeros(words.dim, np.float32)
    total = words.lookup(text).sum(axis=0)
    return np.asarray(total / max(float(np.linalg.norm(total)), 1e-9), np.float32)
