"""/proc/loadavg."""

from collections.abc import Callable

import pytest

from zombiescope.kernel import loadavg
from zombiescope.kernel.loadavg import Loadavg


def test_fields(node: Callable[[str], str]) -> None:
    assert loadavg.read(node("ubuntu-5.4-v1")) == Loadavg(2.51, 1.90, 1.77, 4, 2211, 912033)


@pytest.mark.parametrize("data", [b"", b"0.1 0.2 0.3 1/2 3", b"0.1 0.2 0.3 12 3\n", b"a b c 1/2 3\n"])
def test_a_line_that_is_not_whole_is_none(data: bytes) -> None:
    assert loadavg.parse(data) is None


def test_this_machine_runs_this_test() -> None:
    found = loadavg.read()
    assert found is not None
    assert 1 <= found.runnable <= found.tasks
