"""Numbers that services count and /metrics shows. Every family is declared, with its bound on label values: what is
beyond the bound is counted together as "other", so that nobody who chooses names (units, cgroups, pods) can make
Prometheus grow."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from zombiescope.base.text import printable

OTHER = "other"
LABEL_CHARACTERS = 128

Labels = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Family:
    """One metric. A counter's name ends in _total."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    doc: str
    labels: tuple[str, ...] = ()
    most: int = 1
    """Combinations of label values."""
    per: str = ""
    """What the bound is, in words; for the documentation."""
    buckets: tuple[float, ...] = ()
    """Upper ends of a histogram's buckets; it has no labels."""
    former: str | None = None
    """Its name before it was renamed: exported for one version beside the new one."""


@dataclass(frozen=True, slots=True)
class Exemplar:
    """Grafana makes a link of its labels; OpenMetrics allows 128 characters of them."""

    labels: tuple[tuple[str, str], ...]
    at_s: float


class Tally:
    """Safe to use from every thread. A name that was not declared is a defect and raises KeyError."""

    def __init__(self, families: Iterable[Family]) -> None:
        self.families = {family.name: family for family in families}
        self._values: dict[str, dict[Labels, float]] = {name: {} for name in self.families}
        self._exemplars: dict[str, dict[Labels, Exemplar]] = {}
        self._lock = threading.Lock()

    def add(self, name: str, amount: float = 1.0, *labels: str) -> None:
        with self._lock:
            values, key = self._values[name], self._key(name, labels)
            values[key] = values.get(key, 0.0) + amount

    def exemplify(self, name: str, exemplar: Exemplar, *labels: str) -> None:
        """An example of what a counter's last step counted."""
        with self._lock:
            self._exemplars.setdefault(name, {})[self._key(name, labels)] = exemplar

    def set(self, name: str, value: float | None, *labels: str) -> None:
        """None: not measured, which is no line, never 0."""
        with self._lock:
            values, key = self._values[name], self._key(name, labels)
            if value is None:
                values.pop(key, None)
            else:
                values[key] = value

    def replace(self, name: str, values: Iterable[tuple[Labels, float]]) -> None:
        """A whole gauge anew; what is not there any more goes. Those beyond the bound are summed."""
        with self._lock:
            self._values[name] = {}
            for labels, value in values:
                key = self._key(name, labels)
                self._values[name][key] = self._values[name].get(key, 0.0) + value

    def observe(self, name: str, value: float) -> None:
        """Into a histogram: each bucket up to which it reaches, and the sum."""
        with self._lock:
            values = self._values[name]
            ends = [end for end in self.families[name].buckets if value <= end]
            for key in [*(f"{end:g}" for end in ends), "+Inf"]:
                values[(key,)] = values.get((key,), 0.0) + 1
            values[("sum",)] = values.get(("sum",), 0.0) + value

    def _key(self, name: str, labels: Labels) -> Labels:
        family, values = self.families[name], self._values[name]
        assert len(labels) == len(family.labels), name
        key = tuple(printable(label)[:LABEL_CHARACTERS] for label in labels)
        if key in values or len(values) < family.most:
            return key
        return (*key[:-1], OTHER) if (*key[:-1], OTHER) in values else (OTHER,) * len(labels)

    def values(self, name: str) -> dict[Labels, float]:
        with self._lock:
            return dict(self._values[name])

    def exemplars(self, name: str) -> dict[Labels, Exemplar]:
        with self._lock:
            return dict(self._exemplars.get(name, {}))
