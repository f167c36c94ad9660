"""What coding agents left is the same thing over HTTP as in the process, on the real store."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.stubs.both_ways import run

from everkept.api.local import LocalService
from everkept.capture.identity import Checkout
from everkept.doors.python.remote import RemoteService
from everkept.errors import Conflict, InvalidInput, NotFound


def test_every_answer_is_the_same_both_ways(tmp_path: Path) -> None:
    async def steps(local: LocalService, remote: RemoteService) -> None:
        sessions = await local.list_sessions()
        session = sessions.items[0]
        assert session.page is not None
        handoff = (await local.list_handoffs()).items[0]
        assert await remote.list_sessions(agent="claude-code") == sessions
        assert await remote.get_session(session.id) == session
        events = await local.session_events(session.id, after_seq=3, limit=5)
        assert len(events.items) == 5
        assert await remote.session_events(session.id, after_seq=3, limit=5) == events
        assert await remote.list_pages(kind="session") == await local.list_pages(kind="session")
        assert await remote.get_page(session.page) == await local.get_page(session.page)
        assert await remote.page_history(session.page) == await local.page_history(session.page)
        assert await remote.list_handoffs(state="open") == await local.list_handoffs(state="open")
        assert await remote.get_handoff(handoff.id) == handoff
        place = {"worktree": session.worktree, "branch": session.branch}
        assert await remote.choose_handoff(**place) == await local.choose_handoff(**place)
        first = await local.timeline(limit=1)
        assert first.next_cursor is not None
        assert await remote.timeline(limit=1) == first
        rest = {"kinds": ["session", "handoff"], "cursor": first.next_cursor, "since": first.items[0].at}
        assert await remote.timeline(**rest) == await local.timeline(**rest)  # type: ignore[arg-type]
        assert (await remote.end_session(session.id)).episode_queued is False

    run(tmp_path, steps)


def test_a_folder_is_resolved_and_refused_the_same_both_ways(tmp_path: Path) -> None:
    async def steps(local: LocalService, remote: RemoteService) -> None:
        place = (await local.list_sessions()).items[0].worktree
        assert place is not None
        found = await local.resolve_scope(Checkout(cwd=place))
        assert (found.found_by, found.value) == ("path", place)
        assert await remote.resolve_scope(Checkout(cwd=place)) == found
        unknown = Checkout(cwd="/code/other", remote="github.com/acme/other", marker="mine")
        errors = []
        for service in (local, remote):
            with pytest.raises(NotFound) as caught:
                await service.resolve_scope(unknown)
            errors.append((caught.value.message, caught.value.details))
        assert errors[0] == errors[1]

    run(tmp_path, steps)


def test_pages_and_handoffs_are_changed_the_same_way(tmp_path: Path) -> None:
    async def steps(local: LocalService, remote: RemoteService) -> None:
        written = await remote.write_page("House rules", "Use ruff.", kind="rule", reason="agreed")
        assert await local.get_page("house-rules") == written
        again = await remote.write_page("House rules", "Use ruff.", kind="rule")
        assert again.version == 1  # the same text is no new version, so it may be sent twice
        await local.write_page("House rules", "Use ruff and mypy.", kind="rule", base=1)
        with pytest.raises(Conflict):
            await remote.write_page("House rules", "Use flake8.", kind="rule", base=1)
        newer = await remote.write_page("Rules of the house", "Use ruff.", kind="rule", supersedes="house-rules")
        assert [page.slug for page in (await remote.list_pages(kind="rule")).items] == [newer.slug]
        assert len((await remote.list_pages(kind="rule", superseded=True)).items) == 2
        assert (await remote.delete_page(newer.slug)).slug == newer.slug
        with pytest.raises(NotFound, match="was deleted"):
            await local.get_page(newer.slug)
        handoff = (await remote.list_handoffs()).items[0]
        taken = await remote.acknowledge_handoff(handoff.id, by="codex/1")
        assert (taken.state, taken.acknowledged_by) == ("acknowledged", "codex/1")
        assert await remote.acknowledge_handoff(handoff.id, by="gemini/2") == taken

    run(tmp_path, steps)


def test_a_session_is_erased_over_http_and_wrong_ids_are_told_from_missing_ones(tmp_path: Path) -> None:
    async def steps(local: LocalService, remote: RemoteService) -> None:
        session = (await local.list_sessions()).items[0].id
        assert (await remote.erase(session=session, dry_run=True)).rows
        assert (await remote.erase(session=session)).residue == 0
        assert (await remote.timeline()).items == []
        for id_, words in ((session, "there is no session"), ("pag_1", "looks like the id of a page")):
            with pytest.raises(NotFound, match=words):
                await remote.get_session(id_)
        with pytest.raises(InvalidInput, match="exactly one"):
            await remote.erase(session=session, thread="x")

    run(tmp_path, steps)
