"""One import of a history leaves what the sessions of it, one after another, would have left (D03)."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.stubs.replayed import plain_environment

from everkept.hook.hook_script import place_of, scope_key

QUESTION = "Should the invoices keep the old currency rounding rule?"
NOW = datetime.now(UTC).replace(microsecond=0)


def transcript(folder: Path, name: str, work: Path, begun: datetime, last: str) -> None:
    """As Claude Code writes it."""

    def line(number: int, kind: str, content: Any) -> str:
        at = (begun + timedelta(seconds=number)).isoformat().replace("+00:00", "Z")
        return json.dumps({"type": kind, "uuid": f"{name}-{number}", "sessionId": name, "cwd": str(work),
                           "timestamp": at, "message": {"role": kind, "content": content}})  # fmt: skip

    asked = f"Rename the parser of module {name} and everything that calls it. " * 8
    lines = [line(1, "user", asked), line(2, "assistant", [{"type": "text", "text": last}])]
    (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")


def test_an_import_carries_open_ends_and_leaves_the_start_pack_of_its_folder(tmp_path: Path) -> None:
    """The file of the newer session comes first by its name."""
    history, home, work = tmp_path / "history", tmp_path / "home", tmp_path / "app"
    history.mkdir()
    (work / ".git").mkdir(parents=True)
    (work / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (work / ".git" / "config").write_text('[remote "origin"]\n\turl = git@example.com:acme/app.git\n')
    transcript(history, "a-newer", work, NOW - timedelta(days=2), "All of it is renamed.")
    transcript(history, "b-older", work, NOW - timedelta(days=4), QUESTION)
    environment = plain_environment(HOME=str(tmp_path), EVERKEPT_HOME=str(home), COLUMNS="140")

    def everkept(*words: str) -> str:
        done = subprocess.run([sys.executable, "-m", "everkept", *words], env=environment, cwd=work,
                              capture_output=True, encoding="utf-8", timeout=120, check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    everkept("import", "claude-code", str(history))
    [offered] = json.loads(everkept("handoffs", "--json"))["items"]
    assert "a-newer" in offered["title"]
    assert f"{QUESTION}” (open since 1 session before)" in offered["body"]
    listed = json.loads(everkept("sessions", "--json"))["items"]
    assert [one["native_id"] for one in listed] == ["a-newer", "b-older"]
    key = scope_key({"cwd": str(work), "place": place_of(str(work))})
    pack = json.loads((home / "start" / f"{key}.json").read_text("utf-8"))
    assert QUESTION in pack["text"]
