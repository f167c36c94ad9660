"""Whether an approved proposal helped: how often what it answers came before and since, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, lgamma, log, log1p
from typing import Final, Literal

Verdict = Literal["helps", "does_not_help", "worse", "too_early"]
SURE: Final = 0.9
"""The probability with which the ratio lies in its interval."""
HALF: Final = 0.5
"""What surely comes more than half as often as before is not helped."""
SESSIONS_MIN: Final = 5
"""Looked at since the approval, before anything is said."""
_PRIOR: Final = 0.5
"""Jeffreys' prior of a rate: half an occurrence, so that none at all is not taken for never."""
_PRECISE: Final = 1e-10


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Of one stretch of time."""

    times: int
    """How often it was observed."""
    with_it: int
    """Sessions in which it was observed."""
    sessions: int
    """Sessions that were looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Of the rate since to the rate before: 0.5 is half as often."""

    best: float
    low: float
    high: float


def ratio_of(before: Counted, since: Counted) -> Ratio | None:
    """None where no session was looked at, before or since.

    Sessions with it are taken as Poisson counts, each with Jeffreys' prior: the posterior of the two rates' ratio is
    that of B / (1 - B) with B ~ Beta(since + ½, before + ½), times the ratio of the sessions (Gelman et al., Bayesian
    Data Analysis, ch. 2). Several times in one session count once, as they are not independent.
    """
    if not before.sessions or not since.sessions:
        return None
    a, b = since.with_it + _PRIOR, before.with_it + _PRIOR
    exposure = before.sessions / since.sessions
    low, best, high = (_odds(_beta_quantile(p, a, b)) * exposure for p in ((1 - SURE) / 2, 0.5, (1 + SURE) / 2))
    return Ratio(best=best, low=low, high=high)


def verdict_of(since: Counted, ratio: Ratio | None) -> Verdict:
    if ratio is None or since.sessions < SESSIONS_MIN:
        return "too_early"
    if ratio.high < 1:
        return "helps"
    if ratio.low > 1:
        return "worse"
    return "does_not_help" if ratio.low > HALF else "too_early"


_SAID: Final[dict[Verdict, str]] = {
    "helps": "it helps", "does_not_help": "it does not help", "worse": "it got worse", "too_early": "too early to say",
}  # fmt: skip


def in_words(before: Counted, since: Counted, ratio: Ratio | None) -> str:
    """The verdict as a sentence, with what it rests on and how sure it is."""
    counts = (
        f"seen in {before.with_it} of {before.sessions} sessions before, in {since.with_it} of {since.sessions} since"
    )
    said = f"{_SAID[verdict_of(since, ratio)]}: {counts}"
    if ratio is None:
        return said
    return f"{said}; {ratio.low:.2g} to {ratio.high:.2g} times as often, with {SURE:.0%} certainty"


def _odds(p: float) -> float:
    return p / (1 - p) if p < 1 else float("inf")


def _beta_quantile(p: float, a: float, b: float) -> float:
    """Where the distribution function of Beta(a, b) is `p`, by bisection."""
    low, high = 0.0, 1.0
    while high - low > _PRECISE:
        middle = (low + high) / 2
        low, high = (middle, high) if _beta_below(middle, a, b) < p else (low, middle)
    return (low + high) / 2


def _beta_below(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (Abramowitz & Stegun 26.5.8)."""
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a
    return 1 - front * _fraction(1 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    """By Lentz's method."""
    tiny, steps_max = 1e-300, 10_000
    c, d = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1), tiny)
    value = d
    for m in range(1, steps_max):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _not_zero(1 + term * d, tiny)
            c = _not_zero(1 + term / c, tiny)
            value *= d * c
        if abs(d * c - 1) < _PRECISE:
            break
    return value


def _not_zero(x: float, tiny: float) -> float:
    return x if abs(x) > tiny else tiny
