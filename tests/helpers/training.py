"""A node that trains: GPUs, a trainer on each, its workers, and what happens to them for ten of sixty seconds.

Each trainer is kept on a core of its own (core 5 and up, where there are so many) and has 60% of it; its worker has
40% of another core. GPUs are used as they are told, with a little noise that does not depend on chance. What hurts
happens from second 40 to 50, after forty seconds by which it is judged.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.helpers.diagnosed import diagnosed
from tests.helpers.made import SECOND, START_US, Node, write_segment
from zombiescope.diagnosis.diagnose import Diagnosis

SECONDS = 60
FROM_S, TO_S = 40, 50
TRAINER, WORKER, LOOP = 31_900, 41_900, 51_900
NOISE = (0, 1, -1, 0, 2, 0, -1, 1, 0, -2)


@dataclass
class Training:
    cpus: int = 16
    gpus: int = 1
    hz: int = 20
    usual: int = 90
    """Percent."""
    sampled: bool = True
    """Whether the trainers are in the samples."""
    measured: bool = True
    """Whether GPUs were read."""
    cgroup: str | None = None
    pod: str | None = None
    container: str | None = None
    name: str = "python3"
    kernel: str = "6.8.0"
    node: Node = field(default_factory=Node)
    _shares: dict[tuple[int, int], dict[int, float]] = field(default_factory=lambda: defaultdict(dict))
    """(core, second) -> task -> its part of the core."""
    _kernel: dict[int, str] = field(default_factory=dict)
    _use: dict[tuple[int, int], int | None] = field(default_factory=dict)
    _power: dict[tuple[int, int], int] = field(default_factory=dict)
    _more: dict[tuple[int, int], dict[str, Any]] = field(default_factory=lambda: defaultdict(dict))
    _waits: dict[tuple[int, int], int] = field(default_factory=dict)
    _tasks: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        owner: dict[str, Any] = {"cgroup": self.cgroup, "pod": self.pod, "container": self.container}
        for gpu in range(self.gpus):
            self.node.gpu(START_US, gpu)
            self.node.gpu_process(START_US, gpu, TRAINER + gpu, self.name, start_ticks=1, memory_bytes=2**34, **owner)
            if self.sampled:
                self.runs(TRAINER + gpu, self.name, self.core(gpu), 0.6, ppid=700,
                          cmdline="python3 -u /srv/jobs/train.py --steps 9", **owner)  # fmt: skip
                self.runs(WORKER + gpu, "pt_data_worker", (self.core(gpu) + 1) % self.cpus, 0.4, ppid=TRAINER + gpu)

    def core(self, gpu: int) -> int:
        return (5 + 2 * gpu) % self.cpus

    # --- what happens ------------------------------------------------------------------------------------------------

    def runs(self, pid: int, comm: str, cpu: int, share: float, from_s: int = 0, to_s: int = SECONDS,
             frames: str = "", **known: Any) -> Training:  # fmt: skip
        self._tasks.setdefault(pid, self.node.task(pid, comm, start_ticks=1, **known))
        self._kernel[self._tasks[pid]] = frames
        for second in range(from_s, to_s):
            self._shares[cpu, second][self._tasks[pid]] = share
        return self

    def taken(self, cpu: int, many: int = 6, comm: str = "burn", from_s: int = FROM_S, to_s: int = TO_S,
              **known: Any) -> Training:  # fmt: skip
        """Busy loops that share a core fairly with who was there, and tasks that wait for it."""
        for second in range(from_s, to_s):
            there = self._shares[cpu, second]
            for task in there:
                there[task] = min(there[task], 1 / (many + 1))
            self._waits[cpu, second] = (many - 1 + len(there)) * SECOND
        left = 1 - max((sum(self._shares[cpu, second].values()) for second in range(from_s, to_s)), default=0.0)
        for number in range(many):
            self.runs(LOOP + number, comm, cpu, left / many, from_s, to_s, ppid=600, **known)
        return self

    def held(self, cpu: int, comm: str, frames: str, from_s: int = FROM_S, to_s: int = TO_S, **known: Any) -> Training:
        """The kernel has all of a core on behalf of somebody."""
        for second in range(from_s, to_s):
            self._shares[cpu, second].clear()
            self._waits[cpu, second] = SECOND
        return self.runs(LOOP, comm, cpu, 1.0, from_s, to_s, frames, ppid=1, **known)

    def use(self, gpu: int, percent: int | None, from_s: int = FROM_S, to_s: int = TO_S) -> Training:
        self._use.update({(gpu, second): percent for second in range(from_s, to_s)})
        return self

    def power(self, gpu: int, watts: int, from_s: int = FROM_S, to_s: int = TO_S) -> Training:
        self._power.update({(gpu, second): watts for second in range(from_s, to_s)})
        return self

    def slowed(self, gpu: int, from_s: int = FROM_S, to_s: int = TO_S, **figures: int) -> Training:
        for second in range(from_s, to_s):
            self._more[gpu, second] |= figures
        return self

    def leaves(self, gpu: int, at_s: float) -> Training:
        self.node.gpu_process(START_US + int(at_s * SECOND), gpu, TRAINER + gpu, self.name, start_ticks=1, ended=True)
        return self

    # --- written and looked at ---------------------------------------------------------------------------------------

    def write(self, directory: Path) -> Path:
        self._add_samples()
        self._add_cores()
        for gpu in range(self.gpus if self.measured else 0):
            for second in range(SECONDS):
                self._add_gpu(gpu, second)
        write_segment(directory, self.node.tables, kernel=self.kernel)
        about = directory / "node=lab" / "node.json"
        more = {"missing": [], "hz": self.hz, "cpus": {"online": list(range(self.cpus)), "possible": self.cpus}}
        about.write_text(json.dumps({**json.loads(about.read_text()), **more}))
        return directory

    def diagnose(self, directory: Path) -> Diagnosis:
        return diagnosed(self.write(directory))

    def _add_gpu(self, gpu: int, second: int) -> None:
        noise = NOISE[(second + gpu) % len(NOISE)] if self.usual >= 5 else 0
        percent = self._use.get((gpu, second), min(100, self.usual + noise))
        if (gpu, second) in self._use and percent is None:
            return
        power = self._power.get((gpu, second), 100 + 5 * (percent or 0))
        self.node.gpu_second(_end_of(second), gpu, percent, power_w=power, **self._more.get((gpu, second), {}))

    def _add_samples(self) -> None:
        credit: dict[tuple[int, int], float] = defaultdict(float)
        stacks = {
            task: self.node.stack(
                [self.node.frame("main", "user"), *(self.node.frame(name) for name in frames.split())]
            )
            for task, frames in self._kernel.items()
        }
        for (cpu, second), there in sorted(self._shares.items()):
            for tick in range(self.hz):
                for task, share in there.items():
                    credit[cpu, task] += share
                    if credit[cpu, task] >= 1 - 1e-9:
                        credit[cpu, task] -= 1
                        at_us = START_US + second * SECOND + tick * SECOND // self.hz + 1 + cpu % 97
                        self.node.sample(at_us, cpu, task, stacks[task])
        self.node.tables.get("samples", []).sort()

    def _add_cores(self) -> None:
        for second in range(SECONDS):
            for cpu in range(self.cpus):
                there = self._shares.get((cpu, second), {})
                in_kernel = sum(share for task, share in there.items() if self._kernel[task])
                user = sum(there.values()) - in_kernel
                counted = {"samples": self.hz, "expected_samples": self.hz, "max_gap_us": SECOND // self.hz}
                self.node.core(
                    _end_of(second), cpu, user=round(user * 1000), system=round(in_kernel * 1000),
                    wait_us=self._waits.get((cpu, second), 2_000), run_us=round(sum(there.values()) * SECOND),
                    idle_samples=round(self.hz * (1 - min(1, sum(there.values())))), **counted,
                )  # fmt: skip


def _end_of(second: int) -> int:
    return START_US + (second + 1) * SECOND
