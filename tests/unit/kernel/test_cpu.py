"""CPU lists and topology."""

import os
from collections.abc import Callable

import pytest

from zombiescope.kernel import cpu
from zombiescope.kernel.cpu import CpuPlace

Node = Callable[[str], str]


@pytest.mark.parametrize(
    ("data", "cpus"),
    [
        (b"0-3,8\n", (0, 1, 2, 3, 8)),
        (b"0\n", (0,)),
        (b"\n", ()),
        (b"(null)\n", ()),
        (b"3-1\n", ()),
        (b"1-,2\n", (2,)),
    ],
)
def test_lists(data: bytes, cpus: tuple[int, ...]) -> None:
    assert cpu.parse_list(data) == cpus


def test_a_list_cannot_ask_for_more_cpus_than_linux_has() -> None:
    assert len(cpu.parse_list(b"0-18446744073709551615\n")) < 100_000


def test_online_possible_and_offline(node: Node) -> None:
    root = node("debian-6.1-v2")
    assert cpu.online(root) == (0, 1, 3)
    assert cpu.possible(root) == (0, 1, 2, 3)
    assert cpu.offline(root) == (2,)


def test_topology_places_hyperthreads_and_nodes(node: Node) -> None:
    places = cpu.topology(node("ubuntu-5.4-v1"))
    assert places[5] == CpuPlace(cpu=5, package=0, core=1, siblings=(1, 5), numa_node=0)
    assert [place.numa_node for place in cpu.topology(node("el7-3.10"))] == [0, 0, 1, 1]


def test_no_sysfs_is_none(node: Node) -> None:
    assert cpu.online(node("container-6.1-v2")) is None
    assert cpu.topology(node("container-6.1-v2")) == ()


def test_this_machine() -> None:
    online = cpu.online()
    assert online is not None
    assert len(online) == os.sysconf("SC_NPROCESSORS_ONLN")
    assert set(online) <= set(cpu.possible() or ())
    assert [place.cpu for place in cpu.topology()] == list(online)
    assert all(place.cpu in place.siblings for place in cpu.topology())
