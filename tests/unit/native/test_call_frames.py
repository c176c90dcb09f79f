"""Tables of call frames, against readelf; and walks over copies of stacks that were made up."""

from __future__ import annotations

import os
import random
import re
import struct
import subprocess
from pathlib import Path

import pytest
from tests.conftest import Needs

from zombiescope._native import CallFrames, ElfError, ProcessUnwinder

REGISTERS = {
    "rax": 0, "rdx": 1, "rcx": 2, "rbx": 3, "rsi": 4, "rdi": 5, "rbp": 6, "rsp": 7,
    **{f"r{number}": number for number in range(8, 16)},
}  # fmt: skip
ROW = re.compile(r"([0-9a-f]{16}) (\S+) +(.*)")
CFA = re.compile(r"(r\w+)([+-]\d+)")
EXPRESSIONS = ("stored", "plt", "signal", "unsupported")

SOURCE = """
#include <stdlib.h>
volatile double sink;
__attribute__((noinline)) double leaf(int n) { double s = 0; for (int i = 0; i < n; i++) s += s * 0.5 + i; return s; }
__attribute__((noinline)) double middle(int n) { char room[512]; room[n & 511] = n; return leaf(n) + room[1]; }
__attribute__((noinline)) void aligned(int n) {
    _Alignas(64) double room[64];
    for (int i = 0; i < 64; i++) room[i] = middle(n);
    sink = room[n & 63];
}
int main(int count, char **words) { aligned(count); return 0; }
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("frames") / "program"
    command = ["gcc", "-O2", "-fomit-frame-pointer", "-x", "c", "-", "-o", str(path)]
    subprocess.run(command, input=SOURCE.encode(), check=True)
    return path


def table_of(path: Path) -> CallFrames:
    with path.open("rb") as file:
        return CallFrames(file.fileno())


def libraries() -> list[Path]:
    wanted = ("libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6")
    maps = Path("/usr/lib/x86_64-linux-gnu")
    return [path for name in wanted if (path := maps / name).exists()]


def check_row(table: CallFrames, columns: list[str], line: re.Match[str]) -> bool:
    """Whether one row of readelf's is ours too; rules of a kind that is not followed only have to be so called."""
    found = table.rule(int(line[1], 16))
    assert found is not None, line[0]
    kind, register, offset, returns, returns_at, bp, bp_at = found
    said = dict(zip(columns, re.sub(r" \(\w+\)", "", line[3]).split(), strict=False))
    cfa = CFA.fullmatch(line[2])
    if cfa is None:
        assert line[2] == "exp"
        return kind in EXPRESSIONS
    if kind != "register" or (register, offset) != (REGISTERS[cfa[1]], int(cfa[2])):
        return False
    fits = {"at": said.get("ra") == f"c{returns_at:+d}", "undefined": said.get("ra") == "u"}
    fits_bp = {"same": said.get("rbp", "u") in ("u", "s"), "at": said.get("rbp") == f"c{bp_at:+d}"}
    return fits.get(returns, True) and fits_bp.get(bp, True)


@pytest.mark.parametrize("path", libraries(), ids=lambda path: path.name)
def test_every_row_of_readelf_is_ours(path: Path, needs: Needs) -> None:
    readelf = needs.binary("readelf", "binutils")
    text = subprocess.run([readelf, "--debug-dump=frames-interp", path], capture_output=True, text=True).stdout
    table, rows, is_function = table_of(path), 0, False
    columns: list[str] = []
    wrong: list[str] = []
    for line in text.splitlines():
        if " FDE " in line or " CIE" in line:
            is_function, columns = " FDE " in line, []
        elif line.lstrip().startswith("LOC"):
            columns = line.split()[2:]
        elif is_function and columns and (row := ROW.match(line)):
            rows += 1
            if not check_row(table, columns, row):
                wrong.append(line)
    assert table.broken == 0
    assert rows > 100
    assert not wrong, wrong[:5]


def test_a_program_without_the_section_says_so(tmp_path: Path) -> None:
    path = tmp_path / "bare"
    command = ["gcc", "-nostdlib", "-static", "-fno-asynchronous-unwind-tables", "-x", "c", "-", "-o", str(path)]
    subprocess.run(command, input=b"void _start(void) { for (;;); }", check=True)
    with pytest.raises(ElfError, match=r"no \.eh_frame"):
        table_of(path)


def test_a_table_that_is_too_large_is_refused(program: Path) -> None:
    with program.open("rb") as file, pytest.raises(ElfError, match="larger than may be kept"):
        CallFrames(file.fileno(), 64)


def test_a_program_of_another_machine_is_refused(program: Path) -> None:
    image = bytearray(program.read_bytes())
    image[18:20] = struct.pack("<H", 183)  # e_machine: aarch64
    with pytest.raises(ElfError, match="machine"):
        CallFrames(bytes(image))


def test_no_damage_to_the_section_does_harm(program: Path) -> None:
    image = program.read_bytes()
    found = subprocess.run(["readelf", "-SW", program], capture_output=True, text=True, check=True).stdout
    place = re.search(r"\.eh_frame +PROGBITS +\w+ +(\w+) +(\w+)", found)
    assert place is not None
    start, size = int(place[1], 16), int(place[2], 16)
    chance = random.Random(7)
    stack = bytes(range(256)) * 16
    for _ in range(400):
        damaged = bytearray(image)
        for _ in range(chance.randint(1, 6)):
            damaged[start + chance.randrange(size)] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        try:
            table = CallFrames(bytes(damaged))
        except ElfError:
            continue
        walker = ProcessUnwinder([(0x10000, 0x20000, 0x1000, table, True)])
        for ip in range(0x10000, 0x10400, 7):
            chain, why = walker.unwind(ip, 0x7000, 0x7010, stack)
            assert len(chain) <= 256
            assert why


# --- walks over stacks that were made up -----------------------------------------------------------------------------


def words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}Q", *values)


def test_without_a_table_frame_pointers_lead_on_only_to_code() -> None:
    walker = ProcessUnwinder([(0x1000, 0x2000, 0, None, True)])
    #       sp: 0x100  0x108   0x110: bp   return  0x120: bp
    stack = words(7, 7, 0x120, 0x1500, 0x140, 0x999999)
    assert walker.unwind(0x1100, 0x100, 0x110, stack) == ([0x1100, 0x1500], "no table")


def test_code_whose_file_was_not_asked_yet_is_not_guessed_at() -> None:
    walker = ProcessUnwinder([(0x1000, 0x2000, 0, None, False)])
    assert walker.unwind(0x1100, 0x100, 0x110, words(7, 7, 0x120, 0x1500)) == ([0x1100], "no table")


def test_frames_in_a_circle_end() -> None:
    walker = ProcessUnwinder([(0x1000, 0x2000, 0, None, True)])
    chain, why = walker.unwind(0x1100, 0x100, 0x110, words(7, 7, 0x110, 0x1500))
    assert (len(chain), why) == (2, "no table")


def test_an_address_that_is_no_code_is_the_leaf_alone() -> None:
    assert ProcessUnwinder([]).unwind(0x1100, 0x100, 0, b"") == ([0x1100], "no code")


def test_regions_in_disorder_are_refused() -> None:
    with pytest.raises(ValueError, match="overlap"):
        ProcessUnwinder([(0x2000, 0x3000, 0, None, True), (0x1000, 0x2800, 0, None, True)])


def test_the_table_of_a_real_program_knows_its_functions(program: Path) -> None:
    table = table_of(program)
    symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    main = int(re.search(r"([0-9a-f]+) T main", symbols)[1], 16)  # type: ignore[index]
    aligned = int(re.search(r"([0-9a-f]+) T aligned", symbols)[1], 16)  # type: ignore[index]
    assert table.rule(main) == ("register", REGISTERS["rsp"], 8, "at", -8, "same", 0)
    kinds = {rule[0] for at in range(aligned, aligned + 64) if (rule := table.rule(at)) is not None}
    assert kinds & {"stored", "register"}
    assert table.rule(table.vaddr(0x10000000) or 0xFFFFFFFFFF) is None
    assert os.path.getsize(program) > table.nbytes > 0  # noqa: PTH202
