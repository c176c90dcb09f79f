"""Single numbers out of the table `counters`, by the name of their series."""

from __future__ import annotations

import numpy as np

from zombiescope.recording.columns import Ints, among, numbers, present, records, take
from zombiescope.recording.reader import Recording

_LOOK_BACK_US = (10 * 60 * 1_000_000, 60 * 60 * 1_000_000)


def last_value(recording: Recording, source: str, name: str, at_us: int) -> int | None:
    """The last value of a gauge at or before a moment, of whatever key; None when it was never measured.

    A gauge is written at the start of each segment at least, so the last minutes are looked at before all
    the rest.
    """
    for back_us in _LOOK_BACK_US:
        value = _last_in(recording, source, name, at_us - back_us, at_us)
        if value is not None:
            return value
    return _last_in(recording, source, name, None, at_us)


def _last_in(recording: Recording, source: str, name: str, start_us: int | None, at_us: int) -> int | None:
    _, values = _values(recording, source, name, start_us, at_us)
    return int(values[-1]) if len(values) else None


def last_by_key(recording: Recording, source: str, name: str, at_us: int) -> dict[str, int]:
    """The last value of a gauge for each of its keys, of the ten minutes up to a moment."""
    keys, values = _values(recording, source, name, at_us - _LOOK_BACK_US[0], at_us)
    return {key: int(value) for key, value in zip(keys, values.tolist(), strict=True) if key}


def _values(
    recording: Recording, source: str, name: str, start_us: int | None, at_us: int
) -> tuple[list[str | None], Ints]:
    """Every value of a series up to a moment with its key, in the order of time."""
    series = recording.table("series", start_us, at_us + 1, ("series", "source", "name", "key"))
    named = records(take(series, among(series, "name", [name])))
    keys = {row["series"]: row["key"] for row in named if row["source"] == source}
    if not keys:
        return [], np.zeros(0, np.int64)
    rows = recording.table("counters", start_us, at_us + 1, ("series", "value"))
    numbered, values = numbers(rows.column("series")), numbers(rows.column("value"))
    found = np.flatnonzero(np.isin(numbered, list(keys)) & present(rows.column("value")))
    return [keys[number] for number in numbered[found].tolist()], values[found]
