"""A service whose start limit reboots the node: whatever makes it fail quickly makes the node reboot in a loop."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.audit.finding import Finding
from zombiescope.audit.node import Node, shown
from zombiescope.node.systemd.unit_files.timespan import human

ID = "restart-reboots"
TITLE = "A service that reboots the node when it fails often"


def find(node: Node) -> Iterator[Finding]:
    for service in node.started_services():
        action = service.start_limit_action
        if not action.startswith(("reboot", "poweroff", "exit", "kexec", "halt")) or service.is_endless():
            continue
        where = service.where.get("StartLimitAction")
        yield Finding(
            id=f"{ID}:{service.name}",
            rule=ID,
            unit=service.name,
            severity="warning",
            why=f"After {service.burst} starts within {human(service.interval_us)} systemd performs {action}: "
            "a failure of this one service takes the node and every job on it down, again after each boot.",
            evidence=(shown(where),) if where else node.evidence_of(service.name),
            fix=node.drop_in(service.name, "50-no-reboot", "[Unit]", "StartLimitAction=none"),
        )
