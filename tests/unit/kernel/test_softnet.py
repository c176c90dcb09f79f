"""/proc/net/softnet_stat as it grew."""

from collections.abc import Callable

from zombiescope.kernel import cpu, softnet
from zombiescope.kernel.softnet import SoftnetCpu

Node = Callable[[str], str]


def test_eleven_columns_are_counted_by_row(node: Node) -> None:
    found = softnet.read(node("el7-3.10"))
    assert found is not None
    assert found.cpus[0] == SoftnetCpu(9011, 0, 3, 0, 0, None)
    assert found.cpus[2].dropped == 1


def test_ten_columns_know_no_flow_limit() -> None:
    row = b" ".join(b"%08x" % value for value in (7, 1, 2, 0, 0, 0, 0, 0, 0, 9)) + b"\n"
    assert softnet.parse(row).cpus == {0: SoftnetCpu(7, 1, 2, 9, None, None)}


def test_thirteen_columns_name_the_cpu(node: Node) -> None:
    found = softnet.read(node("debian-6.1-v2"))
    assert found is not None
    assert found.cpus[3] == SoftnetCpu(41206, 0, 0, 0, 0, 3)
    assert sorted(found.cpus) == [0, 1, 3]


def test_rows_without_a_number_are_the_online_cpus_in_order() -> None:
    row = b" ".join([b"00000001"] * 11) + b"\n"
    assert sorted(softnet.parse(row * 3, online=(0, 2, 5)).cpus) == [0, 2, 5]


def test_fifteen_columns_of_a_large_machine() -> None:
    text = b"".join(
        b" ".join(b"%08x" % value for value in (*range(cpu, cpu + 12), cpu, 0, 0)) + b"\n" for cpu in range(192)
    )
    found = softnet.parse(text)
    assert found.cpus[191] == SoftnetCpu(191, 192, 193, 200, 201, 202)
    assert len(found.cpus) == 192


def test_text_that_is_no_table_is_empty() -> None:
    assert softnet.parse(b"00000001 00000002\n").cpus == {}
    assert softnet.parse(b"00000001 00000002 0000000x\n").cpus == {}
    assert softnet.parse(b"1 2 3\n").cpus == {}


def test_this_machine_has_a_row_for_each_online_cpu() -> None:
    found = softnet.read()
    assert found is not None
    assert sorted(found.cpus) == list(cpu.online() or ())
    assert all(value is None or 0 <= value < softnet.WRAP for row in found.cpus.values() for value in row)
