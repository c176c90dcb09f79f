"""What is drawn over the one axis of time: cores, events, cgroups, pressure, who delayed whom."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from zombiescope.documents import cores as core_documents
from zombiescope.documents import delays as delay_documents
from zombiescope.documents import events as event_documents
from zombiescope.documents import gpu as gpu_documents
from zombiescope.documents import lanes as lane_documents
from zombiescope.documents import strip as strip_documents
from zombiescope.questions.views import (
    CoresQuestion,
    DelaysQuestion,
    EventsQuestion,
    GpuQuestion,
    LanesQuestion,
    SeriesQuestion,
)
from zombiescope.web.parameters import query
from zombiescope.web.responder import Rec, Responder, says

Series = Annotated[SeriesQuestion, Depends(query(SeriesQuestion))]
Lanes = Annotated[LanesQuestion, Depends(query(LanesQuestion))]
Cores = Annotated[CoresQuestion, Depends(query(CoresQuestion))]
Delays = Annotated[DelaysQuestion, Depends(query(DelaysQuestion))]
Gpu = Annotated[GpuQuestion, Depends(query(GpuQuestion))]
Events = Annotated[EventsQuestion, Depends(query(EventsQuestion))]


def routes(responder: Responder) -> APIRouter:
    router = APIRouter(tags=["time"])

    @router.get("/strip", **says("cores", binary=True))
    def strip(request: Request, question: Series, rec: Rec = None) -> Response:
        """Every core over the window: the worst tick of each core in each column, and the mean over all of them."""
        return responder.answer(
            request, "strip", rec, lambda _, recording: strip_documents.answer(recording, question), question.window
        )

    @router.get("/lanes", **says("events --json, cgroups --json, info --json"))
    def lanes(request: Request, question: Lanes, rec: Rec = None) -> Response:
        """Events (the worst 2,000), memory cgroups, pressure, GPUs, Python threads, disks, network and memory, and the
        gaps of the recording."""
        return responder.answer(
            request, "lanes", rec, lambda _, recording: lane_documents.answer(recording, question), question.window
        )

    @router.get("/cores", **says("cores --json"))
    def cores(request: Request, question: Cores, rec: Rec = None) -> Response:
        """How each core spent its time, and how long the kernel held it without a break."""
        return responder.answer(
            request,
            "cores",
            rec,
            lambda _, recording: core_documents.answer(recording, question),
            question.window,
        )

    @router.get("/gpu", **says("gpu --json"))
    def gpu(request: Request, question: Gpu, rec: Rec = None) -> Response:
        """Where the GPU seconds went, by job, process or GPU, and the times in which a GPU that was in use was idle."""
        return responder.long_answer(
            request, "gpu", rec, lambda _, recording: gpu_documents.answer(recording, question), question.window
        )

    @router.get("/events", **says("events --json"))
    def events(request: Request, question: Events, rec: Rec = None) -> Response:
        """Everything that happened in the window."""
        return responder.answer(
            request,
            "events",
            rec,
            lambda _, recording: event_documents.answer(recording, question).document(),
            question.window,
        )

    @router.get("/delays", **says("delays --json"))
    def delays(request: Request, question: Delays, rec: Rec = None) -> Response:
        """Which tasks waited for a core, for how long, and which ran there in that time."""
        return responder.answer(
            request,
            "delays",
            rec,
            lambda _, recording: delay_documents.answer(recording, question),
            question.window,
            samples=True,
        )

    return router
