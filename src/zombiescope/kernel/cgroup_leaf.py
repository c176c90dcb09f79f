"""The few files of a cgroup that may be read while recording, and the safe way to learn what a read costs.

Fields, v2 and v1: cpu.stat (nr_periods, nr_throttled, throttled time), memory.events (low, high, max, oom,
oom_kill) or memory.failcnt, the "some" totals of cpu.pressure and memory.pressure (v2 only), and whether the
cgroup has a cpu quota and a memory limit.

Never memory.stat or memory.numa_stat of more than one leaf: on old kernels they walk every memory cgroup,
dying ones included (numa_stat until dd8657b6c1cb, v5.8), which is the very fault that this program looks for.
read_cost() times them on one leaf that the caller names, where the walk is one step.

Cost: at most eight small files a cgroup. cpu.stat of cgroup2 flushes the statistics of that cgroup, so leaves
only, and few. Absence: a controller that the cgroup lacks leaves its fields None.
"""

import os
import time
from dataclasses import dataclass
from typing import NamedTuple

from zombiescope.kernel import pressure
from zombiescope.kernel.cgroup import is_root
from zombiescope.kernel.procfile import number, read_file, read_int

_PLAIN = ("notify_on_release", "cgroup.max.depth", "cgroup.type")
"""Files that show one number of the cgroup itself, on v1 and on v2."""
_V1_NO_LIMIT = 1 << 62
"""v1 prints a page-rounded LONG_MAX for "no limit"."""


class NotALeafError(ValueError):
    """The cgroup is its hierarchy's root or has children, so reading it would walk a tree."""


@dataclass(frozen=True, slots=True)
class LeafStats:
    nr_periods: int | None
    nr_throttled: int | None
    throttled_us: int | None
    memory_low: int | None
    memory_high: int | None
    memory_max: int | None
    memory_oom: int | None
    memory_oom_kill: int | None
    memory_failcnt: int | None
    cpu_some_us: int | None
    memory_some_us: int | None
    has_cpu_quota: bool | None
    cpu_quota_cores: float | None
    has_memory_limit: bool | None
    memory_limit_bytes: int | None


@dataclass(frozen=True, slots=True)
class CpuQuota:
    """A cgroup with a CPU quota, and how often it used it up: counts since the cgroup was made."""

    cores: float
    nr_periods: int
    nr_throttled: int
    throttled_us: int


@dataclass(frozen=True, slots=True)
class ReadCost:
    """CPU seconds of one read of a single cgroup's file, the least of several; None where the file is missing.

    `walk_s`: what one more cgroup adds to a read of memory.numa_stat above it, on a kernel that walks; None where the
    measurement was too coarse to tell.
    """

    numa_stat_s: float | None
    stat_s: float | None
    walk_s: float | None


def parse_flat(data: bytes) -> dict[str, int]:
    """The whole lines of a "name value" file, cpu.stat or memory.events."""
    found: dict[str, int] = {}
    for line in data[: data.rfind(b"\n") + 1].split(b"\n"):
        name, _, text = line.partition(b" ")
        if (value := number(text.strip())) is not None:
            found[name.decode("utf-8", "replace")] = value
    return found


def leaf_stats(cpu: str | None, memory: str | None = None) -> LeafStats:
    """The figures of one cgroup, given its directory in the cpu and in the memory hierarchy.

    On cgroup2 both are the same directory and the second may be left out. The root is refused.
    """
    memory = cpu if memory is None else memory
    _refuse_root(cpu)
    _refuse_root(memory)
    cpu_stat = parse_flat(_read(cpu, "cpu.stat"))
    events = parse_flat(_read(memory, "memory.events"))
    throttled_ns = cpu_stat.get("throttled_time")
    quota_known, quota = _cpu_quota(cpu)
    limit_known, limit = _memory_limit(memory)
    return LeafStats(
        nr_periods=cpu_stat.get("nr_periods"),
        nr_throttled=cpu_stat.get("nr_throttled"),
        throttled_us=cpu_stat.get("throttled_usec") if throttled_ns is None else throttled_ns // 1000,
        memory_low=events.get("low"),
        memory_high=events.get("high"),
        memory_max=events.get("max"),
        memory_oom=events.get("oom"),
        memory_oom_kill=events.get("oom_kill"),
        memory_failcnt=_int(memory, "memory.failcnt"),
        cpu_some_us=pressure.parse(_read(cpu, "cpu.pressure")).some_us,
        memory_some_us=pressure.parse(_read(memory, "memory.pressure")).some_us,
        has_cpu_quota=quota is not None if quota_known else None,
        cpu_quota_cores=quota,
        has_memory_limit=limit is not None if limit_known else None,
        memory_limit_bytes=limit,
    )


class Throttling(NamedTuple):
    """How many periods of its quota a cgroup ran in, and in how many it was stopped, since it was made."""

    nr_periods: int
    nr_throttled: int


def has_cpu_quota(directory: str) -> bool:
    """One small file; two on v1."""
    return _cpu_quota(directory)[1] is not None


def throttling(directory: str) -> Throttling | None:
    """One small file; None where it is gone, or has no cpu controller."""
    stat = parse_flat(_read(directory, "cpu.stat"))
    if "nr_periods" not in stat:
        return None
    return Throttling(stat["nr_periods"], stat.get("nr_throttled", 0))


def cpu_quota(directory: str) -> CpuQuota | None:
    """The quota of one cgroup; None without one. Two small files, and only one where there is none."""
    _, cores = _cpu_quota(directory)
    if cores is None:
        return None
    stat = parse_flat(_read(directory, "cpu.stat"))
    throttled_ns = stat.get("throttled_time")
    throttled_us = stat.get("throttled_usec", 0) if throttled_ns is None else throttled_ns // 1000
    return CpuQuota(cores, stat.get("nr_periods", 0), stat.get("nr_throttled", 0), throttled_us)


def _refuse_root(directory: str | None) -> None:
    if directory is not None and is_root(directory):
        raise NotALeafError(f"{directory} is the root of its cgroup hierarchy")


def _read(directory: str | None, name: str) -> bytes:
    return b"" if directory is None else read_file(f"{directory}/{name}") or b""


def _int(directory: str | None, name: str) -> int | None:
    return None if directory is None else read_int(f"{directory}/{name}")


def _cpu_quota(directory: str | None) -> tuple[bool, float | None]:
    """(known, cores)."""
    fields = _read(directory, "cpu.max").split()
    if len(fields) == 2:
        quota, period = number(fields[0]), number(fields[1])
    else:
        quota, period = _int(directory, "cpu.cfs_quota_us"), _int(directory, "cpu.cfs_period_us")
        fields = [b""] if quota is not None else []
    return bool(fields), quota / period if quota and quota > 0 and period else None


def _memory_limit(directory: str | None) -> tuple[bool, int | None]:
    """(known, bytes)."""
    text = _read(directory, "memory.max").strip()
    if text:
        return True, number(text)
    limit = _int(directory, "memory.limit_in_bytes")
    return limit is not None, limit if limit is not None and limit < _V1_NO_LIMIT else None


def read_cost(directory: str, reads: int = 25) -> ReadCost:
    """What a read of memory.numa_stat and of memory.stat costs at this one leaf, and what a walk would add.

    CPU time and not the clock's, and the least of several: a preemption in the middle of a read would be multiplied by
    the number of cgroups.
    """
    if is_root(directory):
        raise NotALeafError(f"{directory} is the root of its cgroup hierarchy: reading its statistics walks all of it")
    if os.lstat(directory).st_nlink > 2:
        raise NotALeafError(f"{directory} has child cgroups: choose a cgroup without children")
    plain_file = next((name for name in _PLAIN if read_file(f"{directory}/{name}") is not None), _PLAIN[0])
    names = ("memory.numa_stat", "memory.stat", plain_file)
    numa_stat, stat, plain = _timed([f"{directory}/{name}" for name in names], reads)
    return ReadCost(
        numa_stat_s=None if numa_stat is None else numa_stat.cpu_s,
        stat_s=None if stat is None else stat.cpu_s,
        walk_s=_walk_s(numa_stat, stat, plain),
    )


class _Timed(NamedTuple):
    cpu_s: float
    lines: int


def _walk_s(numa_stat: _Timed | None, stat: _Timed | None, plain: _Timed | None) -> float | None:
    """What is left of a leaf's read without what is paid once, whatever the number of cgroups: opening and reading any
    file there (50 of 70 us on an emulated 4.19), and the text. memory.stat is nearly all text, so it tells what a line
    costs. The rest is counted twice in a leaf, for itself and for all below it."""
    if numa_stat is None or plain is None:
        return None
    line_s = max(0.0, stat.cpu_s - plain.cpu_s) / max(stat.lines, 1) if stat is not None else 0.0
    left = numa_stat.cpu_s - plain.cpu_s - numa_stat.lines * line_s
    return left / 2 if left > 0 else None


def _timed(paths: list[str], reads: int) -> list[_Timed | None]:
    """In turns, so that a noisy moment is not that of one file alone."""
    least: dict[str, _Timed | None] = {}
    for _ in range(reads):
        for path in paths:
            started = time.thread_time_ns()
            data = read_file(path)
            took = (time.thread_time_ns() - started) / 1e9
            before = least.get(path)
            if data is None:
                least[path] = None
            elif before is None or took < before.cpu_s:
                least[path] = _Timed(took, data.count(b"\n"))
    return [least.get(path) for path in paths]
