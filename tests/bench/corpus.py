"""Made-up talk of any length, the same in every run: words of our own recall sets by their frequency, and a long tail.

The tail keeps document frequencies lifelike: every fiftieth word is a rare one, as names and numbers are.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from functools import cache
from itertools import accumulate
from pathlib import Path

SETS = Path(__file__).parent.parent / "data" / "recall"
_ENGLISH = ("agent_coding.json", "support_chat.json")
_SYLLABLES = "ba do fen gur hal ji kor lum mer nis pol qua ras tev vor wim xan yel zot bri".split()
_TAIL_SHARE = 0.02


@cache
def _vocabulary() -> tuple[list[str], list[int]]:
    """Words and their cumulated counts."""
    counts: Counter[str] = Counter()
    for name in _ENGLISH:
        counts.update(re.findall(r"[A-Za-z']+", (SETS / name).read_text(encoding="utf-8")))
    words = sorted(counts)
    return words, list(accumulate(counts[w] for w in words))


def make_texts(count: int, *, seed: int = 1) -> list[str]:
    """Turns of 4 to 40 words."""
    rng = random.Random(seed)
    words, weights = _vocabulary()
    texts = []
    for _ in range(count):
        said = rng.choices(words, cum_weights=weights, k=min(40, 4 + int(rng.expovariate(1 / 14))))
        said = ["".join(rng.choices(_SYLLABLES, k=3)) if rng.random() < _TAIL_SHARE else word for word in said]
        texts.append(" ".join(said).capitalize() + ".")
    return texts


def make_questions(texts: list[str], count: int, *, seed: int = 2) -> list[str]:
    """Questions of 3 to 7 words of one of the turns each, stop words and all."""
    rng = random.Random(seed)
    return [
        "What about " + " ".join(rng.sample(words, min(len(words), rng.randint(3, 7)))) + "?"
        for words in (rng.choice(texts).rstrip(".").split() for _ in range(count))
    ]


def as_messages(texts: list[str]) -> list[dict[str, str]]:
    """The bodies of appends, user and assistant in turn."""
    return [{"role": "assistant" if i % 2 else "user", "content": text} for i, text in enumerate(texts)]
