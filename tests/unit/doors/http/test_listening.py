from __future__ import annotations

import asyncio
import socket

import pytest

from everkept.config import load
from everkept.doors.http.server import listening


@pytest.mark.parametrize("bind", ["127.0.0.1:0", "localhost:0"])
def test_no_answer_waits_until_the_client_has_confirmed_the_part_before(bind: str) -> None:
    with listening(load({"EVERKEPT_BIND": bind}, None)) as listener:
        assert asyncio.run(_no_delay_of_a_connection(listener)) != 0


async def _no_delay_of_a_connection(listener: socket.socket) -> int:
    """TCP_NODELAY on the server's side."""
    connected: asyncio.Queue[int] = asyncio.Queue()

    def note(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connected.put_nowait(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    async with await asyncio.start_server(note, sock=listener):
        _, client = await asyncio.open_connection(*listener.getsockname()[:2])
        told = await connected.get()
        client.close()
        return told
