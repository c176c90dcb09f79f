"""Whether the recorder of a recording, and every part of it, is alive: what the banner of the page is made of."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response

from zombiescope.store import health
from zombiescope.store.health import Part
from zombiescope.web.held_recording import HeldRecording
from zombiescope.web.responder import Rec, Responder, says


def routes(responder: Responder) -> APIRouter:
    router = APIRouter(tags=["live"])

    @router.get("/health", **says("status --json"))
    def part_health(request: Request, rec: Rec = None) -> Response:
        """Every part of the recorder that writes this recording on the server's machine: its state, since when, why,
        and the fix. No parts: no recorder reports for it here. Reads no recording, so it answers at once."""
        return responder.plain(request, "health", _document(responder.recordings.named(rec)))

    return router


def _document(held: HeldRecording) -> dict[str, Any]:
    """Raises Refusal when the recording is gone."""
    held.refuse_gone()
    return {"live": held.live, "parts": [asdict(part) for part in _parts(held.node_dir)]}


def _parts(node_dir: Path | None) -> list[Part]:
    """Publishers write the path as they were given it; the server may know the same directory by another one."""
    if node_dir is None:
        return []
    for path in dict.fromkeys((node_dir, node_dir.absolute(), node_dir.resolve())):
        if found := health.parts_of(path):
            return found
    return []
