"""Two files with one build id: a note that anybody can copy gives nobody a say in how another file's functions are
called. Not in memory, not on disk, not across users, containers or mount namespaces."""

from __future__ import annotations

import lzma
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from zombiescope._native import SymbolTable, elf_build_id
from zombiescope.symbols import elf
from zombiescope.symbols.elf import PUT_OFF, ElfCache
from zombiescope.symbols.inlined import _key
from zombiescope.symbols.maps import Mapping, recorded
from zombiescope.symbols.resolver import UserSymbols
from zombiescope.symbols.separate_debug import BinaryPlace, SeparateDebug
from zombiescope.symbols.store import SymbolStore

Build = Callable[..., Path]
GONE = 1 << 22
LOADED_AT = 0x10000
SOURCE = """
__attribute__((noinline, used)) static int {name}(int x) {{ __asm__ volatile(""); return x + 1; }}
int main(void) {{ return {name}(1); }}
"""


class Pair:
    """The same code under two names, with one build id: the victim's file and the attacker's."""

    def __init__(self, build: Build, folder: Path) -> None:
        chosen = "-Wl,--build-id=0x00112233445566778899aabbccddeeff00112233"
        self.true = self._made(build, folder / "true", "true_name", chosen)
        self.false = self._made(build, folder / "false", "evil_name", chosen)
        self.build_id = elf_build_id(self.true.read_bytes())
        assert self.build_id == elf_build_id(self.false.read_bytes())
        table = SymbolTable(self.true.read_bytes())
        start = next(start for start, _ in table.starts() if table.lookup(start) == b"true_name")
        self.offset = next(offset for offset in range(1 << 20) if table.vaddr(offset) == start)

    def _made(self, build: Build, path: Path, name: str, *options: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(build(SOURCE.format(name=name), *options), path)
        return path

    def mapping(self, path: Path, build_id: bytes | None) -> Mapping:
        return recorded(LOADED_AT, 1 << 20, 0, os.fsencode(path), build_id=build_id)

    def resolve(self, symbols: UserSymbols, path: Path) -> str:
        (frame,) = symbols.resolve_at(GONE, [LOADED_AT + self.offset], [self.mapping(path, self.build_id)])
        assert frame is not None
        return frame.name


@pytest.fixture
def pair(build: Build, tmp_path: Path) -> Pair:
    return Pair(build, tmp_path)


def load(cache: ElfCache, path: Path, place: BinaryPlace | None = None) -> elf.ElfKey:
    fd = os.open(path, os.O_RDONLY)
    try:
        key, table = cache.load(fd, place)
    finally:
        os.close(fd)
    assert table is not None
    return key


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")
def test_another_users_file_gives_no_names_to_roots(pair: Pair) -> None:
    os.chown(pair.false, 4711, 4711)
    symbols = UserSymbols()
    # GIVEN the attacker's program was seen first
    assert pair.resolve(symbols, pair.false) == "evil_name"
    # THEN root's has its own names, and the attacker's keeps what it wrote
    assert pair.resolve(symbols, pair.true) == "true_name"
    assert symbols.cache.shared(pair.build_id or b"") is not None


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")
def test_a_file_that_others_may_write_or_own_is_not_found_by_its_id(pair: Pair) -> None:
    assert pair.build_id is not None
    for mode, owner in ((0o777, 0), (0o755, 4711)):
        cache = ElfCache()
        os.chown(pair.false, owner, owner)
        pair.false.chmod(mode)
        load(cache, pair.false)
        assert cache.shared(pair.build_id) is None
        load(cache, pair.true)
        shared = cache.shared(pair.build_id)
        assert shared is not None
        assert shared[0].file.inode == pair.true.stat().st_ino


def test_a_file_of_a_container_is_not_found_by_its_id(pair: Pair) -> None:
    """Root of a container is root for the file system: whose root it is decides."""
    assert pair.build_id is not None
    cache = ElfCache()
    load(cache, pair.false, BinaryPlace("/bin/x", "/proc/1/root", ours=False))
    assert cache.shared(pair.build_id) is None


def test_a_table_that_is_dropped_is_not_found_by_its_id(pair: Pair) -> None:
    assert pair.build_id is not None
    cache = ElfCache(max_bytes=1500, keep_names_bytes=0)
    load(cache, pair.true)
    assert cache.shared(pair.build_id) is not None
    other = pair.true.with_name("other")
    shutil.copy(pair.false, other)
    other.chmod(0o666)
    load(cache, other)
    assert cache.evicted
    assert cache.shared(pair.build_id) is None


def test_a_path_means_a_file_in_one_root_only(pair: Pair, tmp_path: Path) -> None:
    """Records of two containers: one path, one build id, two files."""
    symbols = UserSymbols()
    files = symbols._files

    class Process:
        """As far as files are concerned."""

        pid, ours = GONE, False

        def __init__(self, root: Path) -> None:
            self.root = (str(root),)
            self._file = root / "program"

        def open_mapped(self, *_: object) -> int:
            return os.open(self._file, os.O_RDONLY)

        def still_there(self) -> bool:
            return True

    names = []
    for name, file in (("a", pair.false), ("b", pair.true)):
        root = tmp_path / name
        root.mkdir()
        shutil.copy(file, root / "program")
        process = Process(root)
        mapping = pair.mapping(Path("/program"), pair.build_id)
        found = files.find(process, mapping)  # type: ignore[arg-type]
        assert found is not None
        index = found.table.find_offset(pair.offset)
        names.append(files.name(process, mapping, found, index))  # type: ignore[arg-type]
    assert names == [b"evil_name", b"true_name"]


# --- on disk ---------------------------------------------------------------------------------------------------------


def with_debugdata(program: Path, folder: Path) -> Path:
    """Stripped, with its symbols packed into .gnu_debugdata."""
    folder.mkdir()
    debug, stripped, packed = folder / "debug", folder / "stripped", folder / "packed.xz"
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", "-s", "-o", stripped, program], check=True)
    packed.write_bytes(lzma.compress(debug.read_bytes()))
    out = folder / "program"
    subprocess.run(["objcopy", "--add-section", f".gnu_debugdata={packed}", stripped, out], check=True)
    return out


def name_by(apart: SeparateDebug, path: Path, offset: int) -> bytes | None:
    fd = os.open(path, os.O_RDONLY)
    try:
        table = apart.table(fd, SymbolTable(fd), BinaryPlace(str(path)), 1 << 16, 0)
        index = table.find_offset(offset)
        return None if index < 0 else table.name(index, fd)
    finally:
        os.close(fd)


def test_the_store_keeps_what_was_unpacked_apart(pair: Pair, tmp_path: Path) -> None:
    false, true = (with_debugdata(file, tmp_path / name) for file, name in ((pair.false, "f"), (pair.true, "t")))
    for _ in range(2):  # the second time from disk, in another process as it were
        apart = SeparateDebug(SymbolStore(tmp_path / "store"), [])
        assert name_by(apart, false, pair.offset) == b"evil_name"
        assert name_by(apart, true, pair.offset) == b"true_name"
    assert len(list((tmp_path / "store").iterdir())) == 2


def test_the_same_bytes_are_unpacked_once(pair: Pair, tmp_path: Path) -> None:
    """Wherever they are: five hundred containers of one image have one entry."""
    true = with_debugdata(pair.true, tmp_path / "t")
    store = SymbolStore(tmp_path / "store")
    for number in range(3):
        copy = Path(shutil.copy(true, tmp_path / f"copy{number}"))
        assert name_by(SeparateDebug(store, []), copy, pair.offset) == b"true_name"
    assert len(list((tmp_path / "store").iterdir())) == 1


def test_dwarf_is_kept_by_file(pair: Pair) -> None:
    assert pair.build_id is not None
    assert _key(pair.build_id, pair.true) != _key(pair.build_id, pair.false)
    assert _key(pair.build_id, pair.true) == _key(pair.build_id, pair.true)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")
def test_symbols_beside_a_binary_are_of_root_or_of_its_own_user(pair: Pair, tmp_path: Path) -> None:
    """/tmp/x.debug for root's /tmp/x: anybody could put it there."""
    debug = tmp_path / "x.debug"
    subprocess.run(["objcopy", "--only-keep-debug", pair.false, debug], check=True)
    binary = tmp_path / "x"
    subprocess.run(["strip", "-s", "-o", binary, pair.true], check=True)
    subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", binary], check=True)
    os.chown(debug, 4711, 4711)
    assert name_by(SeparateDebug(None, []), binary, pair.offset) is None
    os.chown(binary, 4711, 4711)
    assert name_by(SeparateDebug(None, []), binary, pair.offset) == b"evil_name"
    os.chown(debug, 0, 0)
    debug.chmod(0o666)
    assert name_by(SeparateDebug(None, []), binary, pair.offset) is None


# --- whose time ------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")
def test_files_that_take_long_cost_their_owner_names_and_nobody_else(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = {"cpu": 0.0}

    def read(fd: int, *_: object) -> SymbolTable:
        clock["cpu"] += 5.0 if os.fstat(fd).st_uid == 4711 else 0.01
        return SymbolTable(fd)

    monkeypatch.setattr("zombiescope.symbols.elf.SymbolTable", read)
    monkeypatch.setattr("zombiescope.symbols.elf.time.thread_time", lambda: clock["cpu"])
    monkeypatch.setattr("zombiescope.symbols.elf.time.monotonic", lambda: 0.0)
    cache = ElfCache()
    hostile = []
    for number in range(3):
        hostile.append(Path(shutil.copy(pair.false, tmp_path / f"hostile{number}")))
        os.chown(hostile[-1], 4711, 4711)
    # GIVEN a user whose files take five seconds each
    load(cache, hostile[0])
    fd = os.open(hostile[1], os.O_RDONLY)
    assert cache.load(fd)[1] is None
    os.close(fd)
    assert cache.failures[PUT_OFF] == 1
    # THEN the machine's own programs are read as if nothing had happened
    load(cache, pair.true)
