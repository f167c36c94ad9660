"""The opening is answered as the SDK would answer it, and anything unusual is left to the SDK."""

from __future__ import annotations

import asyncio
import io
import json
import os
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.message import SessionMessage
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION, MODERN_PROTOCOL_VERSIONS

from everkept.doors.mcp.opening import (
    ENVELOPE_VERSION,
    HANDSHAKE_VERSIONS,
    Opening,
    Wire,
    answer_opening,
    claimed_wire,
)
from everkept.doors.mcp.server import make_server

META = "io.modelcontextprotocol/"
CLIENT = {"name": "test", "version": "1"}
ENVELOPE = {
    "_meta": {
        f"{META}protocolVersion": ENVELOPE_VERSION,
        f"{META}clientCapabilities": {"roots": {}},
        f"{META}clientInfo": CLIENT,
    }
}


def line(method: str, params: dict[str, Any] | None = None, *, id: int | str | None = None) -> bytes:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if id is not None:
        message["id"] = id
    if params is not None:
        message["params"] = params
    return json.dumps(message).encode() + b"\n"


def initialize(version: str = LATEST_HANDSHAKE_VERSION, **more: Any) -> bytes:
    return line("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT, **more}, id=0)


INITIALIZED = line("notifications/initialized")


def test_the_protocol_versions_are_those_of_the_sdk():
    assert tuple(HANDSHAKE_PROTOCOL_VERSIONS) == HANDSHAKE_VERSIONS
    assert tuple(MODERN_PROTOCOL_VERSIONS) == (ENVELOPE_VERSION,)


@pytest.mark.parametrize("version", [*HANDSHAKE_PROTOCOL_VERSIONS, "1999-01-01", ENVELOPE_VERSION])
def test_a_handshake_is_answered_word_for_word_as_by_the_sdk(version):
    lines = [initialize(version), INITIALIZED, line("ping", id="p"), line("tools/list", {}, id=2)]

    assert asyncio.run(sdk_answers(lines)) == our_answers(lines)


def test_an_opening_with_envelopes_is_answered_word_for_word_as_by_the_sdk():
    lines = [line("server/discover", ENVELOPE, id=1), line("tools/list", ENVELOPE, id="list")]

    assert asyncio.run(sdk_answers(lines)) == our_answers(lines)


@pytest.mark.parametrize(
    "unusual",
    [
        b"rubbish\n",
        b"\xff\xfe\n",
        b"[]\n",
        b"\n",
        line("tools/call", {"name": "recall"}, id=1),
        line("tools/list", {}, id=1),
        line("notifications/initialized"),
        line("server/discover", {"_meta": {f"{META}protocolVersion": "2099-01-01"}}, id=1),
        line("initialize", {"protocolVersion": 7, "capabilities": {}, "clientInfo": CLIENT}, id=1),
        line("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {}}, id=1),
        b'{"jsonrpc":"2.0","id":true,"method":"initialize","params":{}}\n',
        b'{"jsonrpc":"1.0","id":1,"method":"ping"}\n',
    ],
)
def test_an_unusual_beginning_is_left_to_the_sdk_whole(unusual):
    opening = Opening()

    assert opening.answer(unusual) is None
    assert opening.lines == [unusual]
    assert opening.answered == []


@pytest.mark.parametrize(
    "later",
    [
        initialize(),
        line("tools/list", {"cursor": "2"}, id=5),
        line("tools/list", ENVELOPE, id=5),
        line("resources/list", {}, id=5),
        line("notifications/cancelled", {"requestId": 0}),
    ],
)
def test_what_is_unusual_later_on_brings_all_that_was_said_with_it(later):
    opening = Opening()
    assert opening.answer(initialize()) is not None
    assert opening.answer(INITIALIZED) == {}

    assert opening.answer(later) is None
    assert opening.lines == [initialize(), INITIALIZED, later]
    assert opening.answered == [0]


def test_a_client_that_leaves_after_the_list_never_needs_the_sdk():
    told: list[str] = []
    wire = Wire(reading=io.BytesIO(initialize() + INITIALIZED + line("tools/list", id=1)), writing=io.BytesIO())

    assert answer_opening(wire, listed=lambda: told.append("listed")) is None
    assert told == ["listed"]


def test_prints_go_to_stderr_once_the_wire_is_claimed(capfd):
    with claimed_wire() as wire:
        os.write(1, b"stray\n")
        assert os.read(0, 10) == b""
        os.dup2(wire.writing.fileno(), 1)  # as the test's runner had it

    assert capfd.readouterr() == ("", "stray\n")


def our_answers(lines: list[bytes]) -> list[dict[str, Any]]:
    opening = Opening()
    answers = [opening.answer(each) for each in lines]
    assert None not in answers
    return [json.loads(json.dumps(each)) for each in answers if each]


async def sdk_answers(lines: list[bytes]) -> list[dict[str, Any]]:
    async def nowhere(_context: Any) -> Any:
        raise AssertionError("no tool is called")

    server = make_server(nowhere)
    to_server, reading = anyio.create_memory_object_stream[SessionMessage | Exception](len(lines))
    writing, from_server = anyio.create_memory_object_stream[SessionMessage](len(lines))
    answers: list[dict[str, Any]] = []
    async with to_server, reading, writing, from_server, anyio.create_task_group() as group:
        group.start_soon(server.run, reading, writing, server.create_initialization_options())
        for each in lines:
            message = types.jsonrpc_message_adapter.validate_json(each, by_name=False)
            await to_server.send(SessionMessage(message))
            if isinstance(message, types.JSONRPCRequest):
                answer = await from_server.receive()
                answers.append(json.loads(answer.message.model_dump_json(by_alias=True, exclude_unset=True)))
        group.cancel_scope.cancel()
    return answers
