"""Rules of the house that hold for every file."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
LOCK = (ROOT / "requirements.lock").read_text("utf-8")
BASE_MAX = 11
UNLOCKED = {"all", "peers"}
"""Extras that the lock does not pin: what only joins others, and other people's systems, which live by themselves."""
LEFTOVER = re.compile(r"\b(TO" + r"DO|FIX" + r"ME)\b")
BINARY = {".png", ".jpg", ".gif", ".ico", ".woff2", ".db", ".npz", ".npy"}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def requirement_name(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found, requirement
    return normal(found[0])


def direct_requirements() -> list[str]:
    groups = [PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"].values()]
    extras = PROJECT["project"]["optional-dependencies"]
    groups += [group for name, group in extras.items() if name not in UNLOCKED]
    return sorted({r for group in groups for r in group if requirement_name(r) != "everkept"})


def locked_versions() -> dict[str, list[str]]:
    versions: dict[str, list[str]] = {}
    for name, version in re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", LOCK, re.MULTILINE):
        versions.setdefault(normal(name), []).append(version)
    return versions


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def tracked_files() -> list[Path]:
    """What git has or would take, so that a new file counts before it is committed; no words of other people."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    names = [name for name in listed.split("\0") if name and not name.startswith("tests/data/transcripts/")]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def test_base_has_few_direct_dependencies() -> None:
    assert len(PROJECT["project"]["dependencies"]) <= BASE_MAX


@pytest.mark.parametrize("requirement", direct_requirements())
def test_lock_is_in_step(requirement: str) -> None:
    locked = locked_versions().get(requirement_name(requirement))
    assert locked, f"{requirement} is not in requirements.lock; run make lock"
    least = re.search(r">=\s*([0-9][^,;\s]*)", requirement)
    assert least, f"{requirement} needs a lower bound"
    assert all(numbers(version) >= numbers(least[1]) for version in locked)


def test_lock_names_no_place() -> None:
    """The lock must work on every machine: no registry, no folder, a hash for each file."""
    lines = [line for line in LOCK.splitlines() if not line.lstrip().startswith("--hash=")]
    assert not [line for line in lines if "://" in line or line.startswith(("-", "/", ".", "#"))]
    assert LOCK.count("--hash=sha256:") >= len(lines)


def test_nothing_is_left_to_do() -> None:
    files = [path for path in tracked_files() if path.suffix not in BINARY]
    left = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in files
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if LEFTOVER.search(line)
    ]
    assert files
    assert not left


def test_layers_hold() -> None:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    done = subprocess.run([*command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_make_help_lists_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony
    described = re.findall(r"^([a-z]+):.*## \S", makefile, re.MULTILINE)
    assert sorted(described) == sorted(phony[1].split())
