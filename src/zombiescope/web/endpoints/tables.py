"""Tables of the samples: the hottest functions, and what changed."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response

from zombiescope.documents import diff as diff_documents
from zombiescope.documents import stacks as stack_documents
from zombiescope.questions import sides
from zombiescope.questions.views import DiffQuestion, StacksQuestion
from zombiescope.questions.window import WindowQuestion
from zombiescope.recording.reader import Recording
from zombiescope.web.endpoints.profile import AgainstRec
from zombiescope.web.held_recording import HeldRecording
from zombiescope.web.parameters import query
from zombiescope.web.responder import Rec, Responder, says

Stacks = Annotated[StacksQuestion, Depends(query(StacksQuestion))]
Window = Annotated[WindowQuestion, Depends(query(WindowQuestion))]
Diff = Annotated[DiffQuestion, Depends(query(DiffQuestion))]


def routes(responder: Responder) -> APIRouter:
    router = APIRouter(tags=["profile"])

    @router.get("/functions", **says("stacks --json"))
    def functions(request: Request, question: Stacks, rec: Rec = None) -> Response:
        """The hottest functions and stacks."""

        def made(held: HeldRecording, recording: Recording) -> dict[str, Any]:
            return stack_documents.answer(recording, question, held.stacks).document()

        return responder.answer(request, "stacks", rec, made, question.window, samples=True)

    @router.get("/diff", **says("diff A B --json"))
    def diff(
        request: Request,
        window: Window,
        question: Diff,
        against: Annotated[str, Query(max_length=200, description="FROM..TO: what it was.")],
        rec: Rec = None,
        against_rec: AgainstRec = None,
    ) -> Response:
        """What changed since another window: cores, units, functions, memory cgroups."""
        side = sides.window(against)

        def compared(base: Recording, recording: Recording) -> dict[str, Any]:
            before, after = (base, side.choose(base)), (recording, window.choose(recording))
            return diff_documents.answer(before, after, question).document()

        def made(_: HeldRecording, recording: Recording) -> dict[str, Any]:
            if against_rec is None:
                return compared(recording, recording)
            with responder.recordings.named(against_rec).apart() as base:
                return compared(base, recording)

        return responder.answer(request, "diff", rec, made, window, samples=True)

    return router
