"""The founding case as a recorder on that node would have recorded it, and its twin: the unit stays up, and only its
containers come and go."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.helpers.replay import IDLE, Replay, Runs, Task

from zombiescope.diagnosis.diagnose import diagnose
from zombiescope.diagnosis.incident import Cause, Incident
from zombiescope.imports.founding_case import CASE, CPUS, IN_USE, LOST_CPU, RESTART_S, TRACKED, WALK
from zombiescope.recorder.recorder import Recorder
from zombiescope.store.reader import open_recording

SECONDS = 26
LOST = (12, 18)
HZ = 97
KUBELET = Task("kubelet", 1893, "/system.slice/kubelet.service")
TRAINING = Task("python3", 41210, "/kubepods/burstable/pod0001/train")
AGENT = Task("amazon-ecs-agen", 2811, "/system.slice/ecs.service")
FUTEX = ("entry_SYSCALL_64_after_hwframe", "do_syscall_64", "__x64_sys_futex", "do_futex")
MKDIR = ("entry_SYSCALL_64_after_hwframe", "do_syscall_64", "cgroup_mkdir")

Happens = Callable[[Replay, Recorder, int], None]


def lost(cpu: int, at_s: float) -> bool:
    """kubelet reads with several threads, one a core; only core 39 gets no rest."""
    return LOST[0] <= at_s < LOST[1] and cpu % 14 == LOST_CPU % 14


def on(cpu: int, at_s: float) -> Runs:
    dice = random.Random(cpu * 100_003 + round(at_s * HZ))
    if lost(cpu, at_s) and (cpu == LOST_CPU or dice.random() < 0.87):
        return Runs(KUBELET, WALK)
    if dice.random() < 0.28:
        return Runs(TRAINING, FUTEX if dice.random() < 0.1 else ())
    return IDLE


def spent(cpu: int, second: int) -> Mapping[str, int]:
    if lost(cpu, second):
        return {"system": 100} if cpu == LOST_CPU else {"user": 3, "system": 87, "idle": 10}
    return {"user": 25, "system": 3, "softirq": 1, "idle": 71}


def directories() -> list[str]:
    units = [f"/system.slice/unit{number:04d}.service" for number in range(60)]
    return ["/system.slice", *units, "/kubepods", *(f"/kubepods/pod{number:04d}" for number in range(IN_USE - 63))]


def kernel_log(replay: Replay, made: Recorder, second: int) -> None:
    """The driver waits for five seconds, then resets the card."""
    for at_s, text in CASE.dmesg:
        if second == LOST[0] + int(at_s - 14):
            replay.says(made, f"[{1_214_880 + second}.000000] {text}")


def crash_loop(replay: Replay, made: Recorder, second: int) -> None:
    kernel_log(replay, made, second)
    if second == 0:
        replay.units.listed("ecs.service", "activating", "auto-restart", replay.now_ns)
        replay.units.list_ended()
        replay.restarts(made, "ecs.service", TRACKED)
    elif second % RESTART_S == 0:
        replay.restarts(made, "ecs.service", TRACKED + second // RESTART_S)


def container_churn(place: str) -> Happens:
    """A container every two seconds, each of which leaves a memory cgroup behind."""

    def happens(replay: Replay, made: Recorder, second: int) -> None:
        kernel_log(replay, made, second)
        if second == 0:
            replay.units.listed("ecs.service", "active", "running", replay.now_ns)
            replay.units.list_ended()
        path = f"/{place}/{0xA1B2C3D4E5F60718 + second // 2:064x}"
        if second % 2 == 0:
            replay.makes_cgroup(made, AGENT, 90_000 + second, path)
            replay.memory_cgroups += 1
        else:
            replay.removes_cgroup(made, AGENT, 90_000 + second - 1, path)

    return happens


def replayed(place: Path, patch: pytest.MonkeyPatch, happens: Happens) -> tuple[Incident, Cause]:
    functions = sorted({*WALK, *FUTEX, *MKDIR, *IDLE.path})
    replay = Replay(place, CPUS, HZ, on, spent, functions, (KUBELET, TRAINING, AGENT), TRACKED, directories())
    replay.keep_time(patch)
    with open_recording(replay.record(SECONDS, happens)) as recording:
        found = diagnose(recording, recording.start_us, recording.end_us + 1)
    assert found.incidents, found.not_checked
    assert found.incidents[0].causes, found.incidents[0]
    return found.incidents[0], found.incidents[0].causes[0]


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Happens], tuple[Incident, Cause]]:
    return lambda happens: replayed(tmp_path, monkeypatch, happens)


def assert_founding_case(incident: Incident, cause: Cause) -> None:
    assert incident.severity == "critical"
    assert (cause.pattern, cause.hog.comm, cause.hog.unit) == ("zombie-memcg", "kubelet", "kubelet.service")
    assert cause.hog.cores == pytest.approx(0.065 * CPUS, rel=0.1)
    assert cause.frames[-2:] == ("memcg_numa_stat_show", "mem_cgroup_nr_lru_pages")
    held = next(symptom for symptom in incident.symptoms if symptom.kind == "core_saturated")
    assert (held.cpu, held.seconds) == (LOST_CPU, 6.0)
    assert "nic_reset" in {symptom.facts.get("event") for symptom in incident.symptoms}


def test_the_founding_case_as_it_would_have_been_recorded(
    told: Callable[[Happens], tuple[Incident, Cause]],
) -> None:
    incident, cause = told(crash_loop)
    assert_founding_case(incident, cause)
    assert cause.culprit is not None
    assert cause.culprit.unit == "ecs.service"
    assert TRACKED - IN_USE in {link.value for link in cause.chain}
    assert "systemctl disable --now ecs.service" in map(str, cause.fix.steps)


@pytest.mark.parametrize("place", ["ecs", "docker"])
def test_the_unit_stays_up_and_only_its_containers_come_and_go(
    told: Callable[[Happens], tuple[Incident, Cause]], place: str
) -> None:
    incident, cause = told(container_churn(place))
    assert_founding_case(incident, cause)
    assert cause.culprit is not None
    assert cause.culprit.cgroup == f"/{place}/*"
    assert (cause.culprit.comm, cause.culprit.unit) == ("amazon-ecs-agen", "ecs.service")
