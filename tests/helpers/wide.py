"""A wide node that works: training, a compile farm or readers on every core, and whatever a test adds to it.

Sampled ten times a second and not a hundred times, so that 192 cores of half a minute are made in a moment. What runs
has a share of the core it is on, or goes from core to core; the table `cores` says what the samples say.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.helpers.diagnosed import diagnosed
from tests.helpers.made import SECOND, START_US, Node, write_segment
from zombiescope.diagnosis.diagnose import Diagnosis

SYSCALL = "entry_SYSCALL_64_after_hwframe do_syscall_64"
FAULT = "asm_exc_page_fault exc_page_fault handle_mm_fault shmem_fault"
READ = f"{SYSCALL} ksys_read vfs_read filemap_read copy_page_to_iter"
EXEC = f"{SYSCALL} __x64_sys_execve bprm_execve load_elf_binary"


@dataclass
class WideNode:
    cpus: int
    seconds: int = 40
    hz: int = 10
    kernel: str = "6.8.0-1021-aws"
    made: Node = field(default_factory=Node)
    node: dict[str, Any] = field(default_factory=dict)
    online: Sequence[int] | None = None
    """The numbers of the cores; 0 and so on unless told."""
    _chance: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))
    _used: Counter[tuple[int, int, str]] = field(default_factory=Counter)
    _pids: int = 20_000

    @property
    def numbers(self) -> Sequence[int]:
        return range(self.cpus) if self.online is None else self.online

    def runs(
        self,
        comm: str,
        frames: str = "",
        share: float = 1.0,
        *,
        cpus: Sequence[int] | None = None,
        from_s: float = 0,
        to_s: float | None = None,
        short_lived: bool = False,
        **task: Any,
    ) -> WideNode:
        """A task; with several cores it is on any of them, and `short_lived` every sample is of another process."""
        places = self.numbers if cpus is None else cpus
        ticks = range(round(from_s * self.hz), round((self.seconds if to_s is None else to_s) * self.hz))
        credit = float(self._chance.random())
        stack = self._stack(frames)
        known = {"ppid": 1, "cgroup": None, "unit": None, "start_ticks": 1, "policy": 0, **task}
        pid = known.pop("pid", None) or self._next_pid()
        for tick in ticks:
            credit += share
            if credit < 1:
                continue
            credit -= 1
            who = self.made.task(self._next_pid() if short_lived else pid, comm, **known)
            cpu = int(places[int(self._chance.integers(len(places)))])
            self.made.sample(START_US + tick * SECOND // self.hz + 1 + cpu, cpu, who, stack)
            self._used[cpu, tick // self.hz, "system" if frames else "user"] += 1
        return self

    def _next_pid(self) -> int:
        self._pids += 1
        return self._pids

    def _stack(self, frames: str) -> int:
        return self.made.stack([self.made.frame("main", "user"), *(self.made.frame(one) for one in frames.split())])

    # --- healthy loads, on every core ---------------------------------------------------------------------------------

    def training(self, **when: Any) -> WideNode:
        """A process for each core; batches come through /dev/shm, so a sixth of its time are faults."""
        for cpu in self.numbers:
            self.runs("pt_main_thread", "", 0.45, cpus=[cpu], pid=1000 + cpu, cgroup="/job", **when)
            self.runs("pt_data_worker", "", 0.25, cpus=[cpu], pid=3000 + cpu, ppid=1000, cgroup="/job", **when)
            self.runs("pt_data_worker", FAULT, 0.12, cpus=[cpu], pid=3000 + cpu, ppid=1000, cgroup="/job", **when)
        return self

    def compile_farm(self, **when: Any) -> WideNode:
        """Compilers, and the shells and linkers around them, each for a moment."""
        for cpu in self.numbers:
            self.runs("cc1plus", "", 0.6, cpus=[cpu], ppid=500, short_lived=True, unit="build.service", **when)
            self.runs("cc1plus", FAULT, 0.1, cpus=[cpu], ppid=500, short_lived=True, unit="build.service", **when)
            self.runs("sh", EXEC, 0.08, cpus=[cpu], ppid=500, short_lived=True, unit="build.service", **when)
        return self

    def readers(self, **when: Any) -> WideNode:
        """Files from the page cache, by a process for each core, two thirds of it in the kernel."""
        for cpu in self.numbers:
            self.runs("reader", READ, 0.3, cpus=[cpu], pid=6000 + cpu, unit="feature-store.service", **when)
            self.runs("reader", "", 0.15, cpus=[cpu], pid=6000 + cpu, unit="feature-store.service", **when)
        return self

    def counter(self, source: str, name: str, per_s: float, from_s: int = 0, to_s: int | None = None) -> WideNode:
        number = self.made.series(source, name)
        for second in range(from_s, self.seconds if to_s is None else to_s):
            self.made.count(START_US + (second + 1) * SECOND, number, int(per_s))
        return self

    # --- written and looked at ---------------------------------------------------------------------------------------

    def write(self, directory: Path) -> Path:
        for second in range(self.seconds):
            for cpu in self.numbers:
                self.made.core(START_US + (second + 1) * SECOND, cpu, **self._core(cpu, second))
        self.made.tables.get("samples", []).sort()
        write_segment(directory, self.made.tables, kernel=self.kernel)
        about = directory / "node=lab" / "node.json"
        cpus = {"online": list(self.numbers), "possible": max(self.numbers) + 1}
        known = json.loads(about.read_text()) | {"missing": [], "hz": self.hz, "cpus": cpus}
        about.write_text(json.dumps(known | self.node))
        return directory

    def _core(self, cpu: int, second: int) -> dict[str, int | None]:
        modes = {mode: min(1000, self._used[cpu, second, mode] * 1000 // self.hz) for mode in ("user", "system")}
        idle = max(0, self.hz - sum(modes.values()) * self.hz // 1000)
        return {**modes, "samples": self.hz, "expected_samples": self.hz, "idle_samples": idle, "max_gap_us": 10_101}

    def diagnose(self, directory: Path, from_s: float = 0, to_s: float | None = None) -> Diagnosis:
        end_us = None if to_s is None else START_US + int(to_s * SECOND)
        return diagnosed(self.write(directory), START_US + int(from_s * SECOND), end_us)
