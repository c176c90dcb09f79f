"""The event that made samples, as it is stored: a row of the table `series` with the source "event".

A recorder samples one event and names it in node.json; imported samples may be of several, so each names its series.
"""

from __future__ import annotations

from typing import NamedTuple

EVENT_SOURCE = "event"
CLOCKS = frozenset({"cpu-clock", "task-clock"})
"""Events whose period is in nanoseconds of CPU."""
_WEIGHT, _SAMPLE = "weight", "sample"


class SampleEvent(NamedTuple):
    """`weighted`: a row stands for as many samples as its period says (collapsed stacks)."""

    name: str
    weighted: bool = False

    @classmethod
    def stored(cls, name: str, kind: str | None) -> SampleEvent:
        return cls(name, kind == _WEIGHT)

    @property
    def kind(self) -> str:
        """As in the table `series`."""
        return _WEIGHT if self.weighted else _SAMPLE

    @property
    def is_clock(self) -> bool:
        """Whether periods are CPU time. A name may carry modifiers: cpu-clock:uhpppH."""
        return self.name.partition(":")[0] in CLOCKS and not self.weighted
