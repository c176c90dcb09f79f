"""/proc/PID/fd and /proc/PID/maps: which processes have given files open or mapped.

A file is (device, inode). Descriptors are compared by their names first (readlink of /proc/PID/fd/N asks no file
system) and then by mount and inode (fdinfo: mnt_id, and ino since v5.14), never by stat(): that would ask the server of
whatever somebody has open, which may not answer. Mappings print device and inode themselves.

Cost: a readlink a descriptor and one read of maps a process; a scan is bounded in processes, descriptors and time, and
says when it did not get through. maps takes the target's mmap_lock and may wait for a process in trouble: the scan runs
in a thread that is left behind when the time is over. Absence: a process that is gone or not ours to see has no files;
`hidden` counts the latter.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from zombiescope.base.text import number
from zombiescope.kernel import mountinfo
from zombiescope.kernel.procfile import at, names_in, read_file, read_link

MOST_PROCESSES = 32_768
MOST_DESCRIPTORS = 4_096
"""Of one process."""
MOST_MAPS_BYTES = 8 << 20
MOST_SECONDS = 10.0
_DELETED = " (deleted)"

File = tuple[int, int]
"""st_dev and st_ino."""


@dataclass(frozen=True, slots=True)
class Nameless:
    """A file of memory that no directory has any more: a memfd, or one that was deleted while it was open."""

    pid: int
    fd: int
    name: str


@dataclass(slots=True)
class OpenFiles:
    users: dict[File, set[int]] = field(default_factory=dict)
    """Pids by file."""
    nameless: list[Nameless] = field(default_factory=list)
    hidden: int = 0
    """Processes that would not say."""
    complete: bool = False


def scan(files: dict[File, str], root: str = "/", limit_s: float = MOST_SECONDS) -> OpenFiles:
    """Who uses these files (and the name each has), and who holds nameless ones."""
    found = OpenFiles()
    by_name = {name.rpartition("/")[2] for name in files.values()}
    end = time.monotonic() + limit_s
    worker = threading.Thread(target=_scan, args=(found, files, by_name, root, end), daemon=True)
    worker.start()
    worker.join(limit_s + 1)
    if not worker.is_alive():
        return found
    users = {key: set(pids) for key, pids in list(found.users.items())}
    return OpenFiles(users, list(found.nameless), found.hidden, complete=False)


def _scan(found: OpenFiles, files: dict[File, str], names: set[str], root: str, end: float) -> None:
    pids = [int(name) for name in names_in(at(root, "proc")) or () if name.isdecimal()]
    for pid in sorted(pids)[:MOST_PROCESSES]:
        if time.monotonic() > end:
            return
        complete = _descriptors(found, files, names, pid, root) and _mappings(found, files, pid, root)
        found.hidden += not complete
    found.complete = len(pids) <= MOST_PROCESSES


def _descriptors(found: OpenFiles, files: dict[File, str], names: set[str], pid: int, root: str) -> bool:
    fds = names_in(at(root, f"proc/{pid}/fd"))
    if fds is None:
        return not os.access(at(root, f"proc/{pid}"), os.F_OK)  # gone is no secret
    devices: dict[str, int] | None = None
    for fd in fds[:MOST_DESCRIPTORS]:
        target = read_link(at(root, f"proc/{pid}/fd/{fd}")) or ""
        if target.startswith("/") and target.endswith(_DELETED):
            found.nameless.append(Nameless(pid, int(fd), target.removesuffix(_DELETED)))
        elif target.startswith("/") and target.rpartition("/")[2] in names:
            devices = _devices(pid, root) if devices is None else devices
            for file in _same(files, at(root, f"proc/{pid}/fdinfo/{fd}"), devices, target):
                found.users.setdefault(file, set()).add(pid)
    return len(fds) <= MOST_DESCRIPTORS


def _devices(pid: int, root: str) -> dict[str, int]:
    """Mount id -> st_dev, in the process's own mount namespace."""
    return {str(mount.id): place for mount in mountinfo.read(pid, root) or () if (place := device(mount.device))}


def device(text: str) -> int | None:
    """ "0:25", as mountinfo prints it, as st_dev."""
    major, _, minor = text.partition(":")
    return _st_dev(number(major), number(minor))


def _st_dev(major: int | None, minor: int | None) -> int | None:
    """None for what no kernel has: it keeps twelve bits of the one and twenty of the other."""
    return None if major is None or minor is None or major >> 12 or minor >> 20 else os.makedev(major, minor)


def _same(files: dict[File, str], fdinfo: str, devices: dict[str, int], target: str) -> Iterable[File]:
    """By mount and inode; on kernels that do not tell the inode by mount and name, which may be one too many."""
    rows = (line.partition(b":") for line in (read_file(fdinfo) or b"").split(b"\n"))
    values = {key: value.strip().decode("ascii", "replace") for key, _, value in rows}
    place, inode = devices.get(values.get(b"mnt_id", "")), values.get(b"ino")
    base = target.rpartition("/")[2]
    for file, name in files.items() if inode is None else ():
        if file[0] == place and name.rpartition("/")[2] == base:
            yield file
    if inode is not None and inode.isdecimal() and place is not None and (place, int(inode)) in files:
        yield (place, int(inode))


def _mappings(found: OpenFiles, files: dict[File, str], pid: int, root: str) -> bool:
    try:
        with open(at(root, f"proc/{pid}/maps"), "rb") as maps:
            data = maps.read(MOST_MAPS_BYTES)
    except OSError:
        return not os.access(at(root, f"proc/{pid}"), os.F_OK)
    for file in mapped(data) & files.keys():
        found.users.setdefault(file, set()).add(pid)
    return len(data) < MOST_MAPS_BYTES


def mapped(data: bytes) -> set[File]:
    """The files in the text of a maps file."""
    found = set()
    for line in data[: data.rfind(b"\n") + 1].split(b"\n"):
        fields = line.split(None, 5)
        if len(fields) < 5 or fields[4] == b"0" or not fields[4].isdigit():
            continue
        major, _, minor = fields[3].partition(b":")
        try:
            place = _st_dev(int(major, 16), int(minor, 16))
        except ValueError:
            continue
        if place is not None:
            found.add((place, int(fields[4])))
    return found
