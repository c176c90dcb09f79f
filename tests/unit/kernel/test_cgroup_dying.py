"""Dying cgroups by what their parents count: differences, bounds, and what cannot be told apart."""

from __future__ import annotations

from pathlib import Path

from zombiescope.kernel.cgroup_dying import Held, held, own_dying


def cgroup2(place: Path, dying: int, **memory: int) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    (place / "cgroup.stat").write_text(f"nr_descendants 9\nnr_dying_descendants {dying}\n")
    (place / "cgroup.controllers").write_text("memory\n")
    (place / "cgroup.procs").write_text("")
    if memory:
        (place / "memory.stat").write_text("".join(f"{name} {value}\n" for name, value in memory.items()))
    return place


def test_what_a_directory_has_more_than_those_below_it_is_its_own(tmp_path: Path) -> None:
    cgroup2(tmp_path, 905)
    cgroup2(tmp_path / "system.slice", 903)
    cgroup2(tmp_path / "system.slice/docker.service", 800)
    cgroup2(tmp_path / "system.slice/cron.service", 0)
    cgroup2(tmp_path / "user.slice", 2)
    assert own_dying(str(tmp_path)) == [
        ("/system.slice/docker.service", 800),
        ("/system.slice", 103),
        ("/user.slice", 2),
    ]


def test_directories_without_dying_ones_are_not_entered_and_many_are_not_all_read(tmp_path: Path) -> None:
    cgroup2(tmp_path, 10)
    for number in range(40):
        cgroup2(tmp_path / f"busy{number}", 0)
        (tmp_path / f"busy{number}" / "unreadable").mkdir()
    assert own_dying(str(tmp_path)) == [("/", 10)]
    assert len(own_dying(str(tmp_path), most=5)) == 1


def test_a_tree_that_vanishes_is_no_error(tmp_path: Path) -> None:
    assert own_dying(str(tmp_path / "gone")) == []
    assert held(str(tmp_path / "gone")) is None


def test_on_cgroup2_the_living_children_are_taken_off(tmp_path: Path) -> None:
    cgroup2(tmp_path, 5, file=10_000, shmem=4_000, anon=1)
    cgroup2(tmp_path / "living", 0, file=3_000, shmem=1_000)
    assert held(str(tmp_path)) == Held(file_bytes=4_000, shmem_bytes=3_000, living_file_bytes=2_000)


def test_on_cgroup2_a_directory_with_tasks_of_its_own_does_not_tell(tmp_path: Path) -> None:
    cgroup2(tmp_path, 5, file=10_000, shmem=4_000)
    (tmp_path / "cgroup.procs").write_text("71\n")
    assert held(str(tmp_path)) is None


def test_on_v1_its_own_tasks_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "living").mkdir()
    (tmp_path / "memory.stat").write_text("cache 100\nshmem 50\ntotal_cache 1100\ntotal_shmem 650\n")
    (tmp_path / "living" / "memory.stat").write_text("cache 200\nshmem 100\ntotal_cache 200\ntotal_shmem 100\n")
    assert held(str(tmp_path)) == Held(file_bytes=300, shmem_bytes=500, living_file_bytes=100)


def test_too_many_living_children_are_not_read(tmp_path: Path) -> None:
    cgroup2(tmp_path, 5, file=1, shmem=0)
    for number in range(4):
        cgroup2(tmp_path / f"child{number}", 0, file=0)
    assert held(str(tmp_path), most=3) is None
