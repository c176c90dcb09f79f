"""The perf rings of all CPUs: stack samples and the tracepoints beside them. CPUs that come and go are followed.

A ring is drained when the kernel says that a quarter of it is full (poll), and at every flush. When a CPU goes
offline its event dies without a word, and after coming back it needs a new one: `follow` compares with the list of
online CPUs."""

from __future__ import annotations

import errno
import mmap
import resource
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from zombiescope._native import KernelSymbols, Sampler
from zombiescope.kernel import namespaces, perf_event, privileges, tracefs
from zombiescope.kernel.perf_event import Clock, CpuRing, Features
from zombiescope.kernel.procfile import at
from zombiescope.recorder.perf_access import explain
from zombiescope.recorder.sources import Sources
from zombiescope.recorder.tracepoints import Fields, Tracepoint, TraceRecord

KALLSYMS = "/proc/kallsyms"
SYMBOLS_EVERY_US = 600_000_000


def ring_bytes(cpus: int) -> int:
    """512 kB a CPU, as everybody may pin; half of that on large machines, where it adds up to real memory."""
    return 512 << 10 if cpus <= 64 else 256 << 10


def load_kernel_symbols(sources: Sources, now_us: int, root: str = "/") -> KernelSymbols:
    """Reads kallsyms in pieces; a file of zeros (kptr_restrict, no CAP_SYSLOG) is a missing source."""
    symbols = KernelSymbols()
    try:
        with open(at(root, KALLSYMS.lstrip("/")), "rb", buffering=0) as file:
            while piece := file.read(1 << 16):
                symbols.feed(piece)
    except OSError as error:
        sources.lacks("kernel symbols", f"{KALLSYMS}: {error.strerror}", "CONFIG_KALLSYMS in the kernel", now_us)
    symbols.finish()
    if symbols.hidden:
        restrict = privileges.read().kptr_restrict
        grant = "sudo sysctl kernel.kptr_restrict=1" if restrict == 2 else "CAP_SYSLOG (AmbientCapabilities=CAP_SYSLOG)"
        sources.lacks("kernel symbols", f"{KALLSYMS} shows no addresses (kptr_restrict={restrict})", grant, now_us)
    return symbols


def raise_file_limit() -> None:
    """Five descriptors a CPU and one per kernel file: the usual soft limit of 1,024 ends at 192 CPUs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def in_host_pid_namespace(sources: Sources, now_us: int) -> bool:
    """Whether pids in the records are those that /proc shows."""
    if namespaces.in_host_pid_namespace():
        return True
    why = "this process sees only its own PID namespace: other processes appear as pid 0 and are indistinguishable"
    sources.lacks("host PID namespace", why, "hostPID: true (docker run --pid=host)", now_us)
    return False


class PerfRings:
    """The rings of all online CPUs behind one Sampler."""

    def __init__(
        self,
        clock: Clock,
        possible_cpus: int,
        sources: Sources,
        *,
        host_pids: bool,
        now_us: int,
        root: str = "/",
        left_out: Collection[int] = (),
        online: Sequence[int] = (0,),
    ) -> None:
        """`left_out`: CPUs whose stacks are not taken; what happens there by itself is recorded all the same."""
        self._clock = clock
        self._left_out = frozenset(left_out)
        self._root = root
        self._sources = sources
        self._ring_bytes = ring_bytes(possible_cpus)
        self.rings: dict[int, CpuRing] = {}
        self._tracepoints: dict[int, tuple[Tracepoint, tracefs.EventFormat]] = {}  # by their number in the records
        self._closed_counts: dict[int, int] = {}
        self._apart: dict[int, int] = {}  # records of left-out CPUs, whose counters are not read
        self._next_symbols_us = now_us
        self._features = self._probe(online, now_us) if root == "/" else None
        self.symbols = load_kernel_symbols(sources, now_us, root)
        self.sampler = Sampler(
            self.symbols,
            possible_cpus,
            has_period=clock.has_period,
            has_cgroup=bool(self._features and self._features.cgroup),
            host_pids=host_pids,
        )

    @property
    def can_sample(self) -> bool:
        return self._features is not None or self._replays

    @property
    def _replays(self) -> bool:
        return self._root != "/"

    def _probe(self, online: Sequence[int], now_us: int) -> Features | None:
        """On a CPU that is there: number 0 need not be."""
        try:
            return perf_event.probe(min(set(online) - self._left_out or online, default=0), self._clock)
        except OSError as error:
            why, grant = explain(error, self._clock)
            self._sources.lacks("stack samples", why, grant, now_us)
            return None

    def trace(self, wanted: Iterable[Tracepoint], now_us: int) -> None:
        """Chooses the tracepoints to open before the rings are opened; one that this kernel lacks is reported."""
        place = self._find_tracefs(now_us)
        if place is None or not self.can_sample:
            return
        for one in wanted:
            try:
                form = tracefs.read_format(place, one.group, one.name)
            except (OSError, ValueError) as error:
                reason = error.strerror if isinstance(error, OSError) else str(error)
                self._sources.lacks(one.source, f"{reason}", "a kernel that has it", now_us)
            else:
                self._tracepoints[len(self._tracepoints) + 1] = (one, form)

    @property
    def kinds(self) -> dict[str, int]:
        """The tracepoints that are traced: name -> its number in the records; 0 is the stack samples'."""
        return {one.name: kind for kind, (one, _) in self._tracepoints.items()}

    def _find_tracefs(self, now_us: int) -> Path | None:
        try:
            place = tracefs.find(self._root) or (None if self._replays else tracefs.mount_privately())
        except PermissionError as error:
            if error.errno == errno.EPERM:
                why, grant = (
                    "not mounted, and mounting it is not allowed",
                    "sudo mount -t tracefs nodev /sys/kernel/tracing",
                )
            else:
                why, grant = f"{error.filename}: {error.strerror}", "CAP_DAC_READ_SEARCH (tracefs is closed to others)"
            self._sources.lacks("tracefs", why, grant, now_us)
            return None
        except OSError as error:
            self._sources.lacks(
                "tracefs", f"cannot be mounted: {error.strerror}", "CONFIG_TRACING in the kernel", now_us
            )
            return None
        return place

    def follow(self, online: tuple[int, ...], now_us: int) -> tuple[list[int], list[int]]:
        """Opens rings of CPUs that came, closes those of CPUs that went: (came, went)."""
        if self._features is None:
            return [], []
        went = [cpu for cpu in self.rings if cpu not in online]
        for cpu in went:
            self._close(cpu)
        came = []
        for cpu in online:
            if cpu not in self.rings and self._open(cpu, now_us):
                came.append(cpu)
        return came, went

    def _open(self, cpu: int, now_us: int) -> bool:
        assert self._features is not None
        try:
            clock = Clock(perf_event.SILENT) if cpu in self._left_out else self._clock
            ring = perf_event.open_ring(cpu, clock, self._features, self._ring_bytes)
        except OSError as error:
            if error.errno != errno.ENODEV:  # ENODEV: it went offline again, the next look will tell
                why, grant = explain(error, self._clock)
                self._sources.lacks(f"stack samples of cpu {cpu}", why, grant, now_us)
            return False
        for kind, (tracepoint, form) in self._tracepoints.items():
            try:
                ring.add_tracepoint(kind, form.number, tracepoint.where, wakes=tracepoint.is_urgent)
            except OSError as error:
                why, grant = explain(error, self._clock)
                self._sources.lacks(tracepoint.source, why, grant, now_us)
        for event_id, kind in ring.ids:
            self.sampler.register(event_id, kind)
        self.sampler.add_ring(cpu, ring.memory, mmap.PAGESIZE)
        ring.enable()
        self.rings[cpu] = ring
        self._sources.has(f"stack samples of cpu {cpu}", now_us)
        return True

    def _close(self, cpu: int) -> None:
        ring = self.rings.pop(cpu)
        self.sampler.remove_ring(cpu)
        for (_, kind), count in () if cpu in self._left_out else zip(ring.ids[1:], _counts(ring), strict=False):
            self._closed_counts[kind] = self._closed_counts.get(kind, 0) + count
        ring.memory.close()
        ring.close()

    def refresh_symbols(self, now_us: int) -> None:
        """Reads kallsyms again when code was seen that it did not know: a module came. Between two segments only."""
        if not self.sampler.rows.unresolved_kernel or self.symbols.hidden or now_us < self._next_symbols_us:
            return
        self._next_symbols_us = now_us + SYMBOLS_EVERY_US
        self.symbols = load_kernel_symbols(self._sources, now_us, self._root)
        self.sampler.rows.replace_symbols(self.symbols)

    def fill(self) -> bool:
        """Whether a quarter of one is in use, at which the kernel calls by itself. About 1 us a ring."""
        return any(ring.used_bytes() >= self._ring_bytes // 4 for ring in self.rings.values())

    def drain(self) -> int:
        return self.sampler.drain()

    def traced(self) -> Iterator[tuple[Tracepoint, TraceRecord, Fields]]:
        """Tracepoints that fired since the last call, in the order of time."""
        for fired in self.sampler.take_tracepoints():
            if fired[2] in self._left_out:
                self._apart[fired[0]] = self._apart.get(fired[0], 0) + 1
            tracepoint, form = self._tracepoints[fired[0]]
            yield tracepoint, TraceRecord._make(fired), form.fields

    def counts(self) -> dict[str, int]:
        """How often each tracepoint fired since the start, by the kernel's own count; includes records that were
        lost. Of a left-out CPU the records that came count: reading a counter there interrupts it."""
        totals = dict(self._closed_counts)
        for kind, count in self._apart.items():
            totals[kind] = totals.get(kind, 0) + count
        for ring in (ring for cpu, ring in self.rings.items() if cpu not in self._left_out):
            for (_, kind), count in zip(ring.ids[1:], _counts(ring), strict=False):
                totals[kind] = totals.get(kind, 0) + count
        return {name: totals[kind] for name, kind in self.kinds.items() if kind in totals}

    def close(self) -> None:
        for cpu in list(self.rings):
            self._close(cpu)


def _counts(ring: CpuRing) -> list[int]:
    try:
        return ring.counts()
    except OSError:
        return []
