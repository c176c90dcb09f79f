"""Network cards and the packets that cores dropped in the window."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from zombiescope.query.counter_sums import CounterSums
from zombiescope.store.columns import numbers, present
from zombiescope.store.reader import Recording

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
