"""What an agent waits for when it starts the MCP server: a new process, the handshake and the list of tools."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.bench.report import Figure, Goal

PEER = "the SDK's own server, one tool"
_PEER_SOURCE = """
from mcp.server import MCPServer
server = MCPServer("peer")
@server.tool()
def recall(query: str) -> str:
    return query
server.run("stdio")
"""
_OURS = [sys.executable, "-P", "-m", "everkept", "mcp"]
_LIST_MS = 700.0
_HANDSHAKE = (
    {
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}},
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
)  # fmt: skip


def measure(home: Path, *, quick: bool) -> Iterator[Figure]:
    """Both in turn, so that they meet the same load; the first round only compiles and is not counted."""
    environment = {**os.environ, "EVERKEPT_HOME": str(home / "home"), "EVERKEPT_BIND": "127.0.0.1:1"}
    remember = {"name": "remember", "arguments": {"text": "The bench is cold."}}
    ours: list[tuple[float, float]] = []
    peers: list[tuple[float, float]] = []
    for _ in range(1 + (5 if quick else 15)):
        ours.append(_opening(_OURS, environment, home, remember))
        recall = {"name": "recall", "arguments": {"query": "x"}}
        peers.append(_opening([sys.executable, "-c", _PEER_SOURCE], environment, home, recall))
    listed, first = (sorted(figures) for figures in zip(*ours[1:], strict=True))
    peer_listed = sorted(each[0] for each in peers[1:])
    peer_first = sorted(each[1] for each in peers[1:])
    yield Figure(
        name="handshake and list of tools, cold, p50", value=_middle(listed), unit="ms", peer=PEER,
        peer_value=_middle(peer_listed), goal=Goal(of="value", sense="most", bound=_LIST_MS),
    )  # fmt: skip
    yield Figure(
        name="handshake, list and first call at once, cold, p50", value=_middle(first), unit="ms", peer=PEER,
        peer_value=_middle(peer_first),
    )  # fmt: skip


def _middle(figures: Sequence[float]) -> float:
    return figures[len(figures) // 2]


def _opening(
    command: Sequence[str], environment: Mapping[str, str], folder: Path, first: Mapping[str, Any]
) -> tuple[float, float]:
    """(ms until the tools are listed, ms until the first call is answered), from the start of the process."""
    start = time.perf_counter()
    with subprocess.Popen(
        command, env=environment, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        bufsize=0,
    ) as process:  # fmt: skip
        for message in _HANDSHAKE:
            _send(process, message)
        _await(process, 1)
        listed = time.perf_counter() - start
        _send(process, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": first})
        _await(process, 2)
        called = time.perf_counter() - start
        assert process.stdin is not None
        process.stdin.close()
    return listed * 1e3, called * 1e3


def _send(process: subprocess.Popen[bytes], message: Mapping[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(message).encode() + b"\n")


def _await(process: subprocess.Popen[bytes], id: int) -> None:
    assert process.stdout is not None
    while line := process.stdout.readline():
        answer = json.loads(line)
        if answer.get("id") == id:
            if "error" in answer or answer["result"].get("isError"):
                raise RuntimeError(f"the server refused: {answer}")
            return
    raise RuntimeError("the server ended")
