"""What lies in the spool: the machine's own trouble loses and condemns nothing, and no erase leaves words behind unsaid
(G10, G14; H01)."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.stubs.agent_desk import Desk, a_checkout, a_desk

from everkept.api import hook_records
from everkept.api.erasing_aside import forget_all_aside
from everkept.api.views import ErasePlan, MessageIn
from everkept.capture.agents import hook_payload
from everkept.capture.spool import HALF_WRITTEN_FOR_S, Spool


@pytest.fixture
def app(tmp_path: Path) -> Path:
    return a_checkout(tmp_path / "app")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setattr("everkept.api.erasing.WAIT_S", 0)  # time stands still here, and the worker with it
    with a_desk(tmp_path / "home") as made:
        yield made


def lies_aside(desk: Desk, name: str, *, torn: bool = False) -> Path:
    """A record goes where no store takes it in."""
    record = desk.home / "spool" / "new" / name
    if torn:
        record.write_bytes(record.read_bytes().rstrip()[:-1])
    Spool(desk.home).set_aside(name, "it is odd")
    return desk.home / "spool" / "aside" / name


def asked(desk: Desk, session: str, cwd: Path, prompt: str) -> str:
    return str(desk.hook("claude-code", "UserPromptSubmit", cwd, session_id=session, prompt=prompt)["name"])


def erase(desk: Desk, cwd: Path, **target: Any) -> ErasePlan:
    return desk.run(desk.service(cwd).erase(**target))


def in_spool(desk: Desk, word: str) -> list[str]:
    files = [path for path in (desk.home / "spool").rglob("*") if path.is_file()]
    return sorted(path.name for path in files if word.encode() in path.read_bytes())


def session_id(desk: Desk, native: str) -> str:
    [(stream,)] = desk.rows("select stream_id from sessions where native_id like :native || '%'", native=native)
    return f"ses_{stream}"


# ---- erased


def test_an_erased_session_takes_the_records_of_it_that_were_set_aside(desk: Desk, app: Path) -> None:
    desk.work("claude-code", "s1", app)
    desk.work("claude-code", "s2", app)
    lies_aside(desk, asked(desk, "s1", app, "teach the zorblax"))
    kept = lies_aside(desk, asked(desk, "s2", app, "feed the quokka"))
    erased = session_id(desk, "s1")
    plan = erase(desk, app, session=erased, dry_run=True)
    assert (plan.rows["records set aside"], plan.set_aside) == (1, 0)
    assert in_spool(desk, "zorblax"), "a plan destroys nothing"
    done = erase(desk, app, session=erased)
    assert (done.rows["records set aside"], done.set_aside) == (1, 0)
    assert in_spool(desk, "zorblax") == []
    assert in_spool(desk, "quokka") == [kept.name]


def test_what_nobody_can_tell_whose_it_is_is_named_and_one_call_destroys_it(desk: Desk, app: Path) -> None:
    desk.work("claude-code", "s1", app)
    torn = lies_aside(desk, asked(desk, "s1", app, "teach the zorblax"), torn=True)
    assert erase(desk, app, session=session_id(desk, "s1")).set_aside == 1
    assert in_spool(desk, "zorblax") == [torn.name]
    assert forget_all_aside(desk.home) == 1
    assert list((desk.home / "spool" / "aside").iterdir()) == [], "its reason goes with it"


def test_an_erased_event_names_the_records_of_its_session_and_leaves_them(desk: Desk, app: Path) -> None:
    desk.work("claude-code", "s1", app)
    aside = lies_aside(desk, asked(desk, "s1", app, "teach the zorblax"))
    [(stream, seq)] = desk.rows("select stream_id, seq from events where role = 'user'")
    assert erase(desk, app, event=f"evt_{stream}_{seq}").set_aside == 1
    assert aside.exists()


def test_an_erased_project_takes_the_records_of_its_sessions_and_no_other(
    desk: Desk, app: Path, tmp_path: Path
) -> None:
    other = a_checkout(tmp_path / "other", remote="https://example.com/acme/other")
    desk.work("claude-code", "s1", app)
    desk.work("claude-code", "s2", other)
    lies_aside(desk, asked(desk, "s1", app, "teach the zorblax"))
    kept = lies_aside(desk, asked(desk, "s2", other, "feed the quokka"))
    service = desk.service(app)
    done = desk.run(service.erase(project=desk.project_of(f"{session_native(desk, 's1')}")))
    assert (done.rows["records set aside"], done.set_aside) == (1, 0)
    assert in_spool(desk, "zorblax") == []
    assert kept.exists()


def session_native(desk: Desk, start: str) -> str:
    [(native,)] = desk.rows("select native_id from sessions where native_id like :start || '%'", start=start)
    return str(native)


def test_what_a_killed_hook_left_half_written_is_named_too(desk: Desk, app: Path) -> None:
    desk.work("claude-code", "s1", app)
    half = desk.home / "spool" / "tmp" / "1700000000000000000-1-1.json"
    half.write_text('{"format": 1, "payload": {"prompt": "teach the zorb')
    old = half.stat().st_mtime - HALF_WRITTEN_FOR_S - 1
    os.utime(half, (old, old))
    assert erase(desk, app, session=session_id(desk, "s1")).set_aside == 1


def test_what_waits_is_taken_in_before_one_event_is_erased(desk: Desk, app: Path) -> None:
    desk.work("claude-code", "s1", app)
    [(stream, seq)] = desk.rows("select stream_id, seq from events where role = 'user'")
    asked(desk, "s1", app, "teach the zorblax")
    erase(desk, app, event=f"evt_{stream}_{seq}")
    assert in_spool(desk, "zorblax") == []


def test_the_erase_of_a_conversation_names_no_record_of_hooks(desk: Desk, app: Path) -> None:
    desk.work("claude-code", "s1", app)
    lies_aside(desk, asked(desk, "s1", app, "teach the zorblax"), torn=True)
    service = desk.service(app)
    desk.run(service.append("chat", [MessageIn(content="hello")], subject="ann"))
    assert desk.run(service.erase(thread="chat", dry_run=True)).set_aside == 0


# ---- the machine's own trouble


@contextmanager
def trouble(monkeypatch: pytest.MonkeyPatch, code: int, when: Callable[[Any], bool]) -> Iterator[None]:
    """The machine fails whoever reads a record that is so."""

    def failing(fields: Any) -> Any:
        if when(fields):
            raise OSError(code, os.strerror(code))
        return hook_payload.events_of(fields)

    with monkeypatch.context() as patch:
        patch.setattr(hook_records, "events_of", failing)
        yield


@pytest.mark.parametrize("code", [errno.EIO, errno.EMFILE, errno.ENOSPC])
def test_a_record_that_the_machine_could_not_take_in_waits_and_goes_in_later(
    desk: Desk, app: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    asked(desk, "s1", app, "teach the zorblax")
    asked(desk, "s2", app, "feed the quokka")
    with trouble(monkeypatch, code, lambda fields: "zorblax" in str(fields)):
        drained = desk.run(desk.hooks.drain(60))
    assert (drained.records, drained.refused) == (1, {})
    assert list(drained.waiting.values()) == [f"[Errno {code}] {os.strerror(code)}"]
    assert (Spool(desk.home).state().waiting, Spool(desk.home).state().aside) == (1, 0)
    again = desk.run(desk.hooks.drain(60))
    assert (again.records, again.waiting, desk.hooks.waiting()) == (1, {}, 0)


def test_more_records_in_trouble_than_one_look_takes_hold_up_no_other(
    desk: Desk, app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(120):
        asked(desk, "s1", app, f"zorblax {number}")
    asked(desk, "s2", app, "feed the quokka")
    with trouble(monkeypatch, errno.EIO, lambda fields: "zorblax" in str(fields)):
        first = desk.run(desk.hooks.drain(60))
        desk.run(desk.hooks.drain(60))
        assert desk.hooks.waiting() == 120
        assert len(first.waiting) >= 100
    desk.run(desk.hooks.drain(60))
    assert desk.hooks.waiting() == 0


def test_a_record_that_names_what_cannot_be_is_set_aside_and_does_not_wait(
    desk: Desk, app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(desk, "s1", app, "teach the zorblax")
    with trouble(monkeypatch, errno.ENAMETOOLONG, lambda _fields: True):
        drained = desk.run(desk.hooks.drain(60))
    assert (len(drained.refused), drained.waiting, Spool(desk.home).state().aside) == (1, {}, 1)


def test_a_spool_that_cannot_be_read_now_says_so_and_loses_nothing(desk: Desk, app: Path) -> None:
    asked(desk, "s1", app, "teach the zorblax")
    new = desk.home / "spool" / "new"
    new.rename(new.with_name("away"))
    new.write_text("a file where the folder was")
    drained = desk.run(desk.hooks.drain(60))
    assert "cannot be read now" in drained.refused[""]
    new.unlink()
    new.with_name("away").rename(new)
    assert desk.run(desk.hooks.drain(60)).records == 1
