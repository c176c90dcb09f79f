"""Timers that fire often. Each run of a service makes a cgroup and removes it; what the run read or wrote keeps the
removed one alive as a zombie until its pages are reclaimed (systemd PR 36827, from Oracle's customers)."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.audit.finding import Finding
from zombiescope.audit.node import Node, shown
from zombiescope.node.systemd.unit_files import Unit
from zombiescope.node.systemd.unit_files.calendar import repeats, runs_per_day

ID = "timer-churn"
TITLE = "A timer that makes and removes a cgroup often"

OFTEN_PER_DAY = 144
"""Every ten minutes, as sysstat does."""
VERY_OFTEN_PER_DAY = 1440


def find(node: Node) -> Iterator[Finding]:
    for name in sorted(node.starts):
        unit = node.files.unit(name) if name.endswith(".timer") else None
        runs = runs_per_day(unit) if unit is not None else None
        if unit is not None and runs is not None and runs >= OFTEN_PER_DAY * 0.99:
            yield _finding(node, unit, runs)


def _finding(node: Node, unit: Unit, runs: float) -> Finding:
    per_month = f"{runs * 30:,.0f}"
    return Finding(
        id=f"{ID}:{unit.name}",
        rule=ID,
        unit=unit.name,
        severity="warning" if runs >= VERY_OFTEN_PER_DAY * 0.99 else "info",
        why=f"It fires {runs:,.0f} times a day, and each run makes and removes a memory cgroup: up to {per_month} a "
        "month, of which those that left a page in the cache stay as zombies.",
        evidence=(*map(shown, repeats(unit)), *node.evidence_of(unit.name)),
        fix=(
            f"# if it is not needed: {node.disable(unit.name)}",
            "# if once an hour is enough (an empty OnCalendar= clears all of its times):",
            *node.drop_in(unit.name, "50-rarer", "[Timer]", "OnCalendar=", "OnCalendar=hourly"),
        ),
    )
