"""Every pattern with the scene in which its number is there, and the one in which a number refutes it."""

from __future__ import annotations

from dataclasses import dataclass

from tests.helpers.pattern_scenes import (
    CHARGE,
    FAULT,
    READ,
    SOFTIRQ,
    Told,
    announced,
    busy_workers,
    children,
    console,
    containers,
    disk,
    growing,
    hog,
    idle_node,
    locked_clocks,
    lost,
    many_spin,
    namespaces,
    newer,
    nics,
    nothing,
    paused,
    polls,
    printed,
    ranks,
    real_time,
    resends,
    reset_while_held,
    rules,
    shared_core,
    shared_memory,
    spinners,
    stolen,
    stopped_workers,
    symbol_errors,
    tracked,
    trainer,
    training,
    unbalanced,
    waits,
)


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
        "disk-allowance",
        nothing,
        lambda s: s.counter("ebs", "volume_throughput_us", 900_000, "nvme1"),
        lambda s: hog("do_syscall_64 vfs_read odd_read")(s).counter("ebs", "volume_throughput_us", 100, "nvme1"),
        None,
        measures_itself=True,
    ),
    Row(
        "gpu-link",
        nothing,
        lambda s: s.gauge("gpu_link", "pcie_width", 8, "3").gauge("gpu_link", "pcie_width_max", 16, "3"),
        lambda s: (
            hog("do_syscall_64 vfs_read odd_read")(s)
            .gauge("gpu_link", "pcie_width", 16, "3")
            .gauge("gpu_link", "pcie_width_max", 16, "3")
        ),
        None,
        measures_itself=True,
    ),
    Row(
        "shm-full",
        lambda s: s.event(
            "sigbus", "python3 (pid 4711) was killed by SIGBUS", severity="warning", comm="agent", pid=47
        ),
        shared_memory(0.99),
        shared_memory(0.2),
        frames_tell=True,
        measures_itself=True,
    ),
    Row(
        "core-dump",
        nothing,
        hog("get_signal do_coredump elf_core_dump dump_user_range get_dump_page handle_mm_fault"),
        hog("get_signal do_group_exit do_exit exit_mmap unmap_vmas", comm="agent"),
        measures_itself=True,
    ),
    Row(
        "large-fork",
        nothing,
        hog("do_syscall_64 kernel_clone copy_process dup_mm dup_mmap copy_page_range copy_pte_range"),
        lambda s: children(s.counter("stat", "processes", 400)),
        measures_itself=True,
    ),
    Row(
        "tracer",
        nothing,
        lambda s: s.hog(
            "do_syscall_64 syscall_trace_enter ptrace_report_syscall_entry ptrace_stop schedule", "server", share=0.5
        ).hog("do_syscall_64 __x64_sys_ptrace ptrace_check_attach wait_task_inactive", share=0.5, pid=1301),
        hog("do_syscall_64 vfs_read some_driver_read"),
        measures_itself=True,
    ),
    Row(
        "kernel-poller",
        nothing,
        lambda s: s.hog("ret_from_fork io_sq_thread __io_sq_thread io_submit_sqes", "iou-sqp-1201", tid=1202).hog(
            "", "agent", cpu=0, share=0.3
        ),
        hog("do_syscall_64 vfs_read some_driver_read", comm="iou-sqp-7"),
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
        lambda s: console(s, "ttyS0").mode(1, max_gap_us=900_000),
        lambda s: console(s, "tty0").mode(1, max_gap_us=900_000),
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
        lambda s: nics(s, "ena 2.11.0g"),
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
    Row("trainer-starved", nothing, shared_core, lambda s: shared_core(s, ppid=800), measures_itself=True),
    Row("gpu-slow", nothing, lambda s: trainer(s, hw_thermal_ns=900_000_000), idle_node, None, measures_itself=True),
    Row("gpu-clocks-locked", nothing, locked_clocks, idle_node, None, measures_itself=True),
    Row("gpu-idle", nothing, training, lambda s: idle_node(stopped_workers(s)), None, measures_itself=True),
    Row("workers-stopped", nothing, stopped_workers, lambda s: idle_node(training(s)), measures_itself=True),
    Row("late-rank", nothing, ranks, lambda s: idle_node(ranks(s, None)), "train", measures_itself=True),
    Row("input-bound", nothing, busy_workers, idle_node, None, measures_itself=True),
    Row(
        "cpu-throttled",
        nothing,
        announced("cpu_throttled", "CPU3: Core temperature is above threshold, cpu clock is throttled", cpu=3),
        idle_node,
        None,
        measures_itself=True,
    ),
    Row(
        "clocksource-fallback",
        nothing,
        announced("clocksource_unstable", "clocksource: Marking clocksource 'tsc' as unstable", clocksource="tsc"),
        idle_node,
        None,
        measures_itself=True,
    ),
    Row(
        "lockup",
        nothing,
        lambda s: printed(announced("soft_lockup", "BUG: soft lockup - CPU#3 stuck for 23s! [agent:7]", cpu=3)(s)),
        idle_node,
        measures_itself=True,
    ),
    Row(
        "limit-exhausted",
        nothing,
        announced("pids_limit", "cgroup: fork rejected by pids controller in /agent", cgroup="/agent"),
        idle_node,
        measures_itself=True,
    ),
    Row(
        "port-exhaustion",
        nothing,
        hog("do_syscall_64 __sys_connect tcp_v4_connect inet_hash_connect __inet_hash_connect"),
        hog("do_syscall_64 __sys_connect tcp_v4_connect tcp_connect tcp_transmit_skb"),
        measures_itself=True,
    ),
    Row("slab-growth", nothing, growing, idle_node, None, measures_itself=True),
    Row("numa-imbalance", nothing, unbalanced, idle_node, None, measures_itself=True),
    Row("fabric-errors", nothing, symbol_errors, idle_node, None, measures_itself=True),
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
    Row(
        "storage-hang",
        waits("disk", "nvme1n1"),
        lambda s: disk(s, "nvme1n1", in_flight=8),
        lambda s: disk(s, "nvme1n1", in_flight=8, writes=120),
        None,
        measures_itself=True,
    ),
    Row("gpu-driver-hang", nothing, waits("gpu", None, since_s=-30), idle_node, None, measures_itself=True),
    Row(
        "shim-leak",
        waits("lock", None, comm="containerd-shim", since_s=-30),
        lambda s: containers(s.gauge("tasks", "shims", 150), 100),
        lambda s: containers(s.gauge("tasks", "shims", 101), 100),
        None,
        measures_itself=True,
    ),
    Row(
        "writeback-stall",
        nothing,
        waits("writeback", "sdb", moves=1, bytes_per_s=40_000),
        lambda s: idle_node(waits("writeback", "sdb", moves=1, bytes_per_s=60_000_000)(s)),
        None,
        measures_itself=True,
    ),
    Row(
        "swap-thrash",
        nothing,
        lambda s: s.vmstat(pswpin=5_000, pswpout=5_000, pgmajfault=5_000),
        lambda s: idle_node(s.vmstat(pswpin=0, pswpout=5_000)),
        None,
        measures_itself=True,
    ),
)
