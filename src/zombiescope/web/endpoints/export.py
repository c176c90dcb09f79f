"""Samples of a window as a download: in the format of another tool, or as this page in one file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, BinaryIO, cast
from urllib.parse import parse_qsl

from fastapi import APIRouter, Query
from starlette.responses import Response, StreamingResponse

from zombiescope.documents.filters import words
from zombiescope.documents.selected import selected
from zombiescope.exporting.formats import BINARY, EVERY_EVENT, By, Format, writer
from zombiescope.exporting.samples import ExportSamples
from zombiescope.web.asked import FiltersAsked, WindowAsked
from zombiescope.web.desk import Desk, Rec, says
from zombiescope.web.frozen import NotBuiltError
from zombiescope.web.refusal import Refusal
from zombiescope.web.report import of_selection

_ENDINGS = {
    Format.COLLAPSED: "collapsed.txt",
    Format.PPROF: "pb.gz",
    Format.OTLP: "otlp.pb",
    Format.SPEEDSCOPE: "speedscope.json",
    Format.FIREFOX: "firefox.json",
    Format.PERF_SCRIPT: "perf.txt",
}
_CHUNK = 1 << 16
_IN_MEMORY = 8 << 20


def routes(desk: Desk) -> APIRouter:
    router = APIRouter(tags=["profile"])

    @router.get("/export", **says("export"))
    def export(
        span: WindowAsked,
        filters: FiltersAsked,
        format: Annotated[Format, Query(description="What to write.")],  # noqa: A002
        rec: Rec = None,
        by: Annotated[By, Query(description="speedscope: one profile for each of these.")] = "core",
    ) -> StreamingResponse:
        """The samples, as `zombiescope export` writes them."""
        chosen = replace(filters, every_event=format in EVERY_EVENT)
        with desk.recordings.named(rec).apart() as recording:
            window = span.window(recording)
            title = "  ".join(part for part in (recording.name, window.heading(), words(filters)) if part)
            file = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115  closed when it is sent
            try:
                writer(format, title, by=by)(ExportSamples(selected(recording, window, chosen)), cast("BinaryIO", file))
            except BaseException:
                file.close()
                raise
            name = f"{_plain(recording.name)}.{_ENDINGS[format]}"
        media = "application/octet-stream" if format in BINARY else "text/plain; charset=utf-8"
        headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
        return StreamingResponse(_pieces(cast("BinaryIO", file)), media_type=media, headers=headers)

    @router.get("/page", **says("flamegraph -o FILE.html"))
    def page(
        span: WindowAsked,
        filters: FiltersAsked,
        rec: Rec = None,
        opens: Annotated[str, Query(max_length=2000, description="What the file shows first, as in an address.")] = "",
    ) -> Response:
        """This page frozen into one file: the window, its samples, and everything that can be asked of them."""
        with desk.recordings.named(rec).apart() as recording:
            window = span.window(recording)
            title = "  ".join(part for part in (recording.name, window.heading(), words(filters)) if part)
            try:
                text = of_selection(selected(recording, window, filters), title, window, dict(parse_qsl(opens)))
            except NotBuiltError as error:
                raise Refusal(503, str(error), "make setup builds it") from error
            name = f"{_plain(recording.name)}.html"
        headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
        return Response(text, media_type="text/html; charset=utf-8", headers=headers)

    return router


def _plain(name: str) -> str:
    return (
        "".join(each if each.isascii() and (each.isalnum() or each in "-._") else "_" for each in name)[:80] or "node"
    )


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    with file:
        file.seek(0)
        while piece := file.read(_CHUNK):
            yield piece
