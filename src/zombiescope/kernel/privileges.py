"""What this process may do: its effective capabilities and the sysctls that gate what a recorder reads.

Fields: CapEff of /proc/self/status as names; kernel.perf_event_paranoid, perf_event_mlock_kb,
perf_event_max_sample_rate, kptr_restrict, dmesg_restrict and cap_last_cap (the highest capability that this kernel
knows) of /proc/sys/kernel.

Cost: seven small files, read at start. Absence: a sysctl that the kernel lacks, or that a container masks, is
None.
"""

from dataclasses import dataclass

from zombiescope.kernel.procfile import at, read_file, read_int

CAPABILITIES = (
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_DAC_READ_SEARCH",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_SETGID",
    "CAP_SETUID",
    "CAP_SETPCAP",
    "CAP_LINUX_IMMUTABLE",
    "CAP_NET_BIND_SERVICE",
    "CAP_NET_BROADCAST",
    "CAP_NET_ADMIN",
    "CAP_NET_RAW",
    "CAP_IPC_LOCK",
    "CAP_IPC_OWNER",
    "CAP_SYS_MODULE",
    "CAP_SYS_RAWIO",
    "CAP_SYS_CHROOT",
    "CAP_SYS_PTRACE",
    "CAP_SYS_PACCT",
    "CAP_SYS_ADMIN",
    "CAP_SYS_BOOT",
    "CAP_SYS_NICE",
    "CAP_SYS_RESOURCE",
    "CAP_SYS_TIME",
    "CAP_SYS_TTY_CONFIG",
    "CAP_MKNOD",
    "CAP_LEASE",
    "CAP_AUDIT_WRITE",
    "CAP_AUDIT_CONTROL",
    "CAP_SETFCAP",
    "CAP_MAC_OVERRIDE",
    "CAP_MAC_ADMIN",
    "CAP_SYSLOG",
    "CAP_WAKE_ALARM",
    "CAP_BLOCK_SUSPEND",
    "CAP_AUDIT_READ",
    "CAP_PERFMON",
    "CAP_BPF",
    "CAP_CHECKPOINT_RESTORE",
)
"""By bit number."""


@dataclass(frozen=True, slots=True)
class Privileges:
    effective: frozenset[str] | None
    perf_event_paranoid: int | None
    perf_event_mlock_kb: int | None
    perf_event_max_sample_rate: int | None
    kptr_restrict: int | None
    dmesg_restrict: int | None
    last_capability: int | None = None
    """Its bit number: an older kernel knows fewer."""


def parse(data: bytes) -> frozenset[str] | None:
    """The effective capabilities in the text of a status file; None where it has no whole CapEff line."""
    for line in data[: data.rfind(b"\n") + 1].split(b"\n"):
        name, _, text = line.partition(b":")
        if name == b"CapEff":
            try:
                mask = int(text, 16)
            except ValueError:
                return None
            return frozenset(cap for bit, cap in enumerate(CAPABILITIES) if mask >> bit & 1)
    return None


def read(root: str = "/") -> Privileges:
    sysctl = at(root, "proc/sys/kernel")
    return Privileges(
        effective=parse(read_file(at(root, "proc/self/status")) or b""),
        perf_event_paranoid=read_int(f"{sysctl}/perf_event_paranoid"),
        perf_event_mlock_kb=read_int(f"{sysctl}/perf_event_mlock_kb"),
        perf_event_max_sample_rate=read_int(f"{sysctl}/perf_event_max_sample_rate"),
        kptr_restrict=read_int(f"{sysctl}/kptr_restrict"),
        dmesg_restrict=read_int(f"{sysctl}/dmesg_restrict"),
        last_capability=read_int(f"{sysctl}/cap_last_cap"),
    )
