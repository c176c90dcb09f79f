"""Why perf_event_open was refused, and what grants it on the kernel that runs here.

CAP_PERFMON came with 5.8; a kernel that does not have it asks for CAP_SYS_ADMIN, and granting the other does nothing.
What the kernel knows is asked of the kernel (cap_last_cap), for distributions carry capabilities back.
"""

from __future__ import annotations

import errno
import resource
import sys

from zombiescope.kernel import host, privileges, procfile
from zombiescope.kernel.perf_event import Clock, RingMemoryError
from zombiescope.kernel.privileges import Privileges
from zombiescope.kernel.release import kernel_version

MLOCK_KB = "/proc/sys/kernel/perf_event_mlock_kb"
MAX_RATE = "/proc/sys/kernel/perf_event_max_sample_rate"
DROP_IN = "before-linux-5.8.conf"
_UNIT = "zombiescope.service"


def explain(error: OSError, clock: Clock) -> tuple[str, str]:
    """(why, what grants it)."""
    if isinstance(error, RingMemoryError):
        return _memory(error)
    if error.errno in (errno.EACCES, errno.EPERM):
        may = privileges.read()
        return f"perf_event_open: {error.strerror} (perf_event_paranoid={may.perf_event_paranoid})", _grant(may)
    most = procfile.read_int(MAX_RATE)
    if error.errno == errno.EINVAL and most is not None and most < clock.hz:
        why = f"perf_event_open: {clock.hz} samples per second exceed kernel.perf_event_max_sample_rate={most}"
        return why, f"sysctl -w kernel.perf_event_max_sample_rate={max(clock.hz * 10, 1000)}, or --hz {max(most, 1)}"
    if error.errno in (errno.ENOENT, errno.EOPNOTSUPP) and clock.has_period:
        return "this machine has no hardware cycle counter", "--event cpu-clock"
    if error.errno == errno.ENOSYS:
        return (
            "perf_event_open: not there (no CONFIG_PERF_EVENTS, or a seccomp profile)",
            "a seccomp profile that allows it",
        )
    if error.errno == errno.EMFILE:
        return "too many open files", "a higher limit: LimitNOFILE=65536"
    return f"perf_event_open: {error.strerror}", "see `man perf_event_open`"


def _memory(error: RingMemoryError) -> tuple[str, str]:
    """Pinned pages count against a share of every user's, then against RLIMIT_MEMLOCK; another profiler of the same
    user takes of both."""
    known = procfile.read_int(MLOCK_KB)
    why = f"memory of a ring could not be pinned: {error.strerror} (kernel.perf_event_mlock_kb={known}"
    why += f", ulimit -l {_limit_kb()}; other profilers of this user share both)"
    return why, "CAP_IPC_LOCK, LimitMEMLOCK=infinity in the unit, or sysctl -w kernel.perf_event_mlock_kb=8192"


def _limit_kb() -> str:
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return "unlimited" if soft == resource.RLIM_INFINITY else str(soft >> 10)


def _grant(may: Privileges) -> str:
    release = host.read().release
    return grant(may, release, has_perfmon(may, release))


def has_perfmon(may: Privileges, release: str) -> bool:
    """Whether this kernel has the capability at all."""
    if may.last_capability is not None:
        return may.last_capability >= privileges.CAPABILITIES.index("CAP_PERFMON")
    return (kernel_version(release) or (5, 8)) >= (5, 8)


def grant(may: Privileges, release: str, perfmon: bool) -> str:
    """What a person has to do, by what this kernel asks for and what the process has already."""
    paranoid = may.perf_event_paranoid
    strict = paranoid is not None and paranoid > 2
    held = may.effective or frozenset()
    if "CAP_SYS_ADMIN" in held or (perfmon and "CAP_PERFMON" in held and not strict):
        return "nothing of ours: the capability is there, and a security module or a seccomp profile refuses it"
    if not perfmon:
        source, target = f"{sys.prefix}/share/zombiescope/{DROP_IN}", f"/etc/systemd/system/{_UNIT}.d/{DROP_IN}"
        return (
            f"CAP_SYS_ADMIN: this kernel ({release}) has no CAP_PERFMON. As a service: "
            f"install -D -m 644 {source} {target} && systemctl daemon-reload && systemctl restart {_UNIT}. "
            "(Or sysctl kernel.perf_event_paranoid=-1, which opens perf to every user.)"
        )
    wanted = "CAP_PERFMON (AmbientCapabilities=CAP_PERFMON)"
    if strict:
        wanted += f", and with perf_event_paranoid={paranoid}: CAP_SYS_ADMIN or sysctl kernel.perf_event_paranoid=2"
    return wanted
