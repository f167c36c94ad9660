"""Two machines without a store, and one server: what an agent left on the one, the next agent is told on the other."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest
from tests.stubs.real_server import serving
from tests.stubs.replayed import install_patient_hook, plain_environment
from tests.stubs.woken import stop_worker

WAIT_S = 120
PROJECT = "example.com/acme/app"
ADMIN = "the-operators-own-key"


class Machine:
    """A home with the hook and the command of its worker, and a clone; no store."""

    def __init__(self, root: Path, url: str, **environment: str) -> None:
        self.home = root / "home"
        self.environment = plain_environment(EVERKEPT_URL=url, **environment)
        self.clone = root / "src" / "app"
        (self.clone / ".git").mkdir(parents=True)
        (self.clone / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        (self.clone / ".git" / "config").write_text(f'[remote "origin"]\n\turl = https://{PROJECT}.git\n')
        install_patient_hook(self.home)
        command = [sys.executable, "-m", "everkept", "worker", "--until-idle"]
        (self.home / "worker.json").write_text(json.dumps(command))

    def hook(self, agent: str, event: str, session: str, **payload: Any) -> str:
        """What the installed hook printed; it complains of nothing."""
        said = {"hook_event_name": event, "cwd": str(self.clone), "session_id": session, **payload}
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(self.home / "hook.py"), "--agent", agent], input=json.dumps(said),
            capture_output=True, encoding="utf-8", env=self.environment, cwd=self.clone, timeout=WAIT_S, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def work(self, agent: str, session: str, prompt: str) -> None:
        """A session that asks for something, does it, and ends."""
        self.hook(agent, "SessionStart", session, source="startup")
        self.hook(agent, "UserPromptSubmit", session, prompt=prompt)
        edit = {"file_path": str(self.clone / "login.py"), "old_string": "1", "new_string": "2"}
        self.hook(
            agent, "PostToolUse", session, tool_name="Edit", tool_use_id=f"{session}-1", tool_input=edit,
            tool_response={"filePath": edit["file_path"]},
        )  # fmt: skip
        self.hook(agent, "Stop", session, last_assistant_message="The login test passes; the docs are still to do.")
        self.hook(agent, "SessionEnd", session, reason="prompt_input_exit")


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Callable[..., Machine]]:
    made: list[Machine] = []

    def make(name: str, url: str, **environment: str) -> Machine:
        made.append(Machine(tmp_path / name, url, **environment))
        return made[-1]

    yield make
    for each in made:
        stop_worker(each.home)


def until(holds: Callable[[], Any]) -> Any:
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        if found := holds():
            return found
        time.sleep(0.1)
    raise AssertionError("it did not come to hold")


def asked(url: str, path: str, *, key: str = "", body: Any = None) -> Any:
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(f"{url}{path}", data=data, headers=headers), timeout=WAIT_S) as answer:
        return json.load(answer)


def told(printed: str, event: str) -> str:
    """The text in Codex's own shape; empty where nothing was told."""
    said = json.loads(printed)
    if not said:
        return ""
    assert said["hookSpecificOutput"]["hookEventName"] == event
    return str(said["hookSpecificOutput"]["additionalContext"])


def while_it_wakes() -> Iterator[int]:
    """Numbers of starts: the first hook of a machine starts its worker, which on a busy one takes more than a start."""
    until_s = time.monotonic() + 180
    number = 0
    while time.monotonic() < until_s:
        yield number
        number += 1


def test_what_was_left_on_one_machine_is_told_on_another_and_a_server_that_is_away_is_not_waited_for(
    machine: Callable[..., Machine], tmp_path: Path
) -> None:
    with serving(tmp_path / "server") as (server, url):
        office, home = machine("office", url), machine("home", url)
        office.work("claude-code", "c-1", "Fix the login test")
        until(lambda: [p for p in asked(url, "/v1/projects")["items"] if p["name"] == PROJECT])
        until(lambda: asked(url, f"/v1/handoffs?project={quote(PROJECT, safe='')}")["items"])
        starts = ((n, home.hook("codex", "SessionStart", f"x-{n}", source="startup")) for n in while_it_wakes())
        number, text = next((n, t) for n, printed in starts if (t := told(printed, "SessionStart")))
        assert "Fix the login test" in text
        assert "found by remote" in text
        until(lambda: asked(url, "/healthz")["alive"] and not any((home.home / "spool" / "new").iterdir()))
        again = told(
            home.hook("codex", "UserPromptSubmit", f"x-{number}", prompt="What about the login?"), "UserPromptSubmit"
        )
        assert "Where the last session left off" not in again  # it was shown, and the server knows

        server.kill()
        server.wait()
        for number in range(5):
            assert (
                told(home.hook("codex", "UserPromptSubmit", "x-99", prompt=f"And {number}?"), "UserPromptSubmit") == ""
            )
        assert len(list((home.home / "spool" / "new").iterdir())) >= 5


def test_with_a_projects_key_a_machine_is_told_of_that_project_only(
    machine: Callable[..., Machine], tmp_path: Path
) -> None:
    with serving(tmp_path / "server", EVERKEPT_ADMIN_KEY=ADMIN) as (_, url):
        asked(url, "/v1/pages", key=ADMIN, body={"title": "Our salaries", "body": "Of no concern.", "kind": "rule"})
        asked(url, "/v1/projects", key=ADMIN, body={"name": "theirs"})
        page = {"title": "Tabs or spaces", "body": "Spaces.", "kind": "rule"}
        asked(url, "/v1/pages?project=theirs", key=ADMIN, body=page)
        key = asked(url, "/v1/keys", key=ADMIN, body={"name": "laptop", "project": "theirs"})["token"]
        laptop = machine("laptop", url, EVERKEPT_API_KEY=key)
        starts = (laptop.hook("claude-code", "SessionStart", f"c-{n}", source="startup") for n in while_it_wakes())
        text = next(printed for printed in starts if printed)
        assert "Tabs or spaces" in text
        assert "salaries" not in text
        operator = {"agent": "codex", "session": "x", "checkout": {"cwd": "/x"}}
        assert "salaries" in asked(url, "/v1/context?project=theirs", key=ADMIN, body=operator)["text"]
