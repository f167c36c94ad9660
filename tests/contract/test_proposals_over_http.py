"""Proposals and reviews are the same over HTTP, in Python and in the process, on the real store."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.stubs.both_ways import run

from everkept.api import views as v
from everkept.api.local import LocalService
from everkept.domain.ids import parse_row_id
from everkept.domain.review.values import Draft, Quote
from everkept.doors.python.async_memory import AsyncMemory
from everkept.doors.python.remote import RemoteService
from everkept.errors import Conflict, InvalidInput, NotFound
from everkept.store.proposals import stage_drafts


async def stage(local: LocalService, *slugs: str) -> None:
    stream = parse_row_id("ses", (await local.list_sessions()).items[0].id)
    drafts = [
        Draft(action="create", kind="rule", slug=slug, title=slug, body=f"Words of {slug}.\n", why="corrected twice",
              confidence=0.9, signature=slug, evidence=(Quote(stream=stream, seq=1, text="Add a function"),))
        for slug in slugs
    ]  # fmt: skip

    def write(conn: object) -> int:
        return stage_drafts(conn, project=local._project_id, review=None, stream=stream, drafts=drafts,  # type: ignore[arg-type]
                            reviewer="rules", settings=local._settings)[0]  # fmt: skip

    assert await local._store.write(write) == len(slugs)


def test_every_answer_is_the_same_both_ways(tmp_path: Path) -> None:
    async def steps(local: LocalService, remote: RemoteService) -> None:
        await stage(local, "one", "two", "three")
        assert await remote.list_proposals() == await local.list_proposals()
        first = await local.list_proposals(limit=1)
        assert await remote.list_proposals(limit=1) == first
        rest = await remote.list_proposals(cursor=first.next_cursor, kind="rule")
        assert [p.id for p in rest.items] == ["prp_2", "prp_1"]
        whole = await local.get_proposal("prp_1")
        assert await remote.get_proposal("prp_1") == whole
        assert whole.difference == "--- /dev/null\n+++ one (proposed)\n@@ -0,0 +1 @@\n+Words of one.\n"
        approved = await remote.approve_proposal("prp_1", by="ana")
        assert approved == await local.get_proposal("prp_1")
        assert (approved.state, approved.decided_by, approved.version) == ("approved", "ana", 1)
        assert (await remote.reject_proposal("prp_2", reason="no")).reason == "no"
        assert (await remote.roll_back_proposal("prp_1")).state == "rolled_back"
        assert await remote.proposal_report() == await local.proposal_report()
        assert (await local.proposal_report()).decided == {"rejected": 1, "rolled_back": 1}
        assert await remote.list_proposals(state=None) == await local.list_proposals(state=None)

    run(tmp_path, steps)


def test_why_tells_of_a_proposal_what_it_quotes_what_it_wrote_and_who_decided(tmp_path: Path) -> None:
    async def steps(local: LocalService, remote: RemoteService) -> None:
        await stage(local, "one")
        waiting = await local.why("prp_1")
        assert (waiting.kind, waiting.text) == ("proposal", "one")
        assert [(event.event_id, event.seq) for event in waiting.events] == [("evt_1_1", 1)]
        assert [step["step"] for step in waiting.steps] == ["quote", "proposal", "state"]
        assert waiting.steps[0] == {
            "step": "quote", "event": "evt_1_1", "session": "ses_1", "quote": "Add a function"}  # fmt: skip
        await local.approve_proposal("prp_1", by="ana")
        await local.roll_back_proposal("prp_1", by="bo", reason="it was wrong")
        why = await local.why("prp_1")
        assert await remote.why("prp_1") == why
        state = next(step for step in why.steps if step["step"] == "state")
        assert (state["state"], state["by"], state["reason"]) == ("rolled_back", "bo", "it was wrong")
        for door in (local, remote):
            with pytest.raises(NotFound, match="no proposal prp_9"):
                await door.why("prp_9")

    run(tmp_path, steps)


def test_the_timeline_tells_of_a_proposal_when_it_was_made_and_when_it_was_decided_last(tmp_path: Path) -> None:
    async def steps(local: LocalService, remote: RemoteService) -> None:
        await stage(local, "one", "two")
        await local.approve_proposal("prp_1", by="ana")
        await local.roll_back_proposal("prp_1", by="bo")
        whole = (await local.timeline(kinds=["proposal"])).items
        assert [(item.id, item.detail) for item in whole] == [
            ("prp_1", "create, page one, rolled back by bo"), ("prp_2", "create, page two, staged by rules"),
            ("prp_1", "create, page one, staged by rules"),
        ]  # fmt: skip
        found: list[v.TimelineItem] = []
        cursor: str | None = None
        while len(found) < len(whole):
            page = await remote.timeline(kinds=["proposal"], limit=1, cursor=cursor)
            found, cursor = [*found, *page.items], page.next_cursor
        assert (found, cursor) == (whole, None)

    run(tmp_path, steps)


def test_a_page_that_was_made_meanwhile_is_a_conflict_both_ways(tmp_path: Path) -> None:
    async def steps(local: LocalService, remote: RemoteService) -> None:
        await stage(local, "one")
        await local.write_page("One", "By hand.", slug="one")
        for service in (local, remote):
            with pytest.raises(Conflict, match="prp_1 was not approved: there was no page 'one'"):
                await service.approve_proposal("prp_1", rebase=True)
        found = await remote.get_proposal("prp_1")
        assert (found.state, found.difference) == ("conflict", "")
        assert found.obstacle == found.reason
        assert (await local.get_page("one")).body == "By hand."

    run(tmp_path, steps)


def test_wrong_words_are_errors_both_ways(tmp_path: Path) -> None:
    async def steps(local: LocalService, remote: RemoteService) -> None:
        await stage(local, "one")
        for service in (local, remote):
            with pytest.raises(NotFound, match="'ses_1' is not the id of a proposal"):
                await service.get_proposal("ses_1")
            with pytest.raises(InvalidInput):
                await service.list_proposals(state="lost")
            with pytest.raises(InvalidInput):
                await service.approve_proposal("prp_1", by="")

    run(tmp_path, steps)


def test_a_page_is_pinned_both_ways(tmp_path: Path) -> None:
    async def steps(local: LocalService, remote: RemoteService) -> None:
        await local.write_page("One", "By hand.", slug="one", kind="rule")
        assert (await remote.pin_page("one")).pinned
        assert (await local.get_page("one")).pinned
        assert not (await local.pin_page("one", pinned=False)).pinned
        assert not (await remote.get_page("one")).pinned

    run(tmp_path, steps)


def test_old_history_is_reviewed_only_where_it_is_asked_for(tmp_path: Path) -> None:
    async def steps(local: LocalService, remote: RemoteService) -> None:
        assert {r.state for r in (await remote.list_reviews()).items} == {"imported"}
        assert await remote.list_reviews() == await local.list_reviews()
        assert (await remote.run_reviews()).opened == 0
        started = await remote.run_reviews(since=datetime(2000, 1, 1, tzinfo=UTC))
        assert (started.reopened, started.opened, started.waiting) == (1, 1, 0)
        (review,) = (await local.list_reviews()).items
        assert (review.state, review.asked_by, review.id) == ("reviewing", "hand", "rev_1")
        assert await remote.claim_review(review.session_id) is None, "it is claimed"

    run(tmp_path, steps)


def test_python_has_them_under_proposals_and_reviews(tmp_path: Path) -> None:
    async def steps(local: LocalService, remote: RemoteService) -> None:
        await stage(local, "one", "two")

        async def nothing() -> None:
            return None

        memory = AsyncMemory(remote, nothing)
        assert [p.slug async for p in memory.proposals.list()] == ["two", "one"]
        assert (await memory.proposals.approve("prp_2", by="ana")).state == "approved"
        assert (await memory.proposals.roll_back("prp_2", reason="it did not help")).reason == "it did not help"
        assert (await memory.proposals.reject("prp_1")).state == "rejected"
        assert (await memory.proposals.get("prp_1")).evidence is not None
        assert (await memory.proposals.report()).open == 0
        session = (await memory.sessions())[0].id
        claimed = await memory.reviews.claim(session)
        assert claimed is not None
        assert (claimed.state, claimed.asked_by) == ("reviewing", "hand")
        assert (await memory.reviews.run()).opened == 0
        assert [r.session_id async for r in memory.reviews.list(session_id=session)] == [session]

    run(tmp_path, steps)
