"""/proc and /sys of an arm64 node (Debian's 6.1, booted under QEMU by scripts/arm64-node), read by every parser."""

from __future__ import annotations

from collections.abc import Callable

from zombiescope.kernel import cgroup, interrupts, meminfo, pressure, schedstat, softirqs, softnet, stat, vmstat

Node = Callable[[str], str]
ARM64 = "debian-6.1-arm64-v2"
CPUS = (0, 1, 2, 3)


def test_every_core_is_counted_in_every_file(node: Node) -> None:
    root = node(ARM64)
    cores, run_delay, packets = stat.read(root), schedstat.read(root), softnet.read(root)
    assert cores is not None
    assert run_delay is not None
    assert packets is not None
    assert tuple(cores.cpus) == tuple(run_delay.cpus) == tuple(packets.cpus) == CPUS
    assert cores.cpus[0].system == 1402
    assert run_delay.cpus[0].wait_ns == 7881165424


def test_interrupts_have_the_names_of_arm(node: Node) -> None:
    """Inter-processor interrupts are IPI0 to IPI6, and none of them is for the TLB."""
    table = interrupts.read(node(ARM64))
    assert table is not None
    assert table.cpus == CPUS
    assert table.rows["11"].device == "arch_timer"
    assert table.rows["IPI1"].device == "Function call interrupts"
    assert table.rows["IPI1"].counts == (1263, 1982, 2909, 1584)
    assert "TLB" not in table.rows


def test_memory_softirqs_and_pressure_are_read(node: Node) -> None:
    root = node(ARM64)
    soft, pages, memory, waits = softirqs.read(root), vmstat.read(root), meminfo.read(root), pressure.read(root)
    assert soft is not None
    assert soft.vectors["TIMER"] == (2251, 1977, 4009, 2981)
    assert pages is not None
    assert pages["pgfault"]
    assert memory is not None
    assert memory["mem_total_bytes"] == 1550458880
    assert waits["cpu"] is not None
    assert waits["cpu"].some_us == 8548728


def test_the_cgroup_tree_is_found(node: Node) -> None:
    (only,) = cgroup.hierarchies(node(ARM64))
    assert only.version == 2
    assert "memory" in only.controllers
