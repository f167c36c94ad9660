"""The Python door over a real store: in this process, and through a real server."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.stubs.real_server import serving

from everkept import AsyncMemory, Memory, NotFound, SubjectConflict, Unavailable

WAIT_S = 120


@contextmanager
def opened_here(home: Path) -> Iterator[Memory]:
    with Memory.open(home) as memory:
        yield memory


@contextmanager
def connected(home: Path) -> Iterator[Memory]:
    with serving(home) as (_, url), Memory.connect(url) as memory:
        yield memory


@pytest.fixture(params=[opened_here, connected], ids=["embedded", "remote"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    way: Callable[[Path], Iterator[Memory]] = request.param
    with way(tmp_path) as memory:  # type: ignore[attr-defined]
        yield memory


def test_the_snippet_of_the_docs(memory: Memory) -> None:
    def llm(system: str, user: str) -> str:
        assert user in ("Where do I live now?", "I moved to Lisbon in May.")
        return "You live in Lisbon." if "Lisbon" in system else "I do not know."

    thread = memory.thread("chat-1", subject="user_42")
    thread.add("user", "I moved to Lisbon in May.")
    question = "Where do I live now?"
    context = thread.context(question, tokens=800)
    reply = llm(system="Answer from memory.\n" + context.text, user=question)
    thread.add_many([("user", question), ("assistant", reply)], key="turn-17")
    thread.end()
    assert memory.settle(timeout_s=60)
    for fact in memory.facts(subject="user_42"):
        assert fact.text
        assert fact.quote
    assert reply == "You live in Lisbon."
    assert [thread.receipt(each.event_id).state for each in thread.messages()] == ["remembered"] * 3
    assert [(episode.start_seq, episode.end_seq) for episode in memory.episodes(thread="chat-1")] == [(1, 3)]


def test_errors_are_the_same_here_and_there(memory: Memory) -> None:
    memory.thread("t", subject="ana")
    with pytest.raises(SubjectConflict):
        memory.thread("t", subject="bob")
    with pytest.raises(NotFound):
        memory.fact("fct_99")
    with pytest.raises(NotFound, match="looks like"):
        memory.fact("epi_1")
    assert memory.recall("anything", subject="nobody").results == []
    assert list(memory.facts(subject="nobody")) == []


def test_a_replay_stores_nothing_twice(memory: Memory) -> None:
    thread = memory.thread("t")
    first = thread.add_many([("user", "a"), ("user", "b")], key="k")
    again = thread.add_many([("user", "a"), ("user", "b")], key="k")
    assert (first.replayed, again.replayed) == (False, True)
    assert [each.event_id for each in first.receipts] == [each.event_id for each in again.receipts]
    assert [each.content for each in thread.messages()] == ["a", "b"]


def test_what_is_erased_is_gone(memory: Memory) -> None:
    memory.add("a purple giraffe", subject="zoe")
    assert memory.recall("giraffe", subject="zoe").results
    assert memory.erase(subject="zoe").residue == 0
    assert memory.recall("giraffe").results == []


def test_asynchronously(tmp_path: Path) -> None:
    async def use() -> list[str]:
        async with AsyncMemory.open(tmp_path) as memory:
            thread = await memory.thread("t", subject="ana")
            await asyncio.gather(*(thread.add("user", f"line {i}") for i in range(50)))
            return sorted([str(each.content) async for each in thread.messages()])

    assert asyncio.run(use()) == sorted(f"line {i}" for i in range(50))


def test_no_server_is_not_an_empty_memory() -> None:
    with Memory.connect("http://127.0.0.1:9") as memory, pytest.raises(Unavailable, match="could not look"):
        memory.recall("anything")


def test_a_short_script_that_never_closes_has_saved_everything(tmp_path: Path) -> None:
    script = (
        "from everkept import Memory\n"
        "thread = Memory.open().thread('t', subject='ana')\n"
        "for i in range(5): thread.add('user', f'line {i}')\n"
    )
    environment = {**os.environ, "EVERKEPT_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], env=environment, capture_output=True, text=True, timeout=WAIT_S
    )
    assert (done.returncode, done.stderr) == (0, "")
    with Memory.open(tmp_path, worker=False) as memory:
        assert [f"line {i}" for i in range(5)] == [each.content for each in memory.thread("t").messages()]


def test_an_unknown_project_is_named_with_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="default"):
        Memory.open(tmp_path, project="nowhere")


def test_settings_may_be_given_when_opening(tmp_path: Path) -> None:
    with Memory.open(tmp_path, worker=False, window__idle_s=60) as memory:
        thread = memory.thread("t")
        thread.add("user", "hello there")
        info = thread.info()
    assert info.window_due_at is not None
    assert info.last_message_at is not None
    assert (info.window_due_at - info.last_message_at).total_seconds() == pytest.approx(60, abs=1)
