"""Many small things are no hog because they share a name; one that stands behind them is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.helpers.made import SECOND, START_US
from tests.helpers.wide import SYSCALL, WideNode

from zombiescope.diagnosis.core_grid import CoreGrid, load
from zombiescope.diagnosis.diagnose import Diagnosis, diagnose
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptoms import core_saturated
from zombiescope.diagnosis.thresholds import UNCONFIRMED_MOST
from zombiescope.store.reader import open_recording

EXEC = f"{SYSCALL} __x64_sys_execve bprm_execve load_elf_binary"
FROM_S, TO_S = 20, 32
WHEN: dict[str, Any] = {"from_s": FROM_S, "to_s": TO_S}


def shells(cpus: int, parents: int, share: float) -> WideNode:
    """Short-lived processes of one name on all cores, each core's started by one of so many."""
    node = WideNode(cpus).training().counter("stat", "processes", 20).counter("stat", "processes", 900, FROM_S, TO_S)
    for cpu in node.numbers:
        node.runs("sh", EXEC, share, cpus=[cpu], ppid=700 + cpu % parents, short_lived=True, **WHEN)
    return node


def severities(found: Diagnosis, comm: str) -> list[str]:
    return [one.severity for one in found.incidents if one.causes and one.causes[0].hog.comm == comm]


@pytest.mark.parametrize("cpus", [48, 192])
def test_shells_of_as_many_owners_as_cores_are_no_storm(tmp_path: Path, cpus: int) -> None:
    # GIVEN two to ten CPUs' worth of starting processes, a twentieth of a core each, by nobody in particular
    found = shells(cpus, cpus, 0.05).diagnose(tmp_path)
    # THEN nobody is woken up for it
    assert set(severities(found, "sh")) <= {"info"}


@pytest.mark.parametrize("cpus", [48, 192])
def test_the_same_shells_of_one_owner_are_a_storm(tmp_path: Path, cpus: int) -> None:
    found = shells(cpus, 1, 0.05).diagnose(tmp_path)
    (one,) = [one for one in found.incidents if one.severity != "info"]
    assert (one.severity, one.causes[0].pattern) == ("warning", "fork-storm")
    assert one.causes[0].culprit is not None
    assert one.causes[0].culprit.pid == 700


def test_shells_of_many_owners_that_take_half_of_every_core_are_one(tmp_path: Path) -> None:
    found = shells(16, 16, 0.5).diagnose(tmp_path)
    assert "warning" in severities(found, "sh")


@pytest.mark.parametrize("cpus", [2, 4])
def test_on_a_few_cores_nothing_is_scattered(tmp_path: Path, cpus: int) -> None:
    found = shells(cpus, cpus, 0.95).diagnose(tmp_path)
    assert "critical" in severities(found, "sh")


def test_faults_of_a_job_that_begins_are_not_those_of_a_script_that_begins_with_it(tmp_path: Path) -> None:
    # GIVEN a job on all cores whose faults begin in the same second as a shell that copies a few pages
    faults = "asm_exc_page_fault exc_page_fault handle_mm_fault"
    node = WideNode(96).training().counter("vmstat", "pgfault", 1_000).counter("vmstat", "pgfault", 6e6, FROM_S, TO_S)
    for cpu in range(90):
        node.runs("trainer", f"{faults} shmem_fault", 0.3, cpus=[cpu], pid=5000 + cpu, cgroup="/other", **WHEN)
        node.runs("trainer", "", 0.5, cpus=[cpu], pid=5000 + cpu, cgroup="/other", **WHEN)
    node.runs("indexer", f"{SYSCALL} __x64_sys_getdents64 iterate_dir", 0.8, cpus=[95], pid=700, **WHEN)
    node.runs("indexer", f"{faults} do_anonymous_page", 0.3, cpus=[95], pid=700, **WHEN)
    found = node.diagnose(tmp_path)
    # THEN what it looks like is a guess, and says so
    (sure,) = [cause.confidence for one in found.incidents for cause in one.causes[:1] if cause.hog.comm == "indexer"]
    assert sure <= UNCONFIRMED_MOST


def test_a_second_without_a_tick_is_no_room(tmp_path: Path) -> None:
    # GIVEN a node whose cores are all busy in the kernel for four seconds, in the middle of which a tick came late
    node = WideNode(2, seconds=12)
    for cpu in node.numbers:
        node.runs("proxy", "", 1.0, cpus=[cpu], to_s=4).runs("proxy", EXEC, 1.0, cpus=[cpu], from_s=4, to_s=8)
        node.runs("proxy", "", 1.0, cpus=[cpu], from_s=8)
    place = node.write(tmp_path)
    with open_recording(place) as recording:
        facts = Facts(recording, START_US, START_US + 12 * SECOND)
        assert facts.cores is not None
        facts._kept["cores"] = _without(facts.cores, 6)
        assert np.isnan(facts.cores.node_busy()[6])
        # THEN four seconds of a full node are as little as without it
        assert list(core_saturated.find(facts)) == []
        assert diagnose(recording, START_US, START_US + 12 * SECOND).blind is False


def _without(cores: CoreGrid, second: int) -> CoreGrid:
    for grid in (*cores.ratios.values(), *cores.counts.values(), cores.max_gap_us):
        grid[:, second] = np.nan
    return cores


def test_what_is_known_of_every_other_second_stays(tmp_path: Path) -> None:
    with open_recording(WideNode(2, seconds=6).runs("job", "", 1.0, cpus=[0]).write(tmp_path)) as recording:
        grid = load(recording, START_US, START_US + 6 * SECOND)
    assert grid is not None
    assert grid.node_busy().tolist() == pytest.approx([0.5] * 6, abs=0.1)
