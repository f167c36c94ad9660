"""What every request passes first, as one plain ASGI layer: request id, Host and Origin, key, size, last resort."""

from __future__ import annotations

import secrets
from collections import Counter
from urllib.parse import parse_qsl, unquote_to_bytes

import structlog
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from everkept.doors.http.callers import Gatekeeper, is_open
from everkept.doors.http.hosts import HostRules
from everkept.doors.http.problems import error_response, too_large
from everkept.doors.http.request_span import answering, route_of, tell_answer
from everkept.errors import EverkeptError, InvalidInput, Unauthorized

KEY_COOKIE = "everkept_key"
CALLER = "everkept.caller"
"""Where the Caller stands in the ASGI scope."""
SLASH = "\x00"
"""Stands for an encoded slash inside a path segment, so that ids may hold one; NUL itself is in no id."""
LISTS = frozenset({"kinds"})
"""Query words that may be given several times."""
_log = structlog.get_logger("everkept.http")


class Gate:
    def __init__(self, app: ASGIApp, *, hosts: HostRules, keeper: Gatekeeper, body_max_bytes: int) -> None:
        self.app = app
        self.hosts = hosts
        self.keeper = keeper
        self.body_max_bytes = body_max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        answer = _Answer(send, _request_id(headers.get(b"x-request-id")))
        with (
            structlog.contextvars.bound_contextvars(request_id=answer.request_id),
            answering(scope, traceparent=_text(headers, b"traceparent"), request_id=answer.request_id) as span,
        ):
            await self._pass(scope, headers, receive, answer)
            tell_answer(span, scope, answer.status)
            _log.debug("request answered", method=scope["method"], route=route_of(scope), status=answer.status)

    async def _pass(self, scope: Scope, headers: dict[bytes, bytes], receive: Receive, answer: _Answer) -> None:
        try:
            self.hosts.check(_text(headers, b"host"), _text(headers, b"origin"))
            scope[CALLER] = await self.keeper.admit(_authorization(headers, scope["path"]), scope["path"])
            if scope["query_string"]:
                _refuse_repeated(scope["query_string"])
            if b"%" in scope["raw_path"]:
                scope["path"] = _decode_path(scope["raw_path"])
            limited = self._limit(headers, receive)
            await self.app(scope, limited, answer.send)
        except Unauthorized as error:
            await _unauthorized(error, headers, scope["method"])(scope, receive, answer.send)
        except EverkeptError as error:
            await error_response(error)(scope, receive, answer.send)
        except (
            Exception
        ) as error:  # the last resort of the door: whatever it was, the caller gets an answer, and we a log
            _log.error("request failed", path=scope["path"], exc_info=error)
            if answer.status:
                raise
            wrong = EverkeptError("something went wrong inside Everkept", request_id=answer.request_id)
            await error_response(wrong)(scope, receive, answer.send)

    def _limit(self, headers: dict[bytes, bytes], receive: Receive) -> Receive:
        """Refuse a body over the limit: by its declared length before it is read, else while it is."""
        declared = headers.get(b"content-length")
        if declared is not None and declared.isdigit() and int(declared) <= self.body_max_bytes:
            return receive  # the server holds the client to what it declared
        if declared is None and b"transfer-encoding" not in headers:
            return receive
        return _Counted(receive, size_max=0 if declared else self.body_max_bytes, limit=self.body_max_bytes)


class _Counted:
    """Receives a body until it has more than `size_max` bytes."""

    def __init__(self, receive: Receive, *, size_max: int, limit: int) -> None:
        self._receive, self._left, self._limit = receive, size_max, limit

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                raise too_large(self._limit)
        return message


class _Answer:
    """Sends an answer with the request's id on it."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self.request_id = request_id
        self.status = 0
        """Of what was sent; 0 until then."""

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message["headers"], (b"x-request-id", self.request_id.encode())]
        await self._send(message)


def _request_id(sent: bytes | None) -> str:
    if sent and len(sent) <= 128 and all(0x21 <= byte <= 0x7E for byte in sent):
        return sent.decode()
    return f"req_{secrets.token_hex(8)}"


def _text(headers: dict[bytes, bytes], name: bytes) -> str | None:
    value = headers.get(name)
    return None if value is None else value.decode("latin-1")


def _authorization(headers: dict[bytes, bytes], path: str) -> str | None:
    """As sent; of a browser, the key in its cookie, which no other site can make it send."""
    sent = _text(headers, b"authorization")
    if sent is not None or b"cookie" not in headers or is_open(path):
        return sent
    key = cookie_parser(_text(headers, b"cookie") or "").get(KEY_COOKIE)  # others' may be malformed
    return f"Bearer {key}" if key else None


def _unauthorized(error: Unauthorized, headers: dict[bytes, bytes], method: str) -> Response:
    """A person who looks is shown where to give a key."""
    if method == "GET" and b"text/html" in headers.get(b"accept", b""):
        given = KEY_COOKIE.encode() in headers.get(b"cookie", b"")
        return RedirectResponse("/login?failed=1" if given else "/login", 303)
    return error_response(error)


def _refuse_repeated(query: bytes) -> None:
    """Raises InvalidInput for a word that is given twice: `?dry_run=true&dry_run=false` must not pick one of them."""
    given = Counter(word for word, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True))
    for word, times in given.items():
        if times > 1 and word not in LISTS:
            raise InvalidInput(f"{word} is given {times} times in the query; give it once", field=word)


def _decode_path(raw: bytes) -> str:
    try:
        segments = [unquote_to_bytes(segment).decode() for segment in raw.partition(b"?")[0].split(b"/")]
    except UnicodeDecodeError as error:
        raise InvalidInput("the path is not UTF-8", field="path") from error
    if any(SLASH in segment for segment in segments):
        raise InvalidInput("the path holds a NUL", field="path")
    return "/".join(segment.replace("/", SLASH) for segment in segments)
