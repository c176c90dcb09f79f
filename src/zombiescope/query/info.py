"""What is in a recording: who, from when to when, how many rows of what, how many bytes, and where it is
blind.

Rows of Parquet parts are known from their manifests; log segments and rollups have to be decoded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from zombiescope.store import schema
from zombiescope.store.core_lists import LEFT_OUT, listed
from zombiescope.store.gaps import Gap, all_gaps
from zombiescope.store.part import Damage
from zombiescope.store.reader import Recording


@dataclass(frozen=True, slots=True)
class Info:
    node: str
    kernel: str | None
    machine: str | None
    os: str | None
    timezone: str | None
    cpus: int | None
    left_out: tuple[int, ...]
    """Cores that were not sampled because somebody asked for that."""
    labels: dict[str, str]
    boots: tuple[str, ...]
    start_us: int
    end_us: int
    samples: int
    tables: dict[str, int]
    bytes: int
    parquet_parts: int
    log_segments: int
    gaps: tuple[Gap, ...]
    damage: tuple[Damage, ...]
    missing: tuple[dict[str, Any], ...]
    gpu_driver: str | None
    """None: no driver was loaded, or the recording is older than GPUs in it."""
    gpus: tuple[str, ...]
    """Their names, in the order of their numbers."""


def info(recording: Recording) -> Info:
    node = recording.node
    tables = {table.name: sum(part.count(table) for part in recording.parts) for table in schema.TABLES}
    tables |= {table.name: len(recording.table(table.name, columns=["time"])) for table in schema.ROLLUPS}
    gaps = tuple(all_gaps(recording))
    return Info(
        node=recording.name,
        kernel=_text(node.get("kernel")),
        machine=_text(node.get("machine")),
        os=_text(node.get("os")),
        timezone=_text(node.get("timezone")),
        cpus=_online(node.get("cpus")),
        left_out=tuple(sorted(listed(node, LEFT_OUT))),
        labels={str(key): str(value) for key, value in _object(node.get("labels")).items()},
        boots=tuple(dict.fromkeys(part.boot for part in recording.parts if part.boot)),
        start_us=recording.start_us,
        end_us=recording.end_us,
        samples=tables["samples"],
        tables=tables,
        bytes=recording.size_bytes,
        parquet_parts=len(recording.manifests),
        log_segments=len(recording.segments),
        gaps=gaps,
        damage=tuple(recording.damage),
        missing=tuple(entry for entry in _list(node.get("missing")) if isinstance(entry, dict)),
        gpu_driver=_text(node.get("gpu_driver")),
        gpus=_gpus(recording) if tables["gpus"] else (),
    )


def _gpus(recording: Recording) -> tuple[str, ...]:
    rows = recording.table("gpus", columns=["gpu", "name"])
    names = dict(zip(rows.column("gpu").to_pylist(), rows.column("name").to_pylist(), strict=True))
    return tuple(names[gpu] or "?" for gpu in sorted(gpu for gpu in names if gpu is not None))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _online(cpus: object) -> int | None:
    online = _object(cpus).get("online")
    return len(online) if isinstance(online, list) else None
