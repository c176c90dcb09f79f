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
from typing import Any

from zombiescope.base import confinement
from zombiescope.base import helper as _helper
from zombiescope.kernel.nvml import MOST_GPUS, Library, NvmlError
from zombiescope.recorder.clock import WallClock
from zombiescope.recorder.gpu_device import LOST, RESET_REQUIRED, WatchedGpu
from zombiescope.recorder.gpu_pace import COUNTERS, FIGURES, SAMPLES, Pace
from zombiescope.recorder.gpu_tenants import Tenants
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


if __name__ == "__main__":
    _helper.begin()
    sys.exit(main(sys.argv[1:]))
