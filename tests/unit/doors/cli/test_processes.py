from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from everkept.config import Settings
from everkept.doors.cli import backend, processes
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


@pytest.mark.parametrize(("workers", "works", "slots"), [(None, True, 7), (0, False, 7), (1, True, 1), (12, True, 12)])
def test_a_server_works_as_many_jobs_at_once_as_it_is_told(
    monkeypatch: pytest.MonkeyPatch, workers: int | None, works: bool, slots: int
) -> None:
    served: list[tuple[bool, int]] = []

    async def serve_http(settings: Settings, *, worker: bool) -> None:
        served.append((worker, settings.work.slots))

    monkeypatch.setattr(backend, "serve_http", serve_http)
    monkeypatch.setenv("EVERKEPT_WORK__SLOTS", "7")
    asyncio.run(processes.serve(workers=workers))
    assert served == [(works, slots)]


@pytest.mark.parametrize("workers", [-1, 257])
def test_a_number_of_workers_that_cannot_be_is_refused_with_the_limit(workers: int) -> None:
    with pytest.raises(ConfigInvalid, match=r"work\.slots must be a whole number from 1 to 256"):
        asyncio.run(processes.serve(workers=workers))
