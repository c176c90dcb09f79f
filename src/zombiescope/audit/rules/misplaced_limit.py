"""StartLimitIntervalSec= in [Service], where systemd ignores it: the limit that its author had in mind is not in
force. (StartLimitInterval= is still accepted there; the new name never was.)"""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.audit.finding import Finding
from zombiescope.audit.node import Node, shown
from zombiescope.node.systemd.unit_files.timespan import human

ID = "misplaced-limit"
TITLE = "A start limit in a section where systemd ignores it"


def find(node: Node) -> Iterator[Finding]:
    for service in node.started_services():
        if not service.passed_over:
            continue
        limit = f"{service.burst} starts within {human(service.interval_us)}" if service.has_start_limit else "none"
        yield Finding(
            id=f"{ID}:{service.name}",
            rule=ID,
            unit=service.name,
            severity="warning" if service.is_endless() else "info",
            why=f"systemd ignores StartLimitIntervalSec= in [Service]; the limit in force is {limit}.",
            evidence=tuple(shown(item) for item in service.passed_over),
            fix=(
                "# move the line into the section [Unit], or:",
                *node.drop_in(
                    service.name, "50-start-limit", "[Unit]", f"StartLimitIntervalSec={service.passed_over[-1].value}"
                ),
            ),
        )
