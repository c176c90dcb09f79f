"""A kernel with a path whose cost grows with the number of memory cgroups (catalogue/kernels.toml)."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.audit.catalogue import Kernel
from zombiescope.audit.finding import EvidenceLine, Finding
from zombiescope.audit.node import Node

ID = "kernel-path"
TITLE = "A kernel with an expensive path"


def find(node: Node) -> Iterator[Finding]:
    for entry in node.catalogue.kernels:
        unsure = entry.hierarchy == 1 and node.kernel.memory_hierarchy is None
        if entry.hierarchy == 1 and not unsure:
            continue  # the rule cgroup-v1 reports it, or it does not apply
        covered = node.kernel.covered(entry)
        if covered:
            yield _finding(entry, covered, unsure)


def _finding(entry: Kernel, covered: list[tuple[str, EvidenceLine]], unsure: bool) -> Finding:
    names = ", ".join(release for release, _ in covered)
    maybe = " This applies where memory is on cgroup v1; whether it is cannot be seen here." if unsure else ""
    return Finding(
        id=f"{ID}:{entry.id}",
        rule=ID,
        unit=None,
        severity="info" if unsure else entry.severity,
        why=f"On kernel {names} {entry.what}. {entry.why}{maybe}",
        evidence=tuple(where for _, where in covered),
        fix=(entry.upgrade,),
    )
