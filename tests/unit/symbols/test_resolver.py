"""Addresses to frames from mappings that records told, for processes that are gone; and our own process."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from zombiescope._native import SymbolTable, elf_build_id
from zombiescope.symbols.elf import ElfCache
from zombiescope.symbols.maps import Mapping, Mappings, recorded
from zombiescope.symbols.resolver import EXITED, MAX_ADDRESSES, Frame, UserSymbols, printable

Build = Callable[..., Path]

LOADED_AT = 0x7F00_0000_0000
LENGTH = 1 << 24


@pytest.fixture
def gone() -> int:
    child = subprocess.Popen(["true"])
    child.wait()
    return child.pid


def offset_of(path: Path, name: bytes) -> int:
    """The offset in the file of a function's first byte."""
    table = SymbolTable(path.read_bytes())
    vaddr = next(start for start, _ in table.starts() if table.lookup(start) == name)
    return next(offset for offset in range(path.stat().st_size) if table.vaddr(offset) == vaddr)


def mapped(path: Path, **known: object) -> Mapping:
    return recorded(LOADED_AT, LENGTH, 0, os.fsencode(path), **known)  # type: ignore[arg-type]


def build_id_of(path: Path) -> bytes | None:
    return elf_build_id(path.read_bytes())


def test_process_that_is_gone_is_resolved_by_build_id_and_path(program: Path, gone: int) -> None:
    # GIVEN what MMAP2 records told before the process went
    mapping = mapped(program, build_id=build_id_of(program))
    ip = LOADED_AT + offset_of(program, b"main")

    # WHEN its addresses are resolved
    frames = UserSymbols().resolve(gone, [ip, LOADED_AT], [mapping])

    # THEN functions have names, other places of the file an offset, and addresses below it nothing
    assert frames == [Frame("main", "program", "user"), None]


def test_another_build_under_the_same_path_is_not_believed(program: Path, gone: int) -> None:
    symbols = UserSymbols()
    offset = offset_of(program, b"main")
    frames = symbols.resolve(gone, [LOADED_AT + offset], [mapped(program, build_id=b"\x00" * 20)])
    assert frames == [Frame(f"program+0x{offset:x}", "program", "user")]
    assert symbols.failures["another build"] == 1


def test_table_in_the_cache_outlives_the_file(program: Path, tmp_path: Path, gone: int) -> None:
    # GIVEN a file that was resolved once and then removed
    copy = tmp_path / "short-lived"
    copy.write_bytes(program.read_bytes())
    mapping = mapped(copy, build_id=build_id_of(copy))
    ip = LOADED_AT + offset_of(copy, b"main")
    symbols = UserSymbols()
    symbols.resolve(gone, [ip], [mapping])
    copy.unlink()

    # THEN other functions of it still have names
    other = LOADED_AT + offset_of(program, b"local_function")
    assert symbols.resolve(gone, [other], [mapping]) == [Frame("local_function", "short-lived", "user")]


@pytest.mark.parametrize(("age_s", "believed"), [(10.0, False), (-10.0, True), (None, False)])
def test_without_build_id_only_a_file_older_than_the_mapping_is_believed(
    program: Path, tmp_path: Path, gone: int, age_s: float | None, believed: bool
) -> None:
    # GIVEN a file installed just now with the time of its build, as packages do
    copy = tmp_path / "program"
    copy.write_bytes(program.read_bytes())
    os.utime(copy, (1_000_000, 1_000_000))
    mapped_at_s = None if age_s is None else time.time() - age_s

    frames = UserSymbols().resolve(
        gone, [LOADED_AT + offset_of(copy, b"main")], [mapped(copy, mapped_at_s=mapped_at_s)]
    )

    assert (frames == [Frame("main", "program", "user")]) is believed


def test_without_build_id_the_inode_must_be_the_same(program: Path, gone: int) -> None:
    status = program.stat()
    known = {"dev": status.st_dev, "inode": status.st_ino, "mapped_at_s": time.time() + 10}
    ip = LOADED_AT + offset_of(program, b"main")
    assert UserSymbols().resolve(gone, [ip], [mapped(program, **known)]) == [Frame("main", "program", "user")]
    known["inode"] += 1
    frames = UserSymbols().resolve(gone, [ip], [mapped(program, **known)])
    assert frames != [Frame("main", "program", "user")]


def test_return_address_behind_a_last_call_belongs_to_the_caller(build: Build, gone: int) -> None:
    # GIVEN a function that ends with a call that never returns, and another right behind it
    source = """
    .text
    .globl caller, behind
    .type caller,@function
    caller: nop; nop
    .size caller,2
    .type behind,@function
    behind: nop
    .size behind,1
    """
    path = build(source, "-shared", "-nostdlib", language="assembler")
    mapping = mapped(path, build_id=build_id_of(path))
    end = LOADED_AT + offset_of(path, b"behind")

    symbols = UserSymbols()
    names = [frame and frame.name for frame in symbols.resolve(gone, [end, end], [mapping])]

    # THEN the leaf is what it points at, and the return address is one byte earlier
    assert names == ["behind", "caller"]
    assert [frame and frame.name for frame in symbols.resolve(gone, [end], [mapping], leaf_first=False)] == ["caller"]
    assert [frame and frame.name for frame in symbols.resolve_at(gone, [end, end], [mapping])] == ["behind"] * 2


def test_code_without_a_file(gone: int) -> None:
    mappings = [
        recorded(0x1000, 0x1000, 0x1000, b"//anon"),
        recorded(0x3000, 0x1000, 0, b"[anon:v8]"),
        recorded(0x5000, 0x1000, 0, b"/memfd:code (deleted)"),
        recorded(0xFFFFFFFFFF600000, 0x1000, 0, b"[vsyscall]"),
    ]
    frames = UserSymbols().resolve_at(gone, [0x1010, 0x3010, 0x5010, 0xFFFFFFFFFF600001, 0x9000], mappings)
    assert frames == [
        Frame("[jit]", "[anon]", "jit"),
        Frame("[jit]", "[anon:v8]", "jit"),
        Frame("[jit]", "memfd:code", "jit"),
        Frame("[vsyscall]", "[vsyscall]", "vdso"),
        None,
    ]


def test_process_that_is_gone_without_mappings(gone: int) -> None:
    assert UserSymbols().resolve(gone, [1, 2, 3]) == [EXITED] * 3


def test_one_call_is_bounded(gone: int) -> None:
    assert len(UserSymbols().resolve(gone, range(1, 10_000))) == MAX_ADDRESSES
    assert UserSymbols().resolve(gone, []) == []


def test_extreme_addresses_are_nowhere() -> None:
    assert UserSymbols().resolve(os.getpid(), [0, 0, 1, (1 << 64) - 1]) == [None] * 4


def test_vdso_has_names() -> None:
    # GIVEN the vDSO of this process
    symbols = UserSymbols()
    with open("/proc/self/maps") as maps:
        start = next(int(line.split("-")[0], 16) for line in maps if "[vdso]" in line)

    # WHEN every sixteenth address of it is resolved
    frames = symbols.resolve_at(os.getpid(), range(start, start + 0x2000, 16))

    # THEN the clock is among its functions
    assert {frame.kind for frame in frames if frame} == {"vdso"}
    assert any("clock_gettime" in frame.name for frame in frames if frame)


def test_names_kept_are_bounded(program: Path, gone: int) -> None:
    symbols = UserSymbols(max_names=2)
    mapping = mapped(program, build_id=build_id_of(program))
    wanted = [b"main", b"local_function", b"_start", b"main"]
    ips = [LOADED_AT + offset_of(program, name) for name in wanted]
    frames = symbols.resolve_at(gone, ips, [mapping])
    assert [frame and frame.name for frame in frames] == [name.decode() for name in wanted]
    assert len(symbols._names) == 2


def test_names_left_in_the_file_are_read_again(program: Path, gone: int) -> None:
    # GIVEN a cache that keeps no names
    symbols = UserSymbols(ElfCache(keep_names_bytes=0))
    mapping = mapped(program, build_id=build_id_of(program))
    for name in (b"main", b"local_function"):
        ip = LOADED_AT + offset_of(program, name)
        assert symbols.resolve_at(gone, [ip], [mapping]) == [Frame(name.decode(), "program", "user")]
    # THEN no descriptor stays open
    assert not any(descriptor.resolve() == program for descriptor in Path("/proc/self/fd").iterdir())


def test_hostile_names_lose_their_control_characters() -> None:
    assert printable("ok_name") == "ok_name"
    assert printable("\x1b[31mred\n\udcff") == "?[31mred??"


def test_mappings_object_is_used_as_it_is(program: Path, gone: int) -> None:
    mappings = Mappings([mapped(program, build_id=build_id_of(program))])
    ip = LOADED_AT + offset_of(program, b"main")
    assert UserSymbols().resolve(gone, [ip], mappings) == [Frame("main", "program", "user")]


@pytest.mark.parametrize("method", ["load", "key"])
def test_whatever_is_raised_over_a_file_leaves_no_descriptor(
    program: Path, gone: int, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """A fault costs one answer; were a descriptor left each time, faults would end the recorder after all."""
    symbols = UserSymbols()
    mapping, ip = mapped(program, build_id=build_id_of(program)), LOADED_AT + offset_of(program, b"main")
    before = len(list(Path("/proc/self/fd").iterdir()))

    def broken(*_: object) -> None:
        raise AttributeError("broken by a test")

    monkeypatch.setattr(symbols.cache, method, broken)
    for _ in range(20):
        with pytest.raises(AttributeError):
            symbols.resolve(gone, [ip], [mapping])
    assert len(list(Path("/proc/self/fd").iterdir())) == before
