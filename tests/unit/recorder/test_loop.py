"""The loop: rings that call all the time are emptied often, and not all the time; one that fills does not wait."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from zombiescope.recorder.loop import RINGS_GAP_NS, RINGS_PER_S, STORM_GAP_NS, Loop

FOR_S = 0.9


class Calling:
    """A recorder whose ring is always ready."""

    def __init__(self, fd: int) -> None:
        self.config = SimpleNamespace(interval_s=1.0, for_s=FOR_S)
        self.clock = SimpleNamespace(offset_ns=0)
        self.intake = SimpleNamespace(descriptors=lambda: (None, None))
        self.drains = self.ticks = 0
        self.fills = False
        self._fd = fd

    def rings_fill(self) -> bool:
        return self.fills

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
    in_storm_s = FOR_S - RINGS_PER_S * RINGS_GAP_NS / 1e9
    assert 2 <= recorder.drains <= 2 * RINGS_PER_S + in_storm_s * 1e9 / STORM_GAP_NS + 2
    assert recorder.ticks <= 1


def test_a_ring_that_fills_is_emptied_at_once(ready: int) -> None:
    recorder = Calling(ready)
    recorder.fills = True
    Loop(recorder)._turn()  # type: ignore[arg-type]
    assert recorder.drains > FOR_S * 1e9 / RINGS_GAP_NS
