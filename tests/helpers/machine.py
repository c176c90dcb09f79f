"""What a run of the laboratory could leave behind on this machine, to be compared before and after.

Other tests may run beside, so processes and files are counted by the laboratory's name only.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from zombiescope.kernel import cgroup
from zombiescope.lab.sandbox import MARK

# These change by themselves, or are commands and not settings.
VOLATILE = ("kernel/random", "fs/", "kernel/ns_last_pid", "kernel/pty", "vm/drop_caches", "vm/compact_memory",
            "net/netfilter/nf_conntrack_count", "kernel/perf_event_max_sample_rate", "user/")  # fmt: skip
RUNTIME_PLACES = ("/run/containerd", "/run/docker", "/run/runc", "/run/docker.sock", "/etc/docker", "/var/lib/docker",
                  "/var/lib/containerd", "/var/lib/kubelet", "/var/lib/cni", "/var/log/pods", "/var/log/containers",
                  "/etc/cni", "/etc/kubernetes")  # fmt: skip


@dataclass(frozen=True)
class Machine:
    cgroups: frozenset[str]
    mounts: frozenset[str]
    networks: frozenset[str]
    firewall: str
    processes: frozenset[str]
    files: frozenset[str]
    runtimes: frozenset[str]
    sysctls: tuple[tuple[str, bytes], ...]

    @classmethod
    def now(cls) -> Machine:
        mounts = [Path(one.mount) for one in cgroup.hierarchies() if one.mount]
        places = [place for place in (Path("/tmp"), Path("/dev/shm")) if place.is_dir()]
        return cls(
            frozenset(str(path) for mount in mounts for path in mount.iterdir() if path.is_dir()),
            frozenset(line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()),
            frozenset(_networks()),
            _firewall(),
            frozenset(of_the_lab()),
            frozenset(str(path) for place in places for path in place.iterdir() if path.name.startswith(MARK)),
            frozenset(_runtimes()),
            tuple(_sysctls()),
        )


def _networks() -> Iterator[str]:
    """Network namespaces: those of processes, and those that a file keeps."""
    for link in Path("/proc").glob("[0-9]*/ns/net"):
        with suppress(OSError):
            yield str(link.readlink())
    yield from (f"/run/netns/{path.name}" for path in Path("/run/netns").glob("*"))


def _firewall() -> str:
    """Names of the tables that hold rules; a runtime that writes any makes the first of them."""
    read = []
    for name in ("ip_tables_names", "ip6_tables_names"):
        with suppress(OSError):
            read.append(Path("/proc/net", name).read_text())
    return "".join(read)


def of_the_lab() -> Iterator[str]:
    """By their cgroup or their command line; a scenario's program carries its script there, and its forks do too."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            mine = MARK in (entry / "cgroup").read_text() or MARK in command
            if _left_to_init(entry):
                continue
        except OSError:
            continue
        if int(entry.name) != os.getpid() and (mine or "zombiescope.lab" in command or "wait_for_the_word" in command):
            yield f"{entry.name} {command[:80]}"


def _left_to_init(entry: Path) -> bool:
    """A dead process that pid 1 has inherited and not reaped yet: when it does is up to pid 1, nobody else can."""
    state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
    return state == "Z" and parent == "1"


def _runtimes() -> Iterator[str]:
    """Files of container runtimes where those of the node have theirs; two levels are enough to see a new one."""
    for place in map(Path, RUNTIME_PLACES):
        yield from (str(path) for path in (place, *place.glob("*"), *place.glob("*/*")) if path.exists())


def _sysctls() -> Iterator[tuple[str, bytes]]:
    for path in sorted(Path("/proc/sys").rglob("*")):
        if (
            path.is_file()
            and not str(path.relative_to("/proc/sys")).startswith(VOLATILE)
            and path.stat().st_mode & 0o444
        ):
            try:
                yield str(path), path.read_bytes()
            except OSError:
                continue
