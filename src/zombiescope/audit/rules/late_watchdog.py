"""A lockup detector that reports too late, or not at all.

The kernel reports a soft lockup after twice kernel.watchdog_thresh: 20 s by default. Network cards give up after 5 s
(ENA), so a stall of 5 to 19 s resets the card and leaves no stack in the log that says who held the core.

A lower threshold is only a report where a lockup does not end the node: with kernel.softlockup_panic or
kernel.hardlockup_panic it would turn a stall of four seconds into a restart.
"""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.audit.finding import EvidenceLine, Finding
from zombiescope.audit.node import Node
from zombiescope.base.text import number

ID = "late-watchdog"
TITLE = "A lockup detector that misses stalls of 5 to 19 seconds"
PANICS = ("kernel.softlockup_panic", "kernel.hardlockup_panic")
SYSCTLS = ("kernel.watchdog_thresh", "kernel.watchdog", "kernel.soft_watchdog", *PANICS)

NIC_GIVES_UP_S = 5
_DEFAULT_S = 10


def find(node: Node) -> Iterator[Finding]:
    if not node.kernel.releases:
        return  # an image without a kernel: its host decides
    off = _switched_off(node)
    threshold = _threshold(node)
    if threshold is None:
        return
    thresh, where = threshold
    if off is None and 0 < 2 * thresh <= NIC_GIVES_UP_S:
        return
    if off is not None or thresh == 0:
        why = "The soft lockup detector is off: a core that the kernel holds for minutes leaves no stack in the log."
        yield _finding(node, "warning", why, off or where)
        return
    why = (
        f"kernel.watchdog_thresh is {thresh}, so the kernel reports a stuck core only after {2 * thresh} s. "
        f"A network card resets after {NIC_GIVES_UP_S} s: a stall in between leaves no stack in the log."
    )
    yield _finding(node, "info", why, where)


def _finding(node: Node, severity: str, why: str, where: EvidenceLine) -> Finding:
    return Finding(
        id=ID,
        rule=ID,
        unit=None,
        severity=severity,
        why=why,
        evidence=(where,),
        fix=_fix(node),
    )


def _fix(node: Node) -> tuple[str, ...]:
    values = {name: node.kernel.sysctls[name][0] if name in node.kernel.sysctls else None for name in PANICS}
    panics = [name for name, value in values.items() if value not in (None, "0")]
    if panics:
        return (
            f"# nothing while {' and '.join(panics)} are on: a lower threshold would restart the node after a stall of "
            "some seconds",
        )
    unknown = " and ".join(name for name, value in values.items() if value is None)
    return (
        *([f"# only where {unknown} are 0: else a stall of some seconds restarts the node"] if unknown else []),
        node.write("/etc/sysctl.d", "60-lockup.conf", "kernel.watchdog=1", "kernel.watchdog_thresh=2"),
        *(["sysctl --system"] if node.root.is_this_machine else []),
    )


def _switched_off(node: Node) -> EvidenceLine | None:
    for name in ("kernel.watchdog", "kernel.soft_watchdog"):
        value = node.kernel.sysctls.get(name)
        if value is not None:
            if value[0] == "0":
                return value[1]
        elif (word := node.kernel.has("nowatchdog") or node.kernel.has("nosoftlockup")) is not None:
            return word
    return None


def _threshold(node: Node) -> tuple[int, EvidenceLine] | None:
    """None where the running kernel does not show it."""
    value = node.kernel.sysctls.get("kernel.watchdog_thresh")
    if value is not None and (seconds := number(value[0])) is not None:
        return seconds, value[1]
    if node.kernel.running:
        return None
    return _DEFAULT_S, EvidenceLine("/etc/sysctl.d", None, "kernel.watchdog_thresh is set nowhere: 10 by default")
