"""The call stacks of a recording as arrays: what the ids in its samples stand for.

A part of a recording has its own ids, so a function that ran all day has one frame id per part. Here frames that
have the same name, module and kind are one (`function`), and a stack is a run of functions in one flat array:
stack `s` is flat[starts[s]:ends[s]], outermost first. Everything after this works on those arrays.

Cost: one pass over the dictionaries of the parts that the windows touch; samples are not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from zombiescope._native import context_of
from zombiescope.recording import columns
from zombiescope.recording.columns import Ints, Mask
from zombiescope.recording.reader import Recording
from zombiescope.recording.stacks import KERNEL_KINDS, SKID_LEAVES
from zombiescope.symbols.demangle import demangle

Span = tuple[int, int]
"""A window [start_us, end_us)."""


class Function(NamedTuple):
    name: str
    module: str | None
    kind: str


UNKNOWN = Function("?", None, "unknown")
"""A frame that no row explains, and the only frame of a stack that none explains: never dropped."""


@dataclass(frozen=True, slots=True)
class Stacks:
    """Stack ids index `starts` and `ends`; the last entry is the stack of samples that have none."""

    functions: tuple[Function, ...]
    flat: Ints
    starts: Ints
    ends: Ints

    @property
    def count(self) -> int:
        return len(self.starts)

    def rows_of(self, ids: Ints) -> Ints:
        """Stack ids, -1 among them, as positions here."""
        return np.where((ids >= 0) & (ids < self.count - 1), ids, self.count - 1)

    def of(self, row: int) -> list[Function]:
        return [self.functions[number] for number in self.flat[self.starts[row] : self.ends[row]].tolist()]

    def where(self, wanted: Sequence[bool]) -> Mask:
        """Stacks with at least one function for which `wanted` is true."""
        hits = np.concatenate([[0], np.cumsum(np.asarray(wanted, bool)[self.flat])])
        found: Mask = hits[self.ends] > hits[self.starts]
        return found

    def in_kernel(self) -> Mask:
        """Stacks whose innermost frame is the kernel's."""
        kernel = np.fromiter((function.kind in KERNEL_KINDS for function in self.functions), bool, len(self.functions))
        mask: Mask = kernel[self.flat[self.ends - 1]]
        return mask

    def idle(self) -> Mask:
        """Stacks of a core that had nothing to do. From the leaf outwards, the first frame that tells decides: the idle
        loop, or an interrupt on top of it, which is work."""
        contexts = np.fromiter(map(_context, self.functions), np.int8, len(self.functions))[self.flat]
        last = np.maximum.accumulate(np.where(contexts > 0, np.arange(len(contexts)), -1))[self.ends - 1]
        in_the_loop = (last >= self.starts) & (contexts[last] == _IDLE)
        # Without a call chain there are no callers to ask; then the leaf has to do.
        alone = self.ends - self.starts == 1
        halts = np.fromiter(map(_halts, self.functions), bool, len(self.functions))
        mask: Mask = in_the_loop | (alone & halts[self.flat[self.ends - 1]])
        return mask

    def without_skid(self) -> Stacks:
        """The same stacks without leaves that only look hot; recording/stacks.py says why."""
        skid = np.fromiter(map(is_skid, self.functions), bool, len(self.functions))
        ends = self.ends.copy()
        while True:
            cut = (ends - self.starts > 1) & skid[self.flat[ends - 1]]
            if not cut.any():
                return Stacks(self.functions, self.flat, self.starts, ends)
            ends[cut] -= 1


_IDLE = 1
IDLE_LEAVES = frozenset(
    {
        "pv_native_safe_halt", "native_safe_halt", "default_idle", "default_idle_call", "acpi_idle_do_entry",
        "acpi_safe_halt", "intel_idle", "intel_idle_irq", "intel_idle_ibrs", "mwait_idle", "mwait_idle_with_hints",
        "poll_idle", "cpuidle_poll", "cpu_do_idle", "arch_cpu_idle",
    }
)  # fmt: skip
"""Where a core halts. Callers tell better; this is for profiles that have none."""


def _halts(function: Function) -> bool:
    return function.kind in KERNEL_KINDS and function.name in IDLE_LEAVES


def _context(function: Function) -> int:
    return context_of(function.name) if function.kind in KERNEL_KINDS else 0


def is_skid(function: Function) -> bool:
    return function.kind in KERNEL_KINDS and function.name in SKID_LEAVES


def load(recording: Recording, spans: Iterable[Span]) -> Stacks:
    """Every stack that a sample in one of the windows may point to."""
    functions: dict[Function, int] = {UNKNOWN: 0}
    pieces: list[tuple[Ints, Ints, Ints]] = []
    for start_us, end_us in spans:
        number_of = _functions(recording, start_us, end_us, functions)
        for batch in recording.batches("stacks", start_us, end_us):
            for chunk_ids, chunk in _chunks(batch):
                offsets, elements = columns.list_parts(chunk)
                pieces.append((chunk_ids, offsets.astype(np.int64), columns.look_up(number_of, elements)))
    return _assemble(tuple(functions), pieces)


def _chunks(batch: pa.Table) -> Iterable[tuple[Ints, pa.Array]]:
    ids = columns.numbers(batch.column("stack"))
    first = 0
    for chunk in batch.column("frames").chunks:
        if len(chunk):
            yield ids[first : first + len(chunk)], chunk
        first += len(chunk)


def _functions(recording: Recording, start_us: int, end_us: int, known: dict[Function, int]) -> Ints:
    """Frame id -> number of its function; functions seen for the first time are added to `known`."""
    rows = recording.table("frames", start_us, end_us)
    ids = columns.numbers(rows.column("frame"))
    names, modules, kinds = (columns.texts(rows.column(name)) for name in ("name", "module", "kind"))
    number_of = np.full(int(ids.max(initial=-1)) + 1, -1, np.int64)
    for frame, name, module, kind in zip(ids.tolist(), names, modules, kinds, strict=True):
        function = Function(demangle(name) if name else "?", module or None, kind or "unknown")
        number_of[frame] = known.setdefault(function, len(known))
    return number_of


def _assemble(functions: tuple[Function, ...], pieces: list[tuple[Ints, Ints, Ints]]) -> Stacks:
    """The pieces (ids, offsets, functions) one after the other; position 0 of `flat` is the unknown frame."""
    count = 1 + max((int(ids.max(initial=-1)) + 1 for ids, _, _ in pieces), default=0)
    starts, ends = np.zeros(count, np.int64), np.ones(count, np.int64)
    flat = [np.zeros(1, np.int64)]
    at = 1
    for ids, offsets, numbers in pieces:
        known = (ids >= 0) & (np.diff(offsets) > 0)
        starts[ids[known]] = at + offsets[:-1][known]
        ends[ids[known]] = at + offsets[1:][known]
        flat.append(np.maximum(numbers, 0))
        at += len(numbers)
    return Stacks(functions, np.concatenate(flat), starts, ends)


def joined(first: Stacks, second: Stacks) -> Stacks:
    """The stacks of two recordings side by side: those of the first keep their ids, those of the second come behind,
    samples without a stack stay last. A function that both have is one."""
    number_of = {function: number for number, function in enumerate(first.functions)}
    moved = np.array([number_of.setdefault(function, len(number_of)) for function in second.functions], np.int64)
    shift = len(first.flat)
    return Stacks(
        tuple(number_of),
        np.concatenate([first.flat, moved[second.flat]]),
        np.concatenate([first.starts[:-1], second.starts[:-1] + shift, first.starts[-1:]]),
        np.concatenate([first.ends[:-1], second.ends[:-1] + shift, first.ends[-1:]]),
    )


def in_front(counts: Ints, second: Stacks) -> Ints:
    """Counts of the first of two recordings as counts of their joined stacks."""
    return np.concatenate([counts[:-1], np.zeros(second.count - 1, np.int64), counts[-1:]])


def behind(first: Stacks, counts: Ints) -> Ints:
    """Counts of the second of two recordings as counts of their joined stacks."""
    return np.concatenate([np.zeros(first.count - 1, np.int64), counts])
