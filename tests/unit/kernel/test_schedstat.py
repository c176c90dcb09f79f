"""/proc/schedstat and a task's run delay."""

import os
from collections.abc import Callable

import pytest

from zombiescope.kernel import schedstat
from zombiescope.kernel.schedstat import RunDelay

Node = Callable[[str], str]


@pytest.mark.parametrize(
    ("name", "version", "cpu", "delay"),
    [
        ("el7-3.10", 15, 2, RunDelay(61203310000, 1003310000, 20123)),
        ("debian-6.1-v2", 15, 3, RunDelay(212033110, 21203311, 7120)),
        ("al2023-6.12-v2", 16, 7, RunDelay(41203311007, 4120331107, 91210)),
    ],
)
def test_the_last_three_columns_of_every_version(
    node: Node, name: str, version: int, cpu: int, delay: RunDelay
) -> None:
    found = schedstat.read(node(name))
    assert found is not None
    assert found.version == version
    assert found.cpus[cpu] == delay


def test_a_kernel_without_schedstats_is_none(node: Node) -> None:
    assert schedstat.read(node("guest-6.18-v1")) is None


def test_cpu_lines_of_another_length_are_left_out() -> None:
    assert schedstat.parse(b"version 14\ncpu0 1 2 3\ncpu1 0 0 0 0 0 0 7 8 9 10\ncpu2 0 0 0 0 0 0 7 8 9\n").cpus == {
        2: RunDelay(7, 8, 9)
    }


def test_this_process_runs() -> None:
    before = schedstat.task(os.getpid())
    sum(range(2_000_000))
    after = schedstat.task(os.getpid())
    assert before is not None
    assert after is not None
    assert after.run_ns > before.run_ns
    assert after.wait_ns >= before.wait_ns


def test_a_task_that_is_gone_is_none() -> None:
    assert schedstat.task(1 << 22) is None


@pytest.mark.parametrize("data", [b"", b"1 2\n", b"1 2 3", b"1 2 x\n", b"1 2 3 4\n"])
def test_a_task_line_that_is_not_whole_is_none(data: bytes) -> None:
    assert schedstat.parse_task(data) is None
