"""Minutes and unit hours: what is kept for thirty days, across restarts and reboots.

A minute is written when it is over, a unit's CPU every ten minutes (as part of its hour), so a kill costs
at most that. Rows of the same minute, or of the same hour and unit, add up: a recorder that is restarted in
the middle of a minute writes a second row for it, and readers put them together.

The files are segments like those of the log (store/log.py), rollup/<start_us>.seg, a new one for each
day and each start of the recorder. A full disk loses nothing at first: rows wait in memory, at most two
days of them, and go into a new file when there is room.

Size: 192 cores and 200 units make about 6 MB in thirty days; the number of cores does not matter, units are
cut to the hundred with most CPU and a rest "(other)".
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from zombiescope.base import safe_files
from zombiescope.base.time import DAY_US, HOUR_US, MINUTE_US
from zombiescope.recorder.sample_writer import TaskShare
from zombiescope.recorder.tick import Tick
from zombiescope.store import schema
from zombiescope.store.layout import ROLLUP_FOLDER
from zombiescope.store.log import SegmentEncoder, encode_rows
from zombiescope.store.segment_writer import HandOver, at_once
from zombiescope.store.thresholds import JUDGED_OVER_US, SATURATED_RATIO

UNITS_EVERY_US = 10 * MINUTE_US
TOP_UNITS = 100
MAX_UNITS, KEPT_UNITS = 4096, 1024
"""Known at a time; when there are too many, those with most CPU stay."""
OTHER = "(other)"
MAX_WAITING_ROWS = 40_000

_Row = tuple[schema.Table, tuple[Any, ...]]


@dataclass(slots=True)
class _CoreRun:
    """One core: ticks not yet judged, and how long it has been saturated without a break."""

    elapsed_us: int = 0
    kernel_ms: int = 0
    run_us: int = 0
    end_us: int = 0


@dataclass(slots=True)
class _Minute:
    start_us: int
    elapsed_us: int = 0
    saturated_us: int = 0
    longest_us: int = 0
    longest_cpu: int | None = None
    busy_ms: int | None = None
    kernel_ms: int | None = None
    cpus: set[int] = field(default_factory=set)
    memory_cgroups: int | None = None
    dying: int | None = None
    restarts: int = 0
    critical_events: int = 0
    nic_events: int = 0
    lost: int = 0

    def row(self, boot: str) -> tuple[Any, ...]:
        return (
            self.start_us, boot, round(self.elapsed_us / 1e6),
            self.saturated_us // 1000, self.longest_us // 1000, self.longest_cpu,
            self.busy_ms, self.kernel_ms, len(self.cpus) or None, self.memory_cgroups, self.dying,
            self.restarts, self.critical_events, self.nic_events, self.lost,
        )  # fmt: skip


@dataclass(slots=True)
class _Unit:
    cpu_ms: int = 0
    kernel_ms: int = 0
    minute_ms: int = 0
    busiest_minute_ms: int = 0

    def end_minute(self) -> None:
        self.busiest_minute_ms = max(self.busiest_minute_ms, self.minute_ms)
        self.minute_ms = 0


class Rollup:
    """Adds up what the ticks bring. Call flush() once a tick, after the rest, and close() at the end."""

    def __init__(
        self, node_dir: Path, boot_id: str, hand_over: HandOver = at_once, about: dict[str, Any] | None = None
    ) -> None:
        """`hand_over`: who writes; the rest of it never touches the disk. `about`: what each file's header says of the
        node, its labels and its kernel: they are what they were then, when node.json says what they are now."""
        self._boot = boot_id
        self._hand_over = hand_over
        self._file = _RollupFile(node_dir / ROLLUP_FOLDER, boot_id, about)
        self._cores: dict[int, _CoreRun] = {}
        self._minute: _Minute | None = None
        self._tick_us = self._monotonic_ns = 0
        self._units: dict[str, _Unit] = {}
        self._rest = _Unit()
        self._units_since_us: int | None = None
        self._waiting: deque[_Row] = deque(maxlen=MAX_WAITING_ROWS)
        self._unwritten: deque[_Row] = deque(maxlen=MAX_WAITING_ROWS)
        """What the disk did not take yet; whoever writes is alone with it."""

    # --- what a tick brings ----------------------------------------------------------------------------

    def tick(self, tick: Tick) -> None:
        for core in tick.times:
            self.core(tick.wall_us, core.cpu, tick.interval_us, core.busy_ms, core.kernel_ms)

    def core(self, wall_us: int, cpu: int, interval_us: int, busy_ms: int | None, kernel_ms: int | None) -> None:
        """One core over the tick that ended at wall_us."""
        minute = self._minute_of(wall_us)
        if wall_us != self._tick_us:
            self._tick_us = wall_us
            minute.elapsed_us += interval_us
        minute.cpus.add(cpu)
        if busy_ms is not None:
            minute.busy_ms = (minute.busy_ms or 0) + busy_ms
        if kernel_ms is not None:
            minute.kernel_ms = (minute.kernel_ms or 0) + kernel_ms
            self._judge(minute, wall_us, cpu, interval_us, kernel_ms)

    def _judge(self, minute: _Minute, wall_us: int, cpu: int, interval_us: int, kernel_ms: int) -> None:
        core = self._cores.get(cpu)
        if core is None:
            core = self._cores[cpu] = _CoreRun()
        if not 0 <= wall_us - interval_us - core.end_us < interval_us:  # a hole, or the clock was set back
            core.elapsed_us = core.kernel_ms = core.run_us = 0
        core.end_us = wall_us
        core.elapsed_us += interval_us
        core.kernel_ms += kernel_ms
        if core.elapsed_us < JUDGED_OVER_US:
            return
        if core.kernel_ms * 1000 >= SATURATED_RATIO * core.elapsed_us:
            core.run_us += core.elapsed_us
            minute.saturated_us += core.elapsed_us
            if core.run_us > minute.longest_us:
                minute.longest_us, minute.longest_cpu = core.run_us, cpu
        else:
            core.run_us = 0
        core.elapsed_us = core.kernel_ms = 0

    def census(self, total: int | None, dying: int | None) -> None:
        if self._minute:
            self._minute.memory_cgroups, self._minute.dying = total, dying

    def event(self, kind: str, severity: str) -> None:
        if self._minute:
            self._minute.restarts += kind == "unit_restart"
            self._minute.nic_events += kind.startswith("nic_")
            self._minute.critical_events += severity == "critical"

    def lost(self, records: int) -> None:
        if self._minute:
            self._minute.lost += records

    def shares(self, shares: Iterable[TaskShare], hz: int) -> None:
        """What tasks had of the CPU, as samples that came `hz` times a second."""
        for share in shares:
            self.unit_cpu(share.name, round(share.samples * 1000 / hz), round(share.kernel * 1000 / hz))

    def unit_cpu(self, unit: str, cpu_ms: int, kernel_ms: int) -> None:
        """CPU of one unit since the tick before."""
        used = self._units.get(unit)
        if used is None:
            if len(self._units) >= MAX_UNITS:
                self._fold_units()
            used = self._units[unit] = _Unit()
        used.cpu_ms += cpu_ms
        used.kernel_ms += kernel_ms
        used.minute_ms += cpu_ms

    def _fold_units(self) -> None:
        """Names are anybody's to choose: a process that renames itself all the time makes one for each of its lives.
        Those with least CPU become part of the rest."""
        ranked = sorted(self._units.items(), key=lambda item: -item[1].cpu_ms)
        self._units = dict(ranked[:KEPT_UNITS])
        for _, used in ranked[KEPT_UNITS:]:
            self._rest.cpu_ms += used.cpu_ms
            self._rest.kernel_ms += used.kernel_ms

    # --- what is over ----------------------------------------------------------------------------------

    def flush(self, wall_us: int, monotonic_ns: int = 0) -> bool:
        """Writes what is over by wall_us, with how long the node was up then (0: not known), which tells its age in a
        fleet. False when it is known that the disk did not take it; it is tried again."""
        self._monotonic_ns = monotonic_ns
        if self._minute and not self._minute.start_us < wall_us < self._minute.start_us + MINUTE_US:
            self._end_minute()
        if self._units_since_us is None:
            self._units_since_us = wall_us
        elif wall_us // UNITS_EVERY_US != self._units_since_us // UNITS_EVERY_US:
            self._end_units()
            self._units_since_us = wall_us
        if not self._waiting and not self._unwritten:
            return True
        return self._hand_over(partial(self._write, wall_us)) is not False

    def close(self, wall_us: int) -> bool:
        """Writes the minute and the hour as far as they got."""
        if self._minute:
            self._end_minute()
        if self._units_since_us is not None:
            self._end_units()
        return self._hand_over(partial(self._write_last, wall_us)) is not False

    def _write_last(self, wall_us: int) -> bool:
        written = self._write(wall_us)
        self._file.close(wall_us)
        return written

    def _minute_of(self, wall_us: int) -> _Minute:
        start_us = (wall_us - 1) // MINUTE_US * MINUTE_US
        if self._minute and self._minute.start_us != start_us:
            self._end_minute()
        if self._minute is None:
            self._minute = _Minute(start_us)
        return self._minute

    def _end_minute(self) -> None:
        assert self._minute
        self._waiting.append((schema.MINUTES, self._minute.row(self._boot)))
        self._minute = None
        for used in self._units.values():
            used.end_minute()

    def _end_units(self) -> None:
        assert self._units_since_us is not None
        hour_us = self._units_since_us // HOUR_US * HOUR_US
        ranked = sorted(self._units.items(), key=lambda item: -item[1].cpu_ms)
        for unit, used in ranked[:TOP_UNITS]:
            used.end_minute()
            row = (hour_us, self._boot, unit, used.cpu_ms, used.kernel_ms, used.busiest_minute_ms)
            self._waiting.append((schema.UNIT_HOURS, row))
        rest = [used for _, used in ranked[TOP_UNITS:]]
        if self._rest.cpu_ms:
            rest.append(self._rest)
            self._rest = _Unit()
        if rest:
            sums = (sum(used.cpu_ms for used in rest), sum(used.kernel_ms for used in rest))
            self._waiting.append((schema.UNIT_HOURS, (hour_us, self._boot, OTHER, *sums, None)))
        self._units.clear()

    def _write(self, wall_us: int) -> bool:
        while self._waiting:
            self._unwritten.append(self._waiting.popleft())
        if not self._unwritten:
            return True
        blocks = []
        for table in schema.ROLLUPS:
            rows = [row for other, row in self._unwritten if other is table]
            if rows:
                blocks.append(encode_rows(table, rows, wall_us))
        if not self._file.append(wall_us, self._monotonic_ns, blocks):
            return False
        self._unwritten.clear()
        return True


class _RollupFile:
    """The file being appended to; after a failed write a new one, for the stream cannot be taken up again."""

    def __init__(self, folder: Path, boot_id: str, about: dict[str, Any] | None = None) -> None:
        self._folder = folder
        self._boot = boot_id
        self._about = about or {}
        self._descriptor: int | None = None
        self._encoder: SegmentEncoder | None = None
        self._path = folder
        self._size = 0
        self._day = 0

    def append(self, wall_us: int, monotonic_ns: int, blocks: list[bytes]) -> bool:
        if self._descriptor is not None and wall_us // DAY_US != self._day:
            self.close(wall_us)
        try:
            if self._descriptor is None:
                self._open(wall_us)
            assert self._encoder
            self._put(self._encoder.frame(wall_us, monotonic_ns, blocks))
        except OSError:
            self._give_up()
            return False
        return True

    def _open(self, wall_us: int) -> None:
        safe_files.make_directory(self._folder)
        start_us = wall_us
        while (self._folder / f"{start_us:016d}.seg").exists():
            start_us += 1
        self._path = self._folder / f"{start_us:016d}.seg"
        self._descriptor = safe_files.create(self._path)
        self._size, self._day = 0, wall_us // DAY_US
        header = {"format": schema.FORMAT, "boot": self._boot, "started_us": start_us, **self._about}
        self._encoder = SegmentEncoder(header)
        self._put(self._encoder.preamble)

    def _put(self, data: bytes) -> None:
        assert self._descriptor is not None
        if os.write(self._descriptor, data) != len(data):
            raise OSError(f"{self._path} was not written whole")
        self._size += len(data)

    def _give_up(self) -> None:
        """Leaves whole frames only."""
        if self._descriptor is None:
            return
        with suppress(OSError):  # what cannot be cut off is where every reader stops
            if self._encoder is None or self._size <= len(self._encoder.preamble):
                self._path.unlink(missing_ok=True)
            else:
                os.ftruncate(self._descriptor, self._size)
        os.close(self._descriptor)
        self._descriptor = self._encoder = None

    def close(self, wall_us: int) -> None:
        if self._descriptor is None or self._encoder is None:
            return
        try:
            self._put(self._encoder.frame(wall_us, 0, [], closes=True))
        except OSError:
            self._give_up()
            return
        os.close(self._descriptor)
        self._descriptor = self._encoder = None
