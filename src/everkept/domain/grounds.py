"""What a model's draft may rest on: who was named, whether a time was said, and in which language (D04, D08). Pure.

Each check speaks up only where it can tell. What it cannot read (a script, a language without a list) passes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from everkept.domain import text as analyser
from everkept.domain.passage import Traits, traits_of

_WORD = re.compile(r"[^\W\d_]+")
_READ = re.compile(r"[^\W\d_\u0250-\u303f\u3400-\U0010ffff]|[\u3041-\u30ff\u4e00-\u9fff]")
"""Letters of the scripts whose words for times are known: Latin, Kana, Han."""
_SCRIPTS = (
    ("latin", re.compile("[A-Za-z\u00c0-\u024f]")),
    ("greek", re.compile("[\u0370-\u03ff]")),
    ("cyrillic", re.compile("[\u0400-\u052f]")),
    ("hebrew", re.compile("[\u0590-\u05ff]")),
    ("arabic", re.compile("[\u0600-\u06ff]")),
    ("indic", re.compile("[\u0900-\u0dff]")),
    ("thai", re.compile("[\u0e00-\u0eff]")),
    ("east asian", re.compile("[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")),
)
LETTERS_MIN = 4
"""A shorter text has no language of its own."""
ROLES = ("user", "assistant", "system", "tool", "speaker")


def words_of(texts: Iterable[str]) -> frozenset[str]:
    """Stems of all words, for `is_named`."""
    return frozenset(analyser.stem(word) for text in (*texts, *ROLES) for word in analyser.words(text))


def is_named(name: str, words: frozenset[str]) -> bool:
    """False for a proper name (every word of it capitalised) of which no word was said."""
    parts = _WORD.findall(name)
    if not parts or not all(part[0].isupper() for part in parts):
        return True
    return any(analyser.stem(word) in words for word in analyser.words(name))


def says_a_time(text: str) -> bool:
    """Whether a text names a time in numbers or words; True also where its script cannot be read."""
    if any(char.isdigit() for char in text) or traits_of(text) & Traits.TEMPORAL:
        return True
    letters = _WORD.findall(text)
    return len(_READ.findall(text)) < sum(map(len, letters))


def other_language(text: str, like: str) -> bool:
    """Whether a text is surely in another language than it should be: in another script, or with other stop words."""
    mine, theirs = _script(text), _script(like)
    if mine is None or theirs is None:
        return False
    if mine != theirs:
        return mine not in _scripts_of(like)
    language, expected = _language(text), _language(like)
    return language is not None and expected is not None and language != expected


def _scripts_of(text: str) -> Counter[str]:
    return +Counter({name: len(pattern.findall(text)) for name, pattern in _SCRIPTS})


def _script(text: str) -> str | None:
    """The one that most of its letters are of."""
    found = _scripts_of(text)
    return found.most_common(1)[0][0] if found.total() >= LETTERS_MIN else None


def _language(text: str) -> str | None:
    """By its stop words, where at least two are of one language and fewer of any other."""
    said = set(analyser.words(text))
    found = Counter({language: len(stop & said) for language, stop in analyser.STOP_WORDS.items()})
    (first, most), (_, second) = found.most_common(2)
    return first if most >= 2 and most > second else None
