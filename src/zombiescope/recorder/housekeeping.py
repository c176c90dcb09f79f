"""What is looked after every ten seconds: whether systemd answers, node.json, compaction and retention, state.json."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from zombiescope.node.systemd.watcher import SystemdWatcher
from zombiescope.recorder import state
from zombiescope.recorder.cgroups import CgroupTracker
from zombiescope.recorder.kernel_log import KernelLog
from zombiescope.recorder.node import NodeFile
from zombiescope.recorder.sources import Sources
from zombiescope.recorder.stage import Barrier, Stage
from zombiescope.recorder.tick import Tick
from zombiescope.recorder.upkeep import Upkeep
from zombiescope.store.segment_writer import HandOver, at_once

EVERY_US = 10_000_000
SAVE_STATE_US = 600_000_000


class StateFile:
    """state.json of this run, every ten minutes and at the end."""

    def __init__(
        self,
        node_dir: Path,
        boot_id: str | None,
        cgroups: CgroupTracker,
        kernel_log: KernelLog,
        now_us: int,
        hand_over: HandOver = at_once,
    ) -> None:
        self._hand_over = hand_over
        self._node_dir = node_dir
        self._boot_id = boot_id
        self._cgroups = cgroups
        self._kernel_log = kernel_log
        self._next_us = now_us + SAVE_STATE_US

    def tick(self, tick: Tick) -> None:
        if tick.wall_us >= self._next_us:
            self._next_us = tick.wall_us + SAVE_STATE_US
            self.save()

    def save(self) -> None:
        memory = self._cgroups.hierarchy
        saved: dict[str, Any] = {
            "boot": self._boot_id,
            "kmsg_seq": self._kernel_log.last_seq,
            "hierarchy": memory.number if memory else None,
            "ledger": self._cgroups.ledger.save(),
        }
        self._hand_over(partial(self._write, saved))

    def _write(self, saved: dict[str, Any]) -> None:
        with suppress(OSError):
            state.save(self._node_dir, saved)


class Housekeeping:
    def __init__(
        self, barrier: Barrier, sources: Sources, systemd: SystemdWatcher, node_file: NodeFile, upkeep: Upkeep,
        state_file: StateFile,
    ) -> None:  # fmt: skip
        self._barrier = barrier
        self._sources = sources
        self._systemd = systemd
        self._node_file = node_file
        self._state_file = state_file
        self._next_us = 0
        self._stages = [
            Stage("systemd (reader)", self.note_systemd),
            Stage("node file", lambda _: self.update_node_file()),
            Stage("upkeep", lambda tick: upkeep.look(tick.wall_us)),
            Stage("state file", state_file.tick),
        ]

    def tick(self, tick: Tick) -> None:
        if tick.wall_us >= self._next_us:
            self._next_us = tick.wall_us + EVERY_US
            self._barrier.run(self._stages, tick)

    def note_systemd(self, tick: Tick) -> None:
        known = self._systemd.state
        if known.status in ("absent", "failed"):
            self._sources.lacks("systemd", known.why, known.fix, tick.wall_us)
        elif known.status == "connected":
            self._sources.has("systemd", tick.wall_us)

    def update_node_file(self) -> None:
        self._node_file.update(self._sources.missing)

    def close(self) -> None:
        """What the next recorder, and whoever reads, must know; then systemd is left."""
        self._barrier.attempt("state file", self._state_file.save)
        self._barrier.attempt("node file", self.update_node_file)
        self._systemd.stop(timeout_s=0.5)
