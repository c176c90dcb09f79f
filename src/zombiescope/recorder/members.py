"""Every part of the recorder that can fail by itself, with the source that the recording misses without it. A page or a
compaction that fails is no gap: nothing is recorded less.

Helper processes report themselves (piped_process.py). A thread that hangs is told by how long it has been at one piece
of work."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from zombiescope.node.systemd.watcher import SystemdWatcher
from zombiescope.recorder.closer_looks import SOURCE as CLOSER
from zombiescope.recorder.cost import rss_bytes
from zombiescope.recorder.gpus import SOURCE as GPU
from zombiescope.recorder.hardware import READER as HARDWARE
from zombiescope.recorder.nic import NicStatistics
from zombiescope.recorder.pythons import SOURCE as PYTHON
from zombiescope.recorder.waits import SOURCE as WAITS
from zombiescope.recorder.whole_stacks import SOURCE as WHOLE
from zombiescope.recorder.worker import Worker
from zombiescope.store.health import DISK_WRITER, LIVE_DIAGNOSIS, RECORDER, Part
from zombiescope.store.segment_writer import SegmentWriter

if TYPE_CHECKING:
    from zombiescope.recorder.parts import Parts

NICS, SYSTEMD = "network card reader", "systemd watcher"
NOT_DIAGNOSED = "this recorder does not diagnose: 'zombiescope up' and the agent do"


def register(parts: Parts) -> None:
    beats, started = parts.heartbeats, time.time()
    beats.add(RECORDER, lambda: _loop(parts, started))
    _register_diagnosis(parts, started)
    process = beats.add_process
    process(parts.gpus.process, "GPUs are not recorded", source=GPU)
    process(parts.python.process, "Python functions are not recorded", source=PYTHON)
    process(parts.whole_stacks.process, "stacks are cut off in libraries without frame pointers", source=WHOLE)
    process(parts.closer_looks.process, "what an unexplained suspect does is not recorded", source=CLOSER)
    process(parts.waits.process, "tasks that wait are not recorded", source=WAITS)
    process(parts.counters.hardware.process, "RDMA, heat and memory errors are not recorded", source=HARDWARE)
    process(parts.compactor.process, "the recording takes more room on disk")
    for name, worker, without in (
        ("process lookup", parts.lookup, "new processes and their functions have no names"),
        ("container lookup", parts.container_lookup, "new containers have no names"),
    ):
        beats.add(name, partial(_worker, name, worker, started), without, source=f"{name} (thread)")
    beats.add(
        DISK_WRITER, lambda: _disk(parts.writer, started), "at most 8 MB are held in memory, and what is older is lost"
    )
    beats.add(NICS, lambda: _nics(parts.counters.nics, started), "statistics of network cards are not recorded")
    beats.add(SYSTEMD, lambda: _systemd(parts.systemd, started), "restarts of units are not recorded", source="systemd")


def _register_diagnosis(parts: Parts, started: float) -> None:
    if parts.doctor is not None:
        parts.heartbeats.add_process(parts.doctor.process, "incidents are not detected", source=LIVE_DIAGNOSIS)
        return
    why = NOT_DIAGNOSED if not parts.config.diagnose else "could not be started"
    off = Part(LIVE_DIAGNOSIS, "failed" if parts.config.diagnose else "off", started, why=why)
    parts.heartbeats.add(LIVE_DIAGNOSIS, lambda: off, "incidents are not detected")


def _loop(parts: Parts, started: float) -> Part:
    ticks: int = getattr(parts, "ticks", 0)
    return Part(RECORDER, "ok", started, time.time(), ticks, pid=os.getpid(), rss_bytes=rss_bytes())


def _worker(name: str, worker: Worker[Any, Any], started: float) -> Part:
    hangs_s = worker.hangs_s
    if hangs_s is not None:
        where = f": the kernel keeps it waiting (in {worker.waits_in})" if worker.waits_in else ""
        why = f"does not answer for {hangs_s:.0f} s{where}"
        return Part(
            name, "hung", time.time() - hangs_s, worker.answered_at, worker.answered, why, failures=worker.stuck
        )
    why = f"still runs, although {worker.stuck} of its threads hang" if worker.stuck else ""
    return Part(name, "ok", started, worker.answered_at, worker.answered, why, failures=worker.stuck)


def _disk(writer: SegmentWriter, started: float) -> Part:
    last = None if writer.written_us is None else writer.written_us / 1e6
    if writer.failing is None:
        return Part(DISK_WRITER, "ok", started, last, writer.frames_written)
    since = started if writer.failing_since_us is None else writer.failing_since_us / 1e6
    if writer.is_stalled:
        return Part(DISK_WRITER, "hung", since, last, writer.frames_written, f"waits: {writer.failing}", failures=1)
    place = writer.directory.parent.parent
    fix = f"make room in {place}: df -h {place}"
    return Part(DISK_WRITER, "failed", since, last, writer.frames_written, f"cannot write: {writer.failing}", fix, 1)


def _nics(nics: NicStatistics, started: float) -> Part:
    stuck_s = nics.stuck_s
    if stuck_s is None:
        return Part(NICS, "ok", started, nics.read_at, nics.readings)
    why = f"does not answer for {stuck_s:.0f} s: a driver keeps the kernel's network lock, or the reader hangs"
    return Part(NICS, "hung", time.time() - stuck_s, nics.read_at, nics.readings, why, failures=1)


def _systemd(watcher: SystemdWatcher, started: float) -> Part:
    known = watcher.state
    if known.status in ("absent", "failed"):
        return Part(SYSTEMD, "off", started, why=known.why, fix=known.fix)
    if known.status == "connected" and not watcher.is_alive:
        return Part(SYSTEMD, "failed", started, why="has ended by itself", failures=1)
    return Part(SYSTEMD, "ok", started)
