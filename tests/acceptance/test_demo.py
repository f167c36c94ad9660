"""`everkept demo` in a process of its own: it ends by itself, and shows what it promises."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from everkept.demo import questions

TIMEOUT_S = 600  # it ends by itself in seconds; a machine with other work may take its time
BYTECODE = str(Path(tempfile.gettempdir()) / "everkept-test-bytecode")
"""Modules are compiled once for all processes, also where the checkout may not be written to."""


def play(*arguments: str, width: int = 80, **settings: str) -> subprocess.CompletedProcess[str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("EVERKEPT_")}
    return subprocess.run(
        [sys.executable, "-m", "everkept", "demo", *arguments],
        env=plain | {"COLUMNS": str(width), "PYTHONPYCACHEPREFIX": BYTECODE, "PYTHONDONTWRITEBYTECODE": "", **settings},
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT_S,
        check=False,
    )


@pytest.mark.parametrize("width", [80, 120])
def test_demo_ends_by_itself_with_everything_remembered(width):
    played = play(width=width)
    assert played.returncode == 0, played.stderr
    for words in (
        "Everkept demo",
        "No model key: deterministic extraction",
        "205 of 205",
        "healthy",
        "everkept import my-chat.jsonl --subject me",
        "All 205 messages are remembered.",
    ):
        assert words in played.stdout
    assert all(question.text in " ".join(played.stdout.split()) for question in questions())
    assert max(map(len, played.stdout.splitlines())) <= width
    assert "\x1b" not in played.stdout + played.stderr
    assert "Traceback" not in played.stderr


def test_demo_finds_what_it_asks_for():
    played = play("--json")
    assert played.returncode == 0, played.stderr
    shown = json.loads(played.stdout)
    assert shown["import"]["stored"] == shown["remembered"] == 205
    assert all(answer["results"] for answer in shown["recalls"])
    assert shown["facts"]
    assert all(fact["quote"] for fact in shown["facts"])


def test_demo_leaves_the_readers_own_memory_alone(tmp_path: Path):
    mine = tmp_path / "mine"
    played = play(EVERKEPT_HOME=str(mine), EVERKEPT_DATABASE_URL=f"sqlite:///{mine}/everkept.db")
    assert played.returncode == 0, played.stderr
    assert not mine.exists()


def test_demo_keeps_its_memory_where_it_is_told(tmp_path: Path):
    kept = tmp_path / "kept"
    assert play("--home", str(kept)).returncode == 0
    assert (kept / "everkept.db").exists()
    again = play("--home", str(kept))
    assert again.returncode == 0, again.stderr
    assert "0 messages in 10 threads, 205 accepted before" in again.stdout
