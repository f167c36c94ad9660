"""What the pages and examples/ show runs as it stands, in a home of its own, without a key."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.stubs.real_server import serving

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


def test_changes_are_followed_once_they_are_acknowledged(tmp_path: Path) -> None:
    home = tmp_path / "home"
    run(ROOT / "examples" / "chat_assistant.py", home)
    first = run(ROOT / "examples" / "follow_changes.py", home)
    assert "messages.appended monday (user_42)" in first
    assert "fact.added" in first
    assert "messages.appended monday" not in run(ROOT / "examples" / "follow_changes.py", home)


def test_http_client_needs_nothing_but_a_server(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as (_, url):
        shown = run(ROOT / "examples" / "http_client.py", tmp_path / "home", url)
        again = run(ROOT / "examples" / "http_client.py", tmp_path / "home", url)
    assert "evt_1_1 is remembered" in shown
    assert "Marta moved to Porto" in shown
    assert "evt_1_1 is remembered" in again
    assert "evt_1_3" not in again
