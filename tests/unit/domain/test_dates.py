"""Dates as said, resolved against when and where they were said."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everkept.domain.dates import find_dates, has_time_expression, local_time, parse_date, to_us

SAID = to_us(datetime(2024, 5, 15, 12, tzinfo=UTC))
"""A Wednesday."""


@pytest.mark.parametrize(
    ("text", "first", "end"),
    [
        ("yesterday", "2024-05-14", "2024-05-15"),
        ("this morning", "2024-05-15", "2024-05-16"),
        ("seit zwei Wochen", "2024-05-01", "2024-05-02"),
        ("the day before yesterday", "2024-05-13", "2024-05-14"),
        ("tomorrow", "2024-05-16", "2024-05-17"),
        ("last week", "2024-05-06", "2024-05-13"),
        ("next month", "2024-06-01", "2024-07-01"),
        ("last year", "2023-01-01", "2024-01-01"),
        ("last Friday", "2024-05-10", "2024-05-11"),
        ("next Wednesday", "2024-05-22", "2024-05-23"),
        ("on Monday", "2024-05-13", "2024-05-14"),
        ("three days ago", "2024-05-12", "2024-05-13"),
        ("a couple of weeks ago", "2024-05-01", "2024-05-02"),
        ("two years ago", "2022-01-01", "2023-01-01"),
        ("in 2 months", "2024-07-01", "2024-08-01"),
        ("in March", "2024-03-01", "2024-04-01"),
        ("in December", "2023-12-01", "2024-01-01"),
        ("on 3 May", "2024-05-03", "2024-05-04"),
        ("May 3rd, 2021", "2021-05-03", "2021-05-04"),
        ("March 2020", "2020-03-01", "2020-04-01"),
        ("2023-02-01", "2023-02-01", "2023-02-02"),
        ("in 2019", "2019-01-01", "2020-01-01"),
        ("gestern", "2024-05-14", "2024-05-15"),
        ("letzte Woche", "2024-05-06", "2024-05-13"),
        ("vor zwei Wochen", "2024-05-01", "2024-05-02"),
        ("am 3. Mai 2020", "2020-05-03", "2020-05-04"),
        ("mês que vem", "2024-06-01", "2024-07-01"),
        ("há 3 anos", "2021-01-01", "2022-01-01"),
        ("semana passada", "2024-05-06", "2024-05-13"),
        ("la semana pasada", "2024-05-06", "2024-05-13"),
        ("hace dos años", "2022-01-01", "2023-01-01"),
        ("昨日", "2024-05-14", "2024-05-15"),
        ("来週", "2024-05-20", "2024-05-27"),
        ("先月", "2024-04-01", "2024-05-01"),
        ("3日前", "2024-05-12", "2024-05-13"),
        ("2019年5月3日", "2019-05-03", "2019-05-04"),
    ],
)
def test_expression_is_a_period(text: str, first: str, end: str) -> None:
    (found,) = find_dates(f"x {text} y" if text.isascii() else text, SAID, None)
    assert local_time(found.from_us, None).date().isoformat() == first
    assert local_time(found.until_us, None).date().isoformat() == end


@pytest.mark.parametrize(
    "text", ["I may go", "march on", "guten Morgen", "por la mañana", "I have 2000 dollars", "31 February"]
)
def test_what_is_no_date_is_not_guessed(text: str) -> None:
    assert find_dates(text, SAID, None) == []


@pytest.mark.parametrize(
    ("text", "relation"),
    [
        ("since 2019", "since"),
        ("seit März 2020", "since"),
        ("until last year", "until"),
        ("2019年から", "since"),
        ("in 2019", "on"),
    ],
)
def test_connective_is_kept(text: str, relation: str) -> None:
    assert [found.relation for found in find_dates(text, SAID, None)] == [relation]


def test_today_is_the_senders_today() -> None:
    late = to_us(datetime(2024, 5, 15, 23, 30, tzinfo=UTC))
    (found,) = find_dates("today", late, 120)
    assert local_time(found.from_us, 120).date() == date(2024, 5, 16)
    assert found.from_us == to_us(datetime(2024, 5, 15, 22, tzinfo=UTC))


def test_date_given_by_itself() -> None:
    assert parse_date("2024-05-03T10:00:00+02:00", SAID, None) == to_us(datetime(2024, 5, 3, 8, tzinfo=UTC))
    assert parse_date("2024", SAID, None) == to_us(datetime(2024, 1, 1, tzinfo=UTC))
    assert parse_date("2024", SAID, None, end=True) == to_us(datetime(2025, 1, 1, tzinfo=UTC))
    assert parse_date("2024-02-31", SAID, None) is None
    assert parse_date("some day", SAID, None) is None


def test_time_expression_is_noticed() -> None:
    assert has_time_expression("We met on Friday")
    assert has_time_expression("先週会いました")
    assert not has_time_expression("I may like it")


@given(st.text(), st.integers(-(2**62), 2**62), st.none() | st.integers(-1000, 1000))
def test_any_text_at_any_time_is_read_without_error(text: str, said_us: int, zone_min: int | None) -> None:
    for found in find_dates(f"{text} yesterday {text}", said_us, zone_min):
        assert found.from_us < found.until_us


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("on Monday", "2024-05-20"),
        ("on Friday", "2024-05-17"),
        ("in March", "2025-03-01"),
        ("last Monday", "2024-05-13"),
    ],
)
def test_bare_weekday_or_month_ahead_is_the_next_one(text: str, first: str) -> None:
    (found,) = find_dates(text, SAID, None, ahead=True)
    assert local_time(found.from_us, None).date().isoformat() == first
