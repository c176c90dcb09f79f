"""Tables of the samples: the hottest functions, and what changed."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from zombiescope.documents import diff as diff_documents
from zombiescope.documents import sides
from zombiescope.documents import stacks as stack_documents
from zombiescope.documents.selected import selected
from zombiescope.documents.window import Window
from zombiescope.profile import top
from zombiescope.profile.comparison import compare
from zombiescope.profile.selection import Filters
from zombiescope.recording.reader import Recording
from zombiescope.web.asked import FiltersAsked, WindowAsked
from zombiescope.web.desk import Desk, Rec, says
from zombiescope.web.endpoints.profile import AgainstRec, selection_of
from zombiescope.web.served import Served


def routes(desk: Desk) -> APIRouter:
    router = APIRouter(tags=["profile"])

    @router.get("/functions", **says("stacks --json"))
    def functions(
        request: Request,
        span: WindowAsked,
        filters: FiltersAsked,
        rec: Rec = None,
        count: Annotated[int, Query(alias="top", ge=1, le=10_000, description="How many functions, and stacks.")] = 20,
    ) -> Response:
        """The hottest functions and stacks."""

        def made(served: Served, recording: Recording, window: Window) -> dict[str, Any]:
            selection = selection_of(served, recording, window, filters, stacks=True)
            counts = selection.counts()
            hot = top.functions(selection.stacks, counts, count)
            return stack_documents.document(
                recording.name, window, int(counts.sum()), hot, top.stacks(selection.stacks, counts, count)
            )

        return desk.answer(request, "stacks", rec, span, made, samples=True)

    @router.get("/diff", **says("diff A B --json"))
    def diff(
        request: Request,
        span: WindowAsked,
        filters: FiltersAsked,
        against: Annotated[str, Query(max_length=200, description="FROM..TO: what it was.")],
        rec: Rec = None,
        against_rec: AgainstRec = None,
        count: Annotated[int, Query(alias="top", ge=1, le=10_000, description="So many functions and units.")] = 12,
    ) -> Response:
        """What changed since another window: cores, units, functions, memory cgroups."""

        def made(_: Served, recording: Recording, window: Window) -> dict[str, Any]:
            there = desk.recordings.named(against_rec) if against_rec is not None else None
            if there is None:
                return _difference(recording, recording, window, against, filters, count)
            with there.apart() as base:
                return _difference(base, recording, window, against, filters, count)

        return desk.answer(request, "diff", rec, span, made, samples=True)

    return router


def _difference(
    before: Recording, after: Recording, window: Window, against: str, filters: Filters, count: int
) -> dict[str, Any]:
    other = sides.between(against, before, "--against")
    old = diff_documents.Side(other, selected(before, other, filters))
    new = diff_documents.Side(window, selected(after, window, filters))
    return diff_documents.document(old, new, compare(old.selection, new.selection), count)
