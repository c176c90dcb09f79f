"""What is in a recording."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from zombiescope.views.info import Info


def document(found: Info) -> dict[str, Any]:
    same = ("node", "kernel", "machine", "os", "timezone", "cpus", "labels", "samples", "tables", "bytes")
    return {
        **{name: getattr(found, name) for name in same},
        "boots": list(found.boots),
        "from": found.start_us / 1e6,
        "to": found.end_us / 1e6,
        "parquet_parts": found.parquet_parts,
        "log_segments": found.log_segments,
        "gaps": [
            {"from": gap.from_us / 1e6, "to": gap.to_us / 1e6, "source": gap.source, "why": gap.why}
            for gap in found.gaps
        ],
        "damage": [asdict(damage) for damage in found.damage],
        "missing": list(found.missing),
    }
