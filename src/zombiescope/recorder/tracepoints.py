"""What the recorder does with a tracepoint: a table of names, filters and handlers.

Each part of the recorder that wants tracepoints lists them (`Cgroups.tracepoints`, `KernelLog.tracepoints`,
nic.TX_TIMEOUT). The rings open those that this kernel has and number them; nobody else knows the numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from zombiescope.kernel.tracefs import Field
from zombiescope.store.event import Event

Fields = dict[str, Field]


class TraceRecord(NamedTuple):
    """A tracepoint that fired, as it lay in a ring."""

    kind: int
    monotonic_ns: int
    cpu: int
    pid: int
    tid: int
    raw: bytes


@dataclass(frozen=True, slots=True)
class Tracepoint:
    group: str
    name: str
    handle: Callable[[TraceRecord, Fields, int], Iterable[Event]]
    """Record, fields of its format, wall time in microseconds -> the events that it makes."""
    where: str | None = None
    """The kernel's filter."""
    is_urgent: bool = False
    """The loop wakes for each of its records: what it tells of may be gone in a second."""

    @property
    def source(self) -> str:
        return f"tracepoint {self.group}:{self.name}"
