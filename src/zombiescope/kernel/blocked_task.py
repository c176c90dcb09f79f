"""/proc/PID/task/TID: a task that waits in the kernel, and where.

Fields: the state (D: cannot be interrupted), how often it was given a CPU (schedstat: unchanged means that it has not
moved at all), the function that it sleeps in (wchan), its kernel stack with modules, how much it has written (io), and
the system call: its first argument, which of most calls on files is the descriptor, and the user's stack pointer and
instruction pointer at which it was made.

Cost: stat alone for every task that is looked at, some 10 us; the rest for suspects only. Reading a stack stops the
task's CPU for nothing, but stack and syscall wait for a lock that a process holds while it is executed anew, and may
hang with it: whoever reads them has to be expendable. Absence: wchan needs ptrace access and is "0" without; stack
needs CAP_SYS_ADMIN; schedstat needs CONFIG_SCHED_INFO.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from zombiescope.kernel.process import printable
from zombiescope.kernel.procfile import number, read_file, read_text

MOST_FRAMES = 16
_FRAME = re.compile(r"\[<[0-9a-fx]*>\] ([\w.]{1,80})\+0x[0-9a-f]+/0x[0-9a-f]+(?: \[([\w-]{1,56})\])?")
_PF_KTHREAD = 0x00200000
_PAGE_BYTES = 4096

FILE_CALLS = {
    "x86_64": frozenset({0, 1, 5, 8, 16, 17, 18, 19, 20, 74, 75, 77, 78, 81, 91, 93, 187, 217, 285, 295, 296,
                         306, 326, 327, 328}),
    "aarch64": frozenset({29, 46, 47, 50, 52, 55, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 80, 82, 83, 213, 267,
                          285, 286, 287}),
}  # fmt: skip
"""System calls whose first argument is the descriptor of what they work on: read, write, fsync, getdents ..."""


@dataclass(frozen=True, slots=True)
class TaskState:
    comm: str
    state: str
    is_kernel_thread: bool
    start_ticks: int


@dataclass(frozen=True, slots=True)
class Frame:
    name: str
    module: str | None = None

    def __str__(self) -> str:
        return f"{self.name} [{self.module}]" if self.module else self.name


def read_state(place: str) -> TaskState | None:
    """Of `/proc/PID/task/TID`. One open, one read: thousands of them are looked at."""
    try:
        fd = os.open(f"{place}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return parse_state(os.read(fd, _PAGE_BYTES))
    except OSError:
        return None
    finally:
        os.close(fd)


def parse_state(data: bytes) -> TaskState | None:
    """Taken apart from the last ")": a name may hold anything."""
    head, _, tail = data.rpartition(b")")
    fields = tail.split(maxsplit=21)
    if len(fields) < 20:
        return None
    flags, started = number(fields[6]), number(fields[19])
    if flags is None or started is None:
        return None
    comm = printable(head.partition(b"(")[2])
    return TaskState(comm, fields[0].decode("ascii", "replace"), bool(flags & _PF_KTHREAD), started)


def runs(place: str) -> int | None:
    """How often it was given a CPU."""
    fields = (read_file(f"{place}/schedstat") or b"").split()
    return number(fields[2]) if len(fields) >= 3 else None


def written(place: str) -> int | None:
    """Bytes that it has made dirty, since it began; None where that is not ours to see."""
    for line in (read_file(f"{place}/io") or b"").split(b"\n"):
        name, _, value = line.partition(b":")
        if name == b"write_bytes":
            return number(value.strip())
    return None


def wchan(place: str) -> str | None:
    text = read_text(f"{place}/wchan")
    return None if not text or text == "0" else printable(text.encode()[:80])


def stack(place: str) -> tuple[Frame, ...]:
    """Innermost first, at most MOST_FRAMES; empty where it is not ours to see."""
    return parse_stack(read_file(f"{place}/stack") or b"")


def parse_stack(data: bytes) -> tuple[Frame, ...]:
    text = data.decode("ascii", "replace")
    return tuple(Frame(found[1], found[2]) for found in list(_FRAME.finditer(text))[:MOST_FRAMES])


def descriptor(place: str, machine: str | None = None) -> int | None:
    """The descriptor that its system call works on; None where it is in none, or in one that names a path."""
    return parse_syscall(read_file(f"{place}/syscall") or b"", machine or os.uname().machine)


def parse_syscall(data: bytes, machine: str) -> int | None:
    fields = data.split()
    call = number(fields[0]) if fields else None
    if len(fields) < 2 or call not in FILE_CALLS.get(machine, frozenset()):
        return None
    try:
        found = int(fields[1], 16)
    except ValueError:
        return None
    return found if 0 <= found < 1 << 31 else None


def user_place(place: str) -> tuple[int, int] | None:
    """Stack pointer and instruction pointer at which it went into the kernel; None while it runs, and for a kernel
    thread."""
    return parse_user_place(read_file(f"{place}/syscall") or b"")


def parse_user_place(data: bytes) -> tuple[int, int] | None:
    """The last two fields, whether it is in a system call or in the kernel for another reason ("-1 SP PC")."""
    fields = data.split()
    if len(fields) not in (3, 9):
        return None
    try:
        sp, pc = int(fields[-2], 16), int(fields[-1], 16)
    except ValueError:
        return None
    return (sp, pc) if 0 < sp < 1 << 64 and 0 < pc < 1 << 64 else None


def mount_id(process: str, fd: int) -> int | None:
    """Of `/proc/PID`: on which mount a descriptor's file lies. Nothing is asked of the file system."""
    for line in (read_file(f"{process}/fdinfo/{fd}") or b"").split(b"\n"):
        name, _, value = line.partition(b":")
        if name == b"mnt_id":
            return number(value.strip())
    return None
