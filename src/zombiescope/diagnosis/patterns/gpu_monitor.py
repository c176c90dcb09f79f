"""GPU monitoring queries the driver so often, or a driver without persistence so slowly, that a core is lost to it."""

from __future__ import annotations

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Pattern, counted, cpu_used, signature
from zombiescope.diagnosis.sample_index import expanded
from zombiescope.diagnosis.thresholds import GPU_MONITOR_CORES, GPU_MONITOR_LITTLE_CORES
from zombiescope.model.plans.step import advice, change, command

MONITORS = (
    "nvidia-smi",
    "dcgm*",
    "nv-hostengine",
    "nvidia-persist*",
    "gpu-feature-di*",
    "nvidia-device-*",
    "rocm-smi",
    "amd-smi",
    "nvtop",
    "nvitop",
    "gpustat",
)
_DRIVER = (
    "nvidia_ioctl nvidia_unlocked_ioctl rm_ioctl nvidia_open nvidia_close nvidia_poll rm_init_adapter "
    "rm_shutdown_adapter"
    " os_acquire_mutex os_acquire_spinlock os_acquire_semaphore os_cond_acquire_mutex nv_* _nv0* rm_*"
    " amdgpu_drm_ioctl amdgpu_ioctl kfd_ioctl"
)


def examine(case: Case) -> Evidence:
    used = case.cores_of(*MONITORS)
    driver = case.cores_in(*_DRIVER.split())
    sampled = len(case.facts.samples) > 0
    says = True if used >= GPU_MONITOR_CORES else False if used < GPU_MONITOR_LITTLE_CORES else None
    culprit = case.blamed(case.busiest_of(*MONITORS))
    return Evidence(
        (
            cpu_used("GPU monitors used {}", used if sampled else None, says),
            cpu_used("the GPU driver took {}", driver, None),
            counted("new processes", "processes", case.count("stat", "processes"), "counters"),
        ),
        culprit,
        f"{culprit.name if culprit else 'a GPU monitor'} polls the GPU driver so often that it keeps a core busy",
        Fix(
            "query the GPU less often, and keep its driver loaded",
            (
                command("nvidia-smi --query-gpu=index,persistence_mode --format=csv", "is it on already?"),
                change(
                    "nvidia-smi -pm 1",
                    "turn persistence mode on: the driver is not started for each query",
                    touches="the driver of all GPUs stays loaded; running jobs are not disturbed",
                    undo="nvidia-smi -pm 0",
                    risk="it holds until the driver is loaded again; idle GPUs draw a little more power",
                    verify="nvidia-smi --query-gpu=index,persistence_mode --format=csv",
                    part="stop-gap",
                ),
                advice("collect less often: dcgm-exporter has --collect-interval, in milliseconds"),
                advice("no nvidia-smi in loops or probes: read DCGM instead"),
            ),
        ),
    )


def is_monitor(comm: str | None) -> bool:
    return comm is not None and bool(expanded(frozenset(MONITORS), (comm,)))


PATTERN = Pattern(
    id="gpu-monitor",
    title="GPU monitoring holds a core in the driver",
    proof="literature",
    looks_like="nvidia-smi in a loop, or dcgm-exporter at short intervals, spends its time in the GPU driver; without "
    "persistence mode, each call initializes the driver again.",
    confirmed_by="GPU monitors use 0.3 of a CPU or more while the driver's functions are hot.",
    refuted_by="GPU monitors used less than 0.05 of a CPU: then the driver is working for the job itself.",
    remedy="Turn persistence mode on, and scrape less often.",
    stop_gap="pause the process that queries the GPUs while jobs run",
    examine=examine,
    signatures=(signature(_DRIVER, means="the GPU driver is queried"),),
    hog="The monitor.",
    culprit="The monitor.",
    known_from="dcgm-exporter 311, k8s-device-plugin 77 and 341",
)
