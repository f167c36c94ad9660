"""A memory system in a process of its own, driven by lines of JSON over a socket: what makes `kill -9` real.

One line a request, `{"id": 1, "verb": "add", "args": {…}}`; one line an answer, in any order:
`{"id": 1, "answer": …}`, or `error` in its place: `rejected`, `not_applicable` or `failed`, with the text.
"""

from __future__ import annotations

import atexit
import itertools
import json
import os
import queue
import signal
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from tests.faults.adapter import Added, Died, Found, Item, Message, NotApplicable, Rejected, Trouble, Troubles

ROOT = Path(__file__).resolve().parents[2]
ANSWER_S = 120.0
"""A system that answers later than this has failed; far above what any of them needs."""


@cache
def fork_server(*command: str) -> int:
    """The port of a process that imports once and forks a child for each connection; it ends with this one."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("EVERKEPT_") and not k.endswith("_API_KEY")}
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**environment, "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    assert process.stdout is not None
    atexit.register(process.communicate)
    return int(process.stdout.readline())


def connect(port: int, options: Mapping[str, Any]) -> Wire:
    """A new child with these options. Raises OSError where it died before it was open, or says that it cannot be."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection.sendall(json.dumps(options).encode() + b"\n")
    wire = Wire(connection)
    if "version" not in wire.hello:
        wire.join()
        raise OSError(wire.hello.get("error", "the process died before it was open"))
    return wire


class Failed(Exception):
    """The system failed in a way that is no refusal: an error that its caller cannot act on."""


class Wire:
    """The client's end. Calls from several threads share it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lines = connection.makefile("rwb")
        self._numbers = itertools.count(1)
        self._waiting: dict[int, queue.SimpleQueue[dict[str, Any] | None]] = {}
        self._lock = threading.Lock()
        self._ended = False
        self.hello: dict[str, Any] = json.loads(self._lines.readline() or b"{}")
        """What the process says first: `pid`, `version`, or `error`."""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def call(self, verb: str, *, timeout_s: float = ANSWER_S, **args: Any) -> Any:
        """Raises Rejected, NotApplicable, Failed, Died (ended before it answered)."""
        answers: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        with self._lock:
            if self._ended:
                raise Died("the process has ended")
            number = next(self._numbers)
            self._waiting[number] = answers
            try:
                self._lines.write(json.dumps({"id": number, "verb": verb, "args": args}).encode() + b"\n")
                self._lines.flush()
            except OSError:
                raise Died("the process has ended") from None
        try:
            answer = answers.get(timeout=timeout_s)
        except queue.Empty:
            raise Failed(f"no answer to {verb} within {timeout_s:g} s") from None
        if answer is None:
            raise Died(f"the process ended before it answered to {verb}")
        return _read_answer(answer)

    def kill(self) -> None:
        """SIGKILL, and wait until nothing of it is left."""
        with suppress(ProcessLookupError):
            os.kill(self.hello["pid"], signal.SIGKILL)
        self.join()

    def join(self) -> None:
        """Until the process has closed its end."""
        self._reader.join(ANSWER_S)
        assert not self._reader.is_alive(), "the process did not end"
        self._connection.close()

    def _read(self) -> None:
        with suppress(OSError):
            for line in self._lines:
                answer = json.loads(line)
                with self._lock:
                    waiting = self._waiting.pop(answer["id"], None)
                if waiting is not None:
                    waiting.put(answer)
        with self._lock:
            self._ended = True
            waiting_ones = list(self._waiting.values())
        for waiting in waiting_ones:
            waiting.put(None)


def _read_answer(answer: Mapping[str, Any]) -> Any:
    text = str(answer.get("text"))
    match answer.get("error"):
        case None:
            return answer["answer"]
        case "rejected":
            raise Rejected(text)
        case "not_applicable":
            raise NotApplicable(text)
        case _:
            raise Failed(text)


class WiredSystem:
    """The verbs over a wire: what every adapter shares. A subclass starts the process (`open`) and names it."""

    name = "unnamed"
    version = ""
    has: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self._wire: Wire | None = None

    @property
    def wire(self) -> Wire:
        if self._wire is None:
            raise Died("the process is not running")
        return self._wire

    # ---- the five verbs

    def add(self, thread: str, messages: Sequence[Message], *, subject: str, key: str | None = None) -> Added:
        given = [_message(message) for message in messages]
        answer = self.wire.call("add", thread=thread, messages=given, subject=subject, key=key)
        return Added(ids=tuple(answer["ids"]), replayed=bool(answer["replayed"]))

    def wait_idle(self, timeout_s: float = 30.0) -> bool:
        return bool(self.wire.call("wait_idle", timeout_s=timeout_s + ANSWER_S, limit_s=timeout_s))

    def search(self, query: str, *, subject: str, limit: int = 10, as_of: datetime | None = None) -> list[Found]:
        when = None if as_of is None else as_of.isoformat()
        hits = self.wire.call("search", query=query, subject=subject, limit=limit, as_of=when)
        return [Found(**{**hit, "when": _time(hit["when"])}) for hit in hits]

    def delete(self, *, subject: str | None = None, thread: str | None = None, id: str | None = None) -> None:
        self.wire.call("delete", subject=subject, thread=thread, id=id)

    def list(self, *, subject: str, kind: str | None = None) -> list[Item]:
        items = self.wire.call("list", subject=subject, kind=kind)
        return [
            Item(**{**item, "when": _time(item["when"]), "sources": tuple(item.get("sources", ()))}) for item in items
        ]

    # ---- faults

    def close(self) -> None:
        if self._wire is not None:
            wire, self._wire = self._wire, None
            with suppress(Died):
                wire.call("close")
            wire.join()

    def kill(self) -> None:
        if self._wire is not None:
            wire, self._wire = self._wire, None
            wire.kill()

    def pass_time(self, seconds: float) -> None:
        self.wire.call("pass_time", seconds=seconds)

    def trouble(self) -> Troubles:
        return [Trouble(**each) for each in self.wire.call("trouble")]

    # ---- what only some have

    def end(self, thread: str) -> None:
        self.wire.call("end", thread=thread)

    def switch(self, on: bool, *, thread: str | None = None) -> None:
        self.wire.call("switch", on=on, thread=thread)

    def set_clock(self, seconds: float) -> None:
        self.wire.call("set_clock", seconds=seconds)

    def retry(self, trouble: Trouble) -> None:
        self.wire.call("retry", what=trouble.what)


def _message(message: Message) -> dict[str, Any]:
    return {
        "role": message.role, "content": message.content, "metadata": dict(message.metadata) or None,
        "occurred_at": None if message.occurred_at is None else message.occurred_at.isoformat(),
        "evidence": message.evidence,
    }  # fmt: skip


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
