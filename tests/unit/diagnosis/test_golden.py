"""Documented cases and their near-misses, from raw files through the importer to the diagnosis."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from zombiescope.diagnosis.diagnose import Diagnosis, diagnose
from zombiescope.diagnosis.incident import Cause, Incident
from zombiescope.imports import founding_case
from zombiescope.imports.raw_case import RawCase, Work, kernel, user
from zombiescope.imports.session import Options, Session, Silence
from zombiescope.store.reader import open_recording

Held = Callable[[int, float, random.Random], Work | None]
Load = Callable[[int, int, random.Random], Mapping[str, float]]

SYSCALL = founding_case.SYSCALL
TRAINING = (
    Work("python3", 900, 90, user("libtorch.so", "at::native::addmm", "sgemm_kernel")),
    Work("python3", 900, 10, kernel(*SYSCALL, "__x64_sys_futex", "do_futex")),
)


def never(cpu: int, at_s: float, dice: random.Random) -> Work | None:
    return None


def ordinary(cpu: int, second: int, dice: random.Random) -> Mapping[str, float]:
    return {"usr": 25.0, "sys": 3.0, "soft": 0.5}


def holds(work: Work, on: int, from_s: float, to_s: float) -> Held:
    def held(cpu: int, at_s: float, dice: random.Random) -> Work | None:
        return work if cpu == on and from_s <= at_s < to_s else None

    return held


def loads(on: int, from_s: float, to_s: float, mode: str = "sys") -> Load:
    def load(cpu: int, second: int, dice: random.Random) -> Mapping[str, float]:
        return {mode: 100.0} if cpu == on and from_s < second <= to_s else ordinary(cpu, second, dice)

    return load


SMALL = RawCase(
    host="node-a",
    kernel="6.18.0",
    cpus=8,
    hz=99,
    seconds=20,
    end_unix=1_743_476_542,
    uptime_end_s=90_000.0,
    busy=0.3,
    ordinary=TRAINING,
    held=never,
    load=ordinary,
)


def diagnosed(case: RawCase, place: Path, leave_out: tuple[str, ...] = ()) -> Diagnosis:
    files = [str(file) for file in case.write(place / "raw") if not file.name.startswith(leave_out or ("-",))]
    Session(place / "recording", Options(), Silence()).run(files)
    with open_recording(place / "recording") as recording:
        return diagnose(recording, recording.end_us - case.seconds * 1_000_000, recording.end_us + 1)


def worst(found: Diagnosis) -> tuple[Incident, Cause]:
    assert found.incidents
    assert found.incidents[0].causes
    return found.incidents[0], found.incidents[0].causes[0]


def named(found: Diagnosis) -> set[str]:
    """Patterns that some incident names first, other than the fallback."""
    first = {incident.causes[0].pattern for incident in found.incidents if incident.causes}
    return first - {"unknown-kernel-hog"}


# --- the founding case -------------------------------------------------------------------------------------------


def test_the_founding_case(tmp_path: Path) -> None:
    incident, cause = worst(diagnosed(founding_case.CASE, tmp_path))
    assert incident.severity == "critical"
    assert cause.pattern == "zombie-memcg"
    assert cause.hog.comm == "kubelet"
    assert cause.culprit is not None
    assert cause.culprit.unit == "ecs.service"
    assert cause.frames[-2:] == ("memcg_numa_stat_show", "mem_cgroup_nr_lru_pages")
    assert cause.hog.cores == pytest.approx(0.065 * founding_case.CPUS, rel=0.1)
    assert cause.hog.cpu_ratio == pytest.approx(0.065, rel=0.1)
    lost = next(symptom for symptom in incident.symptoms if symptom.kind == "core_saturated")
    assert (lost.cpu, lost.seconds) == (founding_case.LOST_CPU, 6.0)
    assert {"nic_reset"} <= {symptom.facts.get("event") for symptom in incident.symptoms}
    values = {link.value for link in cause.chain}
    assert founding_case.TRACKED - founding_case.IN_USE in values
    assert "systemctl disable --now ecs.service" in map(str, cause.fix.steps)


def test_the_founding_case_with_the_profile_alone_says_what_it_could_not_check(tmp_path: Path) -> None:
    """No counters: the frames speak, nothing confirms them, and that is said."""
    found = diagnosed(founding_case.CASE, tmp_path, leave_out=("mpstat", "dmesg", "journal", "proc", "cgroup"))
    _, cause = worst(found)
    assert cause.pattern == "zombie-memcg"
    assert cause.confidence <= 0.5
    assert cause.culprit is None
    assert any("memory cgroups" in text for text in found.not_checked)
    assert any("per-core" in text for text in found.not_checked)


def test_the_older_twin_stalled_for_a_fraction_of_a_second(tmp_path: Path) -> None:
    """GitHub 2019: kernel 4.9, cAdvisor reads memory.stat, and network packets wait for 150 ms and more."""
    read = kernel("entry_SYSCALL_64", "do_syscall_64", "sys_read", "vfs_read", "seq_read", "memcg_stat_show",
                  "mem_cgroup_nr_lru_pages", "mem_cgroup_node_nr_lru_pages")  # fmt: skip
    reader = Work("cadvisor", 3100, 0, (*user("/usr/bin/cadvisor", "syscall.Syscall"), *read))

    def held(cpu: int, at_s: float, dice: random.Random) -> Work | None:
        return reader if cpu == 5 and at_s % 2 < 0.17 else None

    case = replace(SMALL, kernel="4.9.0", held=held, works=(reader,), tracked=42_000, directories=_tree(300))
    _, cause = worst(diagnosed(case, tmp_path))
    assert (cause.pattern, cause.hog.comm) == ("zombie-memcg", "cadvisor")
    assert "memory.stat is read" in {link.means for link in cause.chain}


def test_the_soft_lockup_of_the_same_family(tmp_path: Path) -> None:
    """UOS 2025: kernel 4.19, kubelet is stuck for 23 s, and migration threads wait for it."""
    walk = kernel(*SYSCALL, "__x64_sys_read", "vfs_read", "seq_read", "memcg_numa_stat_show",
                  "mem_cgroup_node_nr_lru_pages", "find_next_bit")  # fmt: skip
    reader = Work("kubelet", 8104, 0, (*user("/usr/bin/kubelet", "syscall.Syscall"), *walk))
    waiter = Work("migration/3", 31, 0, kernel("ret_from_fork", "kthread", "smpboot_thread_fn", "multi_cpu_stop"))

    def held(cpu: int, at_s: float, dice: random.Random) -> Work | None:
        if not 2 <= at_s < 18:
            return None
        return reader if cpu == 6 else waiter if cpu == 3 else None

    case = replace(
        SMALL, kernel="4.19.0-91", held=held, works=(reader, waiter), load=loads(6, 2, 18), tracked=31_000,
        directories=_tree(400),
        dmesg=((17.5, "watchdog: BUG: soft lockup - CPU#6 stuck for 23s! [kubelet:8104]"),),
    )  # fmt: skip
    incident, cause = worst(diagnosed(case, tmp_path))
    assert (cause.pattern, cause.hog.comm, incident.severity) == ("zombie-memcg", "kubelet", "critical")


# --- near-misses -------------------------------------------------------------------------------------------------


def test_many_zombies_that_nobody_walks_are_no_incident(tmp_path: Path) -> None:
    case = replace(SMALL, tracked=70_240, directories=_tree(240))
    assert named(diagnosed(case, tmp_path)) == set()


def test_a_training_step_that_fills_a_core_is_no_incident(tmp_path: Path) -> None:
    step = Work("python3", 950, 0, user("libtorch.so", "at::native::addmm", "sgemm_kernel"))
    case = replace(SMALL, held=holds(step, 2, 0, 20), works=(step,), load=loads(2, 0, 20, "usr"))
    assert diagnosed(case, tmp_path).incidents == ()


def test_a_waiter_for_a_lock_is_not_the_hog(tmp_path: Path) -> None:
    path = (*SYSCALL, "__x64_sys_read", "vfs_read", "seq_read", "memcg_numa_stat_show", "mem_cgroup_nr_lru_pages")
    worker = Work("kubelet", 700, 0, kernel(*path))
    waiter = Work(
        "snapd", 800, 0, kernel(*SYSCALL, "__x64_sys_mkdir", "cgroup_mkdir", "native_queued_spin_lock_slowpath")
    )

    def held(cpu: int, at_s: float, dice: random.Random) -> Work | None:
        if not 5 <= at_s < 15:
            return None
        return {1: waiter, 4: worker}.get(cpu)

    def load(cpu: int, second: int, dice: random.Random) -> Mapping[str, float]:
        return {"sys": 100.0} if cpu in (1, 4) and 5 < second <= 15 else ordinary(cpu, second, dice)

    case = replace(SMALL, kernel="5.4.0", held=held, works=(worker, waiter), load=load, tracked=50_000,
                   directories=_tree(200))  # fmt: skip
    found = diagnosed(case, tmp_path)
    hogs = {incident.causes[0].hog.comm for incident in found.incidents if incident.causes}
    assert hogs == {"kubelet"}


def test_a_network_card_that_fails_by_itself_is_not_blamed_on_a_core(tmp_path: Path) -> None:
    reset = "ena 0000:00:05.0: Device reset completed successfully, Driver info: Elastic Network Adapter (ENA) v2.11.0g"

    def load(cpu: int, second: int, dice: random.Random) -> Mapping[str, float]:
        return {"usr": 1.0}

    case = replace(SMALL, busy=0.02, load=load, dmesg=((10.0, reset),))
    found = diagnosed(case, tmp_path)
    assert found.incidents
    for incident in found.incidents:
        assert not {"zombie-memcg", "cgroup-litter", "irq-imbalance"} & {cause.pattern for cause in incident.causes}


def test_stolen_time_is_the_hypervisors(tmp_path: Path) -> None:
    case = replace(SMALL, load=loads(3, 4, 16, "steal"))
    found = diagnosed(case, tmp_path)
    assert any(symptom.kind == "steal" for incident in found.incidents for symptom in incident.symptoms)
    assert named(found) <= {"steal"}


def _tree(count: int) -> tuple[str, ...]:
    root = "/sys/fs/cgroup/memory"
    return (root, *(f"{root}/kubepods/pod{number}" for number in range(count - 1)))


@pytest.mark.parametrize("hz", [49, 999])
def test_a_profile_alone_is_counted_at_its_own_rate(tmp_path: Path, hz: int) -> None:
    """Nothing in the text says how often perf sampled; 999 a second are one core, not ten."""
    hog = Work("reader", 700, 1, kernel(*SYSCALL, "__x64_sys_read", "vfs_read", "some_driver_read"))
    case = replace(SMALL, cpus=2, hz=hz, held=holds(hog, 1, 8.0, 12.0), works=(hog,))
    incident, cause = worst(diagnosed(case, tmp_path, leave_out=("mpstat",)))
    assert cause.hog.comm == "reader"
    assert cause.hog.cores == pytest.approx(1.0, abs=0.15)
    assert incident.seconds == pytest.approx(4.0, abs=0.6)


def test_a_third_of_a_core_is_no_hog_however_often_it_was_sampled(tmp_path: Path) -> None:
    hog = Work("reader", 700, 1, kernel(*SYSCALL, "__x64_sys_read", "vfs_read", "some_driver_read"))

    def third(cpu: int, at_s: float, dice: random.Random) -> Work | None:
        return hog if cpu == 1 and dice.random() < 0.3 else None

    case = replace(SMALL, cpus=2, hz=999, held=third, works=(hog,))
    assert not diagnosed(case, tmp_path, leave_out=("mpstat",)).incidents
