"""Node-wide numbers on every tick: what moved, and the few levels worth keeping.

A counter that did not move and a gauge that did not change have no row; but what the kernel counts is in `series` from
the first reading on, in every segment: a name that is missing there is not zero, this kernel does not have it.

A source that is read rarely because it is dear (a NIC whose firmware answers slowly, /proc/interrupts of a large
machine) slows itself down: what costs more than a millisecond is read every ten seconds. One that raises is a gap of
its own: the others are read."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from zombiescope.kernel import (
    conntrack,
    dentry,
    limits,
    loadavg,
    meminfo,
    namespaces,
    napi_threads,
    netdev,
    nic_queue,
    numa,
    pressure,
    snmp,
    vmstat,
)
from zombiescope.kernel.interrupts import NO_CPU, Interrupts
from zombiescope.kernel.procfile import ProcFile, at, read_int
from zombiescope.kernel.stat import Stat
from zombiescope.kernel.txqueue import TxTimeouts
from zombiescope.recorder.hardware import Hardware
from zombiescope.recorder.nic import NicStatistics
from zombiescope.recorder.retransmits import RetransmitPeers
from zombiescope.recorder.sources import Sources
from zombiescope.recorder.stage import Barrier
from zombiescope.recorder.tick import Tick
from zombiescope.store import schema
from zombiescope.store.batch import Batch, Series
from zombiescope.store.thresholds import NEAR_LIMIT

DEAR_NS = 1_000_000
RARELY_S = 10.0
NETWORK_GRANT = "the host's network namespace (hostNetwork: true, docker run --network host)"
CALLS = ("TLB", "CAL")
"""Rows of /proc/interrupts by which cores interrupt each other. Kernels count the first in the second, or beside it."""
MOST_NAMES = 4096
MANY = 1 << 62
GAUGES = frozenset({"nr_dirty", "nr_writeback", "nr_dirty_threshold", "TcpCurrEstab", "conntrack_allowance_available"})
GAUGE_SOURCES = frozenset(
    {
        "meminfo",
        "loadavg",
        "dentry",
        "conntrack",
        "infiniband_link",
        "limits",
        "numa_memory",
        "clocksource",
        "cpufreq",
        "polling",
    }
)
"""Everything that they count is a level."""

Figures = Iterable[tuple[str, str | None, int | None, bool]]  # name, key, value, is it a gauge


class Counters:
    """Reads every source when it is due and writes what changed."""

    def __init__(self, batch: Batch, sources: Sources, barrier: Barrier, root: str = "/") -> None:
        self._batch = batch
        self._sources = sources
        self._barrier = barrier
        self._root = root
        self._network = namespaces.node_network(root)
        self._cards_root = root if self._network == "self" else namespaces.node_root(root)
        self._series = Series(batch)
        self._before: dict[tuple[str, str, str | None], int] = {}
        self._counts: dict[tuple[str, str, str | None], None] = {}  # every counter that was ever read
        self._irq_numbers: dict[str, int] = {}
        self._due_s: dict[str, float] = {}
        self._was_dear: set[str] = set()
        self._files: dict[str, ProcFile] = {}
        self._interrupts = Interrupts()
        self._calls = self._waited_us = 0
        self.nics = NicStatistics()
        self.hardware = Hardware(sources, self._put, root)
        self.peers = RetransmitPeers()
        self._tx_timeouts = TxTimeouts(self._cards_root)
        self._cards: tuple[str, ...] = ()
        self._near_limit = False
        self._suspects: list[str] = []
        self._numa_nodes = numa.nodes(root)
        self._queues: tuple[nic_queue.NicQueue, ...] = ()
        self._napi: dict[int, str] = {}
        self._wall_us = 0
        self._readings: tuple[tuple[str, float, Callable[[], None]], ...] = (
            ("pressure", 0.0, self._pressure),
            ("vmstat", 0.0, lambda: self._parsed("vmstat", "proc/vmstat", vmstat.parse)),
            ("snmp", 0.0, self._snmp),
            ("netdev", 0.0, self._netdev),
            ("interrupts", 0.0, self._interrupt_rows),
            ("ethtool", 0.0, self._nic_statistics),
            ("napi", 0.0, self._napi_threads),
            ("hardware", 0.0, lambda: self.hardware.tick(self._wall_us, time.monotonic())),
            ("meminfo", 5.0, lambda: self._parsed("meminfo", "proc/meminfo", meminfo.parse)),
            ("loadavg", 5.0, self._loadavg),
            ("tx_timeout", RARELY_S, self._queue_timeouts),
            ("kernel tables", RARELY_S, self._kernel_tables),
            ("limits", RARELY_S, self._limits),
            ("numa", RARELY_S, self._numa),
            ("clocksource", 60.0, self._clocksource),
            ("cards", 60.0, self._follow_cards),
        )
        """Name, seconds between two readings (0: every tick), how."""

    def note_network(self, now_us: int) -> None:
        """Outside of the host's network namespace: what of it cannot be seen."""
        if self._network == "self":
            return
        hidden = "driver counters of its cards (ethtool), its connection tracking and its sockets"
        if self._network is None:
            hidden += ", its cards and their queues, its protocol counters (snmp, netstat, netdev)"
        elif self._cards_root == "/":
            hidden += ", its cards and their queues"
        why = f"this process has its own network namespace; it does not see the node's {hidden}"
        self._sources.lacks("host network namespace", why, NETWORK_GRANT, now_us)

    def restart(self) -> None:
        """A new segment: series are numbered anew and gauges written again."""
        self._series.restart()
        for source, name, key in self._counts:
            self._series.number(source, name, key, "counter")
        self._irq_numbers.clear()
        for identity in list(self._before):
            if identity[0] in GAUGE_SOURCES or identity[1] in GAUGES:
                del self._before[identity]
        self._write_queues()

    def _file(self, path: str) -> ProcFile:
        file = self._files.get(path)
        if file is None:
            file = self._files[path] = ProcFile(at(self._root, path))
        return file

    def tick(self, tick: Tick) -> None:
        """Reads what is due at this tick."""
        self._wall_us = tick.wall_us
        if tick.stat is not None:
            self._put("stat", _stat_figures(tick.stat))
        for name, every_s, read in self._readings:
            self._read(name, every_s, read)

    def _read(self, name: str, every_s: float, read: Callable[[], None]) -> None:
        now = time.monotonic()
        if now < self._due_s.get(name, 0.0):
            return
        source = f"{name} (reader)"
        if not self._barrier.due(source):
            return
        started = time.perf_counter_ns()
        if not self._barrier.attempt(source, read):
            self._forget(name)
        # One slow reading may be a preemption; two in a row are the source itself. (A thread's CPU clock would tell
        # them apart, but reading it costs more than most of these files.)
        is_dear = time.perf_counter_ns() - started > DEAR_NS
        rarely = is_dear and name in self._was_dear and every_s < RARELY_S
        (self._was_dear.add if is_dear else self._was_dear.discard)(name)
        self._due_s[name] = now + max(every_s - 0.05, RARELY_S - 0.05 if rarely else 0.0)

    def _forget(self, source: str) -> None:
        """What it counts while nobody can read it belongs to no tick."""
        for identity in [identity for identity in self._before if identity[0] == source]:
            del self._before[identity]
        if source == "interrupts":
            self._interrupts = Interrupts()

    def _put(self, source: str, figures: Figures) -> None:
        for name, key, value, is_gauge in figures:
            if value is None:
                continue
            identity = (source, name, key)
            before = self._before.get(identity)
            self._before[identity] = value
            if is_gauge:
                if value != before:
                    number = self._series.number(source, name, key, "gauge")
                    self._batch.add(schema.COUNTERS, (self._wall_us, number, value))
            elif before is None:
                self._name(identity)
            elif value > before:  # a smaller value: the counter was reset, nothing is known
                number = self._series.number(source, name, key, "counter")
                self._batch.add(schema.COUNTERS, (self._wall_us, number, value - before))

    def _name(self, identity: tuple[str, str, str | None]) -> None:
        """A counter that is read for the first time, even if it never moves. Not one for each queue of each card."""
        if identity[0] != "tx_timeout" and len(self._counts) < MOST_NAMES:
            self._counts[identity] = None
            self._series.number(*identity, "counter")

    def gauge(self, wall_us: int, source: str, name: str, key: str | None, value: int) -> None:
        """A level that another part of the recorder measured."""
        number = self._series.number(source, name, key, "gauge")
        self._batch.add(schema.COUNTERS, (wall_us, number, value))

    def count(self, wall_us: int, source: str, name: str, key: str | None, added: int) -> None:
        """What another part of the recorder counted since its last reading."""
        number = self._series.number(source, name, key, "counter")
        if added > 0:
            self._batch.add(schema.COUNTERS, (wall_us, number, added))

    def _data(self, source: str, path: str, grant: str = "a kernel that has this file") -> bytes | None:
        file = self._file(path)
        data = file.read()
        if data is None:
            self._sources.lacks(source, f"/{path}: {file.why}", grant, self._wall_us)
        else:
            self._sources.has(source, self._wall_us)
        return data

    def _parsed(self, source: str, path: str, parse: Callable[[bytes], dict[str, int | None]]) -> None:
        data = self._data(source, path)
        if data is not None:
            gauges = source == "meminfo"
            self._put(source, ((name, None, value, gauges or name in GAUGES) for name, value in parse(data).items()))

    def _of_network(self, source: str, name: str) -> bytes | None:
        """A file of /proc/net of the node; None where only our own namespace's can be read."""
        if self._network is None:
            return None
        return self._data(source, f"proc/net/{name}" if self._network == "self" else f"proc/{self._network}/net/{name}")

    def _snmp(self) -> None:
        parts = [self._of_network("snmp", "snmp"), self._of_network("netstat", "netstat")]
        figures = snmp.parse(*(part for part in parts if part is not None))
        self._put("snmp", ((name, None, value, name in GAUGES) for name, value in figures.items()))
        if self._root == "/" and self._network == "self":
            self.peers.tick(self._wall_us, figures["TcpRetransSegs"], figures["TcpOutSegs"])

    def _pressure(self) -> None:
        for resource in pressure.RESOURCES:
            data = self._file(f"proc/pressure/{resource}").read()
            if data is None:
                if resource == "cpu":
                    why = f"/proc/pressure: {self._file('proc/pressure/cpu').why}"
                    self._sources.lacks("pressure", why, "boot with psi=1 (CONFIG_PSI)", self._wall_us)
                continue
            self._sources.has("pressure", self._wall_us)
            found = pressure.parse(data)
            before = self._before.get(("pressure", "some_us", resource))
            if resource == "cpu" and before is not None and found.some_us is not None:
                self._waited_us = max(0, found.some_us - before)
            self._put(
                "pressure", (("some_us", resource, found.some_us, False), ("full_us", resource, found.full_us, False))
            )

    def _netdev(self) -> None:
        data = self._of_network("netdev", "dev")
        if data is not None:
            # Not every veth of a thousand pods: cards, and the loopback that Ray's own traffic takes.
            for name, row in netdev.parse(data, (*self._cards, "lo")).items():
                self._put("netdev", ((field, name, value, False) for field, value in row._asdict().items()))

    def _loadavg(self) -> None:
        data = self._data("loadavg", "proc/loadavg")
        load = loadavg.parse(data) if data is not None else None
        if load is not None:
            self._put(
                "loadavg", (("load1_percent", None, round(load.load1 * 100), True), ("tasks", None, load.tasks, True))
            )

    def _interrupt_rows(self) -> None:
        data = self._data("interrupts", "proc/interrupts")
        if data is None:
            return
        deltas = self._interrupts.update(data)
        if not self._irq_numbers:
            for label, what in self._interrupts.counters().items():
                self._irq_numbers[label] = self._series.number("interrupts", label, what or None, "counter")
        calls = dict.fromkeys(CALLS, 0)
        for label, cpu, count in deltas:
            if label in calls:
                calls[label] += count
            if cpu == NO_CPU:
                continue
            number = self._irq_numbers.get(label)
            if number is None:
                device = self._interrupts.devices().get(label) or None
                number = self._irq_numbers[label] = self._series.number("interrupts", label, device, "counter")
            self._batch.add(schema.INTERRUPTS, (self._wall_us, number, cpu, count))
        self._calls = max(calls.values())

    def take_calls(self) -> int:
        """How often cores interrupted each other, by the last reading of /proc/interrupts; 0 until it is read again."""
        calls, self._calls = self._calls, 0
        return calls

    def take_waited_us(self) -> int:
        """How long somebody waited for a CPU, by the last reading of /proc/pressure; 0 until it is read again."""
        waited, self._waited_us = self._waited_us, 0
        return waited

    def take_suspects(self) -> list[str]:
        """What else is worth a look since the last call: counters of errors that rose, tables that are nearly full."""
        suspects, self._suspects = self._suspects, []
        return suspects + self.hardware.take_suspects()

    def _nic_statistics(self) -> None:
        if self._network != "self":
            return  # note_network() said so
        self.nics.ask(self._cards)
        for card, figures in (self.nics.take() or {}).items():
            self._put("ethtool", ((name, card, value, name in GAUGES) for name, value in figures.items()))
        stuck_s = self.nics.stuck_s
        if self.nics.why is not None and self._cards:
            self._sources.lacks("NIC statistics", self.nics.why, "a kernel with sockets (CONFIG_NET)", self._wall_us)
        elif stuck_s is not None:
            why = f"no answer for {stuck_s:.0f} s: another task holds the kernel's rtnl lock"
            self._sources.lacks("NIC statistics", why, "nothing: it comes back when the lock is free", self._wall_us)
        else:
            self._sources.has("NIC statistics", self._wall_us)

    def _napi_threads(self) -> None:
        for pid, name in self._napi.items():
            found = napi_threads.read(pid, name, self._root)
            if found is not None:
                known = (("run_us", found.run_us, False), ("wait_us", found.wait_us, False), ("cpu", found.cpu, True))
                self._put("napi", ((which, name, value, gauge) for which, value, gauge in known))

    def _queue_timeouts(self) -> None:
        figures = self._tx_timeouts.read()
        self._put("tx_timeout", ((f"tx-{queue}", card, count, False) for (card, queue), count in figures.items()))

    def _kernel_tables(self) -> None:
        table = conntrack.read(self._root) if self._network == "self" else None
        names = dentry.read(self._root)
        if table is not None:
            self._put("conntrack", (("count", None, table.count, True), ("max", None, table.max, True)))
        if names is not None:
            self._put("dentry", (("total", None, names.nr_dentry, True), ("negative", None, names.nr_negative, True)))

    def _limits(self) -> None:
        found = limits.read(self._root)
        self._put("limits", ((name, None, value, True) for name, value in found.items()))
        tasks = self._before.get(("loadavg", "tasks", None), 0)
        near = tasks >= NEAR_LIMIT * min(found.get("pid_max", MANY), found.get("threads_max", MANY))
        near = near or found.get("files_open", 0) >= NEAR_LIMIT * found.get("files_max", MANY)
        if near and not self._near_limit:
            self._suspects.append("limits")
        self._near_limit = near

    def _numa(self) -> None:
        for node in self._numa_nodes:
            key, levels, counts = f"node {node}", numa.levels(node, self._root), numa.counters(node, self._root)
            self._put("numa_memory", ((name, key, value, True) for name, value in levels.items()))
            self._put("numa", ((name, key, value, False) for name, value in counts.items()))

    def _clocksource(self) -> None:
        """A gauge for each clock that was in use: 1 while it is."""
        name = limits.clocksource(self._root)
        if name is not None:
            used = {key for _, known, key in self._before if known == "current"} | {name}
            self._put("clocksource", (("current", key, int(key == name), True) for key in sorted(filter(None, used))))

    def _follow_cards(self) -> None:
        cards = nic_queue.physical_interfaces(self._cards_root)
        if cards != self._cards:
            self._cards = cards
            self._tx_timeouts.follow(cards)
        threaded = napi_threads.threaded_cards(self._cards_root)
        self._napi = napi_threads.find(self._root) if threaded else {}
        busy = max(read_int(at(self._root, f"proc/sys/net/core/{name}")) or 0 for name in ("busy_poll", "busy_read"))
        # What of the polling is not counted as NET_RX: by threads, and by system calls (sockets, epoll, AF_XDP).
        self._put("polling", (("threaded_cards", None, len(threaded), True), ("busy_poll_us", None, busy, True)))
        queues = nic_queue.nic_queues(self._cards_root, self._interrupts.devices())
        if queues != self._queues:
            self._queues = queues
            self._write_queues()

    def card_cores(self) -> tuple[int, ...]:
        """The cores that serve network cards, receiving queues first."""
        by_direction = sorted(self._queues, key=lambda one: "rx" not in one.direction)
        return tuple(dict.fromkeys(cpu for queue in by_direction for cpu in queue.cpus))

    def _write_queues(self) -> None:
        for queue in self._queues:
            cpus = ",".join(map(str, queue.cpus))
            name = f"{queue.direction}-{queue.queue}"
            self._batch.add(schema.QUEUES, (self._wall_us, queue.interface, name, queue.irq, cpus))

    def drivers(self) -> dict[str, str]:
        """Card -> driver and its version, for node.json."""
        found = {}
        for card in nic_queue.physical_interfaces(self._cards_root):
            driver = self.nics.driver(card) if self._network == "self" else None
            if driver is not None:
                found[card] = f"{driver.driver} {driver.version}".strip()
        return found

    def close(self) -> None:
        self.nics.stop()
        self.hardware.close()
        self._tx_timeouts.close()
        for file in self._files.values():
            file.close()


def _stat_figures(stat: Stat) -> Figures:
    return (
        ("ctxt", None, stat.ctxt, False),
        ("processes", None, stat.processes, False),
        ("procs_running", None, stat.procs_running, True),
        ("procs_blocked", None, stat.procs_blocked, True),
    )
