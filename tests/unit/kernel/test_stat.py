"""/proc/stat of several kernels, of a large machine, and of this one."""

import os
from collections.abc import Callable

import pytest

from zombiescope.kernel import stat

Node = Callable[[str], str]


def test_ubuntu_names_every_column(node: Node) -> None:
    found = stat.read(node("ubuntu-5.4-v1"))

    assert found is not None
    assert found.cpus[3] == stat.CpuTicks(90100, 12, 1640100, 6520331, 200, 0, 121, 5, 0, 0)
    assert found.intr == 91203311
    assert found.ctxt == 812033110
    assert found.btime_s == 1740000000
    assert found.processes == 9120331
    assert (found.procs_running, found.procs_blocked) == (3, 1)


@pytest.mark.parametrize("name", ["el7-3.10", "ubuntu-5.4-v1", "al2023-6.12-v2"])
def test_the_total_is_the_sum_of_the_cpus(node: Node, name: str) -> None:
    found = stat.read(node(name))

    assert found is not None
    assert found.total is not None
    assert found.total.user == sum(ticks.user for ticks in found.cpus.values())


def test_an_offline_cpu_has_no_line(node: Node) -> None:
    found = stat.read(node("debian-6.1-v2"))
    assert found is not None
    assert sorted(found.cpus) == [0, 1, 3]


def test_columns_that_a_kernel_lacks_are_none() -> None:
    found = stat.parse(b"cpu  1 2 3 4 5 6 7\ncpu0 1 2 3 4 5 6 7\nintr 9 1\nctxt 5\n")
    assert found.cpus[0] == stat.CpuTicks(1, 2, 3, 4, 5, 6, 7, None, None, None)
    assert found.btime_s is None


def test_a_line_that_is_cut_off_is_absent() -> None:
    found = stat.parse(b"cpu  1 2 3 4\ncpu0 1 2 3 4\ncpu1 1 2 3")
    assert list(found.cpus) == [0]


def test_a_large_machine_keeps_every_cpu() -> None:
    # GIVEN 192 CPUs and an intr line longer than a page
    lines = [b"cpu  " + b" ".join([b"192"] * 10)]
    lines += [b"cpu%d " % cpu + b" ".join(b"%d" % (cpu * 10 + column) for column in range(10)) for cpu in range(192)]
    lines += [b"intr 777" + b" 0" * 5000, b"ctxt 1", b"btime 2", b"processes 3", b"procs_running 4"]

    # WHEN parsed THEN each has its own figures
    found = stat.parse(b"\n".join(lines) + b"\n")
    assert len(found.cpus) == 192
    assert found.cpus[191] == stat.CpuTicks(*range(1910, 1920))
    assert found.intr == 777
    assert found.procs_running == 4


def test_absent_procfs_is_none(tmp_path: os.PathLike[str]) -> None:
    assert stat.read(str(tmp_path)) is None


def test_this_machine_counts_up() -> None:
    before, after = stat.read(), stat.read()

    assert before is not None
    assert after is not None
    assert len(before.cpus) == os.sysconf("SC_NPROCESSORS_ONLN")
    assert all(value is not None and value >= 0 for ticks in before.cpus.values() for value in ticks)
    assert all(after.cpus[cpu].user >= ticks.user for cpu, ticks in before.cpus.items())
    assert (before.ctxt or 0) <= (after.ctxt or 0)
    assert (before.procs_running or 0) >= 1
