"""Which disk, mount or daemon a task waits for, and whether that goes on: in the helper only.

Nothing is opened below a mount point and no file system is asked: mountinfo, the mount of the descriptor that the
system call works on (fdinfo), the kernel's own counts (diskstats, mountstats, FUSE's `waiting`) and links in /sys. A
task whose call names a path instead is matched with the one thing of its kind that stands still, if there is just one.
A loop device stands for the mount that its file lies on. What cannot be told is None.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from zombiescope.kernel import blocked_task, diskstats, fuse, mountinfo, mountstats
from zombiescope.kernel.diskstats import DiskStat
from zombiescope.kernel.mountinfo import Mount
from zombiescope.kernel.mountstats import NfsCounts
from zombiescope.kernel.procfile import at, read_link, read_text
from zombiescope.recorder.mount_watch import MountWatch
from zombiescope.store.hangs import REMOTE

MOST_NAMESPACES = 8
"""Mount tables of other namespaces, read in one look."""
BLOCK_KINDS = frozenset({"disk", "journal", "writeback", "swap"})


@dataclass(frozen=True, slots=True)
class Resource:
    kind: str | None
    name: str | None = None
    """A disk, "srv:/data" of a file server, the mount point of FUSE; None where it is not known which."""
    moves: bool | None = None
    """Whether it completed anything since the last look; None where that is not known."""
    mount: Mount | None = None


@dataclass(slots=True)
class Counts:
    """What was counted at one look."""

    disks: dict[str, DiskStat] = field(default_factory=dict)
    nfs: dict[str, NfsCounts] = field(default_factory=dict)
    fuse: dict[int, int] = field(default_factory=dict)


class Resources:
    def __init__(self, root: str = "/") -> None:
        self._root = root
        self._now, self._before = Counts(), Counts()
        self._own: tuple[Mount, ...] | None = None
        self._watch = MountWatch(root)
        self._namespaces: dict[str, tuple[Mount, ...]] = {}
        self._disk_names: dict[str, str | None] = {}
        self.below: dict[str, Mount] = {}
        """Loop devices that tasks of this look wait for -> the mount that their file lies on."""

    # --- what there is -----------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Once a look."""
        if self._watch.changed() or self._own is None:
            self._own = mountinfo.read(root=self._root) or ()
        self._namespaces.clear()
        self.below.clear()
        self._before, self._now = self._now, Counts(diskstats.read(self._root) or {})
        families = {mount.family for mount in self._own}
        if "nfs" in families:
            self._now.nfs = mountstats.read(self._root) or {}
        self._now.fuse = fuse.waiting(self._root)

    @property
    def remote(self) -> tuple[Mount, ...]:
        """Mounts of this namespace that somebody else serves."""
        return tuple(mount for mount in self._own or () if mount.family is not None)

    def answers(self, mount: Mount) -> int | None:
        """Requests that the mount's server has answered; None where it is not counted."""
        counts = self._now.nfs.get(mount.point)
        return None if counts is None else counts.answered

    def resent(self, mount: Mount) -> int | None:
        counts = self._now.nfs.get(mount.point)
        return None if counts is None else max(0, counts.sent - counts.answered)

    def waiting(self, mount: Mount) -> int | None:
        """Requests of a FUSE mount that its daemon has not answered."""
        return None if mount.family != "fuse" or mount.minor is None else self._now.fuse.get(mount.minor)

    @property
    def fuse_is_silent(self) -> bool:
        """Some connection had requests without an answer at this look and at the one before."""
        return any(count and self._before.fuse.get(number) for number, count in self._now.fuse.items())

    @property
    def fuse_is_asked(self) -> bool:
        """Some connection has a request without an answer just now, as busy ones always have."""
        return any(self._now.fuse.values())

    @property
    def connections(self) -> int:
        """Of FUSE, in whatever mount namespace."""
        return len(self._now.fuse)

    @property
    def nfs_is_silent(self) -> bool:
        """Requests were sent again, and none was answered, since the look before."""
        for point, now in self._now.nfs.items():
            before = self._before.nfs.get(point)
            if before is not None and now.answered == before.answered and now.sent > before.sent:
                return True
        return False

    @property
    def stalled_disks(self) -> list[str]:
        return [name for name in self._now.disks if self._disk_moves(name) is False]

    def _disk_moves(self, name: str) -> bool | None:
        now, before = self._now.disks.get(name), self._before.disks.get(name)
        if now is None or before is None:
            return None
        return now.completed != before.completed if now.in_flight and before.in_flight else True

    # --- what a task waits for ---------------------------------------------------------------------------------------

    def of(self, pid: int, tid: int, kind: str | None) -> Resource:
        mount = self._mount_of(pid, tid)
        if mount is not None and mount.family is not None:
            return self._of_mount(mount)
        if kind in REMOTE or kind == "fuse":
            return self._only_mount(pid, kind)
        if kind in BLOCK_KINDS or kind == "frozen":
            disk = self._disk_of(mount) if mount is not None else None
            found = self._of_disk(kind, disk) if disk is not None else self._only_disk(kind)
            # A file system that is frozen waits for whoever froze it, whatever its disk does.
            return replace(found, moves=None) if kind == "frozen" else self._below(pid, found)
        return Resource(kind)

    def _mount_of(self, pid: int, tid: int) -> Mount | None:
        fd = blocked_task.descriptor(at(self._root, f"proc/{pid}/task/{tid}"))
        number = None if fd is None else blocked_task.mount_id(at(self._root, f"proc/{pid}"), fd)
        if number is None:
            return None
        return next((mount for mount in self._mounts_of(pid) if mount.id == number), None)

    def _mounts_of(self, pid: int) -> tuple[Mount, ...]:
        own = self._own or ()
        theirs = read_link(at(self._root, f"proc/{pid}/ns/mnt"))
        if theirs is None or theirs == read_link(at(self._root, "proc/self/ns/mnt")):
            return own
        if theirs not in self._namespaces and len(self._namespaces) < MOST_NAMESPACES:
            self._namespaces[theirs] = mountinfo.read(pid, self._root) or ()
        return self._namespaces.get(theirs, own)

    def _of_mount(self, mount: Mount) -> Resource:
        family = mount.family
        if family == "nfs":
            now, before = self._now.nfs.get(mount.point), self._before.nfs.get(mount.point)
            moves = None if now is None or before is None else now.answered != before.answered
            return Resource(family, mount.source, moves, mount)
        name = mount.point if family == "fuse" else mount.source
        moves = False if self.waiting(mount) else None
        return Resource(family, name, moves, mount)

    def _only_mount(self, pid: int, family: str | None) -> Resource:
        """The one mount of its kind that may be the one."""
        every = {mount.device: mount for mount in (*self._mounts_of(pid), *(self._own or ())) if mount.family == family}
        silent = [mount for mount in every.values() if self._may_hang(mount)]
        return self._of_mount(silent[0]) if len(silent) == 1 else Resource(family)

    def _may_hang(self, mount: Mount) -> bool:
        if mount.family == "fuse":
            return self.waiting(mount) != 0
        return self._of_mount(mount).moves is not True

    # --- disks -------------------------------------------------------------------------------------------------------

    def _disk_of(self, mount: Mount) -> str | None:
        """The whole disk that a local file system is on."""
        found = self.disk(mount.device)
        name = mount.source.removeprefix("/dev/")
        return found or (name if name in self._now.disks else None)

    def disk(self, device: str) -> str | None:
        if device not in self._disk_names:
            if len(self._disk_names) > 1024:
                self._disk_names.clear()
            self._disk_names[device] = self._look_up(device)
        return self._disk_names[device]

    def _look_up(self, device: str) -> str | None:
        place = at(self._root, f"sys/dev/block/{device}")
        target = read_link(place)
        if target is None:
            return None
        parts = target.rstrip("/").split("/")
        return parts[-2] if read_text(f"{place}/partition") is not None and len(parts) > 1 else parts[-1]

    def _of_disk(self, kind: str | None, disk: str) -> Resource:
        return Resource(kind, disk, self._disk_moves(disk))

    def _only_disk(self, kind: str | None) -> Resource:
        """No disk stands still: then what it waits for goes on, whichever it is."""
        stalled = self.stalled_disks
        if len(stalled) == 1:
            return self._of_disk(kind, stalled[0])
        return Resource(kind, None, None if stalled or not self._before.disks else True)

    def _below(self, pid: int, found: Resource) -> Resource:
        """A loop device that stands still, and whose file is on a file system that may hang."""
        if found.name is None or not found.name.startswith("loop") or found.moves:
            return found
        mount = self.backing(found.name, pid)
        if mount is None:
            return found
        self.below[found.name] = mount
        return self._of_mount(mount)

    def backing(self, disk: str, pid: int) -> Mount | None:
        """The mount that somebody else serves and on which the file of a loop device lies."""
        path = read_text(at(self._root, f"sys/block/{disk}/loop/backing_file"))
        if not path:
            return None
        for mounts in (self._mounts_of(pid), self._own or ()):
            mount = mountinfo.covering(mounts, path)
            if mount is not None and mount.family is not None:
                return mount
        return None
