"""Names of code that a living process made itself, by its perf map or its jitdump.

The perf map is /tmp/perf-PID.map in the process's own root, with the pid it has in its own namespace (NSpid in
/proc/PID/status). The jitdump is the file named jit-PID.dump that the process has mapped executable: compilers map it
for just this purpose. Either must be a regular file, no link, owned by the process's user: /tmp is everybody's, and
another user must not be able to plant names. One of root's will do if everybody may read it. And it must lie in its
directory and not be mounted over it: a user who has a mount namespace of his own could else show us any file of root's,
which we may read and he may not.

Code that a process was forked with is named in the map of its parent: what is in no file of its own is looked for in
those of the living processes that it was forked from (jit.py), as far as they had been written when it was
first asked for. What a parent generates later is not the child's.

A file is looked at when an address is not in what is known of it, and only where it grew; each process at most every
LOOK_AGAIN_S. Reading takes its CPU time from an allowance, as that of ELF files does. At most MAX_FILES files with
together MAX_ENTRIES entries are known, the least recently used dropped first.
"""

from __future__ import annotations

import os
import stat
import time
from collections import Counter, OrderedDict
from contextlib import closing, suppress
from typing import NamedTuple

from zombiescope._native import ElfError
from zombiescope.base.in_root import place_in_root
from zombiescope.symbols import maps
from zombiescope.symbols.elf import open_elf
from zombiescope.symbols.jit_files import CodeFile
from zombiescope.symbols.process import LiveProcess

LOOK_AGAIN_S = 2.0
NONE_FOR_S = 10.0
MAX_FILES = 64
MAX_ENTRIES = 1 << 16  # of one file: 1.5 MB
MAX_BYTES = 4 << 20
BURST_S = 0.5
SHARE = 0.01

NOT_OWNED = "perf map or jitdump of another user"
MOUNTED = "perf map or jitdump that is mounted from elsewhere"


class _Identity(NamedTuple):
    uid: int
    pid: int


class _Known:
    """What is known of one process's files."""

    __slots__ = ("file", "looked_at_s", "parents", "path", "stamp")

    def __init__(self) -> None:
        self.file: CodeFile | None = None
        self.path = ""
        self.looked_at_s = float("-inf")
        self.stamp: tuple[int, int] | None = None
        self.parents: dict[int, int] | None = None
        """Whom it was forked from -> how much of their map was there."""


class JitNames:
    """Names by process and address; nothing raises. Used by one thread."""

    def __init__(self, max_entries: int = MAX_ENTRIES, max_bytes: int = MAX_BYTES) -> None:
        self.failures: Counter[str] = Counter()
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._known: OrderedDict[int, _Known] = OrderedDict()
        self._allowance_s = BURST_S
        self._allowed_at_s = time.monotonic()

    @property
    def nbytes(self) -> int:
        """Bytes of memory all maps hold."""
        return sum(known.file.nbytes for known in self._known.values() if known.file is not None)

    def forget(self, pid: int) -> None:
        """The process has exited or executed another program."""
        self._known.pop(pid, None)

    def name(self, process: LiveProcess, address: int) -> bytes | None:
        """What the process itself calls the code at this address."""
        known = self._of(process.pid)
        try:
            return self._name(process, known, address) or self._inherited(process, known, address)
        except ElfError as fault:
            self.failures[str(fault)] += 1
        except OSError as fault:
            self.failures[fault.strerror or "unknown"] += 1
        return None

    def _of(self, pid: int) -> _Known:
        known = self._known.get(pid)
        if known is None:
            known = self._known[pid] = _Known()
            if len(self._known) > MAX_FILES:
                self._known.popitem(last=False)
        self._known.move_to_end(pid)
        return known

    def _inherited(self, process: LiveProcess, known: _Known, address: int) -> bytes | None:
        """What one of those that it was forked from called the code."""
        if known.parents is None:
            known.parents = dict.fromkeys(ancestors(process.pid, process.proc), -1)
        for pid, limit in known.parents.items():
            if limit:
                with suppress(ProcessLookupError), closing(LiveProcess(pid, process.proc)) as parent:
                    if limit < 0:
                        known.parents[pid] = self._written(parent, self._of(pid))
                    found = self._name(parent, self._of(pid), address, known.parents[pid])
                    if found is not None:
                        return found
        return None

    def _written(self, process: LiveProcess, known: _Known) -> int:
        """Bytes in the map of a process by now."""
        fd = self._open(process, known)
        if fd is None:
            return 0
        try:
            return os.fstat(fd).st_size if known.file is not None and known.file.kind == "perf map" else 0
        finally:
            os.close(fd)

    def _name(self, process: LiveProcess, known: _Known, address: int, limit: int | None = None) -> bytes | None:
        """`limit`: only what stands in that much of the file."""
        found = None if known.file is None else known.file.code.find(address)
        if found is None and not self._may_look(known):
            return None
        fd = self._open(process, known)
        if fd is None:
            return None
        try:
            if found is None:
                self._read(known, fd)
            return None if known.file is None else known.file.name(address, fd, limit)
        finally:
            os.close(fd)

    def _may_look(self, known: _Known) -> bool:
        now_s = time.monotonic()
        if now_s - known.looked_at_s < (LOOK_AGAIN_S if known.file is not None else NONE_FOR_S):
            return False
        self._allowance_s = min(BURST_S, self._allowance_s + SHARE * (now_s - self._allowed_at_s))
        self._allowed_at_s = now_s
        if self._allowance_s <= 0:
            return False
        known.looked_at_s = now_s
        return True

    def _open(self, process: LiveProcess, known: _Known) -> int | None:
        who = identity(process.fd)
        if who is None:
            return None
        if known.file is not None:
            return self._open_owned(process, known.path, who)
        path = f"/tmp/perf-{who.pid}.map"  # noqa: S108 - where compilers write it; the owner is checked
        fd = self._open_owned(process, path, who)
        if fd is not None:
            known.file, known.path = CodeFile("perf map", self._max_entries), path
            return fd
        for mapping in maps.read(process.fd):
            if mapping.path.endswith(f"/jit-{who.pid}.dump") and not mapping.deleted:
                fd = self._open_owned(process, mapping.path, who)
                if fd is not None:
                    known.file, known.path = CodeFile("jitdump", self._max_entries), mapping.path
                    return fd
        return None

    def _open_owned(self, process: LiveProcess, path: str, who: _Identity) -> int | None:
        root_fd = os.open("root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=process.fd)
        try:
            fd = open_elf(path, root_fd, links=False)
            is_mounted = _mount(fd) != _mount_of(path.rpartition("/")[0] or "/", root_fd)
        except FileNotFoundError:
            return None
        finally:
            os.close(root_fd)
        status = os.fstat(fd)
        is_owned = status.st_uid == who.uid or (status.st_uid == 0 and bool(status.st_mode & stat.S_IROTH))
        if is_owned and not is_mounted:
            return fd
        os.close(fd)
        self.failures[MOUNTED if is_owned else NOT_OWNED] += 1
        return None

    def _read(self, known: _Known, fd: int) -> None:
        status = os.fstat(fd)
        stamp = (status.st_ino, status.st_size)
        if known.file is None or (stamp == known.stamp and not known.file.behind(fd)):
            return
        before_s = time.thread_time()
        if (known.stamp is not None and known.stamp[0] != stamp[0]) or not known.file.read_on(fd):
            known.file = CodeFile(known.file.kind, self._max_entries)
            known.file.read_on(fd)
        known.stamp = stamp
        self._allowance_s -= time.thread_time() - before_s
        while len(self._known) > 1 and self.nbytes > self._max_bytes:
            self._known.popitem(last=False)


def _mount_of(directory: str, root_fd: int) -> bytes:
    place = place_in_root(os.fsencode(directory), root_fd)
    try:
        return _mount(place)
    finally:
        os.close(place)


def _mount(fd: int) -> bytes:
    """The mount that an open file lies in, as fdinfo names it (kernel 3.15)."""
    with open(f"/proc/self/fdinfo/{fd}", "rb") as file:
        return next((line for line in file if line.startswith(b"mnt_id:")), b"")


def identity(process_fd: int) -> _Identity | None:
    """The effective user of a process, and its pid in its own pid namespace; None when it is gone."""
    fd = os.open("status", os.O_RDONLY | os.O_CLOEXEC, dir_fd=process_fd)
    try:
        text = os.read(fd, 8192)
    finally:
        os.close(fd)
    fields = dict(line.split(b":", 1) for line in text.split(b"\n") if b":" in line)
    try:
        pid = fields[b"NSpid" if b"NSpid" in fields else b"Pid"].split()[-1]
        return _Identity(int(fields[b"Uid"].split()[1]), int(pid))
    except (KeyError, IndexError, ValueError):
        return None


# --- forked from ------------------------------------------------------------------------------------------------------
# The processes that a process was forked from, with the same program in the same memory.
#
# A forked worker runs code that its parent generated before the fork, and whose names are in the parent's perf map.
# What was executed since is another program: exec gives a process a new stack at a new place, so a parent whose stack
# begins elsewhere is none that it shares code with. Read: /proc/PID/stat, whose addresses need the right to look at a
# process (CAP_SYS_PTRACE); without it nobody is a parent.

MOST = 4
_PARENT, _CODE, _STACK = 1, 23, 25
"""Fields after the name: the parent, where the program's code begins, where its stack does."""


class _Image(NamedTuple):
    parent: int
    code: int
    stack: int


def ancestors(pid: int, proc: str = "/proc") -> list[int]:
    """The nearest first; only those that live."""
    found: list[int] = []
    image = _image(pid, proc)
    while image is not None and image.stack and image.parent > 1 and len(found) < MOST:
        parent = _image(image.parent, proc)
        if parent is None or parent[1:] != image[1:]:
            break
        found.append(image.parent)
        image = parent
    return found


def _image(pid: int, proc: str) -> _Image | None:
    try:
        fd = os.open(f"{proc}/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fields = os.read(fd, 4096).rpartition(b")")[2].split()
        return _Image(*(int(fields[at]) for at in (_PARENT, _CODE, _STACK)))
    except (OSError, ValueError, IndexError):
        return None
    finally:
        os.close(fd)
