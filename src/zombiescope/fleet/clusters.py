"""Like incidents: those whose kernel paths are nearly the same, whatever they were called.

Paths that are equal are one to begin with. Two are alike when they share most of their functions (Jaccard, LIKE), not
counting what every system call begins with; a cluster is led by its most frequent path, and whatever is like the leader
joins it. Patterns that share a cluster are the same fault under two names, and one pattern in two clusters has two ways
to happen.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from zombiescope.fleet.statistics import IncidentFigures

LIKE = 0.6
MOST_PATHS, MOST_LISTED = 2000, 20
_EVERYBODY = frozenset(
    {
        "entry_SYSCALL_64_after_hwframe", "do_syscall_64", "x64_sys_call", "el0_svc", "el0_svc_common", "do_el0_svc",
        "invoke_syscall", "ret_from_fork", "ret_from_fork_asm", "kthread", "asm_exc_page_fault", "exc_page_fault",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cluster:
    path: tuple[str, ...]
    """The most frequent one."""
    incidents: int
    nodes: int
    patterns: tuple[tuple[str, int], ...]
    paths: int
    """How many different ones are in it."""


def clusters(incidents: Sequence[IncidentFigures]) -> list[Cluster]:
    """By nodes, the most first. Incidents without a kernel path are in none."""
    of_path: dict[tuple[str, ...], list[IncidentFigures]] = defaultdict(list)
    for incident in incidents:
        if incident.frames:
            of_path[incident.frames].append(incident)
    ranked = sorted(of_path, key=lambda path: (-len(of_path[path]), path))[:MOST_PATHS]
    leaders: list[tuple[tuple[str, ...], frozenset[str]]] = []
    members: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for path in ranked:
        own = frozenset(path) - _EVERYBODY or frozenset(path)
        leader = next((first for first, theirs in leaders if _like(own, theirs)), None)
        if leader is None:
            leaders.append((path, own))
            members[path] = [path]
        else:
            members[leader].append(path)
    made = [
        _cluster(leader, [one for path in paths for one in of_path[path]], len(paths))
        for leader, paths in members.items()
    ]
    return sorted(made, key=lambda cluster: (-cluster.nodes, -cluster.incidents, cluster.path))[:MOST_LISTED]


def _like(first: frozenset[str], second: frozenset[str]) -> bool:
    return len(first & second) >= LIKE * len(first | second)


def _cluster(path: tuple[str, ...], incidents: Sequence[IncidentFigures], paths: int) -> Cluster:
    patterns = Counter(incident.pattern for incident in incidents)
    nodes = len({incident.node for incident in incidents})
    return Cluster(path, len(incidents), nodes, tuple(patterns.most_common(5)), paths)
