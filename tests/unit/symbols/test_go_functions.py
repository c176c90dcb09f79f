"""Go programs without a symbol table, made by real compilers: the same names as their unstripped twins have."""

from __future__ import annotations

import lzma
import mmap
import os
import re
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from zombiescope._native import ElfError, SymbolTable
from zombiescope.symbols.resolver import Frame, live_symbols

FIXTURES = Path(__file__).parents[2] / "fixtures" / "go"
PROGRAMS = sorted(path.name.removesuffix(".names.xz") for path in FIXTURES.glob("*.names.xz"))
EXAMPLES = int(os.environ.get("ZOMBIESCOPE_FUZZ", "400"))
SECTION_BYTES = 64


def image_of(program: str) -> bytes:
    return lzma.decompress((FIXTURES / f"{program}.xz").read_bytes())


def functions_of(program: str) -> dict[int, set[str]]:
    """Address -> names, as the linker knew them; the runtime's table has no ABI suffix and shortens type arguments."""
    found: dict[int, set[str]] = {}
    for line in lzma.decompress((FIXTURES / f"{program}.names.xz").read_bytes()).decode().splitlines():
        address, name = line.split(" ", 1)
        found.setdefault(int(address, 16), set()).add(plain(name))
    return found


def plain(name: str) -> str:
    name = re.sub(r"\.abi(0|internal)$", "", name).replace("·", ".")
    return re.sub(r"\[.*\]", "[...]", name)


def section(image: bytes, wanted: str) -> int:
    """The offset of a section's header."""
    shoff = struct.unpack_from("<Q", image, 40)[0]
    count, names = struct.unpack_from("<HH", image, 60)
    names_at = struct.unpack_from("<Q", image, shoff + names * SECTION_BYTES + 24)[0]
    for header in range(shoff, shoff + count * SECTION_BYTES, SECTION_BYTES):
        at = names_at + struct.unpack_from("<I", image, header)[0]
        if image[at : image.index(b"\0", at)].decode() == wanted:
            return header
    raise LookupError(wanted)


def without_sections(image: bytes) -> bytes:
    damaged = bytearray(image)
    damaged[40:48] = bytes(8)
    damaged[58:64] = bytes(6)
    return bytes(damaged)


def check(table: SymbolTable, program: str) -> None:
    functions = functions_of(program)
    assert table.go_functions > 1000
    assert not table.has_symtab
    wrong = {
        hex(address): (names, found)
        for address, names in functions.items()
        for found in (table.lookup(address), table.lookup(address + 1))
        if found is None or plain(found.decode()) not in names
    }
    assert not wrong
    assert {"main.main", "main.spin", "main.(*square).area"} <= {name for names in functions.values() for name in names}


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_function_has_its_linkers_name(program: str) -> None:
    check(SymbolTable(image_of(program)), program)


@pytest.mark.parametrize("program", [name for name in PROGRAMS if "cgo" not in name])
def test_the_table_is_found_where_no_section_is_known(program: str) -> None:
    check(SymbolTable(without_sections(image_of(program))), program)


def test_addresses_outside_go_code_have_no_name() -> None:
    table = SymbolTable(image_of("1.27-cgo-pie"))
    functions = functions_of("1.27-cgo-pie")
    assert table.lookup(min(functions) - 1) is None
    assert table.lookup(max(functions) + (1 << 20)) is None


def in_layout_of_1_16(image: bytes) -> bytes:
    """The same functions in the layout of Go 1.16 and 1.17, for which no compiler was at hand: made by hand."""
    header = section(image, ".gopclntab")
    at, size = struct.unpack_from("<QQ", image, header + 24)
    old = image[at : at + size]
    count, _, text, names, *_, functab = struct.unpack_from("<8Q", old, 8)
    cu = struct.unpack_from("<Q", old, 8 + 4 * 8)[0]
    pairs, records = b"", b""
    for number in range(count):
        address, record = struct.unpack_from("<II", old, functab + 8 * number)
        name = struct.unpack_from("<I", old, functab + record + 4)[0]
        pairs += struct.pack("<QQ", text + address, (2 * count + 1) * 8 + len(records))
        records += struct.pack("<QII", text + address, name, 0)
    pairs += struct.pack("<Q", text + struct.unpack_from("<I", old, functab + 8 * count)[0])
    names_at = 8 + 7 * 8
    functab_at = (names_at + cu - names + 7) // 8 * 8
    head = struct.pack(
        "<IBBBB7Q", 0xFFFFFFFA, 0, 0, 1, 8, count, 0, names_at, functab_at, functab_at, functab_at, functab_at
    )
    table = (head + old[names:cu]).ljust(functab_at, b"\0") + pairs + records
    made = bytearray(image) + table
    struct.pack_into("<QQ", made, header + 24, len(image), len(table))
    return bytes(made)


def test_layout_of_go_1_16() -> None:
    check(SymbolTable(in_layout_of_1_16(image_of("1.19"))), "1.19")


def test_names_are_left_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_bytes(image_of("1.27"))
    fd = os.open(path, os.O_RDONLY)
    try:
        table = SymbolTable(fd)
        assert not table.names_kept
        assert table.nbytes < 13 * len(table) + 4096
        index = table.find(next(a for a, names in functions_of("1.27").items() if "main.spin" in names))
        assert table.name(index, fd) == b"main.spin"
        assert table.name(index) is None or table.name(index) == b""
    finally:
        os.close(fd)


def test_a_living_process_that_has_the_program_mapped(tmp_path: Path) -> None:
    # GIVEN a process with a stripped Go program in its memory, here this one
    path = tmp_path / "kubelet"
    path.write_bytes(image_of("1.27"))
    spin = next(address for address, names in functions_of("1.27").items() if "main.spin" in names)
    table = SymbolTable(path.read_bytes())
    offset = next(offset for offset in range(path.stat().st_size) if table.vaddr(offset) == spin)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC):
        with open("/proc/self/maps") as maps:
            start = next(int(line.split("-")[0], 16) for line in maps if line.rstrip().endswith(str(path)))
        # THEN the recorder's resolver names its functions
        frames = live_symbols().resolve_at(os.getpid(), [start + offset, start])
    assert frames == [Frame("main.spin", "kubelet", "user"), Frame("kubelet+0x0", "kubelet", "user")]


@pytest.mark.parametrize("magic", [0xFFFFFFF2, 0xFBFFFFFF, 0])
def test_a_table_of_an_unknown_kind_is_said(magic: int) -> None:
    image = bytearray(image_of("1.19"))
    at = struct.unpack_from("<Q", image, section(bytes(image), ".gopclntab") + 24)[0]
    struct.pack_into("<I", image, at, magic)
    with pytest.raises(ElfError, match="Go functions"):
        SymbolTable(bytes(image))


def test_functions_out_of_order_are_refused() -> None:
    image = bytearray(image_of("1.19"))
    at = struct.unpack_from("<Q", image, section(bytes(image), ".gopclntab") + 24)[0]
    functab = at + struct.unpack_from("<Q", image, at + 8 + 7 * 8)[0]
    struct.pack_into("<I", image, functab + 80, 0xFFFFFFF0)
    with pytest.raises(ElfError, match="order"):
        SymbolTable(bytes(image))


SEEDS = [image_of(program) for program in ("1.15", "1.15-cgo-pie", "1.19", "1.27-cgo-pie")]


def spots(image: bytes) -> list[int]:
    """Offsets in the headers of the file and of the table, and in the first functions."""
    heads = [struct.pack("<IHBB", magic, 0, 1, 8) for magic in (0xFFFFFFFB, 0xFFFFFFF0, 0xFFFFFFF1)]
    at = next(image.index(head) for head in heads if head in image)
    return [*range(64 + 56 * 12), *range(at, at + 512)]


SPOTS = [spots(image) for image in SEEDS]


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_tables_that_lie(data: st.DataObject) -> None:
    which = data.draw(st.integers(0, len(SEEDS) - 1))
    image = bytearray(SEEDS[which])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.sampled_from(SPOTS[which]))
        width = data.draw(st.sampled_from((1, 4, 8)))
        value = data.draw(
            st.one_of(st.sampled_from([0, 1, 0xFFFFFFFF, (1 << 63) - 1, (1 << 64) - 1]), st.integers(0, (1 << 64) - 1))
        )
        image[at : at + width] = (value & ((1 << 8 * width) - 1)).to_bytes(width, "little")
    cut = data.draw(st.sampled_from([len(image), len(image) // 2, len(image) - 1, 4096, 100]))
    try:
        table = SymbolTable(bytes(image[:cut]))
    except ElfError:
        return
    for index in range(0, len(table), max(1, len(table) // 50)):
        table.name(index)
        table.lookup(table.start(index))
