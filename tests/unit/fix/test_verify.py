"""Whether it helped, from what was recorded afterwards: yes, no, or not to be known."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.made import SECOND, START_US
from tests.helpers.scenes import SECONDS, Scene

from zombiescope.fix.verify import Check, Verdict, verify
from zombiescope.store.reader import open_recording

WALK = "do_syscall_64 vfs_read memcg_numa_stat_show mem_cgroup_nr_lru_pages"
END_US = START_US + SECONDS * SECOND


def counted(first: int, last: int, before_per_s: float | None = 50.0) -> Scene:
    """`before_per_s`: how many more a second there were in the two minutes before; None where nobody counted."""
    scene = Scene().hog("", "python", share=0.3)
    for second in range(-120, 0) if before_per_s is not None else ():
        scene.census_at(second, 240, round(first + (before_per_s or 0) * second))
    for second in range(SECONDS):
        scene.census_at(second, 240, first + (last - first) * second // (SECONDS - 1))
    return scene


def verdict(scene: Scene, place: Path, pattern: str = "zombie-memcg", to_us: int = END_US) -> Verdict:
    with open_recording(scene.write(place)) as recording:
        return verify(recording, pattern, START_US, to_us)


def check(found: Verdict, name: str) -> Check:
    return next(one for one in found.checks if one.name == name)


@pytest.mark.parametrize(
    ("last", "ok"), [(68_000, True), (100, True), (68_150, True), (68_400, None), (68_900, False), (90_000, False)]
)
def test_a_leak_has_ended_when_it_grows_by_a_fifth_of_what_it_did(tmp_path: Path, last: int, ok: bool | None) -> None:
    found = verdict(counted(68_000, last), tmp_path)
    assert found.verified is ok, found.checks
    assert check(found, "leak").ok is ok


@pytest.mark.parametrize("before_per_s", [8 / 3600, 0.0, None])
def test_a_leak_that_would_not_have_shown_in_the_window_is_not_known_to_have_ended(
    tmp_path: Path, before_per_s: float | None
) -> None:
    """Eight an hour grow by nothing in twenty seconds, whether they were stopped or not."""
    found = verdict(counted(68_000, 68_000, before_per_s), tmp_path)
    assert found.verified is None
    assert check(found, "leak").ok is None


@pytest.mark.parametrize(("left", "ok"), [(0, True), (200, True), (2_500, None)])
def test_what_was_released_and_does_not_come_again_has_ended(tmp_path: Path, left: int, ok: bool | None) -> None:
    """Counted once before the steps, so that nobody knows how fast they grew."""
    scene = counted(left, left, None).census_at(-100, 240, 3_000)
    assert check(verdict(scene, tmp_path), "leak").ok is ok


def test_what_was_released_and_comes_again_has_not_ended(tmp_path: Path) -> None:
    assert check(verdict(counted(0, 100, None).census_at(-100, 240, 3_000), tmp_path), "leak").ok is False


def test_a_leak_that_goes_on_is_seen_without_knowing_how_it_was_before(tmp_path: Path) -> None:
    assert verdict(counted(68_000, 68_900, None), tmp_path).verified is False


@pytest.mark.parametrize(
    ("seen_s", "ok"),
    [
        ([(-60, -50)], True),
        ([(-50, -49), (-30, -29), (-10, -9)], True),
        ([(-700, -699), (-100, -99)], None),
        ([(-7_200, -7_190)], None),
        ([(5, 6)], True),
    ],
    ids=["just-now", "often", "with-longer-pauses", "long-ago", "only-afterwards"],
)
def test_quiet_says_something_only_where_it_would_not_have_been_quiet(
    tmp_path: Path, seen_s: list[tuple[int, int]], ok: bool | None
) -> None:
    seen = [(START_US + first * SECOND, START_US + last * SECOND) for first, last in seen_s]
    with open_recording(counted(68_000, 68_000).write(tmp_path)) as recording:
        found = verify(recording, "zombie-memcg", START_US, END_US, seen)
    assert check(found, "symptom").ok is ok
    assert found.verified is ok


def test_a_core_that_is_still_lost_speaks_against_it(tmp_path: Path) -> None:
    scene = counted(68_000, 68_000).leak("/ecs/*", 68_000, 500, 500, "ecs-agent").hog(WALK, "kubelet")
    found = verdict(scene, tmp_path)
    assert found.verified is False
    assert check(found, "symptom").ok is False


def test_what_was_not_counted_is_not_known(tmp_path: Path) -> None:
    found = verdict(Scene().hog("", "python", share=0.3), tmp_path)
    assert found.verified is None
    assert found.word == "can't tell"
    assert check(found, "leak").ok is None


def test_a_window_that_nobody_recorded_is_not_known(tmp_path: Path) -> None:
    found = verdict(counted(10, 10), tmp_path, to_us=END_US + 60 * SECOND)
    assert found.verified is None
    assert "no recorder" in check(found, "recorded").text


def test_a_window_that_is_too_short_is_not_known(tmp_path: Path) -> None:
    assert verdict(counted(10, 10), tmp_path, to_us=START_US + 5 * SECOND).verified is None


def test_neither_cores_nor_stacks_is_blind_and_not_healthy(tmp_path: Path) -> None:
    scene = Scene(cores=False, sampled=False, schedstat=False)
    for second in range(SECONDS):
        scene.census_at(second, 240, 10)
    assert verdict(scene, tmp_path).verified is None


@pytest.mark.parametrize(("source", "verified"), [("systemd", True), ("stack samples", None)])
def test_blind_is_who_does_not_see_what_hurts(tmp_path: Path, source: str, verified: bool | None) -> None:
    scene = counted(10, 10)
    scene.made.add("gaps", time=START_US, end=END_US, source=source, why="it was not there")
    assert verdict(scene, tmp_path).verified is verified


@pytest.mark.parametrize(("missing_s", "verified"), [(-600, True), (-55, None), (2, None)])
def test_a_source_that_the_trouble_was_seen_without_is_not_needed_to_see_it_gone(
    tmp_path: Path, missing_s: int, verified: bool | None
) -> None:
    """A kernel without schedstats, or a node without a GPU, lacks it from the start and for ever."""
    scene = counted(68_000, 68_000)
    gap = {"source": "run queue delay", "why": "/proc/schedstat: No such file or directory"}
    scene.made.add("gaps", time=START_US + missing_s * SECOND, end=END_US, **gap)
    seen = [(START_US - 60 * SECOND, START_US - 50 * SECOND)]
    with open_recording(scene.write(tmp_path)) as recording:
        assert verify(recording, "zombie-memcg", START_US, END_US, seen).verified is verified
