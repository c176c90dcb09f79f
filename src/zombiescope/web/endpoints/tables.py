"""Tables of the samples: the hottest functions, and what changed."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response

from zombiescope.documents import diff as diff_documents
from zombiescope.documents import python as python_documents
from zombiescope.documents import stacks as stack_documents
from zombiescope.documents import who as who_documents
from zombiescope.documents.columns import Columns
from zombiescope.questions import sides
from zombiescope.questions.views import (
    DiffQuestion,
    PythonQuestion,
    StacksQuestion,
    TracksQuestion,
    WhoQuestion,
)
from zombiescope.questions.window import WindowQuestion
from zombiescope.store.reader import Recording
from zombiescope.web.endpoints.profile import AgainstRec
from zombiescope.web.held_recording import HeldRecording
from zombiescope.web.parameters import query
from zombiescope.web.responder import Rec, Responder, says

Stacks = Annotated[StacksQuestion, Depends(query(StacksQuestion))]
Who = Annotated[WhoQuestion, Depends(query(WhoQuestion))]
Tracks = Annotated[TracksQuestion, Depends(query(TracksQuestion))]
Window = Annotated[WindowQuestion, Depends(query(WindowQuestion))]
Python = Annotated[PythonQuestion, Depends(query(PythonQuestion))]
Diff = Annotated[DiffQuestion, Depends(query(DiffQuestion))]


def routes(responder: Responder) -> APIRouter:
    router = APIRouter(tags=["profile"])

    @router.get("/functions", **says("stacks --json"))
    def functions(request: Request, question: Stacks, rec: Rec = None) -> Response:
        """The hottest functions and stacks."""

        def made(held: HeldRecording, recording: Recording) -> dict[str, Any]:
            return stack_documents.answer(recording, question, held.stacks).document()

        return responder.answer(request, "stacks", rec, made, question.window, samples=True)

    @router.get("/python", **says("python --json"))
    def python(request: Request, question: Python, rec: Rec = None) -> Response:
        """What threads were doing in Python: function, file and line, and over time."""
        return responder.answer(
            request,
            "python",
            rec,
            lambda _, recording: python_documents.answer(recording, question).document(),
            question.window,
        )

    @router.get("/who", **says("stacks --json"))
    def who(request: Request, question: Who, rec: Rec = None) -> Response:
        """Who ran: samples by process, thread, unit or pod."""

        def made(held: HeldRecording, recording: Recording) -> dict[str, Any]:
            return who_documents.answer(recording, question, held.stacks)

        return responder.answer(request, "who", rec, made, question.window, samples=True)

    @router.get("/tracks", **says("stacks --json", binary=True))
    def tracks(request: Request, question: Tracks, rec: Rec = None) -> Response:
        """Who ran when: those that ran most, over time."""

        def made(held: HeldRecording, recording: Recording) -> Columns:
            return who_documents.tracks(recording, question, held.stacks)

        return responder.answer(request, "tracks", rec, made, question.window, samples=True)

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
