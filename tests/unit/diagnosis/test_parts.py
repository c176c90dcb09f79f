"""A pattern that explains the smaller part of what a program does in the kernel is not its cause."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.made import SECOND
from tests.helpers.scenes import SYSCALL, Scene

from zombiescope.diagnosis.diagnose import _with_own_ids, _without_parts
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.incident import Actor, Cause, Fix, Incident
from zombiescope.diagnosis.pattern import FALLBACK, signature
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.diagnosis.symptoms import kernel_hog
from zombiescope.store.reader import open_recording

CALL = " ".join(SYSCALL)
STAT = f"{CALL} __x64_sys_newfstatat vfs_statx filename_lookup"
FAULT = "asm_exc_page_fault exc_page_fault handle_mm_fault do_anonymous_page"
UNMAP = f"{CALL} __x64_sys_munmap __vm_munmap do_vmi_munmap unmap_vmas zap_pte_range"
RESERVE = f"{CALL} vm_mmap_pgoff do_mmap mmap_region vma_link"


def of(frames: dict[str, float], directory: Path) -> Incident:
    """Threads of one program that come and go, and what they do in the kernel."""
    scene = Scene().vmstat(pgfault=300_000).counter("stat", "processes", 4_000)
    for number in range(20):
        at_s = 5 + number * 0.3
        for path, share in frames.items():
            scene.hog(path, "worker", pid=900, tid=5000 + number, ppid=700, from_s=at_s, to_s=at_s + 0.3, share=share)
    return scene.diagnose(directory).incidents[0]


def shares(fork: float, other: str, rest: float) -> dict[str, float]:
    return {f"{CALL} __x64_sys_clone3 kernel_clone copy_process dup_task_struct": fork, other: rest}


def named(incident: Incident, pattern: str) -> Cause:
    return next(one for one in incident.causes if one.pattern == pattern)


def test_a_call_that_has_more_of_the_time_is_what_is_not_known(tmp_path: Path) -> None:
    # GIVEN a program that starts 4,000 threads a second, and spends twice as much on looking at files
    incident = of(shares(0.3, STAT, 0.6), tmp_path)
    assert incident.causes[0].pattern == "unknown-kernel-hog"
    assert "newfstatat" in incident.causes[0].summary
    (known,) = [link.fact for link in incident.causes[0].chain if link.step == "part"]
    assert known == "worker starts 4,000 threads a second: 33% of its kernel time"
    # THEN the threads are told as what they are, and nobody is told to change anything for them
    part = named(incident, "fork-storm")
    assert part.confidence <= 0.5
    assert "only part of the explanation: newfstatat has 67% of its kernel time, this pattern 33%" in [
        link.fact for link in part.chain
    ]
    assert not [step for step in part.fix.steps if step.kind == "change"]


def test_a_pattern_with_more_than_any_other_call_is_the_cause(tmp_path: Path) -> None:
    incident = of(shares(0.5, STAT, 0.4), tmp_path)
    assert incident.causes[0].pattern == "fork-storm"
    assert incident.causes[0].confidence > 0.8


def test_the_call_that_a_pattern_is_about_is_no_other_one(tmp_path: Path) -> None:
    # GIVEN reads, a third of whose time goes into finding memory below a limit
    read = f"{CALL} __x64_sys_pread64 vfs_read filemap_read"
    reclaim = f"{read} try_charge_memcg try_to_free_mem_cgroup_pages shrink_node shrink_lruvec shrink_folio_list"
    scene = Scene().vmstat().cgroup_stats("/limited", memory_max_events=90_000, has_memory_limit=1)
    scene.hog(reclaim, "reader", share=0.35, cgroup="/limited").hog(f"{read} copy_page_to_iter", "reader", share=0.6,
                                                                     cgroup="/limited")  # fmt: skip
    (incident,) = scene.diagnose(tmp_path).incidents
    assert incident.causes[0].pattern == "memcg-limit-reclaim"


def test_taking_memory_and_giving_it_back_belongs_to_its_faults(tmp_path: Path) -> None:
    scene = Scene().vmstat(pgfault=300_000)
    for path, share in ((FAULT, 0.3), (UNMAP, 0.2), (RESERVE, 0.45)):
        scene.hog(path, "toucher", share=share)
    (incident,) = scene.diagnose(tmp_path).incidents
    assert incident.causes[0].pattern == "page-fault-storm"


@pytest.mark.parametrize(("shared", "first"), [(0.6, "memory-turnover"), (0.3, "fork-storm")])
def test_processes_that_mostly_fill_memory_are_no_storm_of_processes(tmp_path: Path, shared: float, first: str) -> None:
    fork = f"{CALL} __x64_sys_clone kernel_clone copy_process dup_mmap copy_page_range"
    fill = f"{CALL} __x64_sys_fallocate vfs_fallocate shmem_fallocate shmem_get_folio_gfp clear_page_erms"
    scene = Scene().vmstat().counter("stat", "processes", 400)
    for number in range(20):
        at_s = 5 + number * 0.3
        for path, share in ((fork, 0.9 - shared), (fill, shared)):
            scene.hog(path, "worker", pid=5000 + number, ppid=700, from_s=at_s, to_s=at_s + 0.3, share=share)
    incident = scene.diagnose(tmp_path).incidents[0]
    assert incident.causes[0].pattern == first
    ruled_out = {one.pattern: one.because for one in incident.ruled_out}
    assert ("fork-storm" in ruled_out) == (first == "memory-turnover")


def test_functions_that_no_stack_has_are_below_nothing(tmp_path: Path) -> None:
    """A path is shown for what a signature found, and not for all that its caller did."""
    scene = Scene().hog(f"{CALL} __x64_sys_mprotect do_mprotect_pkey change_protection", "guard")
    with open_recording(scene.write(tmp_path)) as recording:
        grid = Facts(recording, recording.start_us, recording.end_us + 1).samples
    profile = grid.profile(grid.in_kernel)
    assert signature("do_mprotect_pkey", "rwsem_down_read_slowpath").of(profile).kernel_samples == 0
    assert signature("do_mprotect_pkey", "change_protection").of(profile).kernel_samples > 0
    assert signature("do_mprotect_pkey").of(profile).kernel_samples > 0


@pytest.mark.parametrize(("cores", "parent"), [(2, 1.0), (8, 1.0), (8, 0.0)])
def test_children_that_yield_are_made_by_their_parent(tmp_path: Path, cores: int, parent: float) -> None:
    """A parent that does nothing but make them has their name; all of them together, and the children alone, are two
    hogs that began in one second."""
    scene = Scene(cpus=2 * cores).vmstat().counter("stat", "processes", 4_000)
    for number in range(20):
        on, span = number % cores, {"from_s": 5 + number * 0.3, "to_s": 5.3 + number * 0.3}
        if parent:
            fork = f"{CALL} __x64_sys_clone kernel_clone copy_process dup_mmap"
            scene.hog(fork, "resched", pid=700, cpu=cores + on, share=parent, **span)
        for path, share in (
            (f"{CALL} __x64_sys_sched_yield do_sched_yield schedule", 0.55),
            (f"{CALL} __x64_sys_exit_group do_group_exit do_exit exit_mmap", 0.42),
        ):
            scene.hog(path, "resched", pid=5000 + number, ppid=700, cpu=on, share=share, **span)
    found = scene.diagnose(tmp_path).incidents
    first = {one.causes[0].pattern for one in found}
    assert first == ({"fork-storm"} if parent else {"unknown-kernel-hog"})
    assert len({one.id for one in found}) == len(found)


def incident(pattern: str, from_us: int) -> Incident:
    """One of many that have one id."""
    strength = 0.1 if pattern == FALLBACK else 0.9
    cause = Cause(pattern, "kernel", strength, "", Actor("agent"), None, (), (), Fix(""), "", strength=strength)
    symptom = Symptom(kernel_hog.DETECTOR, from_us, from_us + SECOND, "", "info", facts={"moderate": False})
    return Incident("one", from_us, from_us + SECOND, "closed", "warning", (symptom,), (cause,), ())


def test_what_has_the_same_id_is_neither_lost_nor_mixed_up() -> None:
    # GIVEN what is not known and what is, by the same hog in the same second, and a third with another cause
    whole, part, other = (incident(pattern, 0) for pattern in ("fork-storm", FALLBACK, "mount-storm"))
    for found in ([whole, part, other], [part, whole, other], [other, part, whole]):
        left = _without_parts(found)
        assert {one.causes[0].pattern for one in left} == {"fork-storm", "mount-storm"}
        assert len({one.id for one in _with_own_ids(left)}) == 2
