"""The raylets of this node: /proc/PID/cmdline of processes called "raylet".

    --node_id=HEX --node_ip_address=IP --session_dir=DIR --log_dir=DIR --stdout_filepath=FILE --head
    --python_worker_command="... --webui=HOST:PORT ..."     the dashboard

A raylet's command line names everything that a configuration would. It is readable by everybody (but for hidepid).
New processes are examined once. A raylet forks, and until its child has executed a worker the child has the raylet's
name, executable and command line: so a process whose parent has the same node id, or whose node id a living raylet has,
is not a raylet. What is taken for one is held by a pidfd: its end is known at once, with the exit status where the
kernel gives it (Linux 6.15), and is not mixed up with a process that has got its number. Looking for new ones costs a
listing of /proc and one file for each new process, and is done every few seconds.

Anybody can call a process "raylet" and give it any command line. So what it names is opened only where it is a plain
file of the raylet's own user, looked at before it is opened (opening /dev/watchdog is an order), and one user has a
bounded number of raylets.
"""

from __future__ import annotations

import errno
import fcntl
import ipaddress
import os
import re
import select
import stat
import struct
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

COMM = b"raylet\n"
MOST_RAYLETS = 64
MOST_OF_A_USER = 16
CMDLINE_BYTES = 65536
TAIL_BYTES = 16384
REAPED_TRIES, REAPED_EVERY_S = 5, 0.02
_HEX = re.compile(r"[0-9a-f]{28,64}")
_PLACE = re.compile(r"[A-Za-z0-9_.:\[\]-]{1,253}:\d{1,5}")
_STOPPED = re.compile(rb"received SIGTERM|[Gg]raceful shutdown|Raylet is exiting|force_exit|Drain")


@dataclass(frozen=True, slots=True)
class Raylet:
    pid: int
    node_id: str
    node_ip: str
    log_dir: Path | None
    out: Path | None
    """Its own log."""
    dashboard: str | None
    """host:port"""
    head: bool
    uid: int = -1
    """Whose it is; -1: nobody's, and none of the files that it names is opened."""
    status: int | None = None
    """How it ended, as wait() encodes it; None: it runs, or the kernel does not tell."""

    @property
    def signal(self) -> int | None:
        """The signal that killed it."""
        return None if self.status is None or not self.status & 0x7F else self.status & 0x7F

    @property
    def exit_code(self) -> int | None:
        return None if self.status is None or self.status & 0x7F else self.status >> 8 & 0xFF

    @property
    def was_stopped(self) -> bool:
        """Whether its log ends with somebody having told it to."""
        if self.out is None:
            return False
        try:
            with os.fdopen(open_of(self.uid, self.out), "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
                return _STOPPED.search(file.read(TAIL_BYTES)) is not None
        except OSError:
            return False


def open_of(uid: int, path: Path) -> int:
    """A descriptor of a plain file of that user. It is known what it is before it is opened: a device may act, and a
    pipe may wait. Raises OSError."""
    seen = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        status = os.fstat(seen)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != uid:
            raise PermissionError(errno.EPERM, "it is not a regular file owned by the raylet's user", str(path))
        return os.open(f"/proc/self/fd/{seen}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    finally:
        os.close(seen)


def parse(pid: int, cmdline: bytes, uid: int = -1) -> Raylet | None:
    """None: no raylet, or one that does not say who it is."""
    words = [word.decode("utf-8", "replace") for word in cmdline[:CMDLINE_BYTES].split(b"\0")]
    options = dict(word[2:].split("=", 1) for word in words if word.startswith("--") and "=" in word)
    node_id, node_ip = options.get("node_id", ""), options.get("node_ip_address", "")
    if not _HEX.fullmatch(node_id) or not is_address(node_ip):
        return None
    webui = re.search(r"--webui=(\S+)", options.get("python_worker_command", ""))
    dashboard = webui[1] if webui and _PLACE.fullmatch(webui[1]) else None
    return Raylet(
        pid, node_id, node_ip, _path(options.get("log_dir")), _path(options.get("stdout_filepath")), dashboard,
        "--head" in words, uid,
    )  # fmt: skip


def is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _path(text: str | None) -> Path | None:
    return Path(text) if text and text.startswith("/") and ".." not in text.split("/") else None


def _is_raylet(place: str) -> bool:
    """Asked of every new process: three calls and nothing else. Raises OSError."""
    descriptor = os.open(f"{place}/comm", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 64) == COMM
    finally:
        os.close(descriptor)


def _parent(place: str) -> int:
    """Raises OSError."""
    with open(f"{place}/stat", "rb") as file:
        fields = file.read(4096).rpartition(b")")[2].split()
    return int(fields[1]) if len(fields) > 1 and fields[1].isdigit() else 0


def _node_id(place: str) -> str | None:
    """That a process has in its command line, if it is called raylet; None also where it is gone."""
    try:
        if not _is_raylet(place):
            return None
        with open(f"{place}/cmdline", "rb") as file:
            raylet = parse(0, file.read(CMDLINE_BYTES))
    except OSError:
        return None
    return None if raylet is None else raylet.node_id


_GET_INFO = 0xC040FF0B
"""PIDFD_GET_INFO with a struct pidfd_info of 64 bytes (Linux 6.13)."""
_INFO_EXIT = 1 << 3
"""Linux 6.15: of a process that has been reaped."""


def exit_status(descriptor: int, proc: Path, pid: int) -> int | None:
    """How a process ended that a pidfd is of. A parent may take a moment to reap it; of one that is not reaped,
    /proc/PID/stat has the status for those who may trace it."""
    for _ in range(REAPED_TRIES):
        info = bytearray(struct.pack("=Q56x", _INFO_EXIT))
        with suppress(OSError):
            fcntl.ioctl(descriptor, _GET_INFO, info)
            mask, status = struct.unpack("=Q52xi", bytes(info))
            if mask & _INFO_EXIT:
                return int(status)
        time.sleep(REAPED_EVERY_S)
    with suppress(OSError, IndexError, ValueError), open(f"{proc}/{pid}/stat", "rb") as file:
        fields = file.read(4096).rpartition(b")")[2].split()
        if fields[0] == b"Z" and int(fields[49]):  # 0 also where it may not be known
            return int(fields[49])
    return None


def _user(place: str) -> int:
    """Whose rights a process has now. Raises OSError."""
    with open(f"{place}/status", "rb") as file:
        found = re.search(rb"^Uid:\t[0-9]+\t([0-9]{1,10})\t", file.read(CMDLINE_BYTES), re.MULTILINE)
    return int(found[1]) if found else -1


class Raylets:
    """Those that run, as they come and go."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._seen: set[int] = set()
        self._held: dict[int, tuple[Raylet, int]] = {}

    @property
    def running(self) -> list[Raylet]:
        return [raylet for raylet, _ in self._held.values()]

    def look(self, *, for_new: bool = True) -> tuple[list[Raylet], list[Raylet]]:
        """Those that are new, where they are looked for, and those that have ended since the last look."""
        ended = self._ended()
        if not for_new:
            return [], ended
        self._let_go()
        pids = {int(name) for name in os.listdir(self._proc) if name.isdecimal()}  # noqa: PTH208  names are enough
        new = [raylet for pid in sorted(pids - self._seen) if (raylet := self._open(pid)) is not None]
        self._seen = pids
        return new, ended

    def _let_go(self) -> None:
        """Of processes that run something else by now: they were the child of a raylet."""
        for pid, (raylet, descriptor) in list(self._held.items()):
            place = f"{self._proc}/{pid}"
            with suppress(OSError):
                with open(f"{place}/cmdline", "rb") as file:
                    line = file.read(CMDLINE_BYTES)
                now = parse(pid, line)
                if line and (now is None or now.node_id != raylet.node_id):
                    os.close(descriptor)
                    del self._held[pid]

    def _ended(self) -> list[Raylet]:
        poll = select.poll()
        by_descriptor = {descriptor: pid for pid, (_, descriptor) in self._held.items()}
        for descriptor in by_descriptor:
            poll.register(descriptor, select.POLLIN)
        gone = []
        for descriptor, _ in poll.poll(0) if by_descriptor else []:
            raylet, _ = self._held.pop(by_descriptor[descriptor])
            gone.append(replace(raylet, status=exit_status(descriptor, self._proc, raylet.pid)))
            os.close(descriptor)
        return gone

    def _open(self, pid: int) -> Raylet | None:
        place = f"{self._proc}/{pid}"
        with suppress(OSError):
            if not _is_raylet(place) or len(self._held) >= MOST_RAYLETS:
                return None
            descriptor = os.pidfd_open(pid)
            with open(f"{place}/cmdline", "rb") as file:
                raylet = parse(pid, file.read(CMDLINE_BYTES), _user(place))
            if raylet is None or self._held_by(raylet.uid) >= MOST_OF_A_USER or self._is_fork(place, raylet):
                os.close(descriptor)
                return None
            self._held[pid] = raylet, descriptor
            return raylet
        return None

    def _is_fork(self, place: str, raylet: Raylet) -> bool:
        """Whether it is the child of a raylet, before it has executed another program."""
        same = [one for one, _ in self._held.values() if (one.node_id, one.uid) == (raylet.node_id, raylet.uid)]
        return bool(same) or _node_id(f"{self._proc}/{_parent(place)}") == raylet.node_id

    def _held_by(self, uid: int) -> int:
        return sum(raylet.uid == uid for raylet, _ in self._held.values())

    def close(self) -> None:
        for _, descriptor in self._held.values():
            os.close(descriptor)
        self._held.clear()
