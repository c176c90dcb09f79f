"""What the node as a whole counted in a window: counters summed per series, single series, pressure, network cards.

A counter that did not move is 0 in the sums, and so is one that this node does not have, unless one asks whether it is
known."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from zombiescope.store.columns import Ints, among, numbers, present, records, take
from zombiescope.store.reader import Recording

Series = tuple[str, str, str | None, str]
"""Source, name, key and kind."""


class CounterSums:
    def __init__(self, series: Mapping[int, Series], ids: Ints, values: Ints) -> None:
        added = np.zeros(max(int(ids.max(initial=-1)), max(series, default=-1)) + 1, np.int64)
        np.add.at(added, ids, values)
        self._sums: dict[tuple[str, str, str], int] = {}
        for number, (source, name, key, kind) in series.items():
            if kind == "counter":
                identity = (source, name, key or "")
                self._sums[identity] = self._sums.get(identity, 0) + int(added[number])

    def total(self, source: str, name: str, key: str = "") -> int:
        return self._sums.get((source, name, key), 0)

    def known(self, source: str, name: str, key: str = "") -> bool:
        """Whether this node counts it."""
        return (source, name, key) in self._sums

    def by_key(self, source: str) -> dict[str, dict[str, int]]:
        """Device -> name -> sum."""
        found: dict[str, dict[str, int]] = {}
        for (of, name, key), added in self._sums.items():
            if of == source:
                found.setdefault(key, {})[name] = added
        return found


# --- series -----------------------------------------------------------------------------------------------------------
# Single numbers out of the table `counters`, by the name of their series.

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


# --- pressure ---------------------------------------------------------------------------------------------------------
# How much of the window tasks waited for a resource (PSI), and what memory reclaim did meanwhile.
#
# "some" is the part of the time in which at least one task waited, "full" that in which every runnable task did.

RESOURCES = ("cpu", "memory", "io", "irq")

RATES = (
    "pgscan_direct", "pgscan_kswapd", "allocstall", "compact_stall", "compact_fail", "pgmajfault",
    "workingset_refault_file", "pswpin", "pswpout",
)  # fmt: skip
COUNTS = ("oom_kill", "drop_pagecache", "drop_slab")


@dataclass(frozen=True, slots=True)
class WindowPressure:
    """Parts of the window, 0 to 1; None where the kernel does not measure it."""

    some: float | None
    full: float | None


@dataclass(frozen=True, slots=True)
class Reclaim:
    """Per second, by their names in /proc/vmstat; and counts of the window."""

    per_second: dict[str, float]
    counts: dict[str, int]


def pressure(sums: CounterSums, seconds: float, lacking: Collection[str] = ()) -> dict[str, WindowPressure]:
    """`lacking`: sources that could not be read."""
    if "pressure" in lacking:
        return {resource: WindowPressure(None, None) for resource in RESOURCES}
    return {resource: _of(sums, seconds, resource) for resource in RESOURCES}


def _of(sums: CounterSums, seconds: float, resource: str) -> WindowPressure:
    some, full = (
        min(1.0, sums.total("pressure", name, resource) / 1e6 / max(seconds, 1e-6)) for name in ("some_us", "full_us")
    )
    if resource == "irq":  # since 6.1, and it has no "some"
        return WindowPressure(None, full if sums.known("pressure", "full_us", "irq") else None)
    return WindowPressure(some, full)


def reclaim(sums: CounterSums, seconds: float, lacking: Collection[str] = ()) -> Reclaim | None:
    if "vmstat" in lacking:
        return None
    return Reclaim(
        {name: sums.total("vmstat", name) / max(seconds, 1e-6) for name in RATES},
        {name: sums.total("vmstat", name) for name in COUNTS},
    )


# --- network ----------------------------------------------------------------------------------------------------------
# Network cards and the packets that cores dropped in the window.

_TROUBLE = re.compile(
    r"drop|discard|missed|_miss(_|$)|timeout|reset|wd_expired|no_?buf|no_desc|exceeded|fifo|overrun|err(?!upt)|stuck|fail"
)
_COLUMNS = ("cpu", "softnet_processed", "softnet_dropped", "softnet_squeezed")


@dataclass(frozen=True, slots=True)
class Card:
    """`trouble`: counters of drops, errors, timeouts and the like that moved, of the kernel and of the driver."""

    name: str
    rx_packets: int
    tx_packets: int
    trouble: dict[str, int]


@dataclass(frozen=True, slots=True)
class SoftnetCore:
    """A core's packets: dropped because its backlog was full; squeezed is a poll that ran out of its time."""

    cpu: int
    processed: int
    dropped: int
    squeezed: int


def cards(node: dict[str, Any], sums: CounterSums) -> tuple[Card, ...]:
    sources = {source: sums.by_key(source) for source in ("netdev", "ethtool", "tx_timeout")}
    names = set(node.get("nics") or ()).union(*sources.values()) - {"lo"}
    return tuple(_card(name, *(found.get(name, {}) for found in sources.values())) for name in sorted(names))


def _card(name: str, kernel: dict[str, int], driver: dict[str, int], timeouts: dict[str, int]) -> Card:
    moved = {f"{queue}_timeout": count for queue, count in timeouts.items()}
    moved |= {counter: count for counter, count in {**driver, **kernel}.items() if _TROUBLE.search(counter)}
    trouble = {counter: count for counter, count in moved.items() if count}
    return Card(name, kernel.get("rx_packets", 0), kernel.get("tx_packets", 0), trouble)


def softnet(recording: Recording, start_us: int, end_us: int) -> tuple[SoftnetCore, ...] | None:
    """None: not measured."""
    rows = recording.table("cores", start_us + 1, end_us + 1, _COLUMNS)
    known = present(rows.column("softnet_processed"))
    if not known.any():
        return None
    cpus, *figures = (numbers(rows.column(name)) for name in _COLUMNS)
    return tuple(
        SoftnetCore(cpu, *(int(values[known & (cpus == cpu)].sum()) for values in figures))
        for cpu in sorted(set(cpus[known].tolist()))
    )
