"""Counting memory cgroups: fixture nodes, and real cgroups made and removed."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from zombiescope.kernel import cgroup, cgroup_census
from zombiescope.kernel.cgroup_census import (
    MAX_DEPTH,
    CgroupCounter,
    MemoryCgroups,
    Refused,
    parse_v1,
    parse_v2,
    walk_directories,
)

Node = Callable[[str], str]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ubuntu-5.4-v1", MemoryCgroups(68680, None, None)),
        ("debian-6.1-v2", MemoryCgroups(93, 72, 21)),
        ("al2023-6.12-v2", MemoryCgroups(8213, 213, 8000, 201, 7991)),
    ],
)
def test_counts(node: Node, name: str, expected: MemoryCgroups) -> None:
    census = CgroupCounter(node(name))
    assert census.read() == expected
    assert census.whole
    census.close()


def test_a_container_counts_only_itself_and_says_so(node: Node) -> None:
    census = CgroupCounter(node("container-6.1-v2"))
    assert census.read() == MemoryCgroups(1, 1, 0)
    assert not census.whole
    census.close()


def test_no_memory_controller_is_none_with_the_reason(tmp_path: Path) -> None:
    census = CgroupCounter(str(tmp_path))
    assert census.read() is None
    assert census.why is not None
    assert "memory controller" in census.why


def test_a_disabled_controller_counts_nothing() -> None:
    assert parse_v1(b"#subsys_name\thierarchy\tnum_cgroups\tenabled\nmemory\t0\t1\t0\n") is None
    assert parse_v1(b"#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t1\t1\t1\n") is None
    assert parse_v2(b"nr_descendants 5\n") is None


def test_an_unreadable_counter_names_its_file(node: Node, tmp_path: Path) -> None:
    root = tmp_path / "node"
    shutil.copytree(node("debian-6.1-v2"), root, symlinks=True)
    census = CgroupCounter(str(root))
    (root / "sys/fs/cgroup/cgroup.stat").unlink()
    assert census.read() is None
    assert census.why is not None
    assert "cgroup.stat: No such file" in census.why


def test_walk_finds_every_directory_parents_first(tmp_path: Path) -> None:
    for name in ("a/b/c", "a/d", "e"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "cgroup.procs").write_text("")

    found = list(walk_directories(str(tmp_path), per_second=None))

    paths = [path for _, path in found]
    assert sorted(paths) == ["/", "/a", "/a/b", "/a/b/c", "/a/d", "/e"]
    assert paths.index("/a") < paths.index("/a/b") < paths.index("/a/b/c")
    assert dict(found)[(tmp_path / "a/d").stat().st_ino] == "/a/d"


def nest(place: Path, levels: int, name: str = "d") -> None:
    """By descriptor: a path of so many levels is longer than the kernel takes."""
    above = os.open(place, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=above)
        below = os.open(name, os.O_RDONLY, dir_fd=above)
        os.close(above)
        above = below
    os.close(above)


def remove(place: Path) -> None:
    subprocess.run(["rm", "-rf", place], check=True, timeout=60)  # which shutil.rmtree cannot: it recurses


@pytest.mark.parametrize("name", ["d", "d" * 100])
def test_a_walk_ends_where_somebody_made_it_deep_and_says_so(tmp_path: Path, name: str) -> None:
    (tmp_path / "job").mkdir()
    nest(tmp_path / "job", 2_000, name)
    (tmp_path / "other").mkdir()
    refused = Refused()
    try:
        found = [path for _, path in walk_directories(str(tmp_path), None, refused=refused)]
    finally:
        remove(tmp_path / "job")
    assert {"/", "/job", "/other"} <= set(found)
    assert len(found) <= 3 + MAX_DEPTH
    assert refused.count == 1
    assert refused.first is not None
    assert refused.first.startswith("/job/d")


def test_a_walk_ends_where_somebody_made_it_wide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup_census, "MAX_DIRECTORIES", 10)
    for number in range(30):
        (tmp_path / str(number)).mkdir()
    refused = Refused()
    assert len(list(walk_directories(str(tmp_path), None, refused=refused))) == 10
    assert refused.count == 21


def test_walk_keeps_its_pace(tmp_path: Path) -> None:
    for index in range(50):
        (tmp_path / str(index)).mkdir()
    waits: list[float] = []

    list(walk_directories(str(tmp_path), per_second=100, wait=waits.append))

    # A wait is as long as the walk is ahead; the last directory is due half a second after the start.
    assert 0.4 < max(waits) < 0.52
    assert waits == sorted(waits)


def test_walk_survives_directories_that_vanish(tmp_path: Path) -> None:
    for name in ("a/b", "c"):
        (tmp_path / name).mkdir(parents=True)
    walk = walk_directories(str(tmp_path), per_second=None)
    assert next(walk)[1] == "/"
    shutil.rmtree(tmp_path / "a")
    assert [path for _, path in walk] == ["/c"]


@pytest.fixture
def memory_cgroup(needs: Any) -> Iterator[Path]:
    """An own directory in the memory hierarchy of this machine."""
    path = needs.memory_cgroup() / f"zombiescope-test-{os.getpid()}"
    path.mkdir()
    yield path
    for directory, _, _ in os.walk(path, topdown=False):
        Path(directory).rmdir()


@pytest.mark.kernel
def test_real_cgroups_are_counted_through_one_descriptor(memory_cgroup: Path) -> None:
    # GIVEN a census of this machine
    census = CgroupCounter()
    before = census.read()
    assert before is not None

    # WHEN 200 cgroups are made
    for index in range(200):
        (memory_cgroup / f"child_{index}").mkdir()

    # THEN the same descriptor tells, give or take what else goes on here
    after = census.read()
    assert after is not None
    assert 150 < after.total - before.total < 400
    census.close()


@pytest.mark.kernel
def test_a_real_cgroup2_counts_its_descendants(needs: Any) -> None:
    # GIVEN the cgroup2 hierarchy of this machine, whether it has memory or not
    needs.root()
    unified = next((found for found in cgroup.hierarchies() if found.version == 2 and found.mount), None)
    if unified is None:
        needs.lack("needs a mounted cgroup2")
    assert unified is not None
    parent = Path(f"{unified.mount}/zombiescope-test-{os.getpid()}")
    parent.mkdir()
    stat = parent / "cgroup.stat"

    # WHEN children come and go
    children = [parent / f"child_{index}" for index in range(10)]
    for child in children:
        child.mkdir()
    full = parse_v2(stat.read_bytes())
    for child in children:
        child.rmdir()
    empty = parse_v2(stat.read_bytes())
    parent.rmdir()

    # THEN the living are counted, the parent itself included
    assert full is not None
    assert empty is not None
    assert (full.live, empty.live) == (11, 1)
    assert full.total == 11 + (full.dying or 0)


@pytest.mark.kernel
def test_the_walk_of_a_real_hierarchy_agrees_with_the_kernel(memory_cgroup: Path) -> None:
    for index in range(20):
        (memory_cgroup / f"child_{index}").mkdir()
    (memory_cgroup / "child_3/grandchild").mkdir()

    found = {path: inode for inode, path in walk_directories(str(memory_cgroup), per_second=None)}

    assert set(found) == {"/", "/child_3/grandchild", *(f"/child_{index}" for index in range(20))}
    assert found["/child_7"] == (memory_cgroup / "child_7").stat().st_ino


@pytest.mark.kernel
def test_removed_cgroups_leave_the_count(memory_cgroup: Path) -> None:
    census = CgroupCounter()
    for index in range(100):
        (memory_cgroup / f"child_{index}").mkdir()
    full = census.read()
    for index in range(100):
        (memory_cgroup / f"child_{index}").rmdir()

    # Nothing pins empty cgroups, so they are released soon after.
    deadline = time.monotonic() + 10
    while (now := census.read()) and full and now.total > full.total - 60 and time.monotonic() < deadline:
        time.sleep(0.05)
    census.close()
    assert full is not None
    assert now is not None
    assert now.total <= full.total - 60
