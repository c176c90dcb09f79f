"""The kinds of events that there are: whoever asks for one that does not exist has mistyped it."""

from __future__ import annotations

from zombiescope.kernel.log_formats import FORMATS

OF_THE_RECORDER = frozenset(
    {
        "cgroup_churn", "clock_step", "container_restart", "frozen_given_up", "gpu_back", "gpu_driver_answers",
        "gpu_driver_unresponsive", "gpu_lost", "gpu_not_supported", "gpu_reset_required", "gpu_throttled",
        "gpu_unreadable", "helper_failed", "kernel_log", "kernel_log_gap", "lookup_stuck", "mark", "pod_evicted",
        "pod_failed", "pod_oom_killed", "pod_restarted", "ray_actor_died", "ray_job_failed", "ray_job_finished",
        "ray_job_started", "ray_job_stopped", "ray_node_dead", "ray_node_stopped", "ray_task_lost", "ray_worker_died",
        "unit_failed", "unit_restart", "unit_state",
    }
)  # fmt: skip
"""Those that are not lines of the kernel log, by systemd, containers, Kubernetes, Ray, GPUs and the recorder itself."""


def known() -> frozenset[str]:
    """All that a recorder of this version can write."""
    return OF_THE_RECORDER | {line.kind for line in FORMATS}
