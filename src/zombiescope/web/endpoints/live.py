"""What a recorder writes, as it writes it: server-sent events."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from zombiescope.store import incident_file
from zombiescope.web.follower import Follower, Watcher, brief, message
from zombiescope.web.refusal import Refusal
from zombiescope.web.responder import ERRORS, Rec, Responder

MOST_WATCHERS = 50
KEEP_ALIVE_S = 15.0
_SAYS: dict[str, Any] = {
    "response_class": StreamingResponse,
    "responses": {
        200: {
            "description": "On the command line: `zombiescope top`, `zombiescope events --follow --json`.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        },
        **ERRORS,
    },
}


def routes(responder: Responder) -> APIRouter:
    router = APIRouter(tags=["live"])

    @router.get("/live", **_SAYS)
    async def live(request: Request, rec: Rec = None) -> StreamingResponse:
        """`tick` every second, `event` when something happens, `incidents` when the live diagnosis has news, `recorder`
        when it stops or starts. Only of a recording that is being written."""
        node_dir = await run_in_threadpool(_live_dir, responder, rec)
        follower = responder.recordings.followers.of(node_dir)
        watcher = Watcher()
        if not follower.add(watcher, MOST_WATCHERS):
            raise Refusal(503, f"{MOST_WATCHERS} pages watch this recording already", "close one of them")
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        body = _Stream(request, follower, watcher, node_dir)
        return StreamingResponse(body, media_type="text/event-stream", headers=headers)

    return router


def _live_dir(responder: Responder, rec: str | None) -> Path:
    held = responder.recordings.named(rec)
    node_dir = held.node_dir
    if node_dir is None or not held.live:
        raise Refusal(409, "no recorder writes this recording now", "'zombiescope up' starts one")
    return node_dir


class _Stream:
    """What one watcher is sent; it stops watching when it ends, or when nobody has it any more."""

    def __init__(self, request: Request, follower: Follower, watcher: Watcher, node_dir: Path) -> None:
        self._messages = _messages(request, watcher, node_dir)
        self._leave = weakref.finalize(self, follower.remove, watcher)

    async def __aiter__(self) -> AsyncIterator[str]:
        try:
            async for text in self._messages:
                yield text
        finally:
            self._leave()


async def _messages(request: Request, watcher: Watcher, node_dir: Path) -> AsyncIterator[str]:
    yield "retry: 1000\n\n"
    known = await run_in_threadpool(incident_file.read, node_dir)
    yield message("incidents", [brief(entry) for entry in known])
    while not await request.is_disconnected():
        try:
            text = await asyncio.wait_for(watcher.queue.get(), KEEP_ALIVE_S)
        except TimeoutError:
            text = ": keep-alive\n\n"
        if text is None:
            return
        yield text
