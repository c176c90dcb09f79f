"""The loop: rings that call all the time are emptied often, and not all the time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from zombiescope.recorder.loop import RINGS_GAP_NS, Loop

FOR_S = 0.4


class Calling:
    """A recorder whose ring is always ready."""

    def __init__(self, fd: int) -> None:
        self.config = SimpleNamespace(interval_s=1.0, for_s=FOR_S)
        self.clock = SimpleNamespace(offset_ns=0)
        self.intake = SimpleNamespace(descriptors=lambda: (None, None))
        self.drains = self.ticks = 0
        self._fd = fd

    def descriptors(self) -> set[int]:
        return {self._fd}

    def drain(self) -> None:
        self.drains += 1

    def tick(self, _: int) -> None:
        self.ticks += 1

    def write(self) -> None:
        pass


@pytest.fixture
def ready() -> Iterator[int]:
    read, write = os.pipe()
    os.write(write, b"x")
    yield read
    os.close(read)
    os.close(write)


def test_a_storm_of_calls_is_a_bounded_number_of_drains(ready: int) -> None:
    recorder = Calling(ready)
    Loop(recorder)._turn()  # type: ignore[arg-type]
    assert 2 <= recorder.drains <= FOR_S * 1e9 / RINGS_GAP_NS + 2
    assert recorder.ticks <= 1
