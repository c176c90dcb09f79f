"""What breaks on a node of a made fleet: the pattern that the diagnosis would name, its culprit, and where the kernel
spends its time. Stacks are those that the laboratory's faults have on real kernels."""

from __future__ import annotations

from dataclasses import dataclass

_SYSCALL = ("entry_SYSCALL_64_after_hwframe", "do_syscall_64")


@dataclass(frozen=True, slots=True)
class Fault:
    pattern: str
    hog: str
    culprit: str
    """The unit."""
    frames: tuple[str, ...]
    """In the kernel, outermost first."""
    zombies_per_hour: int = 0
    severity: str = "warning"
    event: tuple[str, str, str] | None = None
    """kind, text and JSON fields of what the kernel says."""


ZOMBIES = Fault(
    "zombie-memcg", "kubelet", "ecs.service",
    (*_SYSCALL, "ksys_read", "vfs_read", "seq_read", "memcg_stat_show", "mem_cgroup_iter", "css_next_descendant_pre"),
    zombies_per_hour=2400, severity="critical",
    event=("nic_tx_timeout", "ena: TX timeout on queue 5", '{"interface":"eth0","queue":5}'),
)  # fmt: skip
LEAK = "/docker/*"
"""Where the zombies come from, as the ledger writes it."""

OTHERS = (
    Fault("smaps-reader", "node-exporter", "node-exporter.service",
          (*_SYSCALL, "ksys_read", "seq_read_iter", "show_smaps_rollup", "walk_page_vma", "smaps_pte_range")),
    Fault("global-reclaim", "python3", "ray-worker.service",
          ("asm_exc_page_fault", "exc_page_fault", "handle_mm_fault", "__alloc_pages_slowpath", "try_to_free_pages",
           "shrink_node", "shrink_lruvec")),
    Fault("fork-storm", "sh", "cron.service",
          (*_SYSCALL, "__x64_sys_execve", "bprm_execve", "load_elf_binary", "exec_mmap", "exit_mmap")),
    Fault("negative-dentries", "fluent-bit", "fluent-bit.service",
          (*_SYSCALL, "__x64_sys_inotify_add_watch", "fsnotify_add_mark_locked", "fsnotify_set_children_dentry_flags")),
    Fault("gpu-fallen-off", "python3", "ray-worker.service",
          (*_SYSCALL, "__x64_sys_ioctl", "nvidia_unlocked_ioctl", "rm_ioctl", "os_acquire_spinlock"),
          severity="critical", event=("gpu_xid", "NVRM: Xid (PCI:0000:10:1c): 79, GPU has fallen off the bus.",
                                      '{"xid":79,"pci":"0000:10:1c"}')),
)  # fmt: skip
"""What happens anywhere now and then."""

WORK = (
    (("_start", "main", "train_step", "ncclAllReduce"), ()),
    (("_start", "main", "DataLoader.next", "read"),
     (*_SYSCALL, "ksys_read", "vfs_read", "ext4_file_read_iter", "filemap_read", "copy_page_to_iter")),
    (("_start", "main", "backward", "cudaLaunchKernel", "ioctl"),
     (*_SYSCALL, "__x64_sys_ioctl", "nvidia_unlocked_ioctl")),
    (("_start", "main", "gc_collect"), ()),
    ((), ("ret_from_fork", "kthread", "worker_thread", "process_one_work", "nvme_irq_work")),
    ((), ("asm_common_interrupt", "common_interrupt", "handle_softirqs", "net_rx_action", "ena_io_poll")),
)  # fmt: skip
"""What a node does that trains: user frames and kernel frames."""

UNITS = (
    "ray-worker.service", "kubelet.service", "containerd.service", "node-exporter.service", "fluent-bit.service",
    "systemd-journald.service", "chronyd.service", "sshd.service", "cron.service", "dbus.service",
    "nvidia-persistenced.service", "amazon-ssm-agent.service", "systemd-udevd.service", "irqbalance.service",
)  # fmt: skip
