"""Closer looks at suspects that the live diagnosis knows no pattern for, on their way into the recording.

A look follows the system calls of one process for a second at most; the reader (closer_look_reader.py) takes it, and
its words are checked here. Rows go to the table `closer_looks`, and the live diagnosis then looks again. There is one
look in EVERY_US, one at the same process in AGAIN_US, and at most MOST_AN_HOUR; a suspect beyond that is left alone.

Cost: a recorded system call costs its thread some 1.3 us, so a look costs the suspect 4 MB of rings, 25,000 calls, and
some tens of milliseconds; the reader some 0.1 s of CPU and, while it lives, 25 MB. It ends after IDLE_US."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from zombiescope.recorder.python_process import PythonProcess
from zombiescope.recorder.sources import Sources
from zombiescope.store import schema
from zombiescope.store.batch import Batch
from zombiescope.store.event import Event

SOURCE = "closer looks"
READER = "closer look reader"
MODULE = "zombiescope.recorder.closer_look_reader"
EVERY_US, AGAIN_US = 10_000_000, 600_000_000
MOST_AN_HOUR = 30
IDLE_US = 60_000_000
HOUR_US = 3_600_000_000
OLDEST_US = 30_000_000
MOST_CALLS = 16
MOST_TEXT = 300
MOST_KNOWN = 256
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-, ")

Suspect = tuple[int, int]
"""A process: its number, and when it started, in clock ticks since the boot."""


class CloserLooks:
    """`wall_us`: from the monotonic clock, in ns, to Unix time."""

    def __init__(self, batch: Batch, sources: Sources, wall_us: Callable[[int], int], *, enabled: bool = True) -> None:
        self.process = PythonProcess(MODULE, READER)
        self.tell: Callable[[Event], None] = lambda _: None
        self.done: Callable[[int], None] = lambda _: None
        """Told of the time since which there is something to diagnose again."""
        self.taken = 0
        self._batch, self._sources, self._wall_us, self._enabled = batch, sources, wall_us, enabled
        if not enabled:
            self.process.pulse.is_off("switched off (--no-closer-looks)")
        self._waiting: list[Suspect] = []
        self._looked: dict[Suspect, int] = {}
        self._asked_us = 0
        self._is_asked = False

    def suspect(self, suspects: Iterable[Suspect], now_us: int) -> None:
        """Whom a diagnosis could not explain."""
        if not self._enabled:
            return
        for one in suspects:
            known = now_us - self._looked.get(one, -AGAIN_US) < AGAIN_US
            if not known and one not in self._waiting and len(self._waiting) < MOST_CALLS:
                self._waiting.append(one)

    def second(self, now_us: int) -> None:
        """Listens, and says at whom to look next. Raises OSError."""
        if not self._enabled:
            return
        for said in self.process.listen():
            self._is_asked = False
            self._understand(said, now_us)
        lately = sum(now_us - at_us < HOUR_US for at_us in self._looked.values())
        is_due = now_us - self._asked_us >= EVERY_US
        if self._waiting and is_due and lately < MOST_AN_HOUR:
            self._ask(self._waiting[0], now_us)
        elif not self._is_asked and now_us - self._asked_us > IDLE_US:
            self.process.let_go()

    def _ask(self, one: Suspect, now_us: int) -> None:
        self._asked_us = now_us
        self.process.tell(now_us, {"pid": one[0], "start_ticks": one[1]})
        if not self.process.running:
            return
        self._waiting.remove(one)
        self._is_asked = True
        if len(self._looked) >= MOST_KNOWN:
            del self._looked[min(self._looked, key=lambda each: self._looked[each])]
        self._looked[one] = now_us

    def _understand(self, said: dict[str, Any], now_us: int) -> None:
        pid, start_ticks = _count(said.get("pid")), _count(said.get("start_ticks"))
        begin_us, time_us = (self._wall_us((_count(said.get(key)) or 0) * 1000) for key in ("began_us", "ended_us"))
        if pid is None or not now_us - OLDEST_US <= begin_us <= time_us <= now_us + OLDEST_US:
            return
        self.taken += 1
        why, comm = _text(said.get("why")), _text(said.get("comm"))
        self._note(why, now_us)
        who = (time_us, begin_us, pid, start_ticks, comm)
        calls = said.get("calls")
        rows = [row for row in calls[:MOST_CALLS] if isinstance(row, list)] if isinstance(calls, list) else []
        whole = (
            why, _count(said.get("threads")), _plain(said.get("state")), _plain(said.get("wchan")),
            _text(said.get("file")), _count(said.get("line")), _text(said.get("function")),
        )  # fmt: skip
        per_s = _count(said.get("calls_per_s"))
        self._batch.add(
            schema.CLOSER_LOOKS,
            (*who, *whole, None, None, None, None if per_s is None else per_s * 1000, *[None] * 6),
        )
        self._batch.extend(schema.CLOSER_LOOKS, [(*who, *made) for row in rows if (made := _call(row)) is not None])
        self.tell(_event(time_us, pid, comm, why, rows))
        self.done(begin_us)

    def _note(self, why: str | None, now_us: int) -> None:
        if why is not None and why.startswith("system calls were not followed"):
            self._sources.lacks(SOURCE, why, _GRANT, now_us)
        elif not why:
            self._sources.has(SOURCE, now_us)


def _event(time_us: int, pid: int, comm: str | None, why: str | None, rows: list[list[Any]]) -> Event:
    """So that whoever reads the recording knows which looks were taken."""
    names = list(dict.fromkeys(name for row in rows if (name := _plain(row[0])) is not None))[:4] if rows else []
    said = f": {', '.join(names)}" if names else ": no system calls"
    text = f"looked closer at {comm or 'a process'} (pid {pid}){said}" + (f" ({why})" if why else "")
    return Event(time_us, "closer_look", "recorder", "info", text, {"pid": pid, "comm": comm, "why": why})


_GRANT = (
    "AmbientCapabilities=CAP_PERFMON CAP_SYS_PTRACE CAP_DAC_READ_SEARCH in its unit, a kernel with "
    "CONFIG_FTRACE_SYSCALLS, and tracefs mounted; or run it as root"
)


def _call(row: list[Any]) -> tuple[Any, ...] | None:
    """A row of one call; None for what is in no shape of ours."""
    if len(row) != 11 or _plain(row[0]) is None:
        return None
    name, what, count, per_s, took, longest, total, bytes_, failed, error, users = row
    return (
        None, _count(users), None, None, None, None, None, _plain(name), _text(what), _count(count), _count(per_s),
        _count(took), _count(longest), _count(total), _count(bytes_), _count(failed), _plain(error),
    )  # fmt: skip


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62 else None


def _text(value: object) -> str | None:
    return value[:MOST_TEXT].encode(errors="replace").decode() if isinstance(value, str) and value else None


def _plain(value: object) -> str | None:
    """A word of the kernel."""
    return value[:100] if isinstance(value, str) and value and set(value) <= _PLAIN else None
