"""What was diagnosed: all of it, one incident, and its report."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from zombiescope.diagnosis.report.markdown import markdown
from zombiescope.documents import fix as fix_documents
from zombiescope.documents import incidents as incident_documents
from zombiescope.documents.incidents import AROUND_US, DiagnosisAnswer
from zombiescope.questions.views import DiagnoseQuestion
from zombiescope.questions.window import WHOLE, Window, WindowQuestion
from zombiescope.store.reader import Recording
from zombiescope.web import report as frozen_report
from zombiescope.web.frozen import NotBuiltError
from zombiescope.web.held_recording import HeldRecording
from zombiescope.web.parameters import query
from zombiescope.web.refusal import Refusal
from zombiescope.web.responder import Rec, Responder, says

WITHOUT_DOCTOR = "10m"
"""What is looked at of a recording that is being written and that nobody diagnoses meanwhile (`record`, not `up`)."""
Diagnose = Annotated[DiagnoseQuestion, Depends(query(DiagnoseQuestion))]
Id = Annotated[str, Path(max_length=200, description="The incident's id.")]


def routes(responder: Responder) -> APIRouter:
    router = APIRouter(tags=["diagnosis"])

    @router.get("/incidents", **says("diagnose --json"))
    def incidents(request: Request, question: Diagnose, rec: Rec = None) -> Response:
        """Every incident, the worst first. Of a live recording: what its live diagnosis found, unless a window
        is named. Without live diagnosis the last ten minutes, otherwise the whole recording, are diagnosed now."""
        answer = responder.answer if _is_noted(responder, rec, question) else responder.long_answer
        return answer(
            request, "diagnose", rec, lambda held, recording: _found(held, recording, question), question.window
        )

    @router.get("/incidents/{id}", **says("diagnose --json"))
    def incident(request: Request, id: Id, question: Diagnose, rec: Rec = None) -> Response:  # noqa: A002
        """One of them; the window is where to look for it, if it is not known yet."""

        def made(held: HeldRecording, recording: Recording) -> dict[str, Any]:
            everything = _found(held, recording, question)
            one = _named(everything["incidents"], id)
            return {**one, "node": everything["node"], "window": everything["window"]}

        return responder.long_answer(request, "incident", rec, made, question.window)

    @router.get("/fixes/{id}", **says("fix --incident ID --json"))
    def fixes(request: Request, id: Id) -> Response:  # noqa: A002
        """What `fix` has done about an incident, as its log on this machine says: states of steps, who, when, before
        and after. Nothing can be applied from here."""
        return responder.plain(request, "fixes", fix_documents.answer(f"incident:{id}"))

    @router.get("/incidents/{id}/report", **says("diagnose -o report.html"))
    def report(
        id: Id,  # noqa: A002
        question: Diagnose,
        rec: Rec = None,
        format: Annotated[Literal["html", "md"], Query(description="HTML with pictures, or Markdown.")] = "html",  # noqa: A002
    ) -> Response:
        """The report of one incident, to be kept or sent."""
        held = responder.recordings.named(rec)
        with responder.apart(rec) as recording:
            known = _found(held, recording, question)
            text = _report(recording, _named(known["incidents"], id), format)
        media = "text/html" if format == "html" else "text/markdown"
        headers = {"Content-Disposition": f'attachment; filename="incident.{format}"', "Cache-Control": "no-store"}
        return Response(text, media_type=f"{media}; charset=utf-8", headers=headers)

    return router


def _is_noted(responder: Responder, rec: str | None, question: DiagnoseQuestion) -> bool:
    """Whether a doctor has the answer already: then it is a matter of a moment, on a loaded machine, too."""
    held = responder.recordings.named(rec)
    if question.window.given or not held.live:
        return False
    with held.reading() as recording:
        return bool(recording.node.get("diagnosed"))


def _found(held: HeldRecording, recording: Recording, question: DiagnoseQuestion) -> dict[str, Any]:
    if held.live and not question.window.given:
        if recording.node.get("diagnosed"):
            return incident_documents.noted(recording, WHOLE.choose(recording))
        question = replace(question, window=WindowQuestion(last=WITHOUT_DOCTOR))
    found = incident_documents.answer(recording, question, live=held.live)
    assert found is not None, "a request names no job and no pod"
    return found.document()


def _named(found: list[dict[str, Any]], wanted: str) -> dict[str, Any]:
    for entry in found:
        if entry.get("id") == wanted:
            return entry
    raise Refusal(404, f"no incident {wanted!r} is known here", "GET /api/v1/incidents lists them")


def _report(recording: Recording, entry: dict[str, Any], kind: str) -> str:
    """Diagnosed anew around its time: a report shows more than what is noted."""
    whole = WHOLE.choose(recording)
    start, end = (round(float(entry.get(side) or 0) * 1e6) for side in ("from", "to"))
    window = Window(max(start - AROUND_US, whole.start_us), min(end + AROUND_US, whole.end_us), whole.zone)
    one = _only(incident_documents.diagnosed(recording, window), str(entry["id"]))
    if kind == "html":
        try:
            return frozen_report.of_diagnosis(recording, one.found, one.heading, window)
        except NotBuiltError as error:
            raise Refusal(503, error.what, "make setup builds it; Markdown needs no page") from error
    return markdown(one.found, one.heading, lambda at_us: window.clock(at_us, 1))


def _only(answer: DiagnosisAnswer, wanted: str) -> DiagnosisAnswer:
    """That incident; all of them, if a shorter look names it otherwise."""
    same = tuple(each for each in answer.found.incidents if each.id == wanted)
    return replace(answer, found=replace(answer.found, incidents=same)) if same else answer
