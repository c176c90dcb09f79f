"""A recording as a splice reads it: its ticks, its cores, and its clock."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from zombiescope.base.errors import UserError
from zombiescope.base.time import SECOND_US
from zombiescope.lab.wide.axis import NULL, Axis, Slots, axis_of, slots
from zombiescope.store import columns, schema
from zombiescope.store.columns import Ints
from zombiescope.store.reader import Recording


class WidenError(UserError):
    """Recordings that cannot be spliced."""


class Source:
    """One recording. Raises WidenError for one that has no ticks to be spliced by."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._rows: dict[str, list[dict[str, Any]]] = {}
        self.node: dict[str, Any] = recording.node
        if isinstance(self.node.get("imported"), dict):
            raise WidenError(f"{recording.store.place} was imported, and has no ticks", "name what a recorder wrote")
        self.axis: Axis = axis_of(recording)
        if not len(self.axis):
            raise WidenError(f"{recording.store.place} has no tick of any core", "record at least two seconds")
        interval = self.node.get("interval_s")
        self.interval_us = round(float(interval or 1) * SECOND_US)
        self.slots: Slots = slots(self.axis, self.interval_us)
        cpus = columns.numbers(self.table("cores", "cpu").column("cpu"))
        self.cpus: tuple[int, ...] = tuple(np.unique(cpus).tolist())

    def table(self, name: str, *wanted: str) -> pa.Table:
        return self.recording.table(name, columns=wanted or None)

    def rows(self, name: str) -> list[dict[str, Any]]:
        """A small table, times as microseconds; read once, and nobody changes it."""
        if name not in self._rows:
            self._rows[name] = columns.records(self.recording.table(name))
        return self._rows[name]

    def numbers(self, table: pa.Table, column: str) -> Ints:
        """A column, with NULL where nothing was measured."""
        values = columns.numbers(table.column(column))
        known = columns.present(table.column(column))
        return values if known.all() else np.where(known, values, NULL)

    def known(self, meaning: str) -> set[int]:
        """Every number of one meaning (a pid, a GPU) in any table."""
        found: set[int] = set()
        for table in schema.TABLES:
            for name in table.meant(meaning):
                column = self.table(table.name, name).column(name)
                found.update(columns.numbers(column)[columns.present(column)].tolist())
        return found

    @cached_property
    def whole_slots(self) -> Ints:
        return self.slots.whole(self.interval_us)

    @property
    def hz(self) -> object:
        return self.node.get("hz")

    @cached_property
    def boot_us(self) -> int | None:
        """When the machine was booted, by the two clocks of the recording; None where it does not say."""
        for part in self.recording.parts:
            for span in part.spans():
                if span.from_monotonic_ns > 0:
                    return span.from_us - span.from_monotonic_ns // 1000
        return None
