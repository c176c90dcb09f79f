"""The figures of one cgroup, and the refusal to read a tree."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from zombiescope.kernel import cgroup_leaf, procfile
from zombiescope.kernel.cgroup_leaf import NotALeafError, leaf_stats, read_cost

Node = Callable[[str], str]

CONTAINER = "docker/3f1c0e1dd9b1f9aa7e0c2b3f4a5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f"


def test_v2(node: Node) -> None:
    stats = leaf_stats(node("debian-6.1-v2") + "/sys/fs/cgroup/system.slice/trainer.service")

    assert (stats.nr_periods, stats.nr_throttled, stats.throttled_us) == (4120, 812, 41203311)
    assert (stats.memory_high, stats.memory_max, stats.memory_oom, stats.memory_oom_kill) == (33, 412, 2, 1)
    assert (stats.cpu_some_us, stats.memory_some_us) == (812033, 41203)
    assert (stats.has_cpu_quota, stats.cpu_quota_cores) == (True, 2.5)
    assert (stats.has_memory_limit, stats.memory_limit_bytes) == (True, 1 << 30)
    assert stats.memory_failcnt is None


def test_v1_has_two_directories(node: Node) -> None:
    mount = node("el7-3.10") + "/sys/fs/cgroup"
    stats = leaf_stats(f"{mount}/cpu,cpuacct/{CONTAINER}", f"{mount}/memory/{CONTAINER}")

    assert (stats.nr_throttled, stats.throttled_us) == (340, 8120331)
    assert (stats.has_cpu_quota, stats.cpu_quota_cores) == (True, 0.5)
    assert (stats.memory_failcnt, stats.memory_limit_bytes) == (412, 512 << 20)
    assert stats.memory_oom is None
    assert stats.cpu_some_us is None


def test_no_limit_is_not_the_same_as_not_measured(node: Node, tmp_path: Path) -> None:
    unlimited = leaf_stats(node("debian-6.1-v2") + "/sys/fs/cgroup/system.slice/cron.service")
    assert (unlimited.has_cpu_quota, unlimited.cpu_quota_cores) == (False, None)
    assert (unlimited.has_memory_limit, unlimited.memory_limit_bytes) == (False, None)

    unknown = leaf_stats(str(tmp_path))
    assert (unknown.has_cpu_quota, unknown.has_memory_limit) == (None, None)


def test_v1_prints_a_huge_number_for_no_limit(tmp_path: Path) -> None:
    (tmp_path / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    (tmp_path / "cpu.cfs_quota_us").write_text("-1\n")
    (tmp_path / "cpu.cfs_period_us").write_text("100000\n")
    stats = leaf_stats(str(tmp_path))
    assert (stats.has_memory_limit, stats.has_cpu_quota) == (False, False)


@pytest.mark.parametrize("name", ["debian-6.1-v2", "el7-3.10"])
def test_the_root_is_refused(node: Node, name: str) -> None:
    mount = node(name) + "/sys/fs/cgroup" + ("/memory" if name.startswith("el7") else "")
    with pytest.raises(NotALeafError, match="root"):
        leaf_stats(mount)
    with pytest.raises(NotALeafError, match="root"):
        read_cost(mount)


def test_the_cost_of_one_leaf(node: Node) -> None:
    cost = read_cost(node("el7-3.10") + f"/sys/fs/cgroup/memory/{CONTAINER}", reads=3)
    assert cost.numa_stat_s is not None
    assert cost.stat_s is not None
    assert 0 < cost.stat_s < 1


def test_a_cgroup_with_children_is_refused(node: Node) -> None:
    with pytest.raises(NotALeafError, match="children"):
        read_cost(node("el7-3.10") + "/sys/fs/cgroup/memory/docker")


def test_statistics_of_the_tree_are_never_opened(monkeypatch: pytest.MonkeyPatch, node: Node) -> None:
    opened: list[str] = []

    def noting(path: str) -> bytes | None:
        opened.append(path)
        return procfile.read_file(path)

    monkeypatch.setattr(cgroup_leaf, "read_file", noting)
    leaf_stats(node("debian-6.1-v2") + "/sys/fs/cgroup/system.slice/trainer.service")
    assert opened
    assert not [path for path in opened if path.endswith(("memory.stat", "memory.numa_stat"))]


@pytest.mark.kernel
def test_a_real_leaf(needs: Any) -> None:
    path = needs.memory_cgroup() / f"zombiescope-leaf-{os.getpid()}"
    path.mkdir()
    try:
        with pytest.raises(NotALeafError):
            read_cost(str(path.parent))
        cost = read_cost(str(path))
        stats = leaf_stats(None, str(path))
    finally:
        path.rmdir()
    assert cost.stat_s is not None
    assert cost.stat_s < 0.1
    assert stats.has_memory_limit is False
    assert stats.memory_failcnt == 0 or stats.memory_max == 0
