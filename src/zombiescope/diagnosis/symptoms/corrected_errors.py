"""Errors that the hardware corrected, again and again on one part: a memory module, a PCIe device.

One is what error correction is for, and makes no symptom. How many are too many is answered differently by every maker
and tool; ten within ten minutes is beyond what any of them calls ordinary.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.thresholds import CORRECTED_ERRORS_MANY, CORRECTED_ERRORS_WITHIN_US
from zombiescope.store.columns import Ints

OVERLOOKED = "some part"

Rows = tuple[Ints, Ints]


def find(facts: Facts) -> Iterator[Symptom]:
    seen: set[str] = set()
    for source, part, (time, count) in (*_counted(facts), *_logged(facts)):
        span = _densest(time, count)
        if span is not None and part not in seen:
            seen.add(part)
            yield _symptom(source, part, *span)


def _counted(facts: Facts) -> Iterator[tuple[str, str, Rows]]:
    for (name, part), rows in facts.readings("edac").items():
        if name == "ce":
            yield "counters", part, rows


def _logged(facts: Facts) -> Iterator[tuple[str, str, Rows]]:
    by_part: dict[str, list[tuple[int, int]]] = {}
    for event in facts.events:
        if event.kind == "hardware_error" and event.fields.get("type") == "CE":
            count = event.fields.get("held") or event.fields.get("count") or 1
            named = (event.fields.get(name) for name in ("part", "device", "controller"))
            part = str(next((name for name in named if name), OVERLOOKED))
            by_part.setdefault(part, []).append((event.at_us, count if isinstance(count, int) else 1))
    for part, rows in by_part.items():
        time, count = np.array(sorted(rows), np.int64).T
        yield "events", part, (time, count)


def _densest(time: Ints, count: Ints) -> tuple[int, int, int] | None:
    """The first ten minutes with too many: from, to, how many; None where there are none."""
    summed = np.concatenate([[0], np.cumsum(count)])
    last = np.searchsorted(time, time + CORRECTED_ERRORS_WITHIN_US, side="right")
    many = summed[last] - summed[np.arange(len(time))]
    if not len(many) or many.max() < CORRECTED_ERRORS_MANY:
        return None
    first = int(np.flatnonzero(many >= CORRECTED_ERRORS_MANY)[0])
    return int(time[first]), int(time[last[first] - 1]), int(many[first])


def _symptom(source: str, part: str, from_us: int, to_us: int, count: int) -> Symptom:
    named = "a part of the machine" if part == OVERLOOKED else part
    text = f"{named} corrected {count:,} errors in {(to_us - from_us) / 1e6:.0f} s"
    facts = {"part": part, "named": named, "count": count, "source": source}
    return Symptom(DETECTOR, from_us, to_us, text, group=part, facts=facts, subject="machine")


DETECTOR = Detector(
    kind="corrected_errors",
    title="a part corrects errors again and again",
    reported_when="a memory module or a PCIe device corrected ten errors within ten minutes; fewer are what error "
    "correction is for",
    find=find,
    source="counters",
    role="victim",
    about="machine",
    has_hog=False,
)
