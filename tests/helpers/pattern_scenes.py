"""What happens to a node in the rows of the patterns: each a change of a scene."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.helpers.made import SECOND, START_US
from tests.helpers.scenes import Scene
from zombiescope.store.loss import SAMPLES, loss

Told = Callable[[Scene], Scene]
READ = "entry_SYSCALL_64_after_hwframe do_syscall_64 ksys_read vfs_read seq_read"
SOFTIRQ = "asm_common_interrupt common_interrupt irq_exit_rcu __do_softirq"
FAULT = "asm_exc_page_fault exc_page_fault handle_mm_fault do_anonymous_page clear_page_erms"
CHARGE = "do_syscall_64 vfs_read filemap_add_folio charge_memcg try_charge_memcg try_to_free_mem_cgroup_pages"


def nothing(scene: Scene) -> Scene:
    return scene


def hog(frames: str, **more: Any) -> Told:
    return lambda scene: scene.hog(frames, **more)


def newer(frames: str, **more: Any) -> Told:
    def base(scene: Scene) -> Scene:
        scene.kernel = "6.18.0"
        return scene.hog(frames, **more)

    return base


def waits(kind: str, resource: str | None, since_s: int = 4, comm: str = "trainer", **known: Any) -> Told:
    """Three tasks that were found in the same wait at several looks."""

    def told(scene: Scene) -> Scene:
        for second in (9, 14, 19):
            for pid in (31, 32, 33):
                known.setdefault("alike", 3)
                scene.made.wait(START_US + second * SECOND, START_US + since_s * SECOND, comm, pid, kind=kind,
                                resource=resource, wchan="io_schedule", **known)  # fmt: skip
        return scene

    return told


def disk(scene: Scene, device: str, **figures: int) -> Scene:
    for second in range(4, 20):
        scene.made.disk(START_US + (second + 1) * SECOND, device, **figures)
    return scene


def containers(scene: Scene, count: int) -> Scene:
    for number in range(count):
        scene.made.container(START_US + SECOND, f"{number:064x}", runtime="containerd", started=START_US, runs=1)
    return scene


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


def trainer(scene: Scene, usual: int = 90, now: int = 10, from_s: int = 12, **figures: int) -> Scene:
    """A GPU of one trainer, which does less from a second on."""
    scene.schedstat = False
    scene.made.gpu(START_US)
    scene.made.gpu_process(START_US, 0, 800, "train", start_ticks=1)
    for second in range(20):
        used = now if from_s <= second < 18 or from_s < 12 <= second else usual
        more = figures if second >= from_s else dict.fromkeys(figures, 0)
        scene.made.gpu_second(START_US + (second + 1) * SECOND, 0, used, **more)
    return scene


def locked_clocks(scene: Scene) -> Scene:
    """Cool, in use, and at a sixth of its clock all the time."""
    return trainer(scene, now=90, from_s=0, clock_sm_mhz=345, temperature_c=37, reasons=0, sw_thermal_ns=900_000_000)


def training(scene: Scene) -> Scene:
    """A trainer and two workers, from half a minute before the scene on, that do nothing from second 4 on."""
    scene.made.gpu(START_US - 30 * SECOND)
    scene.made.gpu_process(START_US - 30 * SECOND, 0, 800, "train", start_ticks=1)
    for second in range(-30, 20):
        scene.made.gpu_second(START_US + (second + 1) * SECOND, 0, 90 if second < 4 else 0)
    for pid in (800, 811, 812):
        scene.hog("", "agent", pid=pid, ppid=1 if pid == 800 else 800, cpu=pid % 4, from_s=-20, to_s=4, share=0.5)
    stack = [scene.made.frame(name, "python", file) for name, file in (("step", "train.py"), ("get", "<queue>"))]
    for from_s, to_s in ((1, 3), (7, 18)):
        at_us, until_us = START_US + from_s * SECOND, START_US + to_s * SECOND
        scene.made.python(at_us, until_us=until_us, task_tid=800, frames=stack, lines=(1, 2), state="S", looks=9)
    return scene


def stopped_workers(scene: Scene) -> Scene:
    for second in range(6, 19):
        for pid in (811, 812):
            at_us, since_us = START_US + second * SECOND, START_US + 4 * SECOND
            scene.made.wait(at_us, since_us, "agent", pid, kind="stopped", resource="agent:800", state="T")
    return training(scene)


def shared_core(scene: Scene, ppid: int = 1) -> Scene:
    """A trainer that had 60% of a core, and loops that have most of it from second 12 on."""
    trainer(scene).hog("", "train", pid=800, from_s=0, to_s=12, share=0.6)
    scene.hog("", "train", pid=800, from_s=12, to_s=18, share=0.15)
    for number in range(6):
        scene.hog("", "agent", pid=900 + number, ppid=ppid, from_s=12, to_s=18, share=0.14)
    return scene


def busy_workers(scene: Scene) -> Scene:
    trainer(scene, now=30, from_s=9).hog("", "train", pid=800, cpu=0, from_s=0, to_s=20, share=0.1)
    for cpu in (1, 2, 3):
        scene.hog("", "pt_data_worker", cpu=cpu, pid=810 + cpu, ppid=800, from_s=0, to_s=20, share=0.97)
    return scene


def printed(scene: Scene) -> Scene:
    lines = (
        "CPU: 3 PID: 7 Comm: agent Tainted: G             L    5.4.0 #1",
        "RIP: 0010:walk_everything+0x45/0x90",
        "Call Trace:",
        " seq_read+0x10/0x400",
    )
    for line in lines:
        scene.event("kernel_log", line, severity="info")
    return scene


def growing(scene: Scene) -> Scene:
    """For ten minutes."""
    total, free, slab = (
        scene.made.series("meminfo", name, None, "gauge")
        for name in ("mem_total_bytes", "mem_available_bytes", "slab_unreclaimable_bytes")
    )
    for half in range(19):
        at_us = START_US + half * 30 * SECOND
        for number, value in ((total, 256 << 30), (free, 64 << 30), (slab, (4 + half) << 30)):
            scene.made.count(at_us + SECOND, number, value)
    return scene


def unbalanced(scene: Scene) -> Scene:
    for node, free in (("node 0", 1 << 30), ("node 1", 90 << 30)):
        scene.gauge("numa_memory", "total_bytes", 128 << 30, node).gauge("numa_memory", "free_bytes", free, node)
        scene.counter("numa", "numa_hit", 50_000, node, calm_per_s=50_000)
    return scene.counter("numa", "numa_miss", 60_000, "node 1")


def symbol_errors(scene: Scene) -> Scene:
    scene.counter("infiniband", "port_xmit_data", 10_000_000, "mlx5_0/1", calm_per_s=10_000_000)
    return scene.counter("infiniband", "symbol_error", 50, "mlx5_0/1")


def console(scene: Scene, name: str) -> Scene:
    scene.node["consoles"] = [name]
    return scene


def nics(scene: Scene, driver: str) -> Scene:
    scene.node["nics"] = {"eth0": driver}
    return scene


def ranks(scene: Scene, late: int | None = 2, from_s: float = 6.0) -> Scene:
    """Four ranks that meet in a collective after each step of half a second, looked at ten times a second; from then on
    one of them is elsewhere for half of each step. None: each in turn."""
    made = scene.made
    c10d, own = "site-packages/torch/distributed/distributed_c10d.py", "job/train.py"
    waits = [made.frame("main", "python", own), made.frame("all_reduce", "python", c10d)]
    works = [made.frame("main", "python", own), made.frame("augment", "python", own)]
    for rank in range(4):
        pid = 820 + rank
        made.add(
            "ranks", time=START_US - 60 * SECOND, pid=pid, start_ticks=1, rank=rank, world_size=4, local_rank=rank,
            job="7.0", kind="slurm", uid=1000, comm="train", ended=0,
        )  # fmt: skip
        for look in range(200):
            at_s = look / 10
            turn = late if late is not None else (look // 5) % 4
            away = look % 5 < 3 if rank == turn and at_s >= from_s else look % 5 == 0
            frames, lines = (works, (12, 40)) if away else (waits, (14, 2950))
            at_us = START_US + look * SECOND // 10 + 40_000
            made.python(at_us, task_tid=pid, frames=frames, lines=lines, state="S", comm="train")
    return scene


def shared_memory(used: float) -> Told:
    """How full /dev/shm of a container is, of 64 MB."""
    return lambda scene: scene.gauge("shm", "size_bytes", 64 << 20, "0a1b2c3d4e5f").gauge(
        "shm", "used_bytes", int(used * (64 << 20)), "0a1b2c3d4e5f"
    )
