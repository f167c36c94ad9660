"""A model API in OpenAI's chat shape that fails in all ways: too many, broken, silent, garbage, cut, hung up.

What becomes of a question is drawn from the seed, the question and how often it came, so it does not depend on who asks
first. No question fails for ever: from the `PATIENCE`-th time on it is answered.
"""

from __future__ import annotations

import hashlib
import json
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType, TracebackType
from typing import Any, Final, Self

PATIENCE: Final = 3
GARBAGE_MAX: Final = 1
"""How often one question is answered with what nobody can read: each is paid for, and `models.asks_max` ends that."""
HANG_S: Final = 20.0
"""Longer than the storm's workers wait for an answer."""
LATENCY_S: Final = 0.05
WEATHER: Final[Mapping[str, int]] = MappingProxyType(
    {"fine": 60, "busy": 8, "broken": 8, "hangs": 4, "garbage": 7, "cut": 6, "hung up": 7}
)
_REPLIES: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "facts": {"facts": []},
        "summary": {"summary": "They talked.", "learnings": ["They talk."]},
        "fold": {"summary": "They talk."},
    }
)


class StormyModel:
    """`with StormyModel(seed) as model:` listens on a free port of 127.0.0.1; `model.url` is the base URL."""

    def __init__(self, seed: int) -> None:
        self.weather: Counter[str] = Counter()
        """How often each way of failing, and `fine`, was met."""
        self.asked_at_us: list[tuple[bytes, int]] = []
        """(the question as the journal keeps it, when it came by this machine's clock)."""
        self.clear = threading.Event()
        """Once it is set, every question is answered."""
        self._seed = seed
        self._lock = threading.Lock()
        self._came: Counter[bytes] = Counter()
        self._garbage: Counter[bytes] = Counter()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5)

    def draw(self, body: Mapping[str, Any]) -> str:
        """What becomes of this question now; one of `WEATHER`."""
        question = _question_hash(body)
        with self._lock:
            self.asked_at_us.append((question, time.time_ns() // 1000))
            self._came[question] += 1
            times = self._came[question]
            how = "fine"
            if times < PATIENCE and not self.clear.is_set():
                chance = random.Random(f"{self._seed} {question.hex()} {times}")
                how = chance.choices(tuple(WEATHER), tuple(WEATHER.values()))[0]
            if how == "garbage":
                self._garbage[question] += 1
                how = how if self._garbage[question] <= GARBAGE_MAX else "fine"
            self.weather[how] += 1
        return how


def _question_hash(body: Mapping[str, Any]) -> bytes:
    """As `store/journal.py` names a question: by what is said to the model."""
    said: dict[str, Any] = {message["role"]: message["content"] for message in body["messages"]}
    system = said.get("system") or said.get("developer") or ""
    return hashlib.blake2b(f"{system}\0{said.get('user')}".encode(), digest_size=16).digest()


def _handler(model: StormyModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            step = ((body.get("response_format") or {}).get("json_schema") or {}).get("name", "text")
            whole = json.dumps(_completion(json.dumps(_REPLIES.get(step, {})), body)).encode()
            time.sleep(LATENCY_S)
            match model.draw(body):
                case "fine":
                    self._write(200, whole)
                case "busy":
                    self._fail(429, "rate_limit_exceeded")
                case "broken":
                    self._fail(503, "unavailable")
                case "hangs":
                    model.clear.wait(HANG_S)
                    self._hang_up()
                case "garbage":
                    self._write(200, json.dumps(_completion("<p>Sorry, {", body)).encode())
                case "cut":
                    self._write(200, whole[: len(whole) // 2], told_bytes=len(whole))
                    self._hang_up()
                case _:
                    self._hang_up()

        def _fail(self, status: int, code: str) -> None:
            error = {"message": "the weather is bad", "type": "error", "code": code}
            self._write(status, json.dumps({"error": error}).encode())

        def _write(self, status: int, body: bytes, *, told_bytes: int | None = None) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body) if told_bytes is None else told_bytes))
            if status == 429:
                self.send_header("retry-after", "1")
            self.end_headers()
            self.wfile.write(body)

        def _hang_up(self) -> None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except OSError:  # whoever asked was killed, or has given up
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is printed: `weather` is the log."""

    return Handler


def _completion(text: str, body: Mapping[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": text, "refusal": None}
    return {
        "id": "chatcmpl-storm", "object": "chat.completion", "created": 1_767_225_600, "model": str(body.get("model")),
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    }  # fmt: skip
