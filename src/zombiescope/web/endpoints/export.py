"""ExportSamples of a window as a download: in the format of another tool, or as this page in one file."""

from __future__ import annotations

import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, BinaryIO, cast
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response, StreamingResponse

from zombiescope.documents import export as export_documents
from zombiescope.documents.selection import profile
from zombiescope.query.exports.formats import BINARY, EVERY_EVENT, Format, writer
from zombiescope.query.exports.samples import ExportSamples
from zombiescope.questions.views import ExportQuestion, ProfileQuestion
from zombiescope.web.frozen import NotBuiltError
from zombiescope.web.parameters import query
from zombiescope.web.refusal import Refusal
from zombiescope.web.report import of_selection
from zombiescope.web.responder import Rec, Responder, says

Export = Annotated[ExportQuestion, Depends(query(ExportQuestion))]
Profile = Annotated[ProfileQuestion, Depends(query(ProfileQuestion))]

_ENDINGS = {
    Format.COLLAPSED: "collapsed.txt",
    Format.PPROF: "pb.gz",
    Format.OTLP: "otlp.pb",
    Format.SPEEDSCOPE: "speedscope.json",
    Format.FIREFOX: "firefox.json",
    Format.PERFETTO: "perfetto-trace",
    Format.PERF_SCRIPT: "perf.txt",
}
_CHUNK = 1 << 16
_IN_MEMORY = 8 << 20
MOST_DOWNLOADS = 8
"""Exports whose files are held: each is written as a whole before its first byte is sent."""


def routes(responder: Responder) -> APIRouter:
    router = APIRouter(tags=["profile"])
    downloads = _Downloads()

    @router.get("/export", **says("export"))
    def export(
        question: Export,
        format: Annotated[Format, Query(description="The format to write.")],  # noqa: A002
        rec: Rec = None,
    ) -> StreamingResponse:
        """The samples, as `zombiescope export` writes them."""
        question = replace(question, every_event=format in EVERY_EVENT)
        with downloads.place() as place, responder.apart(rec) as recording:
            found = export_documents.answer(recording, question)
            file = place.file
            writer(format, found.title, by=question.by)(ExportSamples(found.selection), cast("BinaryIO", file))
            name = f"{_plain(recording.name)}.{_ENDINGS[format]}"
        media = "application/octet-stream" if format in BINARY else "text/plain; charset=utf-8"
        headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
        return StreamingResponse(_pieces(place), media_type=media, headers=headers)

    @router.get("/page", **says("flamegraph -o FILE.html"))
    def page(
        question: Profile,
        rec: Rec = None,
        opens: Annotated[
            str, Query(max_length=2000, description="What the file shows first, as in the page's address.")
        ] = "",
    ) -> Response:
        """This page frozen into one file: the window, its samples, and every view of them."""
        with responder.apart(rec) as recording:
            found = profile(recording, question)
            try:
                text = of_selection(found.selection, found.title, found.window, dict(parse_qsl(opens)))
            except NotBuiltError as error:
                raise Refusal(503, error.what, "make setup builds it") from error
            name = f"{_plain(recording.name)}.html"
        headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
        return Response(text, media_type="text/html; charset=utf-8", headers=headers)

    return router


def _plain(name: str) -> str:
    return (
        "".join(each if each.isascii() and (each.isalnum() or each in "-._") else "_" for each in name)[:80] or "node"
    )


class _Download:
    """The file of one export, until it is sent or nobody wants it any more."""

    def __init__(self, release: Callable[[], None]) -> None:
        self.file = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115  closed below
        # A response whose client has left is never iterated: it just goes, and its file must go with it.
        self.close = weakref.finalize(self, _close, self.file, release)


def _close(file: tempfile.SpooledTemporaryFile[bytes], release: Callable[[], None]) -> None:
    file.close()
    release()


class _Downloads:
    """As many as may be on their way at once."""

    def __init__(self, most: int = MOST_DOWNLOADS) -> None:
        self._free = threading.BoundedSemaphore(most)

    @contextmanager
    def place(self) -> Iterator[_Download]:
        """Room for one, which stays taken until it is closed. Raises Refusal."""
        if not self._free.acquire(blocking=False):
            raise Refusal(503, f"{MOST_DOWNLOADS} exports are being sent already", "ask again in a moment")
        made = _Download(self._free.release)
        try:
            yield made
        except BaseException:
            made.close()
            raise


def _pieces(download: _Download) -> Iterator[bytes]:
    try:
        download.file.seek(0)
        while piece := download.file.read(_CHUNK):
            yield piece
    finally:
        download.close()
