"""Reviews and proposals on the command line: what is printed, what is asked, and the exit codes."""

from __future__ import annotations

import json
import subprocess

import pytest
from tests.stubs.fake_reviews import OUTCOME, PROPOSAL, REVIEW
from tests.unit.doors.cli.fake_service import FakeService
from tests.unit.doors.cli.test_agents import SCOPE, asked

from everkept.api import review_views as r
from everkept.api import views as v
from everkept.doors.cli.main import run
from everkept.doors.cli.proposal_pages import difference_lines
from everkept.errors import Conflict

NOTHING: v.Page[r.Proposal] = v.Page(items=[])
STARTED = r.ReviewsStarted(opened=1, reopened=0, waiting=0, reviewing=1)


def fake(**answers):
    return FakeService(resolve_scope=SCOPE, **answers)


def test_what_awaits_a_decision_is_listed_with_what_to_do(capsys):
    service = fake(list_proposals=v.Page(items=[PROPOSAL]))
    assert run(["proposals"], opener=service) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[:3] == [
        "prp_1  new page use-uv", "    corrected in 3 sessions",
        "    awaits a decision · rule · by rules · confidence 90% · 2026-03-01 12:00",
    ]  # fmt: skip
    assert "everkept proposals show ID" in captured.err
    assert asked(service, "list_proposals")["state"] == "open"


def test_listing_is_the_same_by_its_own_name(capsys):
    service = fake(list_proposals=NOTHING)
    assert run(["proposals", "list", "--state", "all", "--kind", "rule"], opener=service) == 0
    assert asked(service, "list_proposals") == {"state": None, "kind": "rule", "limit": 50, "cursor": None}
    assert "no proposals" in capsys.readouterr().err


def test_a_proposal_is_shown_with_the_words_that_bear_it_out_and_its_difference(capsys):
    assert run(["proposals", "show", "prp_1"], opener=fake(get_proposal=PROPOSAL)) == 0
    out = capsys.readouterr().out
    assert "evt_1_2  “No, use uv.”" in out
    assert out.endswith("+++ use-uv (proposed)\n@@ -0,0 +1 @@\n+Use uv, not pip.\n")


def test_a_difference_is_printed_as_patch_reads_it_and_the_obstacle_beside_it(capsys):
    found = PROPOSAL.model_copy(update={"obstacle": "the page 'use-uv' is pinned"})
    assert run(["proposals", "diff", "prp_1"], opener=fake(get_proposal=found)) == 0
    captured = capsys.readouterr()
    assert captured.out == PROPOSAL.difference
    assert "the page 'use-uv' is pinned" in captured.err


def test_a_difference_is_green_and_red_and_cannot_command_the_terminal():
    drawn = difference_lines("--- a\n+++ b\n@@ -1 +1 @@\n-old\x1b[2J\n+new\n same\n")
    assert [line.plain for line in drawn] == ["--- a", "+++ b", "@@ -1 +1 @@", "-old [2J", "+new", " same"]
    assert [line.style for line in drawn] == ["bold", "bold", "cyan", "red", "green", ""]


def test_a_long_line_of_a_difference_is_not_broken(capsys):
    found = PROPOSAL.model_copy(update={"difference": f"--- a\n+++ b\n@@ -1 +1 @@\n+{'words ' * 60}\n"})
    assert run(["proposals", "diff", "prp_1"], opener=fake(get_proposal=found)) == 0
    assert capsys.readouterr().out.splitlines()[3] == f"+{'words ' * 60}".rstrip()


@pytest.mark.parametrize(
    ("arguments", "verb", "asks", "says"),
    [
        (["approve", "prp_1", "--rebase"], "approve_proposal", {"by": "hand", "rebase": True},
         "prp_1  approved: page use-uv, version 1\n"),
        (["reject", "prp_1", "--reason", "we use pip"], "reject_proposal", {"by": "hand", "reason": "we use pip"},
         "prp_1  rejected\n"),
        (["rollback", "prp_1", "--by", "ana"], "roll_back_proposal", {"by": "ana", "reason": None},
         "prp_1  rolled back: page use-uv is taken away again\n"),
    ],
)  # fmt: skip
def test_a_decision_is_asked_for_and_told(arguments, verb, asks, says, capsys):
    state = {"approve_proposal": "approved", "reject_proposal": "rejected", "roll_back_proposal": "rolled_back"}[verb]
    decided = PROPOSAL.model_copy(update={"state": state, "version": None if state == "rejected" else 1})
    service = fake(**{verb: decided}, get_proposal=PROPOSAL)
    assert run(["proposals", *arguments], opener=service) == 0
    assert {k: x for k, x in asked(service, verb).items() if k in asks} == asks
    assert capsys.readouterr().out == says
    again = fake(**{verb: decided}, get_proposal=decided)
    assert run(["proposals", *arguments], opener=again) == 0
    words = state.replace("_", " ")
    assert capsys.readouterr().out == says.replace(words, f"{words} already"), "nothing was done"


def test_an_approval_that_cannot_be_is_an_error_with_the_reason(capsys):
    refused = Conflict("prp_1 was not approved: the page moved on", id="prp_1")
    assert run(["proposals", "approve", "prp_1"], opener=fake(approve_proposal=refused, get_proposal=PROPOSAL)) == 4
    assert "prp_1 was not approved: the page moved on" in capsys.readouterr().err


def test_the_report_says_of_each_rule_whether_it_helped(capsys):
    report = r.ProposalReport(outcomes=[OUTCOME], open=2, decided={"approved": 1, "rolled_back": 3})
    assert run(["proposals", "report"], opener=fake(proposal_report=report)) == 0
    captured = capsys.readouterr()
    assert "it helps: seen in 6 of 20 sessions before, in 1 of 20 since" in captured.out
    assert "9 times before, 1 time since · shown in 12 sessions" in captured.out
    assert "2 open, 1 approved, 3 rolled back" in captured.err


def test_json_is_as_over_http(capsys):
    assert run(["proposals", "show", "prp_1", "--json"], opener=fake(get_proposal=PROPOSAL)) == 0
    assert json.loads(capsys.readouterr().out) == PROPOSAL.model_dump(mode="json")


def test_a_review_by_hand_waits_and_tells_what_came_of_it(capsys):
    service = fake(run_reviews=STARTED, list_reviews=NOTHING, list_proposals=v.Page(items=[PROPOSAL]))
    assert run(["review", "--since", "2026-01-01"], opener=service) == 0
    assert str(asked(service, "run_reviews")["since"]) == "2026-01-01 00:00:00+00:00"
    captured = capsys.readouterr()
    assert "every review is done" in captured.err
    assert "1 proposal awaits a decision" in captured.err
    assert captured.out.startswith("prp_1  new page use-uv")


def test_a_review_of_one_session_goes_through_the_same_claim(capsys):
    service = fake(claim_review=None, list_reviews=NOTHING, list_proposals=NOTHING)
    assert run(["review", "--session", "ses_1"], opener=service) == 0
    assert "no finished session waits for a review" in capsys.readouterr().err


def test_reviews_are_listed_with_why_something_was_not_proposed(capsys):
    assert run(["review", "list"], opener=fake(list_reviews=v.Page(items=[REVIEW]))) == 0
    out = capsys.readouterr().out
    assert "ses_1" in out
    assert "not create x: it says nothing" in " ".join(out.split())


def test_a_page_is_pinned_and_unpinned(capsys):
    from tests.stubs.fake_agents import a_page

    service = fake(pin_page=a_page(pinned=True))
    assert run(["pages", "pin", "tokens"], opener=service) == 0
    assert asked(service, "pin_page")["pinned"] is True
    assert capsys.readouterr().out == "tokens  pinned\n"
    service = fake(pin_page=a_page(pinned=False))
    assert run(["pages", "unpin", "tokens"], opener=service) == 0
    assert capsys.readouterr().out == "tokens  not pinned\n"


def test_a_look_for_stale_pages_says_that_the_folder_is_no_checkout(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(["review", "--stale"], opener=fake()) == 2
    assert "a checkout that is on its default branch" in capsys.readouterr().err


def test_a_look_for_stale_pages_tells_what_was_found_and_that_a_second_look_is_needed(capsys, tmp_path, monkeypatch):
    for words in (["init", "-q", "-b", "main"], ["commit", "-q", "--allow-empty", "-m", "one"]):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@a.example", *words], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    pages = [r.PageNames(slug="use-uv", version=1, names=[r.Name(kind="file", text="uv.lock")])]
    found = r.StaleFound(waiting=1, staged=2, refused=[])
    service = fake(names_in_pages=pages, note_looks=found)
    assert run(["review", "--stale"], opener=service) == 0
    err = capsys.readouterr().err
    assert "2 proposals made" in err
    assert "1 page names what is gone" in err
    assert asked(service, "note_looks")["0"] == [r.PageLook(slug="use-uv", version=1, gone=[])], "git never knew it"
