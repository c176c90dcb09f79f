"""One thing over and over, up to 64 kB: what breaks a reader that calls itself for each level, or that goes back to the
beginning for each line. Fuzzing does not make such inputs: its own are short, and nothing is repeated that often.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.fuzz.target import MOST_CPU_S, Target
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


def inputs(target: Target) -> Iterator[bytes]:
    for piece in (*PIECES, *target.words):
        yield (piece * LONG)[:LONG]
    for seed in list(target.seeds())[:MOST_SEEDS]:
        middle = len(seed) // 2
        yield (seed * LONG)[:LONG]
        for line in seed.splitlines(keepends=True)[:MOST_SEEDS]:
            yield seed + (line * LONG)[:LONG]
        for piece in WITHIN:
            yield seed[:middle] + (piece * LONG)[:LONG] + seed[middle:]


@pytest.mark.parametrize("name", TARGETS)
def test_one_thing_over_and_over_is_read_or_refused(name: str) -> None:
    slowest = 0.0
    for data in inputs(TARGETS[name]):
        before = time.process_time()
        TARGETS[name].feed(data)
        slowest = max(slowest, time.process_time() - before)
    assert slowest < MOST_CPU_S
