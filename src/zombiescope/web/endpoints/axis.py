"""What is drawn over the one axis of time: cores, events, cgroups, pressure."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response

from zombiescope.documents import cores as core_documents
from zombiescope.documents import events as event_documents
from zombiescope.documents import lanes as lane_documents
from zombiescope.documents import strip as strip_documents
from zombiescope.documents.window import Window
from zombiescope.recording.reader import Recording
from zombiescope.views.cores import cores as cores_of
from zombiescope.views.events import events as events_of
from zombiescope.web.asked import Text, WindowAsked
from zombiescope.web.desk import Desk, Rec, says
from zombiescope.web.served import Served

Columns = Annotated[int, Query(ge=1, le=20_000, description="At most so many columns or points.")]


def routes(desk: Desk) -> APIRouter:
    router = APIRouter(tags=["time"])

    @router.get("/strip", **says("cores", binary=True))
    def strip(request: Request, span: WindowAsked, rec: Rec = None, columns: Columns = 1_200) -> Response:
        """Every core over the window: the worst tick of each core in each column, and the mean over all of them."""
        return desk.answer(
            request, "strip", rec, span, lambda _, it, window: strip_documents.columns(it, window, columns)
        )

    @router.get("/lanes", **says("events --json, cgroups --json, info --json"))
    def lanes(request: Request, span: WindowAsked, rec: Rec = None, columns: Columns = 1_200) -> Response:
        """Events (the worst 2,000), memory cgroups, pressure, and where the recording is blind."""
        return desk.answer(
            request, "lanes", rec, span, lambda _, it, window: lane_documents.document(it, window, columns)
        )

    @router.get("/cores", **says("cores --json"))
    def cores(
        request: Request,
        span: WindowAsked,
        rec: Rec = None,
        hottest: Annotated[int | None, Query(ge=1, le=10_000, description="Only the worst so many.")] = None,
    ) -> Response:
        """How each core spent its time, and how long the kernel held it without a break."""

        def made(_: Served, recording: Recording, window: Window) -> dict[str, Any]:
            view = cores_of(recording, window.start_us, window.end_us)
            return core_documents.document(recording, window, view, core_documents.order(view, hottest))

        return desk.answer(request, "cores", rec, span, made)

    @router.get("/events", **says("events --json"))
    def events(
        request: Request,
        span: WindowAsked,
        rec: Rec = None,
        kind: Annotated[list[Text] | None, Query(max_length=100, description="Only this kind.")] = None,
        at_least: Annotated[Literal["info", "warning", "critical"], Query(description="And worse.")] = "info",
    ) -> Response:
        """Everything that happened in the window."""

        def made(_: Served, recording: Recording, window: Window) -> dict[str, Any]:
            found = events_of(recording, window.start_us, window.end_us, kinds=kind or None, at_least=at_least)
            return event_documents.document(recording.name, window, found)

        return desk.answer(request, "events", rec, span, made)

    return router
