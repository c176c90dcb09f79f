# ruff: noqa: E501 - the wording of the kernel is kept whole, to be searched for
"""Lines of the kernel itself: stalls, memory, limits that were hit, hardware, and crashes."""

from __future__ import annotations

from zombiescope.kernel.log_line import LineFormat

STALL_FORMATS = (
    LineFormat(
        "soft-lockup", "soft_lockup", "critical",
        "watchdog: BUG: soft lockup - CPU#{cpu:d} stuck for {seconds:d}s! [{comm:c}:{pid:d}]",
        "watchdog: BUG: soft lockup - CPU#30 stuck for 23s! [kubelet:810499]", "source",
    ),
    LineFormat(
        "soft-lockup.to-4.12", "soft_lockup", "critical",
        "NMI watchdog: BUG: soft lockup - CPU#{cpu:d} stuck for {seconds:d}s! [{comm:c}:{pid:d}]",
        "NMI watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [kworker/3:1:123]", "source",
    ),
    LineFormat(
        "soft-lockup.3", "soft_lockup", "critical",
        "BUG: soft lockup - CPU#{cpu:d} stuck for {seconds:d}s! [{comm:c}:{pid:d}]",
        "BUG: soft lockup - CPU#3 stuck for 22s! [java:4242]", "unconfirmed",
    ),
    LineFormat(
        "hard-lockup", "hard_lockup", "critical", "watchdog: Watchdog detected hard LOCKUP on cpu {cpu:d}",
        "watchdog: Watchdog detected hard LOCKUP on cpu 17", "source",
    ),
    LineFormat(
        "hard-lockup.nmi", "hard_lockup", "critical", "NMI watchdog: Watchdog detected hard LOCKUP on cpu {cpu:d}",
        "NMI watchdog: Watchdog detected hard LOCKUP on cpu 17", "source",
    ),
    LineFormat(
        "hard-lockup.3", "hard_lockup", "critical", "Watchdog detected hard LOCKUP on cpu {cpu:d}",
        "Watchdog detected hard LOCKUP on cpu 17", "source",
    ),
    LineFormat(
        "hard-lockup.buddy", "hard_lockup", "critical",
        "watchdog: CPU{reporter:d}: Watchdog detected hard LOCKUP on cpu {cpu:d}",
        "watchdog: CPU16: Watchdog detected hard LOCKUP on cpu 17", "unconfirmed",
    ),
    LineFormat(
        "hung-task", "hung_task", "critical",
        "INFO: task {comm:c}:{pid:d} blocked for more than {seconds:d} seconds.",
        "INFO: task python3:4711 blocked for more than 120 seconds.", "source",
    ),
    LineFormat(
        "hung-task.io", "hung_task", "critical",
        "INFO: task {comm:c}:{pid:d} blocked in I/O wait for more than {seconds:d} seconds.",
        "INFO: task dd:456 blocked in I/O wait for more than 122 seconds.", "seen",
    ),
    LineFormat(
        "hung-task.owner", "hung_task", "warning",
        "INFO: task {comm:c}:{pid:d} is blocked on a {lock:c} likely owned by task {owner:c}:{owner_pid:d}{rest:t}",
        "INFO: task cat:448 is blocked on a mutex likely owned by task cat:447.", "unconfirmed",
    ),
    LineFormat(
        "rcu.self-detected", "rcu_stall", "critical", "rcu: INFO: {flavor:w} self-detected stall on CPU{rest:t}",
        "rcu: INFO: rcu_sched self-detected stall on CPU", "source",
    ),
    LineFormat(
        "rcu.detected", "rcu_stall", "critical", "rcu: INFO: {flavor:w} detected stalls on CPUs/tasks:{rest:t}",
        "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", "source",
    ),
    LineFormat(
        "rcu.expedited", "rcu_stall", "critical",
        "rcu: INFO: {flavor:w} detected expedited stalls on CPUs/tasks: {rest:t}",
        "rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: { 3-... } 26 jiffies s: 2733 root: 0x8/.",
        "unconfirmed",
    ),
    LineFormat(
        "rcu.self-detected.to-4.19", "rcu_stall", "critical", "INFO: {flavor:w} self-detected stall on CPU{rest:t}",
        "INFO: rcu_sched self-detected stall on CPU", "source",
    ),
    LineFormat(
        "rcu.detected.to-4.19", "rcu_stall", "critical", "INFO: {flavor:w} detected stalls on CPUs/tasks:{rest:t}",
        "INFO: rcu_sched detected stalls on CPUs/tasks:", "source",
    ),
    LineFormat(
        "rcu.cpu", "rcu_stall", "warning", "rcu: \t{cpu:d}-{flags:w} ({ticks:d} ticks this GP) {rest:t}",
        "rcu: \t4-....: (5249 ticks this GP) idle=2f5c/1/0x4000000000000000 softirq=309/309 fqs=2563", "source",
    ),
    LineFormat(
        "rcu.kthread-starved", "rcu_stall", "critical",
        "rcu: {flavor:w} kthread starved for {jiffies:d} jiffies! {rest:t}",
        "rcu: rcu_preempt kthread starved for 10502 jiffies! g9229 f0x0 RCU_GP_WAIT_FQS(5) ->state=0x0 ->cpu=0",
        "source",
    ),
    LineFormat(
        "workqueue.hog", "workqueue_hog", "warning",
        "workqueue: {function:w} hogged CPU for >{threshold_us:d}us {times:d} times, "
        "consider switching to WQ_UNBOUND",
        "workqueue: drain_vmap_area_work hogged CPU for >10000us 4 times, consider switching to WQ_UNBOUND", "source",
    ),
    LineFormat(
        "workqueue.lockup", "workqueue_hog", "critical",
        "BUG: workqueue lockup - pool cpus={cpus:w} {pool:c} stuck for {seconds:d}s!",
        "BUG: workqueue lockup - pool cpus=4 node=0 flags=0x0 nice=0 stuck for 30s!", "seen",
    ),
    LineFormat(
        "sched.rt-throttling", "rt_throttling", "warning", "sched: RT throttling activated",
        "sched: RT throttling activated", "unconfirmed",
    ),
    LineFormat(
        "perf.rate", "perf_rate_lowered", "info",
        "perf: interrupt took too long ({took_ns:d} > {limit_ns:d}), "
        "lowering kernel.perf_event_max_sample_rate to {rate:d}",
        "perf: interrupt took too long (3935 > 3916), lowering kernel.perf_event_max_sample_rate to 50000", "source",
    ),
    LineFormat(
        "perf.rate.to-4.8", "perf_rate_lowered", "info",
        "perf interrupt took too long ({took_ns:d} > {limit_ns:d}), "
        "lowering kernel.perf_event_max_sample_rate to {rate:d}",
        "perf interrupt took too long (2506 > 2500), lowering kernel.perf_event_max_sample_rate to 50000", "source",
    ),
    LineFormat(
        "hrtimer.slow", "timer_slow", "warning", "hrtimer: interrupt took {interrupt_ns:d} ns",
        "hrtimer: interrupt took 10902600 ns", "seen",
    ),
    LineFormat(
        "clocksource.unstable", "clocksource_unstable", "warning",
        "clocksource: timekeeping watchdog on CPU{cpu:d}: Marking clocksource '{clocksource:w}' as unstable {rest:t}",
        "clocksource: timekeeping watchdog on CPU3: Marking clocksource 'tsc' as unstable because the skew is too large:",
        "unconfirmed",
    ),
)  # fmt: skip

MEMORY_FORMATS = (
    LineFormat(
        "oom.invoked", "oom_invoked", "warning",
        "{comm:c} invoked oom-killer: gfp_mask={gfp:x}({gfp_flags:c}), order={order:d}, oom_score_adj={oom_score_adj:d}",
        "python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0", "source",
    ),
    LineFormat(
        "oom.invoked.other", "oom_invoked", "warning", "{comm:c} invoked oom-killer: {rest:t}",
        "java invoked oom-killer: gfp_mask=0x14000c0(GFP_KERNEL), nodemask=(null),  order=0, oom_score_adj=0",
        "source", loose=True,
    ),
    LineFormat(
        "oom.summary-memcg", "memcg_oom", "warning",
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask={nodemask:l},cpuset={cpuset:n},mems_allowed={mems_allowed:l},"
        "oom_memcg={oom_memcg:n},task_memcg={task_memcg:n},task={comm:c},pid={pid:d},uid={uid:d}",
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/job,"
        "task_memcg=/job,task=python3,pid=18513,uid=0",
        "seen",
    ),
    LineFormat(
        "oom.summary-global", "oom_summary", "warning",
        "oom-kill:constraint={constraint:n},nodemask={nodemask:l},cpuset={cpuset:n},mems_allowed={mems_allowed:l},"
        "global_oom,task_memcg={task_memcg:n},task={comm:c},pid={pid:d},uid={uid:d}",
        "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,"
        "task_memcg=/user.slice,task=python3,pid=18513,uid=0",
        "source",
    ),
    LineFormat(
        "oom.summary.other", "oom_summary", "warning", "oom-kill:constraint={constraint:n},{rest:t}",
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=a,b,mems_allowed=0,oom_memcg=/job,"
        "task_memcg=/job,task=python3,pid=18513,uid=0",
        "source", loose=True,
    ),
    LineFormat(
        "oom.killed-memcg", "oom_kill", "critical",
        "Memory cgroup out of memory: Killed process {pid:d} ({comm:c}) total-vm:{total_vm_kb:d}kB, "
        "anon-rss:{anon_rss_kb:d}kB, {rest:t}",
        "Memory cgroup out of memory: Killed process 18513 (python3) total-vm:82092kB, anon-rss:16000kB, "
        "file-rss:6616kB, shmem-rss:0kB, UID:0 pgtables:104kB oom_score_adj:0",
        "seen", also={"scope": "memcg"},
    ),
    LineFormat(
        "oom.killed-global", "oom_kill", "critical",
        "Out of memory: Killed process {pid:d} ({comm:c}) total-vm:{total_vm_kb:d}kB, "
        "anon-rss:{anon_rss_kb:d}kB, {rest:t}",
        "Out of memory: Killed process 4711 (python3) total-vm:209715200kB, anon-rss:201326592kB, file-rss:0kB, "
        "shmem-rss:0kB, UID:1000 pgtables:410000kB oom_score_adj:0",
        "source", also={"scope": "global"},
    ),
    LineFormat(
        "oom.killed-other", "oom_kill", "critical",
        "{why:c}: Killed process {pid:d} ({comm:c}) total-vm:{total_vm_kb:d}kB, {rest:t}",
        "Out of memory (oom_kill_allocating_task): Killed process 4711 (python3) total-vm:2097kB, anon-rss:201kB, "
        "file-rss:0kB, shmem-rss:0kB, UID:1000 pgtables:41kB oom_score_adj:0",
        "source", loose=True,
    ),
    LineFormat(
        "oom.killed.to-4.19", "oom_kill", "critical",
        "Killed process {pid:d} ({comm:c}) total-vm:{total_vm_kb:d}kB, anon-rss:{anon_rss_kb:d}kB, {rest:t}",
        "Killed process 4711 (java) total-vm:2097kB, anon-rss:201kB, file-rss:0kB, shmem-rss:0kB", "unconfirmed",
    ),
    LineFormat(
        "oom.chosen.to-4.19", "oom_summary", "warning",
        "Out of memory: Kill process {pid:d} ({comm:c}) score {score:d} or sacrifice child",
        "Out of memory: Kill process 4711 (java) score 902 or sacrifice child", "unconfirmed",
    ),
    LineFormat(
        "oom.chosen-memcg.to-4.19", "memcg_oom", "warning",
        "Memory cgroup out of memory: Kill process {pid:d} ({comm:c}) score {score:d} or sacrifice child",
        "Memory cgroup out of memory: Kill process 4711 (java) score 1902 or sacrifice child", "unconfirmed",
    ),
    LineFormat(
        "oom.group", "oom_kill", "critical", "Tasks in {cgroup:w} are going to be killed due to memory.oom.group set",
        "Tasks in /kubepods/pod1 are going to be killed due to memory.oom.group set", "unconfirmed",
        also={"scope": "memcg"},
    ),
    LineFormat(
        "oom.reaped", "oom_reaped", "info", "oom_reaper: reaped process {pid:d} ({comm:c}), {rest:t}",
        "oom_reaper: reaped process 4711 (java), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB", "unconfirmed",
    ),
    LineFormat(
        "page-allocation-failure", "page_allocation_failure", "warning",
        "{comm:c}: page allocation failure: order:{order:d}, mode:{rest:t}",
        "ksoftirqd/3: page allocation failure: order:0, mode:0xa20(GFP_ATOMIC), nodemask=(null)", "source",
    ),
    LineFormat(
        "slub.failed", "slub_alloc_failed", "warning", "SLUB: Unable to allocate memory on {rest:t}",
        "SLUB: Unable to allocate memory on node -1 (gfp=0x20)", "source",
    ),
    LineFormat(
        "drop-caches", "drop_caches", "info", "{comm:c} ({pid:d}): drop_caches: {value:d}",
        "tokio-rt-worker (68): drop_caches: 3", "seen",
    ),
    LineFormat(
        "cgroup.fork-rejected", "pids_limit", "warning", "cgroup: fork rejected by pids controller in {cgroup:t}",
        "cgroup: fork rejected by pids controller in /user.slice/user-1000.slice/session-7.scope", "seen",
    ),
)  # fmt: skip

LIMIT_FORMATS = (
    LineFormat(
        "conntrack.full", "conntrack_full", "critical", "nf_conntrack: {where:c}table full, dropping packet{rest:t}",
        "nf_conntrack: table full, dropping packet", "source",
    ),
    LineFormat(
        "neighbour.overflow", "neighbour_table_full", "warning",
        "neighbour: {table:w} neighbor table overflow!", "neighbour: arp_cache: neighbor table overflow!", "seen",
    ),
    LineFormat(
        "audit.limit", "audit_backlog", "warning", "audit: backlog limit exceeded",
        "audit: backlog limit exceeded", "source",
    ),
    LineFormat(
        "audit.backlog", "audit_backlog", "warning",
        "audit: audit_backlog={backlog:d} > audit_backlog_limit={limit:d}",
        "audit: audit_backlog=4097 > audit_backlog_limit=4096", "source",
    ),
    LineFormat(
        "audit.lost", "audit_backlog", "warning",
        "audit: audit_lost={lost:d} audit_rate_limit={rate_limit:d} audit_backlog_limit={limit:d}",
        "audit: audit_lost=117 audit_rate_limit=0 audit_backlog_limit=8192", "unconfirmed",
    ),
    LineFormat(
        "netdev.unregister-wait", "netdev_unregister_wait", "warning",
        "unregister_netdevice: waiting for {interface:w} to become free. Usage count = {usage_count:d}{rest:t}",
        "unregister_netdevice: waiting for lo to become free. Usage count = 3", "source",
    ),
    LineFormat(
        "tcp.memory", "tcp_memory", "warning", "TCP: out of memory -- consider tuning tcp_mem",
        "TCP: out of memory -- consider tuning tcp_mem", "unconfirmed",
    ),
    LineFormat(
        "tcp.syn-flood", "syn_flood", "info", "TCP: {listener:c}: Possible SYN flooding on port {port:c}. {rest:t}",
        "TCP: request_sock_TCP: Possible SYN flooding on port 0.0.0.0:6379. Sending cookies.", "unconfirmed",
    ),
    LineFormat(
        "net.ratelimit", "log_suppressed", "info", "net_ratelimit: {suppressed:d} callbacks suppressed",
        "net_ratelimit: 6400 callbacks suppressed", "seen",
    ),
    LineFormat(
        "nfs.silent", "nfs_not_responding", "warning", "nfs: server {server:w} not responding, {rest:t}",
        "nfs: server fs-01.efs.internal not responding, still trying", "unconfirmed",
    ),
)  # fmt: skip

FAULT_FORMATS = (
    LineFormat(
        "ext4.error", "fs_error", "critical", "EXT4-fs error (device {device:w}): {rest:t}",
        "EXT4-fs error (device nvme0n1p1): ext4_find_entry:1455: inode #2: comm systemd: reading directory lblock 0",
        "unconfirmed",
    ),
    LineFormat(
        "xfs.error", "fs_error", "critical", "XFS ({device:w}): {what:c} detected{rest:t}",
        "XFS (nvme1n1): Metadata corruption detected at xfs_agf_read_verify+0x70/0x120", "unconfirmed",
    ),
    LineFormat(
        "xfs.shutdown", "fs_error", "critical", "XFS ({device:w}): Filesystem has been shut down{rest:t}",
        "XFS (nvme1n1): Filesystem has been shut down due to log error (0x2).", "unconfirmed",
    ),
    LineFormat(
        "io.error", "io_error", "critical", "I/O error, dev {device:w}, sector {sector:d} {rest:t}",
        "I/O error, dev nvme1n1, sector 2048 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2", "unconfirmed",
    ),
    LineFormat(
        "io.error.to-5.17", "io_error", "critical",
        "blk_update_request: I/O error, dev {device:w}, sector {sector:d}{rest:t}",
        "blk_update_request: I/O error, dev sda, sector 2048 op 0x0:(READ) flags 0x0", "unconfirmed",
    ),
    LineFormat(
        "io.buffer", "io_error", "critical",
        "Buffer I/O error on dev {device:w}, logical block {block:d}, {rest:t}",
        "Buffer I/O error on dev sda1, logical block 256, async page read", "unconfirmed",
    ),
    LineFormat(
        "nvme.timeout", "io_error", "critical",
        "nvme {controller:w}: I/O {request:c} QID {queue:d} timeout, {action:t}",
        "nvme nvme1: I/O 22 QID 3 timeout, aborting", "source",
    ),
    LineFormat(
        "segfault", "segfault", "info",
        "{comm:c}[{pid:d}]: segfault at {address:x} ip {ip:x} sp {sp:x} error {error:x}{rest:t}",
        "python3[17804]: segfault at 0 ip 00007fa8e4b85ad8 sp 00007ffdc8e1b588 error 4 "
        "in libc.so.6[167ad8,7fa8e4a44000+156000] likely on CPU 0 (core 0, socket 0)",
        "seen",
    ),
    LineFormat(
        "kernel.warning", "kernel_warning", "warning", "WARNING: CPU: {cpu:d} PID: {pid:d} at {rest:t}",
        "WARNING: CPU: 3 PID: 1234 at net/sched/sch_generic.c:467 dev_watchdog+0x221/0x230", "seen",
    ),
    # 28ea295f941e (6.19): the place comes first.
    LineFormat(
        "kernel.warning.6.19", "kernel_warning", "warning", "WARNING: {where:w} at {function:n}, CPU#{cpu:d}: {comm:c}/{pid:d}",
        "WARNING: net/sched/sch_generic.c:525 at dev_watchdog+0x221/0x230, CPU#3: swapper/3/0", "source",
    ),
    LineFormat(
        "kernel.bug-at", "kernel_bug", "critical", "kernel BUG at {where:t}",
        "kernel BUG at mm/slub.c:4321!", "unconfirmed",
    ),
    LineFormat(
        "kernel.bug-null", "kernel_bug", "critical", "BUG: kernel NULL pointer dereference, address: {address:x}",
        "BUG: kernel NULL pointer dereference, address: 0000000000000008", "unconfirmed",
    ),
    LineFormat(
        "kernel.bug-page-fault", "kernel_bug", "critical", "BUG: unable to handle {rest:t}",
        "BUG: unable to handle page fault for address: ffffc90000a3f000", "unconfirmed",
    ),
    LineFormat(
        "kernel.oops", "kernel_bug", "critical", "Oops: {rest:t}",
        "Oops: 0002 [#1] SMP NOPTI", "unconfirmed",
    ),
    LineFormat(
        "kernel.gpf", "kernel_bug", "critical", "general protection fault{rest:t}",
        "general protection fault, probably for non-canonical address 0xdead000000000122: 0000 [#1] SMP", "unconfirmed",
    ),
    LineFormat(
        "kernel.panic", "kernel_panic", "critical", "Kernel panic - not syncing: {reason:t}",
        "Kernel panic - not syncing: Hard LOCKUP", "source",
    ),
)  # fmt: skip
