"""Nodes that were not judged, diagnosed from their recordings: `fleet report --diagnose`.

A node is diagnosed here if samples or cores of it were recorded in the window. What could not be diagnosed stays not
judged, with the reason. A verdict is kept with the report's results, under a hash of the node's files and the window:
the next report does not diagnose the node again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from zombiescope.base import json as _json
from zombiescope.base import safe_files
from zombiescope.fleet import plan
from zombiescope.fleet.plan import Listing
from zombiescope.fleet.reading import identity
from zombiescope.fleet.statistics import IncidentFigures
from zombiescope.fleet.tables import TABLES

VERSION = 1
Progress = Callable[[int, int], object]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the diagnosis of one node found; `why_not`: why it could not judge the node."""

    node: str
    incidents: tuple[IncidentFigures, ...] = ()
    why_not: str | None = None


def diagnose_nodes(
    found: Listing, names: Iterable[str], start_us: int, end_us: int, results: Path, progress: Progress | None = None
) -> dict[str, Verdict]:
    """A verdict for each node, in the order given. What a node's files hold never ends it."""
    wanted = list(names)
    made: dict[str, Verdict] = {}
    for number, node in enumerate(wanted):
        made[node] = _verdict(found, node, start_us, end_us, results / f"verdicts-v{VERSION}")
        if progress is not None:
            progress(number + 1, len(wanted))
    return made


def _verdict(found: Listing, node: str, start_us: int, end_us: int, kept: Path) -> Verdict:
    said = " ".join(item.fingerprint for item in found.items if item.node == node)
    key = hashlib.blake2b(f"{node}\0{said}\0{start_us}\0{end_us}".encode("utf-8", "replace"), digest_size=16)
    path = kept / f"{key.hexdigest()}.json"
    known = _known(path, node)
    if known is not None:
        return known
    prefixes = {item.prefix for item in found.items if item.node == node}
    made = _diagnosed(found.place, min(prefixes, default=""), node, start_us, end_us)
    kept.mkdir(parents=True, exist_ok=True)
    with safe_files.replacing(path) as file:
        file.write(json.dumps(asdict(made)).encode())
    return made


def _known(path: Path, node: str) -> Verdict | None:
    try:
        said = _json.loads(path.read_bytes())
        incidents = tuple(IncidentFigures(**{**each, "frames": tuple(each["frames"])}) for each in said["incidents"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return Verdict(node, incidents, said.get("why_not"))


def _diagnosed(place: str, prefix: str, node: str, start_us: int, end_us: int) -> Verdict:
    from zombiescope.diagnosis.diagnose import diagnose
    from zombiescope.diagnosis.report.document import incident as to_document
    from zombiescope.store.reader import open_recording

    shard = prefix.partition("node=")[0]
    try:
        with open_recording(plan.below(place, shard), node) as recording:
            start, end = max(start_us, recording.start_us), min(end_us, recording.end_us + 1)
            if not recording.parts or start >= end:
                return Verdict(node, why_not="nothing but rollups of it was recorded in this window")
            said = diagnose(recording, start, end)
    except Exception as error:  # noqa: BLE001  one node's files must not end the report on all of them
        return Verdict(node, why_not=f"its recording cannot be diagnosed: {type(error).__name__}: {error}"[:300])
    if said.blind:
        return Verdict(node, why_not="neither cores nor stacks of it were recorded in this window")
    return Verdict(node, tuple(_figures(node, to_document(each)) for each in said.incidents))


def _figures(node: str, document: Mapping[str, Any]) -> IncidentFigures:
    row = identity.incident(dict(document))
    values = dict(zip(TABLES["incidents"], row or (), strict=True))
    frames = values["frames"]
    return IncidentFigures(
        node, values["id"], values["from_us"], values["to_us"], values["severity"], values["pattern"],
        values["culprit"], values["hog"], values["summary"], tuple(frames.split(";")) if frames else (),
        values["gpu_lost_s"], values["job_lost_s"],
    )  # fmt: skip
