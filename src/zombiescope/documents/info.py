"""What is in a recording."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from importlib.metadata import version
from typing import Any

from zombiescope.query.info import Info, info
from zombiescope.questions.window import Window, zone_of
from zombiescope.store.reader import Recording


def answer(recording: Recording) -> dict[str, Any]:
    return _document(info(recording))


def for_page(recording: Recording, *, live: bool, note: str | None, window: Window | None = None) -> dict[str, Any]:
    """And what the page needs to draw it, or a window of it."""
    found = answer(recording)
    end_us, zone = (recording.end_us, zone_of(recording.node)) if window is None else (window.end_us, window.zone)
    offset = datetime.fromtimestamp(end_us / 1e6, zone).utcoffset()
    return found | {
        "live": live,
        "zone_offset_s": offset.total_seconds() if offset else 0.0,
        "hz": recording.node.get("hz"),
        "interval_s": recording.node.get("interval_s"),
        "version": version("zombiescope"),
        "note": note,
    }


def _document(found: Info) -> dict[str, Any]:
    same = ("node", "kernel", "machine", "os", "timezone", "cpus", "labels", "samples", "tables", "bytes",
            "gpu_driver")  # fmt: skip
    return {
        **{name: getattr(found, name) for name in same},
        "left_out": list(found.left_out),
        "boots": list(found.boots),
        "gpus": list(found.gpus),
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
