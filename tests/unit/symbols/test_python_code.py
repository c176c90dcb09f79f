"""Names, lines and offsets of CPython: against the interpreter that runs this test, and against files of others."""

from __future__ import annotations

import argparse
import asyncio.base_events
import inspect
import random
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, ModuleType

import pytest

from zombiescope.symbols.python import offsets, runtime
from zombiescope.symbols.python.code import Code, parse_lines
from zombiescope.symbols.python.memory import StrangeError, UnsupportedError

FIXTURES = Path(__file__).parents[2] / "fixtures" / "python"
MODULES = (argparse, asyncio.base_events, inspect, threading, random)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


@pytest.mark.skipif(sys.version_info[:2] < (3, 11), reason="the table has another form before 3.11")
@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_instruction_has_the_line_that_python_itself_says(module: ModuleType) -> None:
    seen = 0
    source = Path(str(module.__file__)).read_text()
    for code in _codes(compile(source, str(module.__file__), "exec")):
        starts, lines, units = parse_lines(code.co_linetable, code.co_firstlineno)
        assert units == len(code.co_code) // 2
        found = Code("", "", code.co_firstlineno, starts, lines, units)
        for start, end, line in code.co_lines():
            for offset in range(start, end, 2):
                assert found.line(offset // 2) == (line or code.co_firstlineno)
                seen += 1
    assert seen > 1_000


@pytest.mark.parametrize("table", [b"\x00", b"\x7f\x80", b"\xe8", b"\xe8\x7f\x7f\x7f\x7f\x7f\x7f\x7f", b"\xf0\x40"])
def test_a_table_of_lines_that_is_none_is_refused(table: bytes) -> None:
    with pytest.raises(StrangeError):
        parse_lines(table, 1)


def test_an_instruction_beyond_the_function_is_refused() -> None:
    code = Code("f", "f.py", 3, (0,), (4,), 10)
    assert [code.line(unit) for unit in (-1, 0, 10)] == [3, 4, 4]
    for unit in (-2, 11, 1 << 40):
        with pytest.raises(StrangeError):
            code.line(unit)


# --- offsets ---------------------------------------------------------------------------------------------------------


def said(name: str) -> bytes:
    return (FIXTURES / f"debug_offsets_{name}.bin").read_bytes().ljust(8 * offsets.MOST_WORDS, b"\0")


@pytest.mark.parametrize(
    ("version", "head", "code_bytes", "owner", "native_id"),
    [("3.13.0", 632, 200, 70, 160), ("3.13.5", 632, 200, 70, 160), ("3.14.10", 808, 208, 74, 160),
     ("3.15.2", 936, 208, 74, 184)],
)  # fmt: skip
def test_offsets_of_real_interpreters(version: str, head: int, code_bytes: int, owner: int, native_id: int) -> None:
    found = offsets.parse(said(version))
    assert f"3.{found.minor}" == version.rpartition(".")[0]
    assert (found.interpreters_head, found.frame_owner, found.native_thread_id) == (head, owner, native_id)
    assert (found.code_bytes, found.text_ascii, found.bytes_data, found.c_frame) == (code_bytes, 40, 32, None)


def test_builds_without_the_gil_and_unknown_versions_are_left_alone() -> None:
    data = bytearray(said("3.14.10"))
    data[16] = 1
    with pytest.raises(UnsupportedError, match=r"Python 3\.14 without the GIL"):
        offsets.parse(bytes(data))
    data[16], data[10] = 0, 16
    with pytest.raises(UnsupportedError, match=r"Python 3\.16"):
        offsets.parse(bytes(data))
    for word, why in ((0x02071800, StrangeError), (0x030A0DF0, UnsupportedError), (0, StrangeError)):
        with pytest.raises(why):
            offsets.version(word)


@pytest.mark.parametrize(
    ("before", "after"), [(0, b"short"), (0, b"y" + b"\0" * 1023), (64, b"\xff" * 960)], ids=["short", "cookie", "far"]
)
def test_offsets_that_make_no_sense_are_refused(before: int, after: bytes) -> None:
    with pytest.raises(StrangeError):
        offsets.parse(said("3.13.0")[:before] + after)


# --- which file is a Python ------------------------------------------------------------------------------------------


def test_a_python_is_known_by_the_name_of_its_file() -> None:
    maps = b"".join(
        b"%x-%x r-xp 00000000 fd:01 7 %s\n" % (0x1000 * n, 0x1000 * n + 4096, name)
        for n, name in enumerate(
            [b"/usr/bin/python3.11", b"/opt/x/lib/libpython3.12.so.1.0", b"/usr/bin/python3.13 (deleted)",
             b"/opt/python3", b"/opt/python3.13t", b"/usr/bin/bash",
             b"/usr/lib/python3.11/lib-dynload/_ssl.cpython-311.so",
             b"/srv/mypython3.11", b"/opt/libboost_python3.so", b"[heap]"], 1)
    )  # fmt: skip
    found = [each.path.rpartition(b"/")[2] for each in runtime.python_files(maps)]
    assert found == [b"python3.11", b"libpython3.12.so.1.0", b"python3.13 (deleted)", b"python3", b"python3.13t"]
