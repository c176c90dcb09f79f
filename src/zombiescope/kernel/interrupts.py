"""/proc/interrupts: how often each interrupt ran on each CPU, and which device asked for it.

Rows: one per interrupt ("24: counts chip hwirq-type actions") and one per architecture counter ("TLB:
counts TLB shootdowns"). Columns: the *online* CPUs, named by the header, so that a hotplug changes it.
Counters are 32 bits wide and wrap. ERR and MIS have one number and no column.

Cost: at 192 CPUs a row has about 2 kB and there are hundreds, of which a second changes few. Interrupts
therefore compares each row with the one before as bytes and takes apart only those that differ.

A row that appears counts from zero: the kernel shows an interrupt as soon as it has an owner or a count.
Absence: only without procfs.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import compress
from operator import ne

from zombiescope.kernel.procfile import at, number, read_file
from zombiescope.kernel.softirqs import header_cpus

WRAP = 1 << 32
NO_CPU = -1
"""The cpu of a row that counts for the whole machine (ERR, MIS)."""

_TRIGGER = re.compile(rb"(?:^|[\s-])(?:edge|level|fasteoi)$", re.I)


@dataclass(frozen=True, slots=True)
class InterruptRow:
    counts: tuple[int, ...]
    device: str
    """The owners' names for an interrupt ("eth0-Tx-Rx-3"), the description of an architecture counter."""


@dataclass(frozen=True, slots=True)
class InterruptTable:
    cpus: tuple[int, ...]
    rows: dict[str, InterruptRow]


def _label(line: bytes) -> bytes:
    return line.partition(b":")[0].strip()


def _device(text: bytes) -> str:
    # Chip and trigger are padded columns; only the owners follow two spaces at the end.
    name = text.strip().rpartition(b"  ")[2].strip()
    return "" if _TRIGGER.search(name) else name.decode("utf-8", "replace")


def _split(line: bytes, columns: int) -> tuple[list[bytes], bytes]:
    """The count fields and the text after them."""
    fields = line.split(None, columns + 1)[1:]
    width = next((i for i, field in enumerate(fields) if not field.isdigit()), len(fields))
    width = min(width, columns)
    return fields[:width], b" ".join(fields[width:])


def parse(data: bytes) -> InterruptTable:
    """What is whole in the file's text."""
    header, *lines = data[: data.rfind(b"\n") + 1].split(b"\n")
    cpus = header_cpus(header)
    rows: dict[str, InterruptRow] = {}
    for line in lines:
        fields, text = _split(line, len(cpus))
        counts = tuple(count for field in fields if (count := number(field)) is not None)
        if b":" in line and counts:
            rows[_label(line).decode("ascii", "replace")] = InterruptRow(counts, _device(text))
    return InterruptTable(cpus, rows)


def read(root: str = "/") -> InterruptTable | None:
    data = read_file(at(root, "proc/interrupts"))
    return None if data is None else parse(data)


def _difference(before: bytes, after: bytes) -> int:
    was, now = number(before), number(after)
    if was is None or now is None:
        return 0
    if now >= was:
        return now - was
    return now + WRAP - was if was < WRAP and was - now > WRAP // 2 else now


class Interrupts:
    """The rows as they were at the last update, so that the next one costs only what changed."""

    __slots__ = ("_cpus", "_lines", "_of_label")

    def __init__(self) -> None:
        self._cpus: tuple[int, ...] = ()
        self._lines: list[bytes] = []
        self._of_label: dict[bytes, bytes] = {}

    def update(self, data: bytes) -> list[tuple[str, int, int]]:
        """(label, cpu, count since the last update) where it is not 0; nothing the first time."""
        lines = data[: data.rfind(b"\n") + 1].split(b"\n")
        same_columns = bool(self._lines) and lines[0] == self._lines[0]
        if same_columns:
            changed = [new for old, new in zip(self._lines, lines, strict=False) if old != new]
            changed += lines[len(self._lines) :]
        else:
            changed = lines[1:]
        cpus = header_cpus(lines[0])
        deltas = self._deltas(changed, cpus) if self._lines else []
        self._remember(lines, cpus, changed if same_columns and len(lines) == len(self._lines) else None)
        return deltas

    def _deltas(self, changed: Iterable[bytes], cpus: tuple[int, ...]) -> list[tuple[str, int, int]]:
        deltas: list[tuple[str, int, int]] = []
        for line in changed:
            label = _label(line)
            old = self._of_label.get(label, b"")
            if old != line and label:
                deltas += self._row_deltas(label.decode("ascii", "replace"), old, line, cpus)
        return deltas

    def _row_deltas(self, label: str, old: bytes, new: bytes, cpus: tuple[int, ...]) -> list[tuple[str, int, int]]:
        after = new.split(None, len(cpus) + 1)[1:]
        if len(after) == 1:
            before = old.split()[1:] or [b"0"]
            delta = _difference(before[0], after[0])
            return [(label, NO_CPU, delta)] if delta else []
        pairs = self._columns(old, after, cpus)
        found = [(label, cpu, _difference(was, now)) for cpu, was, now in pairs]
        return [row for row in found if row[2]]

    def _columns(self, old: bytes, after: list[bytes], cpus: tuple[int, ...]) -> Iterable[tuple[int, bytes, bytes]]:
        """(cpu, before, after) where they differ; a CPU that came online has nothing to be compared with."""
        if not old:
            return ((cpu, b"0", now) for cpu, now in zip(cpus, after, strict=False))
        before = old.split(None, len(self._cpus) + 1)[1:]
        if cpus == self._cpus:
            return compress(zip(cpus, before, after, strict=False), map(ne, before, after))
        was_of = dict(zip(self._cpus, before, strict=False))
        return ((cpu, was_of[cpu], now) for cpu, now in zip(cpus, after, strict=False) if cpu in was_of)

    def _remember(self, lines: list[bytes], cpus: tuple[int, ...], changed: list[bytes] | None) -> None:
        known = self._of_label
        labels = None if changed is None else [_label(line) for line in changed]
        if changed is None or labels is None or any(label not in known for label in labels):
            self._of_label = {_label(line): line for line in lines[1:]}
        else:
            known.update(zip(labels, changed, strict=True))
        self._lines = lines
        self._cpus = cpus

    def counters(self) -> dict[str, str]:
        """Label -> description of the rows that count for the architecture (TLB, CAL, RES), as of the last update.
        Which there are differs: arm64 has IPI0 to IPI6, and none for TLB shootdowns."""
        named = ((label, line) for label, line in self._of_label.items() if label and not label[:1].isdigit())
        split = ((label, _split(line, len(self._cpus))[1]) for label, line in named)
        return {label.decode("ascii", "replace"): _device(text) for label, text in split}

    def devices(self) -> dict[str, str]:
        """Label -> the owners' names or the description, as of the last update."""
        columns = len(self._cpus)
        split = ((label, _split(line, columns)[1]) for label, line in self._of_label.items() if label)
        return {label.decode("ascii", "replace"): _device(text) for label, text in split}
