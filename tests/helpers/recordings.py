"""A synthetic node with one bad minute: what tests of readers and commands look at.

`write_recording(dir)` makes a node that trains, serves a NIC and leaks memory cgroups; in the middle of it
kubelet holds the last core in the kernel for six seconds and the NIC is reset. Everything is drawn from one
seed, so two calls with the same arguments write the same bytes.
"""

from __future__ import annotations

import json
import random
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.helpers.made import BOOT, SECOND, START_US, Node, describe, write_segment
from zombiescope.store import schema
from zombiescope.store.log import SegmentEncoder, encode_columns, encode_rows
from zombiescope.store.reader import Recording

__all__ = (
    "BOOT", "KUBELET", "LEAKER", "LEAKING_PATH", "PROGRAMS", "SECOND", "START_US", "WALK", "Incident", "Program",
    "Written", "contents", "write_recording", "write_rollups", "write_segment",
)  # fmt: skip

LEAKING_PATH = "/ecs/*"

_SYSCALL = ("entry_SYSCALL_64_after_hwframe", "do_syscall_64")
_READ = (*_SYSCALL, "__x64_sys_read", "vfs_read", "seq_read")
WALK = (*_READ, "memcg_numa_stat_show", "mem_cgroup_nr_lru_pages")
"""The kernel path of the incident."""
_FUTEX = (*_SYSCALL, "__x64_sys_futex", "do_futex")
_IRQ = ("asm_common_interrupt", "common_interrupt", "irq_exit_rcu", "__do_softirq")

_KERNEL_PATHS: dict[str, tuple[tuple[str, ...], ...]] = {
    "kubelet": (_READ, (*_READ, "proc_single_show"), (*_FUTEX, "futex_wait_queue")),
    "python": (
        ("asm_exc_page_fault", "exc_page_fault", "handle_mm_fault", "do_anonymous_page", "clear_page_erms"),
        (*_SYSCALL, "__x64_sys_ioctl", "nvidia_unlocked_ioctl"),
        (*_FUTEX, "futex_wake", "_raw_spin_unlock_irqrestore"),
    ),
    "raylet": (
        (*_SYSCALL, "__x64_sys_epoll_wait", "do_epoll_wait", "ep_poll"),
        (*_SYSCALL, "__sys_sendmsg", "tcp_sendmsg"),
    ),
    "containerd": ((*_SYSCALL, "do_sys_openat2", "path_openat"),),
    "swapper": ((*_IRQ, "net_rx_action", "ena_io_poll"), (*_IRQ, "run_timer_softirq")),
    "amazon-ecs-agen": ((*_SYSCALL, "__x64_sys_mkdirat", "do_mkdirat", "cgroup_mkdir"),),
}


@dataclass(frozen=True, slots=True)
class Program:
    pid: int
    comm: str
    share: int
    user_functions: int = 0
    unit: str | None = None
    container: str | None = None
    pod: str | None = None


PROGRAMS = (
    Program(4242, "python", 60, 400, "kubepods.slice", "3f1c" * 16, "7b0f9a52-11aa-4c0e-9e9b-2f1d7c4f6c11"),
    Program(1201, "kubelet", 8, 60, "kubelet.service"),
    Program(2310, "raylet", 14, 90, "kubepods.slice", "9ad2" * 16, "7b0f9a52-11aa-4c0e-9e9b-2f1d7c4f6c11"),
    Program(902, "containerd", 5, 40, "containerd.service"),
    Program(0, "swapper", 10),
    Program(7001, "amazon-ecs-agen", 3, 20, "ecs.service", "c0de" * 16),
)
KUBELET = PROGRAMS[1]
LEAKER = PROGRAMS[5]


@dataclass(frozen=True, slots=True)
class Incident:
    """What is true about the bad seconds: the core, and when (from, to)."""

    cpu: int
    from_us: int
    to_us: int


@dataclass(frozen=True, slots=True)
class Written:
    """What was written, and what is true about it."""

    dir: Path
    node_dir: Path
    start_us: int
    end_us: int
    segments: tuple[Path, ...]
    samples: int
    incident: Incident | None


@dataclass(slots=True)
class _Segment:
    """One segment; rows of its dictionaries go out with the frame that needs them first."""

    encoder: SegmentEncoder
    path: Path
    made: Node = field(default_factory=Node)
    known: set[int] = field(default_factory=set)

    def stack(self, user: Sequence[str], kernel: Sequence[str]) -> int:
        frames = [self.made.frame(name, "user", "libtorch.so") for name in user]
        return self.made.stack([*frames, *(self.made.frame(name, "kernel", "[kernel]") for name in kernel)])

    def task(self, program: Program) -> int:
        """First what a ring record tells, then what was read in /proc/PID."""
        task = self.made.task(program.pid, program.comm)
        if task not in self.known:
            self.known.add(task)
            exe = f"/usr/bin/{program.comm}"
            cgroup = f"/{program.unit}" if program.unit else None
            self.made.add(
                "tasks", task=task, pid=program.pid, tid=program.pid, comm=program.comm, ppid=1,
                start_ticks=500 + program.pid, policy=0, rt_priority=0, cmdline=f"{exe} -v", exe=exe, cgroup=cgroup,
                unit=program.unit, container=program.container, pod=program.pod,
            )  # fmt: skip
        return task

    def take_new(self, wall_us: int) -> list[bytes]:
        return [encode_rows(schema.BY_NAME[table], rows, wall_us) for table, rows in self.made.take().items()]


@dataclass(slots=True)
class _Node:
    """The synthetic machine, second by second."""

    rng: random.Random
    cpus: int
    hz: int
    interval_us: int
    busy: float
    start_us: int
    incident: Incident | None
    dying: int
    leak_per_hour: float
    probe_leaf_ns: int | None
    samples: int = 0

    def blocks(self, segment: _Segment, tick: int, wall_us: int, *, first: bool) -> list[bytes]:
        """The blocks of the tick that ends at wall_us."""
        counts, samples = self._samples(segment, wall_us)
        tables: dict[str, list[tuple[Any, ...]]] = {
            "cores": [self._core(wall_us, cpu, counts[cpu]) for cpu in range(self.cpus)],
            "counters": list(self._counters(segment, tick, wall_us, first)),
            "interrupts": [(wall_us, segment.made.series("interrupts", "eth0-0", "41"), 0, 900 + tick % 50)],
            "census": [self._census(wall_us)],
            "events": self._events(tick, wall_us),
            "cost": [(wall_us, 2500, 41 << 20, 0, 150, 0, 700 + tick % 9, 2100)],
        }
        if first or tick % 10 == 0:
            tables["leaks"] = [self._leak(wall_us)]
            tables["cgroup_stats"] = [(wall_us, "/kubepods.slice", 100, 3, 4100, 0, 0, 0, 950, None, 1, 1)]
        if first:
            served_by = f"0,{self.incident.cpu}" if self.incident else "0"
            tables["queues"] = [(wall_us, "eth0", "Tx-Rx-0", 41, served_by)]
        encoded = [encode_rows(schema.BY_NAME[name], rows, wall_us) for name, rows in tables.items() if rows]
        return [*segment.take_new(wall_us), samples, *encoded]

    def _in_incident(self, cpu: int, time_us: int) -> bool:
        bad = self.incident
        return bad is not None and cpu == bad.cpu and bad.from_us <= time_us < bad.to_us

    def _samples(self, segment: _Segment, wall_us: int) -> tuple[list[int], bytes]:
        """Ring after ring, as the recorder drains them: sorted by time within a core only."""
        times, cpus, tasks, stacks = array("q"), array("q"), array("q"), array("q")
        counts = [0] * self.cpus
        expected = self.hz * self.interval_us // SECOND
        for cpu in range(self.cpus):
            for i in range(expected):
                at = wall_us - self.interval_us + (i * SECOND // self.hz) + cpu * 137 + self.rng.randrange(40)
                bad = self._in_incident(cpu, at)
                if not bad and self.rng.random() > self.busy:
                    continue
                task, stack = self._running(segment, bad)
                times.append(at)
                cpus.append(cpu)
                tasks.append(task)
                stacks.append(stack)
                counts[cpu] += 1
        self.samples += len(times)
        return counts, encode_columns(schema.SAMPLES, len(times), [times, cpus, tasks, stacks, None, None], wall_us)

    def _running(self, segment: _Segment, bad: bool) -> tuple[int, int]:
        if bad:
            skid = ("_raw_spin_unlock_irqrestore",) if self.rng.random() < 0.1 else ()
            return segment.task(KUBELET), segment.stack(("main", "kubelet::housekeeping"), (*WALK, *skid))
        program = self.rng.choices(PROGRAMS, [program.share for program in PROGRAMS])[0]
        user: list[str] = []
        if program.user_functions:
            picks = [int(self.rng.paretovariate(1.1)) for _ in range(self.rng.randint(2, 6))]
            user = ["main", *(f"{program.comm}::f{pick % program.user_functions}" for pick in picks)]
        kernel = self.rng.choice(_KERNEL_PATHS[program.comm]) if not user or self.rng.random() < 0.3 else ()
        return segment.task(program), segment.stack(user, kernel)

    def _core(self, wall_us: int, cpu: int, count: int) -> tuple[Any, ...]:
        total = self.interval_us // 1000
        expected = self.hz * self.interval_us // SECOND
        if self._in_incident(cpu, wall_us - 1):
            user, system, softirq = 0, total, 0
        else:
            used = total * count / expected if expected else 0.0
            user, system, softirq = int(used * 0.7), int(used * 0.2), int(used * 0.1)
        idle = total - user - system - softirq
        modes = (user, 0, system, idle, 0, 0, softirq, 0, 0, 0)
        softirqs = (0, 250, 0, 900 if cpu == 0 else 3, 4, 0, 1, 120, 0, 80)
        samples = (count, expected - count, expected, 10_101 + cpu)
        return (wall_us, self.interval_us, cpu, *modes, *samples, *softirqs, 950, 0, 0, 120, None, None)

    def _counters(self, segment: _Segment, tick: int, wall_us: int, first: bool) -> Iterator[tuple[int, ...]]:
        packets = 9000 + self.rng.randrange(500)
        yield wall_us, segment.made.series("vmstat", "pgfault", ""), 4000 + tick % 311
        yield wall_us, segment.made.series("netdev", "rx_packets", "eth0"), packets
        yield wall_us, segment.made.series("meminfo", "MemAvailable", "", "gauge"), (61 << 30) - tick * 4096
        if self.probe_leaf_ns is not None and (first or tick % 60 == 0):
            for name in ("numa_stat_leaf_ns", "stat_leaf_ns"):
                yield wall_us, segment.made.series("probe", name, "", "gauge"), self.probe_leaf_ns

    def _dying_at(self, wall_us: int) -> tuple[int, int]:
        grown = int(self.leak_per_hour * (wall_us - self.start_us) / (3600 * SECOND))
        return self.dying + grown, grown

    def _census(self, wall_us: int) -> tuple[Any, ...]:
        dying, grown = self._dying_at(wall_us)
        return (wall_us, "v1", dying + 240, 240, dying, grown, grown, 0, 0)

    def _leak(self, wall_us: int) -> tuple[Any, ...]:
        dying, grown = self._dying_at(wall_us)
        creator = (LEAKER.comm, LEAKER.pid, LEAKER.unit, LEAKER.container)
        return (wall_us, LEAKING_PATH, dying, grown, grown, 0, 1, *creator, None, None, None)

    def _events(self, tick: int, wall_us: int) -> list[tuple[Any, ...]]:
        events: list[tuple[Any, ...]] = []
        if tick % 10 == 3:
            fields = json.dumps({"unit": "ecs.service", "restarts": tick // 10})
            text = "ecs.service was restarted"
            events.append((wall_us - 400_000, "unit_restart", "systemd", "warning", text, fields))
        if tick == 5:
            events.append((wall_us - 100_000, "mark", "mark", "info", "epoch 12 starts", None))
        if self.incident and wall_us - self.interval_us < self.incident.to_us <= wall_us:
            fields = json.dumps({"nic": "eth0", "queue": 5})
            text = "ena 0000:20:03.0 eth0: TX q 5 is paused for too long (threshold 5000000)"
            events.append((self.incident.to_us - 1, "nic_reset", "kmsg", "critical", text, fields))
        return events


def write_recording(
    directory: Path | str,
    *,
    node: str = "lab",
    cpus: int = 2,
    seconds: int = 60,
    start_us: int = START_US,
    segment_s: int = 20,
    interval_us: int = SECOND,
    hz: int = 99,
    busy: float = 0.3,
    incident: bool = True,
    closed: bool = True,
    boot: str = BOOT,
    recorder_started_us: int | None = None,
    first_seq: int = 0,
    kernel: str = "5.4.0-1024-aws",
    dying: int = 68_440,
    leak_per_hour: float = 360.0,
    probe_leaf_ns: int | None = 70_000,
    rollup_days: int = 0,
    seed: int = 7,
) -> Written:
    """A recording in `directory`; called again with another start_us it adds another run to the same node.

    `closed=False` leaves the last segment as a recorder that was killed, or still writes, leaves it.
    """
    node_dir = Path(directory) / f"node={node}"
    (node_dir / "log").mkdir(parents=True, exist_ok=True)
    ticks = seconds * SECOND // interval_us
    end_us = start_us + ticks * interval_us
    middle = start_us + seconds // 2 * SECOND
    bad = Incident(cpus - 1, middle, min(middle + 6 * SECOND, end_us)) if incident else None
    machine = _Node(
        random.Random(seed), cpus, hz, interval_us, busy, start_us, bad, dying, leak_per_hour, probe_leaf_ns
    )
    header: dict[str, Any] = {
        "format": schema.FORMAT, "node": node, "boot": boot, "hz": hz, "event": "cpu-clock",
        "interval_us": interval_us, "recorder_started_us": recorder_started_us or start_us,
    }  # fmt: skip
    describe(node_dir, header, kernel, cpus)
    per_segment = segment_s * SECOND // interval_us
    segments = []
    for number, first in enumerate(range(0, ticks, per_segment)):
        last = min(first + per_segment, ticks)
        started_us = start_us + first * interval_us
        head = {**header, "started_us": started_us, "seq": first_seq + number}
        path = node_dir / "log" / f"{started_us:016d}.seg"
        segment = _Segment(SegmentEncoder(head), path)
        _write_segment(segment, machine, range(first, last), closes=closed or last < ticks)
        segments.append(path)
    if rollup_days:
        write_rollups(node_dir, start_us, days=rollup_days, boot=boot, cpus=cpus)
    return Written(Path(directory), node_dir, start_us, end_us, tuple(segments), machine.samples, bad)


def _write_segment(segment: _Segment, machine: _Node, ticks: range, *, closes: bool) -> None:
    with segment.path.open("wb") as file:
        file.write(segment.encoder.preamble)
        for tick in ticks:
            wall_us = machine.start_us + (tick + 1) * machine.interval_us
            blocks = machine.blocks(segment, tick, wall_us, first=tick == ticks.start)
            last = tick == ticks[-1]
            monotonic_ns = (tick + 1) * machine.interval_us * 1000
            file.write(segment.encoder.frame(wall_us, monotonic_ns, blocks, closes=last and closes))


def write_rollups(node_dir: Path, until_us: int, *, days: int, boot: str = BOOT, cpus: int = 2) -> None:
    """Rollups of the `days` before until_us: kubelet at 1%, a leak, one saturated minute a day."""
    (node_dir / "rollup").mkdir(exist_ok=True)
    hour_us = 3600 * SECOND
    first_us = (until_us // hour_us - days * 24) * hour_us
    for day in range(days):
        start = first_us + day * 24 * hour_us
        encoder = SegmentEncoder({"format": schema.FORMAT, "boot": boot, "started_us": start})
        with (node_dir / "rollup" / f"{start:016d}.seg").open("wb") as file:
            file.write(encoder.preamble)
            for minute in range(24 * 60):
                at = start + minute * 60 * SECOND
                wall_us = at + 60 * SECOND
                blocks = [encode_rows(schema.MINUTES, [_minute(at, boot, cpus, day, minute)], wall_us)]
                if minute % 60 == 59:
                    units = _unit_hour(at // hour_us * hour_us, boot)
                    blocks.append(encode_rows(schema.UNIT_HOURS, units, wall_us))
                file.write(encoder.frame(wall_us, 0, blocks, closes=minute == 24 * 60 - 1))


def _minute(at: int, boot: str, cpus: int, day: int, minute: int) -> tuple[Any, ...]:
    saturated_ms = 4000 if minute == 700 else 0
    dying = 100 * day + minute // 15
    cores = (saturated_ms, saturated_ms, 1 if saturated_ms else None, 9000 * cpus, 2000 * cpus, cpus)
    return (at, boot, 60, *cores, 240 + dying, dying, 6, 0, 0, 0)


def _unit_hour(at: int, boot: str) -> list[tuple[Any, ...]]:
    units = (("kubelet.service", 36_000), ("docker.service", 72_000), ("(other)", 9_000))
    return [(at, boot, unit, cpu_ms, cpu_ms // 2, cpu_ms // 40) for unit, cpu_ms in units]


# --- what is in a recording, whatever its ids ---------------------------------------------------------------


def contents(recording: Recording, start_us: int | None = None, end_us: int | None = None) -> dict[str, list[Any]]:
    """Every table with its ids replaced by what they stand for: equal for equal recordings in any form."""
    stacks = _stack_names(recording, start_us, end_us)
    tasks = _by_id(recording, "tasks", "task", start_us, end_us)
    series = _by_id(recording, "series", "series", start_us, end_us)
    resolve = {"stack": stacks.get, "task": tasks.get, "series": series.get}
    found = {}
    for table in schema.TABLES:
        if table.time_column is None:
            continue
        rows = recording.table(table.name, start_us, end_us).to_pydict()
        names = [resolve.get(name) for name in table.names]
        lists = [
            rows[name] if of is None else [of(i) for i in rows[name]]
            for name, of in zip(table.names, names, strict=True)
        ]
        found[table.name] = list(zip(*lists, strict=True))
    return found


def _by_id(recording: Recording, table: str, kind: str, start_us: int | None, end_us: int | None) -> dict[int, Any]:
    rows = recording.table(table, start_us, end_us).to_pylist()
    return {row[kind]: tuple(value for name, value in row.items() if name != kind) for row in rows}


def _stack_names(recording: Recording, start_us: int | None, end_us: int | None) -> dict[int, tuple[Any, ...]]:
    frames = _by_id(recording, "frames", "frame", start_us, end_us)
    rows = recording.table("stacks", start_us, end_us).to_pylist()
    return {row["stack"]: tuple(frames.get(frame) for frame in row["frames"]) for row in rows}
