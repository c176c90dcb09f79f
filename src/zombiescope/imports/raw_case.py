"""Raw files of an incident that happened elsewhere, written from its published figures.

Inputs only, never our own tables: text of `perf script --header`, output of `mpstat -P ALL -o JSON 1`, dmesg, journal,
`docker events`, a copy of /proc/cgroups and a list of the cgroup directories. They go through the importer as
anybody's files do.
"""

from __future__ import annotations

import json
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from zombiescope.imports.session import Options, Session, Silence

KERNEL = "[kernel.kallsyms]"


@dataclass(frozen=True, slots=True)
class Work:
    """Something that cores do: who, how often among other work, and the stack as (function, file), outermost first."""

    comm: str
    pid: int
    weight: int
    frames: tuple[tuple[str, str], ...]


def kernel(*names: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, KERNEL) for name in names)


def user(file: str, *names: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, file) for name in names)


_IDLE = ("secondary_startup_64", "start_secondary", "cpu_startup_entry", "do_idle", "call_cpuidle", "cpuidle_enter",
         "cpuidle_enter_state", "native_safe_halt")  # fmt: skip
IDLE = Work("swapper", 0, 0, kernel(*_IDLE))


@dataclass(frozen=True, slots=True)
class RawCase:
    """`held(cpu, at_s)` says what holds a core at a moment, or None: then it does something ordinary, or idles."""

    host: str
    kernel: str
    cpus: int
    hz: int
    seconds: int
    end_unix: int
    uptime_end_s: float
    busy: float
    ordinary: tuple[Work, ...]
    held: Callable[[int, float, random.Random], Work | None]
    load: Callable[[int, int, random.Random], Mapping[str, float]]
    """Percent of each mode on a core in a second: usr, sys, soft, steal; the rest is idle."""
    dmesg: tuple[tuple[float, str], ...] = ()
    """(seconds after the start, text)"""
    journal: tuple[tuple[int, str], ...] = ()
    """(seconds before the end, what systemd said)"""
    docker: tuple[tuple[float, str, str, str, str], ...] = ()
    """(seconds before the end, action, id, name, image)"""
    tracked: int | None = None
    directories: tuple[str, ...] = ()
    seed: int = 39
    works: tuple[Work, ...] = field(default=())
    """What `held` may answer."""

    def write(self, directory: Path) -> list[Path]:
        """The files; their times are those of the case."""
        directory.mkdir(parents=True, exist_ok=True)
        files = {f"perf-{self.host}-{self.seconds}s.stacks": self._perf_script(), "mpstat.json": self._mpstat()}
        if self.dmesg:
            files["dmesg.txt"] = self._dmesg()
        if self.journal:
            files["journal.txt"] = self._journal()
        if self.docker:
            files["docker-events.json"] = self._docker()
        if self.tracked is not None:
            files["proc-cgroups.txt"] = self._proc_cgroups(self.tracked)
        if self.directories:
            files["cgroup-directories.txt"] = (f"{path}\n" for path in self.directories)
        written = []
        for name, pieces in files.items():
            path = directory / name
            with path.open("w") as file:
                file.writelines(pieces)
            os.utime(path, (self.end_unix, self.end_unix))
            written.append(path)
        return written

    # --- the profile -------------------------------------------------------------------------------------------------

    def _perf_script(self) -> Iterator[str]:
        yield (
            "# ========\n"
            f"# captured on    : {time.strftime('%a %b %e %H:%M:%S %Y', time.localtime(self.end_unix))}\n"
            f"# hostname : {self.host}\n# os release : {self.kernel}\n# perf version : 5.4.253\n"
            f"# arch : x86_64\n# nrcpus online : {self.cpus}\n# nrcpus avail : {self.cpus}\n"
            f"# cmdline : /usr/bin/perf record -F {self.hz} -g -a -- sleep {self.seconds}\n# ========\n#\n"
        )
        dice = random.Random(self.seed)  # noqa: S311  # the same case every time
        stacks = {id(work): _stack(work) for work in (*self.ordinary, *self.works, IDLE)}
        weights = [work.weight for work in self.ordinary]
        start = self.uptime_end_s - self.seconds
        for tick in range(self.seconds * self.hz):
            at_s = tick / self.hz
            ordinary = dice.choices(self.ordinary, weights, k=self.cpus)
            for cpu in range(self.cpus):
                work = self.held(cpu, at_s, dice) or (ordinary[cpu] if dice.random() < self.busy else IDLE)
                # A thread of its own on every core; the idle tasks have number 0 on all of them.
                who = f"{work.comm:>16} {work.pid:5d}/{work.pid + cpu + 1 if work.pid else 0:<5d}"
                yield f"{who} [{cpu:03d}] {start + at_s + cpu * 3e-6:.6f}:   10309278 cycles: \n{stacks[id(work)]}"

    # --- what stood beside it ----------------------------------------------------------------------------------------

    def _mpstat(self) -> Iterator[str]:
        dice = random.Random(self.seed + 1)  # noqa: S311
        statistics = []
        for second in range(1, self.seconds + 1):
            loads = [_mode_percents(self.load(cpu, second, dice)) for cpu in range(self.cpus)]
            mean = {mode: round(sum(load[mode] for load in loads) / self.cpus, 2) for mode in loads[0]}
            cores = [{"cpu": "all", **mean}, *({"cpu": str(cpu), **load} for cpu, load in enumerate(loads))]
            stamp = time.strftime("%H:%M:%S", time.localtime(self.end_unix - self.seconds + second))
            statistics.append({"timestamp": stamp, "cpu-load": cores})
        day = time.strftime("%m/%d/%Y", time.localtime(self.end_unix))
        host = {"nodename": self.host, "sysname": "Linux", "release": self.kernel, "machine": "x86_64",
                "number-of-cpus": self.cpus, "date": day, "statistics": statistics}  # fmt: skip
        yield json.dumps({"sysstat": {"hosts": [host]}})

    def _dmesg(self) -> Iterator[str]:
        start = self.uptime_end_s - self.seconds
        yield from (f"[{start + at_s:12.6f}] {text}\n" for at_s, text in self.dmesg)

    def _journal(self) -> Iterator[str]:
        for before_s, text in self.journal:
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S+0000", time.gmtime(self.end_unix - before_s))
            yield f"{stamp} {self.host} systemd[1]: {text}\n"

    def _docker(self) -> Iterator[str]:
        for before_s, action, identity, name, image in self.docker:
            at_ns = round((self.end_unix - before_s) * 1e9)
            attributes = {"image": image, "name": name} | ({"exitCode": "1"} if action == "die" else {})
            event = {"status": action, "id": identity, "from": image, "Type": "container", "Action": action,
                     "Actor": {"ID": identity, "Attributes": attributes}, "scope": "local",
                     "time": at_ns // 10**9, "timeNano": at_ns}  # fmt: skip
            yield json.dumps(event) + "\n"

    def _proc_cgroups(self, tracked: int) -> Iterator[str]:
        live = len(self.directories) or 240
        yield "#subsys_name\thierarchy\tnum_cgroups\tenabled\n"
        for name, hierarchy, count in (
            ("cpu", 4, live),
            ("blkio", 8, live),
            ("memory", 10, tracked),
            ("pids", 9, live),
        ):
            yield f"{name}\t{hierarchy}\t{count}\t1\n"


def _stack(work: Work) -> str:
    """Frames as perf script prints them, the innermost first."""
    lines = []
    for depth, (name, file) in enumerate(reversed(work.frames)):
        base = 0xFFFFFFFF81000000 if file == KERNEL else 0x55D000000000
        lines.append(f"\t{base + (_address(name) & 0xFFFFF0) + depth:16x} {name}+0x{0x10 + depth:x} ({file})\n")
    return "".join(lines) + "\n"


def _address(name: str) -> int:
    """The same in every process, as addresses are."""
    value = 0
    for character in name:
        value = (value * 131 + ord(character)) & 0xFFFFFFFF
    return value


def _mode_percents(load: Mapping[str, float]) -> dict[str, float]:
    modes = dict.fromkeys(("usr", "nice", "sys", "iowait", "irq", "soft", "steal", "guest", "gnice"), 0.0) | dict(load)
    return modes | {"idle": round(max(0.0, 100 - sum(modes.values())), 2)}


# --- replay -----------------------------------------------------------------------------------------------------------
# A documented case as a recording: its files written anew and imported, as anybody's files are.


@dataclass(frozen=True, slots=True)
class Replay:
    files: int
    bytes: int
    samples: int
    cpus: int


def rebuild(case: RawCase, place: Path, raw: Path | None = None) -> Replay:
    """Writes the recording into `place`, and leaves the raw files in `raw` if it is named. Raises OSError."""
    with tempfile.TemporaryDirectory(prefix="zombiescope-demo-") as temporary:
        files = case.write(raw or Path(temporary))
        size = sum(file.stat().st_size for file in files)
        result = Session(place, Options(), Silence()).run([str(file) for file in files])
    return Replay(len(files), size, result.outcome.samples, case.cpus)


def rebuild_founding_case(place: Path, raw: Path | None = None) -> Replay:
    """Raises OSError."""
    from zombiescope.imports.founding_case import CASE

    return rebuild(CASE, place, raw)
