"""The founding case: a GPU node whose core 39 was lost for six seconds, with the figures that were published.

96 cores and kernel 5.4. kubelet reads memory.numa_stat, for which that kernel walks every memory cgroup: 68,680 of
them, of which 240 are in use. kubelet takes 6.5% of all CPU; core 39 never lets go for six seconds, its network queue
is not polled, and the ENA driver resets the card. The ECS agent, which came with the image and which nobody uses, is a
container that ends after ten seconds. Its supervisor in ecs.service creates it again over Docker's socket, and each
round leaks a memory cgroup. systemd sees one healthy unit and counts no restart.

Published: 96 vCPU, the three ENA lines, core 39, kubelet's 6.5%, the function, 68,680 against 240, the image and its
"Up 10 seconds". Assumed: the kernel (only before 5.8 is there such a walk), cgroup v1 with Docker's cgroupfs driver,
the reader's frame (memory.numa_stat), and the exit code of the agent.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping

from zombiescope.imports.raw_case import IDLE, RawCase, Work, kernel, user

CPUS = 96
LOST_CPU = 39
LOST_FROM_S, LOST_TO_S = 14, 20
TRACKED, IN_USE = 68_680, 240
RESTART_S = 11
AGENT = "amazon/amazon-ecs-agent:latest"
DOCKER_KEEPS = 256
_ROUND = (("create", 0.2), ("attach", 0.21), ("start", 0.6), ("die", 10.6), ("destroy", 10.8))
SECONDS = 30

SYSCALL = ("entry_SYSCALL_64_after_hwframe", "do_syscall_64")
WALK = (*SYSCALL, "__x64_sys_read", "ksys_read", "vfs_read", "__vfs_read", "seq_read", "memcg_numa_stat_show",
        "mem_cgroup_nr_lru_pages")  # fmt: skip
_POLL = (*(name for name, _ in IDLE.frames[:4]), "cpuidle_enter", "cpuidle_enter_state", "ret_from_intr", "do_IRQ",
         "irq_exit", "__do_softirq", "net_rx_action", "ena_io_poll")  # fmt: skip
_PYTHON = user("/usr/bin/python3.8", "_start", "Py_RunMain", "_PyEval_EvalFrameDefault")
_TORCH = "/opt/conda/lib/python3.8/site-packages/torch/lib/libtorch_cpu.so"
_KUBELET = user(
    "/usr/bin/kubelet",
    "runtime.goexit",
    "github.com/google/cadvisor/manager.(*containerData).housekeeping",
    "github.com/opencontainers/runc/libcontainer/cgroups/fs.getPageUsageByNUMA",
    "syscall.Syscall",
)
_FAULT = kernel("page_fault", "do_user_addr_fault", "handle_mm_fault", "clear_page_erms")
_RAYLET = user("/opt/ray/raylet", "main", "boost::asio::detail::scheduler::run", "ray::raylet::NodeManager::Run")

ORDINARY = (
    Work("python3", 41210, 52, (*_PYTHON, *user(_TORCH, "at::native::addmm", "mkl_blas_avx512_sgemm_kernel"))),
    Work("python3", 41210, 16, (*_PYTHON, *user(_TORCH, "c10d::ProcessGroupNCCL::workCleanupLoop"))),
    Work("python3", 41210, 9, (*_PYTHON, *_FAULT)),
    Work("raylet", 38804, 9, _RAYLET),
    Work("raylet", 38804, 3, kernel(*SYSCALL, "__x64_sys_sendmsg", "tcp_sendmsg", "tcp_write_xmit")),
    Work("containerd", 2107, 2, (*user("/usr/bin/containerd", "runtime.goexit"), *kernel(*SYSCALL, "do_sys_open"))),
    Work("nvidia-smi", 51833, 1, kernel(*SYSCALL, "__x64_sys_ioctl", "do_vfs_ioctl", "nvidia_unlocked_ioctl")),
    Work("swapper", 0, 8, kernel(*_POLL)),
)
WALKER = Work("kubelet", 1893, 0, (*_KUBELET, *kernel(*WALK)))


def _held(cpu: int, at_s: float, dice: random.Random) -> Work | None:
    """kubelet reads with several threads, one a core; only core 39 gets no rest."""
    if not LOST_FROM_S <= at_s < LOST_TO_S or cpu % 14 != LOST_CPU % 14:
        return None
    return WALKER if cpu == LOST_CPU or dice.random() < 0.87 else None


def _load(cpu: int, second: int, dice: random.Random) -> Mapping[str, float]:
    if LOST_FROM_S < second <= LOST_TO_S and cpu % 14 == LOST_CPU % 14:
        return {"sys": 100.0} if cpu == LOST_CPU else {"usr": 3.0, "sys": 87.0, "soft": 0.5}
    return {"usr": round(dice.uniform(18, 26), 2), "sys": round(dice.uniform(2.5, 6), 2), "soft": 0.9}


def _docker() -> Iterator[tuple[float, str, str, str, str]]:
    """What dockerd still knows: its last 256 events, in the order in which ecs-init asks for them."""
    rounds = DOCKER_KEEPS // len(_ROUND)
    for number in range(rounds):
        identity = hashlib.sha256(f"ecs-agent {number}".encode()).hexdigest()
        for action, after_s in _ROUND:
            yield (rounds - number) * RESTART_S - after_s, action, identity, "ecs-agent", AGENT


def _directories() -> tuple[str, ...]:
    root = "/sys/fs/cgroup/memory"
    kinds = [f"system.slice/unit{number:04d}.service" for number in range(60)]
    kinds += [f"kubepods/burstable/pod{number:04d}" for number in range(IN_USE - 61)]
    return (root, *(f"{root}/{kind}" for kind in kinds))


_CARD = "ena 0000:20:03.0"
CASE = RawCase(
    host="ip-10-1-39-7",
    kernel="5.4.0-1103-aws",
    cpus=CPUS,
    hz=97,
    seconds=SECONDS,
    end_unix=1_743_476_542,  # 2025-04-01 03:02:22 UTC
    uptime_end_s=1_214_880.0,  # two weeks: as long as the leak took
    busy=0.28,
    ordinary=ORDINARY,
    held=_held,
    load=_load,
    works=(WALKER,),
    dmesg=(
        (
            LOST_FROM_S + 6.6,
            f"{_CARD} eth0: TX q 5 is paused for too long (threshold 5000000). Time since last napi 6596000 usec. "
            "napi scheduled: 1",
        ),
        (LOST_FROM_S + 6.61, f"{_CARD} eth0: napi handler hasn't been called for a long time but is scheduled"),
        (
            LOST_FROM_S + 7.4,
            f"{_CARD}: Device reset completed successfully, Driver info: Elastic Network Adapter (ENA) v2.11.0g",
        ),
    ),
    docker=tuple(_docker()),
    tracked=TRACKED,
    directories=_directories(),
)
