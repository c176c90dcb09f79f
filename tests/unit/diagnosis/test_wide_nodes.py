"""On a large healthy node every total is large: none of them may confirm a cause by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.helpers.pattern_rows import ROWS, Row
from tests.helpers.pattern_scenes import FAULT
from tests.helpers.scenes import Scene

from zombiescope.diagnosis import excess, patterns, symptoms
from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.incidents import group
from zombiescope.diagnosis.pattern import Measurement
from zombiescope.diagnosis.presence import Presence
from zombiescope.diagnosis.thresholds import WEIGHT_WITHOUT_PAST
from zombiescope.store.reader import open_recording

CPUS = 192
HZ = 20
NODE_TOTALS = ("counters", "interrupts", "census")
"""Tables of which a row is about the whole node."""
VMSTAT = {
    "pgfault": 1_000_000, "thp_fault_alloc": 1_000, "pswpin": 10_000, "compact_stall": 500,
    "compact_migrate_scanned": 500_000, "pgscan_kswapd": 250_000, "pgscan_direct": 250_000,
    "pgscan_proactive": 250_000, "allocstall": 10, "numa_pte_updates": 500_000, "numa_hint_faults": 100_000,
    "numa_pages_migrated": 10_000,
}  # fmt: skip
"""A second of it: ten times what confirmed a cause when totals did."""


def totals(scene: Scene, times: float = 1.0) -> Scene:
    """Of a large node; `times` as much while it hurts."""
    for name, per_s in VMSTAT.items():
        scene.counter("vmstat", name, per_s * times, calm_per_s=per_s)
    scene.counter("stat", "processes", 500 * times, calm_per_s=500)
    scene.counter("stat", "ctxt", 4_000_000, calm_per_s=4_000_000)
    scene.interrupts("TLB", int(100_000 * times), calm_per_s=100_000)
    scene.gauge("meminfo", "anon_pages_bytes", 800 << 30).gauge("meminfo", "shmem_bytes", 90 << 30)
    scene.gauge("dentry", "negative", 2_000_000).gauge("dentry", "total", 9_000_000)
    scene.gauge("conntrack", "count", 200_000).gauge("conntrack", "max", 1_000_000)
    for second in range(20):
        count = sum(200 * (times if 5 <= each < 11 else 1) for each in range(second + 1))
        end_us = 1_760_000_000_000_000 + (second + 1) * 1_000_000
        scene.made.census(end_us, 50_000, 10_000, created=int(count), removed=int(count), released=int(count))
    return scene


def wide(row: Row, times: float = 1.0) -> Scene:
    return totals(row.base(Scene(cpus=CPUS, hz=HZ)), times)


def confirmations(scene: Scene, pattern: str, place: Path) -> Iterator[Measurement]:
    with open_recording(scene.write(place)) as recording:
        facts = Facts(recording, recording.start_us, recording.end_us + 1)
        found = [one for one in symptoms.find(facts) if not one.is_remark]
        for each in group(found, Presence(facts.samples)):
            evidence = patterns.by_id(pattern).examine(Case(facts, each))
            yield from (one for one in evidence.measurements if one.says == "confirms")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.pattern)
def test_no_total_of_the_node_confirms_by_itself(row: Row, tmp_path: Path) -> None:
    # GIVEN a healthy node whose totals are large and steady, and one task with the functions of the pattern
    told = list(confirmations(wide(row), row.pattern, tmp_path))
    # THEN what confirms, if anything, is its own
    assert [one.fact for one in told if one.source in NODE_TOTALS] == []


COUNTED = (
    "cgroup-churn", "fork-storm", "global-reclaim", "numa-balancing", "page-fault-storm", "thp-compaction",
    "tlb-shootdown",
)  # fmt: skip


@pytest.mark.parametrize("row", [row for row in ROWS if row.pattern in COUNTED], ids=lambda row: row.pattern)
def test_what_an_incident_adds_confirms_on_a_large_node_too(row: Row, tmp_path: Path) -> None:
    told = list(confirmations(wide(row, times=2.0), row.pattern, tmp_path))
    assert [one.weight for one in told if one.source in NODE_TOTALS][:1] == [1.0], told


def test_without_a_past_a_cause_is_less_sure(tmp_path: Path) -> None:
    # GIVEN the same storm with a calm time before it, and from the first second of the recording on
    def confidence(name: str, from_s: float, calm_per_s: float) -> float:
        scene = Scene(hz=HZ).storm(FAULT, from_s=from_s, to_s=11)
        scene.counter("vmstat", "pgfault", 700_000, calm_per_s=calm_per_s)
        (incident,) = scene.diagnose(tmp_path / name).incidents
        assert incident.causes[0].pattern == "page-fault-storm"
        return incident.causes[0].confidence

    assert 0.5 < confidence("at once", 0, 700_000) < confidence("later", 5, 2_000)


def test_who_did_the_same_before_the_window_is_still_named(tmp_path: Path) -> None:
    # GIVEN a storm that was on for ten seconds before the window begins, so that it is what was usual
    scene = Scene(hz=HZ).storm(FAULT, from_s=0, to_s=20).counter("vmstat", "pgfault", 700_000, calm_per_s=700_000)
    with open_recording(scene.write(tmp_path)) as recording:
        facts = Facts(recording, recording.start_us + 10_000_000, recording.end_us + 1)
        found = group([one for one in symptoms.find(facts) if not one.is_remark], Presence(facts.samples))
        (each,) = (one for one in found if not one.is_moderate)
        told = patterns.by_id("page-fault-storm").examine(Case(facts, each)).measurements
    assert [one.weight for one in told if one.says == "confirms"] == [WEIGHT_WITHOUT_PAST]


@pytest.mark.parametrize(
    ("past", "rate", "added"),
    [
        ([1_000_000] * 30, 1_100_000, 100_000),
        ([1_000_000] * 30, 1_030_000, 0),
        ([900_000, 1_100_000] * 15, 1_200_000, 0),
        ([0] * 30, 60, 60),
        ([100] * 27 + [9_000] * 3, 5_000, 4_010),
        ([10, 10, 600], 600, 590),
    ],
    ids=["steady", "within its noise", "it comes in waves", "nothing before", "seldom bursts", "the last reading"],
)
def test_what_stands_out_of_the_past(past: list[float], rate: float, added: float) -> None:
    known = excess.baseline(np.array(past, float))
    assert known is not None
    assert excess.added(known, rate) == pytest.approx(added, abs=20)


def test_too_short_a_past_is_none() -> None:
    assert excess.baseline(np.array([1_000.0])) is None
