"""Containers of a recording: who they are, whose pod, who asked for them, and how they ended.

From the table `containers`. A row replaces the earlier one of its id, and every segment says those that are there
again: so an hour before a window is read too, and says who was there when it began. Rows are read part by part and
only the last one of each id is kept: memory grows with the number of ids, not with the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from zombiescope.base.time import HOUR_US
from zombiescope.store import columns, schema
from zombiescope.store.container_names import SHORT_ID, ContainerName
from zombiescope.store.reader import Recording


class Container(NamedTuple):
    """The last that was recorded of one id; None is what nobody said. A tuple, because there are thousands on a node
    that leaks them, and it is made in a tenth of the time."""

    id: str
    name: str | None = None
    image: str | None = None
    runtime: str | None = None
    namespace: str | None = None
    pod: str | None = None
    pod_uid: str | None = None
    cgroup: str | None = None
    started_us: int | None = None
    exited_us: int | None = None
    code: int | None = None
    runs: int | None = None
    """How often its cgroup was made while the recorder watched."""
    restarts: int | None = None
    """As the runtime counts them."""
    restart_policy: str | None = None
    requester: str | None = None
    """Who ran the client that asked for it."""
    requester_pid: int | None = None
    requester_unit: str | None = None
    requester_command: str | None = None
    owner: str | None = None
    """The pod's, as the API server says: Deployment/web."""
    requester_container: str | None = None
    """The container that the requester runs in."""
    requester_how: str | None = None
    """How the requester is known: "command line" or "socket"."""
    manager: str | None = None
    """Who manages it, as its labels say: "compose project web"."""
    at_us: int = 0
    starts: int = 0
    """How often it was started in the span that was asked for."""
    first_us: int | None = None
    """The first of those starts that is known."""

    @property
    def alive(self) -> bool:
        """As far as is known: it did not exit, or it was started again since."""
        return self.exited_us is None or (self.started_us is not None and self.started_us > self.exited_us)

    @property
    def failed(self) -> bool:
        """It exited, and not with 0."""
        return not self.alive and bool(self.code)

    @property
    def label(self) -> str:
        """What a person calls it: its name with its pod's, else its image, else the start of its id."""
        return ContainerName(self.name, self.image, self.pod, self.namespace, self.owner).label or self.id[:SHORT_ID]


_COLUMNS = ("id", *(name for name in schema.CONTAINERS.names if name not in ("id", "time")), "time")
"""In the order of Container's fields."""
MOST_WAITING = 10_000


def containers(recording: Recording, start_us: int | None, end_us: int | None) -> dict[str, Container]:
    """By id, as they were last known in a span: those that were there in it or ended in it."""
    since_us = None if start_us is None else start_us - HOUR_US
    starts = _Starts(start_us or 0)
    pieces = recording.batches("containers", since_us, end_us, _COLUMNS)
    last = _LastOfEach()
    for rows in _relevant(pieces, start_us):
        last.add(starts.counted(rows))
    there = _in_window(last.table(), start_us)
    values = zip(*(_list(there, name) for name in _COLUMNS), strict=True)
    return {row[0]: _container(row, starts) for row in values if row[0]}


def _container(row: tuple[Any, ...], starts: _Starts) -> Container:
    values: list[Any] = [*row, starts.of(row[0]), starts.first_us(row[0])]
    return Container(*values)


def _relevant(pieces: Iterable[pa.Table], start_us: int | None) -> Iterator[pa.Table]:
    """The rows of the window, and before them of those that were still there when it began: a leak leaves thousands
    that were not."""
    before = _LastOfEach()
    for rows in pieces:
        inside = columns.cut(rows, "time", start_us, None)
        if len(inside) < len(rows):
            before.add(columns.cut(rows, "time", None, start_us))
        if len(inside):
            yield _in_window(before.table(), start_us)
            yield inside
            before = _LastOfEach()
    yield _in_window(before.table(), start_us)


class _LastOfEach:
    """The last row of each id. Rows wait until there are as many as are kept, so that those are not gone through again
    for every few that come."""

    def __init__(self) -> None:
        self._kept = columns.empty(schema.CONTAINERS, _COLUMNS)
        self._waiting: list[pa.Table] = []

    def add(self, rows: pa.Table) -> None:
        self._waiting.append(rows)
        if sum(map(len, self._waiting)) > max(MOST_WAITING, len(self._kept)):
            self._join()

    def table(self) -> pa.Table:
        if self._waiting:
            self._join()
        return self._kept

    def _join(self) -> None:
        rows = pa.concat_tables([self._kept, *self._waiting])
        last = {identity: row for row, identity in enumerate(columns.texts(rows.column("id")))}
        self._kept = rows if len(last) == len(rows) else columns.take(rows, np.array(sorted(last.values()), np.int64))
        self._waiting = []


def _in_window(rows: pa.Table, start_us: int | None) -> pa.Table:
    """Without those that had ended when the window began."""
    if start_us is None:
        return rows
    started, exited = (columns.numbers(rows.column(name)) for name in ("started", "exited"))
    there = ~columns.present(rows.column("exited")) | (exited >= start_us)
    there |= columns.present(rows.column("started")) & (started > exited)
    return rows if there.all() else columns.take(rows, np.flatnonzero(there))


class _Starts:
    """How often each id was started in a span.

    Three witnesses, each of which may have missed some: the moments at which it was started, the recorder's count of
    its runs, and the runtime's count of its restarts. The one that saw most is right.
    """

    def __init__(self, start_us: int) -> None:
        self._start_us = start_us
        self._moments: dict[str, tuple[int, int, int]] = {}
        """The first and the last start in the span, and how many there were."""
        self._counts: dict[str, tuple[int, int]] = {}
        """Runs and restarts before the span, or before the first start in it."""
        self._added: dict[str, int] = {}

    def of(self, identity: str) -> int:
        return max(self._added.get(identity, 0), self._moments.get(identity, (0, 0, 0))[2])

    def first_us(self, identity: str) -> int | None:
        known = self._moments.get(identity)
        return None if known is None else known[0]

    def counted(self, rows: pa.Table) -> pa.Table:
        names = ("id", "time", "started", "runs", "restarts")
        ids, *values = (_list(rows, name) for name in names)
        for identity, at_us, started_us, runs, restarts in zip(ids, *values, strict=True):
            if identity:
                first = self._moment(identity, started_us)
                self._count(identity, at_us < self._start_us, first, (runs or 0, restarts or 0))
        return rows

    def _moment(self, identity: str, started_us: int | None) -> bool:
        """Whether it was started in the span, and not said before."""
        if started_us is None or started_us < self._start_us:
            return False
        first, last, times = self._moments.get(identity, (started_us, 0, 0))
        if started_us > last:
            self._moments[identity] = (first, started_us, times + 1)
        return started_us > last

    def _count(self, identity: str, before: bool, started: bool, counts: tuple[int, int]) -> None:
        if before:
            self._counts[identity] = counts
            return
        # What is first said of it after a start in the span includes that start; the runtime counts from the second.
        base = self._counts.setdefault(identity, (counts[0] - started, counts[1] - started))
        added = max(now - then if now >= then else now for now, then in zip(counts, base, strict=True))
        self._added[identity] = max(added, self._added.get(identity, 0))


def _list(rows: pa.Table, name: str) -> list[Any]:
    column = rows.column(name)
    if pa.types.is_string(column.type):
        return columns.texts(column)
    values: list[Any] = columns.numbers(column).tolist()
    if column.null_count:
        return [value if known else None for value, known in zip(values, columns.present(column), strict=True)]
    return values
