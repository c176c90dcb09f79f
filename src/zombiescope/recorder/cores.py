"""One row per core and tick: where its time went, what interrupted it, how long its softirq thread waited."""

from __future__ import annotations

from typing import Any

from zombiescope.kernel import schedstat, softirqs, softnet, stat
from zombiescope.kernel.ksoftirqd import Ksoftirqd
from zombiescope.kernel.procfile import ProcFile, at
from zombiescope.kernel.stat import USER_HZ, CpuTicks, Stat
from zombiescope.recorder.sources import Sources
from zombiescope.recorder.tick import CoreTime, Tick
from zombiescope.store import schema
from zombiescope.store.batch import Batch

_NO_SOFTNET = (None, None, None)
_NO_VECTORS = (None,) * len(schema.SOFTIRQS)
_VECTOR_NAMES = tuple(name.upper() for name in schema.SOFTIRQS)


class Cores:
    """Remembers the last reading of each source and writes differences."""

    def __init__(
        self, batch: Batch, sources: Sources, hz: int, root: str = "/", left_out: frozenset[int] = frozenset()
    ) -> None:
        """`left_out`: cores that are not sampled. Their time is written, and nobody judges it."""
        self._left_out = left_out
        self._batch = batch
        self._hz = hz
        self._sources = sources
        self._stat = ProcFile(at(root, "proc/stat"))
        self._softirqs = ProcFile(at(root, "proc/softirqs"))
        self._softnet = ProcFile(at(root, "proc/net/softnet_stat"))
        self._schedstat = ProcFile(at(root, "proc/schedstat"))
        self._ksoftirqd = Ksoftirqd(root)
        self.forget()

    def forget(self) -> None:
        """The next reading has nothing to be compared with."""
        self._ticks: dict[int, CpuTicks] = {}
        self._vectors: dict[int, tuple[int | None, ...]] = {}
        self._packets: dict[int, softnet.SoftnetCpu] = {}
        self._runs: dict[int, schedstat.RunDelay] = {}
        self._delays: dict[int, schedstat.RunDelay] = {}

    def follow(self, online: tuple[int, ...], now_us: int) -> None:
        """Looks for the softirq threads of CPUs that came."""
        self._ksoftirqd.follow(online)
        if self._ksoftirqd.why:
            self._sources.lacks("ksoftirqd run delay", self._ksoftirqd.why, "hostPID: true", now_us)

    def tick(self, tick: Tick) -> None:
        """Writes a row per core, and tells the tick what was read."""
        wall_us, interval_us = tick.wall_us, tick.interval_us
        expected = round(self._hz * interval_us / 1e6)
        now = self._read_stat(wall_us)
        if now is None:
            return
        vectors, packets = self._read_softirqs(wall_us), self._read_softnet(tick.online, wall_us)
        runs, delays = self._read_schedstat(wall_us), self._ksoftirqd.read() or {}
        times = []
        for cpu, ticks in now.cpus.items():
            before = self._ticks.get(cpu)
            if before is None:
                continue
            spent = _spent_ms(before, ticks)
            got, idle, gap_ns, _ = tick.sampled.get(cpu, (None, None, None, 0))
            row = (
                wall_us, interval_us, cpu, *spent,
                got, idle, expected if got is not None else None, None if gap_ns is None else gap_ns // 1000,
                *_vector_deltas(self._vectors.get(cpu), vectors.get(cpu)),
                *_packet_deltas(self._packets.get(cpu), packets.get(cpu)),
                _added_us(self._delays.get(cpu), delays.get(cpu), "wait_ns"),
                _added_us(self._runs.get(cpu), runs.get(cpu), "run_ns"),
                _added_us(self._runs.get(cpu), runs.get(cpu), "wait_ns"),
            )  # fmt: skip
            self._batch.add(schema.CORES, row)
            if cpu not in self._left_out:
                times.append(_core_time(cpu, spent))
        self._ticks, self._vectors, self._packets = dict(now.cpus), vectors, packets
        self._runs, self._delays = runs, delays
        tick.stat, tick.times = now, times

    def _read_stat(self, wall_us: int) -> Stat | None:
        data = self._stat.read()
        if data is None:
            self._sources.lacks("per-core time", f"/proc/stat: {self._stat.why}", "a readable /proc", wall_us)
            return None
        self._sources.has("per-core time", wall_us)
        return stat.parse(data)

    def _read_softirqs(self, wall_us: int) -> dict[int, tuple[int | None, ...]]:
        data = self._softirqs.read()
        if data is None:
            self._sources.lacks("softirqs", f"/proc/softirqs: {self._softirqs.why}", "a readable /proc", wall_us)
            return {}
        self._sources.has("softirqs", wall_us)
        found = softirqs.parse(data)
        columns = [found.vectors.get(name) for name in _VECTOR_NAMES]
        return {
            cpu: tuple(None if column is None else column[place] for column in columns)
            for place, cpu in enumerate(found.cpus)
        }

    def _read_softnet(self, online: tuple[int, ...], wall_us: int) -> dict[int, softnet.SoftnetCpu]:
        data = self._softnet.read()
        if data is None:
            why = f"/proc/net/softnet_stat: {self._softnet.why}"
            self._sources.lacks("softnet", why, "a readable /proc/net", wall_us)
            return {}
        self._sources.has("softnet", wall_us)
        return softnet.parse(data, online).cpus

    def _read_schedstat(self, wall_us: int) -> dict[int, schedstat.RunDelay]:
        data = self._schedstat.read()
        if data is None:
            why = f"/proc/schedstat: {self._schedstat.why}"
            self._sources.lacks("run queue delay", why, "a kernel with CONFIG_SCHEDSTATS", wall_us)
            return {}
        self._sources.has("run queue delay", wall_us)
        return schedstat.parse(data).cpus

    def close(self) -> None:
        for file in (self._stat, self._softirqs, self._softnet, self._schedstat):
            file.close()
        self._ksoftirqd.close()


def _spent_ms(before: CpuTicks, after: CpuTicks) -> tuple[int | None, ...]:
    # idle and iowait may step back on tickless kernels: then nothing was added.
    return tuple(
        None if old is None or new is None else max(0, new - old) * 1000 // USER_HZ
        for old, new in zip(before, after, strict=True)
    )


def _core_time(cpu: int, spent: tuple[int | None, ...]) -> CoreTime:
    user, nice, system, _, _, irq, softirq, steal = (value or 0 for value in spent[:8])
    kernel = system + irq + softirq
    return CoreTime(cpu, user + nice + kernel + steal, kernel)


def _vector_deltas(before: tuple[int | None, ...] | None, after: tuple[int | None, ...] | None) -> tuple[Any, ...]:
    if before is None or after is None:
        return _NO_VECTORS
    return tuple(
        None if old is None or new is None else (new - old) % softirqs.WRAP
        for old, new in zip(before, after, strict=True)
    )


def _packet_deltas(before: softnet.SoftnetCpu | None, after: softnet.SoftnetCpu | None) -> tuple[Any, ...]:
    if before is None or after is None:
        return _NO_SOFTNET
    then, now = before[:3], after[:3]  # processed, dropped, time_squeeze
    return tuple((new - old) % softnet.WRAP for old, new in zip(then, now, strict=True))


def _added_us(before: schedstat.RunDelay | None, after: schedstat.RunDelay | None, field: str) -> int | None:
    if before is None or after is None:
        return None
    added: int = getattr(after, field) - getattr(before, field)
    return max(0, added) // 1000
