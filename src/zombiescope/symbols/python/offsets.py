"""Where things are in the memory of CPython 3.11 to 3.15, on a 64-bit machine.

From 3.13 on `_PyRuntime` begins with _Py_DebugOffsets: a cookie, the version, and offsets as words. Each minor version
has its own order of them (members were inserted in 3.14 and in 3.15), which FIELDS says. For 3.11 and 3.12 the tables
were made by offsetof() on the headers of 3.11.2, 3.11.7 and 3.12.1; layouts do not change within a minor version.

Builds without the GIL keep bytecode by thread and are not read; neither is a version that is not in here.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from zombiescope.symbols.python.memory import StrangeError, UnsupportedError

COOKIE = b"xdebugpy"
FIRST_WITH_OFFSETS = 13
MOST_WORDS = 128
"""Of _Py_DebugOffsets that are read."""
_FAR = 1 << 20
_NEAR = 4096


@dataclass(frozen=True, slots=True)
class Offsets:
    minor: int
    interpreters_head: int
    interpreter_next: int
    threads_head: int
    thread_next: int
    native_thread_id: int
    current_frame: int
    """In the thread's state: the innermost frame; where `c_frame` is set, a structure that has it there."""
    c_frame: int | None
    data_stack: int
    frame_size: int
    frame_code: int
    frame_previous: int
    frame_instruction: int
    frame_owner: int
    first_shim: int
    """Owners from this number on are entries into the interpreter and no function."""
    code_file: int
    code_name: int
    code_lines: int
    code_first_line: int
    code_bytes: int
    text_length: int
    text_state: int
    text_ascii: int
    text_compact: int
    bytes_size: int
    bytes_data: int

    @property
    def thread_size(self) -> int:
        return 8 + max(self.thread_next, self.native_thread_id, self.current_frame, self.data_stack)

    @property
    def code_size(self) -> int:
        return 8 + max(self.code_file, self.code_name, self.code_lines, self.code_first_line)


_NO_SHIMS = 256
_OLDER = {"thread_next": 8, "current_frame": 56, "interpreters_head": 40, "interpreter_next": 0, "frame_size": 72,
          "frame_instruction": 56, "code_file": 112, "code_name": 128, "code_lines": 136, "text_length": 16,
          "text_state": 32, "bytes_size": 16, "bytes_data": 32}  # fmt: skip
TABLES = {
    11: Offsets(
        **_OLDER, minor=11, threads_head=16, native_thread_id=160, c_frame=8, data_stack=296, frame_code=32,
        frame_previous=48, frame_owner=69, first_shim=_NO_SHIMS, code_first_line=72, code_bytes=184, text_ascii=48,
        text_compact=72,
    ),
    12: Offsets(
        **_OLDER, minor=12, threads_head=72, native_thread_id=144, c_frame=0, data_stack=232, frame_code=0,
        frame_previous=8, frame_owner=70, first_shim=3, code_first_line=68, code_bytes=192, text_ascii=40,
        text_compact=56,
    ),
}  # fmt: skip

_RUNTIME = ("size", "finalizing", "interpreters_head")
_INTERPRETER = ("size", "id", "next", "threads_head", "gc", "imports_modules", "sysdict", "builtins", "ceval_gil",
                "gil_runtime_state", "gil_runtime_state_enabled", "gil_runtime_state_locked",
                "gil_runtime_state_holder")  # fmt: skip
_INTERPRETER_14 = (*_INTERPRETER[:4], "threads_main", *_INTERPRETER[4:], "code_object_generation", "tlbc_generation")
_THREAD = ("size", "prev", "next", "interp", "current_frame", "thread_id", "native_thread_id", "datastack_chunk",
           "status")  # fmt: skip
_THREAD_15 = (*_THREAD[:5], "base_frame", "last_profiled_frame", "last_profiled_frame_seq", *_THREAD[5:], "holds_gil",
              "gil_requested", "current_exception", "exc_state")  # fmt: skip
_FRAME = ("size", "previous", "executable", "instr_ptr", "localsplus", "owner")
_FRAME_14 = (*_FRAME, "stackpointer", "tlbc_index")
_CODE = ("size", "filename", "name", "qualname", "linetable", "firstlineno", "argcount", "localsplusnames",
         "localspluskinds", "co_code_adaptive")  # fmt: skip
_BYTES = ("size", "ob_size", "ob_sval")
_TEXT = ("size", "state", "length", "asciiobject_size")
_OBJECT, _TYPE = ("size", "ob_type"), ("size", "tp_name", "tp_repr", "tp_flags")
_THREE, _TWO = ("size", "a", "b"), ("size", "a")
_SET = ("size", "used", "table", "mask")

_SECTIONS = {
    13: (("runtime", _RUNTIME), ("interpreter", _INTERPRETER), ("thread", _THREAD), ("frame", _FRAME),
         ("code", _CODE), ("object", _OBJECT), ("type", _TYPE), ("tuple", _THREE), ("list", _THREE), ("dict", _THREE),
         ("float", _TWO), ("long", _THREE), ("bytes", _BYTES), ("text", _TEXT)),
    14: (("runtime", _RUNTIME), ("interpreter", _INTERPRETER_14), ("thread", _THREAD), ("frame", _FRAME_14),
         ("code", (*_CODE, "co_tlbc")), ("object", _OBJECT), ("type", _TYPE), ("tuple", _THREE), ("list", _THREE),
         ("set", _SET), ("dict", _THREE), ("float", _TWO), ("long", _THREE), ("bytes", _BYTES), ("text", _TEXT)),
    15: (("runtime", _RUNTIME), ("interpreter", _INTERPRETER_14), ("thread", _THREAD_15), ("error", ("exc_value",)),
         ("frame", _FRAME_14), ("code", (*_CODE, "co_tlbc")), ("object", _OBJECT),
         ("type", (*_TYPE, "tp_basicsize", "tp_dictoffset")), ("heap_type", ("size", "ht_cached_keys")),
         ("tuple", _THREE), ("list", _THREE), ("set", _SET), ("dict", _THREE), ("float", _TWO), ("long", _THREE),
         ("bytes", _BYTES), ("text", _TEXT)),
}  # fmt: skip
FIELDS = {
    minor: {f"{section}.{name}": 3 + at for at, (section, name) in enumerate(
        (section, name) for section, names in sections for name in names)}
    for minor, sections in _SECTIONS.items()
}  # fmt: skip
"""Minor version -> field -> which word of _Py_DebugOffsets it is, after cookie, version and free_threaded."""


def parse(data: bytes) -> Offsets:
    """What the beginning of `_PyRuntime` of 3.13 or later says. Raises StrangeError, UnsupportedError."""
    if len(data) < 8 * MOST_WORDS or data[:8] != COOKIE:
        raise StrangeError("no cookie")
    words = struct.unpack_from(f"<{MOST_WORDS}Q", data)
    minor = version(words[1])
    if words[2]:
        raise UnsupportedError(f"Python 3.{minor} without the GIL (free-threaded)")
    if minor not in FIELDS:
        raise UnsupportedError(f"Python 3.{minor}")
    said = {name: words[at] for name, at in FIELDS[minor].items()}
    for name, offset in said.items():
        if offset >= (_FAR if name.startswith(("interpreter", "runtime")) else _NEAR):
            raise StrangeError(f"{name} at {offset}")
    return _offsets(minor, said)


def _offsets(minor: int, said: dict[str, int]) -> Offsets:
    ends = (said[f"frame.{name}"] for name in ("executable", "previous", "instr_ptr", "owner"))
    return Offsets(
        minor=minor,
        interpreters_head=said["runtime.interpreters_head"],
        interpreter_next=said["interpreter.next"],
        threads_head=said["interpreter.threads_head"],
        thread_next=said["thread.next"],
        native_thread_id=said["thread.native_thread_id"],
        current_frame=said["thread.current_frame"],
        c_frame=None,
        data_stack=said["thread.datastack_chunk"],
        frame_size=8 + max(ends),
        frame_code=said["frame.executable"],
        frame_previous=said["frame.previous"],
        frame_instruction=said["frame.instr_ptr"],
        frame_owner=said["frame.owner"],
        first_shim=3,
        code_file=said["code.filename"],
        code_name=said["code.qualname"],
        code_lines=said["code.linetable"],
        code_first_line=said["code.firstlineno"],
        code_bytes=said["code.co_code_adaptive"],
        text_length=said["text.length"],
        text_state=said["text.state"],
        text_ascii=said["text.asciiobject_size"],
        text_compact=said["text.asciiobject_size"] + 16,
        bytes_size=said["bytes.ob_size"],
        bytes_data=said["bytes.ob_sval"],
    )


def version(word: int) -> int:
    """The minor version of a PY_VERSION_HEX. Raises StrangeError, UnsupportedError."""
    major, minor = word >> 24, word >> 16 & 0xFF
    if major != 3 or minor > 99:
        raise StrangeError(f"version {word:#x}")
    if minor not in TABLES and minor not in FIELDS:
        raise UnsupportedError(f"Python 3.{minor}")
    return minor
