"""Of five hundred cgroups the one that its quota stops is found, though it is not sampled; at a bounded cost a tick."""

from __future__ import annotations

from pathlib import Path

import pytest

from zombiescope.kernel import cgroup_leaf
from zombiescope.recorder import quotas as module
from zombiescope.recorder.cgroups import LEAF_EVERY_US, MAX_LEAVES, CgroupTracker
from zombiescope.recorder.quotas import ASKED_A_TICK, MOST_WAITING, READ_A_TICK, SOURCE, WATCHED_US, Quotas
from zombiescope.recorder.sample_writer import TaskShare
from zombiescope.recorder.sources import Sources
from zombiescope.store import schema
from zombiescope.store.batch import Batch

SECOND = 1_000_000
START = 1_000 * SECOND
PODS = 500
STOPPED = "/kubepods/pod-37"


class Tree:
    """A cgroup2 mount of pods, each with a quota."""

    def __init__(self, root: Path, pods: int) -> None:
        self.root = root
        self.mount = root / "sys/fs/cgroup"
        self.paths = [f"/kubepods/pod-{number}" for number in range(pods)]
        self.reads: list[str] = []
        (root / "proc/self").mkdir(parents=True)
        (root / "proc/self/cgroup").write_text("0::/init.scope\n")
        (root / "proc/self/mountinfo").write_text("30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
        for path in ("", "/init.scope", "/kubepods", *self.paths):
            self.make(path, quota=path in self.paths)

    def make(self, path: str, *, quota: bool) -> None:
        place = self.mount / path.lstrip("/")
        place.mkdir(parents=True, exist_ok=True)
        (place / "cgroup.controllers").write_text("cpu memory\n")
        if path:
            (place / "cgroup.events").write_text("populated 1\n")
            (place / "cpu.max").write_text("50000 100000\n" if quota else "max 100000\n")
        self.spend(path, 0, 0)

    def place(self, path: str) -> str:
        return str(self.mount / path.lstrip("/"))

    def spend(self, path: str, periods: int, throttled: int) -> None:
        text = f"usage_usec 1\nnr_periods {periods}\nnr_throttled {throttled}\nthrottled_usec {throttled * 60_000}\n"
        (self.mount / path.lstrip("/") / "cpu.stat").write_text(text)

    def tracker(self) -> CgroupTracker:
        tracker = CgroupTracker(Batch(), Sources(), lambda _: None, START, f"{self.root}/")
        tracker.begin(START)
        while tracker.walk_on():
            pass
        return tracker


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path, 80)


def rows(tracker: CgroupTracker) -> list[str]:
    """The cgroups that were written down."""
    return [str(row[1]) for row in tracker._batch._rows.get(schema.CGROUP_STATS.number, [])]


def test_one_of_five_hundred_is_found_although_others_are_sampled(tmp_path: Path) -> None:
    # GIVEN a node on which a hundred other pods are busy
    tree = Tree(tmp_path, PODS)
    tracker = tree.tracker()
    seen: list[tuple[str, int, int]] = []
    for second in range(120):
        for number in range(100, 200):
            tracker.used(TaskShare(f"pod-{number}", f"/kubepods/pod-{number}", 50, 5))
        tree.spend(STOPPED, 10 * second, 9 * second)
        seen += tracker.read_leaves(START + second * SECOND)
    # THEN it is among those that are read every ten seconds, and only it is reported as stopped
    stopped = [(path, throttled / periods) for path, periods, throttled in seen if throttled]
    assert {path for path, _ in stopped} == {STOPPED}
    assert all(ratio >= 0.8 for _, ratio in stopped)
    assert len(stopped) >= 2


def test_a_tick_costs_the_same_however_many_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    most = {}
    for pods in (50, 800):
        tree = Tree(tmp_path / str(pods), pods)
        quotas = Quotas(tree.place, Sources())
        for path in tree.paths:
            quotas.exists(path)
        counted = [0]

        def read(path: str, counted: list[int] = counted) -> bytes:
            counted[0] += 1
            return Path(path).read_bytes()

        monkeypatch.setattr(cgroup_leaf, "read_file", read)
        costs = []
        for second in range(120):
            counted[0] = 0
            quotas.tick(START + second * SECOND)
            costs.append(counted[0])
        most[pods] = max(costs)
    assert most[800] == most[50] <= ASKED_A_TICK + READ_A_TICK


def test_who_is_no_longer_stopped_is_not_watched_for_ever(tree: Tree) -> None:
    quotas = Quotas(tree.place, Sources())
    quotas.has(STOPPED)
    quotas.tick(START)
    tree.spend(STOPPED, 100, 90)
    assert quotas.tick(START + SECOND) == [STOPPED]
    assert quotas.tick(START + 2 * SECOND) == []
    assert quotas.watched(START + 2 * SECOND) == [STOPPED]
    assert quotas.watched(START + 2 * SECOND + WATCHED_US) == []


def test_a_quota_is_asked_for_when_the_runtime_has_written_it(tree: Tree) -> None:
    quotas = Quotas(tree.place, Sources())
    tree.make("/kubepods/new", quota=False)
    quotas.made("/kubepods/new", START)
    quotas.tick(START)
    (tree.mount / "kubepods/new/cpu.max").write_text("50000 100000\n")
    quotas.tick(START + 3 * SECOND)
    tree.spend("/kubepods/new", 10, 9)
    assert quotas.tick(START + 4 * SECOND) == ["/kubepods/new"]


def test_who_makes_and_removes_thousands_keeps_nobody_else_waiting(tree: Tree) -> None:
    quotas = Quotas(tree.place, Sources())
    for number in range(10_000):
        quotas.made(f"/churn/{number}", START)
        quotas.removed(f"/churn/{number}")
    quotas.made(STOPPED, START)
    quotas.tick(START + 3 * SECOND)
    tree.spend(STOPPED, 10, 9)
    assert quotas.tick(START + 4 * SECOND) == [STOPPED]


def test_what_does_not_fit_is_said(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 20)
    sources = Sources()
    quotas = Quotas(tree.place, sources)
    for path in tree.paths:
        quotas.made(path, START)
    quotas.tick(START)
    assert [one.source for one in sources.missing] == [SOURCE]
    quotas.tick(START + 3 * SECOND)
    assert sources.missing == []
    assert MOST_WAITING >= PODS


def test_a_cgroup_that_is_gone_is_forgotten(tree: Tree) -> None:
    quotas = Quotas(tree.place, Sources())
    quotas.has("/kubepods/never")
    quotas.has(STOPPED)
    quotas.tick(START)
    quotas.tick(START + SECOND)
    quotas.removed(STOPPED)
    assert quotas._limited == {}


def test_no_more_than_so_many_leaves_are_read_at_once(tree: Tree) -> None:
    tracker = tree.tracker()
    for second in range(60):
        for path in tree.paths:
            tracker.used(TaskShare(path, path, 5, 5))
        tree.spend(STOPPED, 10 * second, 9 * second)
        tracker.read_leaves(START + second * SECOND)
    assert 0 < len(rows(tracker)) <= MAX_LEAVES * 60 * SECOND // LEAF_EVERY_US
