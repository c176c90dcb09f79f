"""Names by build id, without the process and perhaps without the machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import Needs

from zombiescope._native import SymbolTable, elf_build_id
from zombiescope.symbols import build_id_paths
from zombiescope.symbols.kernel_image import KernelImage, running_build_id
from zombiescope.symbols.offline import ANOTHER_BUILD, NO_BUILD_ID, NO_FUNCTION, NOT_FOUND, OfflineSymbols
from zombiescope.symbols.resolver import Frame

Build = Callable[..., Path]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nobody's ~/.debug but ours."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def build_id_of(path: Path) -> bytes:
    found = elf_build_id(path.read_bytes())
    assert found is not None
    return found


def offset_of(path: Path, name: bytes) -> int:
    table = SymbolTable(path.read_bytes())
    vaddr = next(start for start, _ in table.starts() if table.lookup(start) == name)
    return next(offset for offset in range(path.stat().st_size) if table.vaddr(offset) == vaddr)


def in_perf_cache(cache: Path, file: Path, build_id: bytes, name: str = "elf") -> None:
    entry = cache / ".build-id" / build_id.hex()[:2] / build_id.hex()[2:]
    entry.mkdir(parents=True)
    shutil.copy(file, entry / name)


def test_the_file_at_the_path_is_used_if_it_is_that_build(program: Path) -> None:
    symbols = OfflineSymbols()
    frame = symbols.resolve(os.fsencode(program), build_id_of(program), offset_of(program, b"main"))
    assert frame == Frame("main", "program", "user")
    assert not symbols.failures


def test_another_build_at_the_path_is_not_used(program: Path) -> None:
    symbols = OfflineSymbols()
    offset = offset_of(program, b"main")
    for _ in range(3):
        frame = symbols.resolve(os.fsencode(program), b"\x11" * 20, offset)
        assert frame == Frame(f"program+0x{offset:x}", "program", "user")
    assert symbols.failures == {ANOTHER_BUILD: 3}


@pytest.mark.parametrize("trusted", [False, True])
def test_without_a_build_id_paths_are_used_only_on_request(program: Path, trusted: bool) -> None:
    symbols = OfflineSymbols(trust_paths=trusted)
    frame = symbols.resolve(os.fsencode(program), None, offset_of(program, b"main"))
    assert (frame.name == "main") is trusted
    assert dict(symbols.failures) == ({} if trusted else {NO_BUILD_ID: 1})


def test_files_of_another_machine_are_found_in_perfs_cache(program: Path, home: Path, tmp_path: Path) -> None:
    build_id, offset = build_id_of(program), offset_of(program, b"local_function")
    path = b"/not/here/program"
    assert OfflineSymbols().resolve(path, build_id, offset).name == f"program+0x{offset:x}"
    in_perf_cache(home / ".debug", program, build_id)
    assert OfflineSymbols().resolve(path, build_id, offset).name == "local_function"
    # and in an archive unpacked elsewhere, and in a copy of the other machine's files
    shutil.rmtree(home)
    in_perf_cache(tmp_path / "archive", program, build_id)
    assert OfflineSymbols([tmp_path / "archive"]).resolve(path, build_id, offset).name == "local_function"
    (tmp_path / "copy/not/here").mkdir(parents=True)
    shutil.copy(program, tmp_path / "copy/not/here/program")
    assert OfflineSymbols([tmp_path / "copy"]).resolve(path, build_id, offset).name == "local_function"


def test_perf_itself_fills_the_cache_we_read(program: Path, home: Path, needs: Needs) -> None:
    needs.binary("perf", "linux-perf")
    cache = home / ".debug"
    cache.mkdir(parents=True)
    subprocess.run(["perf", "--buildid-dir", cache, "buildid-cache", "--add", program], check=True)
    frame = OfflineSymbols().resolve(b"/gone/program", build_id_of(program), offset_of(program, b"main"))
    assert frame.name == "main"


def test_a_path_that_cannot_be_looked_at_is_a_file_that_is_not_there() -> None:
    # A name that is too long fails as one does below a folder that may not be entered, for root as well.
    path = b"/" + b"x" * 300
    assert OfflineSymbols().resolve(path, b"\x22" * 20, 0x10).name.endswith("+0x10")


def test_a_file_in_the_cache_under_a_false_build_id_is_not_used(program: Path, home: Path) -> None:
    in_perf_cache(home / ".debug", program, b"\x22" * 20)
    symbols = OfflineSymbols()
    assert symbols.resolve(b"/gone/program", b"\x22" * 20, 0x1100).name == "program+0x1100"
    assert symbols.failures == {ANOTHER_BUILD: 1}


def test_build_ids_that_perf_padded(build: Build) -> None:
    short = build("int main(void) { return 0; }", "-Wl,--build-id=md5")
    build_id = build_id_of(short)
    assert len(build_id) == 16
    padded = build_id.ljust(20, b"\0")
    assert OfflineSymbols().resolve(os.fsencode(short), padded, offset_of(short, b"main")).name == "main"
    assert any(path.name == f"{build_id.hex()[2:]}.debug" for path in build_id_paths.separate(padded))


def test_what_no_file_explains_keeps_its_place(program: Path) -> None:
    symbols = OfflineSymbols()
    assert symbols.resolve(b"/gone/lib\x1bx.so", b"\x01" * 20, 0x10) == Frame("lib?x.so+0x10", "lib?x.so", "user")
    assert symbols.resolve(b"//anon", None, 0x10) == Frame("[jit]", "[anon]", "jit")
    assert symbols.resolve(b"[vdso]", b"\x01" * 20, 0x10) == Frame("[vdso]+0x10", "[vdso]", "vdso")
    assert symbols.resolve(os.fsencode(program), build_id_of(program), 1).name == "program+0x1"
    assert symbols.failures[NOT_FOUND] == 2
    assert symbols.failures[NO_FUNCTION] == 1
    for offset in (-1, 1 << 64, 1 << 70):
        symbols.resolve(os.fsencode(program), build_id_of(program), offset)


def test_the_kernels_symbols_by_its_build_id(tmp_path: Path, home: Path) -> None:
    build_id = bytes(range(1, 21))
    assert KernelImage.find(build_id) is None
    entry = home / ".debug/[kernel.kallsyms]" / build_id.hex()
    entry.mkdir(parents=True)
    # a copy made without CAP_SYSLOG has no addresses, and is no use
    (entry / "kallsyms").write_text("0000000000000000 T _text\n0000000000000000 T start\n")
    assert KernelImage.find(build_id) is None
    (entry / "kallsyms").write_text("ffffffff81000000 T _text\n")
    assert KernelImage.find(build_id) == KernelImage(entry / "kallsyms", "kallsyms")


def test_the_running_kernel_has_a_build_id() -> None:
    found = running_build_id()
    assert found is None or len(found) in (16, 20)
    assert running_build_id("/dev/null") is None
