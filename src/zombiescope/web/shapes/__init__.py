"""The shapes of the answers, for the OpenAPI document and for the page, whose types are made from it.

They describe and do nothing else: no answer is checked against them while it is served. tests/unit/web/test_shapes.py
compares them with real answers, key by key and both ways, so that the description cannot lie.
"""

from __future__ import annotations

from typing import Any

from zombiescope.documents.columns import MEDIA_TYPE
from zombiescope.documents.cores import Cores
from zombiescope.documents.delays import DelaysAnswer
from zombiescope.documents.gpu import GpuAccount
from zombiescope.model.answer import Schemas
from zombiescope.web.shapes import cgroups, containers, diagnosis, fleet, node, python, samples
from zombiescope.web.shapes.common import TimelineEvent

DOCUMENTS: dict[str, Any] = {
    "recordings": node.RecordingList,
    "info": node.Info,
    "status": node.Status,
    "health": node.Health,
    "worst": node.Worst,
    "cgroups": cgroups.Cgroups,
    "containers": containers.Containers,
    "history": node.History,
    "audit": cgroups.Audit,
    "lanes": node.Lanes,
    "cores": Cores,
    "gpu": GpuAccount,
    "events": node.Events,
    "functions": samples.Stacks,
    "python": python.PythonThreads,
    "delays": DelaysAnswer,
    "who": samples.Who,
    "diff": samples.Difference,
    "incidents": diagnosis.Diagnosis,
    "incidents/{id}": diagnosis.OneIncident,
    "fixes/{id}": diagnosis.Fixes,
    "fleet": fleet.FleetAnswer,
}
"""Path -> its JSON."""
HEADERS: dict[str, Any] = {
    "strip": node.StripHeader,
    "heatmap": samples.HeatmapHeader,
    "flamegraph": samples.FlamegraphHeader,
    "flamechart": samples.FlamechartHeader,
    "tracks": samples.TracksHeader,
}
"""Path -> the header before its columns."""
LIVE: dict[str, Any] = {
    "tick": node.Tick,
    "event": TimelineEvent,
    "incidents": list[node.IncidentNote],
    "recorder": node.RecorderState,
}
"""Event of the stream -> its data."""
FILES = {
    "export": ("application/octet-stream", "text/plain"),
    "page": ("text/html",),
    "incidents/{id}/report": ("text/html", "text/markdown"),
}
"""Path -> what is downloaded there."""


def describe(document: dict[str, Any], prefix: str) -> None:
    """Writes the shapes into the OpenAPI document of the API below `prefix`."""
    wanted = {("json", path): shape for path, shape in DOCUMENTS.items()}
    wanted |= {("header", path): shape for path, shape in HEADERS.items()}
    wanted |= {("live", kind): shape for kind, shape in LIVE.items()}
    schemas = Schemas(open_ended=(diagnosis.Symptom,))
    made = {key: schemas.of(shape) for key, shape in wanted.items()}
    document["components"]["schemas"] |= schemas.components

    def content(path: str) -> dict[str, Any]:
        found: dict[str, Any] = document["paths"][f"{prefix}/{path}"]["get"]["responses"]["200"]["content"]
        return found

    for path in DOCUMENTS:
        content(path)["application/json"]["schema"] = made["json", path]
    for path in HEADERS:
        content(path)[MEDIA_TYPE]["schema"]["x-header"] = made["header", path]
    content("live")["text/event-stream"]["schema"]["x-events"] = {kind: made["live", kind] for kind in LIVE}
    for path, media in FILES.items():
        content(path).clear()
        content(path).update({each: {"schema": {"type": "string", "format": "binary"}} for each in media})
