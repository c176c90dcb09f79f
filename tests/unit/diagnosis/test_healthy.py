"""Healthy nodes are quiet, at every width: what they do all day is no warning, and hides no fault."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.helpers.healthy import LOADS, Load, training_steady
from tests.helpers.pattern_rows import ROWS, Row

WIDTHS = (16, 192)


@pytest.mark.parametrize("cpus", WIDTHS)
@pytest.mark.parametrize("load", LOADS, ids=lambda load: load.__name__)
def test_a_healthy_node_is_no_warning(load: Load, cpus: int, tmp_path: Path) -> None:
    found = load(cpus).diagnose(tmp_path)
    loud = [one for one in found.incidents if one.severity != "info"]
    said = [
        (one.severity, one.causes[0].pattern if one.causes else None, one.causes[0].summary if one.causes else "",
         [symptom.text for symptom in one.symptoms])
        for one in loud
    ]  # fmt: skip
    assert said == []


BESIDE = (
    "fork-storm", "global-reclaim", "gpu-monitor", "mount-storm", "negative-dentries", "netns-churn", "numa-balancing",
    "page-fault-storm", "smaps-reader", "thp-compaction", "tlb-shootdown",
)  # fmt: skip


@pytest.mark.parametrize("cpus", WIDTHS)
@pytest.mark.parametrize("row", [row for row in ROWS if row.pattern in BESIDE], ids=lambda row: row.pattern)
def test_a_fault_beside_training_is_named(row: Row, cpus: int, tmp_path: Path) -> None:
    # GIVEN a node that trains, and on a core of its own what makes the pattern on a small machine
    scene = training_steady(cpus)
    before = len(scene.runs)
    row.confirms(row.base(scene))
    scene.runs[before:] = [replace(one, cpu=cpus - 1 - one.cpu) for one in scene.runs[before:]]
    found = scene.diagnose(tmp_path).incidents
    named = [one.causes[0] for one in found if one.causes and one.causes[0].confidence > 0.5]
    assert row.pattern in {cause.pattern for cause in named}, [(cause.pattern, cause.summary) for cause in named]
