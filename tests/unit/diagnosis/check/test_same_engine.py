"""check and diagnose about the same ten seconds: the same hog, the same pattern, the same severity."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.helpers.recordings import write_recording
from tests.unit.diagnosis.check.looks import NOTHING, Stacks, checked, core

from zombiescope.audit.surroundings import Surroundings
from zombiescope.audit.surroundings.quotas import Throttled
from zombiescope.diagnosis.check.check import Check
from zombiescope.diagnosis.check.examine import examine
from zombiescope.diagnosis.diagnose import Diagnosis, diagnose
from zombiescope.store.reader import open_recording

Case = Callable[[Path], Check]
SYSCALL = ("entry_SYSCALL_64_after_hwframe", "do_syscall_64")


def founding(place: Path) -> Check:
    """One core of sixteen is lost to kubelet, which walks zombies."""
    write_recording(place, cpus=16, seconds=12, busy=0.1)
    with open_recording(place) as recording:
        check = examine(recording, Surroundings(), NOTHING)
    assert check is not None
    return check


def pinned(place: Path) -> Check:
    """A hog that no pattern explains holds core 1."""
    stacks = Stacks()
    stacks.run(stacks.task(77, "reader"), stacks.stack(*SYSCALL, "vfs_read", "read_iter_zero"), (1,), 0, 10)
    rows = [core(at, cpu, system=1000 if cpu else 0) for at in range(10) for cpu in (0, 1)]
    return checked(place, {"cores": rows, **stacks.tables})


def migrating(place: Path) -> Check:
    stacks = Stacks()
    stacks.run(stacks.task(77, "walker"), stacks.stack(*SYSCALL, "vfs_read", "read_iter_zero"), (0, 1), 2, 6)
    rows = [core(at, cpu, system=500 if 2 <= at < 6 else 0) for at in range(10) for cpu in (0, 1)]
    return checked(place, {"cores": rows, **stacks.tables})


def real_time(place: Path) -> Check:
    stacks = Stacks()
    spinner = stacks.task(9, "spinner", "spin.service", policy=1, rt_priority=50)
    stacks.run(spinner, stacks.stack("main", kind="user"), (0,), 0, 8)
    return checked(place, stacks.tables)


def stolen(place: Path) -> Check:
    return checked(place, {"cores": [core(at, cpu, steal=400 * cpu) for at in range(10) for cpu in (0, 1)]})


def quiet(place: Path) -> Check:
    return checked(place)


def diagnosed(place: Path, check: Check) -> Diagnosis:
    with open_recording(place) as recording:
        return diagnose(recording, check.window.start_us, check.window.end_us + 1)


@pytest.mark.parametrize("case", [founding, pinned, migrating, real_time, stolen, quiet])
def test_they_name_the_same_hog_pattern_and_severity(tmp_path: Path, case: Case) -> None:
    # GIVEN ten seconds that were recorded once, WHEN both look at them
    check = case(tmp_path)
    found = diagnosed(tmp_path, check)
    # THEN each incident is a finding, with the same words about who and why, and there is no other of that weight
    told = {
        (one.incident, one.pattern, one.hog.comm if one.hog else None): one.severity
        for one in reversed(check.findings)  # the worst of an incident last
        if one.incident is not None
    }
    expected = {
        (each.id, each.causes[0].pattern, each.causes[0].hog.comm): each.severity
        for each in found.incidents
        if each.causes
    }
    assert told == expected
    assert bool(expected) == (case is not quiet)
    # AND what is worth knowing besides is the same
    assert [remark.text for remark in check.diagnosis.remarks] == [remark.text for remark in found.remarks]


def test_a_cgroup_that_stood_still_is_an_incident_beside_the_hog_that_reset_the_card(tmp_path: Path) -> None:
    # GIVEN a core that is lost until the card is reset, and all the time a cgroup that has used up its quota
    write_recording(tmp_path, cpus=16, seconds=12, busy=0.1)
    stopped = Throttled("/kubepods/a", 2.0, 100, 44, 3.1)
    with open_recording(tmp_path) as recording:
        check = examine(recording, Surroundings(throttled=(stopped,)), NOTHING)
    assert check is not None
    # THEN the reset belongs to the hog, and the quota is a cause of its own
    patterns = {one.rule: one.pattern for one in check.findings if one.incident is not None}
    assert patterns == {"core-saturated": "zombie-memcg", "nic_reset": "zombie-memcg", "throttled": "cfs-throttle"}
