"""In which native function the main threads of a training wait: `cudaStreamSynchronize`, `c10d::Work::wait`.

A thread that waits is in no sample. The recorder unwinds the stacks of waiting main threads every two seconds
(recorder/stack_reader.py), into the table `whole_stacks`. A look is of one moment. It says what a Python line waits for
that calls into C: `.item()` and `.cpu()` look the same from Python whether they wait for the device or for a lock.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from zombiescope.query.python import named_stacks
from zombiescope.store import columns, schema
from zombiescope.store.reader import Recording
from zombiescope.symbols.demangle import demangle

_PLAIN = ("libc.so", "libc-", "libpthread", "libstdc++", "libgcc", "ld-linux", "ld-musl", "libm.so", "[vdso]")
"""Libraries that wait for another one; what called them says for what."""
_INTERPRETER = ("libpython", "python")
_COLLECTIVE = ("nccl", "rccl", "c10d", "gloo", "MPI_", "PMPI_", "ompi_", "ucc_", "hcclComm", "CpuCollectives")
_DEVICE = ("cudaStreamSync", "cudaDeviceSync", "cudaEventSync", "cudaMemcpy", "cuStreamSync", "cuEventSync",
           "cuCtxSync", "cuMemcpy", "hipStreamSync", "hipDeviceSync", "hipEventSync", "hipMemcpy")  # fmt: skip
_DRIVERS = ("libcuda.so", "libcudart", "libamdhip64", "libhsa-runtime64")


@dataclass(frozen=True, slots=True)
class NativeLook:
    at_us: int
    functions: tuple[tuple[str, str], ...]
    """Name and file, the innermost first, up to the interpreter."""

    @property
    def purpose(self) -> Literal["collective", "device"] | None:
        for name, _ in self.functions:
            if any(word in name for word in _COLLECTIVE):
                return "collective"
        for name, module in self.functions:
            if name.startswith(_DEVICE) or module.startswith(_DRIVERS):
                return "device"
        return None

    @property
    def place(self) -> str:
        """`c10d::Work::wait (libtorch_cpu.so)`: the innermost function that is not the C library's, if there is one."""
        told = (each for each in self.functions if not each[1].startswith(_PLAIN))
        name, module = next(told, self.functions[0])
        return f"{demangle(name).partition('(')[0]} ({module})"


def looks(recording: Recording, start_us: int, end_us: int, pids: Collection[int]) -> dict[int, list[NativeLook]]:
    """Of main threads, in the order of time."""
    rows = columns.records(recording.table("whole_stacks", start_us, end_us, ("time", "pid", "tid", "stack")))
    rows = [row for row in rows if row["pid"] in pids and row["pid"] == row["tid"]]
    if not rows:
        return {}
    named = named_stacks(recording, schema.WHOLE_STACKS, start_us, end_us, {row["stack"] for row in rows})
    found: dict[int, list[NativeLook]] = {}
    for row in sorted(rows, key=lambda row: row["time"]):
        functions = _outside(named.get(row["stack"], []))
        if functions:
            found.setdefault(row["pid"], []).append(NativeLook(row["time"], functions))
    return found


def _outside(stack: list[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The innermost first, without the interpreter and what called it."""
    found = []
    for name, module in reversed(stack):
        file = module.rpartition("/")[2]
        if file.startswith(_INTERPRETER):
            break
        found.append((name, file))
    return tuple(found)
