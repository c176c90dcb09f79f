"""A flood of kernel log lines, kept to a bounded number of events.

A node in trouble logs thousands of lines a minute (4,500 OOM lines a minute have been reported), nearly all
of them alike. Of each kind so many pass per second; the rest are counted and reported in one event when the
second is over; of GPUs and switches in one for each code of each device, because their codes are different faults.
What is critical is never held back the first time in a second that it names an interface, a CPU or a process.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from zombiescope.kernel.log_formats import LogEvent

_SECOND_NS = 1_000_000_000
_SUBJECTS_MAX = 256
_FAULTS_MAX = 64
_SUBJECT = ("interface", "queue", "cpu", "comm", "gpu", "xid", "switch", "sxid")
_FAULT = ("gpu", "xid", "switch", "sxid")

_Fault = tuple[str | int | None, ...]


@dataclass(slots=True)
class _Held:
    last: LogEvent
    count: int = 0


@dataclass(slots=True)
class _Window:
    began_ns: int
    passed: int = 0
    held: dict[_Fault, _Held] = field(default_factory=dict)
    subjects: set[tuple[object, ...]] = field(default_factory=set)

    def hold(self, event: LogEvent) -> None:
        fault = tuple(event.fields.get(name) for name in _FAULT)
        if fault not in self.held and len(self.held) >= _FAULTS_MAX:
            fault = list(self.held)[-1]
        held = self.held.setdefault(fault, _Held(event))
        held.count += 1
        held.last = event


class FloodGuard:
    """`per_second` of each kind pass; of kernel_log, which carries the call traces, `log_per_second`."""

    def __init__(self, per_second: int = 20, log_per_second: int = 100) -> None:
        self._per_second = per_second
        self._log_per_second = log_per_second
        self._windows: dict[tuple[str, str], _Window] = {}
        self.held = 0

    def admit(self, event: LogEvent, now_ns: int) -> list[LogEvent]:
        """The events to store for this one: itself, or nothing, before it the sum of what was held back
        earlier."""
        key = (event.source, event.kind)
        window = self._windows.get(key)
        summed: list[LogEvent] = []
        if window is None or now_ns - window.began_ns >= _SECOND_NS:
            summed = _sum(window)
            window = self._windows[key] = _Window(now_ns)
        if self._passes(event, window):
            window.passed += 1
            return [*summed, event]
        window.hold(event)
        self.held += 1
        return summed

    def flush(self, now_ns: int) -> list[LogEvent]:
        """The sums of all kinds whose second is over. Call it about once a second."""
        over = [key for key, window in self._windows.items() if now_ns - window.began_ns >= _SECOND_NS]
        return [event for key in over for event in _sum(self._windows.pop(key))]

    def _passes(self, event: LogEvent, window: _Window) -> bool:
        if event.severity == "critical" and event.known is not None and len(window.subjects) < _SUBJECTS_MAX:
            subject = (event.known, *(event.fields.get(name) for name in _SUBJECT))
            if subject not in window.subjects:
                window.subjects.add(subject)
                return True
        limit = self._log_per_second if event.kind == "kernel_log" else self._per_second
        return window.passed < limit


def _sum(window: _Window | None) -> list[LogEvent]:
    return [] if window is None else [_told(held) for held in window.held.values()]


def _told(held: _Held) -> LogEvent:
    last = held.last
    more = replace(last, text=f"and {held.count} more like it, the last: {last.text}")
    return replace(more, fields={**last.fields, "held": held.count})
