"""The one analyser of both databases: text in, index terms out.

Fold (NFKC, case, accents), then words as stems and runs of scripts that are written without spaces as overlapping
pairs of characters. A compound such as `foo_bar`, `a/b.py` or `don't` gives its parts and itself, so that it is found
by either. A term never holds a space or a double quote, and any text is accepted.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

import snowballstemmer

TERM_PUNCTUATION: Final = "_-./:@&+#"
"""ASCII punctuation that may stand inside a term; the full-text table must take these as letters."""
_TERM_CHARS_MAX = 64

# Scripts written without spaces (and Hangul, whose particles stick to the word).
_HAN = "\u2e80-\u2fd5\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_SPACELESS = (
    _HAN + "\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"  # Kana
    "\u1100-\u11ff\uac00-\ud7a3"  # Hangul
    "\u0e01-\u0e2e\u0e30-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece"  # Thai, Lao
    "\u1000-\u1049\u1050-\u109f\u1780-\u17d3"  # Myanmar, Khmer
)
# Marks that belong to a word though they are not letters (`\w` leaves them out): vowel signs above all.
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u07a6-\u07b0\u0900-\u0903\u093a-\u094f"
    "\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09d7\u09e2\u09e3\u0a01-\u0a03\u0a3c-\u0a51\u0a70-\u0a75"
    "\u0a81-\u0a83\u0abc-\u0acd\u0ae2\u0ae3\u0b01-\u0b03\u0b3c-\u0b57\u0b82\u0bbe-\u0bcd\u0bd7\u0c00-\u0c04"
    "\u0c3e-\u0c56\u0c81-\u0c83\u0cbc-\u0cd6\u0d00-\u0d03\u0d3b-\u0d4d\u0d57\u0d81-\u0d83\u0dca-\u0df3"
    "\u0f18\u0f19\u0f35\u0f37\u0f39\u0f71-\u0f84\u0f86\u0f87\u0f8d-\u0fbc"
)
_EMOJI = (
    "[\U0001f1e6-\U0001f1ff]{2}"  # flags
    "|[\u2190-\u21ff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001faff]"
)
_LINK = re.escape(TERM_PUNCTUATION + "'")
_TOKEN_ASCII = re.compile(rf"[a-z0-9]+(?:[{_LINK},]{{1,2}}[a-z0-9]+)*(?:\+\+|#)?")
_LETTER = rf"(?![_{_SPACELESS}])[\w{_MARKS}]"
_TOKEN = re.compile(rf"[{_SPACELESS}]+|(?:{_LETTER})+(?:[{_LINK},]{{1,2}}(?:{_LETTER})+)*(?:\+\+|#)?|{_EMOJI}")
_SPACELESS_CHAR = re.compile(f"[{_SPACELESS}]")
_HAN_CHAR = re.compile(f"[{_HAN}]")
_EMOJI_TOKEN = re.compile(_EMOJI)
_SPLIT = re.compile(rf"[{_LINK},]+")
_HEBREW_PREFIXED = re.compile("[\u05d5\u05d4\u05d1\u05dc\u05de\u05e9\u05db][\u05d0-\u05ea]{3,}")
"""And, the, in, to, from, that, as: written onto the word."""
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_SEAM = re.compile(r"[a-z][A-Z][a-z]")
_WITH_SEAM = re.compile(
    rf"(?<![A-Za-z0-9])(?=[A-Za-z0-9]{{0,{_TERM_CHARS_MAX - 3}}}?[a-z][A-Z][a-z])[A-Za-z0-9]{{1,{_TERM_CHARS_MAX}}}"
)
_CAMEL_SEAM = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ACCENTS = re.compile("(?<=[a-z\u0131\u0370-\u03ff])[\u0300-\u036f]+")
_DROPPED = dict.fromkeys(
    [0x00AD, 0x0640, 0x093C, 0x200B, 0x200C, 0x200D, 0x2060, 0xFE0E, 0xFE0F, 0xFEFF, *range(0x064B, 0x0660), 0x0670]
)  # soft hyphen, Arabic stretch and short vowels, Devanagari's dot, joiners, variation selectors
_FOLDED: dict[int, str | None] = {
    **_DROPPED,
    **{katakana: chr(katakana - 0x60) for katakana in range(0x30A1, 0x30F7)},  # one word may be written in either
    ord("’"): "'",
    ord("‘"): "'",
    ord("ʼ"): "'",
    ord("ł"): "l",
    ord("ø"): "o",
    ord("đ"): "d",
    ord("ı"): "i",
    ord("æ"): "ae",
    ord("œ"): "oe",
    ord("ð"): "d",
    ord("þ"): "th",
    ord("ё"): "е",
    ord("‐"): "-",
    ord("‑"): "-",
    ord("أ"): "ا",
    ord("إ"): "ا",
    ord("آ"): "ا",
    ord("ى"): "ي",
    ord("ة"): "ه",
}
_FOLDABLE = re.compile(f"[{re.escape(''.join(map(chr, _FOLDED)))}]")
"""`str.translate` would look every character up, of which a text has few of these."""

# Small closed lists: articles, prepositions, auxiliaries, pronouns, question words. Folded.
STOP_WORDS: Final[dict[str, frozenset[str]]] = {
    "en": frozenset(
        "a about after am an and are as at be been before being but by can could d did do does doing done during "
        "for from had has have having he her here him his how i if in into is it its ll m may me might must my no "
        "nor not of on or our re s shall she should so t than that the their them then there these they this "
        "those to too us ve very was we were what when where which who whom whose why will with would you your".split()
    ),
    "de": frozenset(
        "aber als am an auch auf aus bei bin bis da das dass dein dem den der des die du ein eine einem einen "
        "einer er es fur hab habe haben hat hatte ich ihr im in ist ja kann mein mich mir mit nach nicht noch "
        "oder sich sie sind so uber um und uns unser vom von vor wann war waren warum was welche welcher wem wen "
        "wer wie wir wird wo wurde zu zum zur".split()
    ),
    "pt": frozenset(
        "a ao aos as com como da das de dela dele do dos e ela ele em era essa esse esta estava este eu foi ha "
        "isso isto ja la lhe mais mas me meu minha na nas nao no nos o onde os ou para pela pelo por porque quais "
        "qual quando que quem se ser seu sua sao tem ter tinha um uma voce".split()
    ),
    "es": frozenset(
        "a al como con cual cuales cuando de del donde e el ella ellos en era es esa ese esta estaba este fue ha "
        "hay he la las le les lo los me mi mis muy no nos o para pero por porque que quien se ser si sin son su "
        "sus te tiene tu un una y ya yo".split()
    ),
    "fr": frozenset(
        "a ai as au aux avec c ce ces cette comment d dans de des du elle elles en es est et etait eu fait il ils "
        "j je l la le les leur lui m ma mais me mes mon n ne nos notre nous on ont ou par pas pour pourquoi qu "
        "quand que quel quelle quels qui quoi s sa se ses son sont sur t ta te tes ton tu un une vous y".split()
    ),
}


def fold(text: str) -> str:
    """Lower case, compatibility forms and accents of Latin and Greek letters folded away."""
    return text.lower() if text.isascii() else _fold_lines(text)


@lru_cache(maxsize=8)  # a text is folded for its terms, for its habits of speech and for its words
def _fold_lines(text: str) -> str:
    """Line by line: what a tool printed is long, and of its lines hardly one is not ASCII."""
    return "\n".join([line.lower() if line.isascii() else _fold_letters(line) for line in text.split("\n")])


def _fold_letters(text: str) -> str:
    text = unicodedata.normalize("NFKC", text).casefold()
    text = _ACCENTS.sub("", unicodedata.normalize("NFD", text))
    return _FOLDABLE.sub(lambda found: _FOLDED[ord(found[0])] or "", unicodedata.normalize("NFC", text))


def terms(text: str) -> list[str]:
    """Index terms in order, with repeats; words that camelCase holds come last."""
    found = [term for token in _tokens(fold(text)) for term in _token_terms(token)]
    found += [term for word in _camel_parts(text) for term in _token_terms(word)]
    return found


def query_terms(text: str) -> list[str]:
    """The terms of a question, each once, without stop words unless nothing would be left."""
    tokens = _tokens(fold(text))
    stop = stop_words_of([word for token in tokens for word in _token_words(token)])
    kept = [term for token in tokens for word in _token_words(token) if word not in stop for term in (stem(word),)]
    kept += [whole for token in tokens if token not in stop for whole in _token_wholes(token)]
    return list(dict.fromkeys(kept or terms(text)))


def words(text: str) -> list[str]:
    """Folded words in order, not stemmed; compounds only as their parts."""
    return [word for token in _tokens(fold(text)) for word in _token_words(token)]


def content_words(text: str) -> list[str]:
    """Folded words without stop words, with repeats; all of them where only stop words were said."""
    found = words(text)
    stop = stop_words_of(found)
    return [word for word in found if word not in stop] or found


def stop_words_of(found: Iterable[str]) -> frozenset[str]:
    """The stop words of the language most of whose stop words occur; English where languages tie."""
    present = set(found)
    return max(STOP_WORDS.values(), key=lambda stop: len(stop & present))  # max keeps the first of equals: English


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """Porter for Latin script (all languages), the Snowball stemmer of the script for five others."""
    first = word[0]
    if "a" <= first <= "z":
        return _stem_word("porter", word)
    for low, high, algorithm in _STEMMER_OF_SCRIPT:
        if low <= first <= high:
            return _stem_arabic(word) if algorithm == "arabic" else _stem_word(algorithm, word)
    return word


def _stem_arabic(word: str) -> str:
    """With and without article and conjunction alike: the stemmer leaves an ending where it has taken the article."""
    stemmed = word[1:] if word.startswith(_AND_THE) and len(word) > 4 else word
    for _ in range(3):
        before, stemmed = stemmed, _stem_word("arabic", stemmed)
        if stemmed == before:
            break
    return stemmed


_AND_THE = ("\u0648\u0627\u0644", "\u0641\u0627\u0644")
_STEMMER_OF_SCRIPT = (
    ("\u0370", "\u03ff", "greek"),
    ("\u0400", "\u04ff", "russian"),
    ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
    ("\u0b80", "\u0bff", "tamil"),
)


class _Stemmers(threading.local):
    """Each thread's own: a stemmer keeps the word it works on in itself, and two threads in one stemmer spoil both."""

    def __init__(self) -> None:
        self.of: dict[str, Any] = {}


_stemmers = _Stemmers()


def _stemmer(algorithm: str) -> Any:
    stemmer = _stemmers.of.get(algorithm)
    if stemmer is None:
        stemmer = _stemmers.of[algorithm] = snowballstemmer.stemmer(algorithm)
    return stemmer


def _stem_word(algorithm: str, word: str) -> str:
    stemmed: str = _stemmer(algorithm).stemWord(word)
    return stemmed or word


@lru_cache(maxsize=8)
def _tokens(folded: str) -> tuple[str, ...]:
    if folded.isascii():
        return tuple(_TOKEN_ASCII.findall(folded))
    lines = folded.split("\n")  # no token goes beyond its line
    return tuple([token for line in lines for token in (_TOKEN_ASCII if line.isascii() else _TOKEN).findall(line)])


def _camel_parts(text: str) -> list[str]:
    if not _SEAM.search(text):
        return []
    parts = [part for token in _WITH_SEAM.findall(text) for part in _CAMEL_SEAM.split(token)]
    return [part.lower() for part in parts if len(part) > 2]


@lru_cache(maxsize=1 << 16)
def _token_terms(token: str) -> tuple[str, ...]:
    return (*[stem(word) for word in _token_words(token)], *_token_wholes(token))


@lru_cache(maxsize=1 << 16)
def _token_words(token: str) -> tuple[str, ...]:
    """The words of a token; pairs (and single Han characters) of a run without spaces."""
    if token.isalnum() and token.isascii():
        return (token[:_TERM_CHARS_MAX],)
    if _SPACELESS_CHAR.match(token):
        pairs = [token[i : i + 2] for i in range(len(token) - 1)] or [token]
        singles = _HAN_CHAR.findall(token) if len(token) > 1 else []
        return (*pairs, *singles)
    if _EMOJI_TOKEN.fullmatch(token):
        return (token,)
    if _THOUSANDS.fullmatch(token):
        return (token.replace(",", ""),)
    return tuple([part[:_TERM_CHARS_MAX] for part in _SPLIT.split(token) if part])


@lru_cache(maxsize=1 << 16)
def _token_wholes(token: str) -> tuple[str, ...]:
    """The compound itself (and the last step of a path), where the token is one; a Hebrew word without its prefix."""
    if _HEBREW_PREFIXED.fullmatch(token):
        return (token[1:],)
    if token.isalnum() or _SPACELESS_CHAR.match(token) or _EMOJI_TOKEN.fullmatch(token) or _THOUSANDS.fullmatch(token):
        return ()
    if "'" in token or "," in token:  # a possessive is its word; other contractions are also written without the mark
        pieces = [piece for piece in token.split(",") if not piece.isalnum()]
        joined = [p.replace("'", "") for p in pieces if not p.endswith("'s")]
    else:
        joined = [token, token.rpartition("/")[2]]
    wholes = [w for w in dict.fromkeys(joined) if not _is_word(w) or w != token]
    return tuple([w for w in wholes if w not in _token_words(token) and len(w) <= _TERM_CHARS_MAX and w])


def _is_word(text: str) -> bool:
    return text.isalnum()
