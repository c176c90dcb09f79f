"""Capabilities and sysctls."""

import os
from collections.abc import Callable
from typing import Any

import pytest

from zombiescope.kernel import privileges

Node = Callable[[str], str]


def test_a_kernel_before_cap_perfmon(node: Node) -> None:
    found = privileges.read(node("ubuntu-5.4-v1"))
    assert found.effective is not None
    assert "CAP_SYS_ADMIN" in found.effective
    assert "CAP_PERFMON" not in found.effective
    assert (found.perf_event_paranoid, found.kptr_restrict, found.dmesg_restrict) == (4, 1, 0)


def test_a_plain_container(node: Node) -> None:
    found = privileges.read(node("container-6.1-v2"))
    assert found.effective is not None
    assert "CAP_NET_RAW" in found.effective
    assert "CAP_SYS_PTRACE" not in found.effective
    assert found.perf_event_paranoid is None


@pytest.mark.parametrize("data", [b"", b"CapEff:\t00000000000", b"CapEff:\tnothing\n", b"CapPrm:\t01\n"])
def test_no_whole_line_is_none(data: bytes) -> None:
    assert privileges.parse(data) is None


def test_bits_are_those_of_the_kernel() -> None:
    assert privileges.parse(b"CapEff:\t0000004000000000\n") == frozenset({"CAP_PERFMON"})
    assert privileges.parse(b"CapEff:\t0000000000000000\n") == frozenset()


def test_this_process() -> None:
    found = privileges.read()
    assert found.effective is not None
    assert ("CAP_SYS_ADMIN" in found.effective) == (os.geteuid() == 0)
    assert found.perf_event_paranoid is not None


def test_an_ordinary_user_has_none(needs: Any) -> None:
    needs.root()
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.setuid(65534)
        os.write(theirs, repr(privileges.read().effective).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(ours, 1000) == b"frozenset()"
    os.close(ours)
    os.close(theirs)
