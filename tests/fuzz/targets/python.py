"""The memory of a process that runs Python, or says so: whoever runs on the node has written it."""

from __future__ import annotations

import functools
import struct
import sys
from pathlib import Path

from tests.fuzz.target import Target
from tests.helpers.python_image import FakeMemory, FakePython
from zombiescope.symbols.python import offsets, runtime
from zombiescope.symbols.python.code import parse_lines
from zombiescope.symbols.python.memory import StrangeError, UnsupportedError
from zombiescope.symbols.python.runtime import Mapped

FIXTURES = Path(__file__).parents[2] / "fixtures" / "python"
BASE = 0x10_0000
REFUSALS = (StrangeError, UnsupportedError)
MOST_READS = 20_000


def debug_offsets(data: bytes) -> None:
    offsets.parse(data.ljust(8 * offsets.MOST_WORDS, b"\0"))


def lines(data: bytes) -> None:
    starts, found, units = parse_lines(data, 1)
    assert len(starts) == len(found) <= len(data)
    assert units <= 8 * len(data)


def forged(data: bytes) -> None:
    """Words of a whole interpreter are overwritten: which region, where in it, with what."""
    made = FakePython()
    made.thread(7, [(made.code("main"), 1), (made.code("epoch"), 3), (made.code("step"), 0)])
    made.thread(8, [(made.code("worker"), 2)])
    interpreter = made.interpreter()
    interpreter.threads()
    interpreter.look([7, 8], 1.0)
    regions = list(made.memory.regions)
    for region, place, value in struct.iter_unpack("<BHQ", data[: len(data) // 11 * 11]):
        start = regions[region % len(regions)]
        made.memory.put(start + place % 4088, "<Q", value)
    made.memory.reads = 0
    for now_s in (1.1, 3.0):
        interpreter.threads()
        interpreter.look([7, 8], now_s)
    assert made.memory.reads < MOST_READS


def loaded(data: bytes) -> None:
    """A file that is loaded as a Python."""
    memory = FakeMemory()
    memory.regions[BASE] = bytearray(data or b"\0")
    end = BASE + len(data)
    try:
        runtime.find(memory, [Mapped(BASE, end, True, 0, b"/usr/bin/python3.13")])
    except OSError:
        pass
    finally:
        assert memory.reads < MOST_READS


def maps(data: bytes) -> None:
    for each in runtime.python_files(data):
        assert each.start < 1 << 64


@functools.cache
def _interpreter() -> bytes:
    """The head of the real one, with its dynamic section and symbols as they are in the file."""
    return Path(sys.executable).resolve().read_bytes()[:65_536]


def _said() -> list[bytes]:
    return [path.read_bytes() for path in sorted(FIXTURES.glob("debug_offsets_*.bin"))]


def _forgeries() -> list[bytes]:
    return [struct.pack("<BHQ", region, place, value) for region in range(7)
            for place in (0, 8, 16, 40, 56, 72) for value in (0, 0x40_0000, 0x50_0018)]  # fmt: skip


TARGETS = (
    Target("python-offsets", debug_offsets, _said, refusals=REFUSALS),
    Target("python-lines", lines, lambda: [parse_lines.__code__.co_linetable, b"\xe8\x04\xf2\x02\x00"], REFUSALS),
    Target("python-memory", forged, _forgeries, most_bytes=1024, cost=8),
    Target("python-loaded", loaded, lambda: [_interpreter(), *_said()], refusals=REFUSALS, most_bytes=65_536, cost=4),
    Target(
        "python-maps",
        maps,
        lambda: [
            b"55d0-55d1 r--p 00000000 fd:01 77 /usr/bin/python3.11\n",
            b"7f-80 rw-p 10 fd:01 8 /a/libpython3.12.so\n",
        ],
    ),
)
