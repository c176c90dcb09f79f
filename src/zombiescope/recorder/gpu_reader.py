"""The process that asks the GPU driver: `python -m zombiescope.recorder.gpu_reader [LIBRARY]`, started by the recorder.

A call of the driver may hang for ever, so this is the only process that makes one, and nobody waits for it. It writes
a line of JSON after each round:

    {"tables": {"gpu_seconds": [..], "gpus": [..], "gpu_processes": [..]}, "lacks": [..], "first": true or false,
     "slowdown_c": {"0": 87}, "cpu_us": .., "rss_bytes": ..}
    {"fault": CODE, "why": ..}                            once, before it ends, where there is nothing to ask
    {"asks": KIND}                                        before each kind of question: a call that hangs is known by it
    {"released": [0, 3]}                                  once, before it ends: these GPUs need a reset, and only this
                                                          process is in the way of it
    {"beat": true}                                        every two seconds without a round

and ends when the recorder closes its standard input, however that ends. Rows of `gpus` and `gpu_processes` are those
that changed. LIBRARY is a stand-in, for tests.
"""

from __future__ import annotations

import os
import resource
import select
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from zombiescope.base import confinement
from zombiescope.base import helper as _helper
from zombiescope.kernel import cgroup_namespace, process
from zombiescope.kernel.cgroup_path import Owner
from zombiescope.kernel.nvml import MOST_GPUS, MOST_PROCESSES, GpuProcess, Library, NvmlError
from zombiescope.node.containers.runtimes import verified_owner
from zombiescope.recorder.clock import WallClock
from zombiescope.recorder.gpu_device import LOST, RESET_REQUIRED, WatchedGpu
from zombiescope.recorder.reader_pipe import BEAT, rss_bytes, say
from zombiescope.store import schema

NO_LIBRARY = -1
LOOK_FOR_LOST_S = 60.0
_CHANGES = slice(1, None)  # of a row: all but its time


class GpuReader:
    """All GPUs of the node. `turn` asks what is due and gives the message, if there is something to say."""

    def __init__(self, library: Library, clock: WallClock) -> None:
        self._clock = clock
        self.driver = library.driver()
        there = library.count()
        self.unwatched = max(0, there - MOST_GPUS)
        now_us = clock.now_us()
        self.gpus = [WatchedGpu(library, index, now_us) for index in range(min(there, MOST_GPUS))]
        self._tenants = [Tenants(gpu.index) for gpu in self.gpus]
        self._said: dict[int, tuple[Any, ...]] = {}
        self._lacks: list[str] | None = None
        self._is_first = True
        self._look_s = 0.0
        self.pace = Pace(len(self.gpus))

    def turn(self, now_s: float) -> dict[str, Any]:
        self._follow_clock()
        self._look_for_lost(now_s)
        for gpu in self.gpus:
            gpu.begin()
        left: list[tuple[Any, ...]] = []
        for kind in self.pace.due(now_s):
            before_s = time.process_time()
            say({"asks": kind})
            left += self._ask(kind)
            self.pace.asked(kind, now_s, time.process_time() - before_s)
        for gpu in self.gpus:
            gpu.settle()
        return self._message(left)

    def _ask(self, kind: str) -> list[tuple[Any, ...]]:
        """Rows of processes, if those were asked."""
        now_us = self._clock.now_us()
        rows: list[tuple[Any, ...]] = []
        for gpu, tenants in zip(self.gpus, self._tenants, strict=True):
            if kind == SAMPLES:
                gpu.ask_samples(now_us)
            elif kind == COUNTERS:
                gpu.ask_counters()
            elif kind == FIGURES:
                gpu.ask_figures(now_us)
                found = gpu.ask_processes()
                if found is not None:
                    rows += [tenant.row(now_us) for tenant in tenants.update(found)]
        return rows

    def _look_for_lost(self, now_s: float) -> None:
        if now_s < self._look_s:
            return
        self._look_s = now_s + LOOK_FOR_LOST_S
        for gpu in self.gpus:
            if gpu.state in (LOST, RESET_REQUIRED):
                gpu.find()

    def to_be_reset(self) -> list[int]:
        """GPUs that need a reset and that no process uses: only we are in the way of it."""
        both = zip(self.gpus, self._tenants, strict=True)
        return [gpu.index for gpu, tenants in both if gpu.state == RESET_REQUIRED and not tenants.any_lives()]

    def _follow_clock(self) -> None:
        if self._clock.stepped():
            self._clock.adopt()
            for gpu in self.gpus:
                gpu.forget_time(self._clock.now_us())

    def _message(self, processes: list[tuple[Any, ...]]) -> dict[str, Any]:
        now_us = self._clock.now_us()
        tables = {
            schema.GPU_SECONDS.name: [row for gpu in self.gpus for row in gpu.book.take(now_us)],
            schema.GPUS.name: self._changed(now_us),
            schema.GPU_PROCESSES.name: processes,
        }
        usage = resource.getrusage(resource.RUSAGE_SELF)
        cpu_us = int((usage.ru_utime + usage.ru_stime) * 1e6)
        first, self._is_first = self._is_first, False
        message = {
            "tables": tables, "lacks": self._newly_lacks(), "first": first, "cpu_us": cpu_us,
            "slowdown_c": {str(gpu.index): gpu.slowdown_c for gpu in self.gpus if gpu.slowdown_c is not None},
            "rss_bytes": rss_bytes(), "links": {str(gpu.index): gpu.links for gpu in self.gpus if gpu.links},
        }  # fmt: skip
        for gpu in self.gpus:
            gpu.links = {}
        return message

    def _changed(self, now_us: int) -> list[tuple[Any, ...]]:
        changed = []
        for gpu in self.gpus:
            row = gpu.row(now_us, self.driver)
            if self._said.get(gpu.index) != row[_CHANGES]:
                self._said[gpu.index] = row[_CHANGES]
                changed.append(row)
        return changed

    def _newly_lacks(self) -> list[str]:
        """What some GPU does not have, once; a GPU too many is one of these."""
        now = sorted({what for gpu in self.gpus for what in gpu.lacks})
        if self.unwatched:
            now.append(f"{self.unwatched} GPUs beyond the first {MOST_GPUS}")
        news = [what for what in now if what not in (self._lacks or [])]
        self._lacks = now
        return news


def faults(error: Exception) -> dict[str, Any]:
    code = error.code if isinstance(error, NvmlError) else NO_LIBRARY
    return {"fault": code, "why": str(error)[:200]}


def run(reader: GpuReader) -> None:
    """Until nobody listens any more."""
    asked = select.poll()
    asked.register(0, select.POLLIN)
    while True:
        say(reader.turn(time.monotonic()))
        if waiting := reader.to_be_reset():
            say({"released": waiting})
            return
        while (wait_s := reader.pace.wait_s(time.monotonic())) > 0:
            if asked.poll(min(wait_s, _helper.BEAT_S) * 1000) and not os.read(0, 4096):
                return
            if wait_s > _helper.BEAT_S:
                say(BEAT)


def main(arguments: Iterable[str]) -> int:
    confinement.confine(programs=True)
    say({"asks": "start"})
    try:
        library = Library(next(iter(arguments), None))
        library.start()
        reader = GpuReader(library, WallClock())
    except (OSError, NvmlError) as error:
        say(faults(error))
        return 0
    with suppress(BrokenPipeError, KeyboardInterrupt):
        run(reader)
    return 0


# --- tenants ----------------------------------------------------------------------------------------------------------
# Which processes are on which GPU: who came, who left, whose memory there changed much; rows of `gpu_processes`.
#
# The driver knows pids of the host; who they are is read from /proc while they live. A pid that /proc does not know is
# gone already, or we do not see the host's processes: only if the driver names it twice it is a row, without a name.
# Bounded: 64 processes of each GPU.

MUCH_BYTES = 256 << 20
MOST_TEXT = 4096


@dataclass(frozen=True, slots=True)
class Tenant:
    gpu: int
    pid: int
    start_ticks: int | None
    memory_bytes: int | None
    comm: str | None = None
    cgroup: str | None = None
    unit: str | None = None
    container: str | None = None
    pod: str | None = None
    ended: int = 0

    def row(self, now_us: int) -> tuple[Any, ...]:
        return (now_us, *(getattr(self, name) for name in schema.GPU_PROCESSES.names[1:]))


class Tenants:
    """Of one GPU."""

    def __init__(self, gpu: int, root: str = "/") -> None:
        self._gpu = gpu
        self._root = root
        self._known: dict[int, Tenant] = {}
        self._strangers: set[int] = set()

    def update(self, found: Iterable[GpuProcess]) -> list[Tenant]:
        """What changed since the last call; those that left have `ended` 1."""
        here = {one.pid: one for one in list(found)[:MOST_PROCESSES]}
        changed = [self._left(pid) for pid in list(self._known) if pid not in here]
        strangers: set[int] = set()
        for one in here.values():
            stat = process.read_stat(one.pid, self._root)
            known = self._known.get(one.pid)
            if stat is None and known is None and one.pid not in self._strangers:
                strangers.add(one.pid)  # it left just now, or /proc is not the host's: the next look says
                continue
            ticks = None if stat is None else stat.start_time_ticks
            if known is not None and ticks is not None and known.start_ticks != ticks:
                changed.append(self._left(one.pid))  # another process has its number now
                known = None
            if known is None:
                changed.append(self._came(one, ticks))
            elif _much(known.memory_bytes, one.memory_bytes):
                self._known[one.pid] = replace(known, memory_bytes=one.memory_bytes)
                changed.append(self._known[one.pid])
        self._strangers = strangers | (self._strangers & here.keys())
        return changed

    def any_lives(self) -> bool:
        """Whether a process that was on it is still there: a GPU that has to be reset answers no questions about it."""
        return any(process.read_stat(pid, self._root) is not None for pid in self._known)

    def _left(self, pid: int) -> Tenant:
        return replace(self._known.pop(pid), ended=1)

    def _came(self, one: GpuProcess, ticks: int | None) -> Tenant:
        found = None if ticks is None else process.read(one.pid, self._root, cmdline=False)
        path = None if found is None else _cgroup(found)
        who = Owner() if path is None else verified_owner(path, cgroup_namespace.node_root(self._root))
        comm = None if found is None else found.comm
        tenant = Tenant(self._gpu, one.pid, ticks, one.memory_bytes, comm, path, who.unit, who.container, who.pod_uid)
        self._known[one.pid] = tenant
        return tenant


def _cgroup(found: process.Process) -> str | None:
    """Of its paths in several hierarchies the one that says most; a path that nobody could have meant is none."""
    longest = found.systemd_cgroup or max(found.cgroups.values(), key=len, default=None)
    return None if longest is None or len(longest) > MOST_TEXT else longest


def _much(before: int | None, now: int | None) -> bool:
    if before is None or now is None:
        return before is not now
    return abs(now - before) > max(MUCH_BYTES, before // 10)


# --- pace -------------------------------------------------------------------------------------------------------------
# How often the GPUs are asked: rarely enough that it costs ALLOWED of a core, whatever a question costs on this node.
#
# Samples wait in the driver for 14 s, so they are asked for every 5 s, at most 10; clocks and temperatures every 10 s,
# at most 60; slow counters every minute, at most every ten. What rounds of each kind cost is measured, and where all of
# them together would cost more than is allowed all become rarer.

ALLOWED = 0.002
"""Of a core, for up to 8 GPUs; an eighth of it for each one more."""
SAMPLES, FIGURES, COUNTERS = "samples", "figures", "counters"
EVERY_S = {SAMPLES: (5.0, 10.0), FIGURES: (10.0, 60.0), COUNTERS: (60.0, 600.0)}
"""At the most often, at the least often."""
_NEW = 0.3


@dataclass(slots=True)
class Pace:
    gpus: int
    cost_s: dict[str, float] = field(default_factory=dict)
    due_s: dict[str, float] = field(default_factory=dict)

    def due(self, now_s: float) -> list[str]:
        return [kind for kind in EVERY_S if now_s >= self.due_s.get(kind, now_s)]

    def asked(self, kind: str, now_s: float, cost_s: float) -> None:
        """A round of this kind was asked at that time, and cost so much CPU."""
        before = self.cost_s.get(kind)
        self.cost_s[kind] = cost_s if before is None else before + _NEW * (cost_s - before)
        self.due_s[kind] = now_s + self.every_s(kind)

    def every_s(self, kind: str) -> float:
        often, rare = EVERY_S[kind]
        return min(rare, often * max(1.0, self.load() / self.allowed))

    def load(self) -> float:
        """What it would cost, as a share of a core, if all were asked as often as can be."""
        return sum(cost_s / EVERY_S[kind][0] for kind, cost_s in self.cost_s.items())

    @property
    def allowed(self) -> float:
        return ALLOWED * max(1.0, self.gpus / 8)

    def wait_s(self, now_s: float) -> float:
        return max(0.0, min(self.due_s.values(), default=now_s) - now_s)


if __name__ == "__main__":
    _helper.begin()
    sys.exit(main(sys.argv[1:]))
