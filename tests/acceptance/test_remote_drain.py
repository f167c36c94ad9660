"""A machine whose memory is on a server: hooks write, the worker sends, whatever happens to the server meanwhile."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from tests.stubs.real_server import serving
from tests.stubs.replayed import Replay, install_patient_hook, plain_environment
from tests.stubs.woken import stop_worker

from everkept.capture.spool import Spool
from everkept.hook.hook_script import append, record_of

WAIT_S = 120
RECORDED = "entireio-cli/claude-code-2.0.76.jsonl"
ADMIN = "the-operators-own-key"


class Laptop:
    """A home with hooks, and a checkout, and no store."""

    def __init__(self, root: Path) -> None:
        self.home = root / "laptop"
        install_patient_hook(self.home)
        self.spool = Spool(self.home)
        self.app = root / "app"
        (self.app / ".git").mkdir(parents=True)
        (self.app / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        (self.app / ".git" / "config").write_text('[remote "origin"]\n\turl = https://example.com/acme/app.git\n')
        self.session = Replay(home=self.home, folder=self.app, recorded=RECORDED, file=root / "session.jsonl")

    def leave(self, count: int) -> None:
        """Records as the hook writes them, without the time that so many processes take."""
        for number in range(count):
            said = {"hook_event_name": "UserPromptSubmit", "cwd": str(self.app), "session_id": f"s-{number // 50}",
                    "prompt": f"prompt number {number}"}  # fmt: skip
            record = record_of(json.dumps(said).encode(), "claude-code", "")
            assert record is not None
            append(str(self.home), record, durable=False, number=number)

    def start_worker(self, url: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "everkept", "worker", "--until-idle", "--json"], text=True,
            env=plain_environment(EVERKEPT_HOME=str(self.home), EVERKEPT_URL=url, **environment),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def work(self, url: str, **environment: str) -> tuple[int, dict[str, Any]]:
        """(exit code, what it says) of a worker that ends when nothing can be sent."""
        process = self.start_worker(url, **environment)
        out, told = process.communicate(timeout=WAIT_S)
        assert out, told
        return process.returncode, json.loads(out)


@pytest.fixture
def laptop(tmp_path: Path) -> Laptop:
    return Laptop(tmp_path)


@pytest.fixture
def bind() -> str:
    """An address that stays the same when the server comes back."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def asked(url: str, path: str, *, key: str = "", body: Any = None) -> Any:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    data = None if body is None else json.dumps(body).encode()
    request = Request(f"{url}{path}", data=data, headers={**headers, "Content-Type": "application/json"})
    with urlopen(request, timeout=WAIT_S) as answer:
        return json.load(answer)


def prompts_at(url: str, project: str = "example.com%2Facme%2Fapp", key: str = "") -> list[str]:
    sessions = asked(url, f"/v1/sessions?project={project}&limit=500", key=key)["items"]
    pages = [asked(url, f"/v1/sessions/{s['id']}/events?project={project}&limit=500", key=key) for s in sessions]
    return [m["content"] for page in pages for m in page["items"] if m["role"] == "user"]


def test_a_session_recorded_while_the_server_is_down_is_there_and_digested_once_it_is_up(
    laptop: Laptop, tmp_path: Path, bind: str
) -> None:
    laptop.session.whole()
    waiting = laptop.spool.state().waiting
    copy = tmp_path / "copy"
    shutil.copytree(laptop.home / "spool" / "new", copy)
    code, told = laptop.work(f"http://{bind}")
    assert (code, told["sent"], told["waiting"], told["trouble"]["code"]) == (3, 0, waiting, "unavailable")
    assert laptop.spool.state().aside == 0
    with serving(tmp_path / "server", EVERKEPT_BIND=bind) as (_, url):
        code, told = laptop.work(url)
        assert (code, told["sent"], told["waiting"], told["trouble"]) == (0, waiting, 0, None)
        assert told["transcripts"] >= 1
        prompts = prompts_at(url)
        assert [p for p in prompts if p in laptop.session.prompts] == laptop.session.prompts
        shutil.copytree(copy, laptop.home / "spool" / "new", dirs_exist_ok=True)
        code, told = laptop.work(url)
        assert (code, told["sent"], told["new"], told["revised"]) == (0, waiting, 0, 0)
        assert prompts_at(url) == prompts
        wait_for_handoff(url)


def wait_for_handoff(url: str) -> None:
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        if asked(url, "/v1/handoffs?project=example.com%2Facme%2Fapp")["items"]:
            return
        time.sleep(0.2)
    raise AssertionError("no handoff appeared")


def test_a_server_that_is_killed_in_the_middle_gets_everything_once(laptop: Laptop, tmp_path: Path, bind: str) -> None:
    laptop.leave(600)
    with serving(tmp_path / "server", EVERKEPT_BIND=bind) as (server, url):
        worker = laptop.start_worker(url)
        while laptop.spool.state().waiting == 600 and worker.poll() is None:
            time.sleep(0.01)
        server.kill()
        out, _ = worker.communicate(timeout=WAIT_S)
        told = json.loads(out)
        assert told["sent"] + told["waiting"] == 600
        assert 0 < told["waiting"] < 600
        assert worker.returncode == 3
    with serving(tmp_path / "server", EVERKEPT_BIND=bind) as (_, url):
        code, told = laptop.work(url)
        assert (code, told["waiting"]) == (0, 0)
        assert Counter(prompts_at(url)) == Counter(f"prompt number {number}" for number in range(600))
    assert laptop.spool.state().aside == 0


def test_a_worker_that_is_killed_in_the_middle_sends_the_rest_and_nothing_twice(laptop: Laptop, tmp_path: Path) -> None:
    laptop.leave(600)
    with serving(tmp_path / "server") as (_, url):
        worker = laptop.start_worker(url)
        while laptop.spool.state().waiting == 600 and worker.poll() is None:
            time.sleep(0.01)
        worker.send_signal(signal.SIGKILL)
        worker.communicate()
        code, told = laptop.work(url)
        assert (code, told["waiting"]) == (0, 0)
        assert Counter(prompts_at(url)) == Counter(f"prompt number {number}" for number in range(600))


def test_with_a_wrong_key_everything_waits_and_with_a_projects_key_it_goes_there(
    laptop: Laptop, tmp_path: Path
) -> None:
    laptop.leave(20)
    with serving(tmp_path / "server", EVERKEPT_ADMIN_KEY=ADMIN) as (_, url):
        asked(url, "/v1/projects", key=ADMIN, body={"name": "theirs"})
        key = asked(url, "/v1/keys", key=ADMIN, body={"name": "laptop", "project": "theirs"})["token"]
        code, told = laptop.work(url, EVERKEPT_API_KEY="ek_wrong")
        assert (code, told["sent"], told["waiting"], told["set_aside"]) == (3, 0, 20, {})
        assert told["trouble"]["code"] == "unauthorized"
        code, told = laptop.work(url, EVERKEPT_API_KEY=key)
        assert (code, told["sent"], told["waiting"]) == (0, 20, 0)
        assert len(prompts_at(url, "theirs", key)) == 20


def test_a_hook_starts_the_worker_that_sends_and_only_one_is_awake(laptop: Laptop, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "everkept", "worker", "--until-idle"]
    (laptop.home / "worker.json").write_text(json.dumps(command))
    with serving(tmp_path / "server") as (_, url):
        assert run_hook(laptop, url, "SessionStart", source="startup") == ""
        run_hook(laptop, url, "UserPromptSubmit", prompt="Fix the login test")
        try:
            end = time.monotonic() + WAIT_S
            while laptop.spool.state().waiting and time.monotonic() < end:
                time.sleep(0.05)
            assert prompts_at(url) == ["Fix the login test"]
            code, told = laptop.work(url)
            assert (code, told["sent"]) == (0, 0)
        finally:
            stop_worker(laptop.home)


def run_hook(laptop: Laptop, url: str, event: str, **payload: Any) -> str:
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(laptop.home / "hook.py"), "--agent", "claude-code"],
        input=json.dumps({"hook_event_name": event, "cwd": str(laptop.app), "session_id": "s-1", **payload}),
        capture_output=True, text=True, timeout=WAIT_S, check=True, env=plain_environment(EVERKEPT_URL=url),
    )  # fmt: skip
    return done.stdout
