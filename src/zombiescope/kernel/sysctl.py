"""Settings of the kernel that a plan may propose to change: /proc/sys, and one file of /sys.

They are read once, when a recording begins, so that the way back is known on whatever machine the plan is read.

Cost: a dozen small files. Absence: a kernel that lacks a setting has no file for it, and no value is told.
"""

from __future__ import annotations

import re

from zombiescope.kernel.procfile import at, read_file

THP_DEFRAG = "sys/kernel/mm/transparent_hugepage/defrag"
NAMES = (
    "kernel.bpf_stats_enabled", "kernel.hardlockup_panic", "kernel.numa_balancing", "kernel.panic", "kernel.printk",
    "kernel.sched_rt_runtime_us", "kernel.softlockup_panic", "kernel.watchdog_thresh",
    "net.ipv4.vs.run_estimation", "net.netfilter.nf_conntrack_buckets", "net.netfilter.nf_conntrack_max",
    "vm.compaction_proactiveness", "vm.min_free_kbytes", "vm.oom_dump_tasks",
)  # fmt: skip
MOST_CHARACTERS = 64
_VALUE = re.compile(r"-?\d+(?: -?\d+)*")


def read(root: str = "/") -> dict[str, str]:
    """Name -> value, as `sysctl` prints it; the file of /sys by its path, with the choice that holds."""
    found = {name: _value(read_file(at(root, f"proc/sys/{name.replace('.', '/')}"))) for name in NAMES}
    found[f"/{THP_DEFRAG}"] = _choice(read_file(at(root, THP_DEFRAG)))
    return {name: value for name, value in found.items() if value is not None}


def _value(data: bytes | None) -> str | None:
    """Numbers only: nothing else is among these names, and nothing else belongs in a command."""
    text = " ".join((data or b"").decode("ascii", "replace").split())
    return text if len(text) <= MOST_CHARACTERS and _VALUE.fullmatch(text) else None


def _choice(data: bytes | None) -> str | None:
    """The word in brackets: "always defer defer+madvise [madvise] never"."""
    chosen = re.search(rb"\[([a-z+]+)\]", data or b"")
    return None if chosen is None else chosen[1].decode("ascii")
