"""Opening inside a root, and the budget of the cache."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from zombiescope._native import ElfError, SymbolTable, open_in_root
from zombiescope.base.in_root import walk_in_root
from zombiescope.symbols.elf import PUT_OFF, ElfCache, ElfKey, FileIdentity, open_elf

Build = Callable[..., Path]
Opener = Callable[[bytes, int], int]


@pytest.fixture
def root(tmp_path: Path) -> Iterator[int]:
    """A root with a file that links lead to, and links that lead out, around and nowhere."""
    (tmp_path / "outside").write_text("outside")
    inner = tmp_path / "root"
    (inner / "usr/lib").mkdir(parents=True)
    (inner / "usr/lib/real.so").write_text("inside")
    (inner / "lib").symlink_to("/usr/lib")
    (inner / "up").symlink_to("../../../usr/lib/real.so")
    (inner / "escape").symlink_to(tmp_path / "outside")
    (inner / "loop").symlink_to("loop")
    (inner / "usr/lib/link.so").symlink_to("./real.so")
    fd = os.open(inner, os.O_PATH | os.O_DIRECTORY)
    yield fd
    os.close(fd)


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def by_kernel(path: bytes, root: int) -> int:
    return open_in_root(root, path, os.O_PATH | os.O_CLOEXEC)


@pytest.mark.parametrize("opener", [by_kernel, walk_in_root])
@pytest.mark.parametrize("path", ["/usr/lib/real.so", "/lib/link.so", "/up", "/../../usr/lib/../lib//./real.so"])
def test_links_stay_inside_the_root(root: int, opener: Opener, path: str) -> None:
    fd = opener(path.encode(), root)
    try:
        assert Path(f"/proc/self/fd/{fd}").readlink().match("root/usr/lib/real.so")
    finally:
        os.close(fd)


@pytest.mark.parametrize("opener", [by_kernel, walk_in_root])
@pytest.mark.parametrize(("path", "code"), [("/escape", errno.ENOENT), ("/loop", errno.ELOOP), ("/no", errno.ENOENT)])
def test_links_that_lead_out_or_nowhere(root: int, opener: Opener, path: str, code: int) -> None:
    before = descriptors()
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the number is checked below
        opener(path.encode(), root)
    assert caught.value.errno == code
    assert descriptors() == before


def test_without_openat2_the_walk_is_used(root: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise OSError(errno.ENOSYS, "no such call")

    monkeypatch.setattr("zombiescope.base.in_root.open_in_root", refused)
    fd = open_elf("/lib/link.so", root)
    assert os.read(fd, 10) == b"inside"
    os.close(fd)


def test_pipe_and_directory_are_not_opened(tmp_path: Path) -> None:
    # A pipe without a writer would hold up a plain open for ever.
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    root = os.open(tmp_path, os.O_PATH)
    try:
        for name in ("/pipe", "/folder"):
            with pytest.raises(ElfError, match="regular"):
                open_elf(name, root)
    finally:
        os.close(root)


def load(cache: ElfCache, path: Path) -> object:
    fd = os.open(path, os.O_RDONLY)
    try:
        return cache.load(fd)[1]
    finally:
        os.close(fd)


def test_a_table_belongs_to_its_file(program: Path, tmp_path: Path) -> None:
    """Copies of one build are two files: what one of them says holds for the other only if somebody looked."""
    copy = tmp_path / "copy"
    copy.write_bytes(program.read_bytes())
    cache = ElfCache()
    alone = load(cache, program)
    held = cache.nbytes
    # somebody looked, all of it is the same, and one table is held for both
    assert load(cache, copy) is alone
    assert (cache.hits, cache.misses, len(cache), cache.nbytes) == (0, 2, 2, held)
    assert load(cache, program) is load(cache, copy)
    assert cache.misses == 2


def test_one_table_for_many_containers(program: Path, tmp_path: Path) -> None:
    """Five hundred pods of one image take the room of one; what is dropped is let go of once nobody uses it."""
    cache = ElfCache(keep_names_bytes=0)
    load(cache, program)
    held = cache.nbytes
    copies = []
    for number in range(50):
        copies.append(tmp_path / str(number))
        copies[-1].write_bytes(program.read_bytes())
        load(cache, copies[-1])
    assert (len(cache), cache.nbytes) == (51, held)
    cache.max_bytes = held // 2
    other = tmp_path / "other"
    subprocess.run(["strip", "-o", other, program], check=True)
    load(cache, other)
    assert len(cache) == 1
    assert cache.nbytes == load(cache, other).nbytes  # type: ignore[attr-defined]


def test_file_without_build_id_is_known_until_it_is_written(build: Build) -> None:
    path = build("int main(void) { return 0; }", "-Wl,--build-id=none")
    cache = ElfCache()
    first = load(cache, path)
    assert load(cache, path) is first
    os.utime(path, ns=(1, 1))
    assert load(cache, path) is not first


def test_least_recently_used_goes_first(build: Build) -> None:
    paths = [build(f"int f{i}(void) {{ return {i}; }}", "-shared", "-fPIC", name=f"{i}.so") for i in range(3)]
    alone = ElfCache(keep_names_bytes=0)
    load(alone, paths[0])
    # GIVEN room for two, both held
    cache = ElfCache(max_bytes=int(alone.nbytes * 2.5), keep_names_bytes=0)
    first, second = load(cache, paths[0]), load(cache, paths[1])
    # WHEN the first is used again and a third comes
    assert load(cache, paths[0]) is first
    load(cache, paths[2])
    # THEN the second is gone
    assert (len(cache), cache.evicted) == (2, 1)
    assert load(cache, paths[0]) is first
    assert load(cache, paths[1]) is not second
    assert cache.nbytes <= cache.max_bytes


def test_file_that_is_no_elf_is_looked_at_once(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("no program")
    cache = ElfCache()
    assert load(cache, path) is None
    assert load(cache, path) is None
    key = ElfKey(None, FileIdentity.of(path.stat()))
    assert cache.failure(key) == "it is not an ELF file"
    assert cache.failures == {"it is not an ELF file": 1}


def test_failures_kept_are_bounded(tmp_path: Path) -> None:
    cache = ElfCache(max_failures=4)
    for i in range(10):
        path = tmp_path / str(i)
        path.write_text("no program")
        load(cache, path)
    assert cache.failures["it is not an ELF file"] == 10
    assert len(cache._failed) == 4


def test_table_over_the_budget_is_refused_and_counted(build: Build) -> None:
    functions = "".join(f"int f{i}(void) {{ return {i}; }}" for i in range(500))
    path = build(functions, "-shared", "-fPIC")
    cache = ElfCache(max_bytes=4096)
    assert load(cache, path) is None
    assert cache.failures == {"it has more functions than the cache of symbols may hold": 1}


def test_stripped_copy_has_the_same_build_id_and_its_own_table(program: Path, tmp_path: Path) -> None:
    stripped = tmp_path / "stripped"
    subprocess.run(["strip", "-o", stripped, program], check=True)
    cache = ElfCache()
    assert load(cache, program) is not load(cache, stripped)


def test_time_spent_on_reading_is_bounded(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN two libraries, room for one, and each reading taking 0.4 s of CPU time
    paths = [build(f"int f{i}(void) {{ return {i}; }}", "-shared", "-fPIC", name=f"{i}.so") for i in range(2)]
    clock = {"cpu": 0.0, "wall": 0.0}

    def read(fd: int, *_: object) -> SymbolTable:
        clock["cpu"] += 0.4
        return SymbolTable(fd)

    monkeypatch.setattr("zombiescope.symbols.elf.SymbolTable", read)
    monkeypatch.setattr("zombiescope.symbols.elf.time.thread_time", lambda: clock["cpu"])
    monkeypatch.setattr("zombiescope.symbols.elf.time.monotonic", lambda: clock["wall"])
    cache = ElfCache(max_bytes=2000)

    # WHEN they are asked for in turn, THEN a second of CPU time is spent and no more, and one stays held
    answers = [load(cache, paths[i % 2]) is not None for i in range(6)]
    assert answers == [True, True, True, False, True, False]
    assert cache.failures[PUT_OFF] == 2
    # AND after some minutes it goes on
    clock["wall"] += 300
    assert load(cache, paths[1]) is not None
