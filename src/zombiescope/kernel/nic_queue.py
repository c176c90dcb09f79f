"""Which CPU serves which queue of which network card.

Sources: the interrupts of a card (/sys/class/net/IF/device/msi_irqs; for virtio the parent PCI device
has them), the owners' names in /proc/interrupts (eth0-Tx-Rx-3, mlx5_comp3@pci:0000:00:05.0,
virtio2-input.0), and where the interrupt goes: /proc/irq/N/effective_affinity_list, else (old kernels) the
CPUs that it may go to, smp_affinity_list.

Cost: a few files per queue. Read it at start, after a hotplug and now and then (irqbalance moves queues),
not every tick. Absence: virtual interfaces and cards without a device link have no queues here.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from zombiescope.kernel import interrupts
from zombiescope.kernel.cpu import parse_list
from zombiescope.kernel.procfile import at, names_in, read_file, read_link

_NOT_A_QUEUE = re.compile(r"async|mgmnt|config|ctrl|control|cmd|misc|fdir|adminq|mbx|mailbox|event|pages|-aq\b", re.I)
_QUEUE = re.compile(r"(\d+)$")
_RECEIVES = re.compile(r"rx|input", re.I)
_TRANSMITS = re.compile(r"tx|output", re.I)
_PARENTS = 2
"""virtio sits below a PCI device; nothing sits deeper."""


@dataclass(frozen=True, slots=True)
class NicQueue:
    interface: str
    queue: int
    direction: str
    """rx, tx, or rxtx when one interrupt serves both or the name does not say."""
    irq: int
    cpus: tuple[int, ...]
    action: str


def physical_interfaces(root: str = "/") -> tuple[str, ...]:
    """Interfaces with a device behind them: cards, not veth, bridges or loopback."""
    directory = at(root, "sys/class/net")
    names = names_in(directory) or ()
    return tuple(name for name in names if os.access(f"{directory}/{name}/device", os.F_OK))


def nic_queues(root: str = "/", devices: Mapping[str, str] | None = None) -> tuple[NicQueue, ...]:
    """Every queue interrupt of every card; devices is Interrupts.devices() if the caller has it already."""
    if devices is None:
        table = interrupts.read(root)
        devices = {} if table is None else {label: row.device for label, row in table.rows.items()}
    found = (_queues(root, name, devices) for name in physical_interfaces(root))
    return tuple(queue for queues in found for queue in queues)


def _queues(root: str, interface: str, devices: Mapping[str, str]) -> list[NicQueue]:
    device = _device(root, interface)
    irqs = _msi_irqs(device)
    if irqs is None:
        names = (interface, device.rpartition("/")[2])
        irqs = [label for label, action in devices.items() if _is_owned(action, names)]
    owned = [(int(irq), devices.get(irq, "")) for irq in irqs if irq.isdecimal()]
    queues = [queue for irq, action in owned if (queue := _queue(root, interface, irq, action))]
    if not queues:
        # A card with one vector names it like itself; beside queue vectors that name is the link interrupt.
        queues = [
            NicQueue(interface, 0, "rxtx", irq, irq_cpus(irq, root), action)
            for irq, action in owned
            if action == interface
        ]
    return sorted(queues, key=lambda queue: (queue.queue, queue.irq))


def _device(root: str, interface: str) -> str:
    """The directory of the card. Resolved by the text of the links: below /proc/1/root, which is a link itself, the
    real path would be one of our own sysfs, where a card of another network namespace is not."""
    place = "sys/class/net"
    link = read_link(at(root, f"{place}/{interface}"))
    below = read_link(at(root, f"{place}/{interface}/device"))
    if link is None or below is None:
        return os.path.realpath(at(root, f"{place}/{interface}/device"))
    return os.path.normpath(at(root, f"{place}/{link}/{below}"))


def _msi_irqs(device: str) -> list[str] | None:
    for _ in range(_PARENTS):
        irqs = names_in(f"{device}/msi_irqs")
        if irqs is not None:
            return irqs
        device = device.rpartition("/")[0]
    return None


def _is_owned(action: str, names: tuple[str, ...]) -> bool:
    return any(re.search(rf"(^|[-@:,. ]){re.escape(name)}($|[-@:,. ])", action) for name in names)


def _queue(root: str, interface: str, irq: int, action: str) -> NicQueue | None:
    name = action.partition("@")[0]
    number = _QUEUE.search(name)
    if number is None or name == interface or _NOT_A_QUEUE.search(name):
        return None
    return NicQueue(interface, int(number[1]), _direction(name), irq, irq_cpus(irq, root), action)


def _direction(name: str) -> str:
    receives, transmits = bool(_RECEIVES.search(name)), bool(_TRANSMITS.search(name))
    return "rxtx" if receives == transmits else "rx" if receives else "tx"


def irq_cpus(irq: int, root: str = "/") -> tuple[int, ...]:
    """The CPUs that an interrupt goes to, or may go to on kernels that do not say; () if unknown."""
    for name in ("effective_affinity_list", "smp_affinity_list"):
        cpus = parse_list(read_file(at(root, f"proc/irq/{irq}/{name}")) or b"")
        if cpus:
            return cpus
    return ()
