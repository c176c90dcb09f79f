"""Each pattern: named when its number is there, ruled out by the number that refutes it, unsure when not measured.

The same frames three times; only the counters differ. A pattern that would still be named in the second column names by
frames alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.made import SECOND, START_US
from tests.helpers.scenes import Scene

from zombiescope.diagnosis import patterns
from zombiescope.diagnosis.incident import Cause, Incident
from zombiescope.recording.loss import SAMPLES, loss

Told = Callable[[Scene], Scene]
READ = "entry_SYSCALL_64_after_hwframe do_syscall_64 ksys_read vfs_read seq_read"
SOFTIRQ = "asm_common_interrupt common_interrupt irq_exit_rcu __do_softirq"
FAULT = "asm_exc_page_fault exc_page_fault handle_mm_fault do_anonymous_page clear_page_erms"
CHARGE = "do_syscall_64 vfs_read filemap_add_folio charge_memcg try_charge_memcg try_to_free_mem_cgroup_pages"


def nothing(scene: Scene) -> Scene:
    return scene


@dataclass(frozen=True)
class Row:
    pattern: str
    base: Told
    confirms: Told
    refutes: Told
    culprit: str | None = "agent"
    """Part of the culprit's name or cgroup; None: nobody is to blame."""
    frames_tell: bool = True
    """Without any measurement it is still thought of, at 0.5 or less."""
    measures_itself: bool = False
    """Its number is CPU time in functions that serve nothing else, so it cannot go unmeasured."""


def hog(frames: str, **more: Any) -> Told:
    return lambda scene: scene.hog(frames, **more)


def newer(frames: str, **more: Any) -> Told:
    def base(scene: Scene) -> Scene:
        scene.kernel = "6.18.0"
        return scene.hog(frames, **more)

    return base


def idle_node(scene: Scene) -> Scene:
    return scene.event("nic_reset", "eth0: Device reset completed")


def resends(scene: Scene) -> Scene:
    return scene.counter("snmp", "TcpRetransSegs", 900, calm_per_s=900).counter(
        "snmp", "TcpOutSegs", 9_000, calm_per_s=9_000
    )


def rules(scene: Scene) -> Scene:
    return scene.hog(f"{SOFTIRQ} net_rx_action ip_rcv nf_hook_slow nft_do_chain", "ksoftirqd/1", pid=20, ppid=2).hog(
        "do_syscall_64 udp_sendmsg", "agent", cpu=0, share=0.5, pid=3000
    )


def tracked(scene: Scene) -> Scene:
    return scene.hog(
        f"{SOFTIRQ} net_rx_action ip_rcv nf_conntrack_in __nf_conntrack_find_get", "ksoftirqd/1", pid=20, ppid=2
    ).hog("do_syscall_64 raw_sendmsg", "agent", cpu=0, share=0.5, pid=3000)


def polls(scene: Scene) -> Scene:
    return scene.hog(f"{SOFTIRQ} net_rx_action __napi_poll ena_io_poll", "ksoftirqd/1", pid=20, ppid=2).hog(
        "do_syscall_64 udp_sendmsg", "agent", cpu=0, share=0.5, pid=3000
    )


def namespaces(share: float) -> Told:
    return lambda scene: scene.hog(
        "ret_from_fork kthread worker_thread process_one_work cleanup_net ops_exit_list", "kworker/u8:1", pid=30, ppid=2
    ).hog("do_syscall_64 ksys_unshare copy_net_ns setup_net ops_init", "agent", cpu=0, share=share, pid=3000)


def spinners(scene: Scene) -> Scene:
    scene.kernel = "6.6.0"
    flush = "do_syscall_64 vfs_read memory_stat_show mem_cgroup_flush_stats cgroup_rstat_flush"
    return scene.hog(f"{flush} cgroup_rstat_flush_locked", "agent", pid=3000)


def many_spin(scene: Scene) -> Scene:
    path = "kthread kswapd balance_pgdat shrink_node mem_cgroup_flush_stats cgroup_rstat_flush"
    for cpu in (0, 2, 3):
        scene.hog(f"{path} native_queued_spin_lock_slowpath", f"kswapd{cpu}", cpu=cpu, pid=40 + cpu, ppid=2)
    return scene


def children(scene: Scene) -> Scene:
    for number in range(20):
        from_s = 5 + number * 0.3
        scene.hog("do_syscall_64 kernel_clone copy_process dup_mm copy_page_range", "sh", pid=5000 + number, ppid=700,
                  from_s=from_s, to_s=from_s + 0.3)  # fmt: skip
    return scene.hog("", "agent", pid=700, cpu=0, share=0.1)


def real_time(policy: int) -> Told:
    return lambda scene: scene.hog("", "agent", policy=policy, rt_priority=50, share=0.95)


def stolen(ratio: float) -> Told:
    return lambda scene: scene.mode(2, steal=ratio)


def paused(scene: Scene) -> Scene:
    """No core took an interrupt for most of each second."""
    for cpu in range(4):
        scene.mode(cpu, max_gap_us=900_000 + cpu)
    return scene


def lost(scene: Scene, *cpus: int) -> Scene:
    """Records of these cores did not fit into their rings, in every second."""
    for second in range(20):
        for cpu in cpus:
            end_us = START_US + (second + 1) * SECOND
            scene.made.add("gaps", time=end_us - SECOND, end=end_us, source=SAMPLES, why=loss(37 + second, cpu))
    return scene


def reset_while_held(scene: Scene) -> Scene:
    """In the kernel, on the core that serves the card."""
    scene.serves("eth0", "2")
    return scene.hog("do_syscall_64 do_futex futex_wake", "python", cpu=2, from_s=0, to_s=20)


def announced(kind: str, text: str, **fields: Any) -> Told:
    return lambda scene: scene.event(kind, text, **fields)


ROWS = (
    Row(
        "zombie-memcg",
        hog(f"{READ} memcg_numa_stat_show mem_cgroup_nr_lru_pages"),
        lambda s: s.census(240, 68_440).leak("/ecs/*", 68_000, 500, 500, "ecs-agent"),
        lambda s: s.census(240, 30),
        "ecs-agent",
    ),
    Row(
        "cgroup-litter",
        hog("do_syscall_64 path_openat lookup_fast kernfs_dop_revalidate"),
        lambda s: s.census(182_000, 10),
        lambda s: s.census(240, 10),
    ),
    Row(
        "smaps-reader",
        hog(f"{READ} show_smaps_rollup smap_gather_stats walk_page_range smaps_pte_range"),
        lambda s: s.gauge("meminfo", "anon_pages_bytes", 200 << 30),
        lambda s: s.gauge("meminfo", "anon_pages_bytes", 9 << 20),
    ),
    Row(
        "global-reclaim",
        hog("kthread kswapd balance_pgdat shrink_node shrink_lruvec shrink_folio_list", comm="kswapd0", ppid=2),
        lambda s: s.vmstat(pgscan_kswapd=400_000).hog(
            "do_syscall_64 filemap_add_folio", "agent", cpu=0, share=0.4, pid=3000
        ),
        lambda s: s.vmstat(),
        measures_itself=True,
    ),
    Row("rstat-lock", spinners, many_spin, nothing, measures_itself=True),
    Row(
        "memcg-limit-reclaim",
        hog(f"{CHARGE} shrink_node shrink_lruvec shrink_folio_list", cgroup="/agent.slice/job"),
        lambda s: s.cgroup_stats("/agent.slice/job", memory_max_events=400_000, has_memory_limit=1),
        lambda s: s.cgroup_stats("/agent.slice/job", memory_max_events=0, memory_some_us=0, has_memory_limit=1),
    ),
    Row(
        "thp-compaction",
        hog(f"{FAULT} __alloc_pages_direct_compact compact_zone isolate_migratepages_block"),
        lambda s: s.vmstat(compact_stall=80, compact_migrate_scanned=900_000),
        lambda s: s.vmstat(),
    ),
    Row(
        "negative-dentries",
        newer("do_syscall_64 inotify_update_watch fsnotify_add_mark_locked fsnotify_set_children_dentry_flags"),
        lambda s: s.gauge("dentry", "negative", 1_100_000),
        lambda s: s.gauge("dentry", "negative", 12_000),
    ),
    Row(
        "ipvs-estimator",
        hog(f"{SOFTIRQ} run_timer_softirq call_timer_fn estimation_timer", comm="kube-proxy"),
        lambda s: s.mode(1, softirq=0.97),
        lambda s: s.mode(1, softirq=0.0),
        "kube-proxy",
    ),
    Row(
        "iptables-storm",
        rules,
        lambda s: s.mode(1, softnet_processed=40_000, softirq=0.97),
        lambda s: s.mode(1, softnet_processed=20),
    ),
    Row(
        "conntrack",
        tracked,
        lambda s: s.gauge("conntrack", "count", 262_143).gauge("conntrack", "max", 262_144),
        lambda s: s.gauge("conntrack", "count", 900).gauge("conntrack", "max", 262_144),
    ),
    Row("netns-churn", nothing, namespaces(0.5), namespaces(0.0), measures_itself=True),
    Row(
        "irq-imbalance",
        polls,
        lambda s: s.mode(1, softnet_processed=90_000, softirq=0.97),
        lambda s: [s.mode(cpu, softnet_processed=30_000, softirq=0.3) for cpu in range(4)][-1],
    ),
    Row(
        "numa-balancing",
        hog("do_syscall_64 exit_to_user_mode task_work_run task_numa_work change_prot_numa"),
        lambda s: s.vmstat(numa_pte_updates=900_000),
        lambda s: s.vmstat(),
    ),
    Row(
        "page-fault-storm",
        lambda s: s.storm(FAULT),
        lambda s: s.vmstat(pgfault=700_000),
        lambda s: s.vmstat(pgfault=1_200),
    ),
    Row(
        "bulk-io",
        nothing,
        hog("do_syscall_64 ksys_write vfs_write ext4_buffered_write_iter generic_perform_write copy_page_from_iter"),
        lambda s: s.storm(FAULT),
        measures_itself=True,
    ),
    Row(
        "memory-turnover",
        nothing,
        hog("do_syscall_64 do_exit exit_mm mmput exit_mmap unmap_vmas zap_pte_range"),
        lambda s: s.storm(FAULT),
        measures_itself=True,
    ),
    Row(
        "cfs-throttle",
        nothing,
        lambda s: s.cgroup_stats(
            "/agent.slice", nr_periods=100, nr_throttled=98, throttled_us=8_000_000, has_cpu_quota=1
        ),
        lambda s: s.hog(FAULT).cgroup_stats(
            "/agent.slice", nr_periods=100, nr_throttled=1, throttled_us=900, has_cpu_quota=1
        ),
        frames_tell=False,
    ),
    Row(
        "mount-storm",
        nothing,
        hog(f"{READ} show_mountinfo seq_path_root prepend_path"),
        lambda s: s.hog(f"{READ} show_mountinfo", share=0.1).hog(f"{READ} proc_single_show", "other", pid=9),
        measures_itself=True,
    ),
    Row(
        "session-leak",
        hog("do_syscall_64 cgroup_mkdir", comm="sshd", cpu=0, pid=900),
        lambda s: s.hog("", "systemd", pid=1, ppid=0, share=0.9).leak(
            "/user.slice/session-*.scope", 0, 4_000, 100, "systemd"
        ),
        nothing,
        None,
        measures_itself=True,
    ),
    Row(
        "audit-flood",
        hog("do_syscall_64 syscall_exit_to_user_mode __audit_syscall_exit audit_log_exit audit_log_start"),
        lambda s: s.event("audit_backlog", "audit: backlog limit exceeded", severity="warning"),
        nothing,
        measures_itself=True,
    ),
    Row(
        "bpf-agent",
        nothing,
        lambda s: s.hog("do_syscall_64 trace_call_bpf bpf_prog_6deef7357e7b4530_sys_enter", "python").hog(
            "", "falco", cpu=0, share=0.3, pid=800
        ),
        hog("do_syscall_64 do_futex"),
        "falco",
        measures_itself=True,
    ),
    Row(
        "gpu-monitor",
        nothing,
        hog("do_syscall_64 nvidia_unlocked_ioctl rm_ioctl", comm="nvidia-smi"),
        hog("do_syscall_64 nvidia_unlocked_ioctl rm_ioctl", comm="python"),
        "nvidia-smi",
        measures_itself=True,
    ),
    Row(
        "fork-storm",
        children,
        lambda s: s.counter("stat", "processes", 900).counter("stat", "ctxt", 9_000),
        lambda s: s.counter("stat", "processes", 0).counter("stat", "ctxt", 9_000),
    ),
    Row(
        "tlb-shootdown",
        newer("do_syscall_64 __vm_munmap flush_tlb_mm_range on_each_cpu_cond_mask smp_call_function_many_cond"),
        lambda s: s.interrupts("TLB", 90_000, calm_per_s=300),
        lambda s: s.interrupts("TLB", 12),
    ),
    Row(
        "rt-hog",
        nothing,
        real_time(1),
        lambda s: real_time(0)(s).hog(FAULT, "other", cpu=0, pid=9),
        measures_itself=True,
    ),
    Row("steal", nothing, stolen(0.6), lambda s: s.hog(FAULT), None, frames_tell=False),
    Row(
        "machine-pause",
        paused,
        hog("do_idle stop_machine_cpuslocked multi_cpu_stop", comm="migration/1", share=0.1),
        lambda s: lost(s, *range(4)).hog(FAULT),
        None,
        frames_tell=False,
        measures_itself=True,
    ),
    Row(
        "oom-kill",
        idle_node,
        lambda s: s.event(
            "memcg_oom",
            "oom-kill:constraint=CONSTRAINT_MEMCG",
            comm="agent",
            oom_memcg="/kubepods/a",
            task_memcg="/kubepods/a/b",
            severity="warning",
        ).event("oom_kill", "Memory cgroup out of memory: Killed process 4711 (agent)", comm="agent", pid=4711),
        nothing,
        frames_tell=False,
    ),
    Row(
        "cgroup-churn",
        hog("do_syscall_64 do_mkdirat vfs_mkdir kernfs_iop_mkdir cgroup_mkdir cgroup_apply_control_enable"),
        lambda s: s.churn(400).leak("/jobs/job-*", 0, 4_000, 4_000, "agent"),
        lambda s: s.churn(0),
    ),
    Row(
        "oom-console",
        lambda s: s.event("oom_kill", "Killed process 4711 (agent)", 5, comm="agent", pid=4711),
        lambda s: _console(s, "ttyS0").mode(1, max_gap_us=900_000),
        lambda s: _console(s, "tty0").mode(1, max_gap_us=900_000),
        frames_tell=False,
    ),
    Row(
        "cpu-capacity",
        announced("ray_node_dead", "the raylet missed too many heartbeats"),
        lambda s: [s.hog("", "python", cpu=cpu, pid=60 + cpu, from_s=0, to_s=20) for cpu in range(4)][-1],
        nothing,
        None,
        frames_tell=False,
    ),
    Row(
        "scheduler-contention",
        nothing,
        lambda s: s.mode(1, wait_us=3_000_000, user=0.9),
        lambda s: s.hog(FAULT),
        None,
        frames_tell=False,
    ),
    Row(
        "network-allowance",
        resends,
        lambda s: s.counter("ethtool", "pps_allowance_exceeded", 5_000, "eth0"),
        lambda s: _nics(s, "ena 2.11.0g"),
        None,
        frames_tell=False,
    ),
    Row("hardware-nic-reset", idle_node, nothing, reset_while_held, None, measures_itself=True),
    Row(
        "gpu-fault",
        nothing,
        announced("gpu_xid", "NVRM: Xid (PCI:0000:81:00): 79, GPU has fallen off the bus.", gpu="0000:81:00", xid=79),
        idle_node,
        None,
        measures_itself=True,
    ),
    Row(
        "machine-fault",
        nothing,
        announced("hardware_error", "mce: [Hardware Error]: Machine check events logged"),
        idle_node,
        None,
        measures_itself=True,
    ),
    Row(
        "disk-fault",
        nothing,
        announced("io_error", "I/O error, dev nvme1n1, sector 2048 op 0x0:(READ)", device="nvme1n1", sector=2048),
        idle_node,
        None,
        measures_itself=True,
    ),
    Row(
        "hung-task",
        nothing,
        announced(
            "hung_task", "INFO: task rsync:42 blocked for more than 120 seconds.", comm="rsync", pid=42, seconds=120
        ),
        idle_node,
        None,
        measures_itself=True,
    ),
)


def _console(scene: Scene, name: str) -> Scene:
    scene.node["consoles"] = [name]
    return scene


def _nics(scene: Scene, driver: str) -> Scene:
    scene.node["nics"] = {"eth0": driver}
    return scene


def test_every_pattern_has_a_row() -> None:
    known = {pattern.id for pattern in patterns.every()}
    assert {row.pattern for row in ROWS} == known - {"unknown-kernel-hog"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.pattern)
def test_named_when_its_number_is_there(row: Row, tmp_path: Path) -> None:
    found = row.confirms(row.base(Scene())).diagnose(tmp_path)
    incident = incident_with(found.incidents, row.pattern)
    cause = incident.causes[0]
    assert cause.pattern == row.pattern, [(each.pattern, each.confidence) for each in incident.causes]
    assert cause.confidence > 0.5
    if row.culprit is None:
        assert cause.culprit is None
    else:
        assert cause.culprit is not None
        assert row.culprit in f"{cause.culprit.name} {cause.culprit.cgroup}"
    assert cause.fix.summary
    assert cause.fix.steps


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.pattern)
def test_ruled_out_by_the_number_that_refutes_it(row: Row, tmp_path: Path) -> None:
    found = row.refutes(row.base(Scene())).diagnose(tmp_path)
    assert found.incidents
    for incident in found.incidents:
        assert row.pattern not in {cause.pattern for cause in incident.causes if cause.confidence > 0.5}
    told = [one for incident in found.incidents for one in incident.ruled_out if one.pattern == row.pattern]
    unsure = [cause for incident in found.incidents for cause in incident.causes if cause.pattern == row.pattern]
    assert told or (row.measures_itself and all(cause.confidence <= 0.5 for cause in unsure))
    assert all(any(letter.isdigit() for letter in one.because) or one.value is not None for one in told)


@pytest.mark.parametrize("row", [row for row in ROWS if not row.measures_itself], ids=lambda row: row.pattern)
def test_unsure_when_it_was_not_measured(row: Row, tmp_path: Path) -> None:
    scene = row.base(Scene())
    scene.cores = False
    causes = [cause for incident in scene.diagnose(tmp_path).incidents for cause in incident.causes]
    mine = [cause for cause in causes if cause.pattern == row.pattern]
    assert bool(mine) == row.frames_tell
    assert all(cause.confidence <= 0.5 for cause in mine)


def incident_with(incidents: tuple[Incident, ...], pattern: str) -> Incident:
    every: list[tuple[Incident, Cause]] = [(incident, cause) for incident in incidents for cause in incident.causes]
    named = [incident for incident, cause in every if cause.pattern == pattern]
    ruled_out = [(one.pattern, one.because) for incident in incidents for one in incident.ruled_out]
    symptoms = [symptom.text for incident in incidents for symptom in incident.symptoms]
    assert named, (symptoms, [(cause.pattern, cause.confidence) for _, cause in every], ruled_out)
    return named[0]
