"""A service that is in a crash loop at this moment. `systemctl --failed` does not list it: between two runs it is
"activating (auto-restart)", never failed."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator

from zombiescope.audit.finding import EvidenceLine, Finding
from zombiescope.audit.node import Node
from zombiescope.audit.protected import protection
from zombiescope.node.systemd.show import RunningUnit
from zombiescope.node.systemd.unit_files.timespan import human

ID = "auto-restart"
TITLE = "A service that crashes and is restarted, now"

MANY_RESTARTS = 5
RECENT_S = 60.0
"""A service that was restarted often and changed its state within this time is in its loop still."""
OLD_S = 3600.0


def find(node: Node) -> Iterator[Finding]:
    for name, unit in sorted((node.running or {}).items()):
        if not name.endswith(".service"):
            continue
        restarts = unit.number("NRestarts") or 0
        waits = unit.sub_state.endswith(("auto-restart", "auto-restart-queued"))
        if waits or (restarts >= MANY_RESTARTS and unit.active_state != "failed"):  # failed: systemd has given it up
            yield _finding(node, unit, restarts, waits)


def _finding(node: Node, unit: RunningUnit, restarts: int, waits: bool) -> Finding:
    service = node.service(unit.name)
    endless = service is not None and service.is_endless()
    age_s = _age_s(unit)
    loops = waits or (age_s < RECENT_S and restarts >= MANY_RESTARTS)
    times = {0: "not restarted yet", 1: "restarted once so far"}.get(restarts, f"restarted {restarts:,} times so far")
    known = "NRestarts" in unit.properties
    counted = f", NRestarts={restarts}" if known else ""
    state = "It has exited and waits for its next start" if waits else f"It is {unit.sub_state}"
    loop = f" systemd will restart it every {human(service.restart_us)}, without end." if endless and service else ""
    ending = f"; its last result: {unit.text('Result')}, status {unit.number('ExecMainStatus')}" if known else ""
    return Finding(
        id=f"{ID}:{unit.name}",
        rule=ID,
        unit=unit.name,
        severity=_severity(loops, endless or restarts >= MANY_RESTARTS, age_s),
        why=f"{state}{f', {times}' if known else ''}{ending}.{loop}",
        evidence=(
            EvidenceLine(f"systemd: {unit.name}", None, f"{unit.active_state} ({unit.sub_state}){counted}"),
            *node.evidence_of(unit.name),
        ),
        fix=(
            shlex.join(["journalctl", "--unit", unit.name, "--lines", "50"]),
            _stop(node, unit.name),
        ),
    )


def _stop(node: Node, unit: str) -> str:
    if (why := protection(unit)) is not None:
        return f"# no command is given for {unit}: {why}"
    return node.disable(unit) if unit in node.starts else shlex.join(["systemctl", "stop", unit])


def _age_s(unit: RunningUnit) -> float:
    """Since its state changed last; nothing known is long ago."""
    changed_us = unit.number("StateChangeTimestamp")
    return time.time() - changed_us / 1e6 if changed_us else float("inf")


def _severity(loops: bool, goes_on: bool, age_s: float) -> str:
    if loops:
        return "critical" if goes_on else "warning"
    return "warning" if age_s < OLD_S else "info"
