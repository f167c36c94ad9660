"""Each generation of a session is reviewed once, whatever stops its review, and a project's watermark only grows
(G12, I06, I08)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from tests.contract.reviewing import AGE_S, INTERVAL_S, Reviewing
from tests.factories import plain_reply

from everkept.domain.erase import StreamTarget
from everkept.domain.review.values import Draft, Observation, Quote
from everkept.ports.models import Question
from everkept.store.erase import erase
from everkept.store.jobs_by_hand import discard_by_hand, retry_by_hand
from everkept.store.proposals import stage_drafts
from everkept.store.review_input import seen_with
from everkept.store.reviews import claim_review, open_review, reopen_imported
from everkept.store.settle import is_settled
from everkept.store.status import read_reviews


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Reviewing]:
    made = Reviewing(tmp_path)
    yield made
    made.shut()


# ---- generations


def test_a_digest_that_says_something_is_a_generation_that_waits_for_its_review(world: Reviewing) -> None:
    stream = world.digested("one")
    assert world.rows("select seq, stream_id, state from generations") == [(1, stream, "waiting")]
    assert world.watermark() == 0


def test_a_finished_session_is_reviewed_when_it_is_old_enough_and_the_watermark_moves_over_it(world: Reviewing) -> None:
    world.digested("one")
    world.live(AGE_S - 5)
    assert world.states() == {1: "waiting"}
    world.live(INTERVAL_S)
    assert (world.states(), world.watermark(), world.reviews()) == ({1: "reviewed"}, 1, 1)
    assert world.value("select reached_at from review_states") == world.value("select ended_at from generations")


def test_a_session_that_waits_for_its_review_is_settled_and_one_that_is_reviewed_is_not(world: Reviewing) -> None:
    world.digested("one")
    world.live(AGE_S / 2)
    assert world.states() == {1: "waiting"}
    assert world.read(is_settled, world.project.id, world.settings)
    world.clock.advance(AGE_S + INTERVAL_S)
    assert not world.read(is_settled, world.project.id, world.settings)
    world.live(INTERVAL_S)
    assert world.states() == {1: "reviewed"}
    assert world.read(is_settled, world.project.id, world.settings)


def test_a_session_that_goes_on_is_a_new_generation_and_is_reviewed_again(world: Reviewing) -> None:
    world.digested("one")
    world.live(AGE_S + INTERVAL_S)
    world.digested("one", goal="And now the docs")
    world.live(AGE_S + INTERVAL_S)
    assert (world.states(), world.watermark(), world.reviews()) == ({1: "reviewed", 2: "reviewed"}, 2, 2)


def test_a_generation_that_waits_is_superseded_when_its_session_goes_on(world: Reviewing) -> None:
    world.digested("one")
    world.digested("two")
    world.digested("one", goal="And now the docs")
    assert world.states() == {1: "superseded", 2: "waiting", 3: "waiting"}
    assert world.watermark() == 1
    world.live(AGE_S + INTERVAL_S)
    assert (world.states()[3], world.watermark(), world.reviews()) == ("reviewed", 3, 2)


def test_a_digest_that_says_what_it_said_before_is_no_new_generation(world: Reviewing) -> None:
    world.digested("one")
    world.do("update windows set summary_at = null, summary = null")
    world.do("update jobs set state = 'waiting', finished_at = null where kind = 'digest_session'")
    world.run_until_idle()
    assert world.states() == {1: "waiting"}


def test_a_session_that_was_imported_passes_until_old_history_is_asked_for(world: Reviewing) -> None:
    world.digested("old", origin="import")
    world.live(AGE_S + INTERVAL_S)
    assert (world.states(), world.watermark(), world.reviews()) == ({1: "imported"}, 1, 0)
    assert world.write(reopen_imported, world.project.id, None, 0, 100) == [1]
    world.live(AGE_S + INTERVAL_S)
    assert (world.states(), world.watermark(), world.reviews()) == ({1: "reviewed"}, 1, 1)


def test_old_history_is_asked_for_from_a_day_on_and_each_session_once(world: Reviewing) -> None:
    world.digested("old", origin="import")
    world.tick(86_400)
    world.digested("newer", origin="import")
    world.digested("newer", origin="import", goal="More of it")
    assert world.states() == {1: "imported", 2: "imported", 3: "imported"}
    since = world.moved_us(-3_600)
    assert world.write(reopen_imported, world.project.id, since, 0, 100) == [3]
    assert world.write(reopen_imported, world.project.id, since, 3, 100) == []


def test_an_imported_session_that_is_lived_on_is_reviewed(world: Reviewing) -> None:
    world.digested("old", origin="import")
    world.digested("old", goal="Go on with it")
    world.live(AGE_S + INTERVAL_S)
    assert world.states() == {1: "imported", 2: "reviewed"}


# ---- the scheduler


def test_a_first_look_comes_at_once_and_the_next_one_no_sooner_than_the_interval(world: Reviewing) -> None:
    world.digested("one")
    assert world.scheduler_in_s() == INTERVAL_S
    world.tick(100)
    world.digested("two")
    assert world.scheduler_in_s() == INTERVAL_S - 100


def test_a_restart_more_often_than_the_interval_still_looks_in_time(world: Reviewing) -> None:
    world.digested("one")
    for n in range(12):
        world.tick(50)
        world.step(f"restarted{n}")
    assert (world.states(), world.reviews()) == ({1: "reviewed"}, 1)


def test_no_more_sessions_are_under_review_at_once_than_the_setting_says(tmp_path: Path) -> None:
    world = Reviewing(tmp_path, review__scheduler__sessions_max=2)
    for n in range(5):
        world.digested(f"s{n}")
    world.tick(INTERVAL_S)
    world.step()
    assert sorted(world.states().values()) == ["reviewing"] * 2 + ["waiting"] * 3
    world.live(2 * INTERVAL_S)
    assert (world.watermark(), world.reviews()) == (5, 5)
    world.shut()


def test_a_session_too_short_passes_with_the_reason_and_is_reviewed_when_it_goes_on(tmp_path: Path) -> None:
    world = Reviewing(tmp_path, review__scheduler__duration_min_s=60)
    world.digested("one")
    world.live(AGE_S + INTERVAL_S)
    because = "it took 0 s, and review.scheduler.duration_min_s is 60 s"
    assert world.rows("select state, reason from generations") == [("skipped", because)]
    assert (world.watermark(), world.reviews()) == (1, 0)
    world.digested("one", goal="It goes on for long")
    world.live(AGE_S + INTERVAL_S)
    assert (world.states(), world.watermark()) == ({1: "skipped", 2: "reviewed"}, 2)
    world.shut()


def test_a_session_with_nothing_to_learn_from_passes_and_is_reviewed_when_a_hand_asks(tmp_path: Path) -> None:
    world = Reviewing(tmp_path, review__scheduler__observations_min=100)
    stream = world.digested("one")
    world.live(AGE_S + INTERVAL_S)
    because = "2 things were observed in it, and 100 are asked for"
    assert world.rows("select state, reason from generations") == [("skipped", because)]
    claimed = world.write(claim_review, world.project.id, stream)
    assert claimed is not None
    world.live(10)
    assert (world.states(), world.watermark(), world.reviews()) == ({1: "reviewed"}, 1, 1)
    world.shut()


def test_a_project_that_wants_no_reviews_has_none_until_a_hand_asks(world: Reviewing) -> None:
    world.set_project(review__scheduler__enabled=False)
    stream = world.digested("one")
    world.live(10 * INTERVAL_S)
    assert world.states() == {1: "waiting"}
    assert world.write(claim_review, world.project.id, stream) is not None
    world.live(10)
    assert world.states() == {1: "reviewed"}


def test_reviews_that_are_wanted_again_begin_with_what_waited(world: Reviewing) -> None:
    world.set_project(review__scheduler__enabled=False)
    world.digested("one")
    world.live(10 * INTERVAL_S)
    world.set_project(review__scheduler__enabled=True)
    world.run_until_idle()
    assert world.states() == {1: "reviewed"}
    assert world.repaired("sweep_reviews") == 0


def test_a_session_that_waits_and_that_nothing_would_wake_is_found_by_the_sweep(world: Reviewing) -> None:
    world.digested("one")
    world.do("delete from jobs where kind = 'schedule_reviews'")
    world.live(3 * INTERVAL_S)
    assert (world.states(), world.repaired("sweep_reviews")) == ({1: "reviewed"}, 1)


def test_a_review_whose_job_is_lost_is_enqueued_again_by_the_sweep(world: Reviewing) -> None:
    stream = world.digested("one")
    assert world.write(open_review, world.project.id, stream, "hand") is not None
    world.do("delete from jobs where kind = 'review_session'")
    world.live(2 * INTERVAL_S)
    assert (world.states(), world.reviews(), world.repaired("sweep_reviews")) == ({1: "reviewed"}, 1, 1)


def test_a_clock_that_is_set_back_a_year_holds_up_no_review(world: Reviewing) -> None:
    world.digested("one")
    world.live(10)
    world.clock.step_wall(-365 * 86_400)
    world.live(AGE_S + INTERVAL_S)
    assert world.states() == {1: "reviewed"}


# ---- claiming


def test_of_two_claims_of_one_session_the_second_gets_nothing(world: Reviewing) -> None:
    stream = world.digested("one")
    first = world.write(claim_review, world.project.id, stream)
    assert first is not None
    assert (first.generation, first.asked_by) == (1, "hand")
    assert world.write(claim_review, world.project.id, stream) is None
    assert world.write(open_review, world.project.id, stream, "scheduler") is None
    world.live(10)
    assert world.write(claim_review, world.project.id, stream) is None
    assert world.value("select count(*) from reviews") == 1


def test_a_review_that_kills_every_worker_passes_as_dead_and_a_retry_by_hand_reviews_it(world: Reviewing) -> None:
    world.digested("poison")
    world.tick(INTERVAL_S)
    world.step()
    for _ in range(world.settings.work.crashes_max):
        assert world.states() == {1: "reviewing"}
        [lease] = [x for x in world.claimed().leases if x.kind == "review_session"]
        assert lease.args == {"generation": 1}
        world.tick(world.settings.work.lease_s + 1)
        world.maintain()
    assert (world.states(), world.watermark()) == ({1: "dead"}, 1)
    world.digested("after")
    world.live(2 * INTERVAL_S)
    assert (world.states(), world.watermark()) == ({1: "dead", 2: "reviewed"}, 2)
    assert world.write(claim_review, world.project.id, world.stream_of("poison")) is not None
    assert (world.states()[1], world.watermark()) == ("reviewing", 2)
    world.live(10)
    assert (world.states(), world.watermark()) == ({1: "reviewed", 2: "reviewed"}, 2)


def test_what_a_hand_does_with_the_job_of_a_review_becomes_of_its_generation(world: Reviewing) -> None:
    stream = world.digested("one")
    world.digested("two")
    assert world.write(claim_review, world.project.id, stream) is not None
    job = world.job("1.1", "review_session")["id"]
    assert world.write(discard_by_hand, world.project.id, job, "not this one")
    assert world.rows("select state, reason from generations where seq = 1") == [("skipped", "not this one")]
    assert world.watermark() == 1
    world.do("update jobs set state = 'dead', error = 'it failed', finished_at = 1 where id = ?", job)
    assert world.write(retry_by_hand, world.project.id, job)
    assert world.states()[1] == "reviewing"
    world.live(10)
    assert (world.states()[1], world.watermark()) == ("reviewed", 1)


# ---- what is observed and proposed

OBSERVED = "select kind, count(*), count(distinct stream_id), count(distinct signature) from observations group by 1"


def test_what_several_sessions_show_is_counted_once_a_session_and_proposed_once(world: Reviewing) -> None:
    for session in ("one", "two", "three"):
        world.digested(session)
        world.live(AGE_S + INTERVAL_S)
    assert world.rows(OBSERVED) == [("error", 3, 3, 1), ("recovery", 3, 3, 1)]
    assert world.rows("select action, kind, state, stream_id from proposals") == [("create", "gotcha", "staged", 2)]
    assert world.rows("select staged, refused = '[]' from reviews order by id") == [(0, 1), (1, 1), (0, 0)]
    [refused] = json.loads(world.value("select refused from reviews where id = 3"))
    assert refused["reason"] == "prp_1 proposes the same and awaits a decision, now with 1 more quote"


EVIDENCE = """
select p.why, p.confidence, count(distinct q.stream_id) from proposals p join proposal_quotes q on q.proposal_id = p.id
group by p.id"""


def test_what_awaits_a_decision_and_is_seen_again_rests_on_more_and_waits_anew(world: Reviewing) -> None:
    for session in ("one", "two"):
        world.digested(session)
        world.live(AGE_S + INTERVAL_S)
    body, expires = world.rows("select body, expires_at from proposals")[0]
    assert world.rows(EVIDENCE) == [("Met in 2 sessions; in 2 of them the same then worked.", 0.67, 2)]
    world.live(3600)
    world.digested("three")
    world.live(AGE_S + INTERVAL_S)
    assert world.rows(EVIDENCE) == [("Met in 3 sessions; in 3 of them the same then worked.", 0.75, 3)]
    [(later, words)] = world.rows("select expires_at, body from proposals")
    assert later > expires
    assert words == body, "nobody approves words that were changed after they were read"


def test_a_new_page_that_a_later_session_would_call_otherwise_is_no_second_proposal(world: Reviewing) -> None:
    first, second = world.digested("one"), world.digested("two")
    world.live(AGE_S + INTERVAL_S)

    def stage(stream: int, review: int, slug: str, signature: str, *alike: str) -> tuple[int, list[str]]:
        draft = Draft(
            action="create", kind="rule", slug=slug, title=slug, body="Use uv.", why="corrected", confidence=0.7,
            signature=signature, alike=alike, evidence=(Quote(stream=stream, seq=1, text="said"),),
        )  # fmt: skip
        n, refused = world.write(lambda conn: stage_drafts(
            conn, project=world.project.id, review=review, stream=stream, drafts=[draft], reviewer="rules",
            settings=world.settings,
        ))  # fmt: skip
        return n, [refusal.reason for refusal in refused]

    world.do("delete from proposal_quotes")
    world.do("delete from proposals")
    assert stage(first, 1, "use-uv", "a") == (1, [])
    [number] = world.rows("select id from proposals")[0]
    grown = f"prp_{number} proposes the same and awaits a decision, now with 1 more quote"
    assert stage(second, 2, "uv-not-pip", "b", "a") == (0, [grown])
    assert stage(first, 1, "another-page", "a") == (1, []), "siblings of one review stand beside each other"
    assert world.rows("select count(*) from proposal_quotes where proposal_id = ?", number) == [(2,)]


def test_what_was_decided_takes_no_more_evidence(world: Reviewing) -> None:
    for session in ("one", "two"):
        world.digested(session)
        world.live(AGE_S + INTERVAL_S)
    world.do("update proposals set state = 'rejected', decided_at = 1")
    before = world.rows("select * from proposals"), world.rows("select * from proposal_quotes")
    world.digested("three")
    world.live(AGE_S + INTERVAL_S)
    assert (world.rows("select * from proposals"), world.rows("select * from proposal_quotes")) == before


def test_a_session_that_is_reviewed_again_is_counted_once(world: Reviewing) -> None:
    for _ in range(3):
        world.digested("one")
        world.live(AGE_S + INTERVAL_S)
    assert world.reviews() == 3
    assert world.rows(OBSERVED) == [("error", 1, 1, 1), ("recovery", 1, 1, 1)]
    assert world.value("select count(*) from proposals") == 0


def test_what_was_observed_in_a_session_that_is_being_erased_is_not_counted(world: Reviewing) -> None:
    stream = world.digested("one")
    other = world.digested("two")
    world.live(AGE_S + INTERVAL_S)
    shown = world.rows("select kind, shape from observations where stream_id = ?", other)
    quote = Quote(stream=other, seq=1, text="said")
    own = [Observation(kind=kind, shape=shape, quote=quote) for kind, shape in shown]
    before = world.read(seen_with, world.project.id, other, own)
    assert [(s.sessions, s.times) for s in before.values()] == [(2, 2), (2, 2)]
    world.write(erase, world.project.id, StreamTarget(stream=stream))
    after = world.read(seen_with, world.project.id, other, own)
    assert [(s.sessions, s.times) for s in after.values()] == [(1, 1), (1, 1)]


# ---- with a model


def proposal(quote: str, **more: Any) -> dict[str, Any]:
    return {
        "action": "create", "page": "", "kind": "gotcha", "title": "The login is mended with the tests", "section": "",
        "body": quote, "why": "It was asked for.", "confidence": 0.6, "answers": "", "quotes": [quote], **more,
    }  # fmt: skip


class Asked:
    """A model that answers a review as the test says, and everything else plainly."""

    def __init__(self, *proposals: dict[str, Any]) -> None:
        self.proposals = list(proposals)
        self.asked = 0

    def __call__(self, question: Question) -> Any:
        if question.step == "pages":
            return {"pages": []}
        if question.step != "review":
            return plain_reply(question)
        self.asked += 1
        return {"proposals": self.proposals}


def test_a_model_adds_to_what_the_rules_propose_and_its_bad_proposals_cost_no_good_one(tmp_path: Path) -> None:
    said, invented = "Run the tests and mend the login", "Nobody has ever said this"
    model = Asked(proposal(said), proposal(invented, title="Invented"))
    world = Reviewing(tmp_path, script=model)
    world.digested("one")
    world.digested("two")
    world.live(AGE_S + INTERVAL_S)
    assert (world.states(), model.asked) == ({1: "reviewed", 2: "reviewed"}, 2)
    assert world.model is not None
    staged = world.rows("select kind, reviewer, review_id from proposals order by id")
    assert staged == [("gotcha", world.model.name, 1), ("gotcha", "rules", 2)]
    [refused] = json.loads(world.value("select refused from reviews where generation = 1"))
    assert refused == {"what": "proposal 2 (create)", "reason": "a quote of it is not in the session"}
    world.shut()


def test_a_review_whose_replies_cannot_be_used_passes_as_dead_and_holds_up_nobody(tmp_path: Path) -> None:
    model = Asked({"nothing": "of use"})
    world = Reviewing(tmp_path, script=model)
    stream = world.digested("one")
    world.live(AGE_S + INTERVAL_S)
    assert (world.states(), world.watermark()) == ({1: "dead"}, 1)
    assert "no proposal can be used" in world.value("select reason from generations")
    assert world.read(read_reviews, world.project.id)[0].dead == 1
    model.proposals = []
    assert world.write(claim_review, world.project.id, stream) is not None
    world.live(30)
    assert (world.states(), world.watermark(), model.asked) == ({1: "reviewed"}, 1, 3)
    world.shut()


@pytest.mark.parametrize("attempts", [1, 2])
def test_what_the_rules_found_is_kept_where_the_replies_cannot_be_used_and_is_not_staged_twice(
    tmp_path: Path, attempts: int
) -> None:
    model = Asked()
    world = Reviewing(tmp_path, script=model)
    world.digested("one")
    world.live(AGE_S + INTERVAL_S)
    model.proposals = [{"nothing": "of use"}]
    stream = world.digested("two")
    world.live(AGE_S + INTERVAL_S)
    for _ in range(attempts - 1):
        world.write(claim_review, world.project.id, stream)
        world.live(60)
    assert world.states() == {1: "reviewed", 2: "dead"}
    assert world.rows(OBSERVED) == [("error", 2, 2, 1), ("recovery", 2, 2, 1)]
    assert world.rows("select kind, reviewer, state from proposals") == [("gotcha", "rules", "staged")]
    model.proposals = []
    world.write(claim_review, world.project.id, stream)
    world.live(60)
    assert world.states() == {1: "reviewed", 2: "reviewed"}
    assert world.value("select count(*) from proposals") == 1
    assert world.rows("select refused from reviews where generation = 2") == [("[]",)]
    world.shut()


def test_what_a_model_was_shown_of_other_sessions_goes_with_them_out_of_the_journal(tmp_path: Path) -> None:
    world = Reviewing(tmp_path, script=Asked())
    first = world.digested("one")
    world.live(AGE_S + INTERVAL_S)
    second = world.digested("two")
    world.live(AGE_S + INTERVAL_S)
    recipes = text("""
    select number_in(recipe, 'stream'), word_in(recipe, 'streams') from replies where step = 'review' order by 1""")
    assert world.read(lambda conn: conn.rows(recipes)) == [(first, "[]"), (second, f"[{first}]")]
    world.write(erase, world.project.id, StreamTarget(stream=first))
    world.live(60)
    assert world.read(lambda conn: conn.rows(recipes)) == []
    world.shut()


def test_status_says_how_far_the_sessions_have_been_looked_at(world: Reviewing) -> None:
    world.digested("one")
    [before] = world.read(read_reviews, None)
    assert (before.project, before.watermark, before.reached_at, before.waiting) == ("default", 0, None, 1)
    world.live(AGE_S + INTERVAL_S)
    assert world.read(read_reviews, None) == []
    [after] = world.read(read_reviews, world.project.id)
    assert (after.watermark, after.waiting, after.reviewing, after.dead) == (1, 0, 0, 0)
    assert after.reached_at == world.value("select ended_at from generations")
