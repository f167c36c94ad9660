"""What the pages and examples/ show runs as it stands, in a home of its own, without a key."""

from __future__ import annotations

import os
import queue
import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import httpx2
import pytest
from tests.stubs.real_server import WAIT_S, serving

from everkept import Memory
from everkept.domain.signatures import secret_of

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
GIVEN = 'SYSTEM = "Answer from memory.\\n"\ndef llm(system, user):\n    return "You live in Porto."\n'
"""What the README says is the reader's own."""


def run(code: str | Path, home: Path, *arguments: str) -> str:
    command = [str(code)] if isinstance(code, Path) else ["-c", code]
    done = subprocess.run(
        [sys.executable, "-W", "error", *command, *arguments],
        env={**os.environ, "EVERKEPT_HOME": str(home), "PYTHONIOENCODING": "utf-8"},
        cwd=home.parent,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("page", "given"),
    [("README.md", GIVEN), ("docs/chat.md", ""), ("docs/recall.md", "")],
    ids=lambda word: word if word.endswith(".md") else "",
)
def test_python_of_a_page_runs_from_top_to_bottom(page: str, given: str, tmp_path: Path) -> None:
    blocks = BLOCK.findall((ROOT / page).read_text("utf-8"))
    assert blocks
    run(given + "\n".join(blocks), tmp_path / "home")


def test_chat_assistant_remembers_across_conversations(tmp_path: Path) -> None:
    shown = run(ROOT / "examples" / "chat_assistant.py", tmp_path / "home")
    assert shown.startswith("I remember: - ")
    assert "allergic to hazelnuts" in shown.splitlines()[0]
    assert "lives in Porto" in shown


def test_changes_are_followed_and_each_has_its_effect_once(tmp_path: Path) -> None:
    home, mirror = tmp_path / "home", str(tmp_path / "mirror.db")
    run(ROOT / "examples" / "chat_assistant.py", home)
    first = run(ROOT / "examples" / "follow_changes.py", home, mirror)
    assert "messages.appended monday (user_42)" in first
    assert "fact.added" in first
    assert run(ROOT / "examples" / "follow_changes.py", home, mirror) == "", "all of it was acknowledged"
    with Memory.open(home, worker=False) as memory:
        memory.replay("example-mirror", 0)
    assert run(ROOT / "examples" / "follow_changes.py", home, mirror) == "", "given again, and known by the inbox"


def test_webhooks_are_received_checked_and_have_their_effect_once(tmp_path: Path) -> None:
    home, secret = tmp_path / "home", secret_of(b"k" * 32)
    with (
        receiving(tmp_path / "got.db", secret) as (address, line),
        serving(home, EVERKEPT_WEBHOOKS__ALLOW_PRIVATE="true") as (_, url),
        Memory.connect(url) as memory,
    ):
        memory.remember("Marta lives in Porto", subject="user_42")
        httpx2.post(f"{url}/v1/webhooks", json={"name": "x", "url": address, "after": 0}).raise_for_status()
        with closing(sqlite3.connect(home / "everkept.db")) as store:  # the receiver began before there was a secret
            store.execute("update webhooks set secret = ?", (secret,))
            store.commit()
        seqs = [change.seq for change in memory.changes().changes]
        assert [int(line().split()[0]) for _ in seqs] == seqs
        httpx2.post(f"{url}/v1/webhooks/whk_1/replay", json={"after": 0}).raise_for_status()
        memory.remember("Marta works at Acme", subject="user_42")
        assert int(line().split()[0]) == seqs[-1] + 1, "what was sent twice is done once"


@contextmanager
def receiving(database: Path, secret: str) -> Iterator[tuple[str, Callable[[], str]]]:
    """The address of examples/webhook_receiver.py, and what it prints next."""
    receiver = subprocess.Popen(
        [sys.executable, "-W", "error", str(ROOT / "examples" / "webhook_receiver.py"), "0", str(database)],
        env={**os.environ, "WEBHOOK_SECRET": secret}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        assert receiver.stdout is not None
        with receiver.stdout as printed:
            for line in printed:
                lines.put(line)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield lines.get(timeout=WAIT_S).split()[-1], partial(lines.get, timeout=WAIT_S)
    finally:
        receiver.kill()
        receiver.wait()
        reader.join()


def test_http_client_needs_nothing_but_a_server(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as (_, url):
        shown = run(ROOT / "examples" / "http_client.py", tmp_path / "home", url)
        again = run(ROOT / "examples" / "http_client.py", tmp_path / "home", url)
    assert "evt_1_1 is remembered" in shown
    assert "Marta moved to Porto" in shown
    assert "evt_1_1 is remembered" in again
    assert "evt_1_3" not in again
