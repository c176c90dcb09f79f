"""What an incident cost: the work of GPUs that was not done while their processes waited.

A GPU that did less proves nothing: evaluations, checkpoints and the ends of jobs look the same. It counts where there
is a witness: threads of its process, or of what that started, waited on the cores that were taken (held_up.py); its
cgroup was stopped by its CPU limit; or it was itself the one that the kernel kept busy. GPUs of the same job that fell
in the same seconds waited for those. One whose process was not sampled at all is not known, and said to be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from zombiescope.base.time import SECOND_US
from zombiescope.diagnosis import held_up
from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.gpu_loss import Because, GpuCost, GpuLoss, of_gpu
from zombiescope.diagnosis.hog import cores_of
from zombiescope.diagnosis.incident import Cause
from zombiescope.diagnosis.tenant_names import TenantNames
from zombiescope.diagnosis.thresholds import HOG_CORE_SHARE, UNCONFIRMED_MOST
from zombiescope.query.gpu_use import Tenant


def cost_of(case: Case, cause: Cause | None) -> GpuCost | None:
    """None where no GPU was recorded, or nobody was on one. `cause`: the first one that was found for the incident."""
    facts = case.facts
    span = _span(case)
    tenants = [one for one in facts.gpu_tenants if one.overlaps(*span)]
    if not facts.gpus or not tenants:
        return None
    found = list(_falls(facts, tenants, *span))
    if not found:
        return GpuCost()
    judge = _Judge(case, cause, span)
    judged = [(one, *judge.because([tenant for tenant in tenants if tenant.gpu == one.gpu])) for one in found]
    losses = [replace(one, because=because, threads=threads) for one, because, threads in judged if because is not None]
    sure = [one for one in losses if one.because != "unknown"]
    jobs = {job for one in sure for job in judge.jobs(one.pids)}
    peers = [
        replace(one, because="job")
        for one, because, _ in judged
        if because in (None, "unknown") and jobs & judge.jobs(one.pids)
    ]
    peer_numbers = {one.gpu for one in peers}
    not_known = [one for one in losses if one.because == "unknown" and one.gpu not in peer_numbers]
    return GpuCost(tuple(sorted([*sure, *peers], key=lambda one: one.gpu)), tuple(not_known))


def _span(case: Case) -> tuple[int, int]:
    """Where something was wrong; what is examined may begin ten seconds before that, to find out why."""
    is_bounded = any(one.detector.bounds_case for one in case.group.symptoms)
    from_us, to_us = case.group.from_us, case.group.to_us
    return (case.from_us, case.to_us) if is_bounded or to_us - from_us < SECOND_US else (from_us, to_us)


def _falls(facts: Facts, tenants: list[Tenant], from_us: int, to_us: int) -> Iterator[GpuLoss]:
    names = TenantNames(facts)
    for number, series in sorted(facts.gpus.items()):
        mine = [one for one in tenants if one.gpu == number]
        found = of_gpu(series, mine, from_us, to_us) if mine else None
        if found is not None:
            yield replace(found, whose=names.of(mine))


class _Judge:
    """Why a GPU did less, as far as this incident can be the reason."""

    def __init__(self, case: Case, cause: Cause | None, span: tuple[int, int]) -> None:
        self._case = case
        self._span = span
        self._cores = sorted(
            {*case.cpus, *cores_of(case.facts.samples, case.hog_samples, case.in_span, HOG_CORE_SHARE)}
        )
        self._stopped = [one.group for one in case.of_kind("throttled") if one.group]
        # What a trainer does itself (a checkpoint, an evaluation) is no loss unless something is known to be wrong.
        wrong = cause is not None and cause.confidence > UNCONFIRMED_MOST and not cause.is_ordinary
        self._hog = wrong and case.hog_task is not None and case.kernel_took_time

    def because(self, tenants: list[Tenant]) -> tuple[Because | None, int]:
        """And how many threads waited; None: it has nothing to do with it."""
        if any(_is_below(tenant.cgroup, cgroup) for tenant in tenants for cgroup in self._stopped):
            return "throttled", 0
        pids = {tenant.pid for tenant in tenants}
        case = self._case
        if self._hog and case.facts.samples.below(pids)[case.hog_samples].any():
            return "itself", 0
        if not self._cores:
            return None, 0
        seen = held_up.look(case.facts, pids, self._cores, *self._span)
        return ("waited" if seen.state == "waited" else "unknown" if seen.state == "unknown" else None), seen.threads

    def jobs(self, pids: tuple[int, ...]) -> set[str]:
        """What ranks of one job have in common: its pod, container, unit or cgroup, or the process that started all."""
        facts = self._case.facts
        owned = {one.job for one in facts.gpu_tenants if one.pid in pids and one.has_owner}
        parents = facts.samples.parents(facts.samples.below(set(pids))) if not owned else set()
        return owned or {f"children of {pid}" for pid in parents - set(pids)}


def _is_below(cgroup: str | None, stopped: str) -> bool:
    return cgroup is not None and (cgroup == stopped or cgroup.startswith(stopped.rstrip("/") + "/"))
