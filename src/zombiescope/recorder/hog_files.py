"""What a task that fills a core in the kernel asks for: how many system calls a second, and which files it works on.

Stacks say which system call it is and not how often, nor on what. So whoever had 0.4 of a core in the kernel for two
seconds is looked at for LOOK_S, in a thread: the tracepoint raw_syscalls:sys_enter is counted for that one task (no
record is written), /proc/PID/io gives reads and writes, and of /proc/PID/fd those count that were opened meanwhile or
whose position in fdinfo moved.

Cost: while it counts, every system call of the node takes about 100 ns more; a look every EVERY_S at most, and one a
minute for each process. Files need CAP_SYS_PTRACE, calls CAP_PERFMON; what may not be seen is left out.
"""

from __future__ import annotations

import fcntl
import os
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from zombiescope._native import perf_event_open
from zombiescope.base.secrets import mask_text
from zombiescope.base.text import printable
from zombiescope.kernel import perf_event, tracefs
from zombiescope.kernel.procfile import at, names_in, read_file, read_link
from zombiescope.recorder.sample_writer import TaskShare
from zombiescope.store.event import Event

KIND = "hog_files"
LOOK_S = 0.5
STEPS = 20
EVERY_S = 5.0
AGAIN_S = 60.0
KERNEL_RATIO = 0.4
IN_A_ROW = 2
MOST_FDS = 256
MOST_FILES = 4
MOST_KNOWN = 1024
_WITHOUT_PLACE = ("/dev/", "socket:[")
_UNTOLD = ("/dev/null", "/dev/zero", "/dev/pts/", "pipe:[")


class Found(NamedTuple):
    pid: int
    tid: int
    comm: str
    seconds: float
    calls: int | None
    reads: int | None
    writes: int | None
    files: tuple[str, ...]
    devices: tuple[str, ...] = ()
    """What it has open that has no position: devices and sockets. It may work on one of these."""

    def event(self, at_us: int) -> Event:
        rates = {
            name: round(count / self.seconds)
            for name, count in (("calls_per_s", self.calls), ("reads_per_s", self.reads), ("writes_per_s", self.writes))
            if count is not None
        }
        often = f"{rates['calls_per_s']:,} system calls a second" if "calls_per_s" in rates else "system calls"
        on = f", on {', '.join(self.files)}" if self.files else ""
        if not self.files and self.devices:
            on = f"; it has {', '.join(self.devices)} open"
        fields = {"pid": self.pid, "tid": self.tid, "comm": self.comm, **rates, "files": list(self.files)}
        fields["open"] = list(self.devices)
        return Event(at_us, KIND, "procfs", "info", f"{self.comm} (pid {self.pid}) makes {often}{on}", fields)


class HogFiles:
    """`tell` takes events. One thread that looks; while it is at work nobody else is."""

    def __init__(self, root: str = "/", *, enabled: bool = True) -> None:
        self.tell: Callable[[Event], None] = lambda _: None
        self._root = root
        self._enabled = enabled and root == "/"
        self._streak: dict[int, int] = {}
        self._looked_s: dict[int, float] = {}
        self._due_s = 0.0
        self._asked: queue.Queue[tuple[int, int] | None] = queue.Queue(1)
        self._found: queue.Queue[Found] = queue.Queue()
        self._is_busy = False
        self._failure: Exception | None = None
        if self._enabled:
            threading.Thread(target=self._work, name="hog files", daemon=True).start()

    def hot(self, shares: Iterable[TaskShare], hz: int, now_us: int) -> None:
        """What tasks had of the CPU in the last second. Raises once what the last look raised."""
        if not self._enabled:
            return
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        kernel: dict[int, tuple[int, int]] = {}
        for share in shares:
            if share.pid and share.kernel > kernel.get(share.pid, (0, 0))[0]:
                kernel[share.pid] = share.kernel, share.tid or share.pid
        hot = {pid: tid for pid, (samples, tid) in kernel.items() if samples >= KERNEL_RATIO * hz}
        self._streak = {pid: self._streak.get(pid, 0) + 1 for pid in hot}
        now_s = time.monotonic()
        if not self._is_busy and now_s >= self._due_s:
            for pid in sorted(hot, key=lambda one: -kernel[one][0]):
                if self._streak[pid] >= IN_A_ROW and now_s - self._looked_s.get(pid, -AGAIN_S) >= AGAIN_S:
                    self._ask(pid, hot[pid], now_s)
                    break
        while not self._found.empty():
            self.tell(self._found.get_nowait().event(now_us))

    def _ask(self, pid: int, tid: int, now_s: float) -> None:
        if len(self._looked_s) >= MOST_KNOWN:
            del self._looked_s[min(self._looked_s, key=self._looked_s.__getitem__)]
        self._looked_s[pid], self._due_s, self._is_busy = now_s, now_s + EVERY_S, True
        self._asked.put((pid, tid))

    def _work(self) -> None:
        while (asked := self._asked.get()) is not None:
            try:
                found = look(*asked, self._root)
                if found is not None:
                    self._found.put(found)
            except Exception as error:  # noqa: BLE001 - raised again in the loop
                self._failure = error
            self._is_busy = False

    def close(self) -> None:
        if self._enabled and not self._is_busy:
            self._asked.put(None)


def look(pid: int, tid: int, root: str = "/", seconds: float = LOOK_S) -> Found | None:
    """None when it is gone, or nothing could be seen."""
    comm = printable((read_file(at(root, f"proc/{pid}/task/{tid}/comm")) or b"").decode("utf-8", "replace").strip())
    counter = _open_counter(tid) if root == "/" else None
    try:
        began_s, before, first = time.monotonic(), _io(pid, root), _positions(pid, root)
        worked: Counter[str] = Counter()
        for _ in range(STEPS):
            time.sleep(seconds / STEPS)
            now = _positions(pid, root)
            worked.update(path for fd, (path, place) in now.items() if first.get(fd) != (path, place))
            first |= now
        after, passed_s = _io(pid, root), time.monotonic() - began_s
        calls = None if counter is None else int.from_bytes(os.read(counter, 8), "little")
    finally:
        if counter is not None:
            os.close(counter)
    reads, writes = (None if before is None or after is None else after[place] - before[place] for place in (0, 1))
    files = tuple(mask_text(printable(path)) for path, _ in worked.most_common(MOST_FILES))
    devices = dict.fromkeys(mask_text(printable(path)) for path, _ in first.values() if path.startswith(_WITHOUT_PLACE))
    if not comm or (calls is None and reads is None and not files):
        return None
    return Found(pid, tid, comm, passed_s, calls, reads, writes, files, tuple(devices)[:MOST_FILES])


def _open_counter(tid: int) -> int | None:
    """Of the system calls of one task; it counts from now on."""
    place = tracefs.find()
    if place is None:
        return None
    try:
        number = tracefs.read_format(place, "raw_syscalls", "sys_enter").number
        attr = perf_event.packed_attr(perf_event.TYPE_TRACEPOINT, number, sample=0, flags=0, period=0)
        fd = perf_event_open(attr, tid, -1, -1, perf_event.OPEN_CLOEXEC)
    except (OSError, ValueError):
        return None
    fcntl.ioctl(fd, perf_event.IOC_ENABLE, 0)
    return int(fd)


def _io(pid: int, root: str) -> tuple[int, int] | None:
    """(reads, writes), as system calls."""
    lines = (read_file(at(root, f"proc/{pid}/io")) or b"").split(b"\n")
    known = {name: value for name, _, value in (line.partition(b": ") for line in lines)}
    if not known.get(b"syscr", b"").isdigit() or not known.get(b"syscw", b"").isdigit():
        return None
    return int(known[b"syscr"]), int(known[b"syscw"])


def _positions(pid: int, root: str) -> dict[str, tuple[str, bytes]]:
    """Descriptor -> what it is of, and where in it; sockets and devices have no position that moves."""
    place, found = at(root, f"proc/{pid}/fd"), dict[str, tuple[str, bytes]]()
    for fd in (names_in(place) or ())[:MOST_FDS]:
        path = read_link(f"{place}/{fd}") or ""
        if path and not path.startswith(_UNTOLD):
            about = read_file(at(root, f"proc/{pid}/fdinfo/{fd}")) or b""
            found[fd] = path, about.partition(b"\n")[0]
    return found
