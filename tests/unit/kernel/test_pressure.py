"""PSI of several kernels."""

from collections.abc import Callable
from pathlib import Path

from zombiescope.kernel import pressure
from zombiescope.kernel.pressure import Pressure

Node = Callable[[str], str]


def test_cpu_had_no_full_line_at_first(node: Node) -> None:
    found = pressure.read(node("ubuntu-5.4-v1"))
    assert found["cpu"] == Pressure(812033110, None, 0.0125, None)
    assert found["irq"] is None


def test_irq_has_only_a_full_line(node: Node) -> None:
    assert pressure.read(node("debian-6.1-v2"))["irq"] == Pressure(None, 91203, None, 0.0)


def test_a_kernel_without_psi_is_none_for_each(node: Node) -> None:
    assert pressure.read(node("el7-3.10")) == dict.fromkeys(pressure.RESOURCES)


def test_a_line_that_is_cut_off_is_absent() -> None:
    found = pressure.parse(b"some avg10=0.00 avg60=0.00 avg300=0.00 total=12\nfull avg10=0.00 avg60=0.00")
    assert found == Pressure(12, None, 0.0, None)


def test_this_machine_counts_up_if_it_counts() -> None:
    before, after = pressure.read(), pressure.read()
    for resource, was in before.items():
        now = after[resource]
        assert (was is None) == (not Path(f"/proc/pressure/{resource}").exists())
        if was is not None and now is not None:
            assert (was.some_us or 0) <= (now.some_us or 0)
            assert 0 <= (was.some_avg10_ratio or 0) <= 1
