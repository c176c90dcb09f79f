"""Something that happened: a row of the table `events`, on its way in or out."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from zombiescope.base.secrets import mask_fields, mask_text

MEANINGS = {
    "cgroup_churn": "cgroups are created and removed much faster than usual",
    "clock_step": "the wall clock of the node was changed",
    "closer_look": "the recorder followed the system calls of a process that no pattern explains",
    "container_restart": "a container started again after it had exited",
    "cpu_offline": "a core was switched off",
    "cpu_online": "a core was switched on",
    "driver_unresponsive": "a process waits for a device driver that does not answer",
    "experiment": "fix --try froze a suspect at random, and says whether it is the culprit",
    "frozen_given_up": "a frozen window was deleted because the disk was full",
    "gpu_back": "a GPU can be read again",
    "gpu_driver_answers": "the GPU driver answers again",
    "gpu_driver_unresponsive": "the GPU driver does not answer",
    "gpu_lost": "a GPU fell off the bus",
    "gpu_not_supported": "a GPU cannot report something that others can",
    "gpu_reset_required": "a GPU needs a reset",
    "gpu_throttled": "a GPU lowered its clocks because of heat or power",
    "gpu_unreadable": "a GPU can no longer be read",
    "helper_failed": "a part of the recorder failed and restarts",
    "kernel_log": "a line of the kernel log whose meaning is not known",
    "kernel_log_gap": "lines of the kernel log were lost",
    "hog_files": "what a task that fills a core in the kernel asks for: system calls a second, and files",
    "kubernetes_away": "the Kubernetes API server cannot be reached",
    "kubernetes_back": "the Kubernetes API server can be reached again",
    "link_down": "a network link went down",
    "link_up": "a network link came up",
    "lookup_stuck": "looking up the name of a process or container takes too long",
    "mark": "a mark that a user or a job set",
    "nic_tx_timeout": "a network driver found a transmit queue stuck",
    "panic_before": "the kernel crashed before this boot, as pstore or kdump kept it",
    "pod_evicted": "Kubernetes evicted a pod",
    "pod_failed": "a pod failed",
    "pod_oom_killed": "a container of a pod was killed because it ran out of memory",
    "pod_restarted": "a container of a pod restarted",
    "python_unread": "the Python stacks of a process cannot be read",
    "ray_actor_died": "a Ray actor died",
    "ray_job_failed": "a Ray job failed",
    "ray_job_finished": "a Ray job finished",
    "ray_job_started": "a Ray job started",
    "ray_job_stopped": "a Ray job was stopped",
    "ray_jobs": "the Ray jobs that were running when the recorder started",
    "ray_node_dead": "Ray declared a node dead",
    "ray_node_stopped": "a Ray node stopped",
    "ray_task_lost": "a Ray task was lost with its worker",
    "ray_worker_died": "a Ray worker process died",
    "raycluster_healthy": "KubeRay reports a RayCluster as healthy again",
    "raycluster_unhealthy": "KubeRay reports a RayCluster as unhealthy",
    "rayjob_failed": "a RayJob of KubeRay failed",
    "rayjob_finished": "a RayJob of KubeRay finished",
    "rayjob_started": "a RayJob of KubeRay started",
    "rayjob_stopped": "a RayJob of KubeRay was stopped",
    "sigbus": "a process was killed by SIGBUS: /dev/shm was full, or a mapped file was cut",
    "tasks_stopped": "tasks were stopped by a signal or a frozen cgroup",
    "tasks_wait": "tasks have been blocked for a long time",
    "tcp_retransmits": "TCP retransmits much more than usual",
    "unit_failed": "a systemd unit failed",
    "unit_restart": "systemd restarted a unit",
    "unit_state": "a systemd unit changed its state",
}
"""Kind -> what happened, for every kind that is made by something but a line of the kernel log
(kernel/log_formats.py has those): systemd, containers, Kubernetes, Ray, GPUs, people and the recorder itself.
tests/unit/test_event_kinds.py finds where each is made, and fails for one that is made and not here."""

KINDS = frozenset(MEANINGS)


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
