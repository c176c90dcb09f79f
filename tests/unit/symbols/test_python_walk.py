"""The walk over another process's Python: right on a whole image, bounded on a torn or forged one (a stand-in)."""

from __future__ import annotations

import random
import struct

import pytest
from tests.helpers.python_image import (
    C_FRAMES,
    CHUNKS,
    CODES,
    FRAME_BYTES,
    INTERPRETER,
    OFFSETS,
    RUNTIME,
    SHIM,
    TEXTS,
    THREADS,
    FakeMemory,
    FakePython,
)  # fmt: skip

from zombiescope.symbols.python import offsets, runtime, walk
from zombiescope.symbols.python.memory import UnsupportedError
from zombiescope.symbols.python.walk import Frame


def stack_of(python: FakePython, tid: int = 7) -> list[tuple[str, int]] | None:
    interpreter = python.interpreter()
    interpreter.threads()
    found = interpreter.look([tid], 1.0).get(tid)
    return None if found is None else [(frame.name, frame.line) for frame in found.frames]


@pytest.fixture
def python() -> FakePython:
    made = FakePython()
    made.thread(7, [(made.code("main"), 1), (made.code("epoch", first_line=50), 3), (made.code("step"), 0)])
    return made


def test_frames_come_outermost_first_with_their_lines(python: FakePython) -> None:
    assert stack_of(python) == [("main", 11), ("epoch", 53), ("step", 10)]
    interpreter = python.interpreter()
    assert list(interpreter.threads()) == [7]
    assert interpreter.look([7], 1.0)[7].frames[0] == Frame("main", "/srv/job/train.py", 11)


def test_every_thread_is_found_and_those_not_asked_for_are_not_read(python: FakePython) -> None:
    python.thread(8, [(python.code("worker"), 2)])
    interpreter = python.interpreter()
    assert sorted(interpreter.threads()) == [7, 8]
    assert list(interpreter.look([8], 1.0)) == [8]
    assert interpreter.look([9], 1.0) == {}


def test_a_thread_outside_of_python_has_an_empty_stack(python: FakePython) -> None:
    python.thread(8, [])
    assert stack_of(python, 8) == []


def test_entries_into_the_interpreter_are_no_functions(python: FakePython) -> None:
    code = python.code("callback")
    top = CHUNKS + 24 + FRAME_BYTES * 4
    python.frame(top - FRAME_BYTES, 0, 0, CHUNKS + 24 + FRAME_BYTES * 2, owner=SHIM)
    python.frame(top, code, 1, top - FRAME_BYTES)
    python.memory.put(C_FRAMES + (OFFSETS.c_frame or 0), "<Q", top)
    assert stack_of(python) == [("main", 11), ("epoch", 53), ("step", 10), ("callback", 11)]


def test_a_stack_that_did_not_change_is_not_followed_again(python: FakePython) -> None:
    interpreter = python.interpreter()
    interpreter.threads()
    first = interpreter.look([7], 1.0)
    reads = python.memory.reads
    assert interpreter.look([7], 1.1) == first
    assert interpreter.tally.unchanged == 1
    assert python.memory.reads - reads == 3


def test_a_code_object_at_a_used_address_is_noticed_within_a_second(python: FakePython) -> None:
    interpreter = python.interpreter()
    interpreter.threads()
    interpreter.look([7], 1.0)
    step = CODES + 2 * 512
    python.memory.put(step + OFFSETS.code_name, "<Q", python.text("another"))
    assert interpreter.look([7], 2.5)[7].frames[-1].name == "another"


def test_a_generator_moves_on_though_the_data_stack_does_not(python: FakePython) -> None:
    """Its frame lies in the heap, so that the copy of the stack does not tell that it moved."""
    generator = python.code("batches")
    heap = TEXTS + (1 << 17)
    python.frame(heap, generator, 0, CHUNKS + 24 + FRAME_BYTES)
    top = CHUNKS + 24 + 2 * FRAME_BYTES
    python.memory.put(top + OFFSETS.frame_previous, "<Q", heap)
    interpreter = python.interpreter()
    interpreter.threads()
    assert interpreter.look([7], 1.0)[7].frames[-2] == Frame("batches", "/srv/job/train.py", 10)
    python.frame(heap, generator, 3, CHUNKS + 24 + FRAME_BYTES)
    assert interpreter.look([7], 1.1)[7].frames[-2].line == 13


# --- torn and forged -------------------------------------------------------------------------------------------------

FRAME = CHUNKS + 24
CODE = CODES
FORGERIES = {
    "a frame that calls itself": (FRAME + OFFSETS.frame_previous, FRAME),
    "two frames that call each other": (FRAME + OFFSETS.frame_previous, FRAME + FRAME_BYTES),
    "a caller that is not mapped": (FRAME + OFFSETS.frame_previous, 0x7F00_0000_0000),
    "a caller in the kernel": (FRAME + OFFSETS.frame_previous, 0xFFFF_8000_0000_0000),
    "a caller at the end of memory": (FRAME + OFFSETS.frame_previous, (1 << 64) - 1),
    "code that is none": (FRAME + OFFSETS.frame_code, THREADS),
    "code that is not mapped": (FRAME + OFFSETS.frame_code, 0x7F00_0000_0000),
    "an instruction of another function": (FRAME + OFFSETS.frame_instruction, CODE + (1 << 30)),
    "a name of a petabyte": (TEXTS + OFFSETS.text_length, 1 << 50),
    "a name of less than nothing": (TEXTS + OFFSETS.text_length, (1 << 64) - 5),
    "a name of no kind": (TEXTS + OFFSETS.text_state, 0),
    "a first line beyond all": (CODE + OFFSETS.code_first_line, 0x7FFFFFFF),
    "a table of lines that is not mapped": (CODE + OFFSETS.code_lines, 8),
    "a frame pointer that is no frame": (C_FRAMES + (OFFSETS.c_frame or 0), 1),
    "a data stack elsewhere": (THREADS + OFFSETS.data_stack, 0x7F00_0000_0000),
}


@pytest.mark.parametrize("forged", FORGERIES.values(), ids=FORGERIES.keys())
def test_what_makes_no_sense_is_dropped_and_counted(python: FakePython, forged: tuple[int, int]) -> None:
    address, value = forged
    python.memory.put(address, "<Q", value & (1 << 64) - 1)
    interpreter = python.interpreter()
    interpreter.threads()
    python.memory.reads = python.memory.bytes = 0
    found = interpreter.look([7], 1.0)
    told = [frame for stack in found.values() for frame in stack.frames]
    assert interpreter.tally.torn == (not found)
    assert len(told) <= 3
    assert all(len(frame.name) <= 410 for frame in told)
    assert python.memory.reads < 2_000
    assert python.memory.bytes < 4 << 20


def test_most_forgeries_are_counted_as_torn() -> None:
    torn = 0
    for address, value in FORGERIES.values():
        made = FakePython()
        made.thread(7, [(made.code("main"), 1), (made.code("epoch"), 3), (made.code("step"), 0)])
        made.memory.put(address, "<Q", value)
        interpreter = made.interpreter()
        interpreter.threads()
        torn += not interpreter.look([7], 1.0)
        assert interpreter.tally.torn in (0, 1)
    assert torn >= len(FORGERIES) - 3


@pytest.mark.parametrize("link", [THREADS + OFFSETS.thread_next, INTERPRETER + OFFSETS.interpreter_next])
def test_a_list_without_an_end_ends(python: FakePython, link: int) -> None:
    python.memory.put(link, "<Q", THREADS if link > THREADS else INTERPRETER)
    interpreter = python.interpreter()
    assert len(interpreter.threads()) <= walk.MOST_THREADS
    assert python.memory.reads <= 4 * (walk.MOST_THREADS + walk.MOST_INTERPRETERS)


def test_a_list_that_cannot_be_followed_leaves_the_one_before(python: FakePython) -> None:
    interpreter = python.interpreter()
    interpreter.threads()
    python.memory.put(RUNTIME + OFFSETS.interpreters_head, "<Q", 0x7F00_0000_0000)
    assert list(interpreter.threads()) == [7]
    assert interpreter.tally.torn == 1


def test_a_deep_stack_goes_on_in_the_chunk_before_and_is_cut_at_its_outermost_frames() -> None:
    made = FakePython()
    recursive, many = made.code("descend"), (16 << 10) // FRAME_BYTES - 2
    chunk, top = CHUNKS, made.thread(7, [(recursive, 0)] * many)
    made.memory.map(0x9_000_000, 1 << 16)
    for newer in (0x9_000_000, 0x9_004_000):
        made.memory.put(newer, "<Q", chunk)
        for depth in range(many):
            top = made.frame(newer + 24 + depth * FRAME_BYTES, recursive, 1, top)
        chunk = newer
    made.memory.put(THREADS + OFFSETS.data_stack, "<Q", chunk)
    made.memory.put(C_FRAMES + (OFFSETS.c_frame or 0), "<Q", top)
    interpreter = made.interpreter()
    interpreter.threads()
    found = interpreter.look([7], 1.0)[7]
    assert (len(found.frames), found.is_cut) == (walk.MOST_DEPTH, True)
    assert made.memory.reads < 40


def test_frames_all_over_the_memory_are_not_followed_for_ever(python: FakePython) -> None:
    heap, code = 0x9_000_000, python.code("generator")
    python.memory.map(heap, 1 << 16)
    for number in range(walk.MOST_SCATTERED + 8):
        python.frame(heap + FRAME_BYTES * number, code, 0, heap + FRAME_BYTES * (number + 1))
    python.memory.put(FRAME + OFFSETS.frame_previous, "<Q", heap)
    assert stack_of(python) is None


def test_no_random_memory_breaks_it() -> None:
    chance = random.Random(22)
    for _ in range(150):
        made = FakePython()
        made.thread(7, [(made.code("main"), 1), (made.code("epoch"), 3)])
        interpreter = made.interpreter()
        interpreter.threads()
        for _ in range(chance.randrange(1, 40)):
            start = chance.choice(list(made.memory.regions))
            size = len(made.memory.regions[start])
            place = start + min(chance.randrange(1024), size - 8)
            near, far = chance.getrandbits(23), chance.getrandbits(64)
            value = chance.choice((0, 1, 8, start, place, (1 << 64) - 1, near, far))
            made.memory.put(place, "<Q", value)
        made.memory.reads = 0
        interpreter.threads()
        interpreter.look([7, 8], 2.0)
        interpreter.look([7, 8], 4.0)
        assert made.memory.reads < 20_000


def test_a_frame_whose_fields_overlap_is_refused() -> None:
    from dataclasses import replace

    from zombiescope.symbols.python.memory import StrangeError
    from zombiescope.symbols.python.runtime import Runtime
    from zombiescope.symbols.python.walk import Interpreter

    made = FakePython()
    with pytest.raises(StrangeError):
        Interpreter(made.memory, Runtime(RUNTIME, replace(OFFSETS, frame_previous=4), None))
    assert struct.calcsize("Q") == 8


def test_a_file_full_of_cookies_is_not_followed_to_its_end() -> None:
    memory = FakeMemory()
    memory.regions[RUNTIME] = bytearray(offsets.COOKIE * (1 << 17))
    mapped = [runtime.Mapped(RUNTIME, RUNTIME + (1 << 20), True, 0, b"/tmp/python3.13")]
    with pytest.raises(UnsupportedError):
        runtime.find(memory, mapped)
    assert memory.reads < 100
