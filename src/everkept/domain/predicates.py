"""Names and predicates in a form that can be compared, and which predicates hold one object at a time."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

NAMES_KEPT: Final = 4_096
"""Of names and predicates that were compared lately: settling a timeline asks for the same ones again and again."""
_QUOTES = str.maketrans({"‘": "'", "’": "'", "‚": "'", "‛": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"',
                         "–": "-", "—": "-", "‐": "-", "‑": "-", "…": "...",
                         "\u200b": None, "\ufeff": None})  # fmt: skip
_ARTICLE = re.compile(r"^(?:the|a|an|my|our|der|die|das|ein|eine|einen|mein|meine|meinen|o|a|os|as|um|uma|meu|minha|"
                      r"el|la|los|las|un|una|mi|mis)\s+(?=\w)")  # fmt: skip

SYNONYMS: dict[str, tuple[str, ...]] = {
    "lives in": (
        "live in", "resides in", "moved to", "moved back to", "is living in", "lives at", "home city", "wohnt in",
        "lebt in", "mora em", "vive em", "vive en", "mudou-se para", "se mudó a", "に住んでいる", "に引っ越した",
    ),
    "works at": (
        "work at", "works for", "is employed by", "employer", "arbeitet bei", "trabalha na", "trabalha no",
        "trabalha em", "trabaja en", "で働いている",
    ),
    "works as": ("job", "profession", "occupation", "arbeitet als", "trabalha como", "trabaja como"),
    "is named": ("name", "is called", "heißt", "se chama", "se llama", "の名前"),
    "likes": (
        "like", "enjoys", "loves", "mag", "liebt", "gosta de", "adora", "le gusta", "le gustan", "le encanta",
        "le encantan", "が好き",
    ),
    "dislikes": ("dislike", "hates", "hasst", "mag nicht", "odeia", "não gosta de", "odia", "no le gusta", "が嫌い"),
    "allergic to": (
        "is allergic to", "has an allergy to", "ist allergisch gegen", "é alérgico a", "é alérgica a",
        "es alérgico a", "es alérgica a", "のアレルギーがある",
    ),
    "owns": ("own", "has bought", "bought", "besitzt", "comprou", "compró", "を買った"),
    "is married to": ("married to", "spouse", "ist verheiratet mit", "é casado com", "é casada com",
                      "está casado con", "está casada con", "と結婚している"),
    "is together with": ("is in a relationship with", "is dating", "partner"),
    "speaks": ("speak", "spricht", "fala", "habla", "を話す"),
    "studies": ("study", "is studying", "studiert", "estuda", "estudia", "を勉強している"),
    "has birthday on": ("born on", "birthday", "hat geburtstag am", "faz anos em", "cumple años el", "の誕生日"),
    "is aged": ("age", "is years old", "ist alt", "tem a idade de", "tiene la edad de", "の年齢"),
    "eats": ("isst", "come"),
    "drinks": ("trinkt", "bebe"),
    "does not eat": ("isst kein", "não come", "no come"),
    "grew up in": ("ist aufgewachsen in", "cresceu em", "creció en"),
    "practises": ("macht", "pratica", "practica"),
    "is a member of": ("ist mitglied in", "faz parte de", "forma parte de"),
    "plans to": ("hat vor", "planeia", "tiene previsto"),
    "has planned": ("hat geplant", "tem marcado", "tiene programado"),
    "follows the diet": ("diet", "dieta", "ernährt sich", "の食生活"),
}  # fmt: skip
"""Predicate that statements are compared under → what is said for it. What is stored and shown stays as it was said."""

ONE_AT_A_TIME = ("lives in", "is named", "is married to", "is together with", "has birthday on", "is aged",
                 "follows the diet", "has address", "relationship status", "prefers to be called",
                 "works at")  # fmt: skip
MANY_AT_A_TIME = (
    "likes", "dislikes", "allergic to", "owns", "speaks", "studies", "plays", "plans to", "wants", "has pet",
    "has child", "has sibling", "has friend", "visited", "asks to", "asks to always",
    "asks to never", "eats", "drinks", "practises", "is a member of",
)  # fmt: skip
_FAVOURITE = re.compile(r"\b(?:favou?rite|preferid[oa]|favorit[oa]|lieblings\w+)\b|好きな")


def normalise_text(text: str) -> str:
    """Compatibility form, straight quotes, single spaces, caseless: two texts that read alike become equal."""
    return " ".join(unicodedata.normalize("NFKC", text).translate(_QUOTES).casefold().split())


@lru_cache(maxsize=NAMES_KEPT)
def normalise_name(text: str) -> str:
    """A name or object for comparing: as `normalise_text`, without an article in front or punctuation around it."""
    bare = normalise_text(text).strip(" \"'`.,;:!?()[]{}。、！？「」")
    return _ARTICLE.sub("", bare).removesuffix("'s") or bare


def without_article(text: str) -> str:
    """The words without an article in front of them, as they were written; "The Hague" keeps its own."""
    return _ARTICLE.sub("", text)


@lru_cache(maxsize=NAMES_KEPT)
def normalise_predicate(text: str) -> str:
    """The predicate that two statements are compared under: one space between words, synonyms as one."""
    bare = normalise_text(text.replace("_", " ")).strip(" .,:;")
    return _CANONICAL.get(bare, bare)


def is_single_valued(predicate: str) -> bool | None:
    """Whether the predicate holds one object at a time (True), many (False), or it cannot be told from the word."""
    key = normalise_predicate(predicate)
    if key in ONE_AT_A_TIME or _FAVOURITE.search(key):
        return True
    return False if key in MANY_AT_A_TIME or key.startswith("has ") else None


_CANONICAL = {normalise_text(said): canonical for canonical, all_said in SYNONYMS.items() for said in all_said}
