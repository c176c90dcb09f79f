"""The figures of one cgroup, and the refusal to read a tree."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from zombiescope.kernel import cgroup_leaf, procfile
from zombiescope.kernel.cgroup_leaf import NotALeafError, leaf_stats, read_cost
from zombiescope.kernel.procfile import read_file

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
    assert cost.stat_s > 0


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
    assert stats.has_memory_limit is False
    assert stats.memory_failcnt == 0 or stats.memory_max == 0


# --- what a walk adds -------------------------------------------------------------------------------------------------


def timed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **cpu_us: list[float]) -> float | None:
    """read_cost of a leaf whose files take this much CPU, read by read; `stat` has 45 lines and `numa_stat` 8."""
    files = {"notify_on_release": 1, "memory.stat": 45, "memory.numa_stat": 8}
    for name, lines in files.items():
        (tmp_path / name).write_text("x 1\n" * lines)
    names = {"memory.numa_stat": "numa_stat", "memory.stat": "stat", "notify_on_release": "plain"}
    now = {"us": 0.0}

    def read(path: str) -> bytes | None:
        name = names.get(path.rpartition("/")[2])
        if name is not None:
            now["us"] += cpu_us[name][0]
            cpu_us[name] = [*cpu_us[name][1:], cpu_us[name][0]]
        return read_file(path)

    monkeypatch.setattr("zombiescope.kernel.cgroup_leaf.read_file", read)
    monkeypatch.setattr("zombiescope.kernel.cgroup_leaf.is_root", lambda _: False)
    monkeypatch.setattr("time.thread_time_ns", lambda: int(now["us"] * 1000))
    cost = read_cost(str(tmp_path)).walk_s
    return None if cost is None else cost * 1e6


@pytest.mark.parametrize(("numa", "stat", "plain"), [(83.6, 102.8, 67.7), (78.9, 96.6, 62.9), (81.0, 99.0, 62.9)])
def test_a_walk_is_told_within_a_factor_of_two(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, numa: float, stat: float, plain: float
) -> None:
    """Seen on 4.19.81 (emulated) with 3,028 cgroups: the root's memory.numa_stat took 4.8 us a cgroup."""
    walk = timed(monkeypatch, tmp_path, numa_stat=[numa], stat=[stat], plain=[plain])
    assert walk is not None
    assert 4.8 / 2 < walk < 4.8 * 2


def test_a_preemption_is_not_multiplied(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    slow = {"numa_stat": [900.0, 83.6], "stat": [102.8, 4_000.0], "plain": [67.7]}
    walk = timed(monkeypatch, tmp_path, **slow)
    assert walk is not None
    assert walk < 10


def test_what_is_too_small_to_be_told_is_not_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert timed(monkeypatch, tmp_path, numa_stat=[60.0], stat=[102.8], plain=[67.7]) is None
