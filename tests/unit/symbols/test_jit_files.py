"""perf maps and jitdumps: well-formed, growing, and made to mislead."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from zombiescope._native import JitMap
from zombiescope.symbols import jit_files
from zombiescope.symbols.jit_files import CLOSE, LOAD, MOVE, CodeFile, FinishedCodeFile


@pytest.fixture
def fd() -> Iterator[int]:
    made = os.memfd_create("code")
    yield made
    os.close(made)


def jitdump(order: str = "<") -> bytes:
    return struct.pack(f"{order}IIIIIIQQ", jit_files.JITDUMP_MAGIC, 1, 40, 62, 0, 7, 0, 0)


def load(start: int, size: int, name: bytes, order: str = "<") -> bytes:
    body = struct.pack(f"{order}IIQQQQ", 7, 7, start, start, size, 1) + name + b"\0" + b"\xcc" * size
    return struct.pack(f"{order}IIQ", LOAD, 16 + len(body), 1) + body


def move(old: int, new: int, size: int, order: str = "<") -> bytes:
    body = struct.pack(f"{order}IIQQQQQ", 7, 7, new, old, new, size, 1)
    return struct.pack(f"{order}IIQ", MOVE, 16 + len(body), 1) + body


def test_perf_map_lines(fd: int) -> None:
    os.write(fd, b"1000 20 py::f:/srv/a b.py\n0x2000 0x10 int Busy.run(int)\nDEAD00 8 LazyCompile:~x a.js:1\n")
    file = CodeFile("perf map", 100)
    assert file.read_on(fd)
    assert file.name(0x1000, fd) == b"py::f:/srv/a b.py"
    assert file.name(0x101F, fd) == b"py::f:/srv/a b.py"
    assert file.name(0x1020, fd) is None
    assert file.name(0x2008, fd) == b"int Busy.run(int)"
    assert file.name(0xDEAD07, fd) == b"LazyCompile:~x a.js:1"
    assert file.code.malformed == 0


def test_the_latest_word_about_an_address_counts(fd: int) -> None:
    os.write(fd, b"1000 100 old\n1000 80 new\n1040 10 newest\n")
    file = CodeFile("perf map", 100)
    file.read_on(fd)
    assert [file.name(address, fd) for address in (0x1000, 0x1045, 0x1060)] == [b"new", b"newest", b"new"]
    assert file.name(0x1090, fd) is None


def test_a_file_that_grows_is_read_on_and_a_half_line_waits(fd: int) -> None:
    file = CodeFile("perf map", 100)
    os.write(fd, b"1000 10 first\n2000 10 sec")
    file.read_on(fd)
    assert file.name(0x2000, fd) is None
    assert file.behind(fd)
    os.write(fd, b"ond\n")
    file.read_on(fd)
    assert file.name(0x2000, fd) == b"second"
    assert not file.behind(fd)
    # one that is shorter than what was read is another one
    os.ftruncate(fd, 3)
    assert not file.read_on(fd)


@pytest.mark.parametrize(
    "line",
    [b"", b"1000", b"1000 10", b"1000 10 ", b"xyz 10 name", b"1000 0 name", b"0 10 name", b"1000 -1 name",
     b"ffffffff81000000 10 kernel", b"10000000000000000 10 long", b"1000 ffffffffffff huge", b" 1000 10 name"],
)  # fmt: skip
def test_lines_that_make_no_sense_are_counted(line: bytes) -> None:
    code = JitMap(16)
    assert code.feed(line + b"\n", 0) == len(line) + 1
    assert len(code) == 0
    assert code.malformed == (1 if line else 0)


def test_a_full_map_forgets_the_oldest() -> None:
    code = JitMap(64)
    for number in range(1000):
        code.add(0x1000 + 16 * number, 16, number, 1)
    assert 16 <= len(code) <= 64
    assert code.find(0x1000 + 16 * 999) == (0x1000 + 16 * 999, 16, 999, 1)
    assert code.find(0x1000) is None
    assert code.nbytes < 64 * 24 + 1024


@pytest.mark.parametrize("order", ["<", ">"])
def test_jitdump(fd: int, order: str) -> None:
    records = load(0x1000, 16, b"one", order) + load(0x2000, 16, b"two", order) + move(0x1000, 0x3000, 16, order)
    unknown = struct.pack(f"{order}IIQ", jit_files.DEBUG_INFO, 32, 1) + bytes(16)
    os.write(fd, jitdump(order) + records[:70])
    file = CodeFile("jitdump", 100)
    file.read_on(fd)
    os.write(fd, records[70:] + unknown + load(0x4000, 16, b"three", order))
    file.read_on(fd)
    names = [file.name(address, fd) for address in (0x1000, 0x200F, 0x3004, 0x4000, 0x5000)]
    assert names == [b"one", b"two", b"one", b"three", None]
    os.write(fd, struct.pack(f"{order}IIQ", CLOSE, 16, 1) + load(0x5000, 16, b"after the end", order))
    file.read_on(fd)
    assert file.ended
    assert file.name(0x5000, fd) is None


@pytest.mark.parametrize("kind", ["perf map", "jitdump"])
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_files_that_lie(kind: str, data: st.DataObject) -> None:
    seed = b"1000 20 one\n0x2000 0x10 two\n" * 4 if kind == "perf map" else jitdump() + load(0x1000, 16, b"one") * 3
    seed += move(0x1000, 0x2000, 16) if kind == "jitdump" else b""
    content = bytearray(seed)
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(content) - 1))
        value = data.draw(st.binary(min_size=1, max_size=8))
        content[at : at + len(value)] = value
    fd = os.memfd_create("fuzz")
    try:
        os.write(fd, content[: data.draw(st.integers(0, len(content)))])
        file = CodeFile(kind, 32)  # type: ignore[arg-type]
        file.read_on(fd)
        os.write(fd, content)
        file.read_on(fd)
        for address in (0, 0x1000, 0x2008, (1 << 63) - 1, (1 << 64) - 1):
            file.name(address, fd)
        assert len(file.code) <= 32
    finally:
        os.close(fd)


def test_files_of_processes_that_are_gone(tmp_path: Path) -> None:
    (tmp_path / "perf-7.map").write_bytes(b"".join(b"%x 10 f%d\n" % (0x1000 + 16 * n, n) for n in range(100_000)))
    (tmp_path / "jit-7.dump").write_bytes(jitdump() + load(0x1000, 16, b"one"))
    with FinishedCodeFile(tmp_path / "perf-7.map") as told:
        assert told.name(0x1000 + 16 * 99_999) == b"f99999"
        assert told.name(0x10) is None
    with FinishedCodeFile(tmp_path / "jit-7.dump") as told:
        assert told.name(0x1008) == b"one"
    (tmp_path / "perf-8.map").symlink_to(tmp_path / "perf-7.map")
    with pytest.raises(OSError, match="symbolic links"):
        FinishedCodeFile(tmp_path / "perf-8.map")
