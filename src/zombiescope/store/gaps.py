"""Where a recording is blind: the rows of `gaps`, and the holes between the stretches of time that were
written.

A hole is more than three seconds without a frame, or any time between two runs of the recorder. The reason
is read from the two sides of the hole: another boot, another run, missing segment numbers (retention took
them), a monotonic clock that went on (the wall clock was set forward), or none of these.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING

import pyarrow as pa

from zombiescope.store import columns, schema
from zombiescope.store.layout import Span

if TYPE_CHECKING:
    from zombiescope.store.reader import Recording


HOLE_US = 3_000_000


@dataclass(frozen=True, slots=True)
class Gap:
    """A span in which a source saw nothing."""

    from_us: int
    to_us: int
    source: str
    why: str


def find_gaps(rows: pa.Table, spans: Iterable[Span]) -> list[Gap]:
    """Gaps in the order of time, from the table `gaps` and from the spans of all parts."""
    said = _said(rows)
    recorder = [gap for gap in said if gap.source == "recorder"]
    holes = [hole for hole in _holes(spans) if not any(_covers(gap, hole) for gap in recorder)]
    return _joined(said + holes)


def _joined(gaps: list[Gap]) -> list[Gap]:
    """In the order of time. A source that stays blind is said anew in each segment; here that is one gap."""
    joined: list[Gap] = []
    open_at: dict[tuple[str, str], int] = {}
    for gap in sorted(gaps, key=lambda gap: (gap.from_us, gap.to_us)):
        before = open_at.get((gap.source, gap.why))
        if before is not None and gap.from_us - joined[before].to_us <= HOLE_US:
            joined[before] = replace(joined[before], to_us=max(joined[before].to_us, gap.to_us))
        else:
            open_at[gap.source, gap.why] = len(joined)
            joined.append(gap)
    return joined


def _said(rows: pa.Table) -> list[Gap]:
    begins, ends = columns.numbers(rows.column("time")), columns.numbers(rows.column("end"))
    sources, whys = columns.texts(rows.column("source")), columns.texts(rows.column("why"))
    return [
        Gap(int(begin), int(end), source or "", why or "")
        for begin, end, source, why in zip(begins, ends, sources, whys, strict=True)
    ]


def _covers(gap: Gap, hole: Gap) -> bool:
    """The recorder knew of this hole itself, to within the time that counts as none."""
    return gap.from_us <= hole.from_us + HOLE_US and gap.to_us >= hole.to_us - HOLE_US


def _holes(spans: Iterable[Span]) -> list[Gap]:
    """Spans may be within each other, as those of imported files do: what counts is how far any of them reached."""
    ordered = sorted(spans, key=lambda span: (span.from_us, span.to_us))
    holes = []
    for before, after in zip(accumulate(ordered, _further), ordered[1:], strict=False):
        length_us = after.from_us - before.to_us
        if length_us > HOLE_US or (length_us > 0 and before.run_us != after.run_us):
            holes.append(Gap(before.to_us, after.from_us, "recorder", _why(before, after)))
    return holes


def _further(reached: Span, span: Span) -> Span:
    return span if span.to_us >= reached.to_us else reached


def _why(before: Span, after: Span) -> str:
    if before.boot != after.boot:
        return "the node was restarted"
    if before.run_us != after.run_us:
        return "the recorder was not running"
    if after.first_seq > before.last_seq + 1:
        return "not kept: the segments in between were removed"
    if 0 <= after.from_monotonic_ns - before.to_monotonic_ns <= HOLE_US * 1000:
        return "the clock was set forward"
    return "nothing was written"


# --- spans without samples --------------------------------------------------------------------------------------------
# The times of an import that no file with samples covers: a journal may go back an hour, a profile half a minute.
#
# A recording of our own says its gaps itself (gaps.py). An import has none written down, and saying nothing would claim
# that an hour was watched of which half a minute was.

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
