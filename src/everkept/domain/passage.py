"""What of a text goes into the index: its analysed terms and the few habits of speech that ranking looks at.

Analysing takes about 50 µs a turn and needs no database, so callers do it before they enter the writer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from enum import IntFlag
from functools import lru_cache
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from everkept.domain import text as analyser

SITTING_GAP_US: Final = 6 * 3600 * 1_000_000
"""A pause longer than this starts a new sitting in a stream: talk resumed on another day is another talk."""

_MONTHS: Final = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)


class Traits(IntFlag):
    """Habits of speech, found when the text is indexed. The number of capitals stands in two bits of its own."""

    NONE = 0
    ASKS = 1
    """Ends with a question mark."""
    TEMPORAL = 2
    """Says a time: yesterday, two years ago, Friday, 2022, June …"""
    CAPITAL_1 = 4
    CAPITAL_2 = 8
    MAINTAINED = 16
    """Of a page that somebody keeps true: it goes before what only tells what happened, where all else is equal."""


_Traits = TypeVar("_Traits", int, npt.NDArray[np.int64])


def capitals_of(traits: _Traits) -> _Traits:
    """Capitalised words not at the start of a sentence, counted up to 3; always 0 outside English."""
    return (traits >> 2) & 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysed:
    """One passage as the index wants it: terms joined by spaces, and traits."""

    own: str
    speaker: str
    said: str
    """Terms of the date."""
    traits: int


def analyse(
    text: str, *, speaker: str | None = None, occurred_at_us: int | None = None, zone_min: int | None = None
) -> Analysed:
    """Analyse one turn, fact or summary. `zone_min` is the sender's offset from UTC in minutes, where it is known."""
    return Analysed(
        own=" ".join(analyser.terms(text)),
        speaker=_speaker_terms(speaker) if speaker else "",
        said="" if occurred_at_us is None else _day_terms(_day_of(occurred_at_us, zone_min)),
        traits=traits_of(text),
    )


@lru_cache(maxsize=4096)
def _speaker_terms(speaker: str) -> str:
    return " ".join(analyser.terms(speaker))


def _day_of(occurred_at_us: int, zone_min: int | None) -> int:
    """Days since 1970 on the sender's calendar."""
    return (occurred_at_us // 60_000_000 + (zone_min or 0)) // 1440


@lru_cache(maxsize=4096)
def _day_terms(day: int) -> str:
    return " ".join(analyser.terms(date_text(day * 86_400_000_000)))


def date_text(occurred_at_us: int, zone_min: int | None = None) -> str:
    """`8 may 2023`: the day in the sender's zone, as people write it."""
    day = local_time(occurred_at_us, zone_min)
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def local_time(occurred_at_us: int, zone_min: int | None = None) -> datetime:
    """Aware time in the sender's zone (UTC where it is not known), held inside the years 1 to 9999."""
    zone = timezone(timedelta(minutes=zone_min)) if zone_min else UTC
    seconds = min(max(occurred_at_us // 1_000_000, -62_135_510_400), 253_402_214_400)
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).astimezone(zone)


def traits_of(text: str) -> int:
    """A plain number: members of an enumeration take a slow way into the database."""
    bare = _IMAGE_NOTE.sub("", text).rstrip()
    asks = int(Traits.ASKS) if bare.endswith(("?", "？", "؟", "。か")) else 0
    temporal = int(Traits.TEMPORAL) if _TEMPORAL.search(analyser.fold(bare)) else 0
    return asks | temporal | (min(3, _capitals(bare)) << 2)


_IMAGE_NOTE = re.compile(r"\[[^\[\]]*\]$")  # "[shared image: …]" and the like at the end
_CAPITAL = re.compile(r"\b[A-Z][a-zA-Z]+\b")


def _capitals(text: str) -> int:
    found = 0
    for match in _CAPITAL.finditer(text):
        before = text[max(0, match.start() - 8) : match.start()].rstrip()
        found += bool(before) and before[-1] not in ".!?"
        if found == 3:
            break
    if found and analyser.stop_words_of(analyser.words(text)) is not analyser.STOP_WORDS["en"]:
        return 0  # German writes every noun so
    return found


_TEMPORAL = re.compile(
    # English
    r"\b(?:yesterday|today|tonight|tomorrow|ago|recently|since|(?:19|20)\d\d|"
    r"(?:last|next|this) (?:night|week|weekend|month|year|summer|winter|spring|fall|autumn|morning|afternoon|evening|"
    r"past|mon|tue|wed|thu|fri|sat|sun)\w*|"
    r"(?:a|two|three|four|five|six|few|couple(?: of)?|several|\d+) (?:days?|weeks?|weekends?|months?|years?)|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|"
    r"january|february|march|april|june|july|august|september|october|november|december|"
    # German, Portuguese, Spanish, French (folded: no accents)
    r"gestern|heute|morgen|vorgestern|letzte[nrs]?|nachste[nrs]?|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch|januar|februar|"
    r"marz|juni|juli|oktober|dezember|ontem|hoje|amanha|semana|(?:segunda|terca|quarta|quinta|sexta)-feira|sabado|domingo|"
    r"janeiro|fevereiro|marco|abril|maio|junho|julho|setembro|outubro|novembro|dezembro|ayer|hoy|manana|lunes|martes|miercoles|"
    r"jueves|viernes|enero|febrero|marzo|mayo|junio|septiembre|octubre|noviembre|diciembre|hier|aujourd'hui|demain|semaine|"
    r"lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|janvier|fevrier|avril|juin|juillet|aout|septembre|octobre|novembre|"
    r"decembre)\b|"
    # Chinese and Japanese
    r"昨天|今天|明天|前天|上周|下周|去年|明年|昨日|今日|明日|先週|来週|先月|来月|来年|星期[一二三四五六日天]|[月火水木金土日]曜日|\d{1,2}月"
)
