"""The connection tracking table."""

from collections.abc import Callable
from pathlib import Path

from zombiescope.kernel import conntrack
from zombiescope.kernel.conntrack import Conntrack


def test_count_and_max(node: Callable[[str], str]) -> None:
    assert conntrack.read(node("ubuntu-5.4-v1")) == Conntrack(41203, 1048576)


def test_nothing_is_tracked_where_the_module_is_not_loaded(node: Callable[[str], str]) -> None:
    assert conntrack.read(node("el7-3.10")) is None


def test_this_machine() -> None:
    found = conntrack.read()
    assert (found is None) == (not Path("/proc/sys/net/netfilter/nf_conntrack_count").exists())
    assert found is None or found.count >= 0
