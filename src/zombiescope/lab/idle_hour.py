"""An idle hour of a node with eight cores, as raw files: what a healthy machine looks like to everybody's tools."""

from __future__ import annotations

import random
from collections.abc import Mapping

from zombiescope.imports.founding_case import SYSCALL
from zombiescope.imports.raw_case import RawCase, Work, kernel, user

SECONDS = 3600
_ORDINARY = (
    Work("systemd", 1, 4, (*user("/lib/systemd/systemd", "main", "manager_loop"), *kernel(*SYSCALL, "do_epoll_wait"))),
    Work("systemd-journal", 312, 6, kernel(*SYSCALL, "vfs_write", "ext4_file_write_iter", "generic_perform_write")),
    Work("kubelet", 940, 20, user("/usr/bin/kubelet", "runtime.goexit", "runtime.mallocgc")),
    Work("kubelet", 940, 6, kernel(*SYSCALL, "vfs_read", "seq_read_iter", "cgroup_seqfile_show")),
    Work("containerd", 901, 10, user("/usr/bin/containerd", "runtime.goexit", "runtime.scanobject")),
    Work(
        "kworker/2:1", 77, 4, kernel("ret_from_fork", "kthread", "worker_thread", "process_one_work", "vmstat_update")
    ),
    Work("rcu_sched", 14, 2, kernel("ret_from_fork", "kthread", "rcu_gp_kthread", "schedule_timeout")),
    Work("cron", 640, 1, kernel("asm_exc_page_fault", "exc_page_fault", "handle_mm_fault", "clear_page_erms")),
)


def _load(_cpu: int, _second: int, dice: random.Random) -> Mapping[str, float]:
    return {"usr": round(dice.uniform(0.5, 3), 2), "sys": round(dice.uniform(0.2, 1.5), 2), "soft": 0.1}


CASE = RawCase(
    host="quiet",
    kernel="6.1.0-18-amd64",
    cpus=8,
    hz=11,
    seconds=SECONDS,
    end_unix=1_743_476_400,
    uptime_end_s=864_000.0,
    busy=0.03,
    ordinary=_ORDINARY,
    held=lambda _cpu, _at_s, _dice: None,
    load=_load,
    dmesg=((600.0, "EXT4-fs (vda1): re-mounted. Quota mode: none."), (2000.0, "systemd-journald[312]: Time jumped.")),
    journal=tuple((before_s, "logrotate.service: Deactivated successfully.") for before_s in (3000, 1200)),
    tracked=310,
    directories=(
        "/sys/fs/cgroup/memory",
        *(f"/sys/fs/cgroup/memory/system.slice/u{number}.service" for number in range(295)),
    ),
)
