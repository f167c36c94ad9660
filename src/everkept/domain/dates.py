"""Dates as people say them, resolved against when they were said, in the sender's zone.

English, German, Portuguese, Spanish and basic Japanese. A date is a period `[from_us, until_us)` in microseconds
since 1970, UTC, together with how the sentence uses it (`on`, `since`, `until`). What is not understood is not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Literal

from everkept.domain.date_words import (
    AMBIGUOUS_MONTHS,
    DAY_WORDS,
    MONTHS,
    NEXT,
    NUMBERS,
    PERIOD_WORDS,
    PREVIOUS,
    SINCE,
    THIS,
    UNITS,
    UNTIL,
    WEEKDAYS,
)

Grain = Literal["day", "week", "month", "year"]
Relation = Literal["on", "since", "until"]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_US = -62_135_596_800_000_000 + 86_400_000_000 * 400
_LAST_US = 253_402_300_799_000_000 - 86_400_000_000 * 400
"""A year inside what `datetime` can hold, so that zones and periods never overflow."""
_LINKS: tuple[tuple[Relation, re.Pattern[str], re.Pattern[str]], ...] = (
    ("since", re.compile(SINCE[0] + r"\s*$", re.IGNORECASE), re.compile(SINCE[1])),
    ("until", re.compile(UNTIL[0] + r"\s*$", re.IGNORECASE), re.compile(UNTIL[1])),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dated:
    """A time expression found in a text."""

    from_us: int
    until_us: int
    """The end of the period, exclusive."""
    grain: Grain
    relation: Relation
    start: int
    """Where the expression begins in the text, its connective (`since`) included."""
    end: int


@dataclass(frozen=True, slots=True)
class _Period:
    first: date
    end: date
    grain: Grain


def local_time(us: int, zone_min: int | None) -> datetime:
    """The wall clock of the sender; UTC where the zone is not known. Times beyond the calendar are pulled inside it."""
    zone = timezone(timedelta(minutes=max(-1439, min(1439, zone_min or 0))))
    return (EPOCH + timedelta(microseconds=max(_FIRST_US, min(_LAST_US, us)))).astimezone(zone)


def to_us(moment: datetime) -> int:
    """Microseconds since 1970 of an aware datetime, without a detour over floats."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def has_time_expression(text: str) -> bool:
    """Whether the text says when: yesterday, last week, two years ago, Friday, 2022, June, 昨日 …"""
    return any(pattern.search(text) for pattern, _ in _RULES)


def find_dates(text: str, said_us: int, zone_min: int | None, *, ahead: bool = False) -> list[Dated]:
    """Every time expression that can be resolved, in the order of the text; longer readings win over shorter ones.

    A bare weekday or month is the last one ("on Friday I met her"), in talk of what is `ahead` the next one.
    """
    today = local_time(said_us, zone_min).date()
    found: list[Dated] = []
    taken: list[tuple[int, int]] = []
    for pattern, read in _RULES:
        for match in pattern.finditer(text):
            if any(match.start() < end and start < match.end() for start, end in taken):
                continue
            taken.append(match.span())  # also what cannot be: a 31 February is not a February
            period = _read(read, match, today)
            if period is not None:
                if ahead and period.end <= today and pattern in _BARE:
                    period = _next_round(period)
                found.append(_dated(text, match, period, zone_min))
    return sorted(found, key=lambda dated: dated.start)


def parse_date(text: str, said_us: int, zone_min: int | None, *, end: bool = False) -> int | None:
    """A date given by itself (`2024-05-03`, `2024`, an ISO time, `last week`), or its end; None where there is none."""
    stamp = _iso_time(text.strip(), zone_min)
    if stamp is not None:
        return stamp
    found = find_dates(text, said_us, zone_min)
    if len(found) != 1:
        return None
    return found[0].until_us if end else found[0].from_us


def _iso_time(text: str, zone_min: int | None) -> int | None:
    if not re.fullmatch(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*", text):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=local_time(0, zone_min).tzinfo)
    return to_us(moment)


def _read(read: Callable[[re.Match[str], date], _Period | None], match: re.Match[str], today: date) -> _Period | None:
    try:
        return read(match, today)
    except (ValueError, OverflowError):
        return None  # a 31 February, or a year outside the calendar


def _dated(text: str, match: re.Match[str], period: _Period, zone_min: int | None) -> Dated:
    relation, start, end = _connected(text, match.start(), match.end())
    return Dated(
        from_us=_day_us(period.first, zone_min), until_us=_day_us(period.end, zone_min), grain=period.grain,
        relation=relation, start=start, end=end,
    )  # fmt: skip


def _connected(text: str, start: int, end: int) -> tuple[Relation, int, int]:
    """The relation that the words around an expression give it, and the expression with those words."""
    for relation, before, after in _LINKS:
        lead = before.search(text, max(0, start - 20), start)
        if lead:
            return relation, lead.start(), end
        tail = after.match(text, end)
        if tail:
            return relation, start, tail.end()
    return "on", start, end


def _day_us(day: date, zone_min: int | None) -> int:
    return to_us(datetime(day.year, day.month, day.day, tzinfo=local_time(0, zone_min).tzinfo))


# ---- periods


def _day(first: date) -> _Period:
    return _Period(first, first + timedelta(days=1), "day")


def _week(today: date, offset: int) -> _Period:
    monday = today - timedelta(days=today.weekday()) + timedelta(weeks=offset)
    return _Period(monday, monday + timedelta(weeks=1), "week")


def _month(year: int, month: int) -> _Period:
    first = date(year + (month - 1) // 12, (month - 1) % 12 + 1, 1)
    return _Period(first, date(first.year + first.month // 12, first.month % 12 + 1, 1), "month")


def _year(year: int) -> _Period:
    return _Period(date(year, 1, 1), date(year + 1, 1, 1), "year")


def _next_round(period: _Period) -> _Period:
    """The same weekday a week later, the same month a year later."""
    if period.grain == "day":
        return _day(period.first + timedelta(weeks=1))
    return _month(period.first.year + 1, period.first.month)


def _shifted(today: date, unit: Grain, count: int) -> _Period:
    """`count` units from today: a day for days and weeks, the calendar month or year otherwise."""
    if unit == "day":
        return _day(today + timedelta(days=count))
    if unit == "week":
        return _day(today + timedelta(weeks=count))
    if unit == "month":
        return _month(today.year, today.month + count)
    return _year(today.year + count)


def _calendar(today: date, unit: Grain, offset: int) -> _Period:
    return _week(today, offset) if unit == "week" else _shifted(today, unit, offset)


# ---- readings


def _say_iso(match: re.Match[str], _: date) -> _Period:
    if match["day"]:
        return _day(date(int(match["year"]), int(match["month"]), int(match["day"])))
    return _month(int(match["year"]), int(match["month"]))


def _say_day_word(match: re.Match[str], today: date) -> _Period:
    return _day(today + timedelta(days=DAY_WORDS[" ".join(match[0].lower().split())]))


def _say_japanese_weekday(match: re.Match[str], today: date) -> _Period:
    _, offset = PERIOD_WORDS[match["way"]]
    return _day(_week(today, offset).first + timedelta(days=WEEKDAYS[match["thing"]]))


def _say_period_word(match: re.Match[str], today: date) -> _Period:
    unit, offset = PERIOD_WORDS[match[0]]
    return _calendar(today, unit, offset)


def _say_direction(match: re.Match[str], today: date) -> _Period | None:
    word = (match["way"] or match["way2"]).lower()
    offset = -1 if re.fullmatch(PREVIOUS, word) else 1 if re.fullmatch(NEXT, word) else 0
    thing = match["thing"].lower()
    if thing in UNITS:
        return _calendar(today, UNITS[thing], offset)
    if thing in MONTHS:
        return _named_month(MONTHS[thing], today, offset)
    return _named_weekday(WEEKDAYS[thing], today, offset)


def _say_distance(match: re.Match[str], today: date) -> _Period:
    sign = 1 if match.re.groupindex.get("ahead") else -1
    return _shifted(today, UNITS[match["unit"].lower()], sign * _number(match["count"]))


def _say_day_month(match: re.Match[str], today: date) -> _Period:
    day, month = int(match["day"]), _month_number(match["month"])
    if match["year"]:
        return _day(date(int(match["year"]), month, day))
    years = (today.year - 1, today.year, today.year + 1)
    near = [date(year, month, day) for year in years if _exists(year, month, day)]
    return _day(min(near, key=lambda one: abs((one - today).days)))


def _say_month(match: re.Match[str], today: date) -> _Period:
    month = _month_number(match["month"])
    return _month(int(match["year"]), month) if match["year"] else _named_month(month, today, None)


def _say_year(match: re.Match[str], _: date) -> _Period:
    return _year(int(match["year"]))


def _say_weekday(match: re.Match[str], today: date) -> _Period:
    return _named_weekday(WEEKDAYS[match["thing"].lower()], today, None)


def _named_month(month: int, today: date, offset: int | None) -> _Period:
    """Last: before this month; next: after it; bare: the nearest one that has begun."""
    if offset == -1:
        return _month(today.year - (month >= today.month), month)
    if offset == 1:
        return _month(today.year + (month <= today.month), month)
    return _month(today.year if offset == 0 else today.year - (month > today.month), month)


def _named_weekday(weekday: int, today: date, offset: int | None) -> _Period:
    """Last: before today; next: after today; this: of this week; bare: the last one, today included."""
    back = (today.weekday() - weekday) % 7
    if offset == 1:
        return _day(today + timedelta(days=(weekday - today.weekday() - 1) % 7 + 1))
    if offset == 0:
        return _day(today - timedelta(days=today.weekday() - weekday))
    return _day(today - timedelta(days=back or (7 if offset == -1 else 0)))


def _month_number(word: str) -> int:
    return int(word) if word.isdecimal() else MONTHS[word.lower()]


def _number(word: str) -> int:
    return int(word) if word.isdecimal() else NUMBERS[" ".join(word.lower().split())]


def _exists(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


def _words(words: Iterable[str]) -> str:
    """An alternation, longest first; any whitespace between the parts of a word."""
    return "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in sorted(words, key=len, reverse=True))


def _spaced(words: Iterable[str]) -> list[str]:
    return [word for word in words if word[0] < "\u3000"]


def _unspaced(words: Iterable[str]) -> list[str]:
    return [word for word in words if word[0] >= "\u3000"]


def _rule(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){pattern}(?!\w)", re.IGNORECASE)


_WAY = f"{PREVIOUS}|{NEXT}|{THIS}"
_MONTH = _words(MONTHS)
_UNIT = _words(_spaced(UNITS))
_WEEKDAY = _words(_spaced(WEEKDAYS))
_THING = f"{_UNIT}|{_MONTH}|{_WEEKDAY}"
_YEAR = r"(?:19|20)\d\d"
_COUNT = rf"\d{{1,4}}|{_words(_spaced(NUMBERS))}"
_COUNT_JA = r"\d{1,4}|[一二三四五六七八九十]"
_UNIT_JA = _words(_unspaced(UNITS))
_IN = r"(?:in|im|em|en)\s+"
_ON = r"(?:on|am|on\s+the|na|no|el|this)\s+"
_AFTER_LINK = r"(?:(?<=\bin\s)|(?<=\bim\s)|(?<=\bem\s)|(?<=\ben\s)|(?<=since\s)|(?<=until\s)|(?<=seit\s)|(?<=bis\s))"
_YEAR_LINKS = ("since", "until", "year", "seit", "bis", "desde", "até", "hasta")
_AFTER_YEAR_LINK = "(?:" + "|".join(f"(?<={word} )" for word in _YEAR_LINKS) + ")"
_NOT_A_MORNING = r"(?<!\bla\s)(?<!guten\s)(?<!jeden\s)(?<!am\s)(?<!cada\s)"

_BARE_MONTH = (
    _rule(rf"{_AFTER_LINK}(?P<year>)(?P<month>{_MONTH})"),
    _rule(rf"(?P<year>)(?P<month>{_words(word for word in MONTHS if word not in AMBIGUOUS_MONTHS)})"),
)
_BARE_WEEKDAY = _rule(rf"(?:{_ON})?(?P<thing>{_WEEKDAY})")
_BARE = frozenset({*_BARE_MONTH, _BARE_WEEKDAY})

_RULES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], date], _Period | None]], ...] = (
    (_rule(rf"(?P<year>{_YEAR})-(?P<month>\d\d)(?:-(?P<day>\d\d))?"), _say_iso),
    (re.compile(rf"(?P<year>{_YEAR})年(?P<month>\d\d?)月(?P<day>\d\d?)日"), _say_day_month),
    (re.compile(rf"(?P<year>{_YEAR})年(?P<month>\d\d?)月"), _say_month),
    (re.compile(r"(?P<year>)(?P<month>\d\d?)月(?P<day>\d\d?)日"), _say_day_month),
    (re.compile(rf"(?P<count>{_COUNT_JA})(?P<unit>{_UNIT_JA})前"), _say_distance),
    (re.compile(rf"(?P<count>{_COUNT_JA})(?P<unit>{_UNIT_JA})(?P<ahead>後)"), _say_distance),
    (re.compile(rf"(?P<year>{_YEAR})年"), _say_year),
    (re.compile(_words(_unspaced(DAY_WORDS))), _say_day_word),
    (re.compile(rf"(?P<way>先週|今週|来週)の(?P<thing>{_words(_unspaced(WEEKDAYS))})"), _say_japanese_weekday),
    (re.compile(_words(PERIOD_WORDS)), _say_period_word),
    (
        _rule(
            rf"(?:{_ON})?(?P<day>\d\d?)(?:st|nd|rd|th|\.|º)?\s+(?:of\s+|de\s+)?(?P<month>{_MONTH})\.?"
            rf"(?:,?\s+(?:de\s+)?(?P<year>{_YEAR}))?"
        ),
        _say_day_month,
    ),
    (
        _rule(rf"(?:on\s+)?(?P<month>{_MONTH})\.?\s+(?P<day>\d\d?)(?:st|nd|rd|th)?(?:,?\s+(?P<year>{_YEAR}))?"),
        _say_day_month,
    ),
    (_rule(rf"(?:{_IN})?(?P<month>{_MONTH})\.?,?\s+(?:of\s+|de\s+)?(?P<year>{_YEAR})"), _say_month),
    (_rule(rf"(?:(?:the|el|la|no|na)\s+)?(?P<way>{_WAY})\s+(?P<way2>)(?P<thing>{_THING})"), _say_direction),
    (_rule(rf"(?:(?:el|la|no|na)\s+)?(?P<way>)(?P<thing>{_THING})\s+(?P<way2>{_WAY})"), _say_direction),
    (_rule(rf"(?P<count>{_COUNT})\s+(?P<unit>{_UNIT})\s+(?:ago|atrás|atras|earlier)"), _say_distance),
    (_rule(rf"(?:vor|há|hace)\s+(?P<count>{_COUNT})\s+(?P<unit>{_UNIT})"), _say_distance),
    (_rule(rf"(?P<ahead>in|dentro\s+de|daqui\s+a|en|em)\s+(?P<count>{_COUNT})\s+(?P<unit>{_UNIT})"), _say_distance),
    (_rule(rf"(?<=seit\s)(?P<count>{_COUNT})\s+(?P<unit>{_UNIT})"), _say_distance),
    (_rule(rf"{_NOT_A_MORNING}(?:{_words(_spaced(DAY_WORDS))})"), _say_day_word),
    *((pattern, _say_month) for pattern in _BARE_MONTH),
    (_BARE_WEEKDAY, _say_weekday),
    (_rule(rf"{_IN}(?P<year>{_YEAR})"), _say_year),
    (_rule(rf"{_AFTER_YEAR_LINK}(?P<year>{_YEAR})"), _say_year),
    (re.compile(rf"(?<![\w.,$€£#-])(?P<year>{_YEAR})(?=\s*(?:$|[.,;:!?)]))"), _say_year),
)
"""Longest readings first: a later rule never takes what an earlier one has read."""
