"""Deliveries through the real server: streams, long polls, followers and webhooks over sockets (I05)."""

from __future__ import annotations

import json
import queue
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path

import httpx2
from tests.stubs.real_server import WAIT_S, serving

from everkept import Memory, verify_webhook


class Hook(BaseHTTPRequestHandler):
    """Puts what it was sent into its server's queue; `hangs` answers nothing until its server ends."""

    server: Hooks

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.put((dict(self.headers.items()), body))
        if self.server.hangs:
            self.server.ended.wait()
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Quiet."""


class Hooks(ThreadingHTTPServer):
    def __init__(self, *, hangs: bool = False) -> None:
        super().__init__(("127.0.0.1", 0), Hook)
        self.got: queue.SimpleQueue[tuple[dict[str, str], bytes]] = queue.SimpleQueue()
        self.hangs = hangs
        self.ended = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"


@contextmanager
def hooks(*, hangs: bool = False) -> Iterator[Hooks]:
    with Hooks(hangs=hangs) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.ended.set()
            server.shutdown()
            thread.join()


def add(url: str, name: str, at: str) -> tuple[str, str]:
    made = httpx2.post(f"{url}/v1/webhooks", json={"name": name, "url": at, "after": 0}).raise_for_status().json()
    return made["id"], made["secret"]


def test_a_receiver_that_hangs_holds_up_only_itself(tmp_path: Path) -> None:
    quick = {"EVERKEPT_WEBHOOKS__ALLOW_PRIVATE": "true"}
    with hooks(hangs=True) as stuck, hooks() as well, serving(tmp_path / "home", **quick) as (_, url):
        add(url, "stuck", stuck.url)
        _, secret = add(url, "well", well.url)
        with Memory.connect(url) as memory:
            for n in range(5):
                memory.remember(f"Marta has {n} cats", subject="user_42")
            seqs = [change.seq for change in memory.changes().changes]
        told = []
        for _ in seqs:
            headers, body = well.got.get(timeout=WAIT_S)
            told.append(verify_webhook(secret, headers, body)["data"]["seq"])
        assert told == seqs
        headers, body = stuck.got.get(timeout=WAIT_S)
        assert json.loads(body)["data"]["seq"] == 1
        rows = {each["name"]: each for each in httpx2.get(f"{url}/v1/consumers").json()["items"]}
        assert rows["webhook:stuck"]["cursor"] == 0
        metrics = httpx2.get(f"{url}/metrics").text
        assert f'everkept_consumer_lag{{consumer="webhook:stuck",project="default"}} {float(len(seqs))}' in metrics


def test_nothing_is_sent_to_this_machine_unless_it_is_allowed(tmp_path: Path) -> None:
    with hooks() as well, serving(tmp_path / "home") as (_, url):
        refused = httpx2.post(f"{url}/v1/webhooks", json={"name": "x", "url": well.url})
        assert (refused.status_code, refused.json()["error"]["details"]["field"]) == (422, "url")
        assert "webhooks.allow_private" in refused.json()["error"]["message"]


def test_a_test_delivery_is_sent_at_once_and_moves_nothing(tmp_path: Path) -> None:
    with hooks() as well, serving(tmp_path / "home", EVERKEPT_WEBHOOKS__ALLOW_PRIVATE="true") as (_, url):
        hook, secret = add(url, "x", well.url)
        came = httpx2.post(f"{url}/v1/webhooks/{hook}/test").json()
        assert (came["delivered"], came["status"]) == (True, 204)
        headers, body = well.got.get(timeout=WAIT_S)
        assert verify_webhook(secret, headers, body)["type"] == "webhook.test"
        assert httpx2.get(f"{url}/v1/webhooks/{hook}").json()["delivered_at"] is None


def numbers(lines: Iterator[str], count: int) -> list[int]:
    """So many of a stream's changes."""
    told = (int(line.removeprefix("id: ")) for line in lines if line.startswith("id: "))
    return list(islice(told, count))


def test_a_stream_tells_what_happens_and_goes_on_where_it_was_left(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as (process, url), Memory.connect(url) as memory:
        memory.remember("Marta lives in Porto", subject="user_42")
        begun = memory.changes().head
        with httpx2.stream("GET", f"{url}/v1/changes/stream?consumer=dash", timeout=WAIT_S) as stream:
            writer = threading.Thread(target=memory.remember, args=("Marta works at Acme",), kwargs={"subject": "m"})
            writer.start()
            assert numbers(stream.iter_lines(), begun + 1) == list(range(1, begun + 2))
            writer.join()
        assert memory.ack("dash", begun + 1) == begun + 1, "what a stream told was given"
        ahead = httpx2.get(f"{url}/v1/changes/stream", headers={"Last-Event-ID": "5000"})
        assert (ahead.status_code, ahead.json()["error"]["details"]["head"]) == (422, begun + 1)
        assert "the newest is" in ahead.json()["error"]["message"]
        memory.remember("Marta has a dog", subject="m")
        head = memory.changes().head
        left = {"Last-Event-ID": str(begun)}
        with httpx2.stream("GET", f"{url}/v1/changes/stream", headers=left, timeout=WAIT_S) as stream:
            lines = stream.iter_lines()
            assert numbers(lines, head - begun) == list(range(begun + 1, head + 1))
            begun_s = time.monotonic()
            process.send_signal(signal.SIGTERM)
            assert numbers(lines, 1) == [], "it ends cleanly, and tells no change twice"
            assert time.monotonic() - begun_s < 15, "a stream holds up no shutdown"


def test_a_long_poll_answers_when_something_happens(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as (_, url), Memory.connect(url) as memory:
        memory.remember("Marta lives in Porto", subject="user_42")
        head = memory.changes().head
        answers: queue.SimpleQueue[list[int]] = queue.SimpleQueue()

        def ask() -> None:
            page = httpx2.get(f"{url}/v1/changes?after={head}&wait=30", timeout=WAIT_S).json()
            answers.put([change["seq"] for change in page["changes"]])

        asking = threading.Thread(target=ask)
        asking.start()
        memory.remember("Marta works at Acme", subject="user_42")
        assert answers.get(timeout=WAIT_S)[0] == head + 1
        asking.join()


def test_a_follower_outlasts_the_server_it_follows(tmp_path: Path) -> None:
    home = tmp_path / "home"
    seen: queue.SimpleQueue[int] = queue.SimpleQueue()
    with serving(home) as (process, url):
        port = url.rpartition(":")[2]
        with Memory.connect(url) as memory:
            memory.remember("Marta lives in Porto", subject="user_42")
        ended = threading.Event()

        def follow() -> None:
            with Memory.connect(url) as memory:
                for change in memory.follow("crm"):
                    seen.put(change.seq)
                    if ended.is_set():
                        return

        follower = threading.Thread(target=follow)
        follower.start()
        assert seen.get(timeout=WAIT_S) == 1
        process.kill()
        process.wait(WAIT_S)
    with serving(home, EVERKEPT_BIND=f"127.0.0.1:{port}") as (_, url), Memory.connect(url) as memory:
        memory.remember("Marta works at Acme", subject="user_42")
        head, told = memory.changes().head, [1]
        while told[-1] < head:
            told.append(seen.get(timeout=WAIT_S))
        assert (told, set(told)) == (sorted(told), set(range(1, head + 1))), "in order, none left out"
        ended.set()
        memory.remember("Marta has a dog", subject="user_42")
        follower.join(WAIT_S)
        assert not follower.is_alive()
