"""scenario.json beside a recording that was kept: which scenario it is of, and when it hurt."""

from __future__ import annotations

import json
from pathlib import Path

FILE = "scenario.json"


def write(place: Path, scenario: str, from_us: int, to_us: int) -> None:
    place.mkdir(parents=True, exist_ok=True)
    (place / FILE).write_text(json.dumps({"scenario": scenario, "from_us": from_us, "to_us": to_us}) + "\n")


def read_span(place: Path) -> tuple[int, int] | None:
    """From the onset to the end of the fault; None for a recording that does not say."""
    try:
        document = json.loads((place / FILE).read_text())
        return int(document["from_us"]), int(document["to_us"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
