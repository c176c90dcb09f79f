"""Stacks that the kernel printed into its log when a core did not come back, and whose they are.

A soft lockup prints the stack of the core that is stuck. An RCU stall is noticed by one core ("detected by 2") and
caused by another: what counts is the `NMI backtrace for cpu 5` or the task that is listed, not who printed it. A stack
that ends in a spinlock's slow path is a victim's: whoever holds the lock is elsewhere, perhaps in the next block.

Lines are read as x86 and arm64 print them, from 3.10 on. Names in them are other people's: a command name may hold
anything, so it is taken up to the field that follows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from zombiescope.store.event import Event

MOST_FRAMES = 24
MOST_BLOCKS = 16
MOST_LINES = 4000
_WHO = re.compile(r"CPU: (?P<cpu>\d{1,5}) (?:UID: \d{1,10} )?PID: (?P<pid>\d{1,10}) Comm: (?P<comm>.{0,64}?) "
                  r"(?:Tainted:|Not tainted|Kdump:)")  # fmt: skip
_NMI = re.compile(r"NMI backtrace for cpu (?P<cpu>\d{1,5})")
_TASK = re.compile(r"task:(?P<comm>.{1,64}?)\s+state:\S.{0,40}?pid:\s*(?P<pid>\d{1,10})\b")
_AT = re.compile(r"(?:RIP: [0-9a-f]{4}:|pc : )(?:\[<[0-9a-f]{1,16}>\]\s{1,4}){0,2}(?P<name>[\w.]+)\+0x")
_FRAME = re.compile(r"\s*(?:\[<[0-9a-f]+>\]\s+)?(?P<unsure>\? )?(?P<name>[A-Za-z_][\w.]*)\+0x[0-9a-f]+/0x[0-9a-f]+")
_WAITS = re.compile(r"spin_lock_slowpath|rwlock_slowpath|_raw_spin_lock|osq_lock|multi_cpu_stop|smp_call_function")


@dataclass(slots=True)
class PrintedStack:
    """Innermost function first. `cpu`, `comm` and `pid` as far as the block says them."""

    at_us: int
    cpu: int | None = None
    comm: str | None = None
    pid: int | None = None
    frames: list[str] = field(default_factory=list)

    @property
    def waits(self) -> bool:
        """It spins for a lock, or for another core."""
        return any(_WAITS.search(name) for name in self.frames[:2])

    @property
    def path(self) -> str:
        return " <- ".join(self.frames[:6])


def printed(events: Iterable[Event], from_us: int, to_us: int) -> list[PrintedStack]:
    """The blocks of a span, in the order in which they were printed; those without a single function are left out."""
    lines = [one for one in events if from_us <= one.at_us <= to_us and one.kind in ("kernel_log", "kernel_warning")]
    return [block for block in _blocks(lines[:MOST_LINES]) if block.frames][:MOST_BLOCKS]


def _blocks(lines: Iterable[Event]) -> Iterator[PrintedStack]:
    block: PrintedStack | None = None
    for line in lines:
        begun = _begun(line, block)
        if begun is not None and begun is not block:
            if block is not None:
                yield block
            block = begun
        if block is not None and len(block.frames) < MOST_FRAMES:
            _add(block, line.text)
    if block is not None:
        yield block


def _begun(line: Event, block: PrintedStack | None) -> PrintedStack | None:
    """The block that a line begins; the same one where it only says more about it."""
    if match := _NMI.search(line.text):
        return PrintedStack(line.at_us, int(match["cpu"]))
    if match := _TASK.search(line.text):
        return PrintedStack(line.at_us, None, match["comm"], int(match["pid"]))
    match = _WHO.search(line.text)
    if match is None:
        return None
    cpu = int(match["cpu"])
    if block is not None and not block.frames and block.cpu in (None, cpu):
        block.cpu, block.comm, block.pid = cpu, match["comm"], int(match["pid"])
        return block
    return PrintedStack(line.at_us, cpu, match["comm"], int(match["pid"]))


def _add(block: PrintedStack, text: str) -> None:
    at = _AT.search(text)
    frame = None if at else _FRAME.match(text)
    name = at["name"] if at else frame["name"] if frame and not frame["unsure"] else None
    if name is not None and (not block.frames or block.frames[-1] != name):
        block.frames.append(name)


def culprit(stacks: list[PrintedStack], cpu: int | None) -> PrintedStack | None:
    """Of the stacks of one report the one that keeps the others waiting: that of the core in question, unless it waits
    itself and another does not."""
    named = [one for one in stacks if one.cpu == cpu and cpu is not None] or stacks[:1]
    if not named:
        return None
    busy = [one for one in stacks if not one.waits and not _is_idle(one)]
    return named[0] if not named[0].waits or not busy else busy[0]


def _is_idle(one: PrintedStack) -> bool:
    return (one.comm or "").startswith("swapper") or any("idle" in name for name in one.frames[:3])
