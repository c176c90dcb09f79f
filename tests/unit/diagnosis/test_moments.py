"""Where a long window is looked at, and that it is not looked at everywhere."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.helpers.scenes import Scene

from zombiescope.diagnosis import diagnose as long_windows
from zombiescope.diagnosis import moments
from zombiescope.diagnosis.diagnose import diagnose
from zombiescope.diagnosis.moments import MOST_MOMENTS, QUIET_LOOKS, Choice, Seconds, choose
from zombiescope.diagnosis.thresholds import MOMENT_AROUND_US
from zombiescope.store.event import Event
from zombiescope.store.reader import open_recording

SECOND = 1_000_000
START = 1_700_000_000 * SECOND
HOURS = 12 * 3600


def seconds(count: int = HOURS) -> Seconds:
    calm = np.random.default_rng(3).normal(10, 0.5, count)
    return Seconds(START, np.full(count, 0.4), calm, np.full(count, 10_000.0), np.zeros(count))


def event(at_s: float, kind: str, severity: str) -> Event:
    return Event(START + int(at_s * SECOND), kind, "kmsg", severity, kind, {})


def chosen(found: Seconds | None, *events: Event, count: int = HOURS) -> Choice:
    return choose(found, events, START, START + count * SECOND)


def holds(found: Choice, from_s: float, to_s: float) -> bool:
    return any(one.from_us <= START + from_s * SECOND and START + to_s * SECOND <= one.to_us for one in found.moments)


def looked_s(found: Choice) -> float:
    return sum(one.to_us - one.from_us for one in found.moments) / SECOND


def test_a_calm_day_has_a_few_quiet_looks() -> None:
    found = chosen(seconds())
    assert (found.suspicious, found.left_out, len(found.moments)) == (0, 0, QUIET_LOOKS)


def test_a_lost_core_is_looked_at_with_what_came_before_it() -> None:
    node = seconds()
    node.hottest[30_000:30_006] = 1.0
    found = chosen(node)
    assert holds(found, 30_000 - 15, 30_006 + 15)


def test_what_the_live_doctor_found_is_looked_at_again() -> None:
    # GIVEN a CPU quota that stopped somebody at noon, which no core shows
    incident = {"from": START / 1e6 + 20_000, "to": START / 1e6 + 20_020, "severity": "warning"}
    end = START + HOURS * SECOND
    known = list(moments.found_before([incident, {**incident, "to": 0.0}, {}], START, end))
    assert len(known) == 1
    found = choose(seconds(), (), START, end, known)
    assert holds(found, 20_000, 20_020)
    assert found.suspicious == 1


def test_each_kind_of_sign_is_seen() -> None:
    for name, value in (("hottest", 0.97), ("kernel", 16.0), ("gap_us", 150_000.0), ("stolen", 0.5)):
        node = seconds()
        getattr(node, name)[20_000:20_003] = value
        assert holds(chosen(node), 20_000, 20_003), name


def test_a_cpu_more_for_seconds_stands_out_of_the_noise_of_many_cores() -> None:
    # GIVEN half a core of noise in every second, and a storm of one core: no single second shows it
    node = seconds()
    node.kernel[20_000:20_015] += 1.2
    assert holds(chosen(node), 20_000, 20_015)


def test_training_that_comes_and_goes_in_minutes_is_no_moment() -> None:
    node = seconds()
    node.kernel[:] += 3 * np.sin(np.arange(HOURS) / 600)
    assert chosen(node).suspicious == 0


def test_a_node_where_some_core_is_always_busy_is_looked_at_where_it_begins_and_ends() -> None:
    node = seconds()
    node.hottest[1_000:40_000] = 1.0
    found = chosen(node, event(35_000, "nic_reset", "critical"))
    assert holds(found, 985, 1_040)
    assert holds(found, 39_990, 40_010)
    assert holds(found, 34_990, 35_010)
    assert looked_s(found) < 600
    (head,) = [one for one in found.moments if one.goes_on_us is not None]
    assert head.goes_on_us == START + 40_000 * SECOND


def test_of_very_many_moments_the_worst_are_taken_and_the_rest_is_counted() -> None:
    node = seconds()
    for number in range(200):
        node.hottest[200 * number + 50] = 1.0
    node.hottest[10_850:10_862] = 1.0
    found = chosen(node, event(41_000, "soft_lockup", "critical"))
    assert holds(found, 10_850, 10_862)
    assert holds(found, 41_000, 41_001)
    assert len(found.moments) <= MOST_MOMENTS + QUIET_LOOKS
    assert found.left_out == found.suspicious - MOST_MOMENTS


def test_a_rhythm_of_warnings_does_not_hide_what_happened_once() -> None:
    node = seconds()
    node.hottest[20_000:20_002] = 1.0
    found = chosen(node, *(event(11 * number, "unit_restart", "warning") for number in range(3_900)))
    assert holds(found, 20_000, 20_002)


def test_spans_do_not_overlap_and_stay_inside() -> None:
    node = seconds(1_200)
    node.hottest[[0, 20, 45, 1_199]] = 1.0
    found = chosen(node, count=1_200)
    spans = [(one.from_us, one.to_us) for one in found.moments]
    assert all(earlier[1] < later[0] for earlier, later in pairwise(spans))
    assert spans[0][0] == START
    assert spans[-1][1] == START + 1_200 * SECOND


def test_without_counters_events_tell() -> None:
    assert holds(chosen(None, event(5_000, "nic_reset", "critical")), 5_000 - MOMENT_AROUND_US / SECOND, 5_001)


def test_a_long_window_finds_the_same_incident_and_says_what_it_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene().census(240, 68_440).leak("/ecs/*", 68_000, 500, 500, "ecs-agent")
    scene.hog("do_syscall_64 vfs_read memcg_numa_stat_show mem_cgroup_nr_lru_pages", "kubelet")
    with open_recording(scene.write(tmp_path)) as recording:
        whole = diagnose(recording, recording.start_us, recording.end_us + 1)
        monkeypatch.setattr(long_windows, "WINDOW_LONG_US", SECOND)
        monkeypatch.setattr(moments, "MOMENT_AROUND_US", 2 * SECOND)
        piecewise = diagnose(recording, recording.start_us, recording.end_us + 1)
    assert [(each.id, each.from_us, each.to_us) for each in piecewise.incidents] == [
        (each.id, each.from_us, each.to_us) for each in whole.incidents
    ]
    assert any("were examined in detail" in said for said in piecewise.not_checked)
    assert not any("were examined in detail" in said for said in whole.not_checked)
