"""An invented node to draw samples from: its functions, its call stacks, its tasks. Everything comes from one seed.

Stacks are walks through a call graph in which a few callees of each function take most calls, so stacks share their
outer frames and end in a long tail, as real ones do: some thousands are sampled all the time, and every quarter of an
hour brings tens of thousands more, of which a part was never seen before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

MAX_DEPTH = 40
CALLEES = 6
POOL = 800_000
"""Distinct stacks that could ever be sampled."""

_SUBSYSTEMS = ("tcp", "ext4", "xfs", "mem_cgroup", "sched", "futex", "ep", "skb", "blk_mq", "vfs", "kernfs", "rcu",
               "seq", "nvme", "ena", "cgroup_rstat", "page_counter", "lru", "d", "inode", "mm", "pte", "try_to",
               "shmem")  # fmt: skip
_VERBS = ("alloc", "free", "lookup", "charge", "flush", "read", "write", "map", "walk", "lock", "queue", "update",
          "show", "wait", "wake", "insert", "remove", "copy", "poll", "complete")  # fmt: skip
_NOUNS = ("page", "node", "entry", "stat", "list", "range", "batch", "slot", "work", "event", "iter", "data", "state")


@dataclass(frozen=True, slots=True)
class Program:
    comm: str
    module: str
    prefix: str
    functions: int
    threads: int
    share: float
    """Of busy time."""
    kernel_ratio: float
    unit: str | None = None


PROGRAMS = (
    Program("python3", "/opt/venv/lib/libtorch_cpu.so", "torch::autograd::", 900, 192, 0.52, 0.25, "kubepods.slice"),
    Program("raylet", "/opt/venv/ray/raylet", "ray::core::", 400, 48, 0.14, 0.4, "kubepods.slice"),
    Program("nccl", "/usr/lib/libnccl.so.2", "nccl", 120, 96, 0.10, 0.6, "kubepods.slice"),
    Program("kubelet", "/usr/bin/kubelet", "k8s.io/kubernetes/pkg/", 350, 40, 0.05, 0.7, "kubelet.service"),
    Program("containerd", "/usr/bin/containerd", "github.com/containerd/", 250, 30, 0.05, 0.6, "containerd.service"),
    Program("dataloader", "/usr/lib/libc.so.6", "_PyEval_", 300, 128, 0.10, 0.45, "kubepods.slice"),
    Program("swapper", "[kernel]", "", 0, 96, 0.04, 1.0),
)
KERNEL_FUNCTIONS = 1100


@dataclass(frozen=True, slots=True)
class World:
    """`frames` has a row for each stack of the pool, filled up with -1; stacks of one program stand together."""

    names: list[str]
    modules: list[str]
    kinds: list[str]
    frames: npt.NDArray[np.int16]
    lengths: Ints
    first_stack: Ints
    task_program: Ints
    stuck: int
    """The stack of the core that hangs."""

    def of_program(self, program: int) -> tuple[int, int]:
        return int(self.first_stack[program]), int(self.first_stack[program + 1])


def make(seed: int = 11, pool: int = POOL) -> World:
    rng = np.random.default_rng(seed)
    names, modules, kinds, ranges = _functions(rng)
    callees = _call_graph(rng, ranges, len(names))
    sizes = [int(pool * share) for share in (0.45, 0.15, 0.05, 0.12, 0.08, 0.12, 0.03)]
    frames = np.full((sum(sizes) + 1, MAX_DEPTH), -1, np.int16)
    lengths = np.zeros(sum(sizes) + 1, np.int64)
    first = np.concatenate([[0], np.cumsum(sizes)])
    for number, program in enumerate(PROGRAMS):
        rows = slice(first[number], first[number + 1])
        frames[rows], lengths[rows] = _walks(rng, sizes[number], program, ranges[number], ranges[-1], callees)
    stuck = len(frames) - 1
    walk = [names.index("do_syscall_64"), *range(ranges[-1][0] + 40, ranges[-1][0] + 52)]
    frames[stuck, : len(walk)], lengths[stuck] = walk, len(walk)
    programs = np.repeat(np.arange(len(PROGRAMS)), [program.threads for program in PROGRAMS])
    return World(names, modules, kinds, frames, lengths, first, programs, stuck)


def _functions(rng: np.random.Generator) -> tuple[list[str], list[str], list[str], list[tuple[int, int]]]:
    """Names, modules, kinds, and which numbers belong to each program (the kernel last)."""
    names: list[str] = []
    modules: list[str] = []
    kinds: list[str] = []
    ranges = []
    for program in PROGRAMS:
        ranges.append((len(names), len(names) + program.functions))
        names += [
            f"{program.prefix}{_word(rng).title().replace('_', '')}::{_word(rng)}_{i}" for i in range(program.functions)
        ]
        modules += [program.module] * program.functions
        kinds += ["user"] * program.functions
    ranges.append((len(names), len(names) + KERNEL_FUNCTIONS))
    entries = ["do_syscall_64", "asm_exc_page_fault", "asm_common_interrupt", "_raw_spin_unlock_irqrestore"]
    taken = set(entries)
    while len(taken) < KERNEL_FUNCTIONS:
        taken.add(f"{rng.choice(_SUBSYSTEMS)}_{_word(rng)}")
    names += [*entries, *sorted(taken - set(entries))]
    modules += ["[kernel]"] * KERNEL_FUNCTIONS
    kinds += ["kernel"] * KERNEL_FUNCTIONS
    return names, modules, kinds, ranges


def _word(rng: np.random.Generator) -> str:
    return f"{rng.choice(_VERBS)}_{rng.choice(_NOUNS)}" + (f"_{rng.choice(_NOUNS)}" if rng.random() < 0.5 else "")


def _call_graph(rng: np.random.Generator, ranges: list[tuple[int, int]], functions: int) -> Ints:
    """For each function its callees, the usual one first."""
    callees = np.zeros((functions, CALLEES), np.int64)
    for low, high in ranges:
        if high > low:
            callees[low:high] = rng.integers(low, high, (high - low, CALLEES))
    return callees


def _walks(
    rng: np.random.Generator,
    count: int,
    program: Program,
    user: tuple[int, int],
    kernel: tuple[int, int],
    callees: Ints,
) -> tuple[npt.NDArray[np.int16], Ints]:
    user_depth = (
        np.clip(rng.normal(22, 5, count), 8, 28).astype(np.int64) if program.functions else np.zeros(count, np.int64)
    )
    in_kernel = rng.random(count) < program.kernel_ratio
    kernel_depth = np.where(in_kernel, np.clip(rng.normal(11, 3, count), 3, MAX_DEPTH - 28), 0).astype(np.int64)
    kernel_depth = np.where(user_depth + kernel_depth == 0, 6, kernel_depth)
    frames = np.full((count, MAX_DEPTH), -1, np.int16)
    at = np.full(count, user[0], np.int64)
    entry = kernel[0] + rng.choice(3, count, p=[0.7, 0.2, 0.1])
    for depth in range(MAX_DEPTH):
        # The power makes the first callee the usual one.
        choice = (CALLEES * rng.random(count) ** 5).astype(np.int64)
        following = callees[at, choice] if depth else at
        at = np.where(depth == user_depth, entry, following)
        frames[:, depth] = np.where(depth < user_depth + kernel_depth, at, -1)
    return frames, user_depth + kernel_depth


def tasks(world: World) -> list[dict[str, Any]]:
    rows = []
    for number, program in enumerate(world.task_program.tolist()):
        who = PROGRAMS[program]
        pid = 0 if who.comm == "swapper" else 1000 * (program + 1)
        rows.append({"pid": pid, "tid": pid + number if pid else 0, "comm": who.comm, "unit": who.unit})
    return rows
