"""Which CPU serves which queue, on several kernels and cards."""

from collections.abc import Callable
from pathlib import Path

from zombiescope.kernel import cpu, nic_queue
from zombiescope.kernel.nic_queue import nic_queues, physical_interfaces

Node = Callable[[str], str]


def test_ena_queues_leave_the_management_interrupt_out(node: Node) -> None:
    queues = nic_queues(node("ubuntu-5.4-v1"))

    assert [(queue.interface, queue.queue, queue.irq, queue.cpus) for queue in queues] == [
        ("eth0", queue, 25 + queue, (queue,)) for queue in range(8)
    ]
    assert {queue.direction for queue in queues} == {"rxtx"}


def test_virtio_queues_are_found_through_the_parent_device(node: Node) -> None:
    queues = nic_queues(node("debian-6.1-v2"))

    assert [(queue.queue, queue.direction, queue.cpus) for queue in queues] == [
        (0, "rx", (1,)),
        (0, "tx", (0,)),
        (1, "rx", (3,)),
        (1, "tx", (1,)),
    ]


def test_kernels_without_effective_affinity_tell_where_it_may_go(node: Node) -> None:
    queues = nic_queues(node("el7-3.10"))
    assert [(queue.queue, queue.cpus) for queue in queues] == [(0, (0,)), (1, (1,)), (2, (2,)), (3, (3,))]


def test_a_card_with_one_vector_has_one_queue(node: Node) -> None:
    queues = nic_queues(node("el7-3.10"), {"68": "em1"})
    assert [(queue.queue, queue.irq, queue.direction) for queue in queues] == [(0, 68, "rxtx")]


def test_mlx5_completion_vectors_are_queues_and_async_ones_are_not(node: Node) -> None:
    queues = [queue for queue in nic_queues(node("al2023-6.12-v2")) if queue.interface == "eth1"]
    assert [(queue.queue, queue.irq, queue.cpus) for queue in queues] == [(0, 41, (1,)), (1, 42, (3,))]


def test_without_msi_irqs_the_names_decide(tmp_path: Path) -> None:
    # GIVEN a card whose device directory does not list its interrupts
    (tmp_path / "sys/devices/vmbus/net/eth1").mkdir(parents=True)
    (tmp_path / "sys/devices/vmbus/net/eth1/device").symlink_to("../..")
    (tmp_path / "sys/class/net").mkdir(parents=True)
    (tmp_path / "sys/class/net/eth1").symlink_to("../../devices/vmbus/net/eth1")
    devices = {"30": "i40e-eth1-TxRx-2", "31": "i40e-eth10-TxRx-2", "32": "eth1-rx-1", "33": "i40e-eth1-misc"}

    # THEN its own are taken, and those of eth10 are not
    queues = nic_queues(str(tmp_path), devices)
    assert [(queue.irq, queue.queue, queue.direction) for queue in queues] == [(32, 1, "rx"), (30, 2, "rxtx")]


def test_virtual_interfaces_are_not_cards(node: Node) -> None:
    assert physical_interfaces(node("ubuntu-5.4-v1")) == ("eth0",)
    assert physical_interfaces(node("container-6.1-v2")) == ()


def test_an_unknown_interrupt_goes_nowhere_known(node: Node) -> None:
    assert nic_queue.irq_cpus(9999, node("ubuntu-5.4-v1")) == ()


def test_this_machine_serves_its_queues_on_its_own_cpus() -> None:
    online = set(cpu.online() or ())
    assert all(set(queue.cpus) <= online for queue in nic_queues())
    assert "lo" not in physical_interfaces()
