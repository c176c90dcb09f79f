"""Many nodes: what the sick ones share. A node of the fleet is opened as the recording fleet:NAME."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from zombiescope.web.responder import Responder, says

NONE = {"state": "none", "root": None, "done": 0, "of": 0, "why": None, "report": None}


def routes(responder: Responder) -> APIRouter:
    router = APIRouter(tags=["fleet"])

    @router.get("/fleet", **says("fleet report ROOT --json"))
    def fleet(request: Request) -> Response:
        """The report of the fleet that `serve --fleet ROOT` shows; while it is read, how far that is."""
        shown = responder.recordings.fleet
        return responder.plain(request, "fleet", dict(NONE) if shown is None else shown.document())

    return router
