"""`why` on a genuine session: it, its page, its handoff, and pages by hand, the same in the process and over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.stubs.both_ways import run

from everkept.api import views as v
from everkept.api.local import LocalService
from everkept.doors.python.remote import RemoteService
from everkept.errors import NotFound


def step(why: v.Why, name: str) -> dict[str, Any]:
    return next(each for each in why.steps if each["step"] == name)


def test_a_session_tells_who_told_of_it_its_events_and_what_was_made_of_it(tmp_path: Path) -> None:
    async def steps(local: LocalService, remote: RemoteService) -> None:
        session = (await local.list_sessions()).items[0]
        why = await local.why(session.id)
        assert (why.id, why.kind, why.text) == (session.id, "session", session.title)
        assert step(why, "session")["native_id"] == session.native_id
        assert step(why, "session")["told_by"] == "its transcript"
        assert step(why, "events")["shown"] == f"20 of {session.events:,}"
        assert [event.seq for event in why.events] == list(range(1, 21))
        assert step(why, "digest")["page"] == session.page
        assert await remote.why(session.id) == why

    run(tmp_path, steps)


def test_a_handoff_tells_its_session_its_last_events_and_who_took_it_up(tmp_path: Path) -> None:
    async def steps(local: LocalService, remote: RemoteService) -> None:
        handoff = (await local.list_handoffs()).items[0]
        session = await local.get_session(handoff.session_id)
        assert step(await local.why(handoff.id), "state")["taken_up_by"] is None
        await local.acknowledge_handoff(handoff.id, by="codex/1")
        why = await local.why(handoff.id)
        assert (why.kind, why.text) == ("handoff", handoff.title)
        assert step(why, "session")["id"] == session.id
        assert why.events[-1].seq == session.events
        assert step(why, "state")["state"] == "acknowledged"
        assert step(why, "state")["taken_up_by"] == "codex/1"
        assert await remote.why(handoff.id) == why

    run(tmp_path, steps)


def test_a_page_of_a_session_tells_the_session_and_one_by_hand_its_versions_and_the_events_that_it_cites(
    tmp_path: Path,
) -> None:
    async def steps(local: LocalService, remote: RemoteService) -> None:
        session = (await local.list_sessions()).items[0]
        assert session.page is not None
        why = await local.why(session.page)
        assert (why.kind, step(why, "session")["id"], step(why, "version")["author"]) == (
            "session page", session.id, "digest",
        )  # fmt: skip
        assert await remote.why(session.page) == why == await remote.why(why.id)

        cited = (await local.session_events(session.id)).items[2]
        await local.write_page("House rules", "Use ruff.", kind="rule", reason="agreed")
        await local.write_page("House rules", f"Use ruff.\n\n> “as said” — {cited.event_id}", kind="rule", base=1)
        why = await local.why("house-rules")
        assert why.events == [cited]
        versions = [(each["version"], each["base"], each["reason"]) for each in why.steps if each["step"] == "version"]
        assert versions == [(2, 1, None), (1, None, "agreed")]
        assert await remote.why("house-rules") == why

    run(tmp_path, steps)


def test_what_cannot_be_traced_is_refused_with_the_kinds_that_can_the_same_both_ways(tmp_path: Path) -> None:
    async def steps(local: LocalService, remote: RemoteService) -> None:
        refused = [
            ("job_1", "it looks like the id of a job"), ("xyz_1", ""), ("ses_0", "not the id"),
            ("ses_99", "no session"), ("hnd_99", "no handoff"), ("no-such-page", "no page"),
        ]  # fmt: skip
        for unknown, hint in refused:
            errors = []
            for service in (local, remote):
                with pytest.raises(NotFound) as caught:
                    await service.why(unknown)
                errors.append(caught.value.message)
            assert errors[0] == errors[1]
            assert hint in errors[0]
            if unknown in ("job_1", "xyz_1"):
                for kind in ("fact", "episode", "event", "session", "page", "handoff"):
                    assert f"({kind})" in errors[0]

    run(tmp_path, steps)
