"""Collapsed stacks: one line for each distinct stack, frames from the outermost on, and how often it was sampled.

    kubelet;main;read;do_syscall_64;vfs_read 412

The task's name is the first frame, as FlameGraph's stackcollapse-perf.pl writes it, or whose it is: its unit, pod,
process or thread. A semicolon inside a name would
look like two frames: it is written %3B, a line break %0A, and a percent sign that would be read as one of these %25.
Other characters that cannot be seen are written as escapes.
`annotate` marks frames as FlameGraph does: _[k] kernel, _[j] generated code; _[p] Python is gProfiler's.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import BinaryIO

import numpy as np

from zombiescope.base.text import printable
from zombiescope.query.exports.samples import ExportSamples
from zombiescope.query.levels import Level
from zombiescope.query.stacks import Function
from zombiescope.store.stacks import KERNEL_KINDS

_SPECIAL = re.compile(r"[;\n\r]|%(?=3B|0A|0D|25)")
_MARKS = {"jit": "j", "python": "p"}


def write(samples: ExportSamples, out: BinaryIO, *, first: Level | None = "comm", annotate: bool = False) -> None:
    counts: Counter[tuple[str | None, int]] = Counter()
    comms = samples.owners(first) if first else [None] * len(samples.tasks)
    for batch in samples.batches():
        keys, positions = np.unique(samples.numbers(batch.stack) * len(comms) + batch.task, return_inverse=True)
        totals = np.zeros(len(keys), np.int64)
        np.add.at(totals, positions, samples.weights(batch))
        for key, total in zip(keys.tolist(), totals.tolist(), strict=True):
            stack, task = divmod(key, len(comms))
            counts[comms[task], stack] += total
    names = [_frame(function, annotate) for function in samples.stacks.functions]
    lines = (
        f"{_line(owner, [names[number] for number in samples.functions(stack)])} {count}\n"
        for (owner, stack), count in counts.items()
        if count
    )
    for line in sorted(lines):
        out.write(line.encode("utf-8", "replace"))


def _line(first: str | None, frames: list[str]) -> str:
    return ";".join(frames if first is None else [escaped(first), *frames])


def _frame(function: Function, annotate: bool) -> str:
    name = escaped(function.name)
    if annotate and function.kind in KERNEL_KINDS:
        return f"{name}_[k]"
    mark = _MARKS.get(function.kind) if annotate else None
    return f"{name}_[{mark}]" if mark else name


def escaped(name: str) -> str:
    return printable(_SPECIAL.sub(lambda found: f"%{ord(found[0]):02X}", name))
