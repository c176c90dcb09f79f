"""/mcp: the tools for assistants over HTTP, beside the page (assistant/server.py).

The SDK is loaded at the first request, so a server that no assistant asks does not pay for it. Requests have no
session: each one is answered by itself, in JSON. The guard asks for the token before anything gets here.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from zombiescope.base import packages
from zombiescope.base.errors import UserError
from zombiescope.web import refusal

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from zombiescope.web.recordings import Recordings

PATH = "/mcp"
MOST_BYTES = 64 << 10
"""Of a request: arguments are short."""


class McpEndpoint:
    """An ASGI application that starts when it is first asked; `stop` ends it with the server."""

    def __init__(self, recordings: Recordings) -> None:
        self._recordings = recordings
        self._manager: StreamableHTTPSessionManager | None = None
        self._task: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._stopping = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            answer = refusal.document("assistants post their questions", "use POST")
            await JSONResponse(answer, 405, {"Allow": "POST"})(scope, receive, send)
            return
        try:
            manager = await self._started()
        except UserError as error:
            await JSONResponse(refusal.document(error.what, error.fix), 501)(scope, receive, send)
            return
        await manager.asgi_app(scope, receive, send)

    async def _started(self) -> StreamableHTTPSessionManager:
        async with self._starting:
            if self._manager is None:
                manager, ready = await asyncio.to_thread(self._made), asyncio.Event()
                self._task = asyncio.create_task(self._run(manager, ready))
                await ready.wait()
                self._manager = manager
            return self._manager

    def _made(self) -> StreamableHTTPSessionManager:
        try:
            from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

            from zombiescope.assistant.server import server
        except ModuleNotFoundError as error:
            raise packages.explained(error) from error
        return StreamableHTTPSessionManager(
            server(self._recordings), json_response=True, stateless=True, max_request_body_size=MOST_BYTES
        )

    async def _run(self, manager: StreamableHTTPSessionManager, ready: asyncio.Event) -> None:
        async with manager.run():
            ready.set()
            await self._stopping.wait()

    async def stop(self) -> None:
        self._stopping.set()
        if self._task is not None:
            await self._task
