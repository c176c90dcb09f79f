"""/proc/vmstat of several kernels."""

from collections.abc import Callable

import pytest

from zombiescope.kernel import vmstat

Node = Callable[[str], str]


def test_counts_per_zone_are_summed(node: Node) -> None:
    found = vmstat.read(node("el7-3.10"))
    assert found is not None
    assert found["pgscan_direct"] == 2 + 18
    assert found["pgsteal_kswapd"] == 70 + 500
    assert found["pgalloc"] == 1 + 100 + 9000
    assert found["allocstall"] == 7
    assert found["workingset_refault_file"] == 8812


def test_stalls_per_zone_are_summed(node: Node) -> None:
    found = vmstat.read(node("ubuntu-5.4-v1"))
    assert found is not None
    assert found["allocstall"] == 0 + 1 + 20 + 3
    assert found["pgscan_direct"] == 990331
    assert found["workingset_refault_file"] == 812
    assert found["workingset_refault_anon"] is None


def test_a_throttle_counter_is_not_mistaken_for_a_zone() -> None:
    found = vmstat.parse(b"pgscan_direct 5\npgscan_direct_throttle 100\n")
    assert found["pgscan_direct"] == 5
    assert found["pgscan_direct_throttle"] == 100


def test_what_a_kernel_lacks_is_none_and_never_zero(node: Node) -> None:
    found = vmstat.read(node("el7-3.10"))
    assert found is not None
    assert found["oom_kill"] is None
    assert found["pgscan_khugepaged"] is None


@pytest.mark.parametrize("name", ["el7-3.10", "debian-6.1-v2", "guest-6.18-v1"])
def test_the_fields_are_always_the_same_and_in_order(node: Node, name: str) -> None:
    assert tuple(vmstat.read(node(name)) or ()) == vmstat.FIELDS


def test_this_machine_faults() -> None:
    before, after = vmstat.read(), vmstat.read()
    assert before is not None
    assert after is not None
    assert before["pgfault"] is not None
    assert before["pgfault"] <= (after["pgfault"] or 0)
    assert all(value is None or value >= 0 for value in before.values())
