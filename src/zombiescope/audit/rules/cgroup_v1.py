"""Memory accounted on cgroup v1 by a kernel on which that is expensive (catalogue/kernels.toml, hierarchy = 1)."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.audit.catalogue import Kernel
from zombiescope.audit.finding import EvidenceLine, Finding
from zombiescope.audit.node import Node

ID = "cgroup-v1"
TITLE = "cgroup v1 on a kernel where that is expensive"


def find(node: Node) -> Iterator[Finding]:
    if node.kernel.memory_hierarchy != 1:
        return
    for entry in node.catalogue.kernels:
        if entry.hierarchy == 1:
            covered = node.kernel.covered(entry)
            if covered:
                yield _finding(node, entry, covered)


def _finding(node: Node, entry: Kernel, covered: list[tuple[str, EvidenceLine]]) -> Finding:
    names = ", ".join(release for release, _ in covered)
    on_kubernetes = "kubernetes" in node.platform.orchestrators
    memory = node.kernel.memory_evidence
    return Finding(
        id=f"{ID}:{entry.id}",
        rule=ID,
        unit=None,
        severity="critical" if on_kubernetes and entry.severity == "warning" else entry.severity,
        why=f"Memory is accounted on cgroup v1, and on kernel {names} {entry.what}. {entry.why}",
        evidence=(*(where for _, where in covered), *((memory,) if memory else ())),
        fix=(
            entry.upgrade,
            "# or, where the software on it can: systemd.unified_cgroup_hierarchy=1 on the kernel's command line",
        ),
    )
