"""Sessions of a coding agent that a person puts right in the same way each time, so that reviews propose a rule."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

FOLDER = "/home/marta/code/recipes"
DAYS = (
    ("Run the tests and mend the login", "src/login.ts", "No, use pnpm, not npm."),
    ("Add a page for a single recipe", "src/recipe.ts", "Use pnpm, not npm!"),
    ("Sort the shopping list by shelf", "src/shelves.ts", "Please use pnpm, not npm."),
)
"""(what was asked for, the file that was edited, how the person put the agent right)."""


def write_transcripts(folder: Path) -> list[Path]:
    """One file a session, as Claude Code keeps them."""
    written = []
    for n, (goal, file, correction) in enumerate(DAYS, 1):
        session = f"00000000-0000-4000-8000-{n:012}"
        path = folder / f"{session}.jsonl"
        lines = _lines(session, datetime(2026, 3, n, 9, tzinfo=UTC), _said(n, goal, file, correction))
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        written.append(path)
    return written


def _said(n: int, goal: str, file: str, correction: str) -> Iterator[tuple[str, Any]]:
    yield "user", goal
    yield "assistant", [_use(f"t{n}1", "Bash", command="npm test")]
    yield "user", [_result(f"t{n}1", "Error: this workspace is run with pnpm, and not with npm", failed=True)]
    yield "user", correction
    yield "assistant", [_use(f"t{n}2", "Bash", command="pnpm test")]
    yield "user", [_result(f"t{n}2", "12 passed")]
    yield "assistant", [_use(f"t{n}3", "Edit", file_path=f"{FOLDER}/{file}", old_string="a", new_string="b")]
    yield "user", [_result(f"t{n}3", "The file has been updated.")]
    yield "assistant", [{"type": "text", "text": f"Done: {goal[0].lower()}{goal[1:]}. The tests pass with pnpm."}]


def _use(name: str, tool: str, **given: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": tool, "input": given}


def _result(name: str, said: str, *, failed: bool = False) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": said, "is_error": failed}


def _lines(session: str, began: datetime, said: Iterator[tuple[str, Any]]) -> Iterator[dict[str, Any]]:
    before = None
    for n, (role, content) in enumerate(said):
        here = f"{n:08}{session[8:]}"
        yield {
            "parentUuid": before, "isSidechain": False, "userType": "external", "cwd": FOLDER, "sessionId": session,
            "version": "2.1.31", "gitBranch": "main", "type": role, "uuid": here,
            "timestamp": (began + timedelta(seconds=40 * n)).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "message": {"role": role, "content": content, **({} if role == "user" else {"model": "claude-opus-4-5"})},
        }  # fmt: skip
        before = here
