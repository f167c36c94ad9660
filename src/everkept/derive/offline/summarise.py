"""Summaries without a model: the sentences of a window that say most, verbatim and with their speaker.

A sentence counts by how central its words are to the window (rare in the language of the window, shared by several
turns) and by what it tells: a statement that stands by itself, names, numbers and dates; small talk, questions and what
an assistant only answers count little. Words are runs of letters, or pairs of characters where a script has no spaces.
The same window gives the same summary.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from everkept.derive.offline.extract import extract_offline, is_human
from everkept.derive.offline.sentences import split_sentences
from everkept.domain.dates import has_time_expression
from everkept.domain.predicates import normalise_text
from everkept.domain.transcript import Turn

SUMMARISER = "offline.2"
"""Version of the method; it stands where a model's prompt version would."""
CHARS_MAX = 600
SENTENCES_MAX = 5
SENTENCE_CHARS_MAX = 240
LEARNINGS_MAX = 6
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?|\d+")
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")
_NAMED = re.compile(r"(?<=[a-zà-ÿ,;] )[A-ZÀ-ÖØ-Þ][\w'’-]+")
_CHATTER = re.compile(
    r"^\W*(?:hi|hello|hey|thanks?|thank\s(?:you|god)|careful|ok(?:ay)?|oh|yes|yeah|no|well|wow|great|good|nice|perfect|"
    r"sure|of\scourse|congratulations?|true|funny|noted|understood|wonderful|sorry|cool|awesome|lovely|bye|"
    r"hallo|danke|guten|gern|gut|ja|nein|ach|sehr\sgut|stimmt|klar|viel\serfolg|wie\sschön|"
    r"olá|oi|bom|boa|obrigad[oa]|sim|claro|que\s\w+|hola|gracias|sí|vale|はい|うん|ありがとう|すごい)\b",
    re.IGNORECASE,
)
"""How small talk begins."""
_HANGS = re.compile(
    r"^\W*(?:and|but|so|then|he|she|it|it's|they|that|that's|this|these|he's|she's|also|too|"
    r"und|aber|er|sie|es|das|dann|deswegen|da|ele|ela|isso|isto|e|mas|então|él|eso|y|pero)\b",
    re.IGNORECASE,
)
"""How a sentence begins that is not understood without the one before it."""


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
    tells: bool
    """A fact can be quoted from it."""

    @property
    def asks(self) -> bool:
        return self.text.endswith(("?", "？"))

    def line(self) -> str:
        return f"{self.speaker}: {self.text}"


def summarise_offline(
    turns: Sequence[Turn], *, known_names: Mapping[str, str], chars_max: int = CHARS_MAX
) -> ExtractiveSummary:
    """The window in a few of its own sentences, at most `chars_max` characters. Only evidence is read."""
    said = _sentences(turns, known_names)
    scores = _scores(said)
    chosen = _choose(said, scores, chars_max)
    told = [one for one in said if one.human and not one.asks and (one.tells or len(one.words) >= 4)]
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
    quotable = {draft.quote for draft in extract_offline(turns, subject="user", known_names=known_names)}
    found: list[_Said] = []
    for turn in turns:
        if not turn.evidence or turn.role in ("system", "tool"):
            continue
        human = is_human(turn, turns)
        for written in split_sentences(turn.content):
            text = " ".join(written.split())
            if len(text) > SENTENCE_CHARS_MAX:
                text = text[: SENTENCE_CHARS_MAX - 1].rsplit(" ", 1)[0] + "…"
            words = frozenset(_words(text))
            if words:
                tells = human and written in quotable
                found.append(_Said(len(found), turn.speaker(known_names), human, text, words, tells))
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
    """How central each sentence is (idf of its words, by how many other sentences share them), times what it tells."""
    counts = Counter(word for one in said for word in one.words)
    total = len(said)
    scores: list[float] = []
    for one in said:
        weight = sum(math.log(1 + total / counts[word]) * math.log(1 + counts[word]) for word in one.words)
        scores.append(weight / math.sqrt(len(one.words) + 4) * _telling(one))
    return scores


def _telling(one: _Said) -> float:
    """How much a sentence says by itself. The weights are set by reading summaries, not measured."""
    weight = 1.0 if one.human else 0.5
    weight *= 1.6 if one.tells else 1.0
    weight *= 1.3 if has_time_expression(one.text) or re.search(r"\d", one.text) else 1.0
    weight *= 1.2 if _NAMED.search(one.text) else 1.0
    weight *= 0.5 if one.asks else 1.0
    weight *= 0.5 if _CHATTER.search(one.text) and not one.tells else 1.0
    return weight * (0.7 if _HANGS.search(one.text) else 1.0)


def _choose(said: Sequence[_Said], scores: Sequence[float], chars_max: int) -> list[_Said]:
    """The best sentences that say something new and fit, in their order; a person has the first word."""
    chosen: list[_Said] = []
    room = chars_max
    first_human = next((one.place for one in said if one.human), 0)
    from_there = [one for one in said if one.place >= first_human]
    for one in sorted(from_there, key=lambda one: (-scores[one.place], one.place)):
        size = len(one.line()) + 1
        if len(chosen) == SENTENCES_MAX:
            break
        if size > room or any(_alike(one, other) for other in chosen):
            continue
        chosen.append(one)
        room -= size
    chosen.sort(key=lambda one: one.place)
    people = [at for at, one in enumerate(chosen) if one.human]
    return chosen[people[0] :] if people else chosen


def _alike(one: _Said, other: _Said) -> bool:
    return len(one.words & other.words) * 2 > len(one.words | other.words)
