from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from everkept.doors.cli import processes
from everkept.errors import ConfigInvalid, InvalidInput


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = sys.getswitchinterval()
    monkeypatch.setenv("EVERKEPT_HOME", str(tmp_path))
    yield
    sys.setswitchinterval(before)


def test_a_worker_lets_answers_through_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERKEPT_URL", "http://127.0.0.1:9")
    with pytest.raises(InvalidInput):
        asyncio.run(processes.worker())
    assert sys.getswitchinterval() == pytest.approx(processes.SWITCH_S)


def test_a_server_lets_answers_through_its_work() -> None:
    with pytest.raises(ConfigInvalid):
        asyncio.run(processes.serve(bind="nowhere"))
    assert sys.getswitchinterval() == pytest.approx(processes.SWITCH_S)
