"""Inlined functions by DWARF, against addr2line."""

from __future__ import annotations

import builtins
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import Needs

from zombiescope._native import SymbolTable, elf_build_id
from zombiescope.base.packages import install
from zombiescope.symbols import inlined as module
from zombiescope.symbols.inlined import InlinedFunctions, InlineError
from zombiescope.symbols.offline import OfflineSymbols
from zombiescope.symbols.store import SymbolStore

Build = Callable[..., Path]

SOURCE = """
static inline __attribute__((always_inline)) int innermost(int x) { volatile int y = x * 3; return y; }
static inline __attribute__((always_inline)) int middle(int x) { return innermost(x) + 1; }
__attribute__((noinline)) int outer(int x) { return middle(x) * 2; }
int main(int c, char **v) { return outer(c); }
"""


def place_of(path: Path, name: bytes) -> tuple[int, int]:
    """The address of a function, and its offset in the file."""
    table = SymbolTable(path.read_bytes())
    address = next(start for start, _ in table.starts() if table.lookup(start) == name)
    return address, next(offset for offset in range(path.stat().st_size) if table.vaddr(offset) == address)


def by_addr2line(path: Path, address: int) -> list[str]:
    command = ["addr2line", "-f", "-i", "-e", str(path), hex(address)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")[::2][:-1]


@pytest.mark.parametrize("options", [("-pie", "-fPIE"), ("-no-pie",)])
def test_inlined_functions_are_those_of_addr2line(
    build: Build, tmp_path: Path, needs: Needs, options: tuple[str, ...]
) -> None:
    needs.binary("addr2line", "binutils")
    path = build(SOURCE, "-g", "-O2", "-Wl,--build-id=sha1", *options)
    address, offset = place_of(path, b"outer")
    functions = InlinedFunctions(debug_roots=[], store=SymbolStore(tmp_path))
    found = functions.at(path, address)
    assert [one.name for one in found] == by_addr2line(path, address) == ["innermost", "middle", "outer"]
    assert [one.line for one in found] == [2, 3, 4]
    assert functions.at(path, 0) == []
    build_id = elf_build_id(path.read_bytes())
    offline = OfflineSymbols(store=SymbolStore(tmp_path))
    assert offline.inlined(os.fsencode(path), build_id, offset) == found
    assert offline.inlined(b"/gone", b"\1" * 20, offset) == []
    assert offline.inlined(os.fsencode(path), build_id, 0) == []


def test_dwarf_apart_from_the_binary_and_kept(build: Build, tmp_path: Path) -> None:
    # GIVEN a stripped program and its debug file
    path = build(SOURCE, "-g", "-O2", "-Wl,--build-id=sha1")
    address, _ = place_of(path, b"outer")
    build_id = elf_build_id(path.read_bytes())
    assert build_id is not None
    entry = tmp_path / "debug/.build-id" / build_id.hex()[:2]
    entry.mkdir(parents=True)
    debug = entry / f"{build_id.hex()[2:]}.debug"
    subprocess.run(["objcopy", "--only-keep-debug", path, debug], check=True)
    stripped = tmp_path / "stripped"
    subprocess.run(["strip", "-s", "-o", stripped, path], check=True)
    store = SymbolStore(tmp_path / "store")
    assert InlinedFunctions(debug_roots=[], store=store).at(stripped, address) == []
    for binary in (stripped, build_id):
        functions = InlinedFunctions(debug_roots=[tmp_path / "debug"], store=store)
        assert [one.name for one in functions.at(binary, address)] == ["innermost", "middle", "outer"]

    # THEN its DWARF was read once: the store answers, and a damaged entry does not
    kept = list((tmp_path / "store").glob("symcache*"))
    assert len(kept) == 1
    kept[0].write_bytes(b"damage" + kept[0].read_bytes()[6:])
    functions = InlinedFunctions(debug_roots=[tmp_path / "debug"], store=store)
    assert [one.name for one in functions.at(build_id, address)] == ["innermost", "middle", "outer"]


def test_without_the_package_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: object) -> object:
        if name == "symbolic":
            raise ImportError(name)
        return real(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(InlineError, match="symbolic is not installed") as raised:
        module.InlinedFunctions()
    assert raised.value.fix == install("inline")
    assert "[inline]" in install("inline")
