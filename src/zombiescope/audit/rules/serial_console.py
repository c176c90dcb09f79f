"""A serial console that has to print the task list of every out-of-memory kill.

The kernel prints while it holds a core with interrupts off; at 115,200 baud a line of that list takes 9 ms, at 9,600
baud a tenth of a second. ML nodes on EKS lost their network for minutes that way. The list is printed at level info,
so a console log level of 6 or less keeps it away from the console, as does vm.oom_dump_tasks=0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from zombiescope.audit.finding import EvidenceLine, Finding
from zombiescope.audit.node import Node
from zombiescope.base.text import number

ID = "serial-console"
TITLE = "A serial console that prints the task list of an OOM kill"
SYSCTLS = ("vm.oom_dump_tasks", "kernel.printk")

LINE_BYTES = 110
PROCESSES = 1000
_SERIAL = re.compile(r"(ttyS\d+|ttyAMA\d+|hvc\d+|uart\S*),?(\d+)?")
_INFO_LEVEL = 6


def find(node: Node) -> Iterator[Finding]:
    consoles = node.kernel.values("console")
    serial = [(match, where) for value, where in consoles if (match := _SERIAL.match(value)) and "hvc" not in match[1]]
    if not serial or not _dumps_tasks(node):
        return
    level, level_evidence = _console_level(node)
    if level <= _INFO_LEVEL:
        return
    match, where = serial[-1]
    baud = int(match[2] or 9600)
    seconds = PROCESSES * LINE_BYTES * 10 / baud
    default = "" if match[2] else " (no speed is given)"
    yield Finding(
        id=ID,
        rule=ID,
        unit=None,
        severity="warning" if "kubernetes" in node.platform.orchestrators else "info",
        why=f"The console is {match[1]} at {baud:,} baud{default}, and an out-of-memory kill prints a line per process "
        f"to it: at that speed {PROCESSES:,} processes hold a core for {seconds:.0f} s.",
        evidence=(where, *level_evidence, *_dump_evidence(node)),
        fix=(
            node.write("/etc/sysctl.d", "60-oom-console.conf", "vm.oom_dump_tasks=0"),
            *(["sysctl --system"] if node.root.is_this_machine else []),
            "# or loglevel=4 on the kernel's command line",
        ),
    )


def _dumps_tasks(node: Node) -> bool:
    value = node.kernel.sysctls.get("vm.oom_dump_tasks")
    return value is None or value[0] != "0"


def _dump_evidence(node: Node) -> tuple[EvidenceLine, ...]:
    value = node.kernel.sysctls.get("vm.oom_dump_tasks")
    return () if value is None else (value[1],)


def _console_level(node: Node) -> tuple[int, tuple[EvidenceLine, ...]]:
    """What is printed has a lower number than this. The kernel's default is 7, with quiet 4."""
    value = node.kernel.sysctls.get("kernel.printk")
    if value is not None and (level := number(next(iter(value[0].split()), ""))) is not None:
        return level, (value[1],)
    levels = node.kernel.values("loglevel")
    if levels and (level := number(levels[-1][0])) is not None:
        return level, (levels[-1][1],)
    quiet = node.kernel.has("quiet")
    return (4, (quiet,)) if quiet else (7, ())
