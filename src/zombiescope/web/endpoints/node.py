"""Who was recorded, what is in it, and how this machine is doing."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response

from zombiescope.documents import audit as audit_documents
from zombiescope.documents import cgroups as cgroup_documents
from zombiescope.documents import containers as container_documents
from zombiescope.documents import history as history_documents
from zombiescope.documents import info as info_documents
from zombiescope.documents import status as status_documents
from zombiescope.documents import worst as worst_documents
from zombiescope.questions.views import AuditQuestion, ContainersQuestion, HistoryQuestion
from zombiescope.questions.window import WindowQuestion
from zombiescope.store.reader import Recording
from zombiescope.web.held_recording import HeldRecording
from zombiescope.web.parameters import query
from zombiescope.web.responder import Rec, Responder, says

Window = Annotated[WindowQuestion, Depends(query(WindowQuestion))]
Containers = Annotated[ContainersQuestion, Depends(query(ContainersQuestion))]
AUDIT_KEPT_S = 60.0
_CONTAINERS = 1_000
"""Listed for a request that does not say how many; families count all of them."""


def routes(responder: Responder) -> APIRouter:
    router = APIRouter(tags=["node"])
    cache = _AuditCache()

    @router.get("/recordings", **says("info"))
    def recordings(request: Request) -> Response:
        """The recordings that this server shows; `founding-case` is built when it is first asked for."""
        return responder.plain(request, "recordings", responder.recordings.document())

    @router.get("/info", **says("info --json"))
    def info(request: Request, rec: Rec = None) -> Response:
        """What is in a recording, and what the page needs to draw it."""

        def made(held: HeldRecording, recording: Recording) -> dict[str, Any]:
            return info_documents.for_page(recording, live=held.live, note=held.note)

        return responder.answer(request, "info", rec, made)

    @router.get("/status", **says("status --json"))
    def status(request: Request) -> Response:
        """Is a recorder running on the server's machine, and how is it doing."""
        return responder.plain(request, "status", status_documents.answer().document)

    @router.get("/worst", **says("top, cores"))
    def worst(request: Request, question: Window, rec: Rec = None) -> Response:
        """The worst second of the window: the core that the kernel held most, who ran there, and what the mean of all
        cores looked like at that time."""
        return responder.long_answer(
            request, "worst", rec, lambda _, recording: worst_documents.answer(recording, question), question
        )

    @router.get("/cgroups", **says("cgroups --json"))
    def cgroups(request: Request, question: Window, rec: Rec = None) -> Response:
        """The census of memory cgroups at the end of the window, who leaks them, and what that will cost when."""
        return responder.answer(
            request, "cgroups", rec, lambda _, recording: cgroup_documents.answer(recording, question), question
        )

    @router.get("/containers", **says("containers --json"))
    def containers(request: Request, question: Containers, rec: Rec = None) -> Response:
        """The containers of the window, which of them restart without end, and which program requested them."""
        bounded = replace(question, top=question.top or _CONTAINERS)

        def made(_: HeldRecording, recording: Recording) -> dict[str, Any]:
            return container_documents.answer(recording, bounded).document()

        return responder.answer(request, "containers", rec, made, question.window)

    @router.get("/history", **says("history --last 30d --json"))
    def history(
        request: Request,
        rec: Rec = None,
        days: Annotated[float, Query(gt=0, le=3660, description="How many days, up to the last row.")] = 30,
        step: Annotated[int | None, Query(ge=60, le=30 * 86400, description="Seconds of a point.")] = None,
    ) -> Response:
        """A month in rollups, across reboots."""
        question = HistoryQuestion(WindowQuestion(last=f"{days:f}d"), step)
        return responder.answer(
            request, "history", rec, lambda _, recording: history_documents.answer(recording, question)
        )

    @router.get("/audit", **says("audit --json"))
    def audit(request: Request, rec: Rec = None) -> Response:
        """Traps of the server's machine, if the recording is of it."""
        with responder.recordings.named(rec).reading() as recording:
            why = _elsewhere(recording)
        return responder.plain(request, "audit", cache.document() if why is None else {"available": False, "why": why})

    return router


def _elsewhere(recording: Recording) -> str | None:
    """Why an audit of this machine says nothing about the node; None when it is this machine."""
    here = _boot_id()
    if here is not None and here in {recording.node.get("boot"), *(part.boot for part in recording.parts)}:
        return None
    if recording.name != os.uname().nodename:
        return f"{recording.name} is another machine than the one that this server runs on"
    return (
        f"this server's machine is called {recording.name} too, but nothing in the recording is of its present boot: "
        "the recording may be of another machine with the same name"
    )


def _boot_id() -> str | None:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


class _AuditCache:
    """An audit takes a second and changes rarely."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, Any] | None = None
        self._at = 0.0

    def document(self) -> dict[str, Any]:
        with self._lock:
            if self._known is None or self._at + AUDIT_KEPT_S < time.monotonic():
                self._known = {"available": True, **audit_documents.answer(AuditQuestion()).document()}
                self._at = time.monotonic()
            return self._known
