"""The table of what is fuzzed; a parser of foreign bytes that is not in it is not fuzzed."""

from __future__ import annotations

from tests.fuzz.target import Target
from tests.fuzz.targets import agent, files, fleet, kernel, node, perf, python, ray, recording, symbols

BY_NEIGHBOURS = frozenset(
    {
        "ring-records", "ring-memory", "elf", "gopclntab", "separate-debug", "perf-map", "jitdump", "demangling",
        "debugdata-xz", "marks", "journal", "docker-files", "oci-bundle", "container-storage", "container-clients",
        "proc-cmdline", "proc-maps", "proc-process-stat", "proc-membership", "proc-mountinfo", "mount-table",
        "waiting-task", "python-offsets", "python-lines", "python-memory", "python-loaded", "python-maps",
        "kmsg", "kernel-log-lines", "cgroup-paths", "shown-names",
    }
)  # fmt: skip
"""Read by the recorder while it has capabilities, and a user of the node has a say in the bytes."""
BY_STRANGERS = frozenset(target.name for module in (perf, recording, files, fleet) for target in module.TARGETS)
"""Files that somebody sent, read by whoever opens them."""
NEIGHBOURS, STRANGERS, KERNEL = 6, 3, 1

TARGETS: dict[str, Target] = {
    target.name: target
    for module in (perf, symbols, python, recording, files, node, kernel, ray, agent, fleet)
    for target in sorted(module.TARGETS, key=lambda target: not target.native)
}


def weight(name: str) -> int:
    """How many times the executions of a file that only the kernel writes this one gets, while there are too few."""
    if name in BY_NEIGHBOURS:
        return NEIGHBOURS
    return STRANGERS if name in BY_STRANGERS else KERNEL
