"""The opening of a connection over stdio, answered before the SDK is there.

An agent waits for handshake and list of tools at its every start, and loading the SDK takes a second or more. So the
few messages of an ordinary opening are answered from here, with what the SDK would say to them (a test compares). Then
the SDK takes over and is told all of it; its own answers to what was answered here are dropped. Anything that is not
quite ordinary is left to the SDK. Standard library only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

from everkept import __version__
from everkept.doors.mcp.tools import INSTRUCTIONS, NAME, TOOLS

HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Protocols that begin with `initialize`."""
ENVELOPE_VERSION: Final = "2026-07-28"
"""The protocol in which every request says its version, and nothing needs to come first."""
_META: Final = "io.modelcontextprotocol/"
_SERVER: Final = {"name": NAME, "version": __version__}
_CAPABILITIES: Final = {"tools": {"listChanged": False}}
_ENVELOPED: Final = {
    "resultType": "complete",
    "ttlMs": 0,
    "cacheScope": "private",
    "_meta": {f"{_META}serverInfo": _SERVER},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """The protocol's own two streams."""

    reading: BinaryIO
    writing: BinaryIO

    def write(self, line: bytes) -> None:
        """Raises BrokenPipeError once the client is gone."""
        self.writing.write(line)
        self.writing.flush()


@contextmanager
def claimed_wire() -> Iterator[Wire]:
    """Takes stdin and stdout for the protocol alone: from now on reading finds nothing, and prints go to stderr."""
    with os.fdopen(os.dup(0), "rb") as reading, os.fdopen(os.dup(1), "wb") as writing:
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 0)
        try:
            os.dup2(2, 1)
        except OSError:  # there is no stderr either
            os.dup2(nowhere, 1)
        os.close(nowhere)
        yield Wire(reading=reading, writing=writing)


@dataclass(slots=True, kw_only=True)
class Opening:
    """What was said so far."""

    lines: list[bytes] = field(default_factory=list)
    """Everything that the client sent, the message that was not answered here last."""
    answered: list[str | int] = field(default_factory=list)
    """Ids of the requests that were."""
    initialized: bool = False
    """The client began with `initialize`."""

    def answer(self, line: bytes) -> dict[str, Any] | None:
        """The answer to an ordinary message, empty where none is due; None where the SDK is to take over."""
        self.lines.append(line)
        message = _message(line)
        if message is None:
            return None
        method, params = message["method"], message.get("params", {})
        if "id" not in message:
            return {} if method == "notifications/initialized" and self.initialized else None
        result = self._result(method, params)
        if result is None:
            return None
        self.answered.append(message["id"])
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    def _result(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        if method == "initialize":
            return self._initialize(params)
        meta = params.get("_meta", {})
        if params.keys() - {"_meta"} or not isinstance(meta, dict):
            return None
        if self.initialized:
            return None if f"{_META}protocolVersion" in meta else _AFTER_HANDSHAKE.get(method)
        said = meta.get(f"{_META}protocolVersion"), meta.get(f"{_META}clientCapabilities")
        return _WITH_ENVELOPE.get(method) if said[0] == ENVELOPE_VERSION and isinstance(said[1], dict) else None

    def _initialize(self, params: dict[str, Any]) -> dict[str, Any] | None:
        version, client = params.get("protocolVersion"), params.get("clientInfo")
        capabilities = params.get("capabilities")
        ordinary = (
            isinstance(version, str) and isinstance(capabilities, dict) and isinstance(client, dict)
            and isinstance(client.get("name"), str) and isinstance(client.get("version"), str)
        )  # fmt: skip
        if not ordinary or self.lines[:-1]:
            return None
        self.initialized = True
        return {
            "protocolVersion": version if version in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1],
            "capabilities": _CAPABILITIES,
            "serverInfo": _SERVER,
            "instructions": INSTRUCTIONS,
        }


_AFTER_HANDSHAKE: Final[dict[str, dict[str, Any]]] = {"ping": {}, "tools/list": {"tools": list(TOOLS)}}
_WITH_ENVELOPE: Final[dict[str, dict[str, Any]]] = {
    "server/discover": {
        "supportedVersions": [ENVELOPE_VERSION], "capabilities": _CAPABILITIES, "instructions": INSTRUCTIONS,
        **_ENVELOPED,
    },
    "tools/list": {"tools": list(TOOLS), **_ENVELOPED},
}  # fmt: skip


def _message(line: bytes) -> dict[str, Any] | None:
    """A request or notification in its ordinary shape."""
    try:
        message = json.loads(line)
    except ValueError:  # rubbish, or not UTF-8
        return None
    if not isinstance(message, dict) or message.keys() - {"jsonrpc", "id", "method", "params"}:
        return None
    named = message.get("jsonrpc") == "2.0" and isinstance(message.get("method"), str)
    id_fits = "id" not in message or (isinstance(message["id"], str | int) and not isinstance(message["id"], bool))
    return message if named and id_fits and isinstance(message.get("params", {}), dict) else None


def answer_opening(wire: Wire, *, listed: Callable[[], None]) -> Opening | None:
    """Answer until the SDK is needed; None where the client left before. `listed` is called once it has the tools."""
    opening = Opening()
    while line := wire.reading.readline():
        answer = opening.answer(line)
        if answer is None:
            return opening
        if answer:
            wire.write(json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        if "tools" in answer.get("result", ()):
            listed()
    return None
