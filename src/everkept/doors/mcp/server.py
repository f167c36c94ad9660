"""The tools as a server of the official SDK, whatever the transport."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
import structlog
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from everkept import __version__
from everkept.doors.mcp.answers import Answer, failure
from everkept.doors.mcp.calls import Calls
from everkept.doors.mcp.place import Memories, Place
from everkept.doors.mcp.tools import INSTRUCTIONS, NAME, TOOLS
from everkept.errors import EverkeptError

Context = ServerRequestContext[Any, Any]
Placing = Callable[[Context], Awaitable[tuple[Memories, Place]]]
"""Whose memory a request may use, and where its caller is."""

_log = structlog.get_logger("everkept.mcp")


def make_server(placing: Placing) -> Server[Any]:
    """A server whose tools work on what `placing` finds for each request."""
    listed = types.ListToolsResult(tools=[types.Tool.model_validate(tool) for tool in TOOLS])

    async def list_tools(_context: Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return listed

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            memories, place = await placing(context)
            answer = await Calls(memories).call(params.name, params.arguments, place)
        except EverkeptError as error:
            answer = failure(error)
        except Exception as error:  # noqa: BLE001  # the last resort: the caller gets an answer, and we a log
            _log.error("tool failed", tool=params.name, exc_info=error)
            answer = failure(EverkeptError("something went wrong inside Everkept"))
        return _result(answer)

    return Server(
        NAME, version=__version__, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
    )


def _result(answer: Answer) -> types.CallToolResult:
    content = types.TextContent(type="text", text=answer.text)
    return types.CallToolResult(content=[content], structured_content=answer.data, is_error=answer.failed)
