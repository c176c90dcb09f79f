"""How many memory cgroups there are, the dying included, at a cost that does not depend on their number.

v1: num_cgroups of the memory row of /proc/cgroups: all of them, living and dying, for the whole node. The
living are the directories, which are counted once (walk_directories) and from then on by mkdir and rmdir
events.
v2: cgroup.stat of the mount's root: nr_descendants and nr_dying_descendants (ec39225cca42, v4.14), and for
the memory controller itself nr_subsys_memory and nr_dying_subsys_memory (ab0312526867, v6.12). These are
plain counters and flush no statistics.

Cost: one small read a census. Before v5.16 (822bc9bac9e9) reading /proc/cgroups took cgroup_mutex, so a node
that is busy making cgroups may make the reader wait. In a container cgroup.stat counts the container only:
see Census.whole.

Absence: None, and `why` says whether the controller is off, not mounted here or unreadable.
"""

import errno
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from zombiescope.kernel.cgroup import Hierarchy, hierarchies, of_controller, parse_cgroups
from zombiescope.kernel.procfile import ProcFile, at, number

MAX_DEPTH = 128
MAX_DIRECTORIES = 1_000_000
"""182,000 were seen on a real node; a Kubernetes in a container in a Kubernetes has some twenty levels."""
_LEAF_LINKS = 2
"""Links of a directory without subdirectories, itself and its entry in the parent."""


@dataclass(frozen=True, slots=True)
class MemoryCgroups:
    total: int
    """Living and dying, the root included."""
    live: int | None
    dying: int | None
    live_memory: int | None = None
    """Those with the memory controller, where the kernel counts them apart (v6.12+)."""
    dying_memory: int | None = None


def parse_v1(data: bytes) -> MemoryCgroups | None:
    """From the text of /proc/cgroups; None where it has no enabled memory row."""
    start = data.find(b"\nmemory\t") + 1
    row = data[start : data.find(b"\n", start) + 1]
    memory = parse_cgroups(row).get("memory")
    if memory is None or not memory.enabled:
        return None
    return MemoryCgroups(memory.num_cgroups, None, None)


def parse_v2(data: bytes) -> MemoryCgroups | None:
    """From the text of cgroup.stat; None where it lacks the two counters every kernel has."""
    words = data[: data.rfind(b"\n") + 1].split()
    counts = {name: number(value) for name, value in zip(words[::2], words[1::2], strict=False)}
    descendants, dying = counts.get(b"nr_descendants"), counts.get(b"nr_dying_descendants")
    if descendants is None or dying is None:
        return None
    return MemoryCgroups(
        total=descendants + 1 + dying,
        live=descendants + 1,
        dying=dying,
        live_memory=counts.get(b"nr_subsys_memory"),
        dying_memory=counts.get(b"nr_dying_subsys_memory"),
    )


class CgroupCounter:
    """Counts the memory cgroups again and again through one descriptor."""

    __slots__ = ("_file", "hierarchy", "why")

    def __init__(self, root: str = "/") -> None:
        self.why: str | None = None
        self.hierarchy = of_controller("memory", hierarchies(root))
        self._file = self._open(root, self.hierarchy)

    def _open(self, root: str, hierarchy: Hierarchy | None) -> ProcFile | None:
        if hierarchy is None:
            self.why = "no cgroup hierarchy has the memory controller (cgroup_disable=memory, or not mounted here)"
            return None
        if hierarchy.version == 1:
            return ProcFile(at(root, "proc/cgroups"))
        return ProcFile(f"{hierarchy.mount}/cgroup.stat")

    @property
    def whole(self) -> bool:
        """Whether the counts are those of the node, not of the container that we are in."""
        return self.hierarchy is not None and (self.hierarchy.version == 1 or self.hierarchy.whole)

    def read(self) -> MemoryCgroups | None:
        if self._file is None or self.hierarchy is None:
            return None
        data = self._file.read()
        if data is None:
            self.why = f"{self._file.path}: {self._file.why}"
            return None
        found = parse_v1(data) if self.hierarchy.version == 1 else parse_v2(data)
        self.why = None if found else f"{self._file.path}: no count of memory cgroups in it"
        return found

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class Refused:
    """Directories that a walk did not enter: their paths are longer than the kernel takes, or made to hurt."""

    def __init__(self) -> None:
        self.count = 0
        self.first: str | None = None

    def add(self, path: str) -> None:
        self.count += 1
        self.first = path if self.first is None else self.first


def walk_directories(
    mount: str,
    per_second: float | None = 5000,
    wait: Callable[[float], None] = time.sleep,
    refused: Refused | None = None,
) -> Iterator[tuple[int, str]]:
    """(inode, path from the mount) of every living cgroup, the mount itself included, parents first.

    At most MAX_DEPTH levels and MAX_DIRECTORIES of them; what lies beyond is in `refused`.

    For once at start, never for a tick. The inode is the id that tracepoints print since v5.5; before, an
    inode names nothing there. Directories without subdirectories are recognised by their link count and
    not listed, which spares nearly all of the work. per_second=None leaves the pace to the consumer.
    """
    started = time.monotonic()
    for count, found in enumerate(_walk(mount, Refused() if refused is None else refused)):
        yield found
        ahead = 0 if per_second is None else (count + 1) / per_second - (time.monotonic() - started)
        if ahead > 0.01:
            wait(ahead)


def _walk(mount: str, refused: Refused) -> Iterator[tuple[int, str]]:
    pending = [""]
    left = MAX_DIRECTORIES
    while pending:
        path = pending.pop()
        if left <= 0 or path.count("/") > MAX_DEPTH:
            refused.add(path)
            continue
        left -= 1
        try:
            status = os.lstat(mount + path)
            if status.st_nlink > _LEAF_LINKS:
                with os.scandir(mount + path) as entries:
                    pending.extend(f"{path}/{entry.name}" for entry in entries if entry.is_dir(follow_symlinks=False))
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                refused.add(path)
            continue  # removed while we walked
        yield status.st_ino, path or "/"
