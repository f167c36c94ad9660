"""Whether a rule helped is said with its uncertainty, and not before it can be said."""

from __future__ import annotations

import pytest

from everkept.domain.review.outcome import Counted, in_words, ratio_of, verdict_of


def counted(with_it: int, sessions: int) -> Counted:
    return Counted(times=with_it, with_it=with_it, sessions=sessions)


@pytest.mark.parametrize(
    ("before", "since", "low", "high"),
    [
        # odds of scipy.stats.beta.ppf([.05, .95], since + .5, before + .5), times sessions before / sessions since
        ((8, 20), (8, 20), 0.440162, 2.271893),
        ((10, 20), (0, 20), 0.000192, 0.205943),
        ((3, 10), (1, 40), 0.012056, 0.465732),
        ((100, 400), (90, 200), 1.416961, 2.285152),
    ],
)
def test_the_interval_is_that_of_two_poisson_rates(
    before: tuple[int, int], since: tuple[int, int], low: float, high: float
):
    ratio = ratio_of(counted(*before), counted(*since))
    assert ratio is not None
    assert ratio.low == pytest.approx(low, rel=2e-3)
    assert ratio.high == pytest.approx(high, rel=2e-3)
    assert ratio.low < ratio.best < ratio.high


@pytest.mark.parametrize(
    ("before", "since", "verdict"),
    [
        ((10, 20), (0, 20), "helps"),
        ((10, 20), (0, 4), "too_early"),
        ((10, 20), (10, 20), "too_early"),
        ((40, 80), (40, 80), "does_not_help"),
        ((10, 100), (30, 100), "worse"),
        ((0, 0), (0, 20), "too_early"),
        ((0, 20), (0, 20), "too_early"),
    ],
)
def test_a_verdict_is_given_where_the_interval_allows_it(before: tuple[int, int], since: tuple[int, int], verdict: str):
    assert verdict == verdict_of(counted(*since), ratio_of(counted(*before), counted(*since)))


def test_the_words_say_what_the_verdict_rests_on():
    before, since = counted(10, 20), counted(0, 20)
    helps = (
        "it helps: seen in 10 of 20 sessions before, in 0 of 20 since;"
        " 0.00019 to 0.21 times as often, with 90% certainty"
    )
    assert helps == in_words(before, since, ratio_of(before, since))
    nothing = counted(0, 0)
    assert in_words(nothing, since, None) == "too early to say: seen in 0 of 0 sessions before, in 0 of 20 since"
