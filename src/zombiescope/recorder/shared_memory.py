"""How full /dev/shm is, of the node and of each container, and who was killed by SIGBUS for it.

A DataLoader of PyTorch passes its batches through files in /dev/shm. Docker gives a container 64 MB of it, a pod has as
much unless an emptyDir of medium Memory is mounted there; who touches a page for which there is no room gets SIGBUS,
and no line of any log says why.

Sources: statvfs of /proc/PID/root/dev/shm of one process per container, every EVERY_S seconds in a thread, as a path
may lie on a disk that hangs; the tracepoint signal:signal_generate, filtered to SIGBUS in the kernel. Needs
CAP_SYS_PTRACE for containers; without it only the node's own. A row is written where half is in use, or was.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from zombiescope.base.text import printable
from zombiescope.kernel.procfile import at, read_file
from zombiescope.recorder.tick import Tick
from zombiescope.recorder.tracepoints import Fields, Tracepoint, TraceRecord
from zombiescope.store.container_names import SHORT_ID
from zombiescope.store.event import Event

EVERY_S = 10.0
MOST = 128
WORTH_RATIO = 0.5
NODE = "node"
SIGBUS = 7
_NOT_THERE, _BROKEN = 2, (4, 5)
"""si_code BUS_ADRERR; BUS_MCEERR_AR and _AO: memory is broken, which the kernel's log says better."""

Gauge = Callable[[int, str, str, str | None, int], None]
Places = Callable[[], Sequence[tuple[str, str]]]


class Room(NamedTuple):
    used: int
    size: int
    device: int


def room(path: str) -> Room | None:
    """Of the mount at a path; None where there is none of its own."""
    try:
        here, above = os.stat(path), os.stat(os.path.dirname(os.path.dirname(path)) or "/")  # noqa: PTH116, PTH120
        found = os.statvfs(path)
    except OSError:
        return None
    if here.st_dev == above.st_dev or not found.f_blocks:
        return None
    return Room((found.f_blocks - found.f_bfree) * found.f_frsize, found.f_blocks * found.f_frsize, here.st_dev)


class SharedMemory:
    """`places`: (container, its cgroup directory) of those that live; `gauge` takes levels."""

    def __init__(self, gauge: Gauge, places: Places, root: str = "/") -> None:
        self._gauge, self._places, self._root = gauge, places, root
        self._wanted: list[tuple[str, str]] | None = None
        self._answer: dict[str, Room] | None = None
        self._told: set[str] = set()
        self._due_s = 0.0
        self._wake = threading.Event()
        self._stopped = False
        self._failure: Exception | None = None
        threading.Thread(target=self._work, name="shm", daemon=True).start()

    def tracepoint(self) -> Tracepoint:
        return Tracepoint("signal", "signal_generate", self._signalled, f"sig == {SIGBUS}")

    def _signalled(self, record: TraceRecord, fields: Fields, wall_us: int) -> list[Event]:
        raw = record.raw
        code, pid, comm = fields["code"].number(raw), fields["pid"].number(raw), printable(fields["comm"].text(raw))
        if code != _NOT_THERE:
            return []  # broken memory, a program's own bug (alignment), or a person's kill -BUS
        self._due_s = 0.0  # a look at once: the files of the one that dies are removed soon
        text = f"{comm} (pid {pid}) was killed by SIGBUS: no room for a page of shared memory, or a mapped file was cut"
        return [Event(wall_us, "sigbus", "tracepoint", "warning", text, {"comm": comm, "pid": pid})]

    def tick(self, tick: Tick) -> None:
        """Takes what was read, and asks for the next reading; while one hangs there is none."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        answer, self._answer = self._answer, None
        for key, found in (answer or {}).items():
            if found.used >= WORTH_RATIO * found.size or key in self._told:
                self._told.add(key)
                self._gauge(tick.wall_us, "shm", "used_bytes", key, found.used)
                self._gauge(tick.wall_us, "shm", "size_bytes", key, found.size)
        now_s = time.monotonic()
        if self._wanted is None and now_s >= self._due_s:
            self._due_s = now_s + EVERY_S
            self._wanted = list(self._places())[:MOST]
            self._wake.set()

    def _work(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._stopped:
                return
            try:
                self._answer = self._read(self._wanted or [])
            except Exception as error:  # noqa: BLE001 - raised again in the loop
                self._failure = error
            self._wanted = None

    def _read(self, wanted: list[tuple[str, str]]) -> dict[str, Room]:
        """By container; one that shares its mount with another, or with the node, is read once."""
        found: dict[str, Room] = {}
        own = room(at(self._root, "dev/shm"))
        if own is not None:
            found[NODE] = own
        seen = {one.device for one in found.values()}
        for container, directory in wanted:
            pid = next(iter((read_file(f"{directory}/cgroup.procs") or b"").split()), None)
            there = None if pid is None else room(at(self._root, f"proc/{pid.decode('ascii', 'replace')}/root/dev/shm"))
            if there is not None and there.device not in seen:
                seen.add(there.device)
                found[container[:SHORT_ID]] = there
        return found

    def close(self) -> None:
        self._stopped = True
        self._wake.set()
