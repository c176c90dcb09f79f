"""The text that `perf script` prints, as its readers expect it (perf 6; stackcollapse-perf.pl, speedscope, Firefox
Profiler, FlameScope and `zombiescope import`):

    kubelet 1201/1201 [003] 1760000030.001234:   10101010 cpu-clock:
    \tffffffff81000010 mem_cgroup_nr_lru_pages ([kernel.kallsyms])
    \t          400020 main (/usr/bin/kubelet)

Frames are written from the innermost on; times are Unix seconds. A recording keeps names and no addresses: the number
before a name distinguishes its function from every other, is in the half of the address space that the kernel or a
process has, and means nothing else. What is in the parentheses is the kind of a frame: [kernel.kallsyms], [a_module],
[bpf], [vdso], [anon], [jit] or [JIT] for generated code, [unknown], or else the file.

Samples come part by part and are written at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import BinaryIO

from zombiescope.base.text import printable
from zombiescope.query.exports.samples import ExportSamples, ProfileTask, SampleBatch, module_of
from zombiescope.query.stacks import Function

TextOf = Callable[[int], str]
"""The frame lines of a stack."""

ROWS_AT_ONCE = 1 << 14
KEPT_STACKS = 1 << 14
"""Stacks whose text is kept: 16,384 of 1 kB each."""

_KERNEL_BASE = 0xFFFF_FFFF_8100_0000
_MODULE_BASE = 0xFFFF_FFFF_C000_0000
_USER_BASE = 0x40_0000
_BASES = {"kernel": _KERNEL_BASE, "module": _MODULE_BASE, "bpf": _MODULE_BASE}
_BREAKS = re.compile(r"[\r\n]+")
_GENERATED = re.compile(r"\[anon|\[jit\]$|perf-\d+\.map$")
_LOOKS_LIKE_OFFSET = re.compile(r"\+0x[0-9a-f]+$")


def write(samples: ExportSamples, out: BinaryIO) -> None:
    text_of = _stack_texts(samples)
    who = [_who(task) for task in samples.tasks]
    what = [f"{_one_line(event.name)}:" for event in samples.events]
    for line in _header(samples):
        out.write(f"# {_one_line(line)}".rstrip().encode("utf-8", "replace") + b"\n")
    out.write(b"\n")  # speedscope takes what stands before the first empty line for one sample
    for batch in samples.batches():
        for first in range(0, len(batch), ROWS_AT_ONCE):
            part = batch.cut(slice(first, first + ROWS_AT_ONCE))
            out.write("".join(_rows(samples, part, who, what, text_of)).encode("utf-8", "replace"))


def _header(samples: ExportSamples) -> Sequence[str]:
    """The lines of `perf script --header` that a reader may look for."""
    known = {"hostname": samples.name, "os release": samples.node.get("kernel"), "arch": samples.node.get("machine")}
    return ["========", *(f"{name} : {value}" for name, value in known.items() if value), "========", ""]


def _one_line(text: str) -> str:
    return printable(_BREAKS.sub(" ", text))


def _rows(samples: ExportSamples, part: SampleBatch, who: list[str], what: list[str], text_of: TextOf) -> list[str]:
    columns = (part.time_us, part.cpu, part.task, part.stack, samples.periods(part), part.event)
    return [
        f"{who[task]} {f'[{cpu:03}] ' if cpu >= 0 else ''}{time // 1_000_000}.{time % 1_000_000:06}: "
        f"{period if period >= 0 else 1:>10} {what[event]} \n{text_of(stack)}\n"
        for time, cpu, task, stack, period, event in zip(*(column.tolist() for column in columns), strict=True)
    ]


def _who(task: ProfileTask) -> str:
    pid = -1 if task.pid is None else task.pid
    tid = pid if task.tid is None else task.tid
    comm = _one_line(task.comm or "").strip() or f":{tid}"  # perf's word for a name that it does not know
    return f"{comm} {pid}/{tid}"


def _stack_texts(samples: ExportSamples) -> TextOf:
    stacks = samples.stacks
    lines = [_frame(number, function) for number, function in enumerate(stacks.functions)]

    @lru_cache(KEPT_STACKS)
    def text_of(row: int) -> str:
        return "".join([lines[number] for number in stacks.flat[stacks.starts[row] : stacks.ends[row]][::-1].tolist()])

    return text_of


def _frame(number: int, function: Function) -> str:
    address = _BASES.get(function.kind, _USER_BASE) + 16 * number
    name = _one_line(function.name)
    if _LOOKS_LIKE_OFFSET.search(name):
        # Readers take off what looks like the offset of perf: one that they may have.
        name += "+0x0"
    return f"\t{address:16x} {name} ({_file(function)})\n"


def _file(function: Function) -> str:
    module = _one_line(module_of(function))
    if function.kind == "bpf":
        return "[bpf]"
    if function.kind == "jit" and not _GENERATED.match(module):
        return f"/{module}" if module.startswith("memfd:") else f"[JIT] {module}".rstrip()
    return module or "[unknown]"
