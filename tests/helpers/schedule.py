"""Rings of scheduling tracepoints as the kernel writes them backward, made record by record; and rows of a snapshot."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from tests.helpers.made import Node
from zombiescope.kernel import schedule

IDS = {kind: 100 + kind for kind in range(1, 10)}
NO = 0xFFFF
FORMS = {
    schedule.SWITCH: (24, 56, 32, 8, 8, 16, 40, 0),
    schedule.WAKEUP: (24, 32, NO, 0, 8, 16, NO, 0),
    schedule.MIGRATE: (24, 36, NO, 0, 8, 16, NO, 0),
    schedule.RAISE: (8, NO, NO, 0, NO, 0, NO, 0),
    schedule.ENTRY: (8, NO, NO, 0, NO, 0, NO, 0),
    schedule.EXIT: (8, NO, NO, 0, NO, 0, NO, 0),
    schedule.IRQ_ENTRY: (8, NO, NO, 0, 12, 4, NO, 1),
    schedule.IRQ_EXIT: (8, NO, NO, 0, NO, 0, NO, 0),
    schedule.POLL: (NO, NO, NO, 0, 16, 4, NO, 1),
}
"""Places of Linux 6.18."""


def form(kind: int) -> bytes:
    *places, dynamic = FORMS[kind]
    return struct.pack("<7HBB", *places, kind, dynamic)


@dataclass
class Ring:
    """Records in the order of time; `data` is what the memory of the ring holds, and `head` its data_head."""

    bytes_: int = 1 << 16
    records: list[bytes] = field(default_factory=list)
    names: dict[int, bytes] = field(default_factory=dict)

    def name(self, tid: int) -> bytes:
        return self.names.get(tid, b"task%d" % tid)[:15].ljust(16, b"\0")

    def record(self, kind: int, at_ns: int, raw: bytes, *, tid: int, interrupt: bool = False) -> None:
        common = struct.pack("<HBBi", kind, 0x08 if interrupt else 0, 0, tid)
        raw = common + raw
        raw += b"\0" * (-(len(raw) + 4) % 8)
        size = 36 + len(raw)
        head = struct.pack("<IHHQIIQI", 9, 0, size, IDS[kind], tid, tid, at_ns, len(raw))
        self.records.append(head + raw)

    def switch(self, at_ns: int, before: int, after: int, *, sleeps: bool = False) -> None:
        state = 1 if sleeps else 0
        raw = self.name(before) + struct.pack("<iiq", before, 120, state) + self.name(after)
        self.record(schedule.SWITCH, at_ns, raw + struct.pack("<ii", after, 120), tid=before)

    def wakeup(self, at_ns: int, tid: int, cpu: int, *, by: int, interrupt: bool = False) -> None:
        raw = self.name(tid) + struct.pack("<iii", tid, 120, cpu)
        self.record(schedule.WAKEUP, at_ns, raw, tid=by, interrupt=interrupt)

    def migrate(self, at_ns: int, tid: int, from_cpu: int, to_cpu: int, *, by: int) -> None:
        raw = self.name(tid) + struct.pack("<iiii", tid, 120, from_cpu, to_cpu)
        self.record(schedule.MIGRATE, at_ns, raw, tid=by)

    def softirq(self, kind: int, at_ns: int, vector: int, *, tid: int) -> None:
        self.record(kind, at_ns, struct.pack("<I", vector), tid=tid)

    def irq(self, at_ns: int, number: int, name: bytes, *, tid: int) -> None:
        text = name + b"\0"
        self.record(schedule.IRQ_ENTRY, at_ns, struct.pack("<iI", number, 16 | len(text) << 16) + text, tid=tid)

    def irq_ends(self, at_ns: int, number: int, *, tid: int) -> None:
        self.record(schedule.IRQ_EXIT, at_ns, struct.pack("<ii", number, 1), tid=tid)

    def poll(self, at_ns: int, device: bytes, *, tid: int) -> None:
        text = device + b"\0"
        raw = struct.pack("<QIii", 0, 28 | len(text) << 16, 1, 64) + text
        self.record(schedule.POLL, at_ns, raw, tid=tid)

    @property
    def head(self) -> int:
        return -sum(map(len, self.records)) & (1 << 64) - 1

    @property
    def data(self) -> bytes:
        memory = bytearray(self.bytes_)
        at = 0
        for record in self.records:
            at -= len(record)
            for place, byte in enumerate(record):
                memory[(at + place) % self.bytes_] = byte
        return bytes(memory)


def ran(node: Node, cpu: int, task: int, from_us: int, to_us: int, open_: int = 0) -> None:
    node.add("schedule", time=to_us, begin=from_us, cpu=cpu, kind="run", task=task, open=open_)


def waited(node: Node, cpu: int, task: int, from_us: int, to_us: int, **more: int) -> None:
    node.add("schedule", time=to_us, begin=from_us, cpu=cpu, kind="wait", task=task, **{"open": 0, **more})


def softirq_waited(node: Node, cpu: int, vector: int, from_us: int, to_us: int, name: str | None = None) -> None:
    node.add("schedule", time=to_us, begin=from_us, cpu=cpu, kind="softirq wait", vector=vector, name=name, open=0)


def watched(node: Node, cpu: int, from_us: int, to_us: int) -> None:
    node.add("schedule", time=to_us, begin=from_us, cpu=cpu, kind="reach", name="alarm", open=0)
