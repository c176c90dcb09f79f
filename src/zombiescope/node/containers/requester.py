"""Who ran a runtime's client: the parent of `docker run`, past the programs that only wrap a command.

Read from /proc while the client lives; the start times of a process and of its parent keep a number that was used again
from being taken for it. Cost: three files of /proc for each step, at most MAX_STEPS. Absence: None.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from zombiescope.kernel import cgroup_namespace, process, procfile
from zombiescope.kernel.cgroup_path import Owner
from zombiescope.kernel.process import Process
from zombiescope.kernel.procfile import at
from zombiescope.node.containers import client, files
from zombiescope.node.containers.client import Client
from zombiescope.node.containers.runtimes import verified_owner

MAX_STEPS = 8
MAX_PROCESSES = 1 << 16
MAX_RUNNING = 64
COMMAND_TEXT = 512
WRAPPERS = frozenset(
    {
        "sudo", "doas", "su", "runuser", "timeout", "env", "nice", "ionice", "chrt", "taskset", "nohup", "setsid",
        "time", "flock", "xargs", "stdbuf", "unshare", "nsenter", "script", "faketime", "strace",
    }
)  # fmt: skip
CMDLINE_BYTES = 16_384


@dataclass(frozen=True, slots=True)
class Requester:
    comm: str
    pid: int
    unit: str | None = None
    command: str | None = None
    container: str | None = None
    how: str = "command line"
    """ "command line" of a client, or "socket": a connection to the runtime when the container was made."""

    @property
    def identity(self) -> tuple[str | None, ...]:
        """The same for two processes of one unit or one container."""
        return (self.unit, self.container) if self.unit or self.container else (self.comm, self.command)


@dataclass(frozen=True, slots=True)
class Asking:
    """A client that runs, what it asks for and for whom."""

    client: Client
    start_time_ticks: int
    requester: Requester | None


def read(pid: int, root: str = "/") -> Asking | None:
    """None where the process is gone or asks for no container."""
    asked = client.parse(_words(pid, root))
    found = process.read(pid, root) if asked is not None else None
    if asked is None or found is None:
        return None
    return Asking(asked, found.start_time_ticks, _requester(found, root))


def running(root: str = "/") -> list[tuple[int, Asking]]:
    """The clients that run now. The one look at all of /proc, for a recorder that has just begun: 20 us a process."""
    found = []
    for name in (procfile.names_in(at(root, "proc")) or [])[:MAX_PROCESSES]:
        if name.isdecimal() and _comm(name, root) in client.PROGRAMS and (asking := read(int(name), root)) is not None:
            found.append((int(name), asking))
    return found[:MAX_RUNNING]


def _comm(pid: str, root: str) -> str:
    return (procfile.read_file(at(root, f"proc/{pid}/comm")) or b"").decode("utf-8", "replace").rstrip("\n")


def _words(pid: int, root: str) -> bytes:
    try:
        with open(at(root, f"proc/{pid}/cmdline"), "rb", buffering=0) as file:
            return file.read(CMDLINE_BYTES) or b""
    except OSError:
        return b""


def _requester(found: Process, root: str) -> Requester:
    """The nearest ancestor that decided something. A client that pid 1 started is a unit's own command."""
    for _ in range(MAX_STEPS):
        parent = process.read(found.ppid, root) if found.ppid > 1 else None
        if parent is None or parent.start_time_ticks > found.start_time_ticks:
            break
        found = parent
        if found.comm not in WRAPPERS and found.comm not in client.PROGRAMS:
            break
    return _of(found, root)


def _of(found: Process, root: str, how: str = "command line") -> Requester:
    owner = unit_of(found, root)
    container = None if owner.unit else owner.container
    return Requester(found.comm, found.pid, owner.unit, files.text(found.cmdline, COMMAND_TEXT), container, how)


def connected(pid: int, root: str = "/") -> Requester | None:
    """Who a process is that is connected to a runtime; behind a client of a runtime, who ran it. None where it is
    gone."""
    found = process.read(pid, root)
    if found is None:
        return None
    if found.comm in client.PROGRAMS:
        return replace(_requester(found, root), how="socket")
    return _of(found, root, "socket")


def unit_of(found: Process, root: str = "/") -> Owner:
    """Whose a process is: systemd's own hierarchy says it where there is one."""
    paths = [found.systemd_cgroup] if found.systemd_cgroup else []
    owners = [verified_owner(path, cgroup_namespace.node_root(root)) for path in [*paths, *found.cgroups.values()]]
    return next((one for one in owners if one.unit or one.container), Owner())
