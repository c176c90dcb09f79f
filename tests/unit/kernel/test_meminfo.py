"""/proc/meminfo of several kernels."""

from collections.abc import Callable

from zombiescope.kernel import meminfo

Node = Callable[[str], str]


def test_rows_become_bytes(node: Node) -> None:
    found = meminfo.read(node("ubuntu-5.4-v1"))
    assert found is not None
    assert found["percpu_bytes"] == 7120331 * 1024
    assert found["slab_unreclaimable_bytes"] == 12082980 * 1024
    assert tuple(found) == tuple(meminfo.FIELDS)


def test_a_row_that_a_kernel_lacks_is_none(node: Node) -> None:
    found = meminfo.read(node("el7-3.10"))
    assert found is not None
    assert found["percpu_bytes"] is None
    assert found["swap_total_bytes"] == 0


def test_this_machine_has_less_free_than_in_all() -> None:
    found = meminfo.read()
    assert found is not None
    assert 0 < (found["mem_free_bytes"] or 0) < (found["mem_total_bytes"] or 0)
