"""Summaries without a model: the sentences of a window that say most, verbatim and with their speaker.

A sentence counts by how central its words are to the window (rare in the language of the window, shared by several
turns), a little by its place, and not at all by its language: words are runs of letters, or pairs of characters where
a script has no spaces. The same window gives the same summary.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from everkept.domain.predicates import normalise_text
from everkept.domain.transcript import Turn

SUMMARISER = "offline.1"
"""Version of the method; it stands where a model's prompt version would."""
CHARS_MAX = 600
SENTENCES_MAX = 5
SENTENCE_CHARS_MAX = 240
LEARNINGS_MAX = 6
_SENTENCE = re.compile(r"[^.!?。！？\n]+(?:\.(?=\w)[^.!?。！？\n]+)*[.!?。！？]*")
_PASTED = re.compile(r"```.*?(?:```|\Z)|^[>|].*$", re.DOTALL | re.MULTILINE)
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?|\d+")
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")


@dataclass(frozen=True, slots=True)
class ExtractiveSummary:
    text: str
    """Sentences of the window in their order, each as `speaker: words`; empty if nothing was said."""
    learnings: tuple[str, ...]
    """The most telling statements of people, verbatim with their speaker, without questions."""


@dataclass(frozen=True, slots=True)
class _Said:
    place: int
    speaker: str
    human: bool
    text: str
    words: frozenset[str]

    def line(self) -> str:
        return f"{self.speaker}: {self.text}"


def summarise_offline(
    turns: Sequence[Turn], *, known_names: Mapping[str, str], chars_max: int = CHARS_MAX
) -> ExtractiveSummary:
    """The window in a few of its own sentences, at most `chars_max` characters. Only evidence is read."""
    said = _sentences(turns, known_names)
    scores = _scores(said)
    chosen = _choose(said, scores, chars_max)
    told = [one for one in said if one.human and not one.text.endswith(("?", "？")) and len(one.words) >= 3]
    best = sorted(told, key=lambda one: (-scores[one.place], one.place))[:LEARNINGS_MAX]
    learnings = tuple(dict.fromkeys(one.line() for one in sorted(best, key=lambda one: one.place)))
    return ExtractiveSummary("\n".join(one.line() for one in chosen), learnings)


def fold(previous: str | None, summaries: Sequence[str], chars_max: int) -> str:
    """The running summary: what was there, then the new ones, cut from the oldest lines until it fits.

    The first line of all is kept as long as there is room for anything else, because it says what the talk is about.
    """
    lines = [line for text in [previous or "", *summaries] for line in text.splitlines() if line.strip()]
    kept = list(dict.fromkeys(lines))
    while len(kept) > 2 and _size(kept) > chars_max:
        del kept[1]
    while len(kept) > 1 and _size(kept) > chars_max:
        del kept[0]
    return "\n".join(kept)[:chars_max]


def _size(lines: Sequence[str]) -> int:
    return sum(len(line) + 1 for line in lines) - 1


def _sentences(turns: Sequence[Turn], known_names: Mapping[str, str]) -> list[_Said]:
    found: list[_Said] = []
    for turn in turns:
        if not turn.evidence or turn.role in ("system", "tool"):
            continue
        content = _PASTED.sub("\n", turn.content)
        human = turn.role == "user" or turn.name is not None
        for match in _SENTENCE.finditer(content):
            text = " ".join(match[0].split())
            if len(text) > SENTENCE_CHARS_MAX:
                text = text[: SENTENCE_CHARS_MAX - 1].rsplit(" ", 1)[0] + "…"
            words = frozenset(_words(text))
            if words:
                found.append(_Said(len(found), turn.speaker(known_names), human, text, words))
    return found


def _words(text: str) -> list[str]:
    found: list[str] = []
    for word in _WORD.findall(normalise_text(text)):
        if _UNSPACED.search(word):
            found += [word[at : at + 2] for at in range(max(1, len(word) - 1))]
        elif len(word) > 1:
            found.append(word)
    return found


def _scores(said: Sequence[_Said]) -> list[float]:
    """How central each sentence is: idf of its words, weighted by how many other sentences share them."""
    counts = Counter(word for one in said for word in one.words)
    total = len(said)
    scores: list[float] = []
    for one in said:
        weight = sum(math.log(1 + total / counts[word]) * math.log(1 + counts[word]) for word in one.words)
        length = math.sqrt(len(one.words) + 4)
        first = 1.15 if one.place == 0 else 1.0
        asks = 0.7 if one.text.endswith(("?", "？")) else 1.0
        scores.append(weight / length * first * asks * (1.2 if one.human else 1.0))
    return scores


def _choose(said: Sequence[_Said], scores: Sequence[float], chars_max: int) -> list[_Said]:
    """The best sentences that say something new and fit, in their order."""
    chosen: list[_Said] = []
    room = chars_max
    for one in sorted(said, key=lambda one: (-scores[one.place], one.place)):
        size = len(one.line()) + 1
        if len(chosen) == SENTENCES_MAX:
            break
        if size > room or any(_alike(one, other) for other in chosen):
            continue
        chosen.append(one)
        room -= size
    return sorted(chosen, key=lambda one: one.place)


def _alike(one: _Said, other: _Said) -> bool:
    return len(one.words & other.words) * 2 > len(one.words | other.words)
