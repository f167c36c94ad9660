"""The MCP door as clients use it: the official SDK's own client, over real processes and real HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from tests.stubs.real_server import serving
from tests.stubs.replayed import install_patient_hook

TOOLS = ["remember", "recall", "read", "forget", "handoff", "timeline", "review", "status"]
WAIT_S = 60
HEAVY = ("numpy", "wordllama", "onnxruntime", "tokenizers", "sqlalchemy", "everkept.models", "everkept.recall", "mcp.")
"""Modules that handshake and list must do without."""
MESSAGES: dict[str, dict[str, Any]] = {
    "initialize": {
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    },
    "initialized": {"jsonrpc": "2.0", "method": "notifications/initialized"},
    "list": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
}  # fmt: skip


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def environment(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A home of the test's, an address where nothing listens, and modules compiled once for all processes."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("EVERKEPT_")}
    return plain | {
        "EVERKEPT_HOME": str(tmp_path / "home"),
        "EVERKEPT_BIND": f"127.0.0.1:{free_port()}",
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(tmp_path_factory.getbasetemp() / "bytecode"),
    }


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    folder.mkdir()
    return folder


COMMAND = [sys.executable, "-P", "-m", "everkept", "mcp", "--agent", "claude-code"]


@asynccontextmanager
async def client(environment: dict[str, str], folder: Path, **options: Any) -> AsyncIterator[Client]:
    parameters = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env=environment, cwd=folder)
    async with Client(stdio_client(parameters), **options) as connected:
        yield connected


async def call(server: Client, name: str, **arguments: Any) -> types.CallToolResult:
    answer = await server.call_tool(name, arguments)
    assert isinstance(answer, types.CallToolResult)
    return answer


async def done(server: Client, name: str, **arguments: Any) -> dict[str, Any]:
    """The data of a call that must succeed."""
    answer = await call(server, name, **arguments)
    assert not answer.is_error, text_of(answer)
    data: dict[str, Any] = answer.structured_content
    return data


def text_of(answer: types.CallToolResult) -> str:
    content = answer.content[0]
    assert isinstance(content, types.TextContent)
    return content.text


async def use_every_tool(server: Client) -> None:
    """What an agent does with the memory of one project, from nothing on."""
    listed = await server.list_tools()
    assert [tool.name for tool in listed.tools] == TOOLS
    fact = await done(server, "remember", text="The release branch is called harbour-9.")
    page = await done(server, "remember", title="Use SQLite", body="# Why\nIt is one file.", kind="decision")
    assert page["slug"] == "use-sqlite"
    found = await done(server, "recall", query="release branch")
    assert [hit["id"] for hit in found["results"]] == [fact["id"]]
    sections = await done(server, "recall", query="why one file", kinds=["page"])
    assert sections["results"][0]["page"] == "use-sqlite#why"
    assert (await done(server, "read", id=sections["results"][0]["page"]))["items"][0]["text"] == "It is one file."
    assert (await done(server, "read", id=fact["id"]))["items"][0]["text"] == "The release branch is called harbour-9."
    assert {item["kind"] for item in (await done(server, "timeline"))["items"]} == {"fact", "page"}
    assert (await done(server, "handoff"))["chosen"] is None
    assert (await done(server, "review"))["proposals"] == []
    await done(server, "forget", id=fact["id"])
    assert (await done(server, "recall", query="harbour", kinds=["fact"]))["results"] == []
    await done(server, "forget", id=fact["id"], undo=True)
    assert len((await done(server, "recall", query="harbour", kinds=["fact"]))["results"]) == 1
    await done(server, "forget", id="use-sqlite")
    deleted = await call(server, "read", id="use-sqlite")
    assert deleted.is_error
    assert "was deleted" in text_of(deleted)
    assert (await done(server, "status"))["facts"] == 1


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_over_stdio_lists_and_calls_every_tool(environment, checkout, mode):
    async def use() -> None:
        async with client(environment, checkout, mode=mode) as server:
            unknown = await call(server, "recall", query="anything")
            assert unknown.is_error
            assert text_of(unknown).startswith(f"unknown_scope: there is no memory of {checkout} yet")
            assert (await done(server, "status"))["scope"] is None
            await use_every_tool(server)
            scope = (await done(server, "status"))["scope"]
            assert (scope["found_by"], scope["value"]) == ("path", str(checkout))

    asyncio.run(use())


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_over_http_lists_and_calls_every_tool(tmp_path, mode):
    async def use(url: str) -> None:
        headers = {"X-Everkept-Project": "default"}
        async with Client(streamable(url, headers), mode=mode) as server:
            await use_every_tool(server)
        async with Client(f"{url}/mcp", mode=mode) as server:
            unknown = await call(server, "recall", query="harbour")
            assert text_of(unknown).startswith("unknown_scope")
            assert len((await done(server, "recall", query="harbour", project="default"))["results"]) == 1
            assert (await done(server, "status"))["scope"] is None

    with serving(tmp_path / "home") as (_, url):
        asyncio.run(use(url))


@asynccontextmanager
async def streamable(url: str, headers: dict[str, str]) -> AsyncIterator[Any]:
    """The SDK's transport, with headers of ours."""
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        streamable_http_client(f"{url}/mcp", http_client=http) as two,
    ):
        yield two


def test_http_holds_no_connection_open_and_takes_rubbish(tmp_path):
    sent = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    with serving(tmp_path / "home") as (process, url):
        assert httpx2.get(f"{url}/mcp").status_code == 405
        for body in (b"rubbish", b"{}", b"[1]", b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * 10_000 + b'"}'):
            assert "error" in httpx2.post(f"{url}/mcp", content=body, headers=sent).json()
        foreign = httpx2.post(f"{url}/mcp", json=MESSAGES["list"], headers={**sent, "origin": "http://evil.example"})
        assert foreign.status_code == 403
        listed = httpx2.post(f"{url}/mcp", json=MESSAGES["list"], headers=sent)
        assert [tool["name"] for tool in listed.json()["result"]["tools"]] == TOOLS
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0


def test_over_http_a_projects_key_opens_that_project_and_no_other(tmp_path):
    async def use(url: str, token: str) -> None:
        async with Client(streamable(url, {"Authorization": f"Bearer {token}"})) as server:
            assert (await done(server, "remember", text="Ours."))["scope"]["project"] == "ours"
            refused = await call(server, "recall", query="anything", project="default")
            assert text_of(refused).startswith("forbidden")
            assert (await done(server, "status"))["scope"]["project"] == "ours"

    with serving(tmp_path / "home", EVERKEPT_ADMIN_KEY="the-operators-own-key") as (_, url):
        admin = {"Authorization": "Bearer the-operators-own-key"}
        assert httpx2.post(f"{url}/v1/projects", json={"name": "ours"}, headers=admin).is_success
        made = httpx2.post(f"{url}/v1/keys", json={"name": "k", "project": "ours"}, headers=admin)
        asyncio.run(use(url, made.json()["token"]))
        assert httpx2.post(f"{url}/mcp", json={}, headers={"Authorization": "Bearer wrong"}).status_code == 401


def test_what_one_server_remembers_another_process_recalls(environment, checkout):
    async def remember() -> None:
        async with client(environment, checkout) as server:
            await done(server, "remember", text="Deploys happen on Tuesdays.")

    async def recall() -> None:
        below = checkout / "src"
        below.mkdir()
        (checkout / ".git").mkdir()
        (checkout / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        async with client(environment, below) as server:
            found = await done(server, "recall", query="when are deploys?")
            assert found["results"][0]["text"] == "Deploys happen on Tuesdays."
            assert found["scope"]["found_by"] == "path"

    asyncio.run(remember())
    asyncio.run(recall())


def test_two_servers_write_to_one_store_at_once(environment, checkout):
    async def use() -> None:
        async with client(environment, checkout) as first, client(environment, checkout) as second:
            await done(first, "remember", text="Fact zero of nobody.")
            writes = [
                done(server, "remember", text=f"Number {n} was written by the {name} server.")
                for n in range(10)
                for name, server in (("first", first), ("second", second))
            ]
            ids = {written["id"] for written in await asyncio.gather(*writes)}
            assert len(ids) == 20
            for server in (first, second):
                assert (await done(server, "status"))["facts"] == 21

    asyncio.run(use())


def test_a_stdio_server_uses_the_running_server_of_its_home_and_survives_its_end(environment, checkout):
    async def use(port: int) -> None:
        home = Path(environment["EVERKEPT_HOME"])
        bound = {**environment, "EVERKEPT_BIND": f"127.0.0.1:{port}"}
        async with client(bound, checkout) as server:
            with serving(home, EVERKEPT_BIND=f"127.0.0.1:{port}"):
                await use_every_tool(server)
            found = await done(server, "recall", query="harbour")
            assert len(found["results"]) == 1

    asyncio.run(use(free_port()))


def test_killed_in_the_middle_a_server_loses_nothing_that_it_confirmed(environment, checkout):
    with talking(environment, checkout) as (process, ask):
        confirmed = [ask("remember", text=f"Point {n} of the plan is settled.") for n in range(5)]
        send(process, request("remember", 99, text="Point 99 is under way."))
        process.kill()
        process.wait(WAIT_S)
    assert all(not answer["result"].get("isError") for answer in confirmed)

    async def look() -> None:
        async with client(environment, checkout) as server:
            kept = {
                hit["text"] for hit in (await done(server, "recall", query="point of the plan", limit=20))["results"]
            }
            assert {f"Point {n} of the plan is settled." for n in range(5)} <= kept

    asyncio.run(look())


def test_rubbish_neither_ends_the_server_nor_reaches_anybody_else(environment, checkout):
    with talking(environment, checkout) as (process, ask):
        assert process.stdin is not None
        for rubbish in (b"rubbish\n", b"\xff\xfe\x00\n", b"\n", b"[]\n", b'{"jsonrpc":"2.0"}\n', b"{" * 10_000 + b"\n"):
            process.stdin.write(rubbish)
        answer = ask("status")
        assert answer["result"]["structuredContent"]["facts"] == 0


def test_rubbish_at_the_very_beginning_leaves_the_handshake_possible(environment, checkout):
    with started(environment, checkout) as process:
        assert process.stdin is not None
        process.stdin.write(b"\x00\x01 rubbish\n")
        send(process, MESSAGES["initialize"])
        assert answer_to(process, 0)["result"]["serverInfo"]["name"] == "everkept"


def test_stdout_carries_nothing_but_the_protocol(environment, checkout):
    noisy = {**environment, "EVERKEPT_LOG__LEVEL": "debug", "PYTHONWARNINGS": "always"}
    with started(noisy, checkout) as process:
        for message in (MESSAGES["initialize"], MESSAGES["initialized"], MESSAGES["list"]):
            send(process, message)
        answer_to(process, 1)
        for n, (name, arguments) in enumerate(
            [("remember", {"text": "Loud things go to stderr."}), ("recall", {"query": "loud"}), ("status", {})], 2
        ):
            send(process, request(name, n, **arguments))
            answer_to(process, n)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        rest = process.stdout.read()
        assert process.wait(WAIT_S) == 0
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in rest.splitlines())


def test_handshake_and_list_load_neither_an_embedder_nor_numpy_nor_a_store(environment, checkout):
    command = [sys.executable, "-X", "importtime", *COMMAND[1:]]
    lines = "".join(f"{json.dumps(MESSAGES[name])}\n" for name in ("initialize", "initialized", "list"))

    done = subprocess.run(
        command, input=lines, env=environment, cwd=checkout, capture_output=True, text=True, timeout=WAIT_S, check=True
    )

    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [tool["name"] for tool in answers[1]["result"]["tools"]] == TOOLS
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "everkept.doors.mcp.opening" in loaded
    before_list = loaded_before_the_list(done.stderr)
    assert not [name for name in before_list if name.startswith(HEAVY)]
    assert not [name for name in loaded if name.startswith(("numpy", "wordllama", "everkept.models"))]
    assert not Path(environment["EVERKEPT_HOME"]).exists()


def loaded_before_the_list(stderr: str) -> list[str]:
    """Modules in the order in which they were loaded, up to the door's own, which answers the opening."""
    names = [line.rpartition("|")[2].strip() for line in stderr.splitlines() if line.startswith("import time:")]
    return names[: names.index("everkept.doors.mcp.opening") + 1]


def test_the_clients_root_says_whose_memory_it_is_where_it_starts_us_elsewhere(environment, checkout, tmp_path):
    async def roots(_context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=checkout.as_uri())])

    async def use() -> None:
        async with client(environment, tmp_path, mode="legacy", list_roots_callback=roots) as server:
            assert (await done(server, "remember", text="Roots count."))["scope"]["value"] == str(checkout)

    asyncio.run(use())


def test_what_hooks_wrote_is_taken_in_before_the_answer_and_what_waits_is_told(environment, checkout):
    payload = {
        "session_id": "s1", "hook_event_name": "UserPromptSubmit", "cwd": str(checkout),
        "prompt": "Rename the lighthouse module to beacon.",
    }  # fmt: skip
    home = Path(environment["EVERKEPT_HOME"])
    install_patient_hook(home)
    subprocess.run(
        [sys.executable, "-I", "-S", str(home / "hook.py"), "--agent", "claude-code"], input=json.dumps(payload),
        env=environment, cwd=checkout, text=True, capture_output=True, timeout=WAIT_S, check=True,
    )  # fmt: skip

    async def use() -> None:
        async with client(environment, checkout) as server:
            found = await once_taken_in(server, "lighthouse beacon")
            assert "beacon" in text_of(found)
            assert (await done(server, "status"))["spool_waiting"] == 0

    asyncio.run(use())


async def once_taken_in(server: Client, query: str) -> types.CallToolResult:
    """At most 200 ms of taking in go before an answer; on a busy machine a later one has it, and each tells."""
    until = time.monotonic() + WAIT_S
    while True:
        answer = await call(server, "recall", query=query)
        if not answer.is_error and answer.structured_content["records_waiting"] == 0:
            return answer
        assert time.monotonic() < until, text_of(answer)


def test_an_unreadable_store_is_could_not_look_and_the_server_stays(environment, checkout, tmp_path):
    home = Path(environment["EVERKEPT_HOME"])
    home.mkdir()
    (home / "everkept.db").write_bytes(b"this is no database, and never was" * 200)

    async def use() -> None:
        async with client(environment, checkout) as server:
            for _ in range(2):
                failed = await call(server, "recall", query="anything")
                assert failed.is_error
                assert failed.structured_content["error"]["code"].startswith("store_")
                assert "nothing found" not in text_of(failed)

    asyncio.run(use())


# ---- without the SDK's client


@contextmanager
def started(environment: dict[str, str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        COMMAND, env=environment, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        bufsize=0,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait(WAIT_S)
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()


Ask = Callable[..., dict[str, Any]]


@contextmanager
def talking(environment: dict[str, str], folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], Ask]]:
    """A server after the handshake, and how to call a tool of it."""
    with started(environment, folder) as process:
        for name in ("initialize", "initialized"):
            send(process, MESSAGES[name])
        answer_to(process, 0)
        sent = 100

        def ask(name: str, **arguments: Any) -> dict[str, Any]:
            nonlocal sent
            sent += 1
            send(process, request(name, sent, **arguments))
            return answer_to(process, sent)

        yield process, ask


def request(name: str, id: int, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


def send(process: subprocess.Popen[bytes], message: dict[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(message).encode() + b"\n")


def answer_to(process: subprocess.Popen[bytes], id: int) -> dict[str, Any]:
    """Everything on stdout is a message; the one with this id."""
    assert process.stdout is not None
    while line := process.stdout.readline():
        message: dict[str, Any] = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        if message.get("id") == id:
            return message
    raise AssertionError("the server ended")
