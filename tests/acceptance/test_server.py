"""The server as a process: its address, its signals, what it refuses to do."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import httpx2
import pytest

WAIT_S = 60


@contextmanager
def serving(home: Path, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """(process, URL) of a server over the fake service, on a free port."""
    process = _start(home, **{"EVERKEPT_BIND": "127.0.0.1:0", **environment})
    try:
        yield process, _address(process.stderr)
    finally:
        process.kill()
        process.communicate(timeout=WAIT_S)


def _start(home: Path, **environment: str) -> subprocess.Popen[str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("EVERKEPT_")}
    return subprocess.Popen(
        [sys.executable, "-m", "tests.stubs.serve_fake"],
        env={**plain, "EVERKEPT_HOME": str(home), **environment},
        cwd=Path(__file__).parents[2],
        stderr=subprocess.PIPE,
        text=True,
    )


def _address(stderr: IO[str] | None) -> str:
    assert stderr is not None
    line = stderr.readline()
    found = re.fullmatch(r"Everkept listens on (http://\S+)\n", line)
    assert found, line
    return found[1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_a_request_lets_it_be_answered(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path, EVERKEPT_WORK__DRAIN_S="2.5") as (process, url):
        assert process.stderr is not None
        answers: list[httpx2.Response] = []
        body = {"content": "x", "subject": "ana"}
        request = threading.Thread(
            target=lambda: answers.append(httpx2.post(f"{url}/v1/threads/slow/messages", json=body, timeout=WAIT_S))
        )
        request.start()
        assert process.stderr.readline() == "appending\n"
        process.send_signal(number)
        request.join(WAIT_S)
        assert [answer.status_code for answer in answers] == [201]
        assert process.stderr.readline() == "closed with 2.5\n"
        assert process.wait(WAIT_S) == 0
        with pytest.raises(httpx2.ConnectError):
            httpx2.get(f"{url}/healthz")


def test_an_address_that_is_taken_is_said_and_the_store_is_closed(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        process = _start(tmp_path, EVERKEPT_BIND=f"127.0.0.1:{taken.getsockname()[1]}")
        _, told = process.communicate(timeout=WAIT_S)
    assert process.returncode == 3
    assert "closed with" in told
    assert "EVERKEPT_BIND" in told


def test_a_bind_that_others_reach_is_refused_without_a_key(tmp_path: Path) -> None:
    process = _start(tmp_path, EVERKEPT_BIND="0.0.0.0:0")
    _, told = process.communicate(timeout=WAIT_S)
    assert process.returncode == 2
    assert "everkept keys create" in told


def test_a_bind_that_others_reach_is_served_with_an_admin_key(tmp_path: Path) -> None:
    with serving(tmp_path, EVERKEPT_BIND="0.0.0.0:0", EVERKEPT_ADMIN_KEY="the-operators-own-key") as (_, url):
        port = url.rpartition(":")[2]
        status = f"http://127.0.0.1:{port}/v1/status"
        assert httpx2.get(status).status_code == 401
        assert httpx2.get(status, headers={"Authorization": "Bearer the-operators-own-key"}).status_code == 200


def test_chunked_bodies_are_read_and_limited(tmp_path: Path) -> None:
    def chunks(size: int) -> Iterator[bytes]:
        yield b'{"subject": "ana", "content": "'
        yield b"x" * size
        yield b'"}'

    with serving(tmp_path, EVERKEPT_SERVER__BODY_MAX_BYTES="2048") as (_, url):
        path = f"{url}/v1/threads/t/messages"
        assert httpx2.post(path, content=chunks(1000)).status_code == 201
        assert httpx2.post(path, content=chunks(3000)).status_code == 413
        assert httpx2.post(path, content=b"x" * 3000).status_code == 413
