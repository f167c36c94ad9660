"""What came of approved proposals: counted by session, and what surely does not help is proposed to go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract.test_proposals import Reviewed
from tests.contract.test_sessions import call, edit, prompt, said

from everkept.store.offers import Receiver, make_offer, note_shown
from everkept.store.outcomes import OutcomeRow, outcomes_of, propose_retirements


class Measured(Reviewed):
    """A project with more sessions that were looked at; a session of each is made with the events that it needs."""

    def looked_at(self, n: int, *, with_it: int, times: int = 1) -> None:
        """`n` sessions that end now, one after the other; the first `with_it` show what the proposal answers."""
        for i in range(n):
            self.clock.advance(3600.0)
            name = f"more-{self.value('select count(*) from sessions')}"
            self.told(name, *self.events(name), ended=True)
            stream = self.session(name).stream
            seq = self.value("select finished_seq from sessions where stream_id = ?", stream)
            now = self.clock.now_us()
            self.do(
                "insert into reviews(workspace_id, project_id, stream_id, generation, asked_by, created_at,"
                " completed_at) values(1, ?, ?, ?, 'hand', ?, ?)", self.project.id, stream, seq, now, now
            )  # fmt: skip
            for k in range(times if i < with_it else 0):
                self.do(
                    "insert into observations(project_id, signature, stream_id, seq, kind, shape, quote, at)"
                    " values(?, 'sig', ?, ?, 'error', 'x', 'E', ?)", self.project.id, stream, k + 1, now
                )  # fmt: skip

    def events(self, name: str) -> Any:
        return (
            prompt(name, f"Fix the failing login test of {name}"),
            call(name, f"{name}-1", "pytest -q", outcome="failed", exit_code=1, output="E   assert 401 == 200"),
            edit(name, f"{name}-2", "src/login.py"), said(name, "Done."),
        )  # fmt: skip

    def outcome(self) -> OutcomeRow:
        (one,) = self.read(outcomes_of, self.project.id, 10)
        return one

    def shown(self, page: int, session: str) -> None:
        def offer(conn: Any) -> int:
            receiver = Receiver(agent="claude-code", native=session)
            return make_offer(conn, self.project.id, receiver, handoff=None, items=[f"pag_{page}@1"], body="x").id

        self.write(note_shown, self.project.id, self.write(offer))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Measured]:
    made = Measured(tmp_path)
    made.looked_at(4, with_it=3, times=2)
    made.approve(made.staged(made.draft(signature="sig")))
    yield made
    made.close()
    made.store.close()


def test_what_a_rule_answers_is_counted_before_its_approval_and_since(world: Measured):
    world.looked_at(6, with_it=1, times=5)
    one = world.outcome()
    assert (one.before.times, one.before.with_it, one.before.sessions) == (6, 3, 4)
    assert (one.since.times, one.since.with_it, one.since.sessions) == (5, 1, 6)
    assert one.shown_in == 0


def test_the_sessions_that_were_shown_a_rule_are_counted_once_each(world: Measured):
    page = world.page().id
    for session in ("a", "b"):
        world.shown(page, session)
    assert world.outcome().shown_in == 2
    world.shown(page * 10 + 1, "c")
    assert world.outcome().shown_in == 2, "pag_1 is not pag_11"


def test_a_rule_that_surely_does_not_help_is_proposed_to_go_once(world: Measured):
    world.looked_at(8, with_it=8)
    assert world.write(propose_retirements, world.settings, 0, 10) == (0, 0), "nobody was shown it"
    world.looked_at(8, with_it=8)
    world.shown(world.page().id, "a")
    assert world.write(propose_retirements, world.settings, 0, 10) == (1, 0)
    proposal = world.all()[0]
    assert (proposal.action, proposal.slug, proposal.reviewer, proposal.state) == (
        "retire", "use-uv", "outcome", "staged")  # fmt: skip
    assert "seen in 3 of 4 sessions before, in 16 of 16 since" in proposal.why
    assert world.write(propose_retirements, world.settings, 0, 10) == (0, 0)


def test_a_rule_that_helps_stays(world: Measured):
    world.looked_at(20, with_it=0)
    world.shown(world.page().id, "a")
    assert world.outcome().words.startswith("it helps: seen in 3 of 4 sessions before, in 0 of 20 since")
    assert world.write(propose_retirements, world.settings, 0, 10) == (0, 0)


def test_evidence_of_a_retirement_is_of_the_sessions_since(world: Measured):
    world.looked_at(16, with_it=16)
    world.shown(world.page().id, "a")
    world.write(propose_retirements, world.settings, 0, 10)
    quotes = world.rows("select stream_id, seq, quote from proposal_quotes where proposal_id = 2")
    assert len(quotes) == 12
    assert all(stream > 5 and quote == "E" for stream, _seq, quote in quotes)
