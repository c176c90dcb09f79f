"""From an interpreter's state to the Python stacks of its threads.

A thread's frames lie one after the other in its data stack, so its state and that stack are copied by one call and
walked in the copy; frames of generators and coroutines lie elsewhere and are read one by one. The thread runs on
meanwhile. A walk that does not reach the outermost frame, runs into something that is no code object, or onto an
instruction that the function does not have, is torn: it is dropped and counted. What is copied lies within a
microsecond, so that a function which returns meanwhile may still be shown as called.

A copy that is the same as at the look before is the same stack, and costs a comparison. Code objects are known by
address; as addresses are used again, what is known of those of a stack is compared with memory once a second.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from errno import EFAULT
from operator import itemgetter
from typing import NamedTuple

from zombiescope.symbols.python import code as code_objects
from zombiescope.symbols.python.code import Code
from zombiescope.symbols.python.memory import Memory, StrangeError, word
from zombiescope.symbols.python.offsets import Offsets
from zombiescope.symbols.python.runtime import Runtime

MOST_INTERPRETERS = 16
MOST_THREADS = 512
MOST_DEPTH = 256
MOST_SCATTERED = 64
"""Frames that are not in the data stack, of one walk."""
MOST_COPIED = 1 << 16
MOST_CHUNKS = 16
MOST_LINKS = 512
SMALLEST_CHUNK = 16 << 10
MOST_CODES = 8192
MOST_STACKS = 8192
NEW_CODES = 128
"""Of one look: naming one costs 100 us."""
TRIES = 3
CHECKED_S = 1.0
_CHUNK_HEADER = 24
_OBJECT_BITS = ~7  # 3.14 keeps two flags in the pointer to what a frame runs


class Frame(NamedTuple):
    name: str
    file: str
    line: int


class Stack(NamedTuple):
    """Outermost first."""

    frames: tuple[Frame, ...]
    is_cut: bool
    """It was deeper than MOST_DEPTH: its outermost frames are not here."""


@dataclass(slots=True)
class _Known:
    """What is remembered of a thread, to copy the right places at once."""

    c_frame: int = 0
    chunk: int = 0
    size: int = 0
    copy: bytes = b""
    stack: Stack | None = None
    checked_s: float = 0.0
    key: tuple[int, ...] = ()
    frame: int = 0
    """The innermost one; -1 where a frame of the stack is not in the copy, so that the copy does not tell all."""


@dataclass(slots=True)
class Tally:
    """What became of the walks."""

    walks: int = 0
    torn: int = 0
    unchanged: int = 0
    named: int = 0
    postponed: int = 0
    why: dict[str, int] = field(default_factory=dict)

    def tear(self, why: str) -> None:
        self.torn += 1
        if why in self.why or len(self.why) < MOST_INTERPRETERS:
            self.why[why] = self.why.get(why, 0) + 1


class PostponedError(Exception):
    """Too much that is new: the next look goes on."""


class Interpreter:
    """One process's. OSError where its memory cannot be read any more; nothing else is raised."""

    def __init__(self, memory: Memory, runtime: Runtime, tally: Tally | None = None) -> None:
        """`tally`: where what becomes of its walks is counted."""
        self._memory = memory
        self._runtime = runtime
        self._offsets = runtime.offsets
        self._frame, self._sort = _frame_layout(runtime.offsets)
        self._threads: dict[int, int] = {}
        """Native thread id -> where its state is."""
        self._links: list[tuple[int, int]] = []
        """Of the list of threads: each place and what was there."""
        self._known: dict[int, _Known] = {}
        self._codes: dict[int, tuple[tuple[int, ...], Code]] = {}
        self._stacks: dict[tuple[int, ...], Stack] = {}
        self._checked_s: dict[int, float] = {}
        self._mark_of, self._marks_from = _mark_layout(runtime.offsets)
        self._new_codes = 0
        self.tally = Tally() if tally is None else tally

    # --- threads ------------------------------------------------------------------------------------------------------

    def threads(self) -> Collection[int]:
        """Native ids of the threads that run Python, read anew. A list that cannot be followed leaves the last."""
        try:
            if self._is_same_list():
                return self._threads.keys()
            found = dict(self._list_threads())
        except StrangeError as error:
            self.tally.tear(str(error))
            return self._threads.keys()
        except OSError as error:
            if error.errno != EFAULT:
                raise
            self.tally.tear("the list of threads")
            return self._threads.keys()
        self._threads = found
        self._known = {tid: self._known[tid] for tid in found if tid in self._known}
        return found.keys()

    def _is_same_list(self) -> bool:
        """Whether every link is as it was, by one call."""
        if not self._links or len(self._links) > MOST_LINKS:
            return False
        try:
            data = self._memory.gather([(place, 8) for place, _ in self._links])
        except OSError as error:
            if error.errno != EFAULT:
                raise
            return False
        return struct.unpack(f"<{len(self._links)}Q", data) == tuple(value for _, value in self._links)

    def _list_threads(self) -> Iterator[tuple[int, int]]:
        offsets = self._offsets
        self._links = []
        interpreter = self._link(self._runtime.address + offsets.interpreters_head)
        left = MOST_THREADS
        for _ in range(MOST_INTERPRETERS):
            if not interpreter:
                return
            state = self._link(interpreter + offsets.threads_head)
            while state and left:
                tid = self._link(state + offsets.native_thread_id)
                if 0 < tid < 1 << 31:
                    yield tid, state
                state = self._link(state + offsets.thread_next)
                left -= 1
            if not left:
                return
            interpreter = self._link(interpreter + offsets.interpreter_next)
        raise StrangeError("interpreters without an end")

    def _link(self, place: int) -> int:
        value = word(self._memory, place)
        self._links.append((place, value))
        return value

    # --- stacks -------------------------------------------------------------------------------------------------------

    def look(self, tids: Collection[int], now_s: float) -> dict[int, Stack]:
        """The stacks of these threads, as far as they could be read; a thread outside of Python has an empty one."""
        self._new_codes = NEW_CODES
        found: dict[int, Stack] = {}
        for tid in tids:
            state = self._threads.get(tid)
            if state is None:
                continue
            known = self._known.get(tid)
            if known is None:
                known = self._known[tid] = _Known()
            stack = self._thread(tid, state, known, now_s)
            if stack is not None:
                found[tid] = stack
        return found

    def _thread(self, tid: int, state: int, known: _Known, now_s: float) -> Stack | None:
        self.tally.walks += 1
        try:
            return self._walked(tid, state, known, now_s)
        except StrangeError as error:
            self.tally.tear(str(error))
        except PostponedError:
            self.tally.postponed += 1
        except OSError as error:
            if error.errno != EFAULT:
                raise
            self.tally.tear("memory that is gone")
        known.c_frame = known.chunk = known.size = 0
        known.copy, known.stack = b"", None
        return None

    def _walked(self, tid: int, state: int, known: _Known, now_s: float) -> Stack:
        for _ in range(TRIES):
            copied = self._copy(tid, state, known)
            if copied is None:
                continue
            copy, frame = copied
            if frame == known.frame and copy == known.copy and known.stack is not None:
                self.tally.unchanged += 1
            else:
                known.key, is_cut, is_whole = self._follow(frame, known.chunk, copy)
                known.frame = frame if is_whole else -1
                known.stack = self._stacks.get(known.key)
                if known.stack is None:
                    known.stack = self._named(known.key, is_cut)
                    known.checked_s = now_s
                known.copy = copy
            if now_s - known.checked_s >= CHECKED_S:
                known.checked_s = now_s
                known.stack = self._checked(known, now_s)
            return known.stack
        raise StrangeError("a stack that keeps changing")

    def _copy(self, tid: int, state: int, known: _Known) -> tuple[bytes, int] | None:
        """The data stack and the innermost frame, by one call; None where they are not where they were."""
        offsets = self._offsets
        places = [(state, offsets.thread_size)]
        if known.c_frame and offsets.c_frame is not None:
            places.append((known.c_frame + offsets.c_frame, 8))
        if known.size:
            places.append((known.chunk, known.size))
        data = self._memory.gather(places)
        at = offsets.thread_size
        if struct.unpack_from("<Q", data, offsets.native_thread_id)[0] != tid:
            raise StrangeError("the state of another thread")
        (frame,) = struct.unpack_from("<Q", data, offsets.current_frame)
        (chunk,) = struct.unpack_from("<Q", data, offsets.data_stack)
        if offsets.c_frame is not None:
            if not frame:
                return b"", 0
            if frame != known.c_frame:
                known.c_frame, known.size = frame, 0
                return None
            (frame,) = struct.unpack_from("<Q", data, at)
            at += 8
        size = self._size(frame, chunk)
        if chunk != known.chunk or size > known.size:
            known.chunk, known.size = chunk, size
            return (b"", 0) if not frame else None
        copy = data[at : at + known.size]
        known.size = size
        return copy[:size], frame

    def _size(self, frame: int, chunk: int) -> int:
        """How much of a data stack is to be copied: up to the innermost frame, where that lies in it."""
        if not chunk:
            return 0
        end = frame + self._offsets.frame_size - chunk
        return end if _CHUNK_HEADER < end <= MOST_COPIED else SMALLEST_CHUNK

    def _follow(self, frame: int, chunk: int, copy: bytes) -> tuple[tuple[int, ...], bool, bool]:
        """Code and instruction of each frame, innermost first; whether there are more; whether all are in the copy."""
        unpack, sort, shim = self._frame.unpack_from, self._sort, self._offsets.first_shim
        last, scattered, chunks = len(copy) - self._offsets.frame_size, 0, 1
        found: list[int] = []
        upper = 1 << 64  # frames of one data stack lie below each other: no circle is longer than MOST_SCATTERED
        is_whole = True
        for _ in range(4 * MOST_DEPTH):
            if not frame:
                return tuple(found), False, is_whole
            at = frame - chunk
            if not 0 <= at <= last:
                older = self._older(copy, frame) if chunks < MOST_CHUNKS else None
                if older is not None:
                    chunk, copy = older
                    chunks, is_whole, upper = chunks + 1, False, frame + 1
                    at, last = frame - chunk, len(copy) - self._offsets.frame_size
            if 0 <= at <= last:
                if frame >= upper:
                    raise StrangeError("frames in a circle")
                upper = frame
                code, previous, instruction, owner = sort(unpack(copy, at))
            else:
                scattered += 1
                if scattered > MOST_SCATTERED:
                    raise StrangeError("frames all over the memory")
                code, previous, instruction, owner = sort(unpack(self._memory.read(frame, self._offsets.frame_size)))
                # An entry into the interpreter lies on the C stack between two frames that the copy has.
                is_whole = is_whole and owner >= shim
            if owner < shim:
                found += (code & _OBJECT_BITS, instruction)
                if len(found) >= 2 * MOST_DEPTH:
                    return tuple(found), True, is_whole
            frame = previous
        raise StrangeError("frames without an end")

    def _older(self, copy: bytes, frame: int) -> tuple[int, bytes] | None:
        """The chunk that the data stack had before this one, if the frame lies in it."""
        if len(copy) < _CHUNK_HEADER:
            return None
        (before,) = struct.unpack_from("<Q", copy)
        end = frame + self._offsets.frame_size - before
        if not before or not _CHUNK_HEADER < end <= MOST_COPIED:
            return None
        return before, self._memory.read(before, end)

    # --- names --------------------------------------------------------------------------------------------------------

    def _named(self, key: tuple[int, ...], is_cut: bool) -> Stack:
        pairs = zip(key[::2], key[1::2], strict=True)
        frames = tuple(self._name(address, instruction) for address, instruction in pairs)[::-1]
        if len(self._stacks) >= MOST_STACKS:
            self._stacks.clear()
        stack = self._stacks[key] = Stack(frames, is_cut)
        return stack

    def _name(self, address: int, instruction: int) -> Frame:
        _, code = self._codes.get(address) or self._read_code(address)
        return Frame(code.name, code.file, code.line((instruction - address - self._offsets.code_bytes) // 2))

    def _read_code(self, address: int) -> tuple[tuple[int, ...], Code]:
        if not self._new_codes:
            raise PostponedError
        self._new_codes -= 1
        header = self._memory.read(address, self._offsets.code_size)
        if self._runtime.code_type is not None and struct.unpack_from("<Q", header, 8)[0] != self._runtime.code_type:
            raise StrangeError("a frame that runs no code")
        if len(self._codes) >= MOST_CODES:
            self._codes.clear()
        mark = self._mark_of.unpack_from(header, self._marks_from)
        found = self._codes[address] = mark, code_objects.read(self._memory, self._offsets, header)
        self.tally.named += 1
        return found

    def _checked(self, known: _Known, now_s: float) -> Stack:
        """The stack of a thread, after comparing the code objects in it with what is known of them; those of which
        that was done for another thread of late are left out."""
        assert known.stack is not None
        checked, size = self._checked_s, self._mark_of.size
        codes = [code for code in dict.fromkeys(known.key[::2]) if now_s - checked.get(code, 0.0) >= CHECKED_S]
        if not codes:
            return known.stack
        if len(checked) > MOST_CODES:
            checked.clear()
        checked.update(dict.fromkeys(codes, now_s))
        data = self._memory.gather([(code + self._marks_from, size) for code in codes])
        marks = self._mark_of.iter_unpack(data)
        stale = [
            code
            for code, mark in zip(codes, marks, strict=True)
            if code not in self._codes or self._codes[code][0] != mark
        ]
        if not stale:
            return known.stack
        for code in stale:
            self._codes.pop(code, None)
        self._stacks.clear()
        return self._named(known.key, known.stack.is_cut)


def _mark_layout(offsets: Offsets) -> tuple[struct.Struct, int]:
    """What another code object at the same address would hardly have in common: its line, file, name and table."""
    places = [
        (offsets.code_first_line, "i"),
        (offsets.code_file, "Q"),
        (offsets.code_name, "Q"),
        (offsets.code_lines, "Q"),
    ]
    form, first = _layout(sorted(places), "a code object")
    return struct.Struct(form), first


def _layout(places: list[tuple[int, str]], what: str) -> tuple[str, int]:
    """The form of fields at these places, in their order; and where the first of them is."""
    form, at = "<", places[0][0]
    for place, kind in places:
        if place < at:
            raise StrangeError(f"fields of {what} that overlap")
        form += f"{place - at}x{kind}"
        at = place + struct.calcsize(kind)
    return form, places[0][0]


Sorted = Callable[[tuple[int, ...]], tuple[int, int, int, int]]


def _frame_layout(offsets: Offsets) -> tuple[struct.Struct, Sorted]:
    """How a frame is unpacked: code, previous frame, instruction, owner, whatever order they are in."""
    places = [(offsets.frame_code, "Q"), (offsets.frame_previous, "Q"), (offsets.frame_instruction, "Q"),
              (offsets.frame_owner, "B")]  # fmt: skip
    order = sorted(range(len(places)), key=lambda which: places[which][0])
    form, first = _layout([places[which] for which in order], "a frame")
    form = f"<{first}x{form[1:]}"
    sort: Sorted = itemgetter(*(order.index(which) for which in range(len(places))))
    return struct.Struct(form), sort
