"""The store that these pages are looked at with: the demo's conversations, and sessions of a coding agent, reviewed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.web.agent_days import write_transcripts

TRANSCRIPT = Path(__file__).parents[1] / "data/transcripts/entireio-cli/claude-code-2.1.31-small.jsonl"


def fill(home: Path, folder: Path) -> None:
    """`folder` is empty, and takes the transcripts that are imported. One proposal awaits a decision afterwards."""
    write_transcripts(folder)
    for words in (
        ["demo", "--home", str(home)],
        ["import", "claude-code", str(TRANSCRIPT), "--project", "default"],
        ["import", "claude-code", str(folder), "--project", "default"],
        ["review", "--since", "2026-03-01", "--project", "default"],
        ["webhooks", "add", "crm", "https://crm.invalid/hook", "--after", "0"],
    ):
        _everkept(home, *words)


def _everkept(home: Path, *words: str) -> None:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("EVERKEPT_")}
    done = subprocess.run(
        [sys.executable, "-m", "everkept", *words], env={**plain, "EVERKEPT_HOME": str(home)}, capture_output=True,
        text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
