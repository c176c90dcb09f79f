"""/proc/softirqs of several kernels, of a large machine, and of this one."""

from collections.abc import Callable

import pytest

from zombiescope.kernel import softirqs

Node = Callable[[str], str]


@pytest.mark.parametrize(("name", "cpus"), [("el7-3.10", 4), ("ubuntu-5.4-v1", 8), ("guest-6.18-v1", 2)])
def test_every_vector_has_a_count_for_every_cpu(node: Node, name: str, cpus: int) -> None:
    found = softirqs.read(node(name))

    assert found is not None
    assert found.cpus == tuple(range(cpus))
    assert len(found.vectors) == 10
    assert {len(counts) for counts in found.vectors.values()} == {cpus}


def test_the_old_name_of_irq_poll_is_kept(node: Node) -> None:
    found = softirqs.read(node("el7-3.10"))
    assert found is not None
    assert found.vectors["NET_RX"] == (9011, 0, 0, 0)
    assert "BLOCK_IOPOLL" in found.vectors


def test_offline_cpus_keep_their_column(node: Node) -> None:
    found = softirqs.read(node("debian-6.1-v2"))
    assert found is not None
    assert found.cpus == (0, 1, 2, 3)


def test_a_large_machine() -> None:
    header = b" " * 20 + b"".join(b"CPU%-8d" % cpu for cpu in range(192)) + b"\n"
    row = b"      NET_RX:" + b"".join(b" %10d" % (cpu + 4_000_000_000) for cpu in range(192)) + b"\n"
    found = softirqs.parse(header + row)
    assert found.vectors["NET_RX"][191] == 4_000_000_191


def test_a_row_that_is_cut_off_is_absent() -> None:
    found = softirqs.parse(b" CPU0 CPU1\n HI: 1 2\n TIMER: 3\n NET_TX: 4 5")
    assert found.vectors == {"HI": (1, 2)}


def test_this_machine_runs_timers() -> None:
    found = softirqs.read()
    assert found is not None
    assert sum(found.vectors["TIMER"]) > 0
    assert all(0 <= count < softirqs.WRAP for counts in found.vectors.values() for count in counts)
