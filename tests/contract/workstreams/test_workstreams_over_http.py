"""Workstreams, launches and offers are the same thing over HTTP as in the process, on the real store."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.stubs.both_ways import run
from tests.stubs.line_of_work import CLAUDE, CODEX, HERE, OWNER, prompt, said

from everkept.api.local import LocalService
from everkept.doors.python.async_workstreams import AsyncLaunches, AsyncWorkstreams
from everkept.doors.python.remote import RemoteService
from everkept.errors import Conflict, KeyConflict, LeaseLost, NotFound, PacketGone


def test_a_line_of_work_is_told_over_http_and_read_both_ways(tmp_path: Path) -> None:
    async def steps(local: LocalService, remote: RemoteService) -> None:
        made = await remote.create_workstream("new/login", place=HERE.place)
        assert await remote.get_workstream("new/login") == await local.get_workstream(made.id) == made
        first = await remote.prepare_launch(OWNER, checkout=HERE, agent="claude-code", key="k1")
        assert (await remote.heartbeat_launch(first.id, fence=first.fence)).state == "running"
        taken = await remote.launch_events(first.id, [prompt("Build the login")], first=1, delivery_key="d1")
        assert (taken.acknowledged, taken.sessions[0].stored) == (1, 1)
        done = await remote.finish_launch(
            first.id, fence=first.fence, events=[said("It is built")], first=2, native_session=CLAUDE,
            source_cursor="12", exit_code=0,
        )  # fmt: skip
        assert (done.cursor, done.launch.acknowledged, done.launch.exit_code) == ("taken", 2, 0)
        second = await remote.prepare_launch(OWNER, checkout=HERE, available=["codex"], native_session=CODEX, key="k2")
        assert second.packet is not None
        assert "Build the login" in second.packet.text
        assert await remote.get_launch(second.id) == await local.get_launch(second.id)
        assert second.offer is not None
        assert (await remote.accept_offer(second.offer)).state == "acknowledged"
        assert (await remote.accept_launch(second.id, fence=second.fence, native_session=CODEX)).accepted_at is not None
        assert (await remote.cancel_launch(second.id, fence=second.fence)).state == "cancelled"
        events = await local.workstream_events(made.id)
        assert await remote.workstream_events("new/login") == events
        after = await local.workstream_events(made.id, after=events.items[0].place)
        assert await remote.workstream_events(made.id, after=events.items[0].place) == after
        assert await remote.workstream_events(made.id, query="built") == await local.workstream_events(
            made.id, query="built"
        )
        assert (await remote.rename_workstream(made.id, "login")).name == "login"
        assert (await remote.select_workstream("login", place="/code/other")).selected_in == [HERE.place, "/code/other"]
        assert await remote.list_workstreams() == await local.list_workstreams()
        newest = await remote.list_launches("login", limit=1)
        assert newest == await local.list_launches(made.id, limit=1)
        older = await remote.list_launches("login", limit=1, cursor=newest.next_cursor)
        assert [one.id for page in (newest, older) for one in page.items] == [second.id, first.id]
        assert older.next_cursor is None

    run(tmp_path, steps)


def test_refusals_are_told_the_same_both_ways(tmp_path: Path) -> None:
    async def steps(local: LocalService, remote: RemoteService) -> None:
        held = await local.prepare_launch(OWNER, checkout=HERE, agent="claude-code", key="k1")
        for service in (local, remote):
            with pytest.raises(Conflict) as busy:
                await service.prepare_launch("bo", checkout=HERE, agent="codex", key="k9")
            assert busy.value.details["holder"] == OWNER
            with pytest.raises(KeyConflict):
                await service.prepare_launch(OWNER, checkout=HERE, agent="codex", key="k1")
            with pytest.raises(LeaseLost):
                await service.heartbeat_launch(held.id, fence=held.fence + 7)
            with pytest.raises(NotFound):
                await service.get_launch("lch_999")
            with pytest.raises(NotFound):
                await service.accept_offer("off_999")

    run(tmp_path, steps)


def test_a_packet_that_is_gone_names_its_successor_over_http(tmp_path: Path) -> None:
    async def steps(local: LocalService, remote: RemoteService) -> None:
        first = await local.prepare_launch(OWNER, checkout=HERE, agent="claude-code", key="k1")
        await local.finish_launch(first.id, fence=first.fence, events=[prompt("Build it"), said("It is built")])
        second = await remote.prepare_launch(OWNER, checkout=HERE, agent="codex", key="k2")
        event = (await local.workstream_events(first.workstream_id)).items[0].event_id
        await local.erase(event=event)
        with pytest.raises(PacketGone) as gone:
            await remote.accept_launch(second.id)
        assert "It is built" in gone.value.details["successor"]["text"]
        assert "Build it" not in gone.value.details["successor"]["text"]

    run(tmp_path, steps)


def test_memory_has_workstreams_and_launches(tmp_path: Path) -> None:
    async def steps(local: LocalService, remote: RemoteService) -> None:
        for service, name in ((local, "one"), (remote, "two")):
            workstreams, launches = AsyncWorkstreams(service), AsyncLaunches(service)
            await workstreams.create(name)
            launch = await launches.prepare(OWNER, checkout=HERE, workstream=name, agent="codex", key=name)
            await launches.heartbeat(launch.id, fence=launch.fence)
            await launches.events(launch.id, [prompt(f"Pelican {name}", CODEX, "codex")], first=1)
            await launches.accept(launch.id)
            await launches.finish(launch.id, fence=launch.fence, exit_code=0)
            assert (await launches.get(launch.id)).exit_code == 0
            cancelled = await launches.prepare(OWNER, checkout=HERE, workstream=name, agent="codex")
            await launches.cancel(cancelled.id, fence=cancelled.fence)
            assert f"Pelican {name}" in [e.text async for e in workstreams.events(name)]
            assert [e.text for e in await workstreams.search(name, f"pelican {name}")] == [f"Pelican {name}"]
            assert [one.id async for one in workstreams.launches(name)] == [cancelled.id, launch.id]
            await workstreams.select(name, place="/code/x")
            await workstreams.rename(name, f"{name} more")
            assert (await workstreams.get(f"{name} more")).selected_in == ["/code/x"]
        assert [w.name async for w in AsyncWorkstreams(remote).list()] == ["two more", "one more"]

    run(tmp_path, steps)
