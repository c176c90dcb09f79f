"""The census at the end of a window, its growth, the leaks, and what all of it costs on which kernel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.helpers.recordings import LEAKING_PATH, SECOND, START_US, write_recording, write_segment

from zombiescope.kernel.release import kernel_version
from zombiescope.query.cgroups import LeakCreator, cgroups, growth_per_hour
from zombiescope.query.memcg_cost import LeafCost, Load, judge
from zombiescope.store import compact
from zombiescope.store.reader import open_recording

HOUR_US = 3600 * SECOND


def test_the_founding_case(tmp_path: Path) -> None:
    # GIVEN 5.4, 68,440 zombies beside 240 live cgroups, 70 us a leaf, 360 more an hour
    written = write_recording(tmp_path, seconds=120, segment_s=60)
    for compacted in (False, True):
        if compacted:
            compact.compact(written.node_dir)
        with open_recording(tmp_path) as recording:
            view = cgroups(recording)
        assert view.memory
        assert (view.memory.hierarchy, view.memory.total, view.memory.live, view.memory.dying) == (
            "v1", 68_692, 240, 68_452,
        )  # fmt: skip
        assert view.growth_per_hour == pytest.approx(360, rel=0.1)
        assert view.verdict == "costly"
        assert "numa_stat" in view.why
        assert view.forecast.read_cost_now_s == pytest.approx(4.8, abs=0.05)
        assert view.forecast.costs_1s_at_us == view.memory.at_us
        assert view.forecast.costs_5s_at_us is not None
        assert 7 * HOUR_US < view.forecast.costs_5s_at_us - view.memory.at_us < 9 * HOUR_US
        (leak,) = view.leaks
        assert (leak.path, leak.dying, leak.exact) == (LEAKING_PATH, 68_451, True)
        assert leak.creator == LeakCreator("amazon-ecs-agen", 7001, "ecs.service", "c0de" * 16)


def test_the_view_holds_at_the_end_of_the_window(tmp_path: Path) -> None:
    write_recording(tmp_path, seconds=120, leak_per_hour=3600)
    with open_recording(tmp_path) as recording:
        view = cgroups(recording, START_US, START_US + 70 * SECOND)
    assert view.memory
    assert view.memory.at_us == START_US + 70 * SECOND
    assert view.memory.dying == 68_440 + 70
    assert view.growth_per_hour == pytest.approx(3600)


def test_an_earlier_boot_does_not_count(tmp_path: Path) -> None:
    before = write_recording(tmp_path, seconds=70)
    write_recording(tmp_path, seconds=70, start_us=before.end_us + 60 * SECOND, boot="later", dying=3, leak_per_hour=0)
    with open_recording(tmp_path) as recording:
        view = cgroups(recording)
    assert view.memory
    assert view.memory.dying == 3
    assert view.growth_per_hour == 0
    assert [leak.dying for leak in view.leaks] == [3]
    assert view.verdict == "harmless"


def test_not_counted_is_no_verdict(tmp_path: Path) -> None:
    write_segment(tmp_path, {"cores": []})
    with open_recording(tmp_path) as recording:
        view = cgroups(recording)
    assert (view.memory, view.verdict, view.leaks) == (None, None, ())
    assert "not counted" in view.why


def test_the_last_line_of_each_path_counts(tmp_path: Path) -> None:
    def line(second: int, path: str, dying: int) -> tuple[object, ...]:
        return (START_US + second * SECOND, path, dying, 9, 9, 9 - dying, 0, "runc", 5, None, None)

    rows = [line(1, "/a/*", 5), line(2, "/b/*", 7), line(3, "/a/*", 0), line(4, "", 1)]
    write_segment(tmp_path, {"leaks": rows, "census": [(START_US + SECOND, "v2", 9, 1, 8, 0, 0, 0, 0)]})
    with open_recording(tmp_path) as recording:
        found = cgroups(recording).leaks
        early = cgroups(recording, None, START_US + 2 * SECOND).leaks
    assert [(leak.path, leak.dying, leak.exact) for leak in found] == [
        ("/b/*", 7, False),
        ("", 1, False),
        ("/a/*", 0, False),
    ]
    assert [(leak.path, leak.dying) for leak in early] == [("/b/*", 7), ("/a/*", 5)]


def test_the_hierarchy_with_more_cgroups_is_shown(tmp_path: Path) -> None:
    at = START_US + SECOND
    write_segment(tmp_path, {"census": [(at, "v1", 900, 60, 840, *[0] * 4), (at, "v2", 12, 12, 0, *[0] * 4)]})
    with open_recording(tmp_path) as recording:
        view = cgroups(recording)
    assert view.memory
    assert view.memory.hierarchy == "v1"


# --- growth -------------------------------------------------------------------------------------------------


def test_a_purge_does_not_bend_the_trend() -> None:
    times = START_US + np.arange(600) * SECOND
    values = np.arange(600) // 10 + 1000
    assert growth_per_hour(times, values) == pytest.approx(360, rel=0.02)
    values[400:] -= 900
    assert growth_per_hour(times, values) == pytest.approx(360, rel=0.05)


def test_for_a_minute_after_a_purge_growth_is_not_known() -> None:
    times = START_US + np.arange(600) * SECOND
    values = np.arange(600) // 10 + 1000
    values[550:] -= 900
    assert growth_per_hour(times, values) is None


def test_what_was_made_and_released_again_does_not_grow() -> None:
    """12,000 in 35 s, kept for a while, released within some seconds: 17 are left."""
    rise, kept, falls = np.linspace(17, 12_017, 35), np.full(120, 12_017), np.linspace(12_000, 17, 8)
    for left_s, grows in ((20, None), (90, 0.0)):
        values = np.concatenate([rise, kept, falls, np.full(left_s, 17)]).astype(np.int64)
        assert growth_per_hour(START_US + np.arange(len(values)) * SECOND, values) == grows


def test_growth_does_not_reach_over_a_restart_of_the_recorder(tmp_path: Path) -> None:
    """What a new recorder counts as dying may be far from what the one before did."""

    def row(second: int, dying: int, created: int) -> tuple[object, ...]:
        return (START_US + second * SECOND, "v1", 12_100, 70, dying, created, 0, 0, 0)

    first = [row(second, 10, 5_000 + second) for second in range(1, 100)]
    then = [row(second, 12_030, second - 100) for second in range(100, 200)]
    write_segment(tmp_path, {"census": [*first, *then]})
    with open_recording(tmp_path) as recording:
        assert cgroups(recording).growth_per_hour == 0
        assert cgroups(recording, None, START_US + 120 * SECOND).growth_per_hour is None


def test_what_a_walk_adds_beats_what_a_whole_read_takes() -> None:
    """4.19.81 with 3,028 cgroups: 14.4 ms; times a whole read it was a second."""
    leaf = LeafCost(numa_stat_ns=83_600, stat_ns=102_800, walk_ns=4_900)
    forecast = judge("4.19.81", Load(1, 3_028, 28, 3_000), leaf).forecast
    assert forecast.read_cost_now_s == pytest.approx(0.0144, rel=0.1)
    newer = judge("6.1.0", Load(1, 3_028, 28, 3_000), leaf).forecast
    assert newer.read_cost_now_s == pytest.approx(102.8e-6)


def test_less_than_a_minute_is_no_trend() -> None:
    times = START_US + np.arange(59) * SECOND
    assert growth_per_hour(times, np.arange(59)) is None
    assert growth_per_hour(times[:0], times[:0]) is None


# --- cost ---------------------------------------------------------------------------------------------------

LEAF = LeafCost(numa_stat_ns=70_000, stat_ns=50_000)


def _load(dying: int = 68_440, live: int = 240, per_hour: float | None = 360.0) -> Load:
    return Load(START_US, dying + live, live, dying, per_hour, per_hour)


def test_count_alone_is_not_costly() -> None:
    old, new = judge("5.4.0-1024-aws", _load(), LEAF), judge("6.18.5", _load(), LEAF)
    assert old.verdict == "costly"
    assert new.verdict == "watch"
    assert "reclaim still walks" in new.why
    assert new.forecast.read_cost_now_s == pytest.approx(70e-6)
    assert new.forecast.costs_1s_at_us is None


@pytest.mark.parametrize(
    ("release", "files"),
    [
        ("4.19.0", "memory.stat and memory.numa_stat"),
        ("5.4.0", "memory.numa_stat"),
        ("5.7.19", "memory.numa_stat"),
    ],
)
def test_which_files_walk(release: str, files: str) -> None:
    assert f"read of {files} above" in judge(release, _load(), LEAF).why


def test_before_5_2_the_dearer_file_is_what_counts() -> None:
    dear_stat = LeafCost(numa_stat_ns=1_000, stat_ns=100_000)
    assert judge("4.19.0", _load(), dear_stat).verdict == "costly"
    assert judge("5.4.0", _load(per_hour=None), dear_stat).forecast.read_cost_now_s == pytest.approx(0.0687, abs=1e-3)


def test_7_1_is_said_to_be_unseen() -> None:
    assert "not yet seen by us" in judge("7.1.0-rc2", _load(dying=0), LEAF).why


def test_an_unknown_kernel_and_no_probe_still_give_a_verdict() -> None:
    verdict = judge(None, _load(), LeafCost())
    assert verdict.verdict == "watch"
    assert verdict.forecast.read_cost_now_s is None
    assert "kernel is not known" in verdict.why


@pytest.mark.parametrize(
    ("release", "load", "verdict"),
    [
        ("6.1.0", _load(dying=200, per_hour=0.0), "harmless"),
        ("6.1.0", _load(dying=5001, live=4000, per_hour=9.0), "harmless"),
        ("6.1.0", _load(dying=5001, live=4000, per_hour=10.0), "watch"),
        ("6.1.0", _load(dying=2001, live=200, per_hour=None), "watch"),
        ("6.1.0", _load(dying=2001, live=201, per_hour=None), "harmless"),
        ("5.4.0", _load(dying=100, live=2000, per_hour=100.0), "watch"),  # 14,286 of them in five days
        ("5.4.0", _load(dying=100, live=2000, per_hour=50.0), "harmless"),
    ],
)
def test_what_is_worth_watching(release: str, load: Load, verdict: str) -> None:
    assert judge(release, load, LEAF).verdict == verdict


def test_releases() -> None:
    assert kernel_version("5.4.0-1024-aws") == (5, 4)
    assert kernel_version("6.18") == (6, 18)
    assert kernel_version("weird") is None
    assert kernel_version(None) is None
