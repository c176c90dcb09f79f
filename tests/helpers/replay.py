"""A node that happened elsewhere, replayed into the real recorder: files as its kernel wrote them, second by second,
records as its rings held them, console lines, and what systemd said of its units.

Nothing here knows a table. Time is the only thing that is made up: a second of the case takes as long as the recorder
needs for it.
"""

from __future__ import annotations

import shutil
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.helpers import records
from zombiescope.kernel.syslog import SyslogReader
from zombiescope.node.systemd.units import UnitBook
from zombiescope.recorder import clock, counters, kernel_log, parts, recorder
from zombiescope.recorder.config import RecorderConfig
from zombiescope.recorder.recorder import Recorder

SECOND_NS = 1_000_000_000
USER_HZ = 100
MEMORY_HIERARCHY = 6
TEXT_START = 0xFFFFFFFF81000000
FIXTURE = Path(__file__).parents[1] / "fixtures" / "ubuntu-5.4-v1"

_COMMON = """\
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

"""
# As kernel 5.4 has it: the id is an int and stands before the level.
_CGROUP = """\
\tfield:int root;\toffset:8;\tsize:4;\tsigned:1;
\tfield:int id;\toffset:12;\tsize:4;\tsigned:1;
\tfield:int level;\toffset:16;\tsize:4;\tsigned:1;
\tfield:__data_loc char[] path;\toffset:20;\tsize:4;\tsigned:1;
"""
_CONSOLE = "\tfield:__data_loc char[] msg;\toffset:8;\tsize:4;\tsigned:1;\n"

MKDIR, RMDIR, RELEASE, RENAME, CONSOLE = "cgroup_mkdir", "cgroup_rmdir", "cgroup_release", "cgroup_rename", "console"
TRACEPOINTS = {
    **dict.fromkeys((MKDIR, RMDIR, RELEASE, RENAME), ("cgroup", _CGROUP)),
    CONSOLE: ("printk", _CONSOLE),
}
"""Name -> (group, fields): those that this kernel has."""


@dataclass(frozen=True)
class Task:
    comm: str
    pid: int
    cgroup: str = "/"


@dataclass(frozen=True)
class Runs:
    """What a core does at a moment: who, and the kernel's functions, outermost first; none is user code."""

    task: Task
    path: tuple[str, ...] = ()


IDLE = Runs(
    Task("swapper", 0), ("secondary_startup_64", "start_secondary", "cpu_startup_entry", "do_idle", "native_safe_halt")
)


@dataclass
class Replay:
    """`on(cpu, at_s)` says what a core does; `spent(cpu, second)` the hundredths that /proc/stat gains by it."""

    directory: Path
    cpus: int
    hz: int
    on: Callable[[int, float], Runs]
    spent: Callable[[int, int], Mapping[str, int]]
    functions: Sequence[str]
    tasks: Sequence[Task]
    memory_cgroups: int
    directories: Sequence[str]
    start_unix: int = 1_743_476_500
    now_ns: int = 1_214_880 * SECOND_NS
    units: UnitBook = field(default_factory=UnitBook)

    def __post_init__(self) -> None:
        self.root = self.directory / "root"
        self._began_ns = self.now_ns
        self._log = b""
        self._ticks = {cpu: dict.fromkeys(("user", "system", "idle", "softirq"), 1_000) for cpu in range(self.cpus)}
        self._address = {name: TEXT_START + 0x1000 * number for number, name in enumerate(self.functions)}
        self._event_ids = {name: 100 + number for number, name in enumerate(TRACEPOINTS, 1)}
        self._tree()

    # --- time --------------------------------------------------------------------------------------------------------

    def keep_time(self, patch: pytest.MonkeyPatch) -> None:
        """The recorder's clocks are the case's from now on."""
        offset_ns = self.start_unix * SECOND_NS - self._began_ns

        def gettime_ns(which: int) -> int:
            return self.now_ns + (offset_ns if which == time.CLOCK_REALTIME else 0)

        for module in (parts, recorder):
            patch.setattr(module, "monotonic_ns", lambda: self.now_ns)
        names = ("CLOCK_MONOTONIC", "CLOCK_REALTIME", "CLOCK_BOOTTIME")
        clocks = {name: getattr(time, name) for name in names}
        patch.setattr(clock, "time", SimpleNamespace(clock_gettime_ns=gettime_ns, **clocks))
        patch.setattr(
            counters, "time", SimpleNamespace(monotonic=lambda: self.now_ns / 1e9, perf_counter_ns=lambda: self.now_ns)
        )
        patch.setattr(
            kernel_log,
            "time",
            SimpleNamespace(monotonic_ns=lambda: self.now_ns, monotonic=lambda: self.now_ns / 1e9),
        )

    # --- the tree ----------------------------------------------------------------------------------------------------

    def _tree(self) -> None:
        shutil.copytree(FIXTURE, self.root, symlinks=True)
        shutil.rmtree(self.root / "sys/class/net", ignore_errors=True)  # its card is no card of this machine
        self._put("sys/devices/system/cpu/online", f"0-{self.cpus - 1}\n")
        self._put("sys/devices/system/cpu/possible", f"0-{self.cpus - 1}\n")
        kallsyms = "".join(f"{address:016x} T {name}\n" for name, address in self._address.items())
        self._put("proc/kallsyms", f"{TEXT_START:016x} T _text\n{kallsyms}")
        for name, (group, fields) in TRACEPOINTS.items():
            text = f"name: {name}\nID: {self._event_ids[name]}\nformat:\n{_COMMON}{fields}"
            self._put(f"sys/kernel/tracing/events/{group}/{name}/format", text)
        for path in self.directories:
            (self.root / "sys/fs/cgroup/memory" / path.lstrip("/")).mkdir(parents=True, exist_ok=True)
        for task in self.tasks:
            rest = " ".join(["0"] * 16)
            stat = f"{task.pid} ({task.comm}) S 1 {task.pid} {task.pid} 0 -1 4194560 {rest} 91203 0 0" + " 0" * 29
            self._put(f"proc/{task.pid}/stat", stat + "\n")
            self._put(f"proc/{task.pid}/cgroup", f"{MEMORY_HIERARCHY}:memory:{task.cgroup}\n")
        self._write_seconds()

    def _put(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def _write_seconds(self) -> None:
        """Files that change all the time."""
        rows = "".join(
            f"cpu{cpu} {t['user']} 0 {t['system']} {t['idle']} 0 0 {t['softirq']} 0 0 0\n"
            for cpu, t in self._ticks.items()
        )
        ran = (self.now_ns - self._began_ns) // SECOND_NS
        totals = (
            f"intr 1\nctxt {90_000 * ran}\nbtime 1742261662\nprocesses {7 * ran}\nprocs_running 9\nprocs_blocked 0\n"
        )
        self._put("proc/stat", f"cpu  1 0 1 1 0 0 0 0 0 0\n{rows}{totals}")
        live = len(self.directories) + 1
        counts = "".join(
            f"{name}\t{number}\t{self.memory_cgroups if name == 'memory' else live}\t1\n"
            for name, number in (("cpu", 3), ("blkio", 8), ("memory", MEMORY_HIERARCHY), ("pids", 7))
        )
        self._put("proc/cgroups", f"#subsys_name\thierarchy\tnum_cgroups\tenabled\n{counts}")

    # --- recording ---------------------------------------------------------------------------------------------------

    def record(self, seconds: int, happens: Callable[[Replay, Recorder, int], None], **config: Any) -> Path:
        """So many seconds through the recorder; `happens` is called in each, before its counters are read."""
        place = self.directory / "recording"
        made = Recorder(RecorderConfig(dir=str(place), node="replayed", hz=self.hz, **config), root=str(self.root))
        made.rings.sampler.register(records.CLOCK_ID, 0)
        for name, kind in made.rings.kinds.items():
            made.rings.sampler.register(self._event_ids[name], kind)
        first = b"".join(records.comm(t.pid, t.pid, t.comm.encode(), self.now_ns) for t in self.tasks if t.pid)
        made.rings.sampler.feed(0, first)
        made.tick(0)
        made.write()
        try:
            for second in range(seconds):
                self._second(made, second, happens)
        finally:
            made.close()
        return place

    def _second(self, made: Recorder, second: int, happens: Callable[[Replay, Recorder, int], None]) -> None:
        start_ns = self.now_ns
        for cpu in range(self.cpus):
            made.rings.sampler.feed(cpu, self._samples(cpu, second, start_ns))
            for mode, ticks in self.spent(cpu, second).items():
                self._ticks[cpu][mode] += ticks
        self.now_ns = start_ns + SECOND_NS // 2
        happens(self, made, second)
        self.now_ns = start_ns + SECOND_NS
        made.intake.unit_events.extend(self.units.due(self.now_ns))
        self._write_seconds()
        made.tick(0)
        while not made.lookup.settled():
            time.sleep(0.001)
        made.write()

    def _samples(self, cpu: int, second: int, start_ns: int) -> bytes:
        taken = []
        for tick in range(self.hz):
            runs = self.on(cpu, second + tick / self.hz)
            at_ns = start_ns + tick * SECOND_NS // self.hz + cpu * 3_000
            chain = [records.KERNEL, *(self._address[name] + 8 for name in reversed(runs.path))] if runs.path else []
            taken.append(records.sample(runs.task.pid, runs.task.pid, at_ns, chain or [records.USER], cpu=cpu))
        return b"".join(taken)

    # --- what happens ------------------------------------------------------------------------------------------------

    def says(self, made: Recorder, text: str) -> None:
        """The kernel writes a line, which syslog(2) hands out: what stands at the root of a replay is no device."""
        stamp = "" if text.startswith("[") else f"[{self.now_ns // SECOND_NS}.{self.now_ns % SECOND_NS // 1000:06}] "
        if not self._log:
            made.kernel_log._fallback, made.kernel_log.source = SyslogReader(lambda: self._log), "syslog"
        self._log += f"<4>{stamp}{text}\n".encode()

    def makes_cgroup(self, made: Recorder, by: Task, number: int, path: str) -> None:
        self._cgroup(made, MKDIR, by, number, path)

    def removes_cgroup(self, made: Recorder, by: Task, number: int, path: str) -> None:
        """Removed, and never released: its pages are charged to it still."""
        self._cgroup(made, RMDIR, by, number, path)

    def releases_cgroup(self, made: Recorder, by: Task, number: int, path: str) -> None:
        self._cgroup(made, RELEASE, by, number, path)

    def _cgroup(self, made: Recorder, name: str, by: Task, number: int, path: str) -> None:
        level = path.count("/")
        head = struct.pack("<HBBiiiiI", 0, 0, 0, by.pid, MEMORY_HIERARCHY, number, level, self._located(24, path))
        self._trace(made, name, by.pid, head + path.encode() + b"\0")

    @staticmethod
    def _located(offset: int, text: str) -> int:
        return offset | (len(text.encode()) + 1) << 16

    def _trace(self, made: Recorder, name: str, pid: int, raw: bytes) -> None:
        made.rings.sampler.feed(0, records.raw_sample(self._event_ids[name], pid, self.now_ns, raw))

    def restarts(self, made: Recorder, unit: str, count: int) -> None:
        """systemd tells of one round of a crash loop."""
        made.intake.unit_events.extend(
            self.units.changed(unit, {"NRestarts": count, "ActiveState": "active"}, self.now_ns)
        )
