"""The peer of the HTTP door: the same framework and server settings around one durable insert, and nothing else.

    python -m tests.bench.bare_app FILE [--group]

Without `--group` each request commits by itself, on the loop's thread, which is the shortest way there is. With it, a
writer thread commits what waits together, as Everkept's does.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel, Field

from everkept.store.sqlite import choose_driver, open_file

Rows = list[tuple[str, str, str, int]]
_TABLE = """
create table messages(
  id integer primary key, thread text not null, role text not null, content text not null, at integer not null)"""
_INSERT = "insert into messages(thread, role, content, at) values(?, ?, ?, ?)"


class One(BaseModel):
    role: str = "user"
    content: str
    subject: str | None = None


class Many(BaseModel):
    messages: list[One] = Field(min_length=1)
    subject: str | None = None


def open_messages(path: Path) -> Any:
    raw = open_file(choose_driver(), path)
    raw.execute("pragma wal_autocheckpoint = 1000")  # SQLite's default; Everkept's writer has its own
    raw.execute(_TABLE)
    return raw


def insert_durably(raw: Any, batches: list[Rows]) -> None:
    raw.execute("begin immediate")
    for rows in batches:
        raw.executemany(_INSERT, rows)
    raw.execute("commit")


class GroupCommit:
    """One thread that commits all that waits, and then wakes its callers in one go."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self._waiting = threading.Condition()
        self._calls: list[tuple[Rows, asyncio.Future[None]]] = []
        threading.Thread(target=self._run, daemon=True).start()

    async def write(self, rows: Rows) -> None:
        future = asyncio.get_running_loop().create_future()
        with self._waiting:
            self._calls.append((rows, future))
            self._waiting.notify()
        await future

    def _run(self) -> None:
        while True:
            with self._waiting:
                self._waiting.wait_for(lambda: bool(self._calls))
                calls, self._calls = self._calls, []
            insert_durably(self._raw, [rows for rows, _ in calls])
            calls[0][1].get_loop().call_soon_threadsafe(_answer, [future for _, future in calls])


def _answer(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)


def create_app(raw: Any, *, group: bool) -> FastAPI:
    app = FastAPI(openapi_url=None)
    write: Callable[[Rows], Awaitable[None]] = GroupCommit(raw).write if group else _write_alone(raw)

    @app.post("/threads/{thread}/messages", status_code=201)
    async def append(thread: str, body: One) -> dict[str, str]:
        await write([(thread, body.role, body.content, time.time_ns())])
        return {"thread": thread, "outcome": "stored"}

    @app.post("/threads/{thread}/batches", status_code=201)
    async def append_many(thread: str, body: Many) -> dict[str, Any]:
        await write([(thread, m.role, m.content, time.time_ns()) for m in body.messages])
        return {"thread": thread, "outcome": "stored", "messages": len(body.messages)}

    return app


def _write_alone(raw: Any) -> Callable[[Rows], Awaitable[None]]:
    async def write(rows: Rows) -> None:
        insert_durably(raw, [rows])

    return write


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--group", action="store_true")
    given = parser.parse_args()
    app = create_app(open_messages(given.file), group=given.group)
    # As doors/http/server.py sets them.
    config = uvicorn.Config(
        app,
        port=0,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=30,
    )
    listener = config.bind_socket()
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.listen(config.backlog)  # before it says so; the server would only do it later
    sys.stderr.write(f"bare app listens on http://127.0.0.1:{listener.getsockname()[1]}\n")
    sys.stderr.flush()
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
