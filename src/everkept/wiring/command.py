"""The commands that are put into agents' settings: they must read the same after every upgrade.

An agent that is shown another command asks for trust again, and a path that goes away fails at each event. So the
interpreter is named by the path that stays: the environment's own `bin/python`, with no link resolved.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from everkept.errors import CannotWire

CHECK_TIMEOUT_S: Final = 30.0
_THROW_AWAY = re.compile(r"^(archive|environments|builds)-v\d+$")
"""Folders in uv's cache that hold what `uvx` runs."""
_CELLAR = re.compile(r"^(?P<brew>.*)/Cellar/(?P<formula>[^/]+)/[^/]+/(?P<rest>.*)$")


def find_interpreter(given: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """The absolute path of the Python that runs Everkept, as it will still be after an upgrade.

    `given` is taken as it is, once it has shown that it can import Everkept. Raises CannotWire.
    """
    env = os.environ if env is None else env
    if given is not None:
        path = Path(os.path.abspath(given.expanduser()))  # `resolve` would follow the link that stays
        _check(path)
        return str(path)
    path = _without_cellar(_own_python())
    root = next((root for root in _temporary_roots(env) if _is_below(path, root)), None)
    if root is not None or any(_THROW_AWAY.match(part) for part in path.parts):
        raise CannotWire(
            f"this Everkept runs from {path.parent}, which will be cleaned up, and every hook would fail then; "
            "install it where it stays and run this again from there (`uv tool install everkept`, `pipx install "
            "everkept`, or `pip install` of a package or a checkout into a virtual environment outside of temporary "
            "folders), or name a Python that stays and has it: --interpreter VENV/bin/python",
            interpreter=str(path),
        )
    return str(path)


def hook_command(home: Path, agent: str, interpreter: str) -> str:
    """What an agent runs at each event, quoted for its shell; it holds neither settings nor secrets."""
    return shell_line(hook_argv(home, agent, interpreter))


def hook_argv(home: Path, agent: str, interpreter: str) -> list[str]:
    return [interpreter, "-I", "-S", str(home / "hook.py"), "--agent", agent]


def mcp_argv(agent: str, interpreter: str) -> list[str]:
    """The stdio server. `-P`: a folder `everkept` in the checkout where the agent runs must not stand in for ours."""
    return [interpreter, "-P", "-m", "everkept", "mcp", "--agent", agent]


def shell_line(argv: Sequence[str]) -> str:
    return subprocess.list2cmdline(argv) if os.name == "nt" else shlex.join(argv)


def words_of(line: str) -> list[str]:
    """A command line taken apart again. Raises ValueError for one that no shell would take."""
    if os.name == "nt":
        return [word.strip('"') for word in shlex.split(line, posix=False)]
    return shlex.split(line)


def is_our_hook(command: object, home: Path) -> bool:
    """Whether this command runs the hook of this home, whatever its interpreter."""
    if not isinstance(command, str):
        return False
    try:
        words = words_of(command)
    except ValueError:
        return False
    return any(pair == (str(home / "hook.py"), "--agent") for pair in pairwise(words))


def is_our_server(argv: object) -> bool:
    """Whether these words start our MCP server."""
    if not isinstance(argv, list):
        return False
    return any(argv[place : place + 3] == ["-m", "everkept", "mcp"] for place in range(len(argv)))


def _own_python() -> Path:
    if sys.prefix != sys.base_prefix:
        own = Path(sys.prefix) / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        if own.exists():  # the same, whether we were started as `python`, `python3` or by the script `everkept`
            return own
    return Path(sys.executable)


def _without_cellar(path: Path) -> Path:
    """Homebrew's `opt/NAME` instead of `Cellar/NAME/VERSION`, which the next upgrade deletes."""
    found = _CELLAR.match(path.as_posix())
    if found is None:
        return path
    stable = Path(found["brew"], "opt", found["formula"], found["rest"])
    return stable if stable.exists() and stable.samefile(path) else path


def _check(path: Path) -> None:
    if not path.is_file() or not os.access(path, os.X_OK):
        raise CannotWire(f"{path} is not a program that can be run", interpreter=str(path))
    try:
        done = subprocess.run(
            [str(path), "-P", "-c", "import everkept"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=CHECK_TIMEOUT_S,
            check=False, cwd=path.anchor,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotWire(f"{path} cannot be run: {error}", interpreter=str(path)) from error
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["it failed"])[-1]
        raise CannotWire(f"{path} cannot import everkept ({said}); install Everkept there first", interpreter=str(path))


def _temporary_roots(env: Mapping[str, str]) -> Iterator[Path]:
    """Folders that are cleaned up by the system, by uv or by pipx."""
    user = Path.home()
    cache = Path(env.get("XDG_CACHE_HOME") or user / ".cache")
    named = (env.get("TMPDIR"), env.get("UV_CACHE_DIR"))
    yield from (Path(name) for name in named if name)
    yield from (Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp"), Path("/private/tmp"))
    yield from (cache / "uv", user / ".cache/uv", user / "Library/Caches/uv", user / "AppData/Local/uv/cache")
    yield from (cache / "pipx", user / ".cache/pipx", user / ".local/pipx/.cache", user / ".local/share/pipx/.cache")
    yield Path(env.get("PIPX_HOME") or user / ".local/pipx") / ".cache"


def _is_below(path: Path, root: Path) -> bool:
    """By name, or by where the folder really is; the interpreter itself is a link and is not followed."""
    return path.is_relative_to(root) or path.parent.resolve().is_relative_to(root.resolve())
