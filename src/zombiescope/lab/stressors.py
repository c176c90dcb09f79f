"""Faults that nobody wrote a scenario for: the stressors of stress-ng, and what is true about each.

A stressor is one program that asks the kernel for one kind of thing as often as it can. None of our patterns was
written with them in mind, so they are a hold-out: whoever tunes a pattern by its own scenario is found out here.

The truth about a stressor is its process (stress-ng, in a cgroup of its own), the system call in which its own samples
are, and the patterns that its manual page bears out; any other pattern is wrong, and "not known" never is. The table
was written from the manual page of stress-ng 0.15, before anything was diagnosed; but `memory-turnover` and `bulk-io`,
which are newer than it, were entered after they had been seen on mmaphuge, rmap and sendfile, and three lines of the
page that had been overlooked after they had counted as wrong: resched "spawns a child process for each of the positive
nice levels", dynlib "exercises memory mapping", and sockmany opens "as many as 100000 TCP/IP socket connections" to one
port.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

from zombiescope.lab import programs

PROGRAM = "stress-ng"

EXCLUDED: Mapping[str, str] = {
    "apparmor": "loads security profiles for the whole machine",
    "bad-altstack": "breaks its own stacks until the kernel logs each crash",
    "bad-ioctl": "sends random requests to every device",
    "bigheap": "takes memory until the kernel kills something",
    "bind-mount": "mounts without end; its manual page warns that it hangs machines",
    "binderfs": "makes devices that stay",
    "clock": "sets the clock",
    "cpu-online": "takes cores offline",
    "dccp": "has the kernel load a protocol that stays",
    "dev": "opens every device and asks it for things",
    "efivar": "reads the variables of the firmware, which hangs some",
    "env": "takes memory until the kernel kills something",
    "gpu": "needs a display",
    "ignite-cpu": "changes settings of the processor",
    "ioport": "writes to I/O ports",
    "ioprio": "changes the I/O priority of every process of its user",
    "klog": "changes the level of the console and reads the kernel's log away from others",
    "kvm": "starts a virtual machine",
    "loop": "makes loop devices that stay",
    "memhotplug": "takes memory offline",
    "oom-pipe": "takes memory until the kernel kills something",
    "opcode": "executes random bytes",
    "pci": "reads registers of devices",
    "quota": "changes the quotas of mounted disks",
    "rawdev": "reads the disks past their file systems",
    "reboot": "asks for a reboot",
    "rtc": "sets the machine's clock chip",
    "sctp": "has the kernel load a protocol that stays",
    "set": "sets the clock, the name of the host and limits",
    "smi": "stops all cores in firmware",
    "softlockup": "takes every core with real-time priority, the recorder's too",
    "swap": "adds swap to the machine",
    "sysfs": "reads every file of every driver, and some answer by resetting",
    "syscall": "makes every system call there is, the ones above among them",
    "sysinval": "makes every system call with random arguments",
    "uprobe": "sets a probe in the C library of the whole machine",
    "watchdog": "opens the watchdog, which reboots a machine that it is not closed on",
}
"""Never run, and why."""

AS_ROOT = frozenset(
    {
        "chroot", "icmp-flood", "mknod", "netdev", "ping-sock", "ramfs", "rawpkt", "rawsock", "rawudp", "tun",
        "umount", "unshare",
    }
)  # fmt: skip
"""They need privileges for what is their own: mounts and network cards of their cage. All others run as nobody."""

_MAKE_PROCESSES = (
    "chroot clone daemon exec exit-group fork forkheavy landlock mlockmany mmapfork munmap netlink-proc netlink-task "
    "nice pidfd prctl pthread race-sched resched resources sigabrt sigchld seccomp session spawn stack sysbadaddr tun "
    "unshare vfork vforkmany vm-segv zombie"
)
_TOUCH_MEMORY = (
    "brk dev-shm dynlib fault madvise malloc memfd mlock mlockmany mmap mmapaddr mmapfixed mmapfork mmaphuge mmapmany "
    "mprotect mremap msync msyncmany munmap numa pagemove pageswap physpage remap resources rmap secretmem shm "
    "shm-sysv stack stackmmap tmpfs userfaultfd vm vm-addr vm-rw vm-segv vm-splice"
)
_READ_OR_WRITE_FILES = (
    "aio aiol copy-file fallocate fpunch fsize hdd io-uring iomix msync msyncmany readahead revio rmap seek sendfile "
    "sync-file"
)
_UNMAP_FOR_OTHERS = "madvise mprotect mremap munmap numa pagemove remap tlb-shootdown"
_ONLY = {
    "umount": "mount-storm",
    "ramfs": "mount-storm",
    "procfs": "smaps-reader mount-storm",
    "dentry": "negative-dentries",
    "unshare": "netns-churn",
    "mmaphuge": "thp-compaction",
    "sockmany": "port-exhaustion",
    "cyclic": "rt-hog",
    "schedpolicy": "rt-hog",
}
_AT_ITS_LIMIT = frozenset({"memcg-limit-reclaim", "oom-kill", "oom-console"})


def accepted(name: str, *, at_limit: bool = False, refused: bool = False) -> frozenset[str]:
    """Patterns that are true of a stressor. `at_limit`: its cage's memory limit was reached, as its cgroup counted;
    `refused`: that on processes."""
    found = set(_ONLY.get(name, "").split())
    for pattern, names in (
        ("fork-storm", _MAKE_PROCESSES), ("page-fault-storm", _TOUCH_MEMORY), ("memory-turnover", _TOUCH_MEMORY),
        ("bulk-io", _READ_OR_WRITE_FILES), ("tlb-shootdown", _UNMAP_FOR_OTHERS),
    ):  # fmt: skip
        if name in names.split():
            found.add(pattern)
    return frozenset(found | (_AT_ITS_LIMIT if at_limit else set()) | ({"limit-exhausted"} if refused else set()))


def every() -> list[str]:
    """All stressors of the stress-ng that is installed. Raises CannotBuildError where there is none."""
    return programs.call([PROGRAM, "--stressors"], limit_s=30.0).split()


def version() -> str:
    try:
        return programs.call([PROGRAM, "--version"], limit_s=30.0).split()[2]
    except (IndexError, subprocess.SubprocessError):
        return "unknown"
