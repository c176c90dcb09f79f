"""Where top's data comes from: a recording that grows, or one that ended."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from zombiescope.base import json as _json
from zombiescope.base.errors import UserError
from zombiescope.base.time import HOUR_US
from zombiescope.query import incidents
from zombiescope.query.memcg_cost import COSTLY, ZOMBIES
from zombiescope.query.memcg_walks import LiveVerdict
from zombiescope.query.ran_lately import SPAN_US, RanLately, RanProcess
from zombiescope.query.recent import CgroupCount, Recent
from zombiescope.query.worst import Worst, WorstSecond
from zombiescope.store import incident_file, locate, schema
from zombiescope.store.layout import LOG_FOLDER, segment_files
from zombiescope.store.log import Block, DamagedError, LogFrame, SegmentReader
from zombiescope.store.store import Directory
from zombiescope.store.tail import Tail

if TYPE_CHECKING:
    from zombiescope.store.reader import Recording

KEEP_S = 300.0
RAN = 8
"""Processes that a wide terminal has room for."""
LONGEST_US = HOUR_US
"""Who walked memory cgroups is looked for as far back as `cgroups` does."""
_SILENT_S = 5.0
_SHOWN_TABLES = ("cores", "events", "census", "leaks", "cost", "gpu_seconds", "gpus")


class Feed(Protocol):
    """The newest minutes of a node."""

    node: dict[str, Any]
    recent: Recent

    @property
    def worst(self) -> Worst | None:
        """The worst second so far."""

    @property
    def zombies(self) -> str | None:
        """What the memory cgroups cost: harmless, watch or costly; None where that is not known."""

    @property
    def ran(self) -> Sequence[RanProcess]:
        """Who ran most in the last seconds."""

    def poll(self) -> bool:
        """Take in what is new; whether there was something, or the state changed."""

    def state(self) -> str:
        """ "live", or why nothing moves."""


class LiveFeed:
    """Follows a node directory that a recorder writes; reads the log only, never Parquet."""

    def __init__(self, node_dir: Path) -> None:
        self._node_dir = node_dir
        self._worst = WorstSecond()
        self._ran = RanLately()
        self._verdict = LiveVerdict(LONGEST_US)
        self.recent = Recent(KEEP_S)
        self.recent.remember(_counted_before(node_dir))
        self.node: dict[str, Any] = {}
        self._read_node()
        self._tail = Tail(node_dir)
        self._take(_segment_before(node_dir))
        self._state = ""

    @property
    def worst(self) -> Worst | None:
        return self._worst.worst

    @property
    def zombies(self) -> str | None:
        found = self._verdict.verdict(self.node, self.recent)
        if found is None:
            return None
        newest_s = (self.recent.newest_us or 0) / 1e6
        blamed = incidents.blaming(incident_file.read(self._node_dir), ZOMBIES, 0.0, newest_s)
        return found.verdict if blamed is None else COSTLY

    @property
    def ran(self) -> Sequence[RanProcess]:
        return self._ran.most(self.node, RAN)

    def poll(self) -> bool:
        frames = self._tail.poll()
        if frames:
            self._read_node()
            self._take(frames)
        before, self._state = self._state, self.state()
        return bool(frames) or before != self._state

    def state(self) -> str:
        newest_us = self.recent.newest_us
        if newest_us is None:
            return "live"
        interval_s = self.recent.ticks[-1].interval_us / 1e6 if self.recent.ticks else 1.0
        silent_s = time.time() - newest_us / 1e6
        if silent_s < _SILENT_S + interval_s:
            return "live"
        return "ended" if locate.is_locked(self._node_dir) is False else f"silent for {silent_s:.0f} s"

    def close(self) -> None:
        self._tail.close()

    def _take(self, frames: Iterable[LogFrame]) -> None:
        frames = list(frames)
        for frame in frames:
            self.recent.update(frame)
        self._worst.update(frames)
        self._ran.update(frames)
        self._verdict.update(frames)

    def _read_node(self) -> None:
        try:
            said = _json.loads((self._node_dir / "node.json").read_bytes())
        except (OSError, ValueError):
            return
        if isinstance(said, dict):
            self.node = said


def _segment_before(node_dir: Path) -> list[LogFrame]:
    """The frames of the segment before the one being written, so that strips do not start empty every two
    minutes. Only of one that was closed: of a recorder that died, nothing is shown as if it were now."""
    found = sorted(segment_files(Directory(node_dir).entries(LOG_FOLDER)), key=lambda segment: segment.start_us)
    try:
        with (node_dir / found[-2].name).open("rb") as file:
            reader = SegmentReader(file)
            frames = list(reader.frames())
    except (IndexError, OSError, DamagedError, ValueError):
        return []
    return frames if reader.closed else []


def _counted_before(node_dir: Path) -> list[CgroupCount]:
    """All that was counted since the node was started, so that `top` says the same growth as `cgroups` and the page."""
    from zombiescope.store.reader import open_recording

    try:
        with open_recording(node_dir.parent, node_dir.name.removeprefix("node=")) as recording:
            return _census(recording)
    except (OSError, ValueError, UserError):
        return []


def _census(recording: Recording) -> list[CgroupCount]:
    names = ("time", "total", "live", "dying", "hierarchy", "created")
    rows = recording.table("census", None, recording.end_us + 1, names, boot=recording.boot_at(recording.end_us))
    from zombiescope.store.columns import numbers

    columns = [rows.column(name).to_pylist() for name in names[1:]]
    counted = zip(numbers(rows.column("time")).tolist(), *columns, strict=True)
    return [CgroupCount(*row) for row in counted if row[1] is not None]


class PastFeed:
    """The end of a recording that nobody writes any more, Parquet or pack included."""

    def __init__(self, recording: Recording) -> None:
        from zombiescope.query.cgroups import cgroups
        from zombiescope.query.worst import worst_second

        end_us = recording.end_us
        start_us = end_us - round(KEEP_S * 1e6)
        self.node = recording.node
        self.recent = Recent(KEEP_S)
        self.recent.remember(_census(recording))
        blocks = tuple(_block(recording, name, start_us, end_us + 1) for name in _SHOWN_TABLES)
        self.recent.update(LogFrame(end_us, 0, blocks, False))
        self.worst = worst_second(recording, start_us, end_us)
        self.zombies = cgroups(recording).verdict
        self.ran = _ran(recording)

    def poll(self) -> bool:
        return False

    def state(self) -> str:
        return "ended"


def _ran(recording: Recording) -> list[RanProcess]:
    """Who ran at the end of it, as `stacks` and the page count."""
    from zombiescope.query.selection import Selection
    from zombiescope.query.who import who_ran

    end_us = recording.end_us + 1
    selection = Selection(recording, max(recording.start_us, end_us - SPAN_US), end_us)
    return [
        RanProcess(each.group.pid, each.group.comm, each.group.pod or each.group.unit, each.cpus or 0.0,
                   each.kernel_ratio)
        for each in who_ran(selection, "process", RAN).ran
    ]  # fmt: skip


def _block(recording: Recording, name: str, start_us: int, end_us: int) -> Block:
    from zombiescope.store.columns import numbers

    rows = recording.table(name, start_us, end_us)
    spec = schema.BY_NAME[name]
    columns: dict[str, Any] = {
        column.name: numbers(rows.column(column.name)).tolist()
        if column.kind == "time"
        else rows.column(column.name).to_pylist()
        for column in spec.columns
    }
    return Block(spec, len(rows), columns)
