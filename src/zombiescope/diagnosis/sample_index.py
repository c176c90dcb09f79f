"""What samples point to: the tasks, and the stacks that occur, with an index of the kernel's functions on them.

Stacks are few where samples are millions, so whether a function is on a stack is asked of the stacks once and kept.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cached_property
from typing import NamedTuple

import numpy as np

from zombiescope.diagnosis.ancestry import Ancestry
from zombiescope.diagnosis.carriers import is_genuine
from zombiescope.diagnosis.incident import Actor
from zombiescope.query.stacks import Stacks, is_kernel
from zombiescope.store.columns import Ints, Mask
from zombiescope.store.container_names import NAMELESS, ContainerName
from zombiescope.store.stacks import is_named, kernel_path


class SampledTask(NamedTuple):
    """A tuple: there are thousands on a node that forks, and one is made in a tenth of the time of a dataclass."""

    pid: int | None
    tid: int | None
    comm: str | None
    ppid: int | None
    policy: int | None
    rt_priority: int | None
    cgroup: str | None
    unit: str | None
    container: str | None
    pod: str | None
    """Its uid."""
    start_ticks: int | None = None
    """When its process was started, in ticks since the boot."""
    uid: int | None = None
    exe: str | None = None
    named: ContainerName = NAMELESS

    @property
    def genuine(self) -> bool | None:
        return is_genuine(self.uid, self.exe)

    def actor(self, cores: float | None = None) -> Actor:
        named = self.named
        return Actor(
            self.comm,
            self.pid,
            self.unit,
            self.cgroup,
            self.container,
            named.pod or self.pod,
            named.name,
            named.image,
            named.namespace,
            cores=cores,
            genuine=self.genuine,
        )


NOBODY = SampledTask(None, None, None, None, None, None, None, None, None, None)
TASK_COLUMNS = (
    "pid", "tid", "comm", "ppid", "policy", "rt_priority", "cgroup", "unit", "container", "pod", "start_ticks",
    "uid", "exe",
)  # fmt: skip


class SampleIndex:
    """What samples point to: stacks, of which only those that occur are kept, and tasks."""

    def __init__(self, stacks: Stacks, tasks: dict[int, SampledTask]) -> None:
        self.stacks = stacks
        self.tasks = tasks
        self._paths: dict[int, tuple[str, ...]] = {}
        self._expanded: dict[frozenset[str], frozenset[str]] = {}
        self._with: dict[frozenset[str], Mask] = {}

    @cached_property
    def ancestry(self) -> Ancestry:
        return Ancestry(self.tasks)

    @cached_property
    def in_kernel(self) -> Mask:
        kernel = self.stacks.in_kernel()
        kernel[-1] = False
        return kernel

    @cached_property
    def named(self) -> Mask:
        """Stacks of which some function of the kernel itself has a name. Programs of BPF have theirs even where the
        kernel's are hidden."""
        names = self.stacks.which(lambda one: is_kernel(one) and one.kind != "bpf" and is_named(one.name))
        rows = np.repeat(np.arange(self.stacks.count), self.stacks.ends - self.stacks.starts)
        named = np.zeros(self.stacks.count, bool)
        named[rows[names[self.stacks.flat]]] = True
        return named

    def kernel_path(self, row: int) -> tuple[str, ...]:
        path = self._paths.get(row)
        if path is None:
            path = self._paths[row] = kernel_path(self.stacks.of(row))  # type: ignore[arg-type]  # as NamedFrame
        return path

    def user_function(self, row: int) -> str | None:
        """The program's innermost function on a stack that has a name: the one that calls the kernel."""
        own = [one.name for one in self.stacks.of(row) if one.kind == "user" and is_named(one.name)]
        return own[-1] if own else None

    def expanded(self, names: frozenset[str]) -> frozenset[str]:
        """As the function of that name says."""
        found = self._expanded.get(names)
        if found is None:
            found = self._expanded[names] = expanded(names, self._by_name)
        return found

    def with_function(self, names: frozenset[str]) -> Mask:
        """Stacks on which one of the kernel's functions is."""
        found = self._with.get(names)
        if found is None:
            found = self._with[names] = np.zeros(self.stacks.count, bool)
            for name in self.expanded(names):
                for number in self._by_name[name]:
                    found[self._rows[self._firsts[number] : self._firsts[number + 1]]] = True
        return found

    @cached_property
    def _by_name(self) -> dict[str, list[int]]:
        """The kernel's functions: name -> numbers."""
        numbers: dict[str, list[int]] = {}
        for number in np.flatnonzero(np.diff(self._firsts)).tolist():
            numbers.setdefault(self.stacks.functions[number].name, []).append(number)
        return numbers

    @property
    def _rows(self) -> Ints:
        return self._index[0]

    @property
    def _firsts(self) -> Ints:
        return self._index[1]

    @cached_property
    def _index(self) -> tuple[Ints, Ints]:
        """The stacks of each of the kernel's functions, one function after the other, and where each begins."""
        functions = self.stacks.functions
        places = np.flatnonzero(self.stacks.which(is_kernel)[self.stacks.flat])
        of = self.stacks.flat[places]
        row_at = np.repeat(np.arange(self.stacks.count), self.stacks.ends - self.stacks.starts)[places]
        firsts = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=len(functions)))])
        return row_at[np.argsort(of, kind="stable")], firsts


BPF_PROGRAM = "bpf_prog_TAG"
"""Every BPF program that runs: bpf_prog_, sixteen digits, and its name. bpf_prog_load is none, it loads one."""
_TAGGED = re.compile(r"bpf_prog_[0-9a-f]{16}(?:_|$)")
SYSTEM_CALL = "sys_"
_ENTRIES = ("sys_", "SyS_", "ksys_", "__se_sys_", "__do_sys_", "__x64_sys_", "__ia32_sys_", "__arm64_sys_")
"""A system call's functions: sys_ until 4.16, SyS_ beside it; then one for each architecture (fa697140f9a2)."""


def expanded(names: frozenset[str], known: Collection[str]) -> frozenset[str]:
    """Those of the known names that are meant; one that ends in * stands for all that begin so, sys_NAME for the
    system call's entry on any architecture and kernel, and BPF_PROGRAM for every loaded BPF program."""
    starts = tuple(name[:-1] for name in names if name.endswith("*"))
    more = (name for name in known if name.startswith(starts)) if starts else ()
    calls = (name.removeprefix(SYSTEM_CALL) for name in names if name.startswith(SYSTEM_CALL))
    entries = (prefix + call for call in calls for prefix in _ENTRIES)
    programs = (name for name in known if _TAGGED.match(name)) if BPF_PROGRAM in names else ()
    return frozenset({*(name for name in (*names, *entries) if name in known), *more, *programs})
