"""A model API for tests: OpenAI's chat shape over HTTP, scripted replies, scripted weather, and a log of requests.

`with LlmServer(script) as server:` listens on a free port of 127.0.0.1; `server.url` is the base URL (`…/v1`). The
script maps a step to its replies (a step is recognised by a word of its schema's name) or is one list for all; the last
reply of a list is given again for ever. Each reply is one of `Say`, `Fail`, `Hang`, `Reset`, `CutBody`, `Json`.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self, TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """A reply of the model: text (also garbage, or JSON that is cut), or a JSON value."""

    text: str | None = None
    value: Any = None
    refusal: str | None = None
    finish: str = "stop"
    latency_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    """An HTTP error in OpenAI's shape."""

    status: int
    code: str | None = None
    message: str = "stub failure"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hang:
    """No answer until the server closes."""


@dataclass(frozen=True, slots=True)
class Reset:
    """The connection is closed without an answer."""


@dataclass(frozen=True, slots=True)
class CutBody:
    """A 200 whose body stops half-way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Json:
    """A 200 with this body as it is: embeddings, or a body that no model sends."""

    value: Any


Reply: TypeAlias = Say | Fail | Hang | Reset | CutBody | Json
Script: TypeAlias = Sequence[Reply] | Mapping[str, Sequence[Reply]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request as it came in."""

    step: str
    path: str
    body: dict[str, Any]
    authorization: str | None


class LlmServer:
    """See the module. `asked` is the log; `script` may be replaced while it runs; `release()` ends hangs."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.asked: list[Asked] = []
        self._lock = threading.Lock()
        self._given: dict[str, int] = {}
        self._released = threading.Event()
        self._called = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.release()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5)

    def calls(self, step: str | None = None) -> int:
        with self._lock:
            return sum(step is None or asked.step == step for asked in self.asked)

    def wait_for_call(self) -> None:
        """Until the first request is here."""
        assert self._called.wait(30)

    def release(self) -> None:
        self._released.set()

    def hang(self) -> None:
        self._released.wait(60)

    def take(self, asked: Asked) -> Reply:
        """Log a request and give the next reply of its step."""
        with self._lock:
            self.asked.append(asked)
            self._called.set()
            by_step = isinstance(self.script, Mapping)
            replies = self.script.get(asked.step, ()) if isinstance(self.script, Mapping) else self.script
            key = asked.step if by_step else ""
            place = self._given.get(key, 0)
            self._given[key] = place + 1
        if not replies:
            return Fail(status=400, message=f"no reply is scripted for {asked.step!r}")
        return replies[min(place, len(replies) - 1)]


def _handler(server: LlmServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            format = body.get("response_format") or {}
            step = (format.get("json_schema") or {}).get("name", "text")
            asked = Asked(step=step, path=self.path, body=body, authorization=self.headers["authorization"])
            self._answer(server.take(asked), str(body.get("model", "stub")))

        def _answer(self, reply: Reply, model: str) -> None:
            match reply:
                case Say():
                    time.sleep(reply.latency_s)
                    self._send(200, _completion(reply, model))
                case Fail():
                    error = {"error": {"message": reply.message, "type": "error", "code": reply.code}}
                    self._send(reply.status, error, reply.headers)
                case Hang():
                    server.hang()
                    self._drop()
                case Reset():
                    self._drop()
                case Json():
                    self._send(200, reply.value)
                case CutBody():
                    whole = json.dumps(_completion(Say(text="cut"), model)).encode()
                    self._write(200, whole[: len(whole) // 2], {})

        def _send(self, status: int, value: Any, headers: Mapping[str, str] | None = None) -> None:
            self._write(status, json.dumps(value).encode(), headers or {})

        def _write(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
            self.send_response(status)
            for name, value in {
                "content-type": "application/json",
                "content-length": str(len(body)),
                **headers,
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def _drop(self) -> None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is printed: `asked` is the log."""

    return Handler


def _completion(reply: Say, model: str) -> dict[str, Any]:
    text = reply.text if reply.text is not None or reply.refusal else json.dumps(reply.value)
    message = {"role": "assistant", "content": text, "refusal": reply.refusal}
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    choice = {"index": 0, "message": message, "finish_reason": reply.finish}
    return {
        "id": "chatcmpl-stub", "object": "chat.completion", "created": 1_767_225_600, "model": model,
        "choices": [choice], "usage": usage,
    }  # fmt: skip
