"""A memory moves with the command, killed for real, while another process writes: what was answered is there, once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import psycopg
import pytest
from tests.contract.moving import empty_url

KILLED_AFTER_LINES = (1, 3)
"""Lines of progress after which a mover is killed; then one is left alone."""
WRITER = """
from threading import Event
from everkept import Memory
from everkept.errors import StoreMoved
with Memory.open() as memory:
    for n in range(1_000_000):
        try:
            memory.add(f"turn {n}", thread="t", subject="ana", key=f"k{n}")
        except StoreMoved as error:
            print(error.message, flush=True)
            break
        print(n, flush=True)
        Event().wait(0.02)  # some fifty a second: how fast a mover follows is no matter here
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "EVERKEPT_HOME": str(tmp_path / "home"), "EVERKEPT_MODEL": "none"}


class Writer:
    """A process that writes until the memory has moved; `answered`: what it was told."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", WRITER], env=environment, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.answered = [self._process.stdout.readline().strip() for _ in range(20)]
        self._listening = threading.Thread(target=self._listen, args=(self._process.stdout,))
        self._listening.start()

    def _listen(self, told: IO[str]) -> None:
        with told:
            self.answered += [line.strip() for line in told]

    def wait(self) -> int:
        self._listening.join(timeout=120)
        return self._process.wait(timeout=60)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._listening.join()


@pytest.fixture
def writer(environment: dict[str, str]) -> Iterator[Writer]:
    made = Writer(environment)
    yield made
    made.kill()


def mover(environment: dict[str, str], *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "everkept", "move", "--json", *words]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def everkept(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "everkept", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180, check=False)


def test_a_mover_is_killed_again_and_again_while_another_process_writes(
    environment: dict[str, str], writer: Writer
) -> None:
    url = empty_url()
    for lines in KILLED_AFTER_LINES:
        with mover(environment, "--to", url) as killed:
            assert killed.stderr is not None
            for _ in range(lines):
                assert json.loads(killed.stderr.readline())["phase"]
            killed.kill()
    with mover(environment, "--to", url) as last:
        said, progress = last.communicate(timeout=180)
    assert last.returncode == 0, progress
    moved = json.loads(said)

    assert writer.wait() == 0
    *answers, refused = writer.answered
    assert refused.startswith("this memory has moved to postgresql://")
    assert answers == [str(n) for n in range(len(answers))]
    with psycopg.connect(url, autocommit=True) as raw:
        raw.execute("select set_config('everkept.everything', 'on', false)")
        kept = [text for (text,) in raw.execute("select content from events order by seq")]
    assert kept == [f"turn {n}" for n in range(len(answers))]
    assert moved["rows"]["events"] == len(answers)
    assert 0 < moved["switch_s"] < 60

    status = json.loads(everkept(environment, "status", "--json").stdout)
    assert status["store"]["failing"].startswith("this memory has moved to")
    assert [f["cause"] for f in json.loads(everkept(environment, "doctor", "--json").stdout)["findings"]] == [
        "memory_moved"
    ]
    here = {**environment, "EVERKEPT_DATABASE_URL": url}
    assert json.loads(everkept(here, "status", "--json").stdout)["messages"] == len(answers)


def test_the_command_says_what_it_needs(environment: dict[str, str], tmp_path: Path) -> None:
    here, there = f"sqlite:///{tmp_path}/here.db", f"sqlite:///{tmp_path}/there.db"
    used = {**environment, "EVERKEPT_DATABASE_URL": here}
    assert everkept(used, "move", "--to", there).returncode == 4, "there is no memory yet"
    assert everkept(used, "add", "--thread", "t", "--subject", "ana", "hello").returncode == 0
    assert everkept(used, "move").returncode == 2
    assert everkept(used, "move", "--to", "mysql://there").returncode == 2
    assert everkept(used, "move", "--to", here).returncode == 2
    assert everkept(used, "move", "--cancel").returncode == 4, "none is under way"
    done = everkept(used, "move", "--to", there)
    assert done.returncode == 0, done.stderr
    assert "were compared" in done.stdout
    refused = everkept(used, "add", "--thread", "t", "hello again")
    assert refused.returncode == 3
    assert f"this memory has moved to {tmp_path}/there.db" in refused.stderr
    other = everkept(used, "move", "--to", f"sqlite:///{tmp_path}/other.db")
    assert other.returncode == 3
    assert not (tmp_path / "other.db").exists()
    full = everkept({**environment, "EVERKEPT_DATABASE_URL": there}, "move", "--to", here)
    assert full.returncode == 4
    assert "holds a memory" in full.stderr
