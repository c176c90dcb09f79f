"""node.json and incidents.json of a node: who it is, and what the doctor on it found."""

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

MOST_LABELS = 64
MOST_OF_A_NAME, MOST_OF_A_TEXT = 200, 400
_MOST_FRAMES = 128
DIED = "died"
"""Of the fates of a job: that of the incident (diagnosis/incident.py)."""


def read(store: ItemStore, item: Item, rows: Rows, damage: list[str]) -> dict[str, Any]:
    """Fills in incidents; gives what is known of the node."""
    names = {file.name for file in item.files}
    if incident_file.NAME in names:
        try:
            found = incident_file.parse(store.read(incident_file.NAME))
        except (OSError, ValueError) as error:
            damage.append(f"{incident_file.NAME}: {error}")
        else:
            rows["incidents"] = [made for made in map(_incident, found) if made is not None]
    try:
        node = _json.loads(store.read("node.json"))
        if not isinstance(node, dict):
            raise ValueError("is not an object")
    except (OSError, ValueError) as error:
        damage.append(f"node.json: {error}")
        return {}
    return _described(node)


def _described(node: dict[str, Any]) -> dict[str, Any]:
    cpus = node.get("cpus")
    online = cpus.get("online") if isinstance(cpus, dict) else None
    missing = node.get("missing")
    return {
        "kernel": text(node.get("kernel")), "labels": labels_text(node.get("labels")), "boot": text(node.get("boot")),
        "cpus": len(online) if isinstance(online, list) else None,
        "missing": len(missing) if isinstance(missing, list) else None,
    }  # fmt: skip


def labels_text(labels: object) -> str | None:
    """Labels as JSON, sorted and bounded; None where there are none."""
    if not isinstance(labels, dict):
        return None
    kept = {
        tables.encodable(key[:MOST_OF_A_NAME]): tables.encodable(value[:MOST_OF_A_NAME])
        for key, value in sorted(labels.items())[:MOST_LABELS]
        if isinstance(value, str) and value
    }
    return json.dumps(kept, sort_keys=True)


def _incident(found: dict[str, Any]) -> tuple[Any, ...] | None:
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
