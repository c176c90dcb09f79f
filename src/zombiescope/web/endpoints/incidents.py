"""What was diagnosed: all of it, one incident, and its report."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response

from zombiescope.diagnosis.diagnose import Diagnosis
from zombiescope.diagnosis.report.markdown import markdown
from zombiescope.documents import incidents as incident_documents
from zombiescope.documents.window import Window
from zombiescope.recording.reader import Recording
from zombiescope.web import report as frozen_report
from zombiescope.web.asked import Span, WindowAsked
from zombiescope.web.desk import WHOLE, Desk, Rec, says
from zombiescope.web.frozen import NotBuiltError
from zombiescope.web.refusal import Refusal
from zombiescope.web.served import Served

AROUND_US = 60_000_000
WITHOUT_DOCTOR_US = 600_000_000
"""What is looked at of a recording that is being written and that nobody diagnoses meanwhile (`record`, not `up`)."""
Id = Annotated[str, Path(max_length=200, description="The incident's id.")]


def routes(desk: Desk) -> APIRouter:
    router = APIRouter(tags=["diagnosis"])

    @router.get("/incidents", **says("diagnose --json"))
    def incidents(request: Request, span: WindowAsked, rec: Rec = None) -> Response:
        """Every incident, the worst first. Of a recording that is being written: what its doctor noted, unless a window
        is named; without a doctor the last ten minutes, and otherwise all of it, are diagnosed now."""
        return desk.long_answer(
            request, "diagnose", rec, span, lambda served, it, window: _found(served, it, window, span)
        )

    @router.get("/incidents/{id}", **says("diagnose --json"))
    def incident(request: Request, id: Id, span: WindowAsked, rec: Rec = None) -> Response:  # noqa: A002
        """One of them; the window is where to look for it, if it is not known yet."""

        def made(served: Served, recording: Recording, window: Window) -> dict[str, Any]:
            everything = _found(served, recording, window, span)
            one = _named(everything["incidents"], id)
            return {**one, "node": everything["node"], "window": everything["window"]}

        return desk.long_answer(request, "incident", rec, span, made)

    @router.get("/incidents/{id}/report", **says("diagnose -o report.html"))
    def report(
        id: Id,  # noqa: A002
        span: WindowAsked,
        rec: Rec = None,
        format: Annotated[Literal["html", "md"], Query(description="HTML with pictures, or Markdown.")] = "html",  # noqa: A002
    ) -> Response:
        """The report of one incident, to be kept or sent."""
        served = desk.recordings.named(rec)
        with served.apart() as recording:
            known = _found(served, recording, span.window(recording), span)
            text = _report(recording, _named(known["incidents"], id), format)
        media = "text/html" if format == "html" else "text/markdown"
        headers = {"Content-Disposition": f'attachment; filename="incident.{format}"', "Cache-Control": "no-store"}
        return Response(text, media_type=f"{media}; charset=utf-8", headers=headers)

    return router


def _found(served: Served, recording: Recording, window: Window, span: Span) -> dict[str, Any]:
    if served.live and not span.given:
        if recording.node.get("diagnosed"):
            return incident_documents.noted(recording, window)
        window = Window(max(window.start_us, window.end_us - WITHOUT_DOCTOR_US), window.end_us, window.zone)
    return incident_documents.of_diagnosis(incident_documents.diagnosed(recording, window, live=served.live))


def _named(found: list[dict[str, Any]], wanted: str) -> dict[str, Any]:
    for entry in found:
        if entry.get("id") == wanted:
            return entry
    raise Refusal(404, f"no incident {wanted!r} is known here", "GET /api/v1/incidents lists them")


def _report(recording: Recording, entry: dict[str, Any], kind: str) -> str:
    """Diagnosed anew around its time: a report shows more than what is noted."""
    whole = WHOLE.window(recording)
    start, end = (round(float(entry.get(side) or 0) * 1e6) for side in ("from", "to"))
    window = Window(max(start - AROUND_US, whole.start_us), min(end + AROUND_US, whole.end_us), whole.zone)
    found = _only(incident_documents.diagnosed(recording, window), str(entry["id"]))
    heading = f"{recording.name}  {window.heading()}"
    if kind == "html":
        try:
            return frozen_report.of_diagnosis(recording, found, heading, window)
        except NotBuiltError as error:
            raise Refusal(503, str(error), "make setup builds it; Markdown needs no page") from error
    return markdown(found, heading, lambda at_us: window.clock(at_us, 1))


def _only(found: Diagnosis, wanted: str) -> Diagnosis:
    """That incident; all of them, if a shorter look names it otherwise."""
    same = tuple(each for each in found.incidents if each.id == wanted)
    return replace(found, incidents=same) if same else found
