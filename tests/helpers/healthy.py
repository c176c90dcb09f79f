"""Healthy nodes of any width: what training, compiling, serving pods and reading files look like to the recorder.

Each load is a scene of twenty seconds whose samples, cores and counters agree, and grows with the number of cores. What
they have in common: much kernel time, large totals, cores that are busy for seconds, and nobody who suffers.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.helpers.scenes import SECONDS, SYSCALL, Scene

HZ = 20
CALL = " ".join(SYSCALL)
FAULT = "asm_exc_page_fault exc_page_fault do_user_addr_fault handle_mm_fault __handle_mm_fault"
SHMEM = f"{FAULT} do_fault __do_fault shmem_fault shmem_get_folio_gfp shmem_alloc_and_add_folio clear_page_erms"
TOUCH = f"{FAULT} do_anonymous_page vma_alloc_folio_noprof clear_page_erms"
MAPPED = f"{FAULT} do_read_fault do_fault_around filemap_map_pages next_uptodate_folio"
PIN = (
    f"{CALL} __x64_sys_ioctl nvidia_unlocked_ioctl rm_ioctl os_lock_user_pages pin_user_pages __gup_longterm_locked "
    "faultin_page handle_mm_fault do_anonymous_page clear_page_erms"
)
EXIT = f"{CALL} __x64_sys_exit_group do_group_exit do_exit exit_mm mmput exit_mmap unmap_vmas zap_pte_range"
CLOSE = f"{CALL} exit_to_user_mode_loop task_work_run __fput nvidia_close nvidia_close_callback rm_cleanup_file_private"
WRITE = f"{CALL} ksys_write vfs_write ext4_buffered_write_iter generic_perform_write copy_page_from_iter_atomic"
FLUSH = "ret_from_fork kthread worker_thread wb_workfn wb_writeback writeback_sb_inodes do_writepages ext4_writepages"
READ = f"{CALL} ksys_read vfs_read ext4_file_read_iter filemap_read copy_page_to_iter _copy_to_iter"
KSWAPD = "ret_from_fork kthread kswapd balance_pgdat shrink_node shrink_lruvec shrink_inactive_list shrink_folio_list"
YIELD = f"{CALL} __x64_sys_sched_yield do_sched_yield schedule __schedule"
EXEC = f"{CALL} __x64_sys_execve do_execveat_common bprm_execve load_elf_binary begin_new_exec exec_mmap exit_mmap"
FORK = f"{CALL} __do_sys_vfork kernel_clone copy_process dup_task_struct"
CGROUP = f"{CALL} __x64_sys_openat do_filp_open path_openat lookup_fast kernfs_dop_revalidate"
SYSFS = f"{CALL} ksys_read vfs_read kernfs_seq_show sysfs_kf_seq_show dev_attr_show speed_show"
OPENS = f"{CALL} __x64_sys_openat path_openat lookup_fast kernfs_iop_permission kernfs_refresh_inode"
SECCOMP = f"{CALL} syscall_trace_enter __seccomp_filter bpf_prog_a1b2c3d4e5f60718"
NETNS = f"{CALL} __x64_sys_unshare create_new_namespaces copy_net_ns setup_net ops_init"
CLEANUP = "ret_from_fork kthread worker_thread process_one_work cleanup_net ops_undo_list"
MKDIR = f"{CALL} do_mkdirat vfs_mkdir kernfs_iop_mkdir cgroup_mkdir cgroup_apply_control_enable"
MOUNT = f"{CALL} __x64_sys_mount path_mount do_new_mount"

Load = Callable[[int], Scene]


def node(cpus: int, **vmstat: float) -> Scene:
    """What every node counts, by its number of cores."""
    scene = Scene(kernel="6.18.0", cpus=cpus, hz=HZ).census(300 + 10 * cpus, 50 + cpus)
    known = {"pgfault": 2_000.0 * cpus, "numa_pte_updates": 1_000.0 * cpus, **vmstat}
    for name in ("allocstall", "pgscan_direct", "pgscan_kswapd", "pgsteal_kswapd", "compact_migrate_scanned",
                 "compact_stall", "thp_fault_alloc", *known):  # fmt: skip
        scene.counter("vmstat", name, known.get(name, 0.0), calm_per_s=known.get(name, 0.0))
    scene.counter("stat", "ctxt", 3_000 * cpus, calm_per_s=3_000 * cpus)
    scene.interrupts("TLB", 600 * cpus)
    return scene.gauge("meminfo", "anon_pages_bytes", cpus * 4 << 30).gauge("dentry", "negative", 12_000 * cpus)


def processes(scene: Scene, per_s: float) -> Scene:
    return scene.counter("stat", "processes", per_s, calm_per_s=per_s)


def workers(scene: Scene, from_s: float, to_s: float, kernel: float, busy: float = 0.9) -> Scene:
    """Data loaders on half of the cores: they compute, and fill shared memory."""
    for cpu in range(2, 2 + scene.cpus // 2):
        who = {"cpu": cpu, "pid": 2000 + cpu, "ppid": 1500, "from_s": from_s, "to_s": to_s}
        scene.hog("", "pt_data_worker", share=busy * (1 - kernel), **who)
        scene.hog(SHMEM, "pt_data_worker", share=busy * kernel, **who)
    return scene


def trainer(scene: Scene, from_s: float, to_s: float) -> Scene:
    """The main process: it computes, and now and then asks the driver for something."""
    who = {"cpu": 1, "pid": 1500, "from_s": from_s, "to_s": to_s}
    return scene.hog("", "python3", share=0.8, **who).hog(PIN, "python3", share=0.1, **who)


def training_start(cpus: int) -> Scene:
    """Imports are mapped, memory is touched and pinned on one core, and the workers fill their first batches."""
    scene = node(cpus, pgfault=35_000 * cpus).counter("vmstat", "pgalloc", 400_000)
    who = {"cpu": 1, "pid": 1500}
    scene.hog(MAPPED, "python3", from_s=3, to_s=5, **who).hog(TOUCH, "python3", from_s=5, to_s=8, **who)
    scene.hog(PIN, "python3", from_s=8, to_s=12, **who)
    return trainer(workers(workers(scene, 6, 11, 0.85), 11, 20, 0.35), 12, 20)


def training_steady(cpus: int) -> Scene:
    return trainer(workers(processes(node(cpus, pgfault=35_000 * cpus), 4), 0, 20, 0.35), 0, 20)


def training_checkpoint(cpus: int) -> Scene:
    """One process writes for seconds, and a kworker writes it back."""
    scene = workers(node(cpus, pgfault=35_000 * cpus), 0, 20, 0.35).hog("", "python3", pid=1500, from_s=0, to_s=4)
    scene.hog(WRITE, "python3", pid=1500, from_s=4, to_s=14)
    return scene.hog(FLUSH, "kworker/u:flush", cpu=0, pid=90, ppid=2, from_s=6, to_s=18)


def training_end(cpus: int) -> Scene:
    """The memory of a huge process is freed, threads and workers end, and its GPUs are closed."""
    scene = trainer(workers(processes(node(cpus, pgfault=35_000 * cpus), 6), 0, 6, 0.35), 0, 6)
    for cpu in range(2, 2 + cpus // 2):
        scene.hog(EXIT, "pt_data_worker", cpu=cpu, pid=2000 + cpu, ppid=1500, from_s=6, to_s=7.5)
    for number in range(8):
        scene.hog(EXIT, "python3", cpu=1, pid=1500, tid=1500 + number, share=0.12, from_s=6, to_s=14)
    return scene.hog(CLOSE, "python3", cpu=cpus - 1, pid=1600, from_s=7, to_s=15)


def nccl(cpus: int) -> Scene:
    """Threads that wait for a network by looking again and again, on a quarter of the cores."""
    scene = training_steady(cpus)
    for number in range(cpus // 4):
        who = {"cpu": 3 * cpus // 4 + number, "pid": 1500, "tid": 1700 + number, "from_s": 0, "to_s": 20}
        scene.hog("", "python3", share=0.35, **who).hog(YIELD, "python3", share=0.6, **who)
    return scene


def compile_farm(cpus: int) -> Scene:
    """Compilers on all cores, each started by a shell that make started: half a second each, mostly outside of the
    kernel. The farm begins in the sixth second."""
    scene = node(cpus, pgfault=20_000 * cpus).counter("stat", "processes", 8 * cpus)
    for cpu in range(cpus):
        for turn in range(12):
            from_s, pid = 5 + turn * 0.5, 10_000 + 40 * cpu + 3 * turn
            make = 5000 + cpu // 16
            scene.hog(FORK, "make", cpu=cpu, pid=make, ppid=4000, from_s=from_s, to_s=from_s + 0.05)
            scene.hog(EXEC, "sh", cpu=cpu, pid=pid, ppid=make, from_s=from_s + 0.05, to_s=from_s + 0.1)
            scene.hog("", "cc1", cpu=cpu, pid=pid + 1, ppid=pid, from_s=from_s + 0.1, to_s=from_s + 0.45)
            scene.hog(EXIT, "cc1", cpu=cpu, pid=pid + 1, ppid=pid, from_s=from_s + 0.45, to_s=from_s + 0.5)
    return scene


def pods(cpus: int) -> Scene:
    """Two hundred pods in sandboxes, a kubelet that reads their cgroups and an exporter that reads sysfs."""
    scene = processes(node(cpus), 25).census(2_400, 300)
    scene.hog(CGROUP, "kubelet", cpu=0, pid=900, share=0.5, from_s=0, to_s=20)
    scene.hog("", "kubelet", cpu=0, pid=900, share=0.3, from_s=0, to_s=20)
    scene.hog(SYSFS, "node_exporter", cpu=1, pid=901, share=0.25, from_s=0, to_s=20)
    scene.hog(OPENS, "node_exporter", cpu=1, pid=901, share=0.35, from_s=0, to_s=20)
    for pod in range(200):
        box = f"{pod:064x}"
        who = {"cpu": 2 + pod % (cpus - 2), "pid": 3000 + pod, "container": box, "from_s": 0, "to_s": 20}
        share = min(0.9, 0.35 * cpus / 200)
        scene.hog("", "app", share=share / 2, **who).hog(SECCOMP, "app", share=share / 2, **who)
    return scene


def reading(cpus: int) -> Scene:
    """Files are read through the page cache on half of the cores, from the sixth second on; kswapd keeps up."""
    scene = node(cpus)
    for name, per_s in (("pgscan_kswapd", 20_000 * cpus), ("pgsteal_kswapd", 19_600 * cpus)):
        scene.counter("vmstat", name, per_s)
    for cpu in range(2, 2 + cpus // 2):
        who = {"cpu": cpu, "pid": 2000 + cpu, "ppid": 1500, "from_s": 5, "to_s": 11}
        scene.hog(READ, "reader", share=0.7, **who).hog("", "reader", share=0.2, **who)
    scene.hog(MAPPED, "mapped-reader", cpu=1, pid=1990, from_s=5, to_s=11)
    return scene.hog(KSWAPD, "kswapd0", cpu=0, pid=80, ppid=2, from_s=5, to_s=11)


def container_churn(cpus: int) -> Scene:
    """A container a second: cgroups, a network namespace and mounts are made, and all of it goes again."""
    scene = training_steady(cpus)
    for second in range(SECONDS):
        at = float(second)
        runc = {"pid": 8000 + second, "ppid": 700, "cpu": 0}
        scene.hog(NETNS, "runc", from_s=at, to_s=at + 0.1, **runc).hog(MOUNT, "runc", from_s=at + 0.1, to_s=at + 0.25,
                                                                       **runc)  # fmt: skip
        scene.hog(MKDIR, "runc", from_s=at + 0.25, to_s=at + 0.35, **runc)
        scene.hog(CLEANUP, "kworker/u:netns", cpu=0, pid=60, ppid=2, from_s=at + 0.4, to_s=at + 0.5)
        scene.hog(EXIT, "sh", cpu=0, pid=9000 + second, ppid=8000 + second, from_s=at + 0.5, to_s=at + 0.55)
        count = 12 * (second + 1)
        end_us = 1_760_000_000_000_000 + (second + 1) * 1_000_000
        scene.made.census(end_us, 600, 40, created=count, removed=count, released=count)
    return scene


LOADS: tuple[Load, ...] = (
    training_start, training_steady, training_checkpoint, training_end, nccl, compile_farm, pods, reading,
    container_churn,
)  # fmt: skip
