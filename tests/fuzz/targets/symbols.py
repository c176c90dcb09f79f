"""Binaries, tables of Go, names of just-in-time code and mangled names: files of whoever runs on the node."""

from __future__ import annotations

import contextlib
import functools
import lzma
import os
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from tests.fuzz.target import Target
from zombiescope._native import (
    CallFrames,
    ElfError,
    ProcessUnwinder,
    SymbolTable,
    elf_build_id,
    elf_load_address,
    plain_name,
)
from zombiescope.imports import kernel_names
from zombiescope.symbols import jit_files, separate_debug
from zombiescope.symbols.demangle import demangle
from zombiescope.symbols.itanium_codes import MAX_TEXT
from zombiescope.symbols.jit_files import CodeFile
from zombiescope.symbols.separate_debug import SeparateDebug

FIXTURES = Path(__file__).parents[2] / "fixtures"
EDGES = (0, 1, 2, 7, 8, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
ELF_BYTES = 16_384
PT_LOAD, PF_X = 1, 1
GO_TEXT = 0x401000


@contextlib.contextmanager
def in_memory(content: bytes) -> Iterator[int]:
    """A file that is nowhere."""
    fd = os.memfd_create("fuzz")
    try:
        os.write(fd, content)
        yield fd
    finally:
        os.close(fd)


def exercise(image: bytes) -> None:
    """Every question that is asked of a table of symbols."""
    for read in (elf_build_id, elf_load_address):
        with contextlib.suppress(ElfError):
            read(image)
    try:
        table = SymbolTable(image, max_symbols=4096, keep_names_bytes=512)
    except ElfError:
        return
    assert table.nbytes > 0
    for index in range(0, len(table), max(1, len(table) // 16)):
        table.name(index)
    for start, size in table.starts()[:16]:
        table.lookup(start)
        table.lookup(min(start + size, (1 << 64) - 1))
    for offset in (0, 1, len(image), *EDGES):
        table.find_offset(offset)
        table.find(offset)


def through_a_file(image: bytes) -> None:
    with in_memory(image) as fd, contextlib.suppress(ElfError):
        table = SymbolTable(fd, keep_names_bytes=64)
        for index in range(min(len(table), 8)):
            table.name(index, fd)


def elf(data: bytes) -> None:
    exercise(data)
    through_a_file(data)


def call_frames(data: bytes) -> None:
    """A table of call frames, and walks by it over a stack that is made of the same bytes."""
    try:
        table = CallFrames(data, 1 << 20)
    except ElfError:
        return
    assert table.nbytes > 0
    walker = ProcessUnwinder([(0x400000, 0x500000, 0, table, True), (0x600000, 0x700000, 0, None, True)])
    for at, vaddr in enumerate((0, 0x400078, 0x4000B0, 0x4000B1, 0x401000, *EDGES)):
        table.rule(vaddr)
        chain, why = walker.unwind(vaddr, 0x7000, 0x7000 + 8 * at, data)
        assert 0 < len(chain) <= 256
        assert why


def separate(data: bytes) -> None:
    """Symbols that a stripped binary carries packed, or names elsewhere."""
    with in_memory(data) as fd:
        program = SymbolTable(fd, max_symbols=4096, keep_names_bytes=512)
        table = SeparateDebug(None, ("/nonexistent",)).table(fd, program, None, 4096, 512)
        for offset in (0, 0x78, 0xB0, 0xB2, len(data), (1 << 63) - 1):
            index = table.find_offset(offset)
            if index >= 0:
                table.name(index, fd)


def packed_symbols(data: bytes) -> None:
    with in_memory(data) as fd, in_memory(b"") as out:
        length = separate_debug.unpack_debugdata(fd, (0, len(data)), out, max_bytes=1 << 20, max_memory_bytes=16 << 20)
        assert length == os.fstat(out).st_size


def code_file(kind: Literal["perf map", "jitdump"], data: bytes) -> None:
    """Written in two pieces, as a program would."""
    with in_memory(data[: len(data) // 2]) as fd:
        file = CodeFile(kind, 32)
        file.read_on(fd)
        os.write(fd, data[len(data) // 2 :])
        while file.read_on(fd) and file.advanced:
            pass
        for address in (0x1000, 0x2008, *EDGES):
            file.name(address, fd)
        assert len(file.code) <= 32


def names(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    assert len(demangle(text)) <= max(MAX_TEXT * 2, len(text))
    plain_name(text)


def kernel_notes(data: bytes) -> None:
    kernel_names._references(data)
    kernel_names.module_name(data.decode("utf-8", "surrogateescape"))
    with in_memory(data) as fd:
        kernel_names.running_build_id(f"/proc/self/fd/{fd}")


# --- seeds -----------------------------------------------------------------------------------------------------------

PROGRAM = ".globl _start, second\n.type _start,@function\n_start: nop\n nop\n.size _start,2\n"
PROGRAM += ".type second,@function\nsecond: nop\n ret\n.size second,2\n"


def _linked(folder: Path, bits: str, emulation: str) -> bytes:
    subprocess.run(["as", bits, "-o", "made.o"], input=PROGRAM, text=True, check=True, cwd=folder)
    subprocess.run(
        [
            "ld",
            "-m",
            emulation,
            "-z",
            "max-page-size=4096",
            "-z",
            "noseparate-code",
            "--build-id=sha1",
            "-o",
            "made",
            "made.o",
        ],
        check=True,
        cwd=folder,
    )
    return (folder / "made").read_bytes()


@functools.cache
def programs() -> tuple[bytes, ...]:
    """Small programs of 64 and 32 bits, with symbols, notes and a build id: made by what builds the package."""
    with tempfile.TemporaryDirectory(prefix="zombiescope-fuzz-") as folder:
        place = Path(folder)
        wide = _linked(place, "--64", "elf_x86_64")
        subprocess.run(["strip", "-o", "bare", "made"], check=True, cwd=place)
        (place / "packed").write_bytes(lzma.compress(wide))
        add = ["objcopy", "--add-section", ".gnu_debugdata=packed", "--add-gnu-debuglink=made", "bare", "both"]
        subprocess.run(add, check=True, cwd=place)
        return wide, _linked(place, "--32", "elf_i386"), (place / "both").read_bytes()


UNWOUND = """.globl _start
_start: .cfi_startproc
 push %rbp
 .cfi_def_cfa_offset 16
 .cfi_offset %rbp, -16
 mov %rsp, %rbp
 .cfi_def_cfa_register %rbp
 .cfi_remember_state
 pop %rbp
 .cfi_def_cfa %rsp, 8
 .cfi_restore %rbp
 ret
 .cfi_restore_state
 nop
 .cfi_escape 0x0f, 0x03, 0x76, 0x78, 0x06
 nop
 .cfi_escape 0x0f, 0x0b, 0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22
 nop
 .cfi_endproc
second: .cfi_startproc
 .cfi_signal_frame
 nop
 .cfi_endproc
third: .cfi_startproc
 .cfi_undefined %rip
 hlt
 .cfi_endproc
"""


@functools.cache
def unwound_programs() -> tuple[bytes, ...]:
    """A program that knows every rule that is followed."""
    with tempfile.TemporaryDirectory(prefix="zombiescope-fuzz-") as folder:
        place = Path(folder)
        (place / "made.s").write_text(UNWOUND)
        subprocess.run(["as", "--64", "-o", "made.o", "made.s"], check=True, cwd=place)
        subprocess.run(
            ["ld", "-m", "elf_x86_64", "-z", "max-page-size=16", "-s", "-o", "made", "made.o"], check=True, cwd=place
        )
        return ((place / "made").read_bytes(),)


def go_image(magic: int = 0xFFFFFFF1, functions: int = 5) -> bytes:
    """A program of one segment whose gopclntab, of the layout since Go 1.18, is found by searching."""
    words = [b"main.f%d\0" % number for number in range(functions)]
    name_bytes = b"".join(words).ljust(8 * functions + 16, b"\0")
    names_at = 72
    functab_at = names_at + len(name_bytes) + -len(name_bytes) % 8
    pairs, records = b"", b""
    for number in range(functions):
        pairs += struct.pack("<II", 16 * number, 8 * (functions + 1) + len(records))
        records += struct.pack("<IIQ", 16 * number, sum(map(len, words[:number])), 0)
    pairs += struct.pack("<II", 16 * functions, 0)
    head = struct.pack("<IBBBB", magic, 0, 0, 1, 8)
    head += struct.pack("<8Q", functions, 1, GO_TEXT, names_at, functab_at, functab_at, functab_at, functab_at)
    table = (head + name_bytes).ljust(functab_at, b"\0") + pairs + records
    size = 0x1000 + 16 * functions + len(table)
    start = b"\x7fELF\2\1\1" + bytes(9)
    start += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, GO_TEXT, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    code, data_at = 16 * functions, 0x400 + 16 * functions
    start += struct.pack("<IIQQQQQQ", PT_LOAD, 5, 0x400, GO_TEXT, GO_TEXT, code, code, 4096)
    start += struct.pack("<IIQQQQQQ", PT_LOAD, 4, data_at, 0x500000, 0x500000, len(table), len(table), 4096)
    assert size > len(start)
    return start.ljust(0x400, b"\0") + b"\x90" * code + table


def jitdump_header(order: str = "<") -> bytes:
    return struct.pack(f"{order}IIIIIIQQ", jit_files.JITDUMP_MAGIC, 1, 40, 62, 0, 7, 1, 0)


def jitdump_load(start: int, size: int, name: bytes, order: str = "<") -> bytes:
    body = struct.pack(f"{order}IIQQQQ", 7, 7, start, start, size, 1) + name + b"\0" + b"\x90" * size
    return struct.pack(f"{order}IIQ", jit_files.LOAD, 16 + len(body), 1) + body


def jitdump_move(old: int, new: int, size: int, order: str = "<") -> bytes:
    body = struct.pack(f"{order}IIQQQQQ", 7, 7, new, old, new, size, 1)
    return struct.pack(f"{order}IIQ", jit_files.MOVE, 16 + len(body), 1) + body


def jitdump(order: str = "<") -> bytes:
    data = jitdump_header(order) + jitdump_load(0x1000, 16, b"one", order) + jitdump_load(0x2000, 16, b"two", order)
    return data + jitdump_move(0x1000, 0x3000, 16, order) + struct.pack(f"{order}IIQ", jit_files.CLOSE, 16, 1)


MANGLED = (
    b"_ZNKSt10unique_ptrI3FooSt14default_deleteIS0_EEptEv",
    b"_ZZ4mainENKUliE_clEi",
    b"_ZN3FooIPFivEE3barIJiLi5EEEEvT_",
    b"_RINvCs6xxl1lAjzDf_1a7genericTlReEKj1_EB2_",
    b"_RNvXs_NtC1a1bINtB4_2SqdENtB4_5Shape4area",
    b"_ZN59_$LT$core..fmt..Arguments$u20$as$u20$core..fmt..Display$GT$3fmt17h0123456789abcdefE",
)


def _mangled() -> list[bytes]:
    listed = (FIXTURES / "rust-v0-names.txt").read_bytes().split()
    return [*MANGLED, *(word for word in listed if word.startswith(b"_R"))][:200]


NOTES = struct.pack("<III4s20s", 4, 20, 3, b"GNU\0", b"\xaa" * 20)

TARGETS = (
    Target(
        "elf", elf, programs, native=True, most_bytes=ELF_BYTES, words=(b"\x7fELF", b".symtab\0", b".note\0", b"GNU\0")
    ),
    Target("gopclntab", elf, lambda: [go_image(), go_image(0xFFFFFFF0)], native=True, most_bytes=ELF_BYTES),
    Target(
        "call-frames", call_frames, unwound_programs, native=True, most_bytes=ELF_BYTES, words=(b".eh_frame\0", b"zR\0")
    ),
    Target("separate-debug", separate, lambda: programs()[2:], refusals=(ElfError,), native=True, most_bytes=ELF_BYTES),
    Target("debugdata-xz", packed_symbols, lambda: [lzma.compress(b"symbols" * 99)], refusals=(ElfError,)),
    Target(
        "perf-map",
        lambda data: code_file("perf map", data),
        lambda: [b"1000 20 one\n0x2000 0x10 two\n" * 4],
        native=True,
    ),
    Target("jitdump", lambda data: code_file("jitdump", data), lambda: [jitdump(), jitdump(">")], native=True),
    Target("demangling", names, _mangled, native=True, most_bytes=1024),
    Target("kernel-notes", kernel_notes, lambda: [NOTES, b"ffffffff81000000 T _text\nffffffff81000000 T _stext\n"]),
)
