"""Small synthetic nodes, made to measure: exactly these tasks, counters and events.

A scene lasts twenty seconds; what hurts happens from the fifth to the eleventh. What is not said was not recorded: a
scene without `counter("vmstat", ...)` is a recording without vmstat.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.helpers.diagnosed import diagnosed
from tests.helpers.made import HZ, SECOND, START_US, Node, write_segment
from zombiescope.diagnosis.diagnose import Diagnosis
from zombiescope.kernel import vmstat
from zombiescope.store import schema

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
    container: str | None = None
    uid: int | None = None
    exe: str | None = None


@dataclass
class Scene:
    kernel: str = "5.4.0-1024-aws"
    cpus: int = 4
    hz: int = HZ
    """Samples a second of a core; fewer where there are many cores."""
    cores: bool = True
    schedstat: bool = True
    """Whether this kernel counts how long tasks wait for a core."""
    sampled: bool = True
    """Whether stacks were taken, of idle cores at least."""
    runs: list[Runs] = field(default_factory=list)
    modes: dict[tuple[int, str], float] = field(default_factory=dict)
    """(core, mode or column of `cores`) -> ratio, or count a second, while it hurts; samples tell the rest."""
    calm: dict[tuple[int, str], float] = field(default_factory=dict)
    """The same before and after it."""
    made: Node = field(default_factory=Node)
    node: dict[str, Any] = field(default_factory=dict)

    # --- what happens ------------------------------------------------------------------------------------------------

    def hog(self, frames: str, comm: str = "agent", **more: Any) -> Scene:
        self.runs.append(Runs(comm, frames, **more))
        return self

    def storm(self, frames: str, comm: str = "agent", **more: Any) -> Scene:
        """A task that faults there, and gives the memory back again and again: a fifth of the time, as measured."""
        release = " ".join(
            (*SYSCALL, "__x64_sys_munmap", "__vm_munmap", "do_vmi_munmap", "unmap_vmas", "zap_pte_range")
        )
        return self.hog(frames, comm, share=0.8, **more).hog(release, comm, share=0.2, **more)

    def counter(self, source: str, name: str, per_s: float, key: str | None = None, calm_per_s: float = 0) -> Scene:
        """0: the kernel has it, and it never moves."""
        number = self.made.series(source, name, key)
        for second in range(SECONDS):
            value = int(per_s if FROM_S <= second < TO_S else calm_per_s)
            if value:
                self.made.count(_end_of(second), number, value)
        return self

    def vmstat(self, **per_s: float) -> Scene:
        """Some page faults at every tick, as on any node, and these; the others are there and stand still."""
        for name in vmstat.FIELDS:
            self.made.series("vmstat", name)
        for name, value in {"pgfault": 2_000.0, **per_s}.items():
            self.counter("vmstat", name, value, calm_per_s=2_000 if name == "pgfault" else 0)
        return self

    def gauge(self, source: str, name: str, value: int, key: str | None = None) -> Scene:
        number = self.made.series(source, name, key, "gauge")
        for second in (1, 8, 15):
            self.made.count(_end_of(second - 1), number, value)
        return self

    def interrupts(self, label: str, per_s: int, calm_per_s: int | None = None) -> Scene:
        """At every second, unless there are fewer of them while it is calm."""
        calm = per_s if calm_per_s is None else calm_per_s
        for name, rate, otherwise in (("LOC", 250, 250), (label, per_s, calm)):
            number = self.made.series("interrupts", name)
            for second in range(SECONDS if rate else 0):
                self.made.interrupt(_end_of(second), number, 0, rate if FROM_S <= second < TO_S else otherwise)
        return self

    def event(self, kind: str, text: str, at_s: float = TO_S, severity: str = "critical", **fields: Any) -> Scene:
        self.made.happen(START_US + int(at_s * SECOND), kind, "kmsg", severity, text, **fields)
        return self

    def serves(self, nic: str, cpus: str) -> Scene:
        """The cores that serve a card's only queue, as in "0-3,8"."""
        self.made.add("queues", time=START_US + SECOND, nic=nic, queue=f"{nic}-Tx-Rx-0", irq=33, cpus=cpus)
        return self

    def census(self, live: int, dying: int) -> Scene:
        for second in range(SECONDS):
            self.census_at(second, live, dying)
        return self

    def census_at(self, second: int, live: int, dying: int) -> Scene:
        self.made.census(_end_of(second), live, dying)
        return self

    def churn(self, per_s: int) -> Scene:
        """As many cgroups made as removed, while it hurts."""
        for second in range(SECONDS):
            count = min(max(second + 1 - FROM_S, 0), TO_S - FROM_S) * per_s
            self.made.census(_end_of(second), 240, 10, created=count, removed=count, released=count)
        return self

    def leak(self, path: str, dying: int, created: int, removed: int, comm: str = "leaky", unit: str = "") -> Scene:
        creator = {"comm": comm, "pid": 77, "unit": unit or None}
        self.made.leak(START_US + SECOND, path, dying, created=created, removed=removed, **creator)
        return self

    def cgroup_stats(self, cgroup: str, **values: int) -> Scene:
        self.made.add("cgroup_stats", time=START_US + 12 * SECOND, cgroup=cgroup, **values)
        return self

    def mode(self, cpu: int, **values: float) -> Scene:
        self.modes.update({(cpu, name): value for name, value in values.items()})
        return self

    # --- written and looked at ---------------------------------------------------------------------------------------

    def write(self, directory: Path) -> Path:
        node = copy.deepcopy(self.made)
        self._add_samples(node)
        if self.cores:
            self._add_cores(node)
        write_segment(directory, node.tables, kernel=self.kernel)
        about = directory / "node=lab" / "node.json"
        about.write_text(json.dumps({**json.loads(about.read_text()), "missing": [], "hz": self.hz, **self.node}))
        return directory

    def diagnose(self, directory: Path) -> Diagnosis:
        return diagnosed(self.write(directory))

    def _taken(self) -> list[tuple[int, Runs]]:
        """(time, who) of every sample: a task with share 0.3 is hit by three of ten."""
        taken = []
        for runs in self.runs:
            credit = 0.0
            for tick in range(int(runs.from_s * self.hz), int(runs.to_s * self.hz)):
                credit += runs.share
                if credit >= 1 - 1e-9:
                    credit -= 1
                    taken.append((START_US + tick * SECOND // self.hz + 1 + runs.cpu, runs))
        return taken

    def _add_samples(self, node: Node) -> None:
        for at_us, runs in self._taken():
            frames = [node.frame("main", "user"), *(node.frame(name) for name in runs.frames.split())]
            task = node.task(
                runs.pid, runs.comm, tid=runs.tid, ppid=runs.ppid, start_ticks=1, policy=runs.policy,
                rt_priority=runs.rt_priority, cgroup=runs.cgroup, unit=runs.unit, pod=runs.pod,
                container=runs.container, uid=runs.uid, exe=runs.exe,
            )  # fmt: skip
            node.sample(at_us, runs.cpu, task, node.stack(frames))
        node.tables.get("samples", []).sort()

    def _add_cores(self, node: Node) -> None:
        busy: dict[tuple[int, int, str], float] = {}
        for at_us, runs in self._taken():
            key = (runs.cpu, (at_us - START_US) // SECOND, "system" if runs.frames else "user")
            busy[key] = busy.get(key, 0) + 1000 / self.hz
        for second in range(SECONDS):
            for cpu in range(self.cpus):
                node.core(_end_of(second), cpu, **self._core(cpu, second, busy))

    def _core(self, cpu: int, second: int, busy: dict[tuple[int, int, str], float]) -> dict[str, int | None]:
        figures: dict[str, int | None] = {
            "samples": self.hz, "expected_samples": self.hz, "max_gap_us": SECOND // self.hz,
        }  # fmt: skip
        figures["user"] = round(busy.get((cpu, second, "user"), 20))
        figures["system"] = round(busy.get((cpu, second, "system"), 5))
        for (which, name), value in self.calm.items():
            if which == cpu and not FROM_S <= second < TO_S:
                figures[name] = int(value)
        if FROM_S <= second < TO_S:
            for (which, name), value in self.modes.items():
                if which == cpu:
                    figures[name] = int(value * 1000) if name in MODES else int(value)
                    if name in ("softirq", "steal"):
                        figures["system"] = 0
        if "idle_samples" not in figures:
            idle_ms = max(0, 1000 - sum(figures.get(mode) or 0 for mode in MODES))
            figures["idle_samples"] = self.hz * idle_ms // 1000
        if not self.sampled:
            figures |= dict.fromkeys(("samples", "idle_samples", "expected_samples", "max_gap_us"))
        if not self.schedstat:
            figures["run_us"] = figures["wait_us"] = None
        return figures


def _end_of(second: int) -> int:
    return START_US + (second + 1) * SECOND
