"""Serving over stdio: the SDK's server, told what was said before it was there."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, cast

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from everkept.doors.mcp.opening import Opening, Wire

if TYPE_CHECKING:
    import anyio


async def serve(server: Server[Any], wire: Wire, opening: Opening) -> None:
    """Until the client closes its end."""
    lines = cast("anyio.AsyncFile[str]", _Lines(wire, opening))
    answers = cast("anyio.AsyncFile[str]", _Answers(wire, opening))
    async with stdio_server(stdin=lines, stdout=answers) as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


class _Lines:
    """The client's lines from the very first. A thread reads them, which nobody has to wait for at the end."""

    def __init__(self, wire: Wire, opening: Opening) -> None:
        self._wire = wire
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()
        for line in opening.lines:
            self._lines.put_nowait(line)
        threading.Thread(target=self._read, name="everkept-mcp-stdin", daemon=True).start()

    def _read(self) -> None:
        line = b"\n"
        while line:
            line = self._wire.reading.readline()
            try:
                self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
            except RuntimeError:  # the loop has ended
                return

    async def __aiter__(self) -> AsyncIterator[str]:
        while line := await self._lines.get():
            yield line.decode(errors="replace")


class _Answers:
    """What goes to the client, without what it was told before. Once it is gone nothing goes anywhere."""

    def __init__(self, wire: Wire, opening: Opening) -> None:
        self._wire = wire
        self._answered = list(opening.answered)

    async def write(self, text: str) -> None:
        if self._answered and self._was_answered(text):
            return
        try:
            await asyncio.to_thread(self._wire.write, text.encode())
        except OSError:  # its end is closed; ours follows as soon as that is read
            return

    async def flush(self) -> None:
        """Every write is."""

    def _was_answered(self, text: str) -> bool:
        message = json.loads(text)
        if "method" in message or message.get("id") not in self._answered:
            return False
        self._answered.remove(message["id"])
        return True
