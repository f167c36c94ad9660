"""The ranking: a weighted sum over what a question and a passage have in common. Pure; numbers in, numbers out.

bm is BM25F over a window: a turn is scored with two turns either side, inside its sitting. The other features are small
additive priors. Habits of conversation (speaker, opener, questions, capitals) count for turns only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from everkept.domain import text as analyser
from everkept.domain.passage import Traits, capitals_of, local_time
from everkept.recall.question import Question
from everkept.recall.table import FACT, NOBODY, TURN, Columns, Ints
from everkept.recall.words import Words
from everkept.store.search import NEVER_US

Array = npt.NDArray[np.float32]

K1: Final = 0.6
B: Final = 0.4
SPEAKER_TF: Final = 2.0
NEAR: Final = {-1: 0.5, 1: 0.4, -2: 0.3, 2: 0.2}
"""Share of a neighbour's term frequency, by its distance (-1 is the turn before)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Weights of the features: rounded numbers of a linear model.

    Source: fitted on seven development conversations of LoCoMo (CC BY-NC 4.0; nothing of its text is here), rounded;
    `speaker` was set by hand between two fits. They hold for two-person chat in English.
    """

    bm: float = 4.5
    bm_lexical: float = 7.5
    """In place of `bm` where there are no vectors."""
    bm_mini: float = 3.5
    """In place of `bm` where a neural embedder is used."""
    static_turn: float = 1.5
    static_3: float = 5.0
    static_turn_mini: float = 0.0
    static_3_mini: float = 2.5
    mini_turn: float = 2.5
    mini_prev: float = 4.0
    session_max: float = 4.5
    speaker: float = 1.5
    first_named: float = 1.2
    when_temporal: float = 2.0
    temporal: float = 0.5
    month: float = 2.5
    opener: float = 0.9
    prev_q: float = 0.7
    ends_q: float = -0.7
    capitals: float = 0.3
    bigram: float = 0.3
    fact: float = 0.8
    """A tie-break, set by hand: what was said for certain goes before the talk it was said in."""

    def of(self, *, static: bool, neural: bool) -> dict[str, float]:
        """Feature → weight, for the vectors that there are. `maintained` is told in the score's own units."""
        bm = self.bm_mini if neural else self.bm if static else self.bm_lexical
        return {
            "bm": bm,
            "static_turn": self.static_turn_mini if neural else self.static_turn,
            "static_3": self.static_3_mini if neural else self.static_3,
            "mini_turn": self.mini_turn,
            "mini_prev": self.mini_prev,
            "session_max": self.session_max,
            "speaker": self.speaker,
            "first_named": self.first_named,
            "when_temporal": self.when_temporal,
            "temporal": self.temporal,
            "month": self.month,
            "opener": self.opener,
            "prev_q": self.prev_q,
            "ends_q": self.ends_q,
            "capitals": self.capitals,
            "fact": self.fact,
            "maintained": 1.0,
            "bigram": self.bigram,
        }


NOT_HUMAN: Final = frozenset({"assistant", "system", "tool", "agent", "bot", "ai"})
FIRST_PERSON: Final = frozenset(
    (
        "i me my mine myself ich mich mir mein meine meinem meinen meiner meines "
        "eu mim meu minha meus minhas yo mi mis je moi mon ma"
    ).split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frequencies:
    """What is known of the whole index: how many passages, how long, and in how many each term occurs."""

    passages: int
    mean_length: float
    of_term: Mapping[str, int]

    def idf(self, term: str) -> float:
        n = min(self.of_term.get(term, 0), self.passages)
        return math.log(1 + (self.passages - n + 0.5) / (n + 0.5))


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Candidates, with the turns around them. The first `size` of `passages`, and of `words`, are the candidates."""

    passages: Columns
    names: Sequence[str]
    """Speakers, by the code in `passages`."""
    words: Words
    size: int
    near: Mapping[int, npt.NDArray[np.intp]]
    """For each distance of `NEAR`, the place in `passages` of each candidate's neighbour; -1 where there is none."""

    @property
    def candidates(self) -> Columns:
        return Columns(*[column[: self.size] for column in self.passages])


def features_of(question: Question, window: Window, frequencies: Frequencies) -> dict[str, Array]:
    """Every feature that needs no vectors: name → shape (size,)."""
    bm = _bm(question, window, frequencies)
    mine = window.candidates
    turns = mine.kind == TURN
    asks = np.append((window.passages.traits & Traits.ASKS) > 0, False).astype(np.float32)
    temporal = ((mine.traits & Traits.TEMPORAL) > 0).astype(np.float32)
    speaker, first_named = _by_speaker(question, mine, window.names)
    habits = {
        "opener": ((mine.seq > 0) & (mine.seq == mine.sitting)).astype(np.float32),
        "prev_q": asks[window.near[-1]],
        "ends_q": asks[: window.size],
        "capitals": capitals_of(mine.traits).astype(np.float32),
    }
    return {
        "bm": bm,
        "session_max": _session_max(bm, mine),
        "speaker": speaker,
        "first_named": first_named,
        "when_temporal": temporal if question.asks_when else np.zeros_like(temporal),
        "temporal": temporal,
        "month": _month(question, mine),
        **(habits if turns.all() else {name: _even(values, turns) for name, values in habits.items()}),
        "bigram": _bigrams(question, window),
        "fact": (mine.kind == FACT).astype(np.float32),
    }


def _even(values: Array, turns: npt.NDArray[np.bool_]) -> Array:
    """A habit of turns. What is no turn is neither favoured nor held back: it gets what turns have on average."""
    if not turns.any():
        return values * turns
    return np.where(turns, values, values[turns].mean()).astype(np.float32)


def score(features: Mapping[str, Array], weights: Mapping[str, float]) -> Array:
    total = np.zeros_like(features["bm"])
    for name, values in features.items():
        total += np.float32(weights[name]) * values
    return total


def people_of(passages: Columns, names: Sequence[str]) -> list[str]:
    """The participants, in a fixed order."""
    spoken = set(passages.speaker[passages.kind == TURN].tolist())
    return sorted(names[code] for code in spoken if code != NOBODY)


def _bm(question: Question, window: Window, frequencies: Frequencies) -> Array:
    terms, words, size = question.terms, window.words, window.size
    idf = np.array([frequencies.idf(t) for t in terms], np.float32)
    own = own_frequencies(terms, words)
    speaker = _presence(terms, words.speaker, words.sets)
    said = _presence(terms, words.said[:size], words.sets)
    length = np.append(words.lengths, 0).astype(np.float32)[:, None]
    mean = frequencies.mean_length
    alone = own[:size] / (1 - B + B * length[:size] / mean) + SPEAKER_TF * speaker[:size] + said[:size]
    beside = (own + speaker) / (1 - B + B * (length + 1) / (mean + 1))
    for distance, share in NEAR.items():
        alone += np.float32(share) * beside[window.near[distance]]
    total = max(float(idf.sum()), 1e-9)
    return np.asarray((alone / (alone + K1)) @ idf * np.float32((K1 + 1) / total), np.float32)


def own_frequencies(terms: Sequence[str], words: Words) -> Array:
    """Shape (passages + 1, len(terms)); the last row, zeros, stands for a neighbour that is not there."""
    rows, columns = words.lengths.size + 1, len(terms)
    first_cell = np.repeat(np.arange(rows - 1) * columns, words.lengths)
    cells = [first_cell[words.hashes == hash(term)] + column for column, term in enumerate(terms)]
    return np.bincount(np.concatenate(cells), minlength=rows * columns).reshape(rows, columns).astype(np.float32)


def _presence(terms: Sequence[str], codes: Ints, sets: Sequence[frozenset[str]]) -> Array:
    """1 where the set holds the term; shape and last row as above. Different sets are few, so each is read once."""
    different = np.flatnonzero(np.bincount(codes))
    table = [[t in sets[code] for t in terms] for code in different.tolist()]
    rows = np.array([*table, [False] * len(terms)], np.float32)
    return rows.take(np.append(different.searchsorted(codes), len(table)), axis=0)


def _session_max(bm: Array, passages: Columns) -> Array:
    """The best bm of any candidate of the same sitting; what belongs to no sitting stands for itself."""
    alone = (passages.stream == 0) | (passages.sitting == 0)
    key = np.where(alone, -1 - np.arange(bm.size), passages.stream << 32 | passages.sitting)
    different, place = np.unique(key, return_inverse=True)
    best = np.zeros(different.size, np.float32)
    np.maximum.at(best, place, bm)
    return best[place]


def _by_speaker(question: Question, passages: Columns, names: Sequence[str]) -> tuple[Array, Array]:
    """±.5 for the one participant whom the question names; where it names several, for the one named first.

    "I" names the asker, where there is one human among the participants. Of facts, the speaker is whom they are about.
    """
    nothing = np.zeros(passages.id.size, np.float32)
    people = people_of(passages, names)
    place = {p: _named_at(question.words, p) for p in people}
    named = sorted((at, p) for p, at in place.items() if at is not None)
    humans = [p for p in people if p.casefold() not in NOT_HUMAN]
    if not named and len(humans) == 1 and FIRST_PERSON & set(question.words):
        named = [(0, humans[0])]
    if not named or len(people) < 2:
        return nothing, nothing
    _, first = named[0]
    said_by = ((passages.speaker == names.index(first)) - 0.5).astype(np.float32)
    return (said_by, nothing) if len(named) == 1 else (nothing, said_by)


def _named_at(words: Sequence[str], person: str) -> int | None:
    """Where the question names the person, in full or by a short form of three letters or more."""
    names = analyser.words(person)
    for place, word in enumerate(words):
        if word in names or (len(word) > 2 and any(name.startswith(word) for name in names)):
            return place
    return None


def _month(question: Question, passages: Columns) -> Array:
    """1 where it was said in the month (and year) that the question names, .3 where only the year is named and fits."""
    if not question.months and not question.years:
        return np.zeros(passages.id.size, np.float32)
    return np.array([_month_fits(question, at) for at in passages.occurred_at.tolist()], np.float32)


def _month_fits(question: Question, occurred_at_us: int) -> float:
    if occurred_at_us == NEVER_US:
        return 0.0
    day = local_time(occurred_at_us)
    if question.months:
        return float(day.month in question.months and (not question.years or day.year in question.years))
    return 0.3 * (day.year in question.years)


def _bigrams(question: Question, window: Window) -> Array:
    """How many of the question's pairs of words stand side by side in the passage too, once stop words are out."""
    found = np.zeros(window.size, np.float32)
    lengths = window.words.lengths[: window.size]
    content = np.flatnonzero(~window.words.stop[: lengths.sum()])
    hashes = window.words.hashes[content]
    row = np.repeat(np.arange(window.size), lengths)[content]
    adjacent = row[:-1] == row[1:]
    for first, second in question.pairs:
        side_by_side = adjacent & (hashes[:-1] == hash(first)) & (hashes[1:] == hash(second))
        found[row[:-1][side_by_side]] += 1  # once, however often it stands there
    return found
