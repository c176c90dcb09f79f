"""Symbols kept apart from their binary, made with the tools that distributions use: objcopy, strip, xz."""

from __future__ import annotations

import contextlib
import lzma
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from zombiescope._native import ElfError, SymbolTable, elf_build_id
from zombiescope.symbols import separate_debug
from zombiescope.symbols.elf import ElfCache
from zombiescope.symbols.maps import recorded
from zombiescope.symbols.offline import OfflineSymbols
from zombiescope.symbols.resolver import Frame, UserSymbols
from zombiescope.symbols.separate_debug import BinaryPlace, FunctionLookup, LayeredTable, SeparateDebug
from zombiescope.symbols.store import SymbolStore

Build = Callable[..., Path]

SOURCE = """
#include <stdio.h>
__attribute__((noinline)) int inner_function(int x) { __asm__ volatile(""); return x + 1; }
static __attribute__((noinline, used)) int local_function(int x) { __asm__ volatile(""); return x * 3; }
int main(void) { return printf("%d %d", inner_function(1), local_function(2)) < 0; }
"""


class Stripped:
    """A program without .symtab, its symbols in a file apart, and where its functions are."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.whole = program
        self.path = folder / "stripped"
        self.debug = folder / "stripped.debug"
        subprocess.run(["objcopy", "--only-keep-debug", program, self.debug], check=True)
        subprocess.run(["strip", "-s", "-o", self.path, program], check=True)
        found = elf_build_id(program.read_bytes())
        assert found is not None
        self.build_id = found
        table = SymbolTable(program.read_bytes())
        self.offsets = {
            name: next(offset for offset in range(program.stat().st_size) if table.vaddr(offset) == start)
            for start, _ in table.starts()
            if (name := table.lookup(start)) in (b"main", b"local_function", b"inner_function", b"global_alias")
        }

    def with_debugdata(self, folder: Path, **options: object) -> Path:
        """The program with its symbols packed into .gnu_debugdata, as Fedora's find-debuginfo does it."""
        small = folder / "small"
        subprocess.run(
            ["objcopy", "-S", "--keep-symbol=local_function", "--keep-symbol=main", self.debug, small], check=True
        )
        packed = folder / "packed.xz"
        packed.write_bytes(lzma.compress(small.read_bytes(), **options))  # type: ignore[arg-type]
        out = folder / "packed"
        command = ["objcopy", "--add-section", f".gnu_debugdata={packed}", str(self.path), str(out)]
        subprocess.run(command, check=True)
        return out


@pytest.fixture(scope="module")
def stripped(build: Build, tmp_path_factory: pytest.TempPathFactory) -> Stripped:
    return Stripped(build(SOURCE, "-g", "-Wl,--build-id=sha1"), tmp_path_factory.mktemp("stripped"))


def debug_root(folder: Path, file: Path, build_id: bytes) -> Path:
    entry = folder / ".build-id" / build_id.hex()[:2]
    entry.mkdir(parents=True, exist_ok=True)
    shutil.copy(file, entry / f"{build_id.hex()[2:]}.debug")
    return folder


def table_of(path: Path, apart: SeparateDebug, keep_names_bytes: int = 0) -> FunctionLookup:
    fd = os.open(path, os.O_RDONLY)
    try:
        return apart.table(fd, SymbolTable(fd), BinaryPlace(str(path)), 1 << 16, keep_names_bytes)
    finally:
        os.close(fd)


def name_at(table: FunctionLookup, offset: int) -> bytes | None:
    index = table.find_offset(offset)
    return None if index < 0 else table.name(index)


def test_a_separate_file_is_found_by_build_id(stripped: Stripped, tmp_path: Path) -> None:
    nowhere = table_of(stripped.path, SeparateDebug(None, [tmp_path]))
    assert name_at(nowhere, stripped.offsets[b"local_function"]) is None
    table = table_of(stripped.path, SeparateDebug(None, [debug_root(tmp_path, stripped.debug, stripped.build_id)]))
    for name in (b"main", b"local_function"):
        assert name_at(table, stripped.offsets[name]) == name
        assert name_at(table, stripped.offsets[name] + 1) == name


def test_a_separate_file_in_the_root_of_a_container(stripped: Stripped, tmp_path: Path) -> None:
    # GIVEN a debug package installed in the container and not on the machine
    debug_root(tmp_path / "root/opt/debug", stripped.debug, stripped.build_id)
    apart = SeparateDebug(None, ["/opt/debug"])
    fd = os.open(stripped.path, os.O_RDONLY)
    try:
        inside = apart.table(fd, SymbolTable(fd), BinaryPlace("/bin/program", str(tmp_path / "root")), 1 << 16, 0)
        outside = apart.table(fd, SymbolTable(fd), BinaryPlace("/bin/program"), 1 << 16, 0)
    finally:
        os.close(fd)
    assert name_at(inside, stripped.offsets[b"local_function"]) == b"local_function"
    assert name_at(outside, stripped.offsets[b"local_function"]) is None


def test_a_separate_file_of_another_build_is_not_used(stripped: Stripped, build: Build, tmp_path: Path) -> None:
    # GIVEN the same code with another name in it: only the build id tells that it is another build
    other = build(SOURCE.replace("local_function", "other_function"), "-g", "-Wl,--build-id=sha1")
    table = table_of(stripped.path, SeparateDebug(None, [debug_root(tmp_path, other, stripped.build_id)]))
    assert name_at(table, stripped.offsets[b"local_function"]) is None


@pytest.mark.parametrize("where", ["beside", ".debug", "root"])
def test_a_separate_file_is_found_by_its_link(stripped: Stripped, tmp_path: Path, where: str) -> None:
    binary = tmp_path / "bin" / "program"
    binary.parent.mkdir()
    root = tmp_path / "debug"
    places = {
        "beside": binary.parent,
        ".debug": binary.parent / ".debug",
        "root": root / str(binary.parent).lstrip("/"),
    }
    command = ["objcopy", f"--add-gnu-debuglink={stripped.debug}", str(stripped.path), str(binary)]
    subprocess.run(command, check=True)
    assert name_at(table_of(binary, SeparateDebug(None, [root])), stripped.offsets[b"main"]) is None
    places[where].mkdir(parents=True, exist_ok=True)
    shutil.copy(stripped.debug, places[where] / stripped.debug.name)
    assert name_at(table_of(binary, SeparateDebug(None, [root])), stripped.offsets[b"main"]) == b"main"


def test_a_separate_file_that_changed_gives_no_false_names(stripped: Stripped, build: Build, tmp_path: Path) -> None:
    root = debug_root(tmp_path, stripped.debug, stripped.build_id)
    table = table_of(stripped.path, SeparateDebug(None, [root]))
    other = build(SOURCE.replace("local_function", "other_function"), "-g", "-Wl,--build-id=sha1")
    debug_root(tmp_path, Stripped(other, tmp_path).debug, stripped.build_id)
    assert name_at(table, stripped.offsets[b"local_function"]) is None


@pytest.mark.parametrize("keeps", ["in the store", "in memory"])
def test_debugdata(stripped: Stripped, tmp_path: Path, keeps: str) -> None:
    packed = stripped.with_debugdata(tmp_path)
    store = SymbolStore(tmp_path / "store") if keeps == "in the store" else None
    for _ in range(2):
        table = table_of(packed, SeparateDebug(store, [tmp_path]))
        assert isinstance(table, LayeredTable)
        assert name_at(table, stripped.offsets[b"local_function"]) == b"local_function"
        assert name_at(table, stripped.offsets[b"main"]) == b"main"
    entries = list((tmp_path / "store").glob("debugdata-*")) if store else []
    assert len(entries) == (1 if store else 0)


def test_debugdata_in_a_store_that_cannot_be_written(stripped: Stripped, tmp_path: Path) -> None:
    packed = stripped.with_debugdata(tmp_path)
    (tmp_path / "file").write_text("not a directory")
    table = table_of(packed, SeparateDebug(SymbolStore(tmp_path / "file" / "store"), [tmp_path]))
    assert name_at(table, stripped.offsets[b"main"]) == b"main"


def test_exported_functions_keep_their_own_names(build: Build, tmp_path: Path) -> None:
    # GIVEN a stripped library: what it exports stands in .dynsym, the rest in .gnu_debugdata
    source = """
    static __attribute__((noinline, used)) int local_function(int x) { __asm__ volatile(""); return x * 3; }
    int exported(int x) { return local_function(x); }
    """
    whole = build(source, "-shared", "-fPIC", "-g", "-Wl,--build-id=sha1")
    library = Stripped(whole, tmp_path)
    table = SymbolTable(whole.read_bytes())
    packed = library.with_debugdata(tmp_path)
    layered = table_of(packed, SeparateDebug(None, [tmp_path]), keep_names_bytes=4096)
    names = {name_at(layered, offset) for offset in range(whole.stat().st_size) if table.vaddr(offset) is not None}
    assert {b"exported", b"local_function"} <= names


def test_live_and_offline_use_them(stripped: Stripped, tmp_path: Path) -> None:
    packed = stripped.with_debugdata(tmp_path)
    store = SymbolStore(tmp_path / "store")
    offset = stripped.offsets[b"local_function"]
    offline = OfflineSymbols(store=store, debug_roots=[])
    assert offline.resolve(os.fsencode(packed), stripped.build_id, offset).name == "local_function"
    live = UserSymbols(ElfCache(apart=SeparateDebug(store, [])))
    mapping = recorded(0x10000, 1 << 20, 0, os.fsencode(packed), build_id=stripped.build_id)
    assert live.resolve_at(1 << 22, [0x10000 + offset], [mapping]) == [Frame("local_function", "packed", "user")]


def test_damaged_debugdata_leaves_what_the_binary_has_itself(stripped: Stripped, tmp_path: Path) -> None:
    packed = stripped.with_debugdata(tmp_path)
    data = bytearray(packed.read_bytes())
    at = data.index(b"\xfd7zXZ")
    data[at + 20] ^= 0xFF
    packed.write_bytes(data)
    cache = ElfCache(apart=SeparateDebug(SymbolStore(tmp_path / "store"), []))
    fd = os.open(packed, os.O_RDONLY)
    _, table = cache.load(fd, BinaryPlace(str(packed)))
    os.close(fd)
    assert table is not None
    assert cache.failures == {"its .gnu_debugdata is damaged": 1}
    assert not list((tmp_path / "store").iterdir())


def unpacked(packed: bytes, **limits: int) -> int:
    source, out = os.memfd_create("packed"), os.memfd_create("out")
    try:
        os.write(source, packed)
        return separate_debug.unpack_debugdata(source, (0, len(packed)), out, **limits)
    finally:
        os.close(source)
        os.close(out)


def test_a_bomb_is_not_unpacked() -> None:
    bomb = lzma.compress(bytes(32 << 20))
    with pytest.raises(ElfError, match="more than can be real"):
        unpacked(bomb)
    noise = lzma.compress(os.urandom(1 << 20))
    assert unpacked(noise) == 1 << 20
    with pytest.raises(ElfError, match="more than can be real"):
        unpacked(noise, max_bytes=1 << 19)
    with pytest.raises(ElfError, match="damaged"):
        unpacked(noise, max_memory_bytes=1 << 16)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_streams_that_lie(data: st.DataObject) -> None:
    packed = bytearray(lzma.compress(bytes(range(256)) * 64))
    for _ in range(data.draw(st.integers(0, 3))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(packed)))
    with contextlib.suppress(ElfError):
        assert unpacked(bytes(packed[:cut])) <= 256 * 64 * 64
