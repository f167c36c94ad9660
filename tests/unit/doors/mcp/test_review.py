"""The tool `review`: what awaits a decision is data; deciding needs the proposal's id, and says who did it."""

from __future__ import annotations

from tests.stubs.fake_reviews import FakeReviews
from tests.unit.doors.mcp.memories import OneMemory
from tests.unit.doors.mcp.test_calls import call

from everkept.doors.mcp.answers import NOTES_OPEN


def test_what_awaits_a_decision_is_listed_between_marks() -> None:
    answer = call(OneMemory(FakeReviews()), "review")
    assert [p["id"] for p in answer.data["proposals"]] == ["prp_1"]
    assert answer.data["more"] is False
    assert answer.text.index(NOTES_OPEN) < answer.text.index("corrected in 3 sessions")


def test_nothing_that_awaits_a_decision_is_an_answer() -> None:
    fake = FakeReviews()
    fake._become("rejected", "ana", None)
    answer = call(OneMemory(fake), "review")
    assert (answer.failed, answer.data["proposals"]) == (False, [])
    assert "nothing awaits a decision" in answer.text


def test_one_proposal_is_shown_whole() -> None:
    answer = call(OneMemory(FakeReviews()), "review", id="prp_1")
    (shown,) = answer.data["proposals"]
    assert shown["evidence"][0]["quote"] == "No, use uv."
    assert "+Use uv, not pip." in shown["difference"]


def test_a_decision_says_which_agent_made_it() -> None:
    approving, rejecting = FakeReviews(), FakeReviews()
    assert "approved prp_1: page use-uv" in call(OneMemory(approving), "review", id="prp_1", decision="approve").text
    assert (approving.proposal.state, approving.proposal.decided_by) == ("approved", "codex")
    call(OneMemory(rejecting), "review", id="prp_1", decision="reject", reason="we use pip")
    assert (rejecting.proposal.state, rejecting.proposal.reason) == ("rejected", "we use pip")


def test_a_decision_without_its_proposal_is_an_error() -> None:
    answer = call(OneMemory(FakeReviews()), "review", decision="approve")
    assert answer.failed
    assert "decision needs the `id` of a proposal" in answer.text


def test_an_approval_that_cannot_be_says_why_and_what_to_do() -> None:
    fake = FakeReviews()
    fake.obstacle = "the page 'use-uv' is pinned: no proposal changes it"
    answer = call(OneMemory(fake), "review", id="prp_1", decision="approve")
    assert answer.failed
    assert "prp_1 was not approved: the page 'use-uv' is pinned" in answer.text


def test_an_approval_is_rolled_back_by_the_agent_that_says_so() -> None:
    fake = FakeReviews()
    answer = call(OneMemory(fake), "review", id="prp_1", decision="rollback", reason="it was wrong")
    assert "rolled back prp_1: page use-uv" in answer.text
    assert (fake.proposal.state, fake.proposal.decided_by, fake.proposal.reason) == (
        "rolled_back", "codex", "it was wrong")  # fmt: skip


def test_reviews_are_started_by_hand_and_what_awaits_a_decision_is_listed_with_it() -> None:
    answer = call(OneMemory(FakeReviews()), "review", run=True)
    assert "2 reviews started; 2 under way, 3 to come" in answer.text
    assert [p["id"] for p in answer.data["proposals"]] == ["prp_1"]


def test_the_report_says_whether_approved_ones_helped() -> None:
    answer = call(OneMemory(FakeReviews()), "review", report=True)
    assert [one["verdict"] for one in answer.data["outcomes"]] == ["helps"]
    assert "in 1 of 20 since" in answer.text
