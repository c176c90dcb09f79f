"""The times of an import that no file with samples covers: a journal may go back an hour, a profile half a minute.

A recording of our own says its gaps itself (gaps.py). An import has none written down, and saying nothing would claim
that an hour was watched of which half a minute was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zombiescope.store import schema
from zombiescope.store.gaps import HOLE_US, Gap

if TYPE_CHECKING:
    from zombiescope.store.reader import Recording

SOURCE = "stack samples"
WHY = "no file that was imported has samples of this time"


def unsampled(recording: Recording, start_us: int, end_us: int) -> list[Gap]:
    """In the order of time; none for a recording of our own."""
    if not isinstance(recording.node.get("imported"), dict):
        return []
    parts = [part for part in recording.parts if part.count(schema.SAMPLES)]
    found, reached_us = [], start_us
    for span in sorted((span for part in parts for span in part.spans()), key=lambda span: span.from_us):
        if span.from_us - reached_us > HOLE_US:
            found.append((reached_us, span.from_us))
        reached_us = max(reached_us, span.to_us)
    if end_us - reached_us > HOLE_US:
        found.append((reached_us, end_us))
    return [
        Gap(max(low, start_us), min(high, end_us), SOURCE, WHY)
        for low, high in found
        if high > start_us and low < end_us
    ]


def all_gaps(recording: Recording, start_us: int | None = None, end_us: int | None = None) -> list[Gap]:
    """Where a window, or all of it, is blind: what was written down, and what an import does not cover."""
    start = recording.start_us if start_us is None else max(start_us, recording.start_us)
    end = recording.end_us if end_us is None else min(end_us, recording.end_us)
    gaps = [*recording.gaps(start_us, end_us), *unsampled(recording, start, end)]
    return sorted(gaps, key=lambda gap: (gap.from_us, gap.to_us))
