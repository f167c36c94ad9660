"""The hook that agents run, as one file of the standard library (`hook_script`), and how it comes into a home."""

from __future__ import annotations

import os
import py_compile
import shutil
from pathlib import Path

from everkept.hook import hook_script
from everkept.hook.ready_patterns import ready_patterns

FILES = ("everkept_hook_patterns.py", "everkept_hook.py", "hook.py")
"""Names in the home, in the order in which they are put there: what is started comes last."""


def install_hook(home: Path) -> Path:
    """Put the hook into the home, or this version's over the one that is there; the file to run, `<home>/hook.py`.

    Its path and its bytes stay the same over upgrades; what it runs is replaced whole, so that a hook that starts
    meanwhile sees the old or the new. A file that has the right bytes already is not touched. Raises OSError.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    here = Path(__file__).parent
    sources = (ready_patterns().encode(), *((here / name).read_bytes() for name in ("hook_script.py", "hook_start.py")))
    for name, source in zip(FILES, sources, strict=True):
        _place(home / name, source)
    for module in FILES[:-1]:
        py_compile.compile(str(home / module), quiet=2)  # else the first hook does it
    return home / "hook.py"


def remove_hook(home: Path) -> None:
    """Take away what `install_hook` put into the home. Raises OSError."""
    for name in FILES:
        (home / name).unlink(missing_ok=True)
    shutil.rmtree(home / "__pycache__", ignore_errors=True)


def main() -> None:
    """The console script `everkept-hook`."""
    hook_script.main()


def _place(target: Path, data: bytes) -> None:
    if target.is_file() and not target.is_symlink() and target.read_bytes() == data:
        return
    half = target.with_name(f".{target.name}.{os.getpid()}")
    half.unlink(missing_ok=True)
    with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    half.replace(target)
