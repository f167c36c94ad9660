"""The commands in agents' settings: stable, quoted, and ours only where they are."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from everkept.errors import CannotWire
from everkept.wiring import command


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A virtual environment that this process seems to run in, where nothing counts as temporary."""
    monkeypatch.setattr(command, "_temporary_roots", lambda _: iter(()))
    root = tmp_path / "venv"
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "python").symlink_to(sys.executable)
    monkeypatch.setattr(sys, "prefix", str(root))
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    return root


def test_the_interpreter_is_the_environments_own_link_however_we_were_started(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("python3", "python3.11", "../bin/python"):
        monkeypatch.setattr(sys, "executable", str(environment / "bin" / name))
        assert command.find_interpreter() == str(environment / "bin" / "python")


def test_homebrews_versioned_folder_is_named_by_its_stable_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: Path
) -> None:
    versioned = tmp_path / "brew" / "Cellar" / "everkept" / "0.1.0" / "libexec"
    (versioned / "bin").mkdir(parents=True)
    (versioned / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "brew" / "opt").mkdir()
    (tmp_path / "brew" / "opt" / "everkept").symlink_to(tmp_path / "brew" / "Cellar" / "everkept" / "0.1.0")
    monkeypatch.setattr(sys, "prefix", str(versioned))
    assert command.find_interpreter() == str(tmp_path / "brew" / "opt" / "everkept" / "libexec" / "bin" / "python")


@pytest.mark.parametrize(
    ("place", "variables"),
    [
        ("venv", {"TMPDIR": "{root}"}),
        (".cache/uv/archive-v0/ab12", {}),
        ("elsewhere/environments-v2/everkept-1234", {}),
        ("uv-cache/x", {"UV_CACHE_DIR": "{root}/uv-cache"}),
        ("pipx/.cache/6c3f", {"PIPX_HOME": "{root}/pipx"}),
    ],
)
def test_a_temporary_environment_is_refused_with_the_way_out(
    place: str, variables: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / place
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "python").symlink_to(sys.executable)
    monkeypatch.setattr(sys, "prefix", str(root))
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    monkeypatch.setattr("tempfile.gettempdir", lambda: "/nowhere")
    with pytest.raises(CannotWire, match=r"uv tool install everkept.*--interpreter"):
        command.find_interpreter(env={name: value.format(root=tmp_path) for name, value in variables.items()})


def test_a_given_interpreter_is_taken_as_it_is_once_it_has_everkept(tmp_path: Path) -> None:
    shim = tmp_path / "shim"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    shim.chmod(0o755)
    assert command.find_interpreter(shim) == str(shim)


@pytest.mark.parametrize(
    ("script", "words"), [("#!/bin/sh\necho no such module >&2; exit 1\n", "no such"), (None, "not a")]
)
def test_an_interpreter_that_cannot_run_everkept_is_refused(script: str | None, words: str, tmp_path: Path) -> None:
    path = tmp_path / "python"
    if script:
        path.write_text(script)
        path.chmod(0o755)
    with pytest.raises(CannotWire, match=words):
        command.find_interpreter(path)


@pytest.mark.parametrize("home", ["/home/a b/.everkept", "/home/o'neil/.everkept", "/home/$X/`y`/é"])
def test_the_command_survives_the_shell(home: str) -> None:
    line = command.hook_command(Path(home), "codex", "/opt/my env/bin/python")
    done = subprocess.run(["/bin/sh", "-c", f"printf '%s\\n' {line}"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["/opt/my env/bin/python", "-I", "-S", f"{home}/hook.py", "--agent", "codex"]
    assert command.is_our_hook(line, Path(home))


def test_the_command_holds_no_setting_and_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERKEPT_API_KEY", "ek_secret")
    monkeypatch.setenv("EVERKEPT_URL", "http://somewhere")
    line = command.hook_command(Path("/h"), "cursor", "/p")
    assert shlex.split(line) == ["/p", "-I", "-S", "/h/hook.py", "--agent", "cursor"]
    assert "=" not in line


@pytest.mark.parametrize(
    "foreign",
    [
        "say done",
        "/p -I -S /other/hook.py --agent codex",
        "/p /h/hook.py",
        "echo '/h/hook.py --agent x",
        "",
        None,
        3,
        [],
    ],
)
def test_only_our_own_hook_is_ours(foreign: object) -> None:
    assert not command.is_our_hook(foreign, Path("/h"))
    assert command.is_our_hook("/older/python3 -I -S /h/hook.py --agent codex", Path("/h"))
