"""node.json and incidents.json of a node: who it is, and what the live diagnosis on it found.

A node is judged by its incidents.json. Where the live diagnosis did not run, or the file cannot be read whole, the node
is not judged: it counts as sick for the incidents that are there, and never as healthy.
"""

from __future__ import annotations

import json
import math
from typing import Any

from zombiescope.base import json as _json
from zombiescope.base.severity import SEVERITIES
from zombiescope.fleet import tables
from zombiescope.fleet.plan import Item, ItemStore
from zombiescope.fleet.tables import Rows
from zombiescope.store import incident_file

MOST_LABELS = 256
WELL_KNOWN = (
    "zone", "region", "image", "instance_type", "pool", "nodepool", "kernel", "os", "driver",
    "topology.kubernetes.io/zone", "topology.kubernetes.io/region", "node.kubernetes.io/instance-type",
    "kubernetes.io/arch", "kubernetes.io/os", "beta.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
    "cloud.google.com/gke-nodepool", "cloud.google.com/gke-accelerator", "cloud.google.com/machine-family",
    "eks.amazonaws.com/nodegroup", "eks.amazonaws.com/nodegroup-image", "eks.amazonaws.com/capacityType",
    "kubernetes.azure.com/agentpool", "kubernetes.azure.com/node-image-version", "karpenter.sh/nodepool",
    "karpenter.sh/capacity-type", "karpenter.k8s.aws/instance-family", "nvidia.com/gpu.product",
    "nvidia.com/gpu.count", "nvidia.com/cuda.driver-version.full", "nvidia.com/cuda.driver.major",
    "node.cluster.x-k8s.io/machine-pool", "kueue.x-k8s.io/flavor", "slurm.partition", "partition", "rack", "row",
    "cluster", "datacenter", "team",
)  # fmt: skip
"""Labels that are kept first where a node has more than MOST_LABELS."""
_LAST = ("feature.node.kubernetes.io/", "beta.kubernetes.io/", "node-role.kubernetes.io/")
"""Prefixes of labels that come in hundreds: these go first."""
_RANK = {label: number for number, label in enumerate(WELL_KNOWN)}
MOST_OF_A_NAME, MOST_OF_A_TEXT = 200, 400
_MOST_FRAMES = 128
DIED = "died"
"""Of the fates of a job: that of the incident (diagnosis/incident.py)."""


def read(store: ItemStore, item: Item, rows: Rows, damage: list[str]) -> dict[str, Any]:
    """Fills in incidents; gives what is known of the node."""
    names = {file.name for file in item.files}
    why = _incidents(store, rows, damage) if incident_file.NAME in names else None
    try:
        node = _json.loads(store.read("node.json"))
        if not isinstance(node, dict):
            raise ValueError("is not an object")
    except (OSError, ValueError) as error:
        is_listed = any(file.changed_us is not None for file in item.files)
        damage.append(f"node.json: {error}" if is_listed else f"no file of a recording can be listed: {error}")
        node = {}
    if why is None and node.get("diagnosed") is False:
        why = "its recorder ran without the live diagnosis"
    if why is None and incident_file.NAME not in names and node.get("diagnosed") is not True:
        why = f"it has no {incident_file.NAME}"
    return {**_described(node), "not_judged": why}


def _incidents(store: ItemStore, rows: Rows, damage: list[str]) -> str | None:
    """Fills in incidents; gives why the file does not say whether the node is healthy."""
    try:
        data = store.read(incident_file.NAME)
        found = incident_file.parse(data)
        listed = _json.loads(data)
    except (OSError, ValueError) as error:
        damage.append(f"{incident_file.NAME}: {error}")
        return f"its {incident_file.NAME} cannot be read"
    made = [each for each in map(incident, found) if each is not None]
    rows["incidents"] = made
    entries = listed.get("incidents") if isinstance(listed, dict) else None
    if not isinstance(entries, list):
        damage.append(f"{incident_file.NAME}: it has no list of incidents")
        return f"its {incident_file.NAME} has no list of incidents"
    wrong = min(len(entries), incident_file.MOST) - len(made)
    if wrong:
        damage.append(f"{incident_file.NAME}: {wrong:,} entries are not incidents")
        return f"{wrong:,} entries of its {incident_file.NAME} are not incidents"
    return None


def _described(node: dict[str, Any]) -> dict[str, Any]:
    cpus = node.get("cpus")
    online = cpus.get("online") if isinstance(cpus, dict) else None
    missing = node.get("missing")
    labels = node.get("labels")
    return {
        "kernel": text(node.get("kernel")), "labels": labels_text(labels), "boot": text(node.get("boot")),
        "cpus": len(online) if isinstance(online, list) else None,
        "missing": len(missing) if isinstance(missing, list) else None, "name": text(node.get("node")),
        "labels_left_out": max(0, len(labels) - MOST_LABELS) if isinstance(labels, dict) else 0,
    }  # fmt: skip


def labels_text(labels: object) -> str | None:
    """Labels as JSON, sorted and bounded; None where there are none. Of too many the well-known ones are kept first."""
    if not isinstance(labels, dict):
        return None
    kept = {
        tables.encodable(key[:MOST_OF_A_NAME]): tables.encodable(value[:MOST_OF_A_NAME])
        for key, value in sorted(labels.items(), key=lambda entry: _label_order(str(entry[0])))[:MOST_LABELS]
        if isinstance(key, str) and isinstance(value, str) and value
    }
    return json.dumps(kept, sort_keys=True)


def _label_order(label: str) -> tuple[int, int, str]:
    return _RANK.get(label, len(_RANK)), int(label.startswith(_LAST)), label


def incident(found: dict[str, Any]) -> tuple[Any, ...] | None:
    from_s, to_s = number(found.get("from")), number(found.get("to"))
    if from_s is None:
        return None
    causes = found.get("causes")
    cause = causes[0] if isinstance(causes, list) and causes and isinstance(causes[0], dict) else {}
    severity = found.get("severity")
    lasted_s = max(0.0, (to_s or from_s) - from_s)
    return tables.row(
        "incidents",
        {
            "id": text(found.get("id")), "from_us": round(from_s * 1e6), "to_us": round((to_s or from_s) * 1e6),
            "severity": severity if severity in SEVERITIES else "info", "state": text(found.get("state")),
            "pattern": text(cause.get("pattern")) or "unexplained", "culprit": _actor(cause.get("culprit")),
            "hog": _actor(cause.get("hog")), "confidence": number(cause.get("confidence")),
            "summary": text(cause.get("summary"), MOST_OF_A_TEXT), "frames": _frames(cause.get("frames")),
            "gpu_lost_s": _gpu_lost_s(found.get("cost")), "job_lost_s": _job_lost_s(found.get("jobs"), lasted_s),
        },
    )  # fmt: skip


def _actor(actor: object) -> str | None:
    """Whom one would name: the pod or the unit, else the image, else the program."""
    if not isinstance(actor, dict):
        return None
    for key in ("unit", "pod", "image", "container_name", "comm", "cgroup"):
        if said := text(actor.get(key)):
            return said
    return None


def _frames(frames: object) -> str | None:
    if not isinstance(frames, list):
        return None
    shown = ";".join(str(frame)[:MOST_OF_A_NAME].replace(";", ":") for frame in frames[:_MOST_FRAMES])
    return tables.encodable(shown) or None


def _gpu_lost_s(cost: object) -> float | None:
    return number(cost.get("gpu_seconds_lost")) if isinstance(cost, dict) else None


def _job_lost_s(jobs: object, lasted_s: float) -> float:
    """What those jobs had run that died of it; where none did, how long they were held up."""
    lost = sum(
        number(job.get("ran_s")) or 0.0
        for job in (jobs if isinstance(jobs, list) else ())
        if isinstance(job, dict) and job.get("fate") == DIED
    )
    return lost or lasted_s


def text(value: object, most: int = MOST_OF_A_NAME) -> str | None:
    return tables.encodable(value[:most]) if isinstance(value, str) and value else None


def number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e12 and math.isfinite(value) else None
