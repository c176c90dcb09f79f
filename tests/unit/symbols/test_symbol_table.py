"""SymbolTable against readelf, on files of every kind that can be mapped into a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from zombiescope._native import ElfError, SymbolTable, elf_build_id

Build = Callable[..., Path]
Symbols = dict[int, list[tuple[str, str, int]]]

MOST_ALIASES = 32


@contextmanager
def opened(path: Path | str) -> Iterator[int]:
    fd = os.open(path, os.O_RDONLY)
    try:
        yield fd
    finally:
        os.close(fd)


def readelf_functions(path: Path | str) -> Symbols:
    """Address -> (binding, name without version, size) of each function, from .symtab or else .dynsym."""
    command = ["readelf", "-sW", str(path)]
    text = subprocess.run(command, capture_output=True, check=True).stdout.decode("utf-8", "surrogateescape")
    tables: dict[str, Symbols] = {}
    for line in text.splitlines():
        if line.startswith("Symbol table"):
            table = tables[line.split("'")[1]] = defaultdict(list)
        words = line.split()
        if len(words) >= 8 and words[3] in ("FUNC", "IFUNC") and words[6] != "UND":
            table[int(words[1], 16)].append((words[4], words[7].partition("@")[0], int(words[2], 0)))
    return tables.get(".symtab") or tables.get(".dynsym") or {}


def chosen(aliases: list[tuple[str, str, int]]) -> bytes:
    names = [name for binding, name, _ in aliases if binding != "LOCAL"] or [name for _, name, _ in aliases]
    return min((os.fsencode(name) for name in names), key=lambda name: (len(name) - len(name.lstrip(b"_")), name))


def check_against_readelf(path: Path | str) -> int:
    expected = readelf_functions(path)
    with opened(path) as fd:
        table = SymbolTable(fd)
        for vaddr, aliases in expected.items():
            if len(aliases) <= MOST_ALIASES:
                assert table.lookup(vaddr, fd) == chosen(aliases)
            size = max(size for _, _, size in aliases)
            assert table.find(vaddr + max(size, 1) - 1) >= 0
    return len(expected)


def machine_binaries() -> list[str]:
    """Programs and libraries of this machine: what this process has mapped, and some that it has not."""
    with open("/proc/self/maps") as maps:
        mapped = {line.split()[-1] for line in maps if "r-xp" in line and "/" in line}
    others = {
        "/bin/sh",
        "/bin/ls",
        "/bin/bash",
        "/usr/bin/perf",
        "/usr/bin/gcc",
        "/usr/bin/ld",
        sys.executable,
    }
    return sorted({os.path.realpath(path) for path in mapped | others if Path(path).is_file()})


def test_every_function_of_real_binaries_is_named_as_readelf_names_it() -> None:
    # GIVEN a dozen or more binaries of this machine
    binaries = machine_binaries()
    assert len(binaries) >= 12

    # WHEN / THEN each function is found by its first and by its last byte
    assert sum(check_against_readelf(path) for path in binaries) > 5_000


@pytest.mark.parametrize("options", [("-pie", "-fPIE"), ("-no-pie", "-fno-pie"), ("-static",), ("-shared", "-fPIC")])
def test_kinds_of_files(build: Build, options: tuple[str, ...]) -> None:
    source = "int first(int x) { return x + 1; } int second(int x) { return x * 2; } int main(void) { return 0; }"
    path = build(source, *options)
    assert check_against_readelf(path) >= 3


def test_stripped_file_keeps_its_dynamic_names(program: Path, tmp_path: Path) -> None:
    # GIVEN a program whose .symtab was removed
    stripped = tmp_path / "stripped"
    subprocess.run(["strip", "-o", stripped, program], check=True)
    symbols = {name: vaddr for vaddr, aliases in readelf_functions(program).items() for _, name, _ in aliases}

    # WHEN it is read
    with opened(stripped) as fd:
        table = SymbolTable(fd)

    # THEN exported functions have names and the others none: never that of a neighbour
    assert table.lookup(symbols["inner_function"]) == b"global_alias"
    assert table.lookup(symbols["local_function"]) is None


def test_both_tables_are_read_where_symtab_is_the_smaller(program: Path, tmp_path: Path) -> None:
    few = tmp_path / "few"
    subprocess.run(["strip", "-K", "local_function", "-o", few, program], check=True)
    symbols = {name: vaddr for vaddr, aliases in readelf_functions(program).items() for _, name, _ in aliases}
    with opened(few) as fd:
        table = SymbolTable(fd)
    assert table.lookup(symbols["local_function"]) == b"local_function"
    assert table.lookup(symbols["main"]) == b"main"


def test_of_several_names_global_then_fewest_underscores_then_alphabet(build: Build) -> None:
    source = """
    .text
    .globl _z, __a, b2, b1
    .type _z,@function
    .type __a,@function
    .type b1,@function
    .type b2,@function
    .type a_local,@function
    _z: __a: b2: b1: a_local: ret
    .size b1,1
    """
    with opened(build(source, "-shared", "-nostdlib", language="assembler")) as fd:
        table = SymbolTable(fd)
    (start, _), *_ = table.starts()
    assert table.lookup(start) == b"b1"


def test_version_is_no_part_of_the_name(build: Build, tmp_path: Path) -> None:
    (tmp_path / "map").write_text("OLD { global: api; }; NEW { global: api; } OLD;")
    source = """
    int api_old(void) { return 1; } int api_new(void) { return 2; }
    __asm__(".symver api_old,api@OLD"); __asm__(".symver api_new,api@@NEW");
    """
    path = build(source, "-shared", "-fPIC", f"-Wl,--version-script={tmp_path / 'map'}")
    with opened(path) as fd:
        table = SymbolTable(fd)
    names = {table.lookup(start) for start, _ in table.starts()}
    assert {name for name in names if name and b"api" in name} <= {b"api", b"api_old", b"api_new"}


def test_symbol_without_size_reaches_to_the_next_and_not_past_its_section(build: Build) -> None:
    source = """
    .text
    .type open_ended,@function
    open_ended: nop; nop; nop
    .type next,@function
    next: nop
    .size next,1
    nop
    .type last,@function
    last: nop; nop
    .section .other,"ax"
    nop; nop; nop; nop
    """
    with opened(build(source, "-shared", "-nostdlib", language="assembler")) as fd:
        table = SymbolTable(fd)
    start = table.starts()[0][0]
    assert [table.lookup(start + i) for i in range(7)] == [
        *[b"open_ended"] * 3,
        b"next",
        None,
        b"last",
        b"last",
    ]
    assert table.lookup(start + 7) is None


def test_address_after_an_inner_function_belongs_to_the_enclosing_one(build: Build) -> None:
    source = """
    .text
    .type outer,@function
    outer: nop
    .type inner,@function
    inner: nop
    .size inner,1
    nop
    .size outer,3
    label: nop
    .size label,1
    """
    with opened(build(source, "-shared", "-nostdlib", language="assembler")) as fd:
        table = SymbolTable(fd)
    start = table.starts()[0][0]
    assert [table.lookup(start + i) for i in range(4)] == [b"outer", b"inner", b"outer", b"label"]


def test_32_bit_file(narrow: Path) -> None:
    assert check_against_readelf(narrow) == 2


def test_offset_in_the_file_leads_to_the_address(program: Path) -> None:
    # GIVEN the executable segment as readelf prints it
    listing = subprocess.run(["readelf", "-lW", program], capture_output=True, text=True, check=True).stdout
    load = next(line.split() for line in listing.splitlines() if "LOAD" in line and " R E " in line)
    offset, vaddr, size = (int(load[i], 16) for i in (1, 2, 4))

    with opened(program) as fd:
        table = SymbolTable(fd)

    # THEN offsets inside it are translated and those outside are not
    assert table.vaddr(offset + 5) == vaddr + 5
    assert table.vaddr(offset + size) is None
    main = next(start for start, aliases in readelf_functions(program).items() if aliases[0][1] == "main")
    assert table.name(table.find_offset(main - vaddr + offset)) == b"main"
    assert table.find_offset(1 << 63) == -1


@pytest.mark.parametrize(
    "option", ["--build-id=sha1", "--build-id=md5", "--build-id=0x0102030405060708", "--build-id=none"]
)
def test_build_id(build: Build, option: str) -> None:
    path = build("int main(void) { return 0; }", f"-Wl,{option}")
    notes = subprocess.run(["readelf", "-nW", path], capture_output=True, text=True, check=True).stdout
    printed = [line.split("Build ID:")[1].strip() for line in notes.splitlines() if "Build ID:" in line]
    with opened(path) as fd:
        found = elf_build_id(fd)
        assert SymbolTable(fd).build_id == found
    assert ([found.hex()] if found else []) == printed


def test_names_left_in_the_file_are_read_through_a_descriptor(program: Path) -> None:
    with opened(program) as fd:
        kept, left = SymbolTable(fd), SymbolTable(fd, keep_names_bytes=0)
        main = next(start for start, _ in kept.starts() if kept.lookup(start) == b"main")
        assert (kept.names_kept, left.names_kept) == (True, False)
        assert left.lookup(main, fd) == b"main"
    assert left.lookup(main, -1) is None
    assert left.nbytes < kept.nbytes


def test_long_names_are_read_whole(build: Build) -> None:
    name = "n" * 3000
    with opened(build(f"int {name}(void) {{ return 1; }}", "-shared", "-fPIC")) as fd:
        table = SymbolTable(fd, keep_names_bytes=0)
        assert name.encode() in {table.lookup(start, fd) for start, _ in table.starts()}


def test_more_functions_than_allowed_are_refused(program: Path) -> None:
    with opened(program) as fd, pytest.raises(ElfError, match="more functions"):
        SymbolTable(fd, max_symbols=3)


def test_file_and_image_give_the_same_table(program: Path) -> None:
    image = program.read_bytes()
    with opened(program) as fd:
        from_file, from_image = SymbolTable(fd), SymbolTable(image)
    assert from_file.starts() == from_image.starts()
    assert [from_file.name(i) for i in range(len(from_file))] == [from_image.name(i) for i in range(len(from_image))]


def test_what_is_no_program_is_refused_with_the_reason(program: Path, tmp_path: Path) -> None:
    image = program.read_bytes()
    cases = {
        b"": "not an ELF file",
        b"#!/bin/sh\necho no ELF here\n": "not an ELF file",
        image[:5] + b"\x02" + image[6:]: "byte order",
        image[:4] + b"\x07" + image[5:]: "neither of 32 nor of 64 bits",
        image[:16] + b"\x01\x00" + image[18:]: "neither a program nor a shared library",
        image[:40]: "ends before",
        image[: len(image) // 2]: "ends before",
    }
    for damaged, reason in cases.items():
        (tmp_path / "damaged").write_bytes(damaged)
        with opened(tmp_path / "damaged") as fd, pytest.raises(ElfError, match=reason):
            SymbolTable(fd)


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, Path("/dev/null")):
        with opened(path) as fd, pytest.raises(ElfError, match="regular"):
            SymbolTable(fd)
    with pytest.raises(ElfError, match="cannot be read"):
        SymbolTable(-1)


def test_every_cut_of_a_file_is_refused_or_read(narrow: Path) -> None:
    image = narrow.read_bytes()
    for size in range(len(image)):
        with pytest.raises(ElfError):
            SymbolTable(image[:size])


def test_file_cut_while_in_use_gives_no_name(program: Path, tmp_path: Path) -> None:
    # GIVEN a table whose names are still in the file
    path = tmp_path / "cut"
    path.write_bytes(program.read_bytes())
    with opened(path) as fd:
        table = SymbolTable(fd, keep_names_bytes=0)
        start = table.starts()[0][0]
        # WHEN the file loses its end
        os.truncate(path, 4096)
        # THEN there is no name, and no crash
        assert table.lookup(start, fd) is None


def test_a_table_is_read_once(program: Path) -> None:
    table = SymbolTable(program.read_bytes())
    with pytest.raises(TypeError):
        table.__init__(program.read_bytes())
    with pytest.raises(IndexError):
        table.name(len(table))
