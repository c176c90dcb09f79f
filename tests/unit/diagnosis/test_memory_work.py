"""Work with memory is told apart by its kernel functions, and what is said and advised follows from its kind."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers import healthy
from tests.helpers.made import SECOND, START_US
from tests.helpers.scenes import SYSCALL, Scene

from zombiescope.diagnosis import memory_work
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.incident import Incident
from zombiescope.store.reader import open_recording

CALL = " ".join(SYSCALL)
FAULT = healthy.FAULT
SWAP_IN = f"{FAULT} do_swap_page swapin_readahead swap_read_folio"
MUNMAP = f"{CALL} __x64_sys_munmap __vm_munmap do_vmi_munmap unmap_vmas zap_pte_range"


@pytest.mark.parametrize(
    ("frames", "kind"),
    [
        (healthy.EXIT, "exit"),
        (f"{CALL} __x64_sys_execve begin_new_exec exec_mmap mmput exit_mmap", "start"),
        ("ret_from_fork kthread oom_reaper __oom_reap_task_mm unmap_page_range", "exit"),
        (healthy.CLOSE, "device"),
        (f"{healthy.EXIT} exit_files __fput uvm_release uvm_va_space_destroy", "device"),
        (healthy.PIN, "pinning"),
        (f"{CALL} __x64_sys_ioctl ib_uverbs_ioctl ib_umem_get pin_user_pages_fast handle_mm_fault", "pinning"),
        (f"{CALL} __x64_sys_ioctl nvidia_unlocked_ioctl rm_ioctl", "driver"),
        (SWAP_IN, "swap"),
        (healthy.SHMEM, "shared"),
        (f"{CALL} __x64_sys_unlink evict shmem_evict_inode shmem_undo_range", "shared"),
        (f"{CALL} ksys_write vfs_write shmem_file_write_iter generic_perform_write shmem_write_begin", "shared"),
        (healthy.MAPPED, "file"),
        (f"{FAULT} do_fault filemap_fault page_cache_ra_order", "file"),
        (f"{FAULT} do_wp_page wp_page_copy", "copy"),
        (MUNMAP, "release"),
        (healthy.TOUCH, "new"),
        (f"{FAULT} do_huge_pmd_anonymous_page clear_huge_page", "new"),
        (f"{FAULT} do_anonymous_page __alloc_pages_direct_compact compact_zone", "shortage"),
        (f"{FAULT} shmem_fault charge_memcg try_charge_memcg try_to_free_mem_cgroup_pages shrink_node", "shortage"),
        (f"{FAULT} down_read rwsem_down_read_slowpath", "lock"),
    ],
)
def test_a_stack_is_of_one_kind(frames: str, kind: str, tmp_path: Path) -> None:
    with open_recording(Scene().hog(frames).write(tmp_path)) as recording:
        grid = Facts(recording, recording.start_us, recording.end_us + 1).samples
        found = memory_work.kinds(grid.profile(grid.in_kernel))
    assert {one.name: count for one, count in found.items()} == {kind: len(grid)}


def only(scene: Scene, place: Path) -> Incident:
    (incident,) = scene.diagnose(place).incidents
    return incident


def said(incident: Incident) -> str:
    cause = incident.causes[0]
    return " ".join([cause.summary, cause.fix.summary, *map(str, cause.fix.steps)])


@pytest.mark.parametrize("frames", [healthy.EXIT, healthy.CLOSE, healthy.PIN, healthy.SHMEM, healthy.MAPPED,
                                    healthy.TOUCH, healthy.WRITE, healthy.READ])  # fmt: skip
def test_a_core_that_is_busy_with_ordinary_work_is_a_note(frames: str, tmp_path: Path) -> None:
    # GIVEN a node on which nothing else happens, so that the work is all that is new there
    scene = Scene().vmstat(pgfault=500_000).hog(frames, "python3").counter("stat", "processes", 90, calm_per_s=90)
    incident = only(scene, tmp_path)
    assert (incident.severity, incident.causes[0].pattern) in {("info", "memory-turnover"), ("info", "bulk-io")}
    assert "MALLOC" not in said(incident)


def test_ordinary_work_that_starves_a_card_is_not_a_note(tmp_path: Path) -> None:
    scene = Scene().vmstat(pgfault=500_000).hog(healthy.EXIT, "python3")
    scene.counter("ethtool", "suspected_poll_starvation", 3, "eth0")
    assert "critical" in {one.severity for one in scene.diagnose(tmp_path).incidents}


def test_shared_memory_is_not_mallocs(tmp_path: Path) -> None:
    incident = only(Scene().vmstat(pgfault=500_000).hog(healthy.SHMEM, "pt_data_worker"), tmp_path)
    assert "pt_data_worker fills shared memory (tmpfs, /dev/shm)" in said(incident)
    assert "persistent_workers" in said(incident)
    assert "page-fault-storm" in {one.pattern for one in incident.ruled_out}


def test_memory_that_is_given_back_and_touched_again_is_a_storm(tmp_path: Path) -> None:
    incident = only(Scene().vmstat(pgfault=500_000).storm(healthy.TOUCH, "allocator"), tmp_path)
    assert incident.causes[0].pattern == "page-fault-storm"
    assert incident.severity == "critical"
    assert "MALLOC_TRIM_THRESHOLD_" in said(incident)


@pytest.mark.parametrize(
    ("touches", "pattern"),
    [(healthy.SHMEM, "memory-turnover"), (healthy.MAPPED, "memory-turnover"), (healthy.TOUCH, "page-fault-storm")],
)
def test_what_is_given_back_is_of_the_kind_of_what_was_touched(touches: str, pattern: str, tmp_path: Path) -> None:
    # GIVEN a thread that maps each batch, touches it and unmaps it when it was copied to a device
    scene = Scene().vmstat(pgfault=500_000).counter("meminfo", "anon_pages_bytes", 0)
    scene.hog(touches, "pt_data_pin", share=0.45, pid=900).hog(MUNMAP, "pt_data_pin", share=0.5, pid=900)
    incident = only(scene, tmp_path)
    assert incident.causes[0].pattern == pattern


def test_memory_that_is_given_back_by_others_is_a_storm(tmp_path: Path) -> None:
    # GIVEN faults that bring in 2 GB a second, and memory in use that does not grow
    scene = Scene().vmstat(pgfault=500_000).hog(healthy.TOUCH, "allocator")
    scene.gauge("meminfo", "anon_pages_bytes", 3 << 30)
    assert only(scene, tmp_path).causes[0].pattern == "page-fault-storm"


def test_memory_that_was_not_read_since_is_not_said_to_stand_still(tmp_path: Path) -> None:
    # GIVEN a job that just started, which gives back a little, and /proc/meminfo from before it began
    scene = Scene().vmstat(pgfault=500_000).hog(healthy.TOUCH, "pt_data_worker", share=0.9)
    scene.hog(MUNMAP, "pt_data_worker", share=0.09)
    number = scene.made.series("meminfo", "anon_pages_bytes", None, "gauge")
    scene.made.count(START_US + SECOND, number, 3 << 30)
    found = scene.diagnose(tmp_path).incidents
    assert {one.severity for one in found} <= {"info"}
    assert "page-fault-storm" not in {one.causes[0].pattern for one in found}


def test_pages_from_swap_are_too_little_memory(tmp_path: Path) -> None:
    incident = only(Scene().vmstat(pgfault=9_000, pswpin=8_000).hog(SWAP_IN, "redis-server"), tmp_path)
    assert incident.causes[0].pattern == "page-fault-storm"
    assert incident.causes[0].confidence > 0.5
    assert "redis-server waits for pages that come back from swap" in said(incident)
    assert "MALLOC" not in said(incident)


# --- what looks like a storm of others -------------------------------------------------------------------------------


def patterns_of(scene: Scene, place: Path) -> set[str]:
    """Those that something confirms."""
    found = scene.diagnose(place).incidents
    return {cause.pattern for one in found for cause in one.causes if cause.confidence > 0.5}


def test_filters_of_a_sandbox_are_no_agent(tmp_path: Path) -> None:
    scene = Scene().vmstat().hog(healthy.SECCOMP, "sandboxed").hog("", "falco", cpu=0, share=0.3, pid=800)
    assert "bpf-agent" not in patterns_of(scene, tmp_path)


def test_programs_of_an_agent_beside_filters_are_the_agents(tmp_path: Path) -> None:
    scene = Scene().vmstat().hog(healthy.SECCOMP, "sandboxed", share=0.2)
    scene.hog("do_syscall_64 trace_call_bpf bpf_prog_6deef7357e7b4530_sys_enter", "sandboxed", share=0.8)
    assert "bpf-agent" in patterns_of(scene.hog("", "falco", cpu=0, share=0.3, pid=800), tmp_path)


def test_a_reader_of_sysfs_walks_no_cgroups(tmp_path: Path) -> None:
    # GIVEN a node that does have too many of them
    scene = Scene().vmstat().census(50_000, 10).hog(healthy.OPENS, "exporter", share=0.7)
    scene.hog(healthy.SYSFS, "exporter", share=0.3)
    assert "cgroup-litter" not in patterns_of(scene, tmp_path)


def test_threads_of_one_that_ends_are_no_storm_of_processes(tmp_path: Path) -> None:
    # GIVEN a process of many threads that ends, while the node starts a hundred processes a second as always
    scene = Scene().vmstat().counter("stat", "processes", 600, calm_per_s=100)
    for number in range(40):
        scene.hog(healthy.EXIT, "python3", pid=3000, tid=3000 + number, ppid=700, share=0.025)
    assert "fork-storm" not in patterns_of(scene, tmp_path)


def test_children_that_compute_are_no_storm_and_those_that_do_not_are_one(tmp_path: Path) -> None:
    def started(outside: float) -> Scene:
        scene = Scene(cpus=16).vmstat().counter("stat", "processes", 900)
        for number in range(60):
            at_s, who = 5 + number * 0.1, {"pid": 5000 + number, "ppid": 700}
            scene.hog(healthy.EXEC, "sh", from_s=at_s, to_s=at_s + 0.1, **who)
            for cpu in range(2, 6):
                scene.hog("", "cc1", cpu=cpu, share=outside, from_s=at_s, to_s=at_s + 0.1, **who)
        return scene.hog("", "ninja", pid=700, cpu=0, share=0.1)

    assert "fork-storm" not in patterns_of(started(0.9), tmp_path / "compile")
    assert "fork-storm" in patterns_of(started(0.1), tmp_path / "storm")


def test_reclaim_is_a_note_only_while_nobody_waits(tmp_path: Path) -> None:
    def reclaim(**waits: float) -> Scene:
        scene = Scene().vmstat(pgscan_kswapd=400_000, pgsteal_kswapd=390_000, **waits)
        return scene.hog(healthy.KSWAPD, "kswapd0", ppid=2)

    assert only(reclaim(), tmp_path / "read").severity == "info"
    assert only(reclaim(allocstall=40, pgscan_direct=90_000), tmp_path / "wait").severity == "critical"


def test_kswapd_that_frees_little_of_what_it_looks_at_is_no_note(tmp_path: Path) -> None:
    scene = Scene().vmstat(pgscan_kswapd=400_000, pgsteal_kswapd=9_000).hog(healthy.KSWAPD, "kswapd0", ppid=2)
    assert only(scene, tmp_path).severity == "critical"


@pytest.mark.parametrize(
    ("shared", "pattern", "severity"), [(0.55, "memory-turnover", "info"), (0.35, "page-fault-storm", "critical")]
)
def test_what_there_is_more_of_says_which_it_is(shared: float, pattern: str, severity: str, tmp_path: Path) -> None:
    # GIVEN one that passes batches through shared memory, and takes memory of its own and gives it back meanwhile
    scene = Scene().vmstat(pgfault=500_000).hog(healthy.SHMEM, "data-worker", share=shared)
    scene.hog(healthy.TOUCH, "data-worker", share=0.7 - shared * 0.7)
    scene.hog(MUNMAP, "data-worker", share=0.3 - shared * 0.3)
    incident = only(scene, tmp_path)
    assert (incident.causes[0].pattern, incident.severity) == (pattern, severity)


# --- core dumps, large forks, pollers, tracers -----------------------------------------------------------------------

DUMP = "get_signal do_coredump elf_core_dump dump_user_range get_dump_page __get_user_pages handle_mm_fault"
COPY_TABLES = f"{CALL} __x64_sys_clone kernel_clone copy_process dup_mm dup_mmap copy_page_range copy_pte_range"


@pytest.mark.parametrize("dump", [DUMP, DUMP.replace("do_coredump", "vfs_coredump")])
def test_a_core_dump_is_no_storm_of_page_faults(tmp_path: Path, dump: str) -> None:
    scene = Scene().vmstat(pgfault=400_000).hog(dump, "python3", unit="trainer.service")
    one = only(scene, tmp_path)
    assert one.causes[0].pattern == "core-dump"
    assert "python3 crashed" in one.causes[0].summary
    assert "page-fault-storm" not in {cause.pattern for cause in one.causes}


def test_a_fork_of_a_large_heap_is_neither_turnover_nor_a_storm(tmp_path: Path) -> None:
    # GIVEN a process that forks twice a second, and copies the pages that it writes after that
    scene = Scene().vmstat(pgfault=150_000).counter("stat", "processes", 2)
    for fork in range(12):
        scene.hog(COPY_TABLES, "python3", from_s=5 + fork / 2, to_s=5.2 + fork / 2)
        scene.hog(f"{FAULT} do_wp_page wp_page_copy", "python3", from_s=5.2 + fork / 2, to_s=5.5 + fork / 2)
    one = only(scene, tmp_path)
    assert one.causes[0].pattern == "large-fork"
    assert {"memory-turnover", "fork-storm"}.isdisjoint(cause.pattern for cause in one.causes)


def test_copying_that_many_small_processes_share_is_no_large_fork(tmp_path: Path) -> None:
    scene = Scene().vmstat().counter("stat", "processes", 900).hog(COPY_TABLES, "sh", ppid=700)
    assert "large-fork" not in {cause.pattern for cause in only(scene, tmp_path).causes}


@pytest.mark.parametrize(
    ("comm", "frames"),
    [
        ("iou-sqp-1201", "ret_from_fork io_sq_thread __io_sq_thread io_submit_sqes"),
        ("vhost-1201", "ret_from_fork vhost_task_fn vhost_run_work_list handle_tx_kick handle_tx_copy"),
    ],
)
def test_a_thread_that_polls_for_a_program_is_ordinary(tmp_path: Path, comm: str, frames: str) -> None:
    scene = Scene().vmstat().hog(frames, comm, tid=1202, from_s=5, to_s=17)
    scene.hog("", "server", pid=1201, cpu=0, share=0.2)
    one = only(scene, tmp_path)
    assert one.causes[0].pattern == "kernel-poller"
    assert one.severity == "info"
    assert one.causes[0].culprit is not None
    assert one.causes[0].culprit.comm == "server"


def test_a_program_that_only_has_a_pollers_name_is_none(tmp_path: Path) -> None:
    scene = Scene().vmstat().hog(f"{CALL} ksys_read vfs_read odd_driver_read", "iou-sqp-1201", from_s=5, to_s=17)
    one = only(scene, tmp_path)
    assert one.causes[0].pattern == "unknown-kernel-hog"
    assert one.severity == "warning"


def test_a_tracer_is_told_from_whom_it_traces(tmp_path: Path) -> None:
    scene = Scene().vmstat()
    scene.hog(f"{CALL} syscall_trace_enter ptrace_report_syscall_entry ptrace_stop schedule", "python3", share=0.6)
    scene.hog(f"{CALL} __x64_sys_ptrace ptrace_check_attach wait_task_inactive", "strace", pid=1301, share=0.4)
    cause = only(scene, tmp_path).causes[0]
    assert cause.pattern == "tracer"
    assert cause.culprit is not None
    assert cause.culprit.comm == "strace"
    assert "/proc/1201/status" in " ".join(step.line for step in cause.fix.steps)
