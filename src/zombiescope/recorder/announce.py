"""What the recorder says: a few lines when it starts, a few when it ends. Plain text: it may be a journal that reads
them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

from zombiescope.kernel.cpu import format_list
from zombiescope.recorder.cgroups import MKDIR
from zombiescope.recorder.recorder import Recorder
from zombiescope.recorder.result import RecorderResult
from zombiescope.store.core_lists import ISOLATED


def started(recorder: Recorder) -> Iterator[str]:
    """Where it records to, what, what not, and what would grant it."""
    config = recorder.config
    cpus = len([cpu for cpu in recorder.rings.rings if cpu not in recorder.left_out])
    yield f"recording {recorder.name} into {recorder.node_dir.parent}"
    sources = [f"per-core counters every {config.interval_s:g} s"]
    if cpus:
        sources.insert(0, f"stacks of {cpus} CPUs at {config.hz} Hz ({config.event}: {recorder.sampling.why})")
    if recorder.cgroups.hierarchy is not None:
        traced = "ledger and census" if cpus and MKDIR in recorder.rings.kinds else "census only"
        sources.append(f"memory cgroups v{recorder.cgroups.hierarchy.version} ({traced})")
    if recorder.kernel_log.source is not None:
        sources.append(f"kernel log ({recorder.kernel_log.source})")
    if recorder.gpus.driver is not None:
        sources.append(f"GPUs (driver {recorder.gpus.driver})")
    if all(missing.source != "systemd" for missing in recorder.sources.missing):
        sources.append("systemd units")
    yield "  recorded: " + ", ".join(sources)
    if config.read_by_all:
        yield "  readable: by every user of this machine (--read-by-all): command lines, paths and stacks of all users"
    if recorder.left_out:
        yield f"  left out: stacks of CPUs {format_list(recorder.left_out)}, {_why_left_out(recorder)}"
    for missing in recorder.sources.missing:
        yield f"  missing:  {missing.source}: {missing.why}"
        yield f"            grant:  {missing.grant}"
    if config.as_root and any("CAP_" in missing.grant for missing in recorder.sources.missing):
        yield f"  as root everything is recorded:  {config.as_root}"
    if config.diagnose:
        listed = f"'{config.called} status'"
        yield f"  live diagnosis: on; incidents appear here, and {listed} lists them"
        yield f"nothing wrong here? {config.demo}"


def _why_left_out(recorder: Recorder) -> str:
    """The default is to leave out what the kernel isolates."""
    return "which the kernel isolates" if recorder.config.leave_out_cores == ISOLATED else "as asked for"


def result_json(result: RecorderResult) -> str:
    return json.dumps({"schema": "zombiescope.record/1", **asdict(result)})


def ended(result: RecorderResult) -> Iterator[str]:
    share = 100 * result.cpu_seconds / result.seconds if result.seconds else 0.0
    yield f"recorded {result.seconds:.0f} s into {result.recording}: {result.samples} samples, {result.events} events"
    resident, disk = f"{result.max_rss_bytes / 1e6:.0f} MB resident", f"{result.bytes / 1e3:.0f} kB on disk"
    yield f"  cost {share:.2f}% of one CPU, {resident}, {disk}"
    yield f"  {result.lost} records lost, {result.ticks_late} of {result.ticks} ticks late"
    if result.unwritten_seconds:
        why = f": {result.disk}" if result.disk else ", as the disk did not take it in time"
        yield f"  {result.unwritten_seconds} s of {result.seconds:.0f} s could not be written{why}"
