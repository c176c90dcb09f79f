"""Real faults, recorded by a real recorder, and what the diagnosis makes of them: the pattern and who is to blame.

One recording for all of them, one after the other; each is looked at through its own window. The two in cgroups with a
quota or a limit run side by side at the end, because the recorder looks at cgroups every ten seconds only.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.conftest import Needs
from tests.helpers.recorder_process import recording

from zombiescope.diagnosis.diagnose import diagnose
from zombiescope.diagnosis.incident import Cause
from zombiescope.diagnosis.report.document import document
from zombiescope.lab import verdict
from zombiescope.lab.requirements import lacks
from zombiescope.lab.scenario import Scenario, by_id
from zombiescope.lab.scenario_run import stage
from zombiescope.lab.scenarios.zombie_tmpfs import COUNT
from zombiescope.store.reader import Recording, open_recording

pytestmark = pytest.mark.kernel

# Names that do not exist go with their directory, and have to be there until the recorder counts them.
ONE_BY_ONE = (
    "negative-dentries", "mount-storm", "page-fault-storm", "fork-storm", "netns-churn", "tlb-shootdown", "rt-hog",
    "conntrack-lister", "zombie-tmpfs",
)  # fmt: skip
BESIDE = ("cfs-throttle", "memcg-limit-reclaim")
HURTS_S = 4.0
LEAVES_S = 14.0
"""The recorder looks at a cgroup when it has seen a task settle there, and then every ten seconds."""

Windows = dict[str, tuple[int, int]]


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Recording, Windows]]:
    needs = Needs()
    needs.perf_events()
    needs.tracefs()
    needs.memory_cgroup()
    for name in (*ONE_BY_ONE, *BESIDE):
        for missing in lacks(by_id(name)):
            needs.lack(f"{name} {missing}")
    place = tmp_path_factory.mktemp("faults")
    windows: Windows = {}
    with recording(place / "r") as recorder:
        with ExitStack() as made:
            for name in ONE_BY_ONE:
                with stage(by_id(name)) as running:
                    running.go()
                    time.sleep(LEAVES_S if name == "negative-dentries" else HURTS_S)
                    windows[name] = (running.began_us, time.time_ns() // 1000)
                    running.stop()
            quota = made.enter_context(stage(by_id("cfs-throttle")))
            quota.go()
            limit = made.enter_context(stage(by_id("memcg-limit-reclaim")))
            limit.go()
            time.sleep(LEAVES_S)
            for name, running in zip(BESIDE, (quota, limit), strict=True):
                windows[name] = (running.began_us, time.time_ns() // 1000)
        recorder.wait_for_frames(1)
        recorder.stop()
    with open_recording(place / "r") as opened:
        yield opened, windows


def named(faults: tuple[Recording, Windows], scenario: Scenario) -> Cause:
    """The first cause of the incident that is the scenario's; other things may happen on the machine meanwhile."""
    opened, windows = faults
    found = diagnose(opened, *windows[scenario.id])
    told = document(found)["incidents"]
    mine = [each for each, one in zip(found.incidents, told, strict=True) if verdict.concerns(scenario, one)]
    assert mine, [(one["symptoms"], [cause["summary"] for cause in one["causes"]]) for one in told]
    assert mine[0].causes[0].pattern == scenario.truth.pattern, (mine[0].causes, mine[0].ruled_out)
    return mine[0].causes[0]


@pytest.mark.parametrize("name", [*ONE_BY_ONE, *BESIDE])
def test_the_pattern_and_the_culprit_are_named(faults: tuple[Recording, Windows], name: str) -> None:
    scenario = by_id(name)
    cause = named(faults, scenario)
    assert cause.culprit is not None
    assert scenario.truth.culprit in f"{cause.culprit.comm} {cause.culprit.cgroup}"
    assert cause.confidence > 0.5
    assert cause.proof == "kernel"


def test_zombies_are_counted_and_their_maker_is_not_their_walker(faults: tuple[Recording, Windows]) -> None:
    cause = named(faults, by_id("zombie-tmpfs"))
    (zombies,) = [link.value for link in cause.chain if link.step == "zombies"]
    assert isinstance(zombies, int)
    assert zombies >= COUNT // 2
    assert cause.hog.comm == "walker"
    assert cause.culprit is not None
    assert (cause.culprit.comm, cause.culprit.cgroup) == ("leaky", "/zombiescope-lab-zombie-tmpfs/jobs/job-*")
