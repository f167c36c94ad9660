"""A server of NATS of the storm's own, somebody who publishes to it, and what its stream of changes must hold."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from everkept.domain.nats_subjects import subject_of
from everkept.prove.storm.databases import ThrownAway
from everkept.prove.storm.processes import free_port

if TYPE_CHECKING:
    from nats.js import JetStreamContext

T = TypeVar("T")
PREFIX: Final = "everkept"
EVENTS_STREAM: Final = "EVERKEPT_EVENTS"
CHANGES_STREAM: Final = "EVERKEPT_CHANGES"
THREAD: Final = "from-nats-"
SETTINGS: Final[Mapping[str, str]] = {
    "EVERKEPT_NATS__ACK_WAIT_S": "2",
    "EVERKEPT_NATS__DUPLICATES_S": "7200",  # longer than a storm: then each change is in the stream exactly once
}
PAUSE_S: Final = 0.2
ANSWER_S: Final = 5
STUCK_S: Final = 150.0
"""How long nothing may come: what failed is given again after up to a minute, and what is behind it waits with it."""
THREADS: Final = 8


class Broker:
    """Keeps its files and its port over restarts."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._program = program
        self._folder = folder
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir()

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self._port}"

    def start(self) -> None:
        address = ["-a", "127.0.0.1", "-p", str(self._port)]
        self._process = subprocess.Popen(
            [self._program, *address, "-js", "-sd", str(self._folder)], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self) -> None:
        self.kill()
        self.start()


async def _with_stream(url: str, act: Callable[[JetStreamContext], Awaitable[T]]) -> T:
    """Over a connection of its own. Raises what the client of NATS raises."""
    from nats.aio.client import Client

    client = Client()

    async def ignore(_error: Exception) -> None:
        """It is raised where it was asked for."""

    await client.connect(url, allow_reconnect=False, connect_timeout=ANSWER_S, error_cb=ignore)
    try:
        return await act(client.jetstream(timeout=ANSWER_S))
    finally:
        await client.close()


class Publisher:
    """Publishes one message after another; what was not acknowledged is published again under its id."""

    def __init__(self, broker: Broker, project: str, chance: random.Random) -> None:
        self.acknowledged: dict[str, str] = {}
        """By its id what a message says."""
        self._broker = broker
        self._subject = subject_of(PREFIX, project, "events")
        self._random = chance
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        from nats.errors import Error

        number = 0
        while not self._stop.is_set():
            key = f"nats-{number}"
            text = f"zn{number}x{self._random.randrange(36**4):x} came over the stream."
            body = {"thread": f"{THREAD}{number % THREADS}", "subject": "publisher", "role": "user", "content": text}
            end = time.monotonic() + STUCK_S
            while time.monotonic() < end:  # what it began it brings to an end
                with suppress(Error, OSError, TimeoutError):
                    asyncio.run(_with_stream(self._broker.url, self._publish(key, json.dumps(body).encode())))
                    self.acknowledged[key] = text
                    break
                time.sleep(PAUSE_S)
            number += 1
            self._stop.wait(PAUSE_S * self._random.uniform(0.5, 1.5))

    def _publish(self, key: str, body: bytes) -> Callable[[JetStreamContext], Awaitable[None]]:
        async def act(stream: JetStreamContext) -> None:
            await stream.publish(self._subject, body, headers={"Nats-Msg-Id": key})

        return act

    def not_once(self, database: ThrownAway) -> Iterator[str]:
        """Messages that were acknowledged by the broker and are not there exactly once, once no more come."""
        asked = set(self.acknowledged.values())

        def look() -> list[str]:
            rows = database.rows(
                f"select e.content from events e join streams s on s.id = e.stream_id where s.name like '{THREAD}%'"
            )
            return [row[0] for row in rows]

        there = _wait_for(look, lambda found: asked <= set(found), len)
        missing = asked - set(there)
        yield from (f"G1: {text!r} was acknowledged by the stream and is not there" for text in sorted(missing))
        twice = sorted({text for text in there if there.count(text) > 1})
        yield from (f"G2: {text!r} is there twice" for text in twice)


def _wait_for(look: Callable[[], T], is_whole: Callable[[T], bool], size: Callable[[T], int]) -> T:
    """What is found once it is whole, or has not grown for STUCK_S."""
    found = look()
    grew_s = time.monotonic()
    while not is_whole(found) and time.monotonic() - grew_s < STUCK_S:
        time.sleep(0.5)
        before, found = found, look()
        if size(found) > size(before):
            grew_s = time.monotonic()
    return found


def published(broker: Broker) -> dict[str, list[int]]:
    """{subject: the numbers of the changes in the stream, in its order}."""

    async def read(stream: JetStreamContext) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        info = await stream.stream_info(CHANGES_STREAM)
        reader = await stream.subscribe(f"{PREFIX}.*.*.changes", stream=CHANGES_STREAM, ordered_consumer=True)
        for _ in range(info.state.messages):
            message = await reader.next_msg(timeout=10)
            found.setdefault(message.subject, []).append(int((message.headers or {})["Everkept-Seq"]))
        return found

    return asyncio.run(_with_stream(broker.url, read))


def not_published(broker: Broker, newest: Mapping[str, int]) -> Iterator[str]:
    """`newest`: each project's last change. Waits until the stream has them, and says what it has not as it should."""

    def is_whole(there: Mapping[str, list[int]]) -> bool:
        return all(max(_of(there, project), default=0) >= last for project, last in newest.items())

    there = _wait_for(lambda: published(broker), is_whole, lambda found: sum(map(len, found.values())))
    for project, last in newest.items():
        seqs = _of(there, project)
        if seqs != list(range(1, last + 1)):
            first = next((n for n, seq in enumerate(seqs, 1) if seq != n), len(seqs) + 1)
            yield f"G11: the stream has {len(seqs)} of the {last} changes of {project}, out of order from {first} on"


def _of(there: Mapping[str, list[int]], project: str) -> list[int]:
    return there.get(subject_of(PREFIX, project, "changes"), [])
