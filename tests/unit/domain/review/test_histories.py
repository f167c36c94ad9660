"""The reviewer without a model on synthetic histories whose seeds were not used while it was tuned."""

from __future__ import annotations

from tests.bench.review_histories import UNSEEN_FROM, history
from tests.bench.review_quality import PRECISION_LEAST, RECALL_LEAST, added, reviewed, score

SEEDS = range(UNSEEN_FROM + 500, UNSEEN_FROM + 503)


def test_most_of_what_is_proposed_was_planted_and_most_of_what_was_planted_is_proposed() -> None:
    whole = added([score(history(seed)) for seed in SEEDS])
    assert whole.precision >= PRECISION_LEAST, whole.wrong
    assert whole.recall >= RECALL_LEAST, whole.missed
    assert whole.planted == 27


def test_a_history_is_the_same_for_its_seed_and_another_for_another() -> None:
    assert history(SEEDS[0]).sessions[3].events == history(SEEDS[0]).sessions[3].events
    assert history(SEEDS[0]).planted != history(SEEDS[1]).planted


def test_a_trivial_session_gives_no_proposal_and_none_gives_more_than_three() -> None:
    told = history(SEEDS[0])
    trivial = {session.stream for session in told.sessions if len(session.events) == 2}
    made = dict(reviewed(told))
    assert trivial
    assert all(made[stream] == () for stream in trivial)
    assert max(len(drafts) for drafts in made.values()) <= 3
