"""/proc/PID: who a process is, read once while it lives.

Fields: comm, state, ppid, flags (kernel thread), start time in ticks since boot, scheduling policy and
real-time priority (stat); uid (status); exe; cgroup of each hierarchy; the command line, at most 4 kB.

comm is chosen by the process: it may hold spaces, parentheses and newlines, so stat is taken apart from its
last ")". Text is made printable here, so that a name cannot paint a terminal, and secrets in a command line are
masked here, so that nobody beyond this module ever holds them.

Cost: five small files, about 90 us. cmdline is read last: it takes the target's mmap_lock and may wait as
long as a writer holds that (seconds, for a process in trouble); cmdline=False leaves it out.

Absence: a process that is gone, or whose number was reused while it was read, is None. exe needs
CAP_SYS_PTRACE for other users' processes and is None for kernel threads, as is the command line. A process
that is just being executed has no command line yet.
"""

import os
from dataclasses import dataclass, replace

from zombiescope.base.secrets import mask_words
from zombiescope.kernel import cgroup_namespace
from zombiescope.kernel.procfile import at, names_in, number, read_file, read_link

CMDLINE_BYTES = 4096
POLICIES = {0: "other", 1: "fifo", 2: "rr", 3: "batch", 5: "idle", 6: "deadline", 7: "ext"}

_PF_KTHREAD = 0x00200000
_DELETED = " (deleted)"


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """The fields of /proc/PID/stat that name a process."""

    pid: int
    comm: str
    state: str
    ppid: int
    is_kernel_thread: bool
    start_time_ticks: int
    rt_priority: int | None
    policy: int | None
    process_group: int | None = None
    terminal: int | None = None
    """The device of its controlling terminal; 0 where it has none."""


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    ppid: int
    comm: str
    state: str
    is_kernel_thread: bool
    start_time_ticks: int
    rt_priority: int | None
    policy: int | None
    exe: str | None
    exe_is_deleted: bool
    cmdline: str | None
    cgroups: dict[int, str]
    """Hierarchy number -> path on the node; relative to our cgroup namespace where that cannot be known."""
    systemd_cgroup: str | None = None
    """Its path in the hierarchy in which systemd keeps its units: name=systemd, or cgroup2 where that says more than
    its root."""
    uid: int | None = None
    """The real user, of /proc/PID/status: /proc/PID itself belongs to root once a process is not dumpable."""


def printable(data: bytes) -> str:
    """Text with every byte kept: what is no printable character becomes an escape such as \\x1b."""
    text = data.decode("utf-8", "surrogateescape")
    return text if text.isprintable() else "".join(map(_escape, text))


def _escape(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return character.encode("unicode_escape").decode("ascii")


def parse_stat(data: bytes) -> ProcessStat | None:
    """None unless the line holds the start time (field 22)."""
    head, _, tail = data.rpartition(b")")
    pid, _, comm = head.partition(b"(")
    fields = tail.split()
    numbers = [number(field) for field in fields]
    identity = number(pid.strip())
    if identity is None or len(fields) < 20 or not data.endswith(b"\n"):
        return None
    ppid, flags, started = numbers[1], numbers[6], numbers[19]
    if ppid is None or flags is None or started is None:
        return None
    return ProcessStat(
        pid=identity,
        comm=printable(comm),
        state=fields[0].decode("ascii", "replace"),
        ppid=ppid,
        is_kernel_thread=bool(flags & _PF_KTHREAD),
        start_time_ticks=started,
        rt_priority=numbers[37] if len(numbers) > 37 else None,
        policy=numbers[38] if len(numbers) > 38 else None,
        process_group=numbers[2],
        terminal=numbers[4],
    )


def parse_cmdline(data: bytes) -> str | None:
    """Arguments joined by spaces, secrets masked; None for the empty one of kernel threads and defunct processes."""
    words = [printable(word) for word in data.rstrip(b"\0").split(b"\0")]
    return " ".join(mask_words(words)) or None


def read_stat(pid: int, root: str = "/") -> ProcessStat | None:
    data = read_file(at(root, f"proc/{pid}/stat"))
    return None if data is None else parse_stat(data)


def threads(pid: int, root: str = "/") -> list[int]:
    """The threads of a process, its main thread first; none when it is gone."""
    found = (number(name.encode()) for name in names_in(at(root, f"proc/{pid}/task")) or ())
    return sorted((tid for tid in found if tid is not None), key=lambda tid: (tid != pid, tid))


def children(pid: int, root: str = "/") -> list[int]:
    """Those that its main thread started; empty without CONFIG_PROC_CHILDREN."""
    data = read_file(at(root, f"proc/{pid}/task/{pid}/children")) or b""
    return [child for word in data.split() if (child := number(word)) is not None]


def last_cpu(pid: int, tid: int, root: str = "/") -> int | None:
    """The CPU that a thread last ran on: field 39 of its stat file."""
    data = read_file(at(root, f"proc/{pid}/task/{tid}/stat"))
    fields = b"" if data is None else data.rpartition(b")")[2]
    numbers = fields.split()
    return number(numbers[36]) if len(numbers) > 36 else None


def read(pid: int, root: str = "/", *, cmdline: bool = True) -> Process | None:
    """A living process, or None."""
    stat = read_stat(pid, root)
    if stat is None:
        return None
    membership = cgroup_namespace.membership(pid, root)
    exe = _exe(pid, root)
    process = Process(
        pid=stat.pid,
        ppid=stat.ppid,
        comm=stat.comm,
        state=stat.state,
        is_kernel_thread=stat.is_kernel_thread,
        start_time_ticks=stat.start_time_ticks,
        rt_priority=stat.rt_priority,
        policy=stat.policy,
        exe=None if exe is None else exe.removesuffix(_DELETED),
        exe_is_deleted=exe is not None and exe.endswith(_DELETED),
        cmdline=_cmdline(pid, root) if cmdline and not stat.is_kernel_thread else None,
        cgroups={key: path.removesuffix(_DELETED) for key, (_, path) in membership.items()},
        systemd_cgroup=_systemd_cgroup(membership),
        uid=_uid(pid, root),
    )
    again = read_stat(pid, root)
    return process if again is not None and again.start_time_ticks == stat.start_time_ticks else None


def read_again(known: Process, root: str = "/") -> Process | None:
    """The same process with its cgroups as they are now: two files, and neither its memory nor its program is touched.
    None where it is another process, or has another name or parent by now."""
    stat = read_stat(known.pid, root)
    same = stat is not None and (stat.start_time_ticks, stat.comm, stat.ppid) == (
        known.start_time_ticks, known.comm, known.ppid,
    )  # fmt: skip
    if stat is None or not same:
        return None
    membership = cgroup_namespace.membership(known.pid, root)
    return replace(
        known,
        state=stat.state,
        rt_priority=stat.rt_priority,
        policy=stat.policy,
        cgroups={key: path.removesuffix(_DELETED) for key, (_, path) in membership.items()},
        systemd_cgroup=_systemd_cgroup(membership),
    )


def _systemd_cgroup(membership: dict[int, tuple[frozenset[str], str]]) -> str | None:
    named = next((path for names, path in membership.values() if "name=systemd" in names), None)
    unified = membership.get(0, (frozenset(), None))[1]
    found = unified if named in (None, "/") else named
    return None if found in (None, "/") else found.removesuffix(_DELETED)


def _uid(pid: int, root: str) -> int | None:
    rows = (read_file(at(root, f"proc/{pid}/status")) or b"").split(b"\n")
    row = next((row.split() for row in rows if row.startswith(b"Uid:")), [])
    return number(row[1]) if len(row) > 1 else None


def _exe(pid: int, root: str) -> str | None:
    target = read_link(at(root, f"proc/{pid}/exe"))
    return None if target is None else printable(os.fsencode(target))


def _cmdline(pid: int, root: str) -> str | None:
    try:
        fd = os.open(at(root, f"proc/{pid}/cmdline"), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return parse_cmdline(os.read(fd, CMDLINE_BYTES))
    except OSError:
        return None
    finally:
        os.close(fd)
