"""/proc/net/dev of several kernels."""

from collections.abc import Callable

from zombiescope.kernel import netdev
from zombiescope.kernel.netdev import NetdevCounters

Node = Callable[[str], str]


def test_columns(node: Node) -> None:
    found = netdev.read(node("al2023-6.12-v2"))
    assert found is not None
    assert found["eth1"] == NetdevCounters(1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 13, 15)


def test_a_count_that_sticks_to_the_name(node: Node) -> None:
    found = netdev.read(node("el7-3.10"))
    assert found is not None
    assert found["em1"].rx_bytes == 3912330411
    assert found["em1"].rx_fifo == 3
    assert found["em1"].tx_carrier == 1


def test_only_the_interfaces_asked_for(node: Node) -> None:
    assert set(netdev.read(node("ubuntu-5.4-v1"), only={"eth0"}) or ()) == {"eth0"}


def test_this_machine_has_a_loopback() -> None:
    found = netdev.read()
    assert found is not None
    assert found["lo"].rx_bytes == found["lo"].tx_bytes
