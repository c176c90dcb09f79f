"""Which samples of an incident are the hog's: of who burnt the core.

Waiters are neither hog nor culprit: a task that spins for a lock or waits for other cores to answer is the victim of
the one that is not waiting, so that one is looked for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zombiescope.diagnosis.incidents import Group
from zombiescope.diagnosis.sample_grid import SampleGrid
from zombiescope.diagnosis.sample_index import SampledTask
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.diagnosis.task_groups import EVERYBODY, members
from zombiescope.diagnosis.thresholds import MOSTLY_SHARE
from zombiescope.store.columns import Mask

WAITING = frozenset(
    {
        "native_queued_spin_lock_slowpath", "__pv_queued_spin_lock_slowpath", "queued_spin_lock_slowpath",
        "queued_read_lock_slowpath", "queued_write_lock_slowpath", "multi_cpu_stop", "smp_call_function_many_cond",
        "smp_call_function_single", "rwsem_spin_on_owner", "rwsem_optimistic_spin", "rwsem_down_read_slowpath",
        "rwsem_down_write_slowpath", "mutex_spin_on_owner", "osq_lock", "csd_lock_wait",
        # Spinlocks were tickets before 4.2 (x86, d73a33973f16) and 4.19 (arm64, c11090474d70): whoever waits spins in
        # the lock function itself, or below it in what a hypervisor gives. They are small, and half of somebody's time
        # in them is waiting on any kernel.
        "_raw_spin_lock", "_raw_spin_lock_irq", "_raw_spin_lock_irqsave", "_raw_spin_lock_bh", "__ticket_spin_lock",
        "__ticket_lock_spinning", "kvm_lock_spinning", "xen_lock_spinning", "xen_spin_lock_slow", "__read_lock_failed",
        "__write_lock_failed", "kvm_wait", "xen_qlock_wait", "hv_qlock_wait", "resilient_queued_spin_lock_slowpath",
        # rw_semaphores before 5.3 (6cef7ff6e43c), through a stub in assembler before 5.2 (46ad0840b158).
        "rwsem_down_read_failed", "rwsem_down_write_failed", "rwsem_down_read_failed_killable",
        "rwsem_down_write_failed_killable", "__rwsem_down_read_failed_common", "__rwsem_down_write_failed_common",
        "call_rwsem_down_read_failed", "call_rwsem_down_write_failed", "call_rwsem_down_write_failed_killable",
        # Waiting for other cores before 5.6 (67719ef25eeb); stop_machine before 3.11.
        "smp_call_function_many", "stop_machine_cpu_stop", "mutex_optimistic_spin", "rtmutex_spin_on_owner",
    }
)  # fmt: skip


def cores_of(grid: SampleGrid, mine: Mask, in_span: Mask, least: float) -> tuple[int, ...]:
    """The cores of which some samples are at least that share of the span."""
    known = in_span & (grid.cpu >= 0)
    if not mine.any() or not known.any():
        return ()
    total = np.bincount(grid.cpu[known])
    had = np.bincount(grid.cpu[known & mine], minlength=len(total))
    return tuple(np.flatnonzero((had > 0) & (had >= least * total)).tolist())


@dataclass(frozen=True, slots=True)
class HogSearch:
    """Among the samples `in_span`, which are those of so many seconds."""

    grid: SampleGrid
    in_span: Mask
    seconds: float
    group: Group

    def samples(self) -> Mask:
        chosen = self._suspect()
        if self._waits(chosen):
            worker = self._who_does_not_wait()
            if worker is not None:
                return worker
        return chosen

    def _suspect(self) -> Mask:
        grid = self.grid
        if self.group.primary.detector.is_stopped:  # whoever ran meanwhile has nothing to do with it
            group, names = grid.groups(lambda task: task.cgroup)
            here = names.index(self.group.primary.group) if self.group.primary.group in names else -2
            stopped: Mask = self.in_span & (group == here)
            return stopped
        whose = self._whose()
        if whose is not None:
            return self._members(whose)
        if not any(symptom.has_suspect for symptom in self.group.symptoms):
            return np.zeros(len(grid), bool)
        cores = {symptom.cpu for symptom in self.group.symptoms if symptom.core_is_held} - {None}
        taken = [symptom for symptom in self.group.symptoms if symptom.detector.core_is_taken]
        if taken and not cores:
            return self._takers(taken)
        chosen = self.in_span & grid.in_kernel
        if self.group.primary.group == EVERYBODY:
            chosen &= members(grid, self.group.primary)
        elif cores:
            chosen &= np.isin(grid.cpu, sorted(cpu for cpu in cores if cpu is not None))
        return self._largest_thread(chosen)

    def _takers(self, taken: list[Symptom]) -> Mask:
        """The largest group of tasks on those cores but for those who waited: six loops are one hog."""
        grid = self.grid
        on = np.isin(grid.cpu, [symptom.cpu for symptom in taken if symptom.cpu is not None])
        waited = grid.below({pid for symptom in taken for pid in symptom.facts.get("pids", ())})
        there: Mask = self.in_span & on & ~waited
        group, names = grid.groups(lambda task: None if not task.pid else f"{task.unit or task.container} {task.comm}")
        counts = np.bincount(group[there & (group >= 0)], minlength=len(names)) if names else np.zeros(0)
        mine: Mask = there & (group == int(np.argmax(counts))) if counts.any() else np.zeros(len(grid), bool)
        return mine

    def _whose(self) -> Symptom | None:
        """The symptom that names the hog: the one that the incident is about, else one by whoever held the core that
        was lost, with all its threads. Only if nobody held it may it be any hog of that time."""
        named = [
            symptom
            for symptom in self.group.symptoms
            if symptom.group not in (None, EVERYBODY) and symptom.detector.names_hog
        ]
        if self.group.primary in named:
            return self.group.primary
        holder = self._holder(self.group.primary)
        if holder is None:
            return named[0] if named else None
        own = [one for one in named if one.facts.get("comm") == holder.comm or one.group in (holder.unit, holder.comm)]
        return max(own, key=lambda one: one.seconds * float(one.facts.get("ratio") or 0), default=None)

    def _holder(self, lost: Symptom) -> SampledTask | None:
        """The thread that had most of the core's kernel time, if one had."""
        grid = self.grid
        if lost.cpu is None:
            return None
        there = grid.where(lost.from_us, lost.to_us, lost.cpu) & grid.in_kernel
        hottest = grid.hottest_task(there)
        if hottest is None or hottest[1] < MOSTLY_SHARE * max(int(there.sum()), 0.5 * grid.hz * lost.seconds):
            return None
        return hottest[0]

    def _members(self, symptom: Symptom) -> Mask:
        mine: Mask = self.in_span & members(self.grid, symptom)
        return mine

    def _largest_thread(self, chosen: Mask) -> Mask:
        tasks, counts = np.unique(self.grid.task[chosen], return_counts=True)
        if not len(tasks):
            return chosen
        thread: Mask = self.in_span & (self.grid.task == tasks[np.argmax(counts)])
        return thread

    def _waits(self, chosen: Mask) -> bool:
        profile = self.grid.profile(chosen)
        return profile.kernel_samples > 0 and profile.total(*WAITING) >= MOSTLY_SHARE * profile.kernel_samples

    def _who_does_not_wait(self) -> Mask | None:
        grid = self.grid
        working = self.in_span & grid.in_kernel & ~grid.with_function(*WAITING)
        hottest = grid.hottest_task(working)
        if hottest is None or hottest[1] < 0.5 * grid.hz * self.seconds:
            return None
        return self._largest_thread(working)
