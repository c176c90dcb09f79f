"""Small synthetic nodes, made to measure: exactly these tasks, counters and events, through the real encoder.

A scene lasts twenty seconds; what hurts happens from the fifth to the eleventh. What is not said was not recorded: a
scene without `counter("vmstat", ...)` is a recording without vmstat.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.helpers.recordings import SECOND, START_US, write_segment
from zombiescope.diagnosis.diagnose import Diagnosis, diagnose
from zombiescope.recording import schema
from zombiescope.recording.reader import open_recording

HZ = 99
SECONDS = 20
FROM_S, TO_S = 5, 11
SYSCALL = ("entry_SYSCALL_64_after_hwframe", "do_syscall_64")
MODES = schema.CPU_MODES


@dataclass(frozen=True)
class Runs:
    """A task on a core: its kernel frames as words, outermost first; none is user code."""

    comm: str
    frames: str = ""
    cpu: int = 1
    from_s: float = FROM_S
    to_s: float = TO_S
    share: float = 1.0
    pid: int = 1201
    ppid: int = 1
    cgroup: str | None = None
    unit: str | None = None
    policy: int = 0
    rt_priority: int = 0
    pod: str | None = None
    tid: int | None = None
    """Of a thread; the process itself unless told."""


@dataclass
class Scene:
    kernel: str = "5.4.0-1024-aws"
    cpus: int = 4
    cores: bool = True
    schedstat: bool = True
    """Whether this kernel counts how long tasks wait for a core."""
    runs: list[Runs] = field(default_factory=list)
    modes: dict[tuple[int, str], float] = field(default_factory=dict)
    """(core, mode or column of `cores`) -> ratio, or count a second, while it hurts; samples tell the rest."""
    tables: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    series: dict[tuple[str, str, str | None, str], int] = field(default_factory=dict)
    node: dict[str, Any] = field(default_factory=dict)

    # --- what happens ------------------------------------------------------------------------------------------------

    def hog(self, frames: str, comm: str = "agent", **more: Any) -> Scene:
        self.runs.append(Runs(comm, frames, **more))
        return self

    def counter(self, source: str, name: str, per_s: float, key: str | None = None, calm_per_s: float = 0) -> Scene:
        number = self._series(source, name, key, "counter")
        for second in range(SECONDS):
            value = int(per_s if FROM_S <= second < TO_S else calm_per_s)
            if value:
                self._add("counters", (START_US + (second + 1) * SECOND, number, value))
        return self

    def vmstat(self, **per_s: float) -> Scene:
        """Some page faults at every tick, as on any node, and these."""
        for name, value in {"pgfault": 2_000.0, **per_s}.items():
            self.counter("vmstat", name, value, calm_per_s=2_000 if name == "pgfault" else 0)
        return self

    def gauge(self, source: str, name: str, value: int, key: str | None = None) -> Scene:
        number = self._series(source, name, key, "gauge")
        for second in (1, 8, 15):
            self._add("counters", (START_US + second * SECOND, number, value))
        return self

    def interrupts(self, label: str, per_s: int) -> Scene:
        for number, rate in ((self._series("interrupts", "LOC", None, "counter"), 250),
                             (self._series("interrupts", label, None, "counter"), per_s)):  # fmt: skip
            for second in range(SECONDS):
                if rate:
                    self._add("interrupts", (START_US + (second + 1) * SECOND, number, 0, rate))
        return self

    def event(self, kind: str, text: str, at_s: float = TO_S, severity: str = "critical", **fields: Any) -> Scene:
        self._add("events", (START_US + int(at_s * SECOND), kind, "kmsg", severity, text, json.dumps(fields)))
        return self

    def census(self, live: int, dying: int) -> Scene:
        for second in range(SECONDS):
            self.census_at(second, live, dying)
        return self

    def census_at(self, second: int, live: int, dying: int) -> Scene:
        self._add("census", (START_US + (second + 1) * SECOND, "v1", live + dying, live, dying, 0, 0, 0, 0))
        return self

    def churn(self, per_s: int) -> Scene:
        """As many cgroups made as removed, at every second of the recording."""
        for second in range(SECONDS):
            made = second * per_s
            self._add("census", (START_US + (second + 1) * SECOND, "v1", 250, 240, 10, made, made, made, 0))
        return self

    def leak(self, path: str, dying: int, created: int, removed: int, comm: str = "leaky", unit: str = "") -> Scene:
        row = (START_US + SECOND, path, dying, created, removed, 0, 1, comm, 77, unit or None, None)
        self._add("leaks", row)
        return self

    def cgroup_stats(self, cgroup: str, **values: int) -> Scene:
        names = schema.CGROUP_STATS.names[2:]
        self._add("cgroup_stats", (START_US + 12 * SECOND, cgroup, *(values.get(name) for name in names)))
        return self

    def mode(self, cpu: int, **values: float) -> Scene:
        self.modes.update({(cpu, name): value for name, value in values.items()})
        return self

    # --- written and looked at ---------------------------------------------------------------------------------------

    def write(self, directory: Path) -> Path:
        tables = {**self.tables, **self._samples()}
        if self.cores:
            tables["cores"] = self._cores()
        if self.series:
            tables["series"] = [(number, *known) for known, number in self.series.items()]
        write_segment(directory, tables, kernel=self.kernel)
        about = directory / "node=lab" / "node.json"
        about.write_text(json.dumps({**json.loads(about.read_text()), "missing": [], **self.node}))
        return directory

    def diagnose(self, directory: Path) -> Diagnosis:
        with open_recording(self.write(directory)) as recording:
            return diagnose(recording, recording.start_us, recording.end_us + 1)

    def _series(self, source: str, name: str, key: str | None, kind: str) -> int:
        return self.series.setdefault((source, name, key, kind), len(self.series))

    def _add(self, table: str, row: tuple[Any, ...]) -> None:
        self.tables.setdefault(table, []).append(row)

    def _taken(self) -> list[tuple[int, Runs]]:
        """(time, who) of every sample: a task with share 0.3 is hit by three of ten."""
        taken = []
        for runs in self.runs:
            credit = 0.0
            for tick in range(int(runs.from_s * HZ), int(runs.to_s * HZ)):
                credit += runs.share
                if credit >= 1:
                    credit -= 1
                    taken.append((START_US + tick * SECOND // HZ + 1 + runs.cpu, runs))
        return taken

    def _samples(self) -> dict[str, list[tuple[Any, ...]]]:
        frames: dict[tuple[str, str], int] = {}
        stacks: dict[tuple[int, ...], int] = {}
        tasks: dict[tuple[Any, ...], int] = {}
        rows = []
        for at_us, runs in self._taken():
            names = [("main", "user"), *((name, "kernel") for name in runs.frames.split())]
            ids = tuple(frames.setdefault(name, len(frames)) for name in names)
            who = (runs.pid, runs.tid or runs.pid, runs.comm, runs.ppid, 1, runs.policy, runs.rt_priority, None, None,
                   runs.cgroup, runs.unit, None, runs.pod)  # fmt: skip
            task, stack = tasks.setdefault(who, len(tasks)), stacks.setdefault(ids, len(stacks))
            rows.append((at_us, runs.cpu, task, stack))
        return {
            "frames": [(number, name, None, kind) for (name, kind), number in frames.items()],
            "stacks": [(number, ids) for ids, number in stacks.items()],
            "tasks": [(number, *who) for who, number in tasks.items()],
            "samples": sorted(rows),
        }

    def _cores(self) -> list[tuple[Any, ...]]:
        busy: dict[tuple[int, int, str], float] = {}
        for at_us, runs in self._taken():
            key = (runs.cpu, (at_us - START_US) // SECOND, "system" if runs.frames else "user")
            busy[key] = busy.get(key, 0) + 1000 / HZ
        return [self._core(cpu, second, busy) for second in range(SECONDS) for cpu in range(self.cpus)]

    def _core(self, cpu: int, second: int, busy: dict[tuple[int, int, str], float]) -> tuple[Any, ...]:
        row: dict[str, int | None] = dict.fromkeys(schema.CORES.names, 0)
        hurts = FROM_S <= second < TO_S
        for mode in ("user", "system"):
            row[f"{mode}_ms"] = round(busy.get((cpu, second, mode), 20 if mode == "user" else 5))
        for (which, name), value in self.modes.items():
            if which == cpu and hurts:
                column = f"{name}_ms" if name in MODES else name
                row[column] = int(value * 1000) if name in MODES else int(value)
                if name in ("softirq", "steal"):
                    row["system_ms"] = 0
        used = sum(int(row[f"{mode}_ms"] or 0) for mode in MODES)
        row.update(time=START_US + (second + 1) * SECOND, interval_us=SECOND, cpu=cpu, idle_ms=max(0, 1000 - used))
        row.update(samples=HZ, expected_samples=HZ)
        if not hurts or (cpu, "idle_samples") not in self.modes:
            row["idle_samples"] = HZ * int(row["idle_ms"] or 0) // 1000
        row["max_gap_us"] = row["max_gap_us"] or 10_101
        if not self.schedstat:
            row["run_us"] = row["wait_us"] = None
        return tuple(row[name] for name in schema.CORES.names)
