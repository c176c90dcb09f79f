"""The Model Context Protocol: tools over stdio and over HTTP, by the official SDK.

The SDK speaks two generations of the protocol: 2026-07-28, which has no session, and 2025-11-25 with its handshake.
Answers are text with one JSON document; an error is a result that says so, as assistants read it.
"""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from typing import Any

import anyio
import mcp.types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from zombiescope.assistant.fact import written
from zombiescope.assistant.tools import TOOLS, Asked, Nodes
from zombiescope.base.errors import UserError
from zombiescope.base.text import printable

INSTRUCTIONS = """\
zombiescope recorded every core and stack of these Linux nodes. Begin with `incidents`; read one with `incident`. Each
fact has an id and a time: cite them. "not measured" is an answer: do not replace it by a guess. Before you state a
number, a core, a process, a function or a culprit that no fact contains, test it with `check`. Times are in UTC."""


def server(nodes: Nodes) -> Server[Any]:
    asked = Asked(nodes)

    async def listed(_: Any, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[
            types.Tool(
                name=tool.name, description=tool.about, input_schema=tool.schema(),
                annotations=types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
            )
            for tool in TOOLS
        ])  # fmt: skip

    async def called(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            found = await asyncio.to_thread(asked.answer, params.name, params.arguments or {})
        except UserError as error:
            return _said(str(error), failed=True)
        except OSError as error:
            return _said(f"the recording could not be read: {error.strerror or error}", failed=True)
        return _said(written(found))

    return Server(
        "zombiescope",
        version=version("zombiescope"),
        instructions=INSTRUCTIONS,
        on_list_tools=listed,
        on_call_tool=called,
    )


def _said(text: str, *, failed: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=printable(text))], is_error=failed)


def serve_stdio(nodes: Nodes) -> None:
    """Until the assistant closes the pipe."""

    async def run() -> None:
        made = server(nodes)
        async with stdio_server() as (incoming, outgoing):
            await made.run(incoming, outgoing, made.create_initialization_options())

    anyio.run(run)
