"""One thing over and over, up to 64 kB: what breaks a reader that calls itself for each level, or that goes back to the
beginning for each line. Fuzzing does not make such inputs: its own are short, and nothing is repeated that often.

A machine may be slow, so no number of seconds is wrong by itself. An input that took long is read again beside the
same input of a quarter of the length: work that grows with the length grows fourfold, with its square sixteenfold.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator

import pytest

from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS

LONG = 64 << 10
PIECES = (
    b"[", b"{", b"(", b"<", b"[[1,", b'{"a":', b"(a", b"- ", b"\\\n", b"\\", b"\n", b" ", b"\t", b"\0", b"\xff",
    b"\x80", b"a", b"9", b"a ", b"a\n", b"a\0", b"a=", b"a:", b"a,", b"a.b", b"a/", b"../", b"1-", b"1,", b"0 ", b"0\n",
    b"::", b"--", b"%", b'"', b"'", b"=9 ", b"$(", b"#", b";", b"@", b"|", b"I", b"J", b"N1a", b"_Z", b"\x1b[",
)  # fmt: skip
WITHIN = (b"[", b"{", b"(", b"a=", b"a ", b"1-", b"\\\n", b"\n", b"\0", b"J", b"I", b",", b"@a-")
"""Put into the middle of what the format looks like."""
MOST_SEEDS = 4
LOOK_CLOSER_S = 0.5
LINEAR_MOST = 8.0
"""Of CPU time for four times the bytes: between 4, linear, and 16, the square."""


def inputs(target: Target, length: int = LONG) -> Iterator[bytes]:
    for piece in (*PIECES, *target.words):
        yield (piece * length)[:length]
    for seed in list(target.seeds())[:MOST_SEEDS]:
        middle = len(seed) // 2
        yield (seed * length)[:length]
        for line in seed.splitlines(keepends=True)[:MOST_SEEDS]:
            yield seed + (line * length)[:length]
        for piece in WITHIN:
            yield seed[:middle] + (piece * length)[:length] + seed[middle:]


def cpu_s(feed: Callable[[bytes], None], data: bytes) -> float:
    gc.collect()  # what the tests before left is not this reader's work
    before = time.process_time()
    feed(data)
    return time.process_time() - before


def growth(feed: Callable[[bytes], None], short: bytes, long: bytes) -> float:
    """How many times more CPU the long one takes, each at its best of three, one after the other."""
    taken = [(cpu_s(feed, short), cpu_s(feed, long)) for _ in range(3)]
    return min(one for _, one in taken) / max(min(one for one, _ in taken), 1e-4)


@pytest.mark.parametrize("name", TARGETS)
def test_one_thing_over_and_over_is_read_or_refused(name: str) -> None:
    target = TARGETS[name]
    gc.collect()
    for short, long in zip(inputs(target, LONG // 4), inputs(target), strict=True):
        before = time.process_time()
        target.feed(long)
        if time.process_time() - before > LOOK_CLOSER_S:
            assert growth(target.feed, short, long) < LINEAR_MOST, (long[:40], long[-40:])


@pytest.mark.parametrize(("power", "is_linear"), [(1, True), (2, False)])
def test_the_growth_of_a_linear_reader_is_told_from_that_of_a_square(power: int, is_linear: bool) -> None:
    def read(data: bytes) -> None:
        for _ in range(len(data) ** power // 4):
            pass

    length = 400_000 if power == 1 else 2_000
    assert (growth(read, b"a" * length, b"a" * 4 * length) < LINEAR_MOST) == is_linear
