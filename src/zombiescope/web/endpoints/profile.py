"""The samples of a window: heat map, flame graph, flame chart."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from zombiescope.documents import flamechart as chart_documents
from zombiescope.documents import flamegraph as flame_documents
from zombiescope.documents import heatmap as heat_documents
from zombiescope.documents.columns import Columns
from zombiescope.query.selection import EVERYTHING
from zombiescope.questions.views import (
    FlamechartQuestion,
    FlamegraphQuestion,
    HeatmapQuestion,
)
from zombiescope.store.reader import Recording
from zombiescope.web.held_recording import HeldRecording
from zombiescope.web.parameters import query
from zombiescope.web.responder import Rec, Responder, says

Heatmap = Annotated[HeatmapQuestion, Depends(query(HeatmapQuestion))]
Flamegraph = Annotated[FlamegraphQuestion, Depends(query(FlamegraphQuestion))]
Flamechart = Annotated[FlamechartQuestion, Depends(query(FlamechartQuestion))]
AgainstRec = Annotated[str | None, Query(max_length=300, description="The recording that `against` is of.")]


def routes(responder: Responder) -> APIRouter:
    router = APIRouter(tags=["profile"])

    @router.get("/heatmap", **says("heatmap --json", binary=True))
    def heat(request: Request, question: Heatmap, rec: Rec = None) -> Response:
        """Samples over time: by part of the second, or by core."""

        def made(held: HeldRecording, recording: Recording) -> Columns:
            return heat_documents.answer(recording, question, held.stacks).columns()

        filtered = question.paint is not None or question.filters.chosen() != EVERYTHING
        return responder.answer(request, "heatmap", rec, made, question.window, samples=filtered)

    @router.get("/flamegraph", **says("flamegraph --json", binary=True))
    def graph(request: Request, question: Flamegraph, rec: Rec = None, against_rec: AgainstRec = None) -> Response:
        """Where the time went; with `against`, how that differs from another window."""

        def made(held: HeldRecording, recording: Recording) -> Columns:
            there = held if against_rec is None else responder.recordings.named(against_rec)
            if question.against is None or there is held:
                return flame_documents.answer(recording, question, load=held.stacks).columns()
            with there.apart() as other:
                return flame_documents.answer(recording, question, other=other, load=held.stacks).columns()

        return responder.answer(request, "flamegraph", rec, made, question.window, samples=True)

    @router.get("/flamechart", **says("flamegraph --cpu N", binary=True))
    def chart(request: Request, question: Flamechart, rec: Rec = None) -> Response:
        """What one core or one thread did, in the order of time."""

        def made(held: HeldRecording, recording: Recording) -> Columns:
            return chart_documents.answer(recording, question, held.stacks)

        return responder.answer(request, "flamechart", rec, made, question.window, samples=True)

    return router
