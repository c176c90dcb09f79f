"""/proc/PID/mountinfo: which file systems are mounted where; and which of them may hang.

Fields: the mount's id, the device as "254:0", the mount point, the type, the source ("srv:/data", "/dev/sda1").
A file system that is served by somebody else, over a network or by a program (FUSE), hangs when that one does not
answer. Reading this table asks none of them; a stat() or open() below their mount points would, so nobody here does.

Cost: about 2 us a mount, and the table is as long as the node has containers: it is read on suspicion, or when poll()
says that it changed, never at every tick; at most MOST_BYTES of it. Absence: a process that is gone has none.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from zombiescope.kernel.process import printable
from zombiescope.kernel.procfile import at

MOST_BYTES = 4 << 20
MOST_TEXT = 256
_CHUNK_BYTES = 65536

FAMILIES = {
    "nfs": "nfs", "nfs4": "nfs", "lustre": "lustre", "ceph": "ceph", "cifs": "cifs", "smb3": "cifs", "9p": "9p",
    "afs": "afs", "beegfs": "beegfs", "gpfs": "gpfs", "fuse": "fuse", "fuseblk": "fuse", "virtiofs": "fuse",
}  # fmt: skip
"""Type -> what serves it; those that are not here are local."""


@dataclass(frozen=True, slots=True)
class Mount:
    id: int
    device: str
    point: str
    type: str
    source: str

    @property
    def family(self) -> str | None:
        """Who serves it, where that is not this kernel: nfs, lustre, fuse ..."""
        return FAMILIES.get(self.type.partition(".")[0])

    @property
    def minor(self) -> int | None:
        minor = self.device.partition(":")[2]
        return int(minor) if minor.isdigit() else None


def parse(data: bytes) -> tuple[Mount, ...]:
    """Lines that are whole."""
    lines = data[: data.rfind(b"\n") + 1].split(b"\n")
    return tuple(mount for line in lines if (mount := _mount(line)) is not None)


def _mount(line: bytes) -> Mount | None:
    own, dash, super_block = line.partition(b" - ")
    fields, served = own.split(), super_block.split(b" ")
    if not dash or len(fields) < 6 or len(served) < 2 or not fields[0].isdigit():
        return None
    return Mount(int(fields[0]), _text(fields[2]), _text(fields[4]), _text(served[0]), _text(served[1]))


def _text(field: bytes) -> str:
    """The kernel writes a space as \\040; other people choose these names."""
    if b"\\" in field:
        for code in (b"\\040", b"\\011", b"\\012", b"\\134"):
            field = field.replace(code, bytes((int(code[1:], 8),)))
    return printable(field[:MOST_TEXT])


def read(pid: int | str = "self", root: str = "/") -> tuple[Mount, ...] | None:
    """Of a process; None where it is gone or not ours to see."""
    try:
        fd = os.open(at(root, f"proc/{pid}/mountinfo"), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    parts, size = [], 0
    try:
        while size < MOST_BYTES and (part := os.read(fd, _CHUNK_BYTES)):
            parts.append(part)
            size += len(part)
    except OSError:
        return None
    finally:
        os.close(fd)
    return parse(b"".join(parts))


def covering(mounts: tuple[Mount, ...], path: str) -> Mount | None:
    """The mount that a path lies on: by its text alone, nothing is opened. A later mount hides an earlier one."""
    best: Mount | None = None
    for mount in mounts:
        base = mount.point.rstrip("/")
        inside = path == mount.point or path.startswith(f"{base}/")
        if inside and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best
