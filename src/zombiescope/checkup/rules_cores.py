"""Findings about cores: held by the kernel, stalled, taken by the hypervisor, held by a real-time thread.

A core that is saturated counts although the node is not: packets, heartbeats and timers of that core wait. A thread
that moves from core to core saturates none of them and is found by its own time.
"""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.audit.finding import Finding
from zombiescope.checkup.checkup import Checkup
from zombiescope.checkup.cores import CoreSeen
from zombiescope.checkup.sampled import Hog
from zombiescope.checkup.stalls import STALL_US, Stall, together_at
from zombiescope.checkup.wording import finding, percent, seconds, where, who
from zombiescope.kernel.release import kernel_version

SATURATED_S = 1.0
LONG_S = 5.0
"""A network card gives up on a queue after five seconds."""
NODE_BUSY = 0.9
STALL_CRITICAL_S = 1.0
STOLEN_RATIO = 0.1
CROWD_S = 3.0
SOFTIRQS_RUN_ANYWAY = (6, 5)

_SAID_ONE_BY_ONE = 3


def findings(checkup: Checkup) -> Iterator[Finding]:
    named = set()
    saturated = [seen for seen in checkup.cores.worst_first() if (seen.core.longest_saturation_s or 0) >= SATURATED_S]
    for seen in saturated[:_SAID_ONE_BY_ONE]:
        named.add(seen.hog.tid if seen.hog else None)
        yield _saturated(checkup, seen)
    if len(saturated) > _SAID_ONE_BY_ONE:
        yield _more_saturated(saturated[_SAID_ONE_BY_ONE:])
    for hog in [hog for hog in checkup.threads if hog.tid not in named][:_SAID_ONE_BY_ONE]:
        yield _moving_thread(hog)
    for hog in checkup.crowds[:1]:
        yield _crowd(hog)
    for hog in checkup.real_time[:_SAID_ONE_BY_ONE]:
        yield _real_time(hog)
    yield from _stalls(checkup)
    yield from _stolen(checkup)


def _saturated(checkup: Checkup, seen: CoreSeen) -> Finding:
    cpu, longest_s = seen.core.cpu, seen.core.longest_saturation_s or 0
    length_s = checkup.window.seconds
    held_s = (seen.kernel_ratio or 0) * length_s
    mode = {"softirq": "in softirqs", "irq": "in interrupts"}.get(seen.kernel_mode, "in the kernel")
    node = checkup.cores.aggregate.busy
    beside = f"while the {'whole ' if (node or 0) >= NODE_BUSY else ''}node was {percent(node)} busy"
    by = f": {who(seen.hog)}{where(seen.hog)}" if checkup.sources["stack samples"] else "; who cannot be seen"
    return finding(
        "core-saturated",
        cpu,
        "critical" if longest_s >= LONG_S else "warning",
        f"core {cpu} was {mode} for {held_s:.1f} s of {length_s:.1f} s {beside}{by}",
        "/proc/stat",
        f"system+irq+softirq at 95 % or more for {seconds(longest_s)} without a break; threshold {SATURATED_S:.0f} s",
        unit=seen.hog.unit if seen.hog else None,
        fix=(
            "zombiescope record DIR --for 1m",
            f"zombiescope flamegraph DIR --cpu {cpu}",
            "# shows where the time goes",
        ),
    )


def _more_saturated(more: list[CoreSeen]) -> Finding:
    cpus = ", ".join(str(seen.core.cpu) for seen in more[:12]) + (" ..." if len(more) > 12 else "")
    longest_s = more[0].core.longest_saturation_s or 0
    return finding(
        "core-saturated",
        "more",
        "critical" if longest_s >= LONG_S else "warning",
        f"{len(more)} more cores were held by the kernel, for up to {seconds(longest_s)} each: {cpus}",
        "/proc/stat",
        f"system+irq+softirq at 95 % or more for {SATURATED_S:.0f} s without a break",
    )


def _moving_thread(hog: Hog) -> Finding:
    return finding(
        "kernel-thread-of-time",
        hog.tid,
        "warning",
        f"{who(hog)} was in the kernel for {seconds(hog.longest_s or 0)} in a row{where(hog)}, moving from core to "
        "core, so that no core shows it",
        "perf_event",
        f"{hog.kernel_s:.1f} s of kernel samples; threshold 0.9 of a processor for {SATURATED_S:.0f} s",
        unit=hog.unit,
    )


def _crowd(hog: Hog) -> Finding:
    return finding(
        "kernel-crowd",
        hog.comm,
        "warning" if (hog.longest_s or 0) >= CROWD_S else "info",
        f"{hog.pids} processes named {hog.comm} together were in the kernel for {hog.kernel_s:.1f} s{where(hog)}",
        "perf_event",
        f"0.9 of a processor for {seconds(hog.longest_s or 0)} in a row; a warning from {CROWD_S:.0f} s on",
        unit=hog.unit,
    )


def _real_time(hog: Hog) -> Finding:
    return finding(
        "real-time-hog",
        hog.tid,
        "warning",
        f"{who(hog)} has a real-time policy (priority {hog.rt_priority}) and had a core to itself for "
        f"{seconds(hog.longest_s or 0)}: nothing else runs there meanwhile",
        "/proc/PID/stat",
        f"{hog.cpu_s:.1f} s of samples; threshold 0.9 of a processor for {SATURATED_S:.0f} s",
        unit=hog.unit,
    )


def _stalls(checkup: Checkup) -> Iterator[Finding]:
    """Each core's, unless they stood still together: that was no core, but the machine."""
    together = together_at(checkup.stalls)
    if len(together) >= 2 and len(together) * 2 > len(checkup.cores.cores):
        yield _machine_stood_still(together, len(checkup.cores.cores))
    else:
        together = ()
    for stall in [stall for stall in checkup.stalls if stall not in together][:_SAID_ONE_BY_ONE]:
        yield _stall(checkup, stall)


def _machine_stood_still(together: tuple[Stall, ...], cores: int) -> Finding:
    longest_s = together[0].seconds
    return finding(
        "machine-stalled",
        "node",
        "warning",
        f"{len(together)} of {cores} cores took no timer interrupt at the same time, for up to {seconds(longest_s)}: "
        "the whole machine stood still, as a virtual one does when its host does not run it",
        "perf_event",
        f"no sample for {seconds(longest_s)} on more than half of the cores at once; threshold {STALL_US // 1000} ms",
    )


def _stall(checkup: Checkup, stall: Stall) -> Finding:
    long = seconds(stall.seconds)
    threshold = f"threshold {STALL_US // 1000} ms"
    if stall.kind == "ksoftirqd":
        version = kernel_version(checkup.kernel)
        anyway = version is not None and version >= SOFTIRQS_RUN_ANYWAY
        so = (
            "; since kernel 6.5 softirqs run without it too, so this alone starves no card"
            if anyway
            else "; packets of that core may have waited as long"
        )
        return finding(
            "ksoftirqd-waits",
            stall.cpu,
            "info" if anyway else "warning",
            f"ksoftirqd/{stall.cpu} waited {long} for its core, held by {who(stall.hog)}{where(stall.hog)}{so}",
            "/proc/PID/schedstat",
            f"run delay {long} within one tick; {threshold}",
        )
    after = "" if stall.hog is None else f"; first seen after it: {who(stall.hog)}{where(stall.hog)}"
    return finding(
        "core-stalled",
        stall.cpu,
        "critical" if stall.seconds >= STALL_CRITICAL_S else "warning",
        f"core {stall.cpu} took no timer interrupt for {long} though it was not idle: interrupts were off, or a "
        f"hypervisor took the core and did not say so{after}",
        "perf_event",
        f"no sample for {long}; {threshold}",
        unit=stall.hog.unit if stall.hog else None,
    )


def _stolen(checkup: Checkup) -> Iterator[Finding]:
    stolen = checkup.cores.aggregate.steal
    worst = max(checkup.cores.cores, key=lambda seen: seen.core.modes.steal or 0, default=None)
    if stolen is None or stolen < STOLEN_RATIO or worst is None:
        return
    yield finding(
        "stolen",
        "node",
        "warning",
        f"the hypervisor gave {percent(stolen)} of this machine's time to others, {percent(worst.core.modes.steal)} of "
        f"core {worst.core.cpu}: a stall in here may come from out there",
        "/proc/stat",
        f"steal {percent(stolen)}; threshold {percent(STOLEN_RATIO)}",
    )
