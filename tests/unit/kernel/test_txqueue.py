"""Transmit timeouts a queue."""

import shutil
from collections.abc import Callable
from pathlib import Path

from zombiescope.kernel.nic_queue import physical_interfaces
from zombiescope.kernel.txqueue import TxTimeouts

Node = Callable[[str], str]


def test_every_queue_is_read(node: Node) -> None:
    timeouts = TxTimeouts(node("ubuntu-5.4-v1"))
    timeouts.follow(["eth0", "docker0", "gone0"])
    found = timeouts.read()
    timeouts.close()
    assert found == {("eth0", queue): 3 if queue == 5 else 0 for queue in range(8)}


def test_a_reset_with_fewer_queues_is_followed(node: Node, tmp_path: Path) -> None:
    root = tmp_path / "node"
    shutil.copytree(node("ubuntu-5.4-v1") + "/sys", root / "sys", symlinks=True)
    timeouts = TxTimeouts(str(root))
    timeouts.follow(["eth0"])

    for queue in range(4, 8):
        shutil.rmtree(root / f"sys/devices/pci0000:20/0000:20:03.0/net/eth0/queues/tx-{queue}")
    timeouts.follow(["eth0"])

    assert sorted(timeouts.read()) == [("eth0", queue) for queue in range(4)]
    timeouts.close()


def test_this_machine() -> None:
    timeouts = TxTimeouts()
    interfaces = physical_interfaces()
    timeouts.follow(interfaces)
    found = timeouts.read()
    timeouts.close()
    assert {interface for interface, _ in found} <= set(interfaces)
    assert all(count >= 0 for count in found.values())
