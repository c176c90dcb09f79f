"""Who was recorded, what is in it, and how this machine is doing."""

from __future__ import annotations

import os
import threading
import time
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from zombiescope._time import DAY_US
from zombiescope.documents import audit as audit_documents
from zombiescope.documents import cgroups as cgroup_documents
from zombiescope.documents import history as history_documents
from zombiescope.documents import info as info_documents
from zombiescope.documents import status as status_documents
from zombiescope.documents import worst as worst_documents
from zombiescope.documents.window import Window, zone_of
from zombiescope.recording import locate
from zombiescope.recording.reader import Recording, open_recording
from zombiescope.recording.store import NotARecordingError
from zombiescope.views.cgroups import cgroups as cgroups_of
from zombiescope.views.history import history as history_of
from zombiescope.views.info import info as info_of
from zombiescope.web.asked import WindowAsked
from zombiescope.web.desk import WHOLE, Desk, Rec, says
from zombiescope.web.served import Served

AUDIT_KEPT_S = 60.0


def routes(desk: Desk) -> APIRouter:
    router = APIRouter(tags=["node"])
    audited = _Audited()

    @router.get("/recordings", **says("info"))
    def recordings(request: Request) -> Response:
        """The recordings that this server shows; `founding-case` is built when it is first asked for."""
        return desk.plain(request, "recordings", desk.recordings.document())

    @router.get("/info", **says("info --json"))
    def info(request: Request, rec: Rec = None) -> Response:
        """What is in a recording, and what the page needs to draw it."""
        return desk.answer(request, "info", rec, WHOLE, _info)

    @router.get("/status", **says("status --json"))
    def status(request: Request) -> Response:
        """Is a recorder running on the server's machine, and how is it doing."""
        return desk.plain(request, "status", _status())

    @router.get("/worst", **says("top, cores"))
    def worst(request: Request, span: WindowAsked, rec: Rec = None) -> Response:
        """The worst second of the window: the core that the kernel held most, who ran there, and what the mean of all
        cores looked like meanwhile."""
        return desk.long_answer(request, "worst", rec, span, lambda _, it, window: worst_documents.document(it, window))

    @router.get("/cgroups", **says("cgroups --json"))
    def cgroups(request: Request, span: WindowAsked, rec: Rec = None) -> Response:
        """The census of memory cgroups at the end of the window, who leaks them, and what that will cost when."""
        return desk.answer(request, "cgroups", rec, span, _cgroups)

    @router.get("/history", **says("history --last 30d --json"))
    def history(
        request: Request,
        rec: Rec = None,
        days: Annotated[float, Query(gt=0, le=3660, description="So many days up to the last row.")] = 30,
        step: Annotated[int | None, Query(ge=60, le=30 * 86400, description="Seconds of a point.")] = None,
    ) -> Response:
        """A month in rollups, across reboots."""

        def made(_: Served, recording: Recording, __: Window) -> dict[str, Any]:
            end_us = recording.end_us + 1
            points = history_of(recording, end_us - round(days * DAY_US), end_us, step and step * 1_000_000)
            return history_documents.document(recording.name, points)

        return desk.answer(request, "history", rec, WHOLE, made)

    @router.get("/audit", **says("audit --json"))
    def audit(request: Request, rec: Rec = None) -> Response:
        """Traps of the server's machine, if the recording is of it."""
        with desk.recordings.named(rec).reading() as recording:
            why = _elsewhere(recording)
        return desk.plain(request, "audit", audited.document() if why is None else {"available": False, "why": why})

    return router


def _info(served: Served, recording: Recording, _: Window) -> dict[str, Any]:
    found = info_of(recording)
    node = recording.node
    offset = datetime.fromtimestamp(found.end_us / 1e6, zone_of(node)).utcoffset()
    return info_documents.document(found) | {
        "live": served.live,
        "zone_offset_s": offset.total_seconds() if offset else 0.0,
        "hz": node.get("hz"),
        "interval_s": node.get("interval_s"),
        "version": version("zombiescope"),
        "note": served.note,
    }


def _cgroups(_: Served, recording: Recording, window: Window) -> dict[str, Any]:
    return cgroup_documents.document(recording, cgroups_of(recording, window.start_us, window.end_us))


def _status() -> dict[str, Any]:
    recorder = locate.running_recorder()
    if recorder is None:
        return status_documents.not_running()
    known = status_documents.running(recorder)
    try:
        with open_recording(recorder.recording, recorder.node) as recording:
            return known | status_documents.measured(recorder, recording)
    except (NotARecordingError, OSError):
        return known


def _elsewhere(recording: Recording) -> str | None:
    """Why an audit of this machine says nothing about the node; None when it is this machine."""
    boot, here = recording.node.get("boot"), _boot_id()
    if boot is not None and boot == here:
        return None
    if recording.name == os.uname().nodename and "imported" not in recording.node:
        return None  # recorded here, before a reboot
    return f"{recording.name} is another machine than the one that this server runs on"


def _boot_id() -> str | None:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


class _Audited:
    """An audit takes a second and changes rarely."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, Any] | None = None
        self._at = 0.0

    def document(self) -> dict[str, Any]:
        with self._lock:
            if self._known is None or self._at + AUDIT_KEPT_S < time.monotonic():
                from zombiescope.audit import baseline, examine

                found = examine(Path("/"), None)
                split = baseline.split(found.findings, ())
                self._known = {"available": True, **audit_documents.document(found, split, "info")}
                self._at = time.monotonic()
            return self._known
