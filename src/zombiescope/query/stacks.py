"""The call stacks of a recording as arrays: what the ids in its samples stand for.

A part of a recording has its own ids, so a function that ran all day has one frame id per part. Here frames that
have the same name, module and kind are one (`function`), stacks of the same functions are one, and a stack is a run of
functions in one flat array: stack `s` is flat[starts[s]:ends[s]], outermost first. Everything after this works on those
arrays.

Cost: one pass over the dictionaries of the parts that the windows touch; samples are not read. Comparing names and
stacks is native (native/stack_set.pxi): twelve hours of a large node have two million stacks, a third of them distinct.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zombiescope._native import FunctionSet, StackSet, context_of
from zombiescope.store import columns, schema
from zombiescope.store.columns import Ints, Mask
from zombiescope.store.part import Part
from zombiescope.store.reader import Recording
from zombiescope.store.stacks import KERNEL_KINDS, SKID_LEAVES
from zombiescope.symbols.demangle import demangle

if TYPE_CHECKING:
    from zombiescope.query.python_frames import Looks
    from zombiescope.query.whole_frames import Copies

Int32s = npt.NDArray[np.int32]
Span = tuple[int, int]
"""A window [start_us, end_us)."""


_AHEAD = 3
"""Parts that are read while another is worked on."""
_NONE = np.zeros(0, np.int32)


class Function(NamedTuple):
    name: str
    module: str | None
    kind: str


UNKNOWN = Function("?", None, "unknown")
"""A frame that no row explains, and the only frame of a stack that none explains: never dropped."""


@dataclass(frozen=True, slots=True)
class Stacks:
    """The last stack is that of samples that have none. `row_of` says which stack an id means: the same stack has an id
    in every part that saw it, and is here once. Without it, ids are positions."""

    functions: tuple[Function, ...]
    flat: Int32s
    starts: Ints
    ends: Ints
    row_of: Ints | None = None
    looks: Looks | Copies | None = None
    """Which samples have other stacks than those they were taken with: python_frames.py, whole_frames.py."""

    @property
    def count(self) -> int:
        return len(self.starts)

    def rows_of(self, ids: Ints) -> Ints:
        """Stack ids, -1 among them, as positions here."""
        if self.row_of is None:
            return np.where((ids >= 0) & (ids < self.count - 1), ids, self.count - 1)
        known = (ids >= 0) & (ids < len(self.row_of))
        if known.all():
            return self.row_of[ids]
        rows = np.full(len(ids), self.count - 1, np.int64)
        rows[known] = self.row_of[ids[known]]
        return rows

    def of(self, row: int) -> list[Function]:
        return [self.functions[number] for number in self.flat[self.starts[row] : self.ends[row]].tolist()]

    def only(self, rows: Ints) -> Stacks:
        """These stacks alone, in this order, and the one of samples without a stack, which stays last."""
        rows = np.append(rows, self.count - 1)
        lengths = self.ends[rows] - self.starts[rows]
        ends = np.cumsum(lengths)
        at = np.arange(int(ends[-1])) + np.repeat(self.starts[rows] - (ends - lengths), lengths)
        return Stacks(self.functions, self.flat[at], ends - lengths, ends)

    def where(self, wanted: Sequence[bool]) -> Mask:
        """Stacks with at least one function for which `wanted` is true."""
        hits = np.concatenate([[0], np.cumsum(np.asarray(wanted, bool)[self.flat])])
        found: Mask = hits[self.ends] > hits[self.starts]
        return found

    def in_kernel(self) -> Mask:
        """Stacks whose innermost frame is the kernel's."""
        mask: Mask = self.which(is_kernel)[self.flat[self.ends - 1]]
        return mask

    def which(self, wanted: Callable[[Function], bool]) -> Mask:
        """The functions for which `wanted` is true. Only those on these stacks are asked: of a part's ten thousand
        functions a window has a few hundred."""
        used = np.flatnonzero(np.bincount(self.flat, minlength=len(self.functions)))
        mask = np.zeros(len(self.functions), bool)
        mask[used] = [wanted(self.functions[number]) for number in used.tolist()]
        return mask

    def idle(self) -> Mask:
        """Stacks of a core that had nothing to do. From the leaf outwards, the first known frame decides: the idle
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
        """The same stacks without leaves that only look hot; store/stacks.py says why."""
        skid = self.which(is_skid)
        ends = self.ends.copy()
        while True:
            cut = (ends - self.starts > 1) & skid[self.flat[ends - 1]]
            if not cut.any():
                return replace(self, ends=ends)
            ends[cut] -= 1


_IDLE = 1
IDLE_LEAVES = frozenset(
    {
        "pv_native_safe_halt", "native_safe_halt", "default_idle", "default_idle_call", "acpi_idle_do_entry",
        "acpi_safe_halt", "intel_idle", "intel_idle_irq", "intel_idle_ibrs", "mwait_idle", "mwait_idle_with_hints",
        "poll_idle", "cpuidle_poll", "cpu_do_idle", "arch_cpu_idle",
    }
)  # fmt: skip
"""Where a core halts. Callers show it better; this is for profiles that have none."""


def _halts(function: Function) -> bool:
    return function.kind in KERNEL_KINDS and function.name in IDLE_LEAVES


def _context(function: Function) -> int:
    return context_of(function.name) if function.kind in KERNEL_KINDS else 0


def is_kernel(function: Function) -> bool:
    return function.kind in KERNEL_KINDS


def is_skid(function: Function) -> bool:
    return function.kind in KERNEL_KINDS and function.name in SKID_LEAVES


def load(recording: Recording, spans: Iterable[Span], functions: Functions | None = None) -> Stacks:
    """Every stack that a sample in one of the windows may point to. `functions`: those of loads before this one, for
    whoever looks at many windows: names are made readable once."""
    functions, stacks = functions or Functions(), StackSet()
    stacks.add(np.array([0, 0], np.int32), _NONE, _NONE)  # number 0: the stack of samples that have none
    rows: list[tuple[int, Ints, Ints]] = []
    for part, frames, named in _dictionaries(recording, list(spans), functions):
        number_of = functions.of_part(part, frames)
        first, count = recording.first_id(part, "stack"), part.ids().get("stack", 0)
        for ids, chunk in _chunks(named):
            offsets, elements = columns.list_parts(chunk)
            numbers = np.frombuffer(stacks.add(offsets, _frame_ids(elements), number_of), np.int32)
            known = (ids >= 0) & (ids < count)
            rows.append((first + count, first + ids[known], numbers[known].astype(np.int64)))
    return _assemble(functions.all, stacks, rows)


def _dictionaries(
    recording: Recording, spans: Sequence[Span], functions: Functions
) -> Iterator[tuple[Part, pa.Table | None, pa.Table]]:
    """Frames, where their functions are not known yet, and stacks of each part that the windows touch, with the part's
    own ids."""
    parts = [part for part in recording.parts if any(part.touches(schema.STACKS, *span) for span in spans)]

    def read(part: Part) -> tuple[Part, pa.Table | None, pa.Table]:
        frames = None if functions.knows(part) else part.rows(schema.FRAMES, None, None, None)
        return part, frames, part.rows(schema.STACKS, None, None, None)

    if len(parts) <= _AHEAD:
        yield from map(read, parts)
        return
    from concurrent.futures import ThreadPoolExecutor

    # While one core adds up names, the other unpacks the next files; a few of them, or memory grows with the window.
    with ThreadPoolExecutor(1) as reader:
        waiting = deque(reader.submit(read, part) for part in parts[:_AHEAD])
        for part in [*parts[_AHEAD:], None]:
            if part is not None:
                waiting.append(reader.submit(read, part))
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _chunks(batch: pa.Table) -> Iterable[tuple[Ints, pa.Array]]:
    ids = columns.ids(batch.column("stack"))
    first = 0
    for chunk in batch.column("frames").chunks:
        if len(chunk):
            yield ids[first : first + len(chunk)], chunk
        first += len(chunk)


def _frame_ids(elements: pa.Array) -> Int32s:
    """-1 for a frame that is not known."""
    stored = np.frombuffer(elements.buffers()[1] or b"", np.int32)[elements.offset : elements.offset + len(elements)]
    return stored if elements.null_count == 0 else np.where(columns.present(elements), stored, np.int32(-1))


class Functions:
    """The functions of all parts, each once, as they are shown; number 0 is the unknown one."""

    def __init__(self) -> None:
        self._set = FunctionSet()
        self._numbers: dict[Function, int] = {}
        self._shown: list[int] = []  # two names of the linker may be one when they are shown
        self._of_parts: WeakKeyDictionary[Part, Int32s] = WeakKeyDictionary()  # a part does not change while it is open
        self.numbers(pa.table({"frame": columns.ints_array(np.zeros(1, np.int64), None, pa.int32()),
                               **{name: columns.text_array([None]) for name in Function._fields}}))  # fmt: skip

    @property
    def all(self) -> tuple[Function, ...]:
        return tuple(self._numbers)

    def knows(self, part: Part) -> bool:
        return part in self._of_parts

    def of_part(self, part: Part, frames: pa.Table | None) -> Int32s:
        """As `numbers`, of all frames of a part; those are needed the first time."""
        if frames is not None:
            self._of_parts[part] = self.numbers(frames)
        return self._of_parts[part]

    def numbers(self, frames: pa.Table) -> Int32s:
        """Frame id -> number of its function."""
        ids = columns.ids(frames.column("frame"))
        texts = [columns.text_parts(frames.column(name)) for name in Function._fields]
        found, new = self._set.add(len(frames), *texts)
        if new:
            said = columns.take(frames, np.array(new, np.int64))
            for row in zip(*(columns.texts(said.column(name)) for name in Function._fields), strict=True):
                self._shown.append(self._numbers.setdefault(_shown(*row), len(self._numbers)))
        number_of = np.zeros(int(ids.max(initial=-1)) + 1, np.int32)
        shown = np.array(self._shown, np.int32)[np.frombuffer(found, np.int32)] if len(ids) else _NONE
        number_of[ids[ids >= 0]] = shown[ids >= 0]
        return number_of


def _shown(name: str | None, module: str | None, kind: str | None) -> Function:
    return Function(demangle(name) if name else "?", module or None, kind or "unknown")


def _assemble(functions: tuple[Function, ...], stacks: StackSet, rows: list[tuple[int, Ints, Ints]]) -> Stacks:
    """Number 0, the stack of samples that have none, goes to the end."""
    starts, flat = (np.frombuffer(found, kind) for found, kind in zip(stacks.runs(), (np.int64, np.int32), strict=True))
    last = len(stacks) - 1
    row_of = np.full(max((behind for behind, _, _ in rows), default=0), last, np.int64)
    for _, ids, numbers in rows:
        row_of[ids] = np.where(numbers > 0, numbers - 1, last)
    return Stacks(functions, flat, np.roll(starts[:-1], -1), np.roll(starts[1:], -1), row_of)


def joined(first: Stacks, second: Stacks) -> Stacks:
    """The stacks of two recordings side by side: those of the first keep their ids, those of the second come after,
    samples without a stack stay last. A function that both have is one."""
    number_of = {function: number for number, function in enumerate(first.functions)}
    moved = np.array([number_of.setdefault(function, len(number_of)) for function in second.functions], np.int32)
    shift, last = len(first.flat), first.count + second.count - 2
    return Stacks(
        tuple(number_of),
        np.concatenate([first.flat, moved[second.flat]]),
        np.concatenate([first.starts[:-1], second.starts[:-1] + shift, first.starts[-1:]]),
        np.concatenate([first.ends[:-1], second.ends[:-1] + shift, first.ends[-1:]]),
        None if first.row_of is None else np.where(first.row_of == first.count - 1, last, first.row_of),
        first.looks,
    )


def in_front(counts: Ints, second: Stacks) -> Ints:
    """Counts of the first of two recordings as counts of their joined stacks."""
    return np.concatenate([counts[:-1], np.zeros(second.count - 1, np.int64), counts[-1:]])


def behind(first: Stacks, counts: Ints) -> Ints:
    """Counts of the second of two recordings as counts of their joined stacks."""
    return np.concatenate([np.zeros(first.count - 1, np.int64), counts])
