"""Bytes of another process: a real one."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
from collections.abc import Iterator

import pytest

from zombiescope.kernel.process_memory import MOST_BYTES, MOST_PLACES, ProcessMemory

MARK = ctypes.create_string_buffer(b"the same in a child that was forked", 4096)
ADDRESS = ctypes.addressof(MARK)


@pytest.fixture
def child() -> Iterator[int]:
    pid = os.fork()
    if pid == 0:
        signal.pause()
        os._exit(0)
    yield pid
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_one_place_and_many_places_in_their_order(child: int) -> None:
    memory = ProcessMemory(child)
    assert memory.read(ADDRESS, 8) == b"the same"
    assert memory.gather([(ADDRESS + 9, 2), (ADDRESS + 4, 4), (ADDRESS, 3)]) == b"insamethe"
    assert (memory.calls, memory.bytes) == (2, 17)


@pytest.mark.parametrize(
    "places", [[(0, 8)], [(8, 8)], [(ADDRESS, 0)], [(ADDRESS, MOST_BYTES + 1)], [((1 << 64) - 8, 8)], [(-1, 8)],
               [(ADDRESS, 8), (1, 8)], [(ADDRESS, 1)] * (MOST_PLACES + 1), [(ADDRESS, MOST_BYTES)] * 2],
)  # fmt: skip
def test_what_is_not_there_or_too_much_is_one_error(child: int, places: list[tuple[int, int]]) -> None:
    with pytest.raises(OSError) as caught:  # noqa: PT011 - its number is what counts
        ProcessMemory(child).gather(places)
    assert caught.value.errno == errno.EFAULT


def test_a_process_that_is_gone_is_said_to_be(child: int) -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    with pytest.raises(ProcessLookupError):
        ProcessMemory(pid).read(ADDRESS, 8)
