"""Pictures of the samples: heat map, flame graph, flame chart."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from zombiescope._time import DEFAULT_HZ
from zombiescope.documents import filters as written
from zombiescope.documents import flamechart as chart_documents
from zombiescope.documents import flamegraph as flame_documents
from zombiescope.documents import heatmap as heat_documents
from zombiescope.documents import sides
from zombiescope.documents.columns import Columns
from zombiescope.documents.selected import selected
from zombiescope.documents.unclear import UnclearError
from zombiescope.documents.window import Window
from zombiescope.profile import flame, flamechart, heatmap
from zombiescope.profile.expression import Expression
from zombiescope.profile.heatmap import Heatmap
from zombiescope.profile.selection import EVERYTHING, Filters, Selection
from zombiescope.recording.columns import Ints
from zombiescope.recording.reader import Recording
from zombiescope.web.asked import FiltersAsked, WindowAsked
from zombiescope.web.desk import Desk, Rec, says
from zombiescope.web.served import Served

MOST_NODES = 1_000_000
UNSEEN_RATIO = 1e-5
"""A hundredth of a pixel of a graph 1,000 pixels wide; twelve hours have millions of such branches."""
Against = Annotated[str | None, Query(max_length=200, description="FROM..TO of the window to compare with.")]
AgainstRec = Annotated[str | None, Query(max_length=300, description="The recording that it is of.")]
Nodes = Annotated[int, Query(ge=1, le=MOST_NODES, description="At most so many; what is left out is said.")]


def routes(desk: Desk) -> APIRouter:
    router = APIRouter(tags=["profile"])

    @router.get("/heatmap", **says("heatmap --json", binary=True))
    def heat(
        request: Request,
        span: WindowAsked,
        filters: FiltersAsked,
        rec: Rec = None,
        by: Annotated[Literal["subsecond", "core"], Query(description="Rows: parts of the second, or cores.")] = (
            "subsecond"
        ),
        rows: Annotated[int, Query(ge=1, le=1000, description="Into how many parts a second is cut.")] = 50,
        columns: Annotated[int, Query(ge=1, le=200_000, description="At most so many; neighbours are added.")] = 20_000,
        paint: Annotated[
            str | None, Query(max_length=1000, description="Count samples with a frame that matches this, too.")
        ] = None,
    ) -> Response:
        """Samples over time: by part of the second, or by core."""
        searched = written.pattern(paint, "--paint", linear=True)

        def made(served: Served, recording: Recording, window: Window) -> Columns:
            def drawn(chosen: Filters) -> Heatmap:
                selection = selection_of(served, recording, window, chosen)
                found = heatmap.by_core(selection) if by == "core" else heatmap.subsecond(selection, rows)
                return found.narrowed(columns)

            painted = None if searched is None else drawn(_also(filters, searched))
            return heat_documents.columns(recording.name, by, drawn(filters), painted)

        return desk.answer(request, "heatmap", rec, span, made, samples=bool(searched) or filters != EVERYTHING)

    @router.get("/flamegraph", **says("flamegraph --json", binary=True))
    def graph(
        request: Request,
        span: WindowAsked,
        filters: FiltersAsked,
        rec: Rec = None,
        invert: Annotated[bool, Query(description="Start from where the time was spent.")] = False,
        against: Against = None,
        against_rec: AgainstRec = None,
        nodes: Nodes = 100_000,
        prune: Annotated[
            float | None, Query(ge=0, le=1, description="Leave out what is narrower. Default: what nobody could see.")
        ] = None,
    ) -> Response:
        """Where the time went; with `against`, how that differs from another window."""

        def made(served: Served, recording: Recording, window: Window) -> Columns:
            other, selection, base = _both(desk, served, recording, window, filters, against, against_rec)
            counts = selection.counts()
            below = min(UNSEEN_RATIO, 0.2 / nodes) if prune is None else prune
            tree = flame.fold(selection.stacks, counts, base, invert=invert, below_ratio=below)
            tree = flame_documents.within_nodes(tree, nodes)
            return flame_documents.columns(recording, window, other, tree, invert=invert)

        return desk.answer(request, "flamegraph", rec, span, made, samples=True)

    @router.get("/flamechart", **says("flamegraph --cpu N", binary=True))
    def chart(
        request: Request, span: WindowAsked, filters: FiltersAsked, rec: Rec = None, nodes: Nodes = 100_000
    ) -> Response:
        """What one core or one thread did, in the order of time."""
        if len(filters.cpus) + len(filters.tids) != 1:
            raise UnclearError("a chart is of one core or one thread; write --cpu N or --tid N")

        def made(served: Served, recording: Recording, window: Window) -> Columns:
            selection = selection_of(served, recording, window, filters, stacks=True)
            hz = float(recording.node.get("hz") or DEFAULT_HZ)
            return chart_documents.columns(recording.name, window, flamechart.chart(selection, hz, nodes))

        return desk.answer(request, "flamechart", rec, span, made, samples=True)

    return router


def selection_of(
    served: Served, recording: Recording, window: Window, filters: Filters, *, stacks: bool = False
) -> Selection:
    """With the stacks that are held already, where they will be needed."""
    selection = selected(recording, window, filters)
    if not (stacks or filters.on_stacks or "imported" in recording.node):
        return selection
    return selected(recording, window, filters, served.stacks(recording, [selection.span]))


def _also(filters: Filters, searched: Expression) -> Filters:
    """The same filters, and the frame that is searched for; two expressions are one that needs both."""
    if filters.match is None:
        return replace(filters, match=searched)
    return replace(filters, also=searched)


def _both(
    desk: Desk,
    served: Served,
    recording: Recording,
    window: Window,
    filters: Filters,
    against: str | None,
    against_rec: str | None,
) -> tuple[Window | None, Selection, Ints | None]:
    """The selection, and what of the other window is compared with it."""
    if against is None:
        return None, selection_of(served, recording, window, filters, stacks=True), None
    selection = selected(recording, window, filters)
    there = served if against_rec is None else desk.recordings.named(against_rec)
    if there is served:
        other = sides.between(against, recording, "--against")
        span = (other.start_us, other.end_us)
        known = served.stacks(recording, [selection.span, span])
        base = Selection(recording, *span, filters, known)
        return other, Selection(recording, *selection.span, filters, known), base.counts()
    with there.apart() as elsewhere:
        other = sides.between(against, elsewhere, "--against")
        both, counts = flame_documents.with_base(selection, elsewhere, other)
        return other, both, counts
