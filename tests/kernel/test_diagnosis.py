"""Real faults, recorded by a real recorder, and what the diagnosis makes of them: the pattern and who is to blame.

One recording for all of them, one after the other; each is looked at through its own window. Programs in cgroups with a
quota or a limit run beside the others from the start, because the recorder looks at cgroups every ten seconds only.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.conftest import Needs
from tests.faults import (
    cfs_throttle,
    cgroup_litter,
    conntrack_dump,
    fork_storm,
    memcg_limit_reclaim,
    mount_storm,
    negative_dentries,
    netns_churn,
    page_fault_storm,
    rt_hog,
    smaps_reader,
    tlb_shootdown,
    zombie_walker,
)
from tests.faults.fault import Fault
from tests.recorder_process import recording

from zombiescope.diagnosis.diagnose import diagnose
from zombiescope.diagnosis.incident import Cause
from zombiescope.recording.reader import Recording, open_recording

pytestmark = pytest.mark.kernel

# Names that do not exist first: they have to be there until the recorder counts them, and dropping caches drops them.
FAULTS = (
    negative_dentries, smaps_reader, mount_storm, page_fault_storm, memcg_limit_reclaim, fork_storm, netns_churn,
    tlb_shootdown, rt_hog, conntrack_dump, cgroup_litter, zombie_walker,
)  # fmt: skip
HURTS_S = 4.0

Windows = dict[str, tuple[int, int]]


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Recording, Windows]]:
    needs = Needs()
    needs.perf_events()
    needs.tracefs()
    needs.memory_cgroup()
    needs.file("/sys/fs/cgroup/memory/memory.limit_in_bytes")
    needs.file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")
    place = tmp_path_factory.mktemp("faults")
    windows: Windows = {}
    with recording(place / "r") as recorder:
        with ExitStack() as made:
            quota = made.enter_context(cfs_throttle.FAULT.ready(place))
            limit = made.enter_context(memcg_limit_reclaim.FAULT.ready(place))
            quota.go()
            for module in FAULTS:
                early = module is memcg_limit_reclaim
                with ExitStack() as own:
                    stays = made if module is negative_dentries else own
                    running = limit if early else stays.enter_context(module.FAULT.ready(place))
                    running.go()
                    time.sleep(HURTS_S)
                    windows[module.FAULT.pattern] = (running.began_us, time.time_ns() // 1000)
                    if not early:
                        running.stop()
            recorder.wait_for_frames(1)
            windows["cfs-throttle"] = (quota.began_us, time.time_ns() // 1000)
        recorder.stop()
    with open_recording(place / "r") as opened:
        yield opened, windows


def named(faults: tuple[Recording, Windows], fault: Fault) -> Cause:
    """The first cause of the incident whose hog is the fault's; other things may happen on the machine meanwhile."""
    opened, windows = faults
    found = diagnose(opened, *windows[fault.pattern])
    mine = [incident for incident in found.incidents if any(cause.hog.comm == fault.hog for cause in incident.causes)]
    told = [(incident.symptoms, [cause.pattern for cause in incident.causes]) for incident in found.incidents]
    assert mine, told
    assert mine[0].causes[0].pattern == fault.pattern, (told, mine[0].ruled_out)
    return mine[0].causes[0]


@pytest.mark.parametrize("module", [*FAULTS, cfs_throttle], ids=lambda module: module.FAULT.pattern)
def test_the_pattern_and_the_culprit_are_named(faults: tuple[Recording, Windows], module: object) -> None:
    fault: Fault = module.FAULT  # type: ignore[attr-defined]
    cause = named(faults, fault)
    assert cause.culprit is not None
    assert not fault.culprit or fault.culprit in f"{cause.culprit.comm} {cause.culprit.cgroup}"
    assert cause.confidence > 0.5
    assert cause.proof == "kernel"


def test_zombies_are_counted_and_their_maker_is_not_their_walker(faults: tuple[Recording, Windows]) -> None:
    cause = named(faults, zombie_walker.FAULT)
    (zombies,) = [link.value for link in cause.chain if link.step == "zombies"]
    assert isinstance(zombies, int)
    assert zombies >= zombie_walker.COUNT // 2
    assert cause.hog.comm == "walker"
    assert cause.culprit is not None
    assert (cause.culprit.comm, cause.culprit.cgroup) == ("leaky", "/zs-fault-zombies/job-*")
