"""/proc/sys/fs/dentry-state."""

from collections.abc import Callable

from zombiescope.kernel import dentry
from zombiescope.kernel.dentry import DentryState

Node = Callable[[str], str]


def test_negative_entries_are_counted_since_5_0(node: Node) -> None:
    assert dentry.read(node("ubuntu-5.4-v1")) == DentryState(9120331, 9000331, 812033)


def test_before_they_are_not_measured(node: Node) -> None:
    assert dentry.read(node("el7-3.10")) == DentryState(812004, 790331, None)


def test_a_line_that_is_cut_off_is_none() -> None:
    assert dentry.parse(b"1\t2\t45\t0\t5") is None


def test_this_machine_has_looked_up_names_that_do_not_exist() -> None:
    found = dentry.read()
    assert found is not None
    assert 0 < (found.nr_negative or 0) <= found.nr_dentry
