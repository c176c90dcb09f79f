"""How full the kernel's own tables are, and memory by NUMA node."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.rdma_tree import write

from zombiescope.kernel import limits, numa


def test_limits_are_read_from_five_files(tmp_path: Path) -> None:
    write(tmp_path, "proc/sys/kernel/pid_max", 4194304)
    write(tmp_path, "proc/sys/kernel/threads-max", 2061000)
    write(tmp_path, "proc/sys/fs/file-nr", "1771\t0\t2465620")
    write(tmp_path, "proc/sys/net/ipv4/ip_local_port_range", "32768\t60999")
    write(
        tmp_path,
        "proc/net/sockstat",
        "sockets: used 290\nTCP: inuse 12 orphan 0 tw 7 alloc 15 mem 2\nUDP: inuse 4 mem 1",
    )
    assert limits.read(str(tmp_path)) == {
        "pid_max": 4194304, "threads_max": 2061000, "files_open": 1771, "files_max": 2465620,
        "tcp_in_use": 12, "tcp_time_wait": 7, "local_ports": 28232,
    }  # fmt: skip


def test_a_limit_that_nobody_reaches_is_none(tmp_path: Path) -> None:
    write(tmp_path, "proc/sys/fs/file-nr", "1771\t0\t9223372036854775807")
    assert limits.read(str(tmp_path)) == {"files_open": 1771}


@pytest.mark.parametrize("text", ["", "x", "1 2", "-1 0 5", "60999 32768", "\x00" * 100, "1" * 100])
def test_what_is_no_number_is_left_out(text: str, tmp_path: Path) -> None:
    paths = ("proc/sys/fs/file-nr", "proc/sys/net/ipv4/ip_local_port_range", "proc/net/sockstat", limits.CLOCKSOURCE)
    for path in paths:
        write(tmp_path, path, text)
    assert all(isinstance(value, int) and value >= 0 for value in limits.read(str(tmp_path)).values())
    assert limits.clocksource(str(tmp_path)) in (None, "x")


def test_nothing_there_nothing_read(tmp_path: Path) -> None:
    assert limits.read(str(tmp_path)) == {}
    assert limits.clocksource(str(tmp_path)) is None
    assert numa.nodes(str(tmp_path)) == ()


def test_memory_of_two_numa_nodes(tmp_path: Path) -> None:
    for node in range(2):
        base = f"sys/devices/system/node/node{node}"
        memory = f"Node {node} MemTotal: 1000 kB\nNode {node} MemFree: {node} kB\nNode {node} MemUsed: 7 kB"
        write(tmp_path, f"{base}/meminfo", memory)
        write(tmp_path, f"{base}/numastat", "numa_hit 10\nnuma_miss 3\nnuma_foreign 1\ninterleave_hit 5")
    root = str(tmp_path)
    assert numa.nodes(root) == (0, 1)
    assert numa.levels(1, root) == {"total_bytes": 1000 * 1024, "free_bytes": 1024}
    assert numa.counters(0, root) == {"numa_hit": 10, "numa_miss": 3, "numa_foreign": 1}


def test_one_node_is_not_read(tmp_path: Path) -> None:
    write(tmp_path, "sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 1000 kB")
    assert numa.nodes(str(tmp_path)) == ()
