"""The founding case as its team had it in hand: raw files, written anew from the figures that were published.

A GPU node with 96 cores and kernel 5.4. kubelet reads memory.numa_stat, for which that kernel walks every memory cgroup:
68,680 of them, of which 240 are in use. Core 39 is held for six seconds; its network queue is not polled, and the ENA
driver resets the card. ecs.service, which came with the image and which nobody uses, crashes and is started again every
eleven seconds; each round leaks a memory cgroup.

What is written are inputs, never our own tables: text of `perf script --header`, output of `mpstat -P ALL -o JSON 1`,
dmesg, the journal of the last hour, a copy of /proc/cgroups and a list of the cgroup directories.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

HOST = "ip-10-1-39-7"
KERNEL = "5.4.0-1103-aws"
CPUS, HZ, SECONDS = 96, 97, 30
BUSY = 0.28
LOST_CPU = 39
LOST_FROM_S, LOST_TO_S = 14, 20
TRACKED, IN_USE = 68_680, 240
RESTART_S = 11
END_UNIX = 1_743_476_542  # 2025-04-01 03:02:22 UTC
UPTIME_END_S = 1_214_880.0
"""Two weeks: as long as the leak took."""

_SYSCALL = ("entry_SYSCALL_64_after_hwframe", "do_syscall_64")
WALK = (*_SYSCALL, "__x64_sys_read", "ksys_read", "vfs_read", "__vfs_read", "seq_read", "memcg_numa_stat_show",
        "mem_cgroup_nr_lru_pages")  # fmt: skip
IDLE = ("secondary_startup_64", "start_secondary", "cpu_startup_entry", "do_idle", "call_cpuidle", "cpuidle_enter",
        "cpuidle_enter_state", "native_safe_halt")  # fmt: skip
_POLL = ("secondary_startup_64", "start_secondary", "cpu_startup_entry", "do_idle", "cpuidle_enter", "cpuidle_enter_state",
         "ret_from_intr", "do_IRQ", "irq_exit", "__do_softirq", "net_rx_action", "ena_io_poll")  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Work:
    """Something that cores do: who, and the stack, outermost first; user frames carry their file."""

    comm: str
    pid: int
    weight: int
    frames: tuple[tuple[str, str], ...]


def _kernel(*names: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, "[kernel.kallsyms]") for name in names)


def _user(file: str, *names: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, file) for name in names)


_PYTHON = _user("/usr/bin/python3.8", "_start", "Py_RunMain", "_PyEval_EvalFrameDefault")
_TORCH = "/opt/conda/lib/python3.8/site-packages/torch/lib/libtorch_cpu.so"
_KUBELET = _user("/usr/bin/kubelet", "runtime.goexit", "github.com/google/cadvisor/manager.(*containerData).housekeeping",
                 "github.com/opencontainers/runc/libcontainer/cgroups/fs.getPageUsageByNUMA", "syscall.Syscall")  # fmt: skip
_ORDINARY = (
    _Work("python3", 41210, 52, (*_PYTHON, *_user(_TORCH, "at::native::addmm", "mkl_blas_avx512_sgemm_kernel"))),
    _Work("python3", 41211, 14, (*_PYTHON, *_user(_TORCH, "c10d::ProcessGroupNCCL::workCleanupLoop"))),
    _Work("python3", 41210, 9, (*_PYTHON, *_kernel("page_fault", "do_user_addr_fault", "handle_mm_fault", "clear_page_erms"))),
    _Work("raylet", 38804, 8, _user("/opt/ray/raylet", "main", "boost::asio::detail::scheduler::run", "ray::raylet::NodeManager")),
    _Work("raylet", 38804, 4, _kernel(*_SYSCALL, "__x64_sys_sendmsg", "tcp_sendmsg", "tcp_write_xmit")),
    _Work("containerd", 2107, 3, (*_user("/usr/bin/containerd", "runtime.goexit"), *_kernel(*_SYSCALL, "do_sys_open"))),
    _Work("nvidia-smi", 51833, 2, _kernel(*_SYSCALL, "__x64_sys_ioctl", "do_vfs_ioctl", "nvidia_unlocked_ioctl")),
    _Work("swapper", 0, 8, _kernel(*_POLL)),
)  # fmt: skip
_WALKER = _Work("kubelet", 1893, 0, (*_KUBELET, *_kernel(*WALK)))
_IDLE = _Work("swapper", 0, 0, _kernel(*IDLE))


def write(directory: Path) -> list[Path]:
    """The files; their times are those of the case."""
    directory.mkdir(parents=True, exist_ok=True)
    files = {
        f"perf-{HOST}-20250401-03-01-52-30s.stacks": "".join(_perf_script()),
        "mpstat.json": json.dumps(_mpstat()),
        "dmesg.txt": "".join(_dmesg()),
        "journal.txt": "".join(_journal()),
        "proc-cgroups.txt": _proc_cgroups(),
        "cgroup-directories.txt": "".join(_directories()),
    }
    written = []
    for name, text in files.items():
        path = directory / name
        path.write_text(text)
        os.utime(path, (END_UNIX, END_UNIX))
        written.append(path)
    return written


# --- the profile -------------------------------------------------------------------------------------------------


def _perf_script() -> Iterator[str]:
    yield (
        "# ========\n"
        f"# captured on    : {time.strftime('%a %b %e %H:%M:%S %Y', time.localtime(END_UNIX))}\n"
        f"# hostname : {HOST}\n# os release : {KERNEL}\n# perf version : 5.4.253\n# arch : x86_64\n"
        f"# nrcpus online : {CPUS}\n# nrcpus avail : {CPUS}\n"
        f"# cmdline : /usr/bin/perf record -F {HZ} -g -a -o perf-{HOST}-120s.data -- sleep {SECONDS}\n"
        "# event : name = cycles, , size = 112, { sample_period, sample_freq } = 97\n# ========\n#\n"
    )
    dice = random.Random(39)
    stacks = {id(work): _stack(work) for work in (*_ORDINARY, _WALKER, _IDLE)}
    weights = [work.weight for work in _ORDINARY]
    start = UPTIME_END_S - SECONDS
    for tick in range(SECONDS * HZ):
        at = start + tick / HZ
        chosen = dice.choices(_ORDINARY, weights, k=CPUS)
        for cpu in range(CPUS):
            work = _what_runs(cpu, at - start, chosen[cpu], dice)
            moment = at + cpu * 3e-6
            yield f"{work.comm:>16} {work.pid:5d} [{cpu:03d}] {moment:.6f}:   10309278 cycles: \n{stacks[id(work)]}"


def _what_runs(cpu: int, at_s: float, ordinary: _Work, dice: random.Random) -> _Work:
    if LOST_FROM_S <= at_s < LOST_TO_S:
        # kubelet reads one container after the other with several threads: 6.5 % of 96 cores, and one core never lets go.
        if cpu == LOST_CPU or (cpu % 16 == 7 and dice.random() < 0.85):
            return _WALKER
    return ordinary if dice.random() < BUSY else _IDLE


def _stack(work: _Work) -> str:
    """Frames as perf script prints them, the innermost first."""
    lines = []
    for depth, (name, file) in enumerate(reversed(work.frames)):
        kernel = file == "[kernel.kallsyms]"
        address = (0xFFFFFFFF81000000 if kernel else 0x55D000000000) + (hash_of(name) & 0xFFFFF0) + depth
        lines.append(f"\t{address:16x} {name}+0x{0x10 + depth:x} ({file})\n")
    return "".join(lines) + "\n"


def hash_of(name: str) -> int:
    """The same in every process, as addresses are."""
    value = 0
    for character in name:
        value = (value * 131 + ord(character)) & 0xFFFFFFFF
    return value


# --- what stood beside it ----------------------------------------------------------------------------------------


def _mpstat() -> dict[str, object]:
    dice = random.Random(40)
    start = END_UNIX - SECONDS
    statistics = []
    for second in range(1, SECONDS + 1):
        loads = [_core_load(cpu, second, dice) for cpu in range(CPUS)]
        mean = {key: round(sum(load[key] for load in loads) / CPUS, 2) for key in loads[0]}
        cores = [{"cpu": "all", **mean}, *({"cpu": str(cpu), **load} for cpu, load in enumerate(loads))]
        stamp = time.strftime("%H:%M:%S", time.localtime(start + second))
        statistics.append({"timestamp": stamp, "cpu-load": cores})
    host = {
        "nodename": HOST,
        "sysname": "Linux",
        "release": KERNEL,
        "machine": "x86_64",
        "number-of-cpus": CPUS,
        "date": time.strftime("%m/%d/%Y", time.localtime(END_UNIX)),
        "statistics": statistics,
    }
    return {"sysstat": {"hosts": [host]}}


def _core_load(cpu: int, second: int, dice: random.Random) -> dict[str, float]:
    lost = LOST_FROM_S < second <= LOST_TO_S
    if lost and cpu == LOST_CPU:
        return _load(usr=0.0, sys=100.0)
    kernel = 85.0 if lost and cpu % 16 == 7 else round(dice.uniform(2.5, 6.0), 2)
    return _load(usr=round(dice.uniform(18.0, 26.0) * (0.1 if kernel > 50 else 1), 2), sys=kernel)


def _load(*, usr: float, sys: float) -> dict[str, float]:
    soft = 0.0 if sys >= 100 else 0.9
    idle = round(max(0.0, 100 - usr - sys - soft), 2)
    return {"usr": usr, "nice": 0.0, "sys": sys, "iowait": 0.0, "irq": 0.0, "soft": soft, "steal": 0.0, "guest": 0.0,
            "gnice": 0.0, "idle": idle}  # fmt: skip


def _dmesg() -> Iterator[str]:
    start = UPTIME_END_S - SECONDS
    card = "ena 0000:20:03.0"
    lines = (
        (LOST_FROM_S + 6.6, f"{card} eth0: TX q 5 is paused for too long (threshold 5000000). Time since last napi "
                            "6596000 usec. napi scheduled: 1"),
        (LOST_FROM_S + 6.61, f"{card} eth0: napi handler hasn't been called for a long time but is scheduled"),
        (LOST_FROM_S + 7.4, f"{card}: Device reset completed successfully, Driver info: Elastic Network Adapter (ENA) "
                            "v2.11.0g"),
    )  # fmt: skip
    for at_s, text in lines:
        yield f"[{start + at_s:12.6f}] {text}\n"


def _journal() -> Iterator[str]:
    rounds = 3600 // RESTART_S
    for number in range(rounds):
        at = END_UNIX - (rounds - number) * RESTART_S
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S+0000", time.gmtime(at))
        count = TRACKED - IN_USE - rounds + number
        yield f"{stamp} {HOST} systemd[1]: ecs.service: Main process exited, code=exited, status=5/NOTINSTALLED\n"
        yield f"{stamp} {HOST} systemd[1]: ecs.service: Scheduled restart job, restart counter is at {count}.\n"


def _proc_cgroups() -> str:
    rows: Sequence[tuple[str, int, int]] = (
        ("cpuset", 5, 96), ("cpu", 4, IN_USE), ("cpuacct", 4, IN_USE), ("blkio", 8, IN_USE), ("memory", 10, TRACKED),
        ("devices", 6, IN_USE), ("freezer", 3, 97), ("pids", 9, 251),
    )  # fmt: skip
    lines = [f"{name}\t{hierarchy}\t{count}\t1\n" for name, hierarchy, count in rows]
    return "#subsys_name\thierarchy\tnum_cgroups\tenabled\n" + "".join(lines)


def _directories() -> Iterator[str]:
    yield "/sys/fs/cgroup/memory\n"
    for number in range(IN_USE - 1):
        kind = "system.slice/unit" if number < 60 else "kubepods/burstable/pod"
        yield f"/sys/fs/cgroup/memory/{kind}{number:04d}\n"
