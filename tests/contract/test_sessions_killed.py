"""A killed agent tells of no end: what it did last stands in its transcript alone, and is read there (H03)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.stubs.agent_desk import Desk, a_checkout, a_desk

from everkept.store.sessions import QUIET_SINCE_US, QUIET_US

SESSION = "019ae2f0-6b1d-7c3e-9a52-4f1d08b7c6e1"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with a_desk(tmp_path / "home") as made:
        yield made


@pytest.fixture
def app(tmp_path: Path) -> Path:
    return a_checkout(tmp_path / "app")


def write(desk: Desk, file: Path, app: Path, *words: str) -> None:
    """Lines of the agent's own file, told at this moment."""
    at = datetime.fromtimestamp(desk.clock.now_us() / 1e6, UTC).isoformat().replace("+00:00", "Z")
    with file.open("a") as out:
        for number, said in enumerate(words):
            message = {"role": "assistant", "content": [{"type": "text", "text": said}]}
            line = {"type": "assistant", "uuid": f"{said}-{number}", "sessionId": SESSION, "timestamp": at,
                    "cwd": str(app), "message": message}  # fmt: skip
            out.write(json.dumps(line) + "\n")


def said(desk: Desk) -> list[str]:
    return [words for (words,) in desk.rows("select content from events where role = 'assistant' order by seq")]


def killed(desk: Desk, app: Path, file: Path) -> None:
    """It was asked, and said that it was at work; then it was gone."""
    write(desk, file, app, "I look at the login")
    desk.hook(
        "claude-code", "UserPromptSubmit", app, session_id=SESSION, prompt="Fix the login", transcript_path=str(file)
    )
    desk.settle()


def test_the_transcript_of_a_killed_agent_is_read_once_it_is_silent_and_digested_by_idleness(
    desk: Desk, app: Path, tmp_path: Path
) -> None:
    file = tmp_path / f"{SESSION}.jsonl"
    killed(desk, app, file)
    desk.run(desk.hooks.tidy())
    assert said(desk) == [], "it may be at work"
    desk.clock.advance(QUIET_US / 1e6)
    desk.wake_again()
    desk.run(desk.hooks.tidy())
    assert said(desk) == ["I look at the login"]
    desk.settle(1_900)
    desk.settle()
    assert desk.rows("select digested_seq = 2, trivial_because is null from sessions") == [(1, 0)]


def test_a_file_that_did_not_grow_is_not_read_again(desk: Desk, app: Path, tmp_path: Path) -> None:
    file = tmp_path / f"{SESSION}.jsonl"
    killed(desk, app, file)
    desk.clock.advance(QUIET_US / 1e6)
    counts = []
    for _ in range(2):
        desk.wake_again()
        desk.run(desk.hooks.tidy())
        counts.append(desk.rows("select read_at from transcripts"))
        desk.clock.advance(60)
    assert counts[0] == counts[1] != []
    write(desk, file, app, "It goes on")
    desk.wake_again()
    desk.run(desk.hooks.tidy())
    assert said(desk) == ["I look at the login", "It goes on"]


def test_what_was_silent_for_a_week_or_was_erased_is_left_alone(desk: Desk, app: Path, tmp_path: Path) -> None:
    killed(desk, app, tmp_path / f"{SESSION}.jsonl")
    desk.clock.advance((QUIET_SINCE_US + QUIET_US) / 1e6)
    desk.wake_again()
    desk.run(desk.hooks.tidy())
    assert said(desk) == []


def test_a_file_that_only_another_machine_could_have_is_never_opened(desk: Desk, app: Path, tmp_path: Path) -> None:
    """A record that comes over the network names a file of its own machine."""
    file = tmp_path / f"{SESSION}.jsonl"
    write(desk, file, app, "not for you")
    record = desk.hook(
        "claude-code", "UserPromptSubmit", app, session_id=SESSION, prompt="Hi", transcript_path=str(file)
    )
    (desk.home / "spool" / "new" / record["name"]).unlink()
    name = record.pop("name")
    desk.run(desk.app.ingest(project=None, confined=False).record(name, record))
    assert desk.rows("select transcript from sessions") == [(None,)]


def test_a_file_name_that_no_disk_takes_keeps_no_record_from_being_taken_in(desk: Desk, app: Path) -> None:
    nowhere = f"/tmp/{'x' * 5_000}.jsonl"
    desk.hook("claude-code", "UserPromptSubmit", app, session_id=SESSION, prompt="Hi", transcript_path=nowhere)
    desk.settle()
    assert desk.rows("select content, erased_at from events") == [("Hi", None)]
