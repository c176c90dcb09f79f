"""A network card whose interrupts all go to one core: whoever holds that core holds the network.

Only on a running node, from /proc/interrupts and /proc/irq. Receive packet steering spreads the work after the
interrupt and makes it better, not good.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from zombiescope.audit.finding import EvidenceLine, Finding
from zombiescope.audit.node import Node
from zombiescope.kernel import cpu, nic_queue
from zombiescope.kernel.nic_queue import NicQueue

ID = "nic-one-core"
TITLE = "All interrupts of a network card on one core"

FEW_CPUS = 4


def find(node: Node) -> Iterator[Finding]:
    if not node.root.is_this_machine:
        return  # links of sysfs lead everywhere, and an image has none
    yield from judge(nic_queue.nic_queues(), len(cpu.online() or ()), node)


def judge(queues: tuple[NicQueue, ...], cpus: int, node: Node) -> Iterator[Finding]:
    by_card: dict[str, list[NicQueue]] = {}
    for queue in queues:
        if queue.direction != "tx":
            by_card.setdefault(queue.interface, []).append(queue)
    for card, of_card in sorted(by_card.items()):
        cores = {core for queue in of_card for core in queue.cpus}
        if cpus > 1 and len(cores) == 1:
            yield _finding(card, of_card, next(iter(cores)), cpus, _steered(node, card))


def _finding(card: str, queues: list[NicQueue], core: int, cpus: int, steered: bool) -> Finding:
    count = "the only queue" if len(queues) == 1 else f"all {len(queues)} queues"
    spread = " Receive packet steering spreads the work after the interrupt." if steered else ""
    more = (
        shlex.join(["ethtool", "-l", card]),
        "# where 'Pre-set maximums' are more than one: ethtool -L with one between; the card stops for a moment",
    )
    move = (
        f"systemctl enable --now irqbalance    # or write other cores to /proc/irq/{queues[-1].irq}/smp_affinity_list"
    )
    return Finding(
        id=f"{ID}:{card}",
        rule=ID,
        unit=None,
        severity="info" if steered or cpus < FEW_CPUS else "warning",
        why=f"Core {core} of {cpus} serves {count} of {card}: while the kernel holds that core nothing is received."
        f"{spread}",
        evidence=tuple(
            EvidenceLine(f"/proc/irq/{queue.irq}/effective_affinity_list", 1, f"{queue.action}: core {core}")
            for queue in queues
        ),
        fix=more if len(queues) == 1 else (move,),
    )


def _steered(node: Node, card: str) -> bool:
    base = f"/sys/class/net/{card}/queues"
    masks = (node.root.text(f"{base}/{name}/rps_cpus") for name in node.root.names(base) if name.startswith("rx-"))
    return any(mask and mask.strip("0,") for mask in masks)
