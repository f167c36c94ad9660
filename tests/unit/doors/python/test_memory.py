from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.stubs.door_client import DoorClient
from tests.stubs.fake_memory import WAYS, embedded, waited_for

from everkept.api.views import MessageIn
from everkept.doors.python.async_memory import AsyncMemory
from everkept.doors.python.sync_memory import Memory
from everkept.errors import (
    InvalidInput,
    KeyConflict,
    NotFound,
    SubjectConflict,
    Unavailable,
    UnknownScope,
)


@pytest.fixture
def door() -> DoorClient:
    return DoorClient()


@pytest.fixture(params=WAYS)
def memory(request: pytest.FixtureRequest, door: DoorClient) -> Iterator[Memory]:
    with waited_for(WAYS[request.param](door)) as memory:
        yield memory


def test_the_snippet_of_the_docs(memory: Memory) -> None:
    thread = memory.thread("chat-1", subject="user_42")
    question = "Where do I live now?"
    context = thread.context(question, tokens=800)
    assert isinstance(context.text, str)
    result = thread.add_many([("user", question), ("assistant", "In Lisbon")], key="turn-17")
    assert [receipt.seq for receipt in result.receipts] == [1, 2]
    assert thread.end().episode_queued
    assert memory.settle(timeout_s=30)
    memory.remember("lives in Lisbon", user_id="user_42")
    assert [fact.text for fact in memory.facts(subject="user_42")] == ["lives in Lisbon"]


def test_a_message_may_be_given_in_three_forms(memory: Memory, door: DoorClient) -> None:
    said = datetime(2026, 1, 1, tzinfo=UTC)
    memory.thread("t").add_many(
        [("user", "a"), {"role": "tool", "content": "b"}, MessageIn(content="c", occurred_at=said)]
    )
    stored = door.service.messages["t"]
    assert [(each.role, each.content) for each in stored] == [("user", "a"), ("tool", "b"), ("user", "c")]
    assert stored[2].occurred_at == said


@pytest.mark.parametrize("given", [("user",), {"role": "user"}, {"content": "x", "contnet": "y"}, ("user", "\ud800")])
def test_a_message_that_cannot_be_one_names_its_field(memory: Memory, given: object) -> None:
    with pytest.raises(InvalidInput):
        memory.thread("t").add_many([given])  # type: ignore[list-item]


def test_every_add_carries_a_key_of_its_own(memory: Memory, door: DoorClient) -> None:
    thread = memory.thread("t")
    thread.add("user", "same")
    thread.add("user", "same")
    memory.add("same", thread="t")
    keys = [given["key"] for name, given in door.service.calls if name == "append"]
    assert len({*keys}) == len(keys) == 3
    assert all(keys)


def test_the_same_key_is_stored_once_and_another_payload_is_a_conflict(memory: Memory) -> None:
    thread = memory.thread("t")
    first, again = thread.add("user", "x", key="k"), thread.add("user", "x", key="k")
    assert (first.event_id, "replayed") == (again.event_id, again.outcome)
    with pytest.raises(KeyConflict) as caught:
        thread.add("user", "y", key="k")
    assert caught.value.details["key"] == "k/0"


def test_a_thread_keeps_its_subject(memory: Memory) -> None:
    memory.thread("t", subject="ana")
    assert memory.thread("t").subject == "ana"
    assert memory.thread("fresh").subject == "me"
    assert memory.thread(session_id="t", user_id="ana").id == "t"
    assert memory.thread().id not in ("t", "fresh")
    with pytest.raises(SubjectConflict):
        memory.thread("t", subject="bob")


def test_a_note_without_a_thread_has_a_place(memory: Memory) -> None:
    assert memory.add("a note").thread == "inbox:me"
    assert memory.add("a note", user_id="ana", agent_id="bot").thread == "inbox:ana"
    assert memory.add("a note", thread="t").thread == "t"
    assert memory.thread("t").subject == "me"
    assert [each.metadata for each in memory.thread("inbox:ana").messages()] == [{"agent_id": "bot"}]


def test_lists_page_through_by_themselves(memory: Memory) -> None:
    thread = memory.thread("t")
    thread.add_many([("user", str(i)) for i in range(230)])
    assert [str(i) for i in range(230)] == [each.content for each in thread.messages()]
    assert [each.content for each in thread.messages(after_seq=228)] == ["228", "229"]
    for i in range(120):
        memory.remember(f"fact {i}", subject="ana")
    assert len(list(memory.facts(subject="ana"))) == 120
    assert list(memory.facts(subject="nobody")) == []


@pytest.mark.parametrize("word", ["tenant_id", "limt", "project", "agent_id"])
def test_an_unknown_word_is_an_error_and_never_an_empty_list(memory: Memory, word: str) -> None:
    with pytest.raises(UnknownScope):
        memory.facts(**{word: "x"})  # type: ignore[arg-type]


def test_a_word_that_contradicts_another_is_an_error(memory: Memory) -> None:
    with pytest.raises(UnknownScope):
        memory.recall("x", subject="a", user_id="b")


def test_recall_takes_synonyms_and_metadata(memory: Memory, door: DoorClient) -> None:
    memory.thread("t", subject="ana").add("user", "hello world")
    answer = memory.recall("hello", user_id="ana", run_id="t", agent_id="bot", metadata={"a": 1}, explain=True)
    assert [each.text for each in answer.results] == ["hello world"]
    assert door.service.calls[-1][1]["metadata"] == {"agent_id": "bot", "a": 1}


def test_errors_are_the_same_classes_with_their_details(memory: Memory) -> None:
    with pytest.raises(NotFound) as caught:
        memory.fact("fct_9")
    assert (caught.value.code, caught.value.details) == ("not_found", {"id": "fct_9"})
    with pytest.raises(NotFound, match="looks like the id of an episode"):
        memory.forget("epi_1")
    with pytest.raises(InvalidInput):
        memory.recall("")
    with pytest.raises(InvalidInput):
        memory.recall("\ud800")


def test_everything_else_answers(memory: Memory) -> None:
    memory.add("x", thread="a/b c?d#e", subject="ana")
    thread = memory.thread("a/b c?d#e")
    assert thread.info().messages == 1
    assert thread.configure({"memory.enabled": False}).settings == {"memory.enabled": False}
    assert thread.erase(dry_run=True).dry_run
    event = next(iter(thread.messages())).event_id
    assert event == memory.receipt(event).event_id == thread.receipt(event).event_id == memory.why(event).id
    fact = memory.remember("y", subject="ana", valid_from=datetime(2026, 1, 1, tzinfo=UTC), key="once")
    again = memory.remember("y", subject="ana", valid_from=datetime(2026, 1, 1, tzinfo=UTC), key="once")
    assert again.id == fact.id
    assert not memory.forget(fact.id).live
    assert memory.forget(fact.id, undo=True).live
    assert [each.name for each in memory.entities()] == ["ana"]
    assert [each.id for each in memory.threads(subject="ana")] == ["a/b c?d#e"]
    thread.end()
    episode = next(iter(memory.episodes(thread="a/b c?d#e")))
    assert memory.episode(episode.id) == memory.retry_episode(episode.id, "facts") == episode
    assert memory.reprocess(subject="ana", dry_run=True).dry_run
    assert memory.erase(subject="ana", dry_run=True).scope == "ana"
    assert memory.export("ana")["subject"] == "ana"
    assert memory.status().backlog_armed == 2
    assert memory.usage() == []
    assert memory.usage_by_project(days=7).projects == []
    assert list(memory.jobs(subject="nobody")) == []
    job = next(iter(memory.jobs(state="dead")))
    assert memory.job(job.id) == memory.retry_job(job.id) == memory.release_job(job.id)
    assert (memory.discard_job(job.id).state, memory.retry_jobs()) == ("discarded", 1)
    page = memory.changes(consumer="crm")
    assert memory.ack("crm", page.next_after) == 3
    assert memory.changes(consumer="crm").changes == []
    assert [memory.projects()[0].name, memory.create_project("two").name] == ["default", "two"]
    assert memory.update_project("two", new_name="2").name == "2"
    assert memory.merge_project("two", into="default", dry_run=True).state == "planned"
    assert memory.find_merge("default") is None
    assert memory.move_project("two", workspace="research").name == "research/two"
    assert memory.ensure_workspace("research").name == "research"
    assert memory.ensure_project("bot", workspace="research").name == "research/bot"
    key = memory.create_key("laptop")
    assert [each["id"] for each in memory.api_keys()] == [key.id]
    memory.revoke_key(key.id)
    assert memory.api_keys() == []


def test_what_coding_agents_left_answers(memory: Memory) -> None:
    session = next(iter(memory.sessions(agent="claude-code")))
    assert memory.session(session.id) == session
    assert [each.seq for each in memory.session_events(session.id)] == [1, 2]
    assert memory.end_session(session.id).episode_queued
    assert memory.erase(session=session.id, dry_run=True).scope == session.id
    page = memory.write_page("Tokens", "In the keychain.", kind="decision", base=1, reason="asked for")
    assert memory.page(page.slug) == page == memory.page("tokens", version=2)
    assert [each.version for each in memory.page_history("tokens")] == [2, 1]
    assert [each.version for each in memory.page_history("tokens", before=2)] == [1]
    assert [(each.slug, each.body) for each in memory.pages(kind="decision")] == [("tokens", None)]
    assert memory.delete_page("tokens").slug == "tokens"
    assert list(memory.pages()) == []
    handoff = next(iter(memory.handoffs(state="open")))
    assert memory.choose_handoff(worktree="/code/app").chosen == memory.handoff(handoff.id) == handoff
    assert memory.acknowledge_handoff(handoff.id, by="codex/1").state == "acknowledged"
    assert memory.choose_handoff().chosen is None
    assert [each.id for each in memory.timeline(kinds=["session"], since=datetime(2026, 1, 1, tzinfo=UTC))] == ["ses_1"]


def test_a_folder_names_the_project_of_its_memory(memory: Memory, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        memory.scope(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text('[remote "origin"]\n\turl = git@github.com:acme/app.git\n', "utf-8")
    assert memory.scope(tmp_path).value == "github.com/acme/app"


def test_the_asynchronous_door_is_awaited(door: DoorClient) -> None:
    async def use() -> None:
        async with embedded(door.service) as memory:
            thread = await memory.thread("t", subject="ana")
            await thread.add("user", "x")
            assert [each.content async for each in thread.messages()] == ["x"]
            assert [each.content for each in await thread.messages()] == ["x"]
            assert len((await memory.threads().page()).items) == 1
        async with await embedded(door.service) as again:
            assert isinstance(again, AsyncMemory)

    asyncio.run(use())
    assert door.service.closed


def test_a_closed_memory_says_so(door: DoorClient) -> None:
    memory = waited_for(embedded(door.service))
    memory.close()
    memory.close()
    assert door.service.closed
    with pytest.raises(Unavailable, match="closed"):
        memory.status()


def test_a_memory_may_be_used_by_many_threads(memory: Memory) -> None:
    thread = memory.thread("t")
    workers = [threading.Thread(target=lambda: [thread.add("user", "x") for _ in range(10)]) for _ in range(5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert thread.info().messages == 50


def test_a_memory_may_be_used_within_a_running_loop(memory: Memory) -> None:
    async def use() -> int:
        return memory.status().backlog_due

    assert asyncio.run(use()) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_forked_child_is_told_to_open_its_own(door: DoorClient) -> None:
    with waited_for(embedded(door.service)) as memory:
        child = os.fork()
        if child == 0:
            try:
                memory.status()
            except Unavailable:
                os._exit(7)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_script_without_close_still_closes() -> None:
    script = (
        "from tests.stubs.door_client import DoorClient\n"
        "from tests.stubs.fake_memory import embedded, waited_for\n"
        "service = DoorClient().service\n"
        "async def close(): print('closed', len(service.messages['t']))\n"
        "service.close = close\n"
        "waited_for(embedded(service)).thread('t').add('user', 'x')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "closed 1\n"


def test_an_unknown_setting_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidInput, match="EVERKEPT_WINDOW__IDLE"):
        Memory.open(window__idle=3)
