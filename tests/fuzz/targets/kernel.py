"""Files of /proc and /sys, the kernel log, and what cards answer: text that a neighbour can have a hand in."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.fuzz.target import Target
from zombiescope.kernel import (
    blocked_task,
    cgroup,
    cgroup_census,
    cgroup_leaf,
    cgroup_path,
    cpu,
    dentry,
    diskstats,
    ebs_nvme,
    gpu_driver,
    host,
    hypervisor,
    interrupts,
    kconfig,
    kmsg,
    loadavg,
    log_formats,
    meminfo,
    mountinfo,
    mountstats,
    netdev,
    pressure,
    privileges,
    process,
    rank_environment,
    schedstat,
    snmp,
    softirqs,
    softnet,
    stat,
    sysctl,
    syslog,
    tcp_sockets,
    tracefs,
    unix_sockets,
    vmstat,
)
from zombiescope.symbols import maps

FIXTURES = Path(__file__).parents[2] / "fixtures"

Parser = Callable[[bytes], object]

PARSERS: dict[str, tuple[Parser, str]] = {
    "stat": (stat.parse, "proc/stat"),
    "softirqs": (softirqs.parse, "proc/softirqs"),
    "interrupts": (interrupts.parse, "proc/interrupts"),
    "softnet": (softnet.parse, "proc/net/softnet_stat"),
    "schedstat": (schedstat.parse, "proc/schedstat"),
    "schedstat task": (schedstat.parse_task, "proc/10/schedstat"),
    "pressure": (pressure.parse, "proc/pressure/memory"),
    "vmstat": (vmstat.parse, "proc/vmstat"),
    "meminfo": (meminfo.parse, "proc/meminfo"),
    "snmp": (snmp.parse, "proc/net/snmp"),
    "netstat": (snmp.parse, "proc/net/netstat"),
    "netdev": (netdev.parse, "proc/net/dev"),
    "loadavg": (loadavg.parse, "proc/loadavg"),
    "dentry": (dentry.parse, "proc/sys/fs/dentry-state"),
    "cgroups": (cgroup.parse_cgroups, "proc/cgroups"),
    "census v1": (cgroup_census.parse_v1, "proc/cgroups"),
    "census v2": (cgroup_census.parse_v2, "sys/fs/cgroup/cgroup.stat"),
    "mountinfo": (cgroup.parse_mountinfo, "proc/self/mountinfo"),
    "membership": (cgroup.parse_membership, "proc/self/cgroup"),
    "flat": (cgroup_leaf.parse_flat, "sys/fs/cgroup/cgroup.stat"),
    "process stat": (process.parse_stat, "proc/4242/stat"),
    "cmdline": (process.parse_cmdline, "proc/4242/cmdline"),
    "status": (privileges.parse, "proc/self/status"),
    "cpulist": (cpu.parse_list, "sys/devices/system/cpu/possible"),
    "config": (kconfig.parse, "boot/config-5.4.0-1103-aws"),
    "os-release": (host.parse_os_release, "etc/os-release"),
    "instance-data": (host.parse_instance_data, "run/cloud-init/instance-data.json"),
}
"""Parsers of one file each, and where the fixtures have that file. None of them raises, whatever the text."""

SEED_BYTES = 4096
"""A parser of lines learns nothing from the hundredth; short seeds are mutated where it matters."""


def samples(path: str) -> list[bytes]:
    """That file of every node among the fixtures."""
    return [file.read_bytes() for node in sorted(FIXTURES.iterdir()) if (file := node / path).is_file()]


def _of_file(name: str, parse: Parser, path: str) -> Target:
    def seeds() -> list[bytes]:
        return [text[:SEED_BYTES] for text in samples(path)]

    most_bytes = 1024 if name == "cmdline" else 4096  # each word is looked at closely
    return Target(f"proc-{name.replace(' ', '-')}", parse, seeds, most_bytes=most_bytes)


def interrupt_tables(data: bytes) -> None:
    """A table that changes from second to second; what is counted never shrinks."""
    kept = interrupts.Interrupts()
    for text in data.split(b"\0"):
        assert all(delta > 0 for _, _, delta in kept.update(text))
    kept.devices()


def log_record(data: bytes) -> None:
    for record in (kmsg.parse(data), kmsg.parse_console(data), syslog.parse(data.decode("utf-8", "backslashreplace"))):
        if record is not None:
            log_formats.event_of(record)


def log_line(data: bytes) -> None:
    """The table of known lines, without the head that a record has."""
    log_formats.event_of(kmsg.KmsgRecord(3, 0, 1, 1, data.decode("utf-8", "backslashreplace")))


def paths(data: bytes) -> None:
    path = data.decode("utf-8", "surrogateescape")
    assert cgroup_path.normalise(path).count("/") == path.count("/")
    cgroup_path.owner(path)
    cgroup_path.container_at(path)


def small_values(data: bytes) -> None:
    sysctl._value(data)
    sysctl._choice(data)
    hypervisor.parse_flags(data)
    vendor, _, product = data.decode("utf-8", "replace").partition("\n")
    hypervisor.parse_dmi(vendor, product)
    assert process.printable(data).isprintable()


def record_layout(data: bytes) -> None:
    """A tracepoint's format, and a record read with it."""
    text, _, raw = data.partition(b"\0")
    for field in tracefs.parse(text).fields.values():
        field.number(raw)
        field.text(raw)


def code_maps(data: bytes) -> None:
    found = maps.parse(data)
    assert len(found) <= maps.MAX_MAPPINGS
    for mapping in found:
        assert found.find(mapping.start) is mapping


FORMAT = b"""name: cgroup_mkdir\nID: 372\nformat:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int root;\toffset:8;\tsize:4;\tsigned:1;
\tfield:u64 id;\toffset:16;\tsize:8;\tsigned:0;
\tfield:__data_loc char[] path;\toffset:24;\tsize:4;\tsigned:0;
\tfield:char comm[16];\toffset:28;\tsize:16;\tsigned:0;
\0""" + bytes(24) + b"\x1c\0\x08\0/docker\0"  # fmt: skip

MAPS = b"""55d0c0a00000-55d0c0b00000 r-xp 00001000 08:01 1234    /usr/bin/python3.11
7f0000000000-7f0000001000 r--p 00000000 00:00 0
7f1000000000-7f1000001000 r-xp 00000000 00:01 77   /memfd:jit\\012x (deleted)
7ffd1000-7ffd2000 r-xp 00000000 00:00 0   [vdso]
"""

RECORDS = (
    b"6,1234,98765432,-;Linux version\n SUBSYSTEM=pci\n DEVICE=+pci:0000:00:05.0\n",
    b"4,5,6,c,caller=T12;ena 0000:00:05.0 eth0: TX q 5 is paused for too long (threshold 5000000).",
    b"<4>[12612.193516][T12] Out of memory: Killed process 77 (python\\x0a3) total-vm:1kB",
)
PATHS = (
    b"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a1b2c3d_1111.slice/cri-containerd-"
    + b"ab" * 32
    + b".scope",
    b"/system.slice/docker-0123456789abcdef.scope",
    b"/user.slice/user-1000.slice/session-3.scope",
)


def _log_samples() -> Iterable[bytes]:
    return [line.sample.encode() for line in log_formats.FORMATS]


RUNTIME_SOCKET = b"/run/docker.sock"


def runtime_connections(data: bytes) -> None:
    """One answer of the kernel's dump of unix sockets."""
    unix_sockets.parse(data, frozenset({b"docker.sock"}))


def _unix_sockets() -> Iterable[bytes]:
    name = RUNTIME_SOCKET + bytes(-len(RUNTIME_SOCKET) % 4)
    attributes = struct.pack("=HH", 4 + len(RUNTIME_SOCKET), 0) + name + struct.pack("=HHI", 8, 2, 9)
    body = struct.pack("=BBBxIII", 1, 1, 1, 77, 0, 0) + attributes
    listed = struct.pack("=IHHII", 16 + len(body), 20, 2, 1, 0) + body
    return [listed, listed + struct.pack("=IHHIIi", 20, 3, 2, 1, 0, 0)]


def waiting_task(data: bytes) -> None:
    """The three files of a task that is looked at while it waits."""
    blocked_task.parse_state(data)
    blocked_task.parse_stack(data)
    blocked_task.parse_syscall(data, "x86_64")
    blocked_task.parse_user_place(data)


WAITING = (
    b"41 (a) b) D 1 41 41 0 -1 4194304 9 0 0 0 1 2 0 0 20 0 1 0 555 0 0 " + b"0 " * 28,
    b"[<0>] io_schedule+0x46/0x70\n[<0>] fuse_wait+0x1/0x2 [fuse]\n",
    b"0 0x3 0x7f 0x10 0x0 0x0 0x0 0x7ffd 0x7f11\n",
)
DISKS = b" 259 0 nvme0n1 1 0 8 1 2 0 16 2 1 3 3 0 0 0 0 1 1\n   7 0 loop0 0 0 0 0 0 0 0 0 0 0 0\n"
MOUNTS = b"29 1 0:26 / /mnt/a\\040b rw,relatime shared:1 - fuse.s3fs s3fs rw,user_id=0\n"
NFS = b"device srv:/d mounted on /d with fstype nfs4 statvers=1.1\n\tper-op statistics\n\tREAD: 9 10 0 1 2 3 4 5 0\n"
DRIVER = b"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\n"


def _sockets() -> list[bytes]:
    """One socket of each family, with all that is sent along, and the end."""
    about = bytes([2, 1, 0, 0]) + bytes(52) + b"\1" + bytes(15)
    attribute = (108).to_bytes(2, "little") + b"\2\0" + bytes(100) + b"\7\0\0\0"
    body = about + attribute
    head = (16 + len(body)).to_bytes(4, "little") + b"\x14\0\2\0" + bytes(8)
    end = (20).to_bytes(4, "little") + b"\3\0\2\0" + bytes(12)
    return [head + body + head + b"\x0a" + body[1:] + end]


TARGETS = (
    Target("waiting-task", waiting_task, lambda: WAITING),
    Target("ebs-log-page", ebs_nvme.parse, lambda: [ebs_nvme._PAGE.pack(ebs_nvme._MAGIC, *range(11))]),
    Target("preempt-mode", lambda data: kconfig.parse_debug(data.decode("ascii", "replace")), lambda: [b"none (full)"]),
    Target("proc-diskstats", diskstats.parse, lambda: [DISKS]),
    Target("mount-table", mountinfo.parse, lambda: [MOUNTS]),
    Target("proc-mountstats", mountstats.parse, lambda: [NFS]),
    Target("gpu-driver", gpu_driver.parse, lambda: [DRIVER]),
    *(_of_file(name, *entry) for name, entry in PARSERS.items()),
    Target(
        "proc-interrupts-in-time",
        interrupt_tables,
        lambda: [b"\0".join(text[:900] for text in samples("proc/interrupts"))],
    ),
    Target("proc-maps", code_maps, lambda: [MAPS]),
    Target("kmsg", log_record, lambda: RECORDS),
    Target("kernel-log-lines", log_line, _log_samples, most_bytes=1024),
    Target("cgroup-paths", paths, lambda: PATHS, most_bytes=1024),
    Target(
        "sys-values",
        small_values,
        lambda: [b"4\t4\t1\t7\n", b"always [madvise] never\n", b"flags\t\t: fpu hypervisor\n"],
    ),
    Target("tcp-sockets", tcp_sockets.parse, _sockets),
    Target("unix-sockets", runtime_connections, _unix_sockets, refusals=(OSError,)),
    Target("rank-environment", rank_environment.parse, lambda: [b"PATH=/bin\0RANK=3\0WORLD_SIZE=8\0SLURM_PROCID=3\0"]),
    Target("tracefs-format", record_layout, lambda: [FORMAT], refusals=(ValueError,)),
)
