"""What reviews made of a session goes with it, and of its generation only the number stays (G10, G12)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract.reviewing import AGE_S, INTERVAL_S, Reviewing

from everkept.domain.erase import EventTarget, ProjectTarget, StreamTarget, SubjectTarget
from everkept.store.erase import erase, residue
from everkept.store.projects import find_subject
from everkept.store.reviews import claim_review

NOT_FOUND = "select count(*) from proposal_quotes q left join proposals p on p.id = q.proposal_id where p.id is null"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Reviewing]:
    """Two reviewed sessions, whose error was seen in both, and a proposal that rests on both."""
    made = Reviewing(tmp_path)
    for session in ("one", "two"):
        made.digested(session)
        made.live(AGE_S + INTERVAL_S)
    assert made.rows("select distinct stream_id from proposal_quotes order by 1") == [(1,), (2,)]
    assert made.rows("select stream_id, state from proposals") == [(2, "staged")]
    yield made
    made.shut()


def erased(world: Reviewing, target: Any) -> None:
    world.write(erase, world.project.id, target)
    world.live(60)
    assert world.value("select count(*) from erasures where done_at is null") == 0
    assert not any(world.read(residue, world.project.id, target).values())
    assert world.value(NOT_FOUND) == 0


def test_an_erased_session_leaves_the_numbers_of_its_generations_and_nothing_else(world: Reviewing) -> None:
    erased(world, StreamTarget(stream=1))
    kept = "select seq, stream_id, state, digest_hash, reason, ended_at from generations order by seq"
    tombstone, other = world.rows(kept)
    assert tombstone == (1, None, "erased", "", None, None)
    assert other[:3] == (2, 2, "reviewed")
    assert world.rows("select stream_id from reviews") == [(2,)]
    assert world.rows("select distinct stream_id from observations") == [(2,)]
    assert world.watermark() == 2


def test_a_proposal_that_awaits_a_decision_goes_with_any_part_of_its_evidence(world: Reviewing) -> None:
    erased(world, StreamTarget(stream=1))
    assert world.value("select count(*) from proposals") == 0


def test_a_proposal_that_was_decided_stays_while_some_of_its_evidence_does_and_says_nothing(world: Reviewing) -> None:
    world.do("update proposals set state = 'rejected', state_reason = 'said in words', decided_at = 1")
    erased(world, StreamTarget(stream=1))
    words = "select title || slug || section || body || why || coalesce(state_reason, '') from proposals"
    assert world.rows(words) == [("",)]
    assert world.rows("select state, stream_id from proposals") == [("rejected", 2)]
    assert world.rows("select stream_id from proposal_quotes") == [(2,)]
    erased(world, StreamTarget(stream=2))
    assert world.value("select count(*) from proposals") == 0


def test_a_session_that_waits_for_its_review_passes_when_it_is_erased(world: Reviewing) -> None:
    stream = world.digested("three")
    assert (world.states()[3], world.watermark()) == ("waiting", 2)
    erased(world, StreamTarget(stream=stream))
    assert (world.states()[3], world.watermark()) == ("erased", 3)


def test_a_review_under_way_is_refused_when_its_session_is_erased_and_its_job_goes(world: Reviewing) -> None:
    stream = world.digested("three")
    assert world.write(claim_review, world.project.id, stream) is not None
    [lease] = world.claimed().leases
    assert lease.kind == "review_session"
    erased(world, StreamTarget(stream=stream))
    assert world.states()[3] == "erased"
    assert world.value("select count(*) from jobs where kind = 'review_session' and key = '1.3'") == 0


def test_a_session_that_lost_an_event_is_observed_again_in_what_remains(world: Reviewing) -> None:
    error = world.value("select seq from observations where stream_id = 2 and kind = 'error'")
    erased(world, EventTarget(stream=2, seq=error))
    assert world.rows("select distinct stream_id from observations") == [(1,)]
    assert world.value("select count(*) from proposals") == 0
    world.live(AGE_S + INTERVAL_S)
    assert (world.states(), world.watermark()) == ({1: "reviewed", 2: "reviewed", 3: "skipped"}, 3)
    assert world.rows("select distinct stream_id from observations") == [(1,)]


def test_an_erased_owner_takes_all_reviews_along(world: Reviewing) -> None:
    subject = world.read(find_subject, world.project.id, "me")
    assert subject is not None
    erased(world, SubjectTarget(subject=subject))
    assert (world.states(), world.watermark()) == ({1: "erased", 2: "erased"}, 2)
    for table in ("reviews", "observations", "proposals", "proposal_quotes"):
        assert world.value(f"select count(*) from {table}") == 0, table


def test_an_erased_project_leaves_nothing_of_its_reviews(world: Reviewing) -> None:
    world.do("insert into proposals select 9, project_id, null, null, action, kind, slug, title, section, section_hash,"
             " base, body, why, confidence, signature, 'other', reviewer, state, state_reason, decided_by, created_at,"
             " expires_at, decided_at, page_id, version, previous, undone_by from proposals")  # fmt: skip
    erased(world, ProjectTarget())
    for table in ("review_states", "generations", "reviews", "observations", "proposals", "proposal_quotes"):
        assert world.value(f"select count(*) from {table}") == 0, table
