"""Something that happened: a row of the table `events`, on its way in or out."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from zombiescope.base.secrets import mask_fields, mask_text

KINDS = frozenset(
    {
        "cgroup_churn", "clock_step", "container_restart", "cpu_offline", "cpu_online", "driver_unresponsive",
        "frozen_given_up", "gpu_back", "gpu_driver_answers", "gpu_driver_unresponsive", "gpu_lost",
        "gpu_not_supported", "gpu_reset_required", "gpu_throttled", "gpu_unreadable", "helper_failed", "kernel_log",
        "kernel_log_gap", "kubernetes_away", "kubernetes_back", "link_down", "link_up", "lookup_stuck", "mark",
        "nic_tx_timeout", "pod_evicted", "pod_failed", "pod_oom_killed", "pod_restarted", "python_unread",
        "ray_actor_died", "ray_job_failed", "ray_job_finished", "ray_job_started", "ray_job_stopped", "ray_jobs",
        "ray_node_dead", "ray_node_stopped", "ray_task_lost", "ray_worker_died", "raycluster_healthy",
        "raycluster_unhealthy", "rayjob_failed", "rayjob_finished", "rayjob_started", "rayjob_stopped", "tasks_stopped",
        "tasks_wait", "tcp_retransmits", "unit_failed", "unit_restart", "unit_state",
    }
)  # fmt: skip
"""Every kind that is made by something but a line of the kernel log (kernel/log_formats.py has those): systemd,
containers, Kubernetes, Ray, GPUs, people and the recorder itself. tests/unit/test_event_kinds.py finds where each is
made, and fails for one that is made and not here."""


@dataclass(frozen=True, slots=True)
class Event:
    at_us: int
    kind: str
    source: str
    severity: str
    text: str
    fields: dict[str, Any] = field(default_factory=dict)

    def masked(self) -> Event:
        """Without secrets, as it may be stored: lines of logs and marks hold what other people's programs print."""
        return replace(self, text=mask_text(self.text), fields=mask_fields(self.fields))

    def row(self) -> tuple[int, str, str, str, str, str]:
        fields = json.dumps(self.fields, separators=(",", ":"), ensure_ascii=False) if self.fields else "{}"
        return (self.at_us, self.kind, self.source, self.severity, self.text, fields)
