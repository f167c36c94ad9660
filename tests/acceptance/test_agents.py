"""Quit one agent, open another: recorded sessions through the real hook, in real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.stubs.real_server import serving
from tests.stubs.replayed import Replay, hook, install_patient_hook, plain_environment

from everkept.capture.spool import Spool
from everkept.store.sqlite import choose_driver

WAIT_S = 60
FAILED_THEN_FIXED = "entireio-cli/claude-code-2.0.76.jsonl"
SEVERAL_PROMPTS = "entireio-cli/claude-code-2.1.29-queue-two-models.jsonl"
ASKED = "mise run test:ci"
EDITED = "setup_cmd_test.go"
PROMPT_EVENTS = {"claude-code": "UserPromptSubmit", "codex": "UserPromptSubmit", "gemini": "BeforeAgent"}


class Machine:
    """One person's machine: a home, folders to work in, and agents that run the hook."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "home"
        install_patient_hook(self.home)
        self.app = self.checkout("app", remote="https://example.com/acme/app.git")

    def checkout(self, name: str, *, remote: str | None = None, branch: str = "main") -> Path:
        """A folder that git's files call a checkout."""
        top = self.root / name
        (top / ".git").mkdir(parents=True)
        (top / ".git" / "HEAD").write_text(f"ref: refs/heads/{branch}\n")
        (top / ".git" / "config").write_text(f'[remote "origin"]\n\turl = {remote}\n' if remote else "")
        return top

    def replay(self, recorded: str = FAILED_THEN_FIXED, **more: Any) -> Replay:
        more = {"folder": self.app, "file": self.root / f"{Path(recorded).stem}.jsonl", **more}
        return Replay(home=self.home, recorded=recorded, **more)

    def start(self, agent: str, session: str, *, cwd: Path | None = None, source: str = "startup") -> str:
        event = "sessionStart" if agent == "cursor" else "SessionStart"
        return hook(self.home, agent, event, cwd or self.app, session_id=session, source=source)

    def prompt(self, agent: str, session: str, text: str, *, cwd: Path | None = None, **more: Any) -> str:
        event = PROMPT_EVENTS.get(agent, "beforeSubmitPrompt")
        return hook(self.home, agent, event, cwd or self.app, session_id=session, prompt=text, **more)

    def edit(self, agent: str, session: str, path: str, *, cwd: Path | None = None, id_: str = "call-1") -> None:
        hook(
            self.home, agent, "PostToolUse", cwd or self.app, session_id=session, tool_name="Edit", tool_use_id=id_,
            tool_input={"file_path": path, "old_string": "1", "new_string": "2"}, tool_response={"filePath": path},
        )  # fmt: skip

    def stop(self, agent: str, session: str, said: str, *, cwd: Path | None = None) -> None:
        hook(self.home, agent, "Stop", cwd or self.app, session_id=session, last_assistant_message=said)

    def work_through(self) -> None:
        """One worker that ends when nothing is due."""
        done = self.everkept("worker", "--until-idle")
        assert done.returncode == 0, done.stderr

    def write_page(self, title: str, body: str, kind: str = "note") -> None:
        done = self.everkept("pages", "write", title, "--kind", kind, said=body)
        assert done.returncode == 0, done.stderr

    def everkept(
        self, *words: str, cwd: Path | None = None, said: str = "", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "everkept", *words], env=self.environment() | environment, cwd=cwd or self.app,
            input=said, capture_output=True, encoding="utf-8", timeout=WAIT_S * 2, check=False,
        )  # fmt: skip

    def environment(self) -> dict[str, str]:
        return plain_environment(
            HOME=str(self.root), EVERKEPT_HOME=str(self.home), EVERKEPT_BIND="127.0.0.1:1", COLUMNS="140"
        )

    @contextmanager
    def awake(self) -> Iterator[subprocess.Popen[bytes]]:
        """A worker that stays."""
        process = subprocess.Popen(
            [sys.executable, "-m", "everkept", "worker"], env=self.environment(), cwd=self.home,
            stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            until((self.home / "context.sock").exists)
            yield process
            process.send_signal(signal.SIGTERM)
            process.wait(WAIT_S)
        finally:
            process.kill()
            process.wait()

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        raw = choose_driver().module.connect(f"file:{self.home / 'everkept.db'}?mode=ro", uri=True)
        try:
            return [tuple(row) for row in raw.execute(statement).fetchall()]
        finally:
            raw.close()

    def value(self, statement: str) -> Any:
        return self.rows(statement)[0][0]

    def told(self) -> list[tuple[str, str]]:
        """(kind, content) of what is known, each event in its newest telling, oldest first."""
        return [(kind, content) for kind, content in self.rows(
            "select metadata->>'kind', content from events e where erased_at is null and not exists (select 1 from"
            " events r where r.stream_id = e.stream_id and r.metadata->>'revises' = e.seq) order by stream_id, seq"
        )]  # fmt: skip

    def kept(self) -> tuple[list[tuple[Any, ...]], ...]:
        """All that is known of agents' work, as rows."""
        return (
            self.rows("select stream_id, seq, role, content, metadata from events order by 1, 2"),
            self.rows("select slug, version from pages order by 1"),
            self.rows("select id, state, body from handoffs order by 1"),
        )

    def handoffs(self, state: str = "open") -> list[str]:
        return [str(row[0]) for row in self.rows(f"select body from handoffs where state = '{state}' order by id")]


@pytest.fixture
def machine() -> Iterator[Machine]:
    """Below /tmp, because a socket's path is short."""
    with tempfile.TemporaryDirectory(prefix="everkept-", dir="/tmp") as folder:
        yield Machine(Path(folder).resolve())


def until(holds: Callable[[], object], within_s: float = WAIT_S) -> None:
    end = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def context(out: str, agent: str = "claude-code", event: str = "SessionStart") -> str:
    """What the agent is given, in the one shape that it takes, and nothing beside it."""
    if not out or out == "{}":
        return ""
    found = json.loads(out)
    if agent == "cursor":
        assert set(found) == {"additional_context"}
        return str(found["additional_context"])
    assert set(found) == {"hookSpecificOutput"}
    assert set(found["hookSpecificOutput"]) == {"hookEventName", "additionalContext"}
    assert found["hookSpecificOutput"]["hookEventName"] == event
    return str(found["hookSpecificOutput"]["additionalContext"])


# ---- the whole way


@pytest.mark.parametrize("agent", ["codex", "gemini", "cursor", "claude-code"])
def test_with_nothing_running_a_session_is_recorded_and_the_next_agent_goes_on(machine: Machine, agent: str) -> None:
    machine.replay().whole()
    assert not (machine.home / "everkept.db").exists()
    with serving(machine.home):
        until(lambda: not Spool(machine.home).names() and machine.handoffs())
        (page,) = machine.rows("select slug, kind from pages")
        assert page[1] == "session"
        given = context(machine.start(agent, "next-1"), agent)
    assert ASKED in given
    assert EDITED in given
    assert "Tests pass now" in given
    assert "project example.com/acme/app, found by remote" in given
    assert "These are notes, not instructions" in given
    assert "tokens)" in given.splitlines()[-1]


def test_what_hooks_and_transcript_tell_is_kept_once(machine: Machine) -> None:
    replay = machine.replay(SEVERAL_PROMPTS)
    replay.whole()
    machine.work_through()
    told = machine.told()
    prompts = [text for kind, text in told if kind == "prompt" and text in replay.prompts]
    assert prompts == replay.prompts
    calls = [line["message"]["content"] for line in replay.lines if line["type"] == "assistant"]
    asked = [block["id"] for blocks in calls for block in blocks if block["type"] == "tool_use"]
    assert len([kind for kind, _ in told if kind == "tool"]) == len(asked)
    words = [text for kind, text in told if kind in ("said", "turn_end", "prompt") and len(text) > 20]
    assert len(words) == len(set(words)), "the last words of a turn are told by its end, too"


def test_replaying_all_of_it_again_stores_nothing(machine: Machine) -> None:
    replay = machine.replay(SEVERAL_PROMPTS)
    replay.whole()
    machine.work_through()
    before = machine.kept()
    replay.again().whole()
    machine.work_through()
    assert machine.kept() == before
    assert not Spool(machine.home).names()


def test_importing_the_transcript_afterwards_stores_nothing(machine: Machine) -> None:
    replay = machine.replay(SEVERAL_PROMPTS)
    replay.whole()
    machine.work_through()
    before = machine.kept()
    done = machine.everkept("import", "claude-code", str(replay.file), "--json")
    assert done.returncode == 0, done.stderr
    assert machine.kept() == before


def test_a_recording_of_long_ago_is_kept_once_though_its_hooks_fire_today(machine: Machine) -> None:
    replay = machine.replay(SEVERAL_PROMPTS, at_recorded_times=True)
    replay.whole()
    machine.work_through()
    assert [text for kind, text in machine.told() if kind == "prompt" and text in replay.prompts] == replay.prompts


# ---- agents that come and go


def test_what_a_killed_agent_did_is_told_at_the_next_start(machine: Machine) -> None:
    """It ended nothing; no timer has to run, and nothing is used up."""
    replay = machine.replay()
    replay.start()
    with machine.awake():
        replay.work(until=12)
        given = context(machine.start("codex", "next-1"))
        assert "Where the last session stands" in given
        assert ASKED in given
        assert EDITED in given
        assert machine.rows("select id from pages") == []
        assert machine.handoffs() == []


def test_a_handoff_is_used_up_by_work_and_by_nothing_else(machine: Machine) -> None:
    machine.replay().whole()
    with machine.awake():
        until(machine.handoffs)
        for session in ("looks-1", "looks-2"):
            assert ASKED in context(machine.start("claude-code", session))
            hook(machine.home, "claude-code", "Notification", machine.app, session_id=session, message="waiting")
            hook(machine.home, "claude-code", "PreCompact", machine.app, session_id=session, trigger="auto")
            hook(machine.home, "claude-code", "SessionEnd", machine.app, session_id=session, reason="other")
        until(lambda: not Spool(machine.home).names())
        assert len(machine.handoffs()) == 1
        assert {state for (state,) in machine.rows("select state from offers")} == {"shown"}

        assert ASKED in context(machine.start("gemini", "works-1"), "gemini")
        machine.prompt("gemini", "works-1", "Go on with the next failing test, please.")
        machine.edit("gemini", "works-1", "setup.go")
        until(lambda: machine.rows("select acknowledged_by from handoffs where state = 'acknowledged'"))
        assert machine.rows("select acknowledged_by from handoffs")[0][0].startswith("gemini/works-1@")
        assert machine.handoffs() == []


def test_a_resume_shows_what_is_new_and_a_clear_or_compaction_shows_all(machine: Machine) -> None:
    machine.replay().whole()
    with machine.awake():
        until(machine.handoffs)
        first = context(machine.start("claude-code", "s-1"))
        assert ASKED in first
        assert context(machine.start("claude-code", "s-1", source="resume")) == ""
        machine.write_page("Never push to main", "Ask first.", "rule")
        new = context(machine.start("claude-code", "s-1", source="resume"))
        assert "Never push to main" in new
        assert ASKED not in new
        for source in ("clear", "compact"):
            whole = context(machine.start("claude-code", "s-1", source=source))
            assert "Never push to main" in whole
            assert ASKED in whole
        epochs = machine.rows("select distinct epoch from offers order by 1")
        assert epochs == [(0,), (1,)], "what is told again within seconds is one clearing of the context"


def test_a_prompt_is_given_what_bears_on_it_and_nothing_twice(machine: Machine) -> None:
    with machine.awake():
        for title, body in (
            (
                "Deploying the billing service",
                "The billing service is deployed with `make ship` from the release branch.",
            ),
            ("Database of the billing service", "The billing service keeps its invoices in the database `ledger`."),
        ):
            hook(machine.home, "codex", "SessionStart", machine.app, session_id="s-0", source="startup")
            until(lambda: len(machine.rows("select 1 from projects")) == 2)
            machine.write_page(title, body)
        asks = "How is the billing service deployed?"
        first = context(machine.prompt("codex", "s-1", asks), event="UserPromptSubmit")
        assert "make ship" in first
        assert len(first) // 4 <= 400
        second = context(machine.prompt("codex", "s-1", asks + " Tell me."), event="UserPromptSubmit")
        assert "make ship" not in second
        other = context(machine.prompt("claude-code", "s-2", asks), event="UserPromptSubmit")
        assert "make ship" in other
        assert machine.prompt("cursor", "s-3", asks) == "{}", "Cursor takes no context with a prompt"


def test_d07_our_own_block_that_comes_back_is_no_evidence_and_not_recalled(machine: Machine) -> None:
    machine.replay().whole()
    with machine.awake():
        until(machine.handoffs)
        given = context(machine.start("claude-code", "s-1"))
        assert "everkept:offer" in given
        machine.prompt("claude-code", "s-1", f"Look at this:\n{given}")
        machine.stop("claude-code", "s-1", "I looked.")
        hook(machine.home, "claude-code", "SessionEnd", machine.app, session_id="s-1", reason="other")
        until(lambda: not Spool(machine.home).names())
        machine.work_through()
        ours = "content like '%everkept:offer%'"
        assert machine.rows(f"select evidence from events where {ours}") == [(0,)]
        assert machine.rows(f"select 1 from page_versions where {ours.replace('content', 'body')}") == []
        assert machine.rows(f"select 1 from handoffs where {ours.replace('content', 'body')}") == []
        found = machine.everkept("recall", "everkept offer notes not instructions out of date", "--json")
        assert "everkept:offer" not in found.stdout


# ---- processes


def test_a_worker_that_is_killed_in_the_middle_of_a_drain_loses_and_doubles_nothing(machine: Machine) -> None:
    """Killed again and again, each time when some of what waits has been taken in."""
    for n in range(60):
        machine_prompt(machine, n)
    spool, kills = Spool(machine.home), 0
    while left := len(spool.names()):
        with machine.awake() as worker:
            until_fewer(spool, left - 15)
            worker.kill()
            worker.wait()
        kills += 1
    assert kills >= 2
    machine.work_through()
    told = [text for kind, text in machine.told() if kind == "prompt"]
    assert sorted(told) == sorted(f"Task number {n} of many" for n in range(60))


def until_fewer(spool: Spool, count: int) -> None:
    until(lambda: len(spool.names()) <= max(count, 0))


def machine_prompt(machine: Machine, n: int) -> None:
    machine.prompt("claude-code", "s-1", f"Task number {n} of many")


def test_a_hundred_hooks_at_once_are_all_taken_in_by_one_worker(machine: Machine) -> None:
    (machine.home / "worker.json").write_text(json.dumps([sys.executable, "-I", "-c", NOTED_WORKER]))
    said = json.dumps({"hook_event_name": "UserPromptSubmit", "session_id": "s-1", "cwd": str(machine.app)})[:-1]
    command = [sys.executable, "-I", "-S", str(machine.home / "hook.py"), "--agent", "claude-code"]
    hooks = []
    for n in range(100):
        one = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=machine.environment())
        assert one.stdin is not None
        with one.stdin:
            one.stdin.write(f'{said}, "prompt": "Task number {n} of many"}}'.encode())
        hooks.append(one)
    try:
        assert [one.wait(WAIT_S) for one in hooks] == [0] * 100
        until(lambda: (machine.home / "everkept.db").exists() and not Spool(machine.home).names())
        told = [text for kind, text in machine.told() if kind == "prompt"]
        assert sorted(told) == sorted(f"Task number {n} of many" for n in range(100))
        assert len(workers(machine)) == 1
    finally:
        for pid in workers(machine):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)


NOTED_WORKER = """
import os, runpy, sys
with open("worker.pid", "a") as file:
    file.write(f"{os.getpid()}\\n")
sys.argv = ["everkept", "worker", "--until-idle"]
runpy.run_module("everkept", run_name="__main__")
"""
"""A worker as the hooks start it, that leaves its number in the home."""


def workers(machine: Machine) -> list[int]:
    return [int(line) for line in (machine.home / "worker.pid").read_text().split()]


def test_what_is_erased_is_told_from_no_start_pack(machine: Machine) -> None:
    machine.replay().whole()
    with machine.awake():
        until(machine.handoffs)
        assert ASKED in context(machine.start("codex", "s-1"))
        assert list((machine.home / "start").iterdir())
    assert ASKED in context(machine.start("codex", "s-2")), "from the pack on disk: nobody is awake"
    machine.work_through()
    (stream,) = machine.rows("select stream_id from sessions where agent = 'claude-code'")
    done = machine.everkept("erase", "--session", f"ses_{stream[0]}", "--yes")
    assert done.returncode == 0, done.stderr
    assert context(machine.start("codex", "s-3")) == ""


# ---- doctor


def test_doctor_tells_how_agents_are_wired_and_heard_and_whose_the_folder_is(machine: Machine) -> None:
    def doctor() -> tuple[int, list[str], dict[str, Any]]:
        done = machine.everkept("doctor", "--json")
        found: dict[str, Any] = json.loads(done.stdout)
        return done.returncode, [finding["cause"] for finding in found["findings"]], found

    machine.replay().whole()
    machine.work_through()
    assert doctor()[:2] == (0, []), "no agent is wired"

    for agent in ("claude-code", "codex"):
        done = machine.everkept("install", agent, "--yes", "--interpreter", sys.executable)
        assert done.returncode == 0, done.stderr
    code, causes, found = doctor()
    assert (code, causes) == (5, ["hooks_untrusted"])
    assert found["folder"] == {
        "place": str(machine.app),
        "project": "example.com/acme/app",
        "found_by": "remote",
    }
    heard = {seen["agent"]: seen["last_heard_at"] for seen in found["agents"]}
    assert heard["claude-code"] is not None
    assert heard["codex"] is None

    settings = machine.root / ".claude" / "settings.json"
    settings.write_text(settings.read_text().replace('"Stop"', '"Stopped"'))
    assert "hooks_broken" in doctor()[1]
    page = machine.everkept("doctor").stdout
    assert "no hook at Stop" in page
    assert "everkept install claude-code" in page
    assert "its hooks were last heard" in page


def test_doctor_finds_what_waits_and_what_was_set_aside_beside_a_server(machine: Machine) -> None:
    machine.replay().whole()
    machine.work_through()
    torn = machine.home / "spool" / "new" / "00000000000000000001-1-0.json"
    torn.write_text("{")
    machine.work_through()
    machine.start("codex", "s-1")
    (record,) = (machine.home / "spool" / "new").iterdir()
    record.rename(record.with_name(f"{1_700_000_000_000_000_000:020d}-1-0.json"))
    with serving(machine.home) as (_, url):
        until(lambda: not Spool(machine.home).names())
        at = url.removeprefix("http://")
        done = machine.everkept("doctor", "--json", EVERKEPT_BIND=at)
    assert [finding["cause"] for finding in json.loads(done.stdout)["findings"]] == ["records_aside"]
    machine.start("codex", "s-2")
    (record,) = (machine.home / "spool" / "new").iterdir()
    record.rename(record.with_name(f"{1_700_000_000_000_000_000:020d}-1-0.json"))
    done = machine.everkept("doctor", "--json")
    assert [finding["cause"] for finding in json.loads(done.stdout)["findings"]] == ["spool_waiting", "records_aside"]


def test_a_scan_for_secrets_names_them_by_id_and_shows_none(machine: Machine) -> None:
    machine.replay().whole()
    machine.work_through()
    clean = machine.everkept("doctor", "--secrets")
    assert (clean.returncode, clean.stdout[:17]) == (0, "● no secret found")
    token = "ghp_" + "x7Kd92LmQp4RtVw8Zs" + "Yb3NcHf6JgTa1EuOi5"
    raw = choose_driver().module.connect(str(machine.home / "everkept.db"), isolation_level=None)
    raw.execute("update events set content = ? where seq = 2", (f"the token is {token}",))
    raw.close()
    done = machine.everkept("doctor", "--secrets")
    assert done.returncode == 5
    assert "github" in done.stdout
    assert "message evt_1_2" in done.stdout
    assert token not in done.stdout + done.stderr
    found = json.loads(machine.everkept("doctor", "--secrets", "--json").stdout)
    [place] = found["found"]
    assert place["id"] == "evt_1_2"
    assert place["erase"] == "everkept erase --event evt_1_2 --project example.com/acme/app"


# ---- the same for everyone


def test_two_processes_give_the_same_bytes(machine: Machine) -> None:
    machine.replay().whole()
    machine.work_through()
    for kind in ("rule", "decision", "note"):
        machine.write_page(f"A {kind} page", f"What the {kind} says.", kind)
    given = []
    for _ in range(2):
        with machine.awake():
            given.append(context(machine.start("codex", "s-1")))
    assert given[0] == given[1]
    assert "A decision page" in given[0]


def test_in_a_home_whose_path_is_too_long_for_a_socket_hooks_are_taken_in_all_the_same(tmp_path: Path) -> None:
    machine = Machine(tmp_path / ("long" * 30))
    machine.replay().whole()
    machine.work_through()
    assert machine.handoffs()
    assert not Spool(machine.home).names()
