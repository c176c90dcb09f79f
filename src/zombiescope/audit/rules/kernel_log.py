"""What the kernel log still holds since boot: a card that was reset or a core that locked up is worth knowing while
everything looks well."""

from __future__ import annotations

import time
from collections.abc import Iterator

from zombiescope.audit.finding import EvidenceLine, Finding
from zombiescope.audit.node import Node
from zombiescope.audit.surroundings.kernel_log import LogKind

ID = "kernel-log"
TITLE = "Resets, lockups or kills in the kernel log since boot"

RECENT_S = 86_400.0
STILL_SERIOUS = frozenset({"nic_reset", "nic_tx_timeout", "soft_lockup", "hard_lockup", "rcu_stall"})
"""Of these, one that is less than a day old is worth a warning; a process killed for its own limit is not."""


def find(node: Node) -> Iterator[Finding]:
    log = node.surroundings.log
    for one in log.kinds if log is not None else ():
        yield _finding(one, time.time() - one.last_us / 1e6)


def _finding(one: LogKind, since_s: float) -> Finding:
    times = f"{one.count} times" if one.count > 1 else "once"
    return Finding(
        id=f"{ID}:{one.kind}",
        rule=ID,
        unit=None,
        severity="warning" if since_s < RECENT_S and one.kind in STILL_SERIOUS else "info",
        why=f"the kernel log has {one.kind} {times} since boot, last {ago(since_s)}: {' '.join(one.text.split())}",
        evidence=(
            EvidenceLine(
                "/dev/kmsg",
                None,
                f"{one.count} lines; a warning if the last is a reset or a lockup, and less than a day old",
            ),
        ),
        fix=(),
    )


def ago(seconds: float) -> str:
    for size, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {name} ago"
    return "a moment ago"
