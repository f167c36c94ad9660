"""`everkept install` and `uninstall` as people use them: real processes, a home folder of their own."""

from __future__ import annotations

import json
import os
import select
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

TIMEOUT_S = 60
Run = Callable[..., subprocess.CompletedProcess[str]]
SETTINGS = '{\n  // mine\n  "model": "opus",\n}\n'


@pytest.fixture
def user(tmp_path: Path) -> Path:
    folder = tmp_path / "user"
    (folder / ".claude").mkdir(parents=True)
    (folder / ".claude" / "settings.json").write_text(SETTINGS)
    (folder / ".codex").mkdir()
    return folder


@pytest.fixture
def everkept(user: Path) -> Run:
    hidden = ("EVERKEPT_", "CLAUDE_", "CODEX_", "GEMINI_", "XDG_")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        own = {"HOME": str(user), "EVERKEPT_HOME": str(user / ".everkept"), "COLUMNS": "100"}
        return subprocess.run(
            [sys.executable, "-m", "everkept", *arguments], env=plain | own, stdin=subprocess.DEVNULL,
            capture_output=True, encoding="utf-8", timeout=TIMEOUT_S, check=False,
        )  # fmt: skip

    return run


def files(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file() and ".everkept" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_without_a_terminal_the_change_is_only_shown(everkept: Run, user: Path) -> None:
    before = files(user)
    done = everkept("install", "claude-code", "--interpreter", sys.executable)
    assert done.returncode == 5
    assert "+++ " in done.stdout
    assert "hook.py --agent claude-code" in done.stdout
    assert "--yes" in done.stderr
    assert files(user) == before


def test_install_twice_and_uninstall_leave_everything_as_it_was(everkept: Run, user: Path) -> None:
    before = files(user)
    done = everkept("install", "--all", "--yes", "--interpreter", sys.executable)
    assert done.returncode == 0, done.stderr
    assert "/hooks" in done.stderr
    wired = files(user)
    again = everkept("install", "--all", "--interpreter", sys.executable)
    assert (again.returncode, again.stdout, files(user)) == (0, "", wired)
    gone = everkept("uninstall", "--all", "--yes")
    assert gone.returncode == 0, gone.stderr
    assert files(user) == before
    assert everkept("uninstall", "--all").returncode == 0


def test_the_command_that_was_put_into_the_settings_keeps_an_event(everkept: Run, user: Path, tmp_path: Path) -> None:
    assert everkept("install", "codex", "--yes", "--interpreter", sys.executable).returncode == 0
    (user / ".everkept" / "worker.json").unlink()  # no worker, so that what was kept can be looked at
    hooks = json.loads((user / ".codex" / "hooks.json").read_text())["hooks"]
    command = hooks["UserPromptSubmit"][0]["hooks"][0]["command"]
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": str(tmp_path), "prompt": "find the bug"}
    done = subprocess.run(
        ["/bin/sh", "-c", command], input=json.dumps(event), env={"HOME": str(user), "PATH": os.defpath},
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "{}", "")
    kept = [path for path in (user / ".everkept").rglob("*") if path.is_file() and b"find the bug" in path.read_bytes()]
    assert len(kept) == 1
    assert shlex.split(command)[0] == sys.executable


def test_the_hook_wakes_the_worker_that_the_install_named(everkept: Run, user: Path, tmp_path: Path) -> None:
    """The Python is a script that tells with what it was started as a worker, and is Python for all else."""
    told = tmp_path / "told"
    os.mkfifo(told)
    python = tmp_path / "python"
    worker = f'case "$*" in *" worker "*) echo "$*" > {told};; *) exec {sys.executable} "$@";; esac'
    python.write_text(f"#!/bin/sh\n{worker}\n")
    python.chmod(0o755)
    assert everkept("install", "codex", "--yes", "--interpreter", str(python)).returncode == 0
    hooks = json.loads((user / ".codex" / "hooks.json").read_text())["hooks"]
    pipe = os.open(told, os.O_RDONLY | os.O_NONBLOCK)
    try:
        subprocess.run(
            ["/bin/sh", "-c", hooks["Stop"][0]["hooks"][0]["command"]], input='{"hook_event_name": "Stop"}', text=True,
            env={"HOME": str(user), "PATH": os.defpath}, cwd=tmp_path, timeout=TIMEOUT_S, check=True,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        ready, _, _ = select.select([pipe], [], [], TIMEOUT_S)
        assert ready, "no worker was started"
        assert os.read(pipe, 1000).decode().split() == ["-m", "everkept", "worker", "--until-idle"]
    finally:
        os.close(pipe)


def test_json_tells_what_was_changed(everkept: Run) -> None:
    told = json.loads(everkept("install", "codex", "--yes", "--json", "--interpreter", sys.executable).stdout)
    assert told["applied"] is True
    assert [Path(each["path"]).name for each in told["agents"][0]["changes"]] == [
        "hooks.json",
        "config.toml",
        "AGENTS.md",
    ]


def test_a_plugin_is_written_and_nothing_else(everkept: Run, user: Path, tmp_path: Path) -> None:
    before = files(user)
    folder = tmp_path / "plugin"
    done = everkept("install", "claude-code", "--plugin", str(folder), "--interpreter", sys.executable)
    assert done.returncode == 0, done.stderr
    assert str(folder / "hooks" / "hooks.json") in done.stdout
    assert files(user) == before
    assert everkept("install", "codex", "--plugin", str(folder), "--interpreter", sys.executable).returncode == 2


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [('{\n  "a": 1\n  "b": 2\n}', 0o644, "settings.json, line 3"), ("{}", 0o444, "is read-only")],
)
def test_files_that_must_not_be_changed_are_a_clear_error(
    content: str, mode: int, words: str, everkept: Run, user: Path
) -> None:
    path = user / ".claude" / "settings.json"
    path.write_text(content)
    path.chmod(mode)
    before = files(user)
    done = everkept("install", "--all", "--yes", "--interpreter", sys.executable)
    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert files(user) == before


@pytest.mark.parametrize(
    "arguments", [("install",), ("install", "emacs"), ("install", "codex", "--all"), ("uninstall",)]
)
def test_it_must_be_said_which_agents(arguments: tuple[str, ...], everkept: Run) -> None:
    done = everkept(*arguments, *(("--interpreter", sys.executable) if "install" in arguments else ()))
    assert done.returncode == 2
    assert "error: " in done.stderr


def test_a_temporary_environment_is_refused(everkept: Run, user: Path, tmp_path: Path) -> None:
    """A copy of the environment's links in a folder that is cleaned up."""
    environment = tmp_path / "archive-v0" / "x"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin" / "python").symlink_to(Path(sys.executable).resolve())
    shutil.copy(Path(sys.prefix) / "pyvenv.cfg", environment / "pyvenv.cfg")
    site = next(path for path in map(Path, sys.path) if path.name == "site-packages")
    done = subprocess.run(
        [str(environment / "bin" / "python"), "-m", "everkept", "install", "codex", "--yes"],
        env={"HOME": str(user), "PATH": os.defpath, "PYTHONPATH": os.pathsep.join([str(site), *_sources()])},
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 1
    assert "which will be cleaned up" in done.stderr
    assert not (user / ".codex" / "hooks.json").exists()


def _sources() -> list[str]:
    import everkept

    return [str(Path(everkept.__file__).parents[1])]
