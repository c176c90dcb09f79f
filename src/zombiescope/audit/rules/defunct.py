"""Processes that have ended and that their parent does not wait for. People who look for zombies find these first;
dying cgroups are another kind."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.audit.finding import EvidenceLine, Finding
from zombiescope.audit.node import Node
from zombiescope.audit.surroundings.defunct import ANOTHER_KIND

ID = "defunct"
TITLE = "Processes that have ended and that nobody waits for"

MANY = 100
"""Each holds a process number, of which there are 32,768 by default."""


def find(node: Node) -> Iterator[Finding]:
    found = node.surroundings.defunct
    if found is None or not found.lasting:
        return
    parent = found.parents[0]
    who = f"{parent.comm or '?'} (pid {parent.pid})"
    yield Finding(
        id=f"{ID}:processes",
        rule=ID,
        unit=None,
        severity="warning" if found.lasting >= MANY else "info",
        why=f"{found.lasting} defunct processes, {parent.defunct} of them left by {who}; {ANOTHER_KIND}",
        evidence=(EvidenceLine("/proc/PID/stat", None, f"{found.lasting} in state Z twice; a warning from {MANY} on"),),
        fix=(f"# the parent has to wait for them: fix or restart {who}",),
    )
