"""Which process serves a FUSE mount: in the helper only, and only for one on which tasks wait.

Newer kernels say the connection in the fdinfo of /dev/fuse; on older ones it is the only process that has /dev/fuse
open, or the one that bears the name of the file system's type (fuse.s3fs: s3fs). Bounded like every walk over /proc;
a daemon is asked for once, and again when its process is gone.
"""

from __future__ import annotations

import time

from zombiescope.kernel.mountinfo import Mount
from zombiescope.kernel.process import read_stat
from zombiescope.kernel.procfile import at, names_in, number, read_file, read_link

BUDGET_S = 0.5
MOST_DESCRIPTORS = 4096
"""Of one process."""
DEVICE = "/dev/fuse"


class FuseDaemons:
    def __init__(self, root: str = "/") -> None:
        self._root = root
        self._known: dict[str, tuple[int, str] | None] = {}

    def of(self, mount: Mount) -> str | None:
        """As "s3fs:4711"; None where nobody can be named."""
        known = self._known.get(mount.device)
        if known is not None and not self._lives(*known):
            del self._known[mount.device]
        if mount.device not in self._known:
            if len(self._known) > 64:
                self._known.clear()
            self._known[mount.device] = self._find(mount)
        found = self._known[mount.device]
        return None if found is None else f"{found[1]}:{found[0]}"

    def _lives(self, pid: int, comm: str) -> bool:
        stat = read_stat(pid, self._root)
        return stat is not None and stat.comm == comm

    def _find(self, mount: Mount) -> tuple[int, str] | None:
        named = mount.type.partition(".")[2]
        holders: list[tuple[int, str]] = []
        ends_s = time.monotonic() + BUDGET_S
        for name in names_in(at(self._root, "proc")) or ():
            if not name.isdigit() or time.monotonic() > ends_s:
                continue
            connections = self._connections(name)
            stat = read_stat(int(name), self._root) if connections else None
            if stat is None:
                continue
            if mount.minor in connections:
                return stat.pid, stat.comm
            holders.append((stat.pid, stat.comm))
        alike = [one for one in holders if named and one[1] == named[:15]] or holders
        return min(alike) if len({comm for _, comm in alike}) == 1 else None

    def _connections(self, pid: str) -> set[int | None]:
        """Of each descriptor of /dev/fuse its connection, None where the kernel does not say."""
        found: set[int | None] = set()
        for fd in (names_in(at(self._root, f"proc/{pid}/fd")) or [])[:MOST_DESCRIPTORS]:
            if read_link(at(self._root, f"proc/{pid}/fd/{fd}")) == DEVICE:
                found.add(self._connection(pid, fd))
        return found

    def _connection(self, pid: str, fd: str) -> int | None:
        for line in (read_file(at(self._root, f"proc/{pid}/fdinfo/{fd}")) or b"").split(b"\n"):
            name, _, value = line.partition(b":")
            if name == b"fuse_connection":
                return number(value.strip())
        return None
