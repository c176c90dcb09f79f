"""Single numbers out of the table `counters`, by the name of their series."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from zombiescope.store.columns import among, numbers, present, records, take
from zombiescope.store.reader import Recording

_LOOK_BACK_US = (10 * 60 * 1_000_000, 60 * 60 * 1_000_000)


def last_value(recording: Recording, source: str, name: str, at_us: int) -> int | None:
    """The last value of a gauge at or before a moment, of whatever key; None when it was never measured."""
    return last_values(recording, source, (name,), at_us)[name]


def last_values(recording: Recording, source: str, names: Sequence[str], at_us: int) -> dict[str, int | None]:
    """The same of several gauges of one source, for the price of one.

    A gauge is written at the start of each segment at least, so the last minutes are looked at before all
    the rest.
    """
    found: dict[str, int | None] = dict.fromkeys(names)
    for start_us in (*(at_us - back_us for back_us in _LOOK_BACK_US), None):
        sought = [name for name in names if found[name] is None]
        if not sought:
            break
        for (name, _), value in _values(recording, source, sought, start_us, at_us):
            found[name] = value
    return found


def last_by_key(recording: Recording, source: str, name: str, at_us: int) -> dict[str, int]:
    """The last value of a gauge for each of its keys, of the ten minutes up to a moment."""
    values = _values(recording, source, (name,), at_us - _LOOK_BACK_US[0], at_us)
    return {key: value for (_, key), value in values if key}


def _values(
    recording: Recording, source: str, names: Sequence[str], start_us: int | None, at_us: int
) -> list[tuple[tuple[str, str | None], int]]:
    """Every value of some series up to a moment with its name and key, in the order of time."""
    series = recording.table("series", start_us, at_us + 1, ("series", "source", "name", "key"))
    named = records(take(series, among(series, "name", names)))
    keys = {row["series"]: (row["name"], row["key"]) for row in named if row["source"] == source}
    if not keys:
        return []
    rows = recording.table("counters", start_us, at_us + 1, ("series", "value"))
    numbered, values = numbers(rows.column("series")), numbers(rows.column("value"))
    found = np.flatnonzero(np.isin(numbered, list(keys)) & present(rows.column("value")))
    pairs = zip(numbered[found].tolist(), values[found].tolist(), strict=True)
    return [(keys[number], value) for number, value in pairs]
