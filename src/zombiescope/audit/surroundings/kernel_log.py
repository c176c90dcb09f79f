"""What the kernel log still holds since boot: resets of network cards, lockups, stalls, OOM kills.

The kernel keeps its log in a ring; what was written over is counted, not guessed. Needs the right to read /dev/kmsg.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from zombiescope.kernel.kmsg import KmsgReader
from zombiescope.kernel.log_formats import event_of

KINDS = frozenset({"nic_reset", "nic_tx_timeout", "soft_lockup", "hard_lockup", "rcu_stall", "hung_task", "oom_kill"})
_FROM_THE_FIRST = -1
_READS = 200


@dataclass(frozen=True, slots=True)
class LogKind:
    """Lines of one kind; the newest of them as text, and when it was written."""

    kind: str
    count: int
    last_us: int
    text: str


@dataclass(frozen=True, slots=True)
class LogSinceBoot:
    """`overwritten`: older lines that the log no longer holds."""

    kinds: tuple[LogKind, ...]
    lines: int
    overwritten: int


def read(path: str = "/dev/kmsg") -> LogSinceBoot | str:
    """The log, or why it cannot be read."""
    try:
        reader = KmsgReader(path, after_seq=_FROM_THE_FIRST)
    except OSError as error:
        return f"{path}: {error.strerror}"
    offset_us = (time.time_ns() - time.monotonic_ns()) // 1000
    found: dict[str, LogKind] = {}
    lines = overwritten = 0
    try:
        for _ in range(_READS):
            records, lost = reader.read()
            overwritten += lost
            lines += len(records)
            for record in records:
                event = event_of(record)
                if event is not None and event.kind in KINDS:
                    count = found[event.kind].count + 1 if event.kind in found else 1
                    found[event.kind] = LogKind(event.kind, count, (record.time_us or 0) + offset_us, event.text)
            if not records:
                break
    except OSError as error:
        return f"{path}: {error.strerror}"
    finally:
        reader.close()
    return LogSinceBoot(tuple(sorted(found.values(), key=lambda one: -one.last_us)), lines, overwritten)
