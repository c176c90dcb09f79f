"""What looks like a fault and is none, or is another one: nothing and nobody may be blamed for it."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.helpers.made import SECOND, START_US
from tests.helpers.scenes import SYSCALL, Scene

from zombiescope.diagnosis.diagnose import diagnose
from zombiescope.diagnosis.kernel_entry import system_call
from zombiescope.store.reader import open_recording

CALL = " ".join(SYSCALL)


def test_zombies_that_nobody_walks_are_no_incident(tmp_path: Path) -> None:
    # GIVEN 70,000 zombies on a kernel whose statistics do not walk them, and a kubelet that has little to do
    scene = Scene(kernel="6.18.0").census(240, 70_000).leak("/ecs/*", 70_000, 500, 500, "ecs-agent").vmstat()
    scene.hog(f"{CALL} vfs_read memory_stat_show", "kubelet", share=0.01, from_s=0, to_s=20)
    found = scene.diagnose(tmp_path)
    assert found.incidents == ()
    # AND it is said that they are there, and that they are harmless here
    churn, said = found.noted
    assert "/ecs/*" in churn
    assert "70,000" in said
    assert "on kernel 6.18 reading statistics is cheap" in said
    assert "no process was seen walking them" in said


def test_a_core_in_a_training_step_is_no_incident(tmp_path: Path) -> None:
    scene = Scene().vmstat().census(240, 70_000).hog("", "python", from_s=0, to_s=20)
    assert scene.diagnose(tmp_path).incidents == ()


def test_who_waits_for_a_lock_is_neither_hog_nor_culprit(tmp_path: Path) -> None:
    # GIVEN a task that spins for a lock, and another that works while it holds it
    scene = Scene().vmstat().census(240, 68_440).leak("/ecs/*", 68_000, 500, 500, "ecs-agent")
    scene.hog(f"{CALL} cgroup_mkdir _raw_spin_lock native_queued_spin_lock_slowpath", "waiter", cpu=2, pid=2000)
    scene.hog(f"{CALL} vfs_read seq_read memcg_numa_stat_show mem_cgroup_nr_lru_pages", "kubelet", cpu=1, pid=1201)
    found = scene.diagnose(tmp_path)
    blamed = {actor.comm for incident in found.incidents for cause in incident.causes
              for actor in (cause.hog, cause.culprit) if actor is not None and cause.confidence > 0.5}  # fmt: skip
    assert "waiter" not in blamed
    assert {"kubelet", "ecs-agent"} <= blamed


def test_a_waiter_alone_is_not_explained(tmp_path: Path) -> None:
    scene = Scene().vmstat().census(240, 30)
    scene.hog(f"{CALL} do_futex _raw_spin_lock native_queued_spin_lock_slowpath", "waiter", cpu=2, pid=2000)
    found = scene.diagnose(tmp_path)
    assert found.incidents
    assert {cause.pattern for incident in found.incidents for cause in incident.causes} <= {"unknown-kernel-hog"}


@pytest.mark.parametrize(
    ("frames", "asked"),
    [
        ("entry_SYSCALL_64_after_hwframe do_syscall_64 __x64_sys_getdents64 iterate_dir", "getdents64"),
        ("do_syscall_64 ksys_read vfs_read", "read"),
        ("el0_svc invoke_syscall __arm64_sys_futex do_futex", "futex"),
        ("do_syscall_64 __do_sys_clone.isra.0 kernel_clone", "clone"),
        ("system_call_fastpath sys_read vfs_read", "read"),
        ("entry_SYSCALL_64_fastpath SyS_newfstatat vfs_statx", "newfstatat"),
        ("asm_exc_page_fault exc_page_fault handle_mm_fault", None),
        ("ret_from_fork kthread worker_thread", None),
        ("entry_SYSCALL_64_after_hwframe do_syscall_64 __x64_sys_sendfile64 do_sendfile", "sendfile"),
        ("do_syscall_64 ksys_mmap_pgoff vm_mmap_pgoff do_mmap", "mmap"),
        ("do_syscall_64 vm_mmap_pgoff do_mmap", "mmap"),
        ("invoke_syscall __arm64_sys_newfstat vfs_fstat", "fstat"),
    ],
)
def test_what_is_not_known_is_told_with_the_call_that_was_made(frames: str, asked: str | None) -> None:
    assert system_call(tuple(frames.split())) == asked


def test_an_unknown_hog_is_told_by_its_call_and_its_path(tmp_path: Path) -> None:
    scene = Scene().vmstat().hog(f"{CALL} __x64_sys_getdents64 iterate_dir offset_readdir", "lister")
    (incident,) = scene.diagnose(tmp_path).incidents
    said = "lister was busy in the kernel, in getdents64: iterate_dir > offset_readdir; no known pattern matches"
    assert incident.causes[0].summary == f"core 1 starved for 6 s: {said}"


def test_the_commands_that_are_printed_for_an_unknown_hog_run_as_printed(tmp_path: Path) -> None:
    scene = Scene().vmstat().hog(f"{CALL} __x64_sys_getdents64 iterate_dir offset_readdir", "lister")
    (incident,) = scene.diagnose(tmp_path / "a recording").incidents
    printed = [str(step) for step in incident.causes[0].fix.steps if step.command is not None]
    assert [line.split()[:2] for line in printed] == [["zombiescope", "flamegraph"], ["zombiescope", "diff"]]
    for line in printed:
        words = shlex.split(line, comments=True)
        done = subprocess.run(
            [sys.executable, "-m", "zombiescope.cli.main", *words[1:]], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (line, done.stderr)
        assert "offset_readdir" in done.stdout


def test_nobody_is_sent_to_a_recording_that_is_removed_afterwards(tmp_path: Path) -> None:
    scene = Scene().vmstat().hog(f"{CALL} __x64_sys_getdents64 iterate_dir offset_readdir", "lister")
    with open_recording(scene.write(tmp_path), temporary=True) as recording:
        (incident,) = diagnose(recording, recording.start_us, recording.end_us + 1).incidents
    (step,) = [step for step in incident.causes[0].fix.steps if step.command is not None]
    assert step.line == "zombiescope up"


def test_a_card_that_is_reset_with_every_core_idle_is_hardware(tmp_path: Path) -> None:
    scene = Scene().vmstat().census(240, 70_000).leak("/ecs/*", 70_000, 500, 500, "ecs-agent")
    scene.event("nic_reset", "ena 0000:20:03.0 eth0: Keep alive watchdog timeout.", reset_reason="keep_alive_to")
    (incident,) = scene.diagnose(tmp_path).incidents
    assert [cause.pattern for cause in incident.causes] == ["hardware-nic-reset"]
    assert incident.causes[0].culprit is None
    assert "zombie-memcg" in {one.pattern for one in incident.ruled_out}


def test_a_starved_poll_loop_is_not_hardware(tmp_path: Path) -> None:
    scene = Scene().vmstat()
    scene.event("nic_tx_timeout", "TX q 5 is paused for too long", napi_scheduled=1, reset_reason="os_netdev_wd")
    found = scene.diagnose(tmp_path)
    assert "hardware-nic-reset" not in {cause.pattern for incident in found.incidents for cause in incident.causes}


def test_stolen_time_blames_nobody_here(tmp_path: Path) -> None:
    scene = Scene().vmstat().census(240, 70_000).mode(1, steal=0.7)
    scene.hog(f"{CALL} vfs_read seq_read memcg_numa_stat_show mem_cgroup_nr_lru_pages", "kubelet", share=0.3)
    (incident,) = scene.diagnose(tmp_path).incidents
    assert incident.causes[0].pattern == "steal"
    assert incident.causes[0].culprit is None


def test_walked_zombies_below_a_limit_are_not_a_tight_limit(tmp_path: Path) -> None:
    """The form that the founding case takes on kernels of today: reclaim below a limited parent visits every zombie."""
    path = (
        f"{CALL} vfs_read charge_memcg try_charge_memcg try_to_free_mem_cgroup_pages do_try_to_free_pages shrink_node"
    )
    scene = Scene(kernel="6.18.0").vmstat().census(30, 20_000).leak("/pods/job-*", 20_000, 20_000, 20_000, "leaky")
    scene.cgroup_stats("/pods/live", memory_max_events=90_000, has_memory_limit=1)
    scene.hog(f"{path} mem_cgroup_iter", "reader", share=0.6, cgroup="/pods/live")
    scene.hog(f"{path} shrink_lruvec", "reader", share=0.3, cgroup="/pods/live")
    scene.hog(f"{path} shrink_lruvec shrink_folio_list", "reader", share=0.1, cgroup="/pods/live")
    (incident,) = scene.diagnose(tmp_path).incidents
    assert incident.causes[0].pattern == "zombie-memcg"
    assert "memcg-limit-reclaim" in {one.pattern for one in incident.ruled_out}


def test_pages_that_are_flushed_to_free_memory_are_no_unmapping(tmp_path: Path) -> None:
    reclaim = "try_charge_memcg try_to_free_mem_cgroup_pages do_try_to_free_pages shrink_node shrink_folio_list"
    flush = "try_to_unmap_flush arch_tlbbatch_flush on_each_cpu_cond_mask smp_call_function_many_cond"
    scene = Scene(kernel="6.18.0").vmstat().interrupts("TLB", 90_000, calm_per_s=300)
    scene.hog(f"asm_exc_page_fault handle_mm_fault do_swap_page {reclaim} {flush}", "thrasher")
    (incident,) = scene.diagnose(tmp_path).incidents
    assert "tlb-shootdown" in {one.pattern: one.because for one in incident.ruled_out}


def test_faults_of_new_processes_are_a_storm_of_processes(tmp_path: Path) -> None:
    scene = Scene().vmstat(pgfault=300_000).counter("stat", "processes", 1_000).counter("stat", "ctxt", 9_000)
    for number in range(20):
        from_s = 5 + number * 0.3
        fault = f"{CALL} __x64_sys_execve load_elf_binary asm_exc_page_fault handle_mm_fault"
        scene.hog(fault, "sh", pid=5000 + number, ppid=700, from_s=from_s, to_s=from_s + 0.3)
    (incident,) = scene.diagnose(tmp_path).incidents
    assert incident.causes[0].pattern == "fork-storm"
    assert incident.causes[0].culprit is not None
    assert incident.causes[0].culprit.pid == 700
    assert "page-fault-storm" in {one.pattern for one in incident.ruled_out}


def test_what_the_founding_team_tried_is_ruled_out_by_numbers(tmp_path: Path) -> None:
    """Huge pages, an allocator, affinity, limits, capacity, network allowances: weeks, then; a line each, now."""
    scene = Scene().vmstat(pgfault=9_000).census(240, 68_440).leak("/ecs/*", 68_000, 500, 500, "ecs-agent")
    scene.cgroup_stats("/pods/job", nr_periods=100, nr_throttled=2, throttled_us=9_000, has_cpu_quota=1)
    scene.node["nics"] = {"eth0": "ena 2.11.0g"}
    scene.serves("eth0", "1")
    scene.hog(f"{CALL} vfs_read seq_read memcg_numa_stat_show mem_cgroup_nr_lru_pages", "kubelet")
    scene.event("nic_reset", "eth0: Device reset completed")
    (incident,) = scene.diagnose(tmp_path).incidents
    assert incident.causes[0].pattern == "zombie-memcg"
    told = {one.pattern: one for one in incident.ruled_out}
    for pattern in ("thp-compaction", "page-fault-storm", "scheduler-contention", "cfs-throttle", "cpu-capacity",
                    "network-allowance", "steal", "hardware-nic-reset"):  # fmt: skip
        assert told[pattern].value is not None, pattern
        assert any(letter.isdigit() for letter in told[pattern].because), pattern
    # THEN they stand first in the list, where they are read
    assert {one.pattern for one in incident.ruled_out[:7]} >= {"thp-compaction", "page-fault-storm", "cfs-throttle"}


def test_a_source_that_is_read_rarely_does_not_look_as_if_it_stood_still(tmp_path: Path) -> None:
    # GIVEN vmstat that was read every ten seconds, and a storm of faults between two readings
    scene = Scene().storm("asm_exc_page_fault exc_page_fault handle_mm_fault clear_page_erms", from_s=5, to_s=9)
    number = scene.made.series("vmstat", "pgfault")
    for second, faults in ((4, 30_000), (14, 4_000_000)):
        scene.made.count(1_760_000_000_000_000 + second * 1_000_000, number, faults)
    (incident,) = scene.diagnose(tmp_path).incidents
    assert incident.causes[0].pattern == "page-fault-storm"


def test_a_level_that_was_read_before_it_rose_refutes_nothing(tmp_path: Path) -> None:
    scene = Scene(kernel="6.18.0").hog(f"{CALL} inotify_update_watch fsnotify_set_children_dentry_flags", "watcher")
    number = scene.made.series("dentry", "negative", kind="gauge")
    scene.made.count(1_760_000_001_000_000, number, 12_000)
    (incident,) = scene.diagnose(tmp_path).incidents
    assert incident.causes[0].pattern == "negative-dentries"
    assert incident.causes[0].confidence <= 0.5


def test_who_held_the_core_is_the_hog_and_not_who_was_busy_on_all_the_others(tmp_path: Path) -> None:
    """A program with a little kernel time on many cores is in the kernel for more than a core's worth, too."""
    scene = Scene(cpus=8).census(240, 68_440)
    scene.hog("do_syscall_64 vfs_read memcg_numa_stat_show mem_cgroup_nr_lru_pages", "kubelet", cpu=1)
    for cpu in range(2, 8):
        scene.hog("do_syscall_64 do_futex", "nccl", cpu=cpu, pid=400 + cpu, share=0.6, from_s=4, to_s=12)
    incident = scene.diagnose(tmp_path).incidents[0]
    assert incident.causes[0].hog.comm == "kubelet"
    assert incident.causes[0].pattern == "zombie-memcg"


def test_a_hole_in_one_core_is_code_with_interrupts_off(tmp_path: Path) -> None:
    found = Scene().vmstat().mode(2, max_gap_us=170_000).diagnose(tmp_path)
    assert {symptom.kind for incident in found.incidents for symptom in incident.symptoms} == {"stall"}
    assert "steal" not in {cause.pattern for incident in found.incidents for cause in incident.causes}


def test_idle_time_that_is_not_sampled_is_no_hole(tmp_path: Path) -> None:
    """Some machines deliver no sample from the idle task of a core; /proc/stat knows that it was idle."""
    scene = Scene().vmstat().mode(2, max_gap_us=800_000, idle_samples=0)
    assert not scene.diagnose(tmp_path).incidents


def test_a_machine_that_stood_still_for_a_moment_is_no_incident(tmp_path: Path) -> None:
    scene = Scene().vmstat()
    for cpu in range(4):
        scene.mode(cpu, max_gap_us=170_000 + cpu)
    assert scene.diagnose(tmp_path).incidents == ()


def test_a_full_connection_table_of_another_namespace_is_seen_in_the_samples(tmp_path: Path) -> None:
    scene = Scene().gauge("conntrack", "count", 900).gauge("conntrack", "max", 262_144)
    scene.hog(f"{CALL} raw_sendmsg ip_output nf_conntrack_in init_conntrack __nf_conntrack_alloc early_drop", "sender")
    (incident,) = scene.diagnose(tmp_path).incidents
    assert incident.causes[0].pattern == "conntrack"
    assert incident.causes[0].confidence > 0.5
    assert incident.causes[0].culprit is not None
    assert incident.causes[0].culprit.comm == "sender"


NETNS_SETUP = f"{CALL} __x64_sys_unshare create_new_namespaces copy_net_ns setup_net ops_init"
NETNS_TEARDOWN = "ret_from_fork kthread worker_thread process_one_work cleanup_net ops_undo_list"


def test_work_that_is_shared_by_a_caller_and_the_kworkers_behind_it_has_no_hog_and_is_found(tmp_path: Path) -> None:
    # GIVEN two cores; nobody has 0.9 of one, and together they have 1.3, as a churn of network namespaces was measured
    scene = Scene(cpus=2).vmstat()
    scene.hog(NETNS_SETUP, "sandboxer", cpu=0, pid=2000, share=0.7).hog(
        NETNS_TEARDOWN, "kworker", cpu=1, pid=60, share=0.6
    )
    (incident,) = scene.diagnose(tmp_path).incidents
    assert incident.causes[0].pattern == "netns-churn"
    assert incident.causes[0].culprit is not None
    assert incident.causes[0].culprit.comm == "sandboxer"


def test_what_a_large_node_always_does_is_no_incident(tmp_path: Path) -> None:
    # GIVEN a caller and kworkers with a core's worth of kernel time together since the recording began
    scene = Scene(cpus=64).vmstat()
    for comm, frames, cpu, pid in (("proxy", "tcp_sendmsg", 0, 2000), ("kworker/1:0", "process_one_work", 1, 60)):
        scene.hog(f"{CALL} {frames}", comm, cpu=cpu, pid=pid, share=0.6, from_s=0, to_s=20)
    assert scene.diagnose(tmp_path).incidents == ()


def test_threads_are_started_by_their_own_process(tmp_path: Path) -> None:
    scene = Scene().counter("stat", "processes", 4_000)
    for number in range(20):
        at_s = 5 + number * 0.3
        scene.hog(f"{CALL} kernel_clone copy_process dup_task_struct", "pool", pid=900, tid=5000 + number, ppid=700,
                  from_s=at_s, to_s=at_s + 0.3)  # fmt: skip
    (incident,) = scene.diagnose(tmp_path).incidents
    cause = incident.causes[0]
    assert cause.pattern == "fork-storm"
    assert "pool starts 4,000 threads a second" in cause.summary
    assert cause.culprit is not None
    assert cause.culprit.pid == 900


def test_children_that_run_no_other_program_have_their_parents_name(tmp_path: Path) -> None:
    # GIVEN a parent that waits all the time and is in no sample
    scene = Scene().counter("stat", "processes", 4_000)
    for number in range(20):
        at_s = 5 + number * 0.3
        scene.hog(f"{CALL} kernel_clone copy_process dup_mmap", "forker", pid=5000 + number, ppid=700, cgroup="/jobs",
                  from_s=at_s, to_s=at_s + 0.3)  # fmt: skip
    culprit = scene.diagnose(tmp_path).incidents[0].causes[0].culprit
    assert culprit is not None
    assert (culprit.comm, culprit.pid) == ("forker", 700)


def test_a_program_that_is_run_again_and_again_is_its_parents_doing(tmp_path: Path) -> None:
    # GIVEN iptables-restore, twenty times in six seconds, started by a proxy that does little itself
    scene = Scene()
    for number in range(20):
        at_s = 5 + number * 0.3
        scene.hog(f"{CALL} nfnetlink_rcv_batch nf_tables_newrule nft_expr_init", "iptables-restor", pid=5000 + number,
                  ppid=700, from_s=at_s, to_s=at_s + 0.3)  # fmt: skip
    scene.hog("", "kube-proxy", pid=700, cpu=0, share=0.1)
    cause = scene.diagnose(tmp_path).incidents[0].causes[0]
    assert cause.pattern == "iptables-storm"
    assert cause.culprit is not None
    assert cause.culprit.comm == "kube-proxy"


def test_a_program_that_lives_is_to_blame_itself(tmp_path: Path) -> None:
    scene = Scene().hog("", "shim", pid=700, cpu=0, share=0.1)
    scene.hog(f"{CALL} nfnetlink_rcv_batch nf_tables_newrule nft_expr_init", "felix", pid=5000, ppid=700)
    cause = scene.diagnose(tmp_path).incidents[0].causes[0]
    assert cause.culprit is not None
    assert cause.culprit.comm == "felix"


def crowd(**shares: float) -> Scene:
    """Workers that share core 1 for eight seconds, each with its part of it, and their parent."""
    scene = Scene(schedstat=False).vmstat().hog("", "loader", pid=700, cpu=0, share=0.05, from_s=0, to_s=20)
    for number, (name, share) in enumerate(shares.items()):
        scene.hog("", name, pid=5000 + number, ppid=700, share=share, from_s=4, to_s=12)
    return scene


def test_a_crowd_on_one_core_is_told_without_counters_of_waiting(tmp_path: Path) -> None:
    (incident,) = crowd(a=0.25, b=0.25, c=0.25, d=0.25).diagnose(tmp_path).incidents
    cause = incident.causes[0]
    assert (incident.severity, cause.pattern) == ("warning", "scheduler-contention")
    assert cause.summary.startswith("4 tasks of loader must share core 1 while others have room")
    assert cause.culprit is not None
    assert cause.culprit.pid == 700
    assert cause.hog.pid in range(5000, 5004)


def test_who_moves_between_cores_is_kept_by_nobody(tmp_path: Path) -> None:
    # GIVEN three workers of which one is now and then seen elsewhere: two are left, and two may be chance
    scene = crowd(a=0.35, b=0.35, c=0.3)
    scene.hog("", "c", pid=5002, ppid=700, cpu=2, share=0.05, from_s=4, to_s=12)
    assert scene.diagnose(tmp_path).incidents == ()


def test_one_that_has_a_core_to_itself_is_no_crowd(tmp_path: Path) -> None:
    assert crowd(a=0.97, b=0.02, c=0.01).diagnose(tmp_path).incidents == ()


def test_compilers_that_follow_each_other_on_a_core_are_no_crowd(tmp_path: Path) -> None:
    # GIVEN a build: each compiler has the core to itself for two seconds, and is seen nowhere else
    scene = Scene(schedstat=False).vmstat().hog("", "make", pid=700, cpu=0, share=0.05, from_s=0, to_s=20)
    for number in range(4):
        began_s = 4 + 2 * number
        scene.hog("", "cc1", pid=5000 + number, ppid=700, share=0.98, from_s=began_s, to_s=began_s + 2)
    assert scene.diagnose(tmp_path).incidents == ()


def test_packets_that_the_sender_takes_itself_are_no_cards(tmp_path: Path) -> None:
    # GIVEN a flood on the loopback: one core takes all packets, in softirqs, and they are its own
    sends = f"{CALL} udp_sendmsg ip_send_skb ip_finish_output2 __dev_queue_xmit"
    scene = Scene().hog(f"{sends} __local_bh_enable_ip do_softirq net_rx_action process_backlog", "flooder")
    scene.mode(1, softirq=0.6, softnet_processed=500_000)
    (incident,) = scene.diagnose(tmp_path).incidents
    assert "irq-imbalance" in {one.pattern for one in incident.ruled_out}
    assert incident.causes[0].pattern == "unknown-kernel-hog"


def test_the_report_below_a_kill_is_no_symptom_of_its_own(tmp_path: Path) -> None:
    scene = Scene().vmstat()
    for number in range(4):
        at_s = 8 + number
        scene.event("oom_kill", "Memory cgroup out of memory: Killed process 5 (job)", at_s, comm="job", pid=5 + number)
        for line in range(20):
            scene.event("kernel_log", f"Call Trace line {line}", at_s - 0.2, severity="warning")
    (incident,) = scene.diagnose(tmp_path).incidents
    assert [symptom.facts["event"] for symptom in incident.symptoms] == ["oom_kill"]
    assert incident.causes[0].summary == "the kernel killed job 4 times: the machine ran out of memory"


def test_kills_that_come_again_and_again_are_the_trouble_and_not_their_reports(tmp_path: Path) -> None:
    # GIVEN a slow serial console, and a core that stood still while a report went out
    scene = Scene().vmstat().mode(1, max_gap_us=900_000)
    scene.node["consoles"] = ["ttyS0"]
    for number in range(4):
        scene.event("oom_kill", "Killed process 5 (job)", 6 + number, comm="job", pid=5 + number)
    causes = [cause.pattern for one in scene.diagnose(tmp_path).incidents for cause in one.causes]
    assert causes[:2] == ["oom-kill", "oom-console"]


def test_a_core_that_stood_still_before_the_kill_did_not_print_its_report(tmp_path: Path) -> None:
    # GIVEN a machine whose cores take no interrupt for a moment now and then, and one kill after that
    scene = Scene().vmstat().mode(1, max_gap_us=300_000)
    scene.node["consoles"] = ["ttyS0"]
    scene.event("oom_kill", "Killed process 5 (job)", 14, comm="job", pid=5)
    causes = scene.diagnose(tmp_path).incidents[0].causes
    assert (causes[0].pattern, causes[0].confidence > 0.5) == ("oom-kill", True)


def test_of_two_places_in_which_a_fault_shows_the_one_that_tells_comes_first(tmp_path: Path) -> None:
    # GIVEN a task whose work no pattern explains, and a little later one whose work is explained, on another core
    scene = Scene().vmstat().census(240, 68_440).leak("/ecs/*", 68_000, 500, 500, "ecs-agent")
    scene.hog(f"{CALL} veth_xmit __dev_forward_skb2", "sender", cpu=0, pid=2000, from_s=4, to_s=12)
    scene.hog(f"{CALL} vfs_read seq_read memcg_numa_stat_show mem_cgroup_nr_lru_pages", "kubelet", from_s=5, to_s=12)
    found = scene.diagnose(tmp_path).incidents
    assert [incident.causes[0].pattern for incident in found] == ["zombie-memcg", "unknown-kernel-hog"]


def test_a_task_may_have_any_name(tmp_path: Path) -> None:
    scene = Scene().vmstat().hog("", "{0}{x", policy=1, rt_priority=50)
    (incident,) = scene.diagnose(tmp_path).incidents
    assert incident.causes[0].pattern == "rt-hog"
    assert any(link.fact.startswith("{0}{x runs with SCHED_FIFO 50 and used ") for link in incident.causes[0].chain)


def test_who_loads_bpf_programs_is_no_agent_that_listens(tmp_path: Path) -> None:
    """bpf_prog_load and bpf_prog_pack_free are the kernel's own; a program that runs has its tag in its name."""
    scene = Scene().hog("do_syscall_64 __sys_bpf bpf_prog_load bpf_prog_pack_free", "systemd", pid=1)
    (incident,) = scene.hog("", "falco", cpu=0, share=0.3, pid=800).diagnose(tmp_path).incidents
    assert "bpf-agent" not in {cause.pattern for cause in incident.causes}


def test_a_thread_that_was_renamed_goes_by_its_name(tmp_path: Path) -> None:
    # GIVEN a program that gives itself another name while it runs: two rows of one thread, and no number in a sentence
    scene = Scene().vmstat().hog(f"{CALL} ksys_read vfs_read timerfd_read_iter", "stress-ng", pid=11102, to_s=7)
    scene.hog(f"{CALL} ksys_read vfs_read timerfd_read_iter", "stress-ng-timer", pid=11102, from_s=7)
    (incident,) = scene.diagnose(tmp_path).incidents
    sentences = [incident.causes[0].summary, *(one.text for one in incident.symptoms)]
    assert "stress-ng-timer was busy in the kernel, in read" in incident.causes[0].summary
    assert not any("11102" in sentence or "were busy" in sentence for sentence in sentences), sentences


def test_a_crowd_in_a_container_goes_by_its_name(tmp_path: Path) -> None:
    box = "c0de" * 16
    scene = Scene()
    for number in range(4):
        where = {"container": box, "unit": f"docker-{box}.scope", "cgroup": f"/system.slice/docker-{box}.scope"}
        scene.hog("do_syscall_64 do_futex", f"worker-{number}", cpu=number, share=0.5, pid=100 + number, **where)
    scene.made.container(START_US + SECOND, box, name="trainer", image="registry.local/train:1")
    texts = [one.text for each in scene.diagnose(tmp_path).incidents for one in each.symptoms]
    assert any(text.startswith("the tasks of trainer used") for text in texts), texts


def test_a_link_shows_the_functions_that_its_sentence_is_about(tmp_path: Path) -> None:
    # GIVEN a program whose hottest path is another one than that of the pattern, which has 40% of its time
    scene = Scene().vmstat(pgfault=480_000)
    scene.hog(f"{CALL} __x64_sys_mprotect do_mprotect_pkey change_protection", "guard", pid=700, share=0.55)
    scene.hog("asm_exc_page_fault exc_page_fault handle_mm_fault do_fault", "guard", pid=700, share=0.3)
    scene.hog(f"{CALL} __x64_sys_munmap __vm_munmap unmap_vmas zap_pte_range", "guard", pid=700, share=0.1)
    (incident,) = scene.diagnose(tmp_path).incidents
    cause = next(one for one in incident.causes if one.pattern == "page-fault-storm")
    (link,) = [link for link in cause.chain if link.step == "kernel function"]
    assert cause.frames[-1] == "change_protection"
    assert "handle_mm_fault" in link.fact
    assert "mprotect" not in link.fact


def test_what_was_over_before_the_window_began_is_none_of_its_incidents(tmp_path: Path) -> None:
    """Windows are of whole seconds, and somebody may ask from the middle of one."""
    # GIVEN a card that is reset in the first half of a second
    scene = Scene().vmstat()
    scene.event("nic_reset", "eth0: Keep alive watchdog timeout.", at_s=8.2, reset_reason="keep_alive_to")
    with open_recording(scene.write(tmp_path)) as recording:
        for asked_s, found in ((8.0, 1), (8.1, 1), (8.5, 0)):
            asked_us = START_US + int(asked_s * SECOND)
            assert len(diagnose(recording, asked_us, recording.end_us + 1).incidents) == found, asked_s


@pytest.mark.parametrize(
    ("driver", "ruled_out"), [("ena 2.11.0g", True), ("ena 2.1.0K", False), ("ena 6.8.0-1015-aws", False)]
)
def test_the_ena_of_the_kernel_counts_no_allowances(tmp_path: Path, driver: str, *, ruled_out: bool) -> None:
    """In-tree it bears the kernel's release as its version: a counter that is not there is not zero."""
    scene = Scene().vmstat().serves("eth0", "1")
    scene.node["nics"] = {"eth0": driver}
    scene.hog(f"{CALL} vfs_read odd_driver_read", "reader")
    scene.event("nic_reset", "eth0: Device reset completed")
    (incident,) = scene.diagnose(tmp_path).incidents
    assert ("network-allowance" in {one.pattern for one in incident.ruled_out}) is ruled_out
