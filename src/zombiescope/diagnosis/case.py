"""One incident under examination: its time, who was the hog, what the kernel did on its behalf, and the numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np

from zombiescope.base.time import SECOND_US
from zombiescope.diagnosis.blame import answerable
from zombiescope.diagnosis.core_grid import Grid
from zombiescope.diagnosis.facts import Count, Facts
from zombiescope.diagnosis.hog import HogSearch
from zombiescope.diagnosis.incident import Actor
from zombiescope.diagnosis.incidents import Group
from zombiescope.diagnosis.kernel_profile import KernelProfile, tells
from zombiescope.diagnosis.sample_grid import SampleGrid, Starter
from zombiescope.diagnosis.sample_index import SampledTask, expanded
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.diagnosis.symptoms.above_baseline import baselines
from zombiescope.diagnosis.thresholds import (
    CASE_PAST_US,
    CASE_RECENT_US,
    EARLIER_LEAST_US,
    EVENT_LED_TO_US,
    GAUGE_LATE_US,
    SHORT_LIFE_US,
    SHORT_LIVED_RUNS,
)
from zombiescope.query.cgroups import CgroupsView
from zombiescope.store.columns import Ints, Mask
from zombiescope.store.stacks import hottest_path, is_named

SENDS = ("udp_sendmsg", "udpv6_sendmsg", "tcp_sendmsg", "tcp_connect", "raw_sendmsg", "packet_sendmsg")
STARVED = ("nic_tx_timeout", "nic_reset", "soft_lockup", "hard_lockup", "rcu_stall")
"""Events by which the kernel or a driver says that a core did not come back."""


class Case:
    def __init__(self, facts: Facts, group: Group) -> None:
        self.facts = facts
        self.group = group
        self.primary = group.primary
        self.from_us, self.to_us = self._span()
        self.facts = facts.during(self.from_us, self.to_us)

    def _span(self) -> tuple[int, int]:
        placed = [symptom for symptom in self.group.symptoms if symptom.detector.bounds_case]
        from_us = min((symptom.from_us for symptom in placed), default=self.group.from_us - EVENT_LED_TO_US)
        to_us = max((symptom.to_us for symptom in placed), default=self.group.to_us + SECOND_US)
        return max(from_us, self.facts.start_us), min(max(to_us, from_us + 1), self.facts.end_us)

    @property
    def seconds(self) -> float:
        return max((self.to_us - self.from_us) / 1e6, 1e-6)

    def kinds(self) -> set[str]:
        return {symptom.kind for symptom in self.group.symptoms}

    def of_kind(self, *kinds: str) -> list[Symptom]:
        return [symptom for symptom in self.group.symptoms if symptom.kind in kinds]

    def event(self, *kinds: str) -> Symptom | None:
        """The first event of one of these kinds."""
        return next((s for s in self.of_kind("event") if s.facts.get("event") in kinds), None)

    @property
    def _onsets(self) -> list[Symptom]:
        """Symptoms of somebody who took the CPU."""
        return [symptom for symptom in self.group.symptoms if symptom.detector.is_onset]

    @property
    def has_suspect(self) -> bool:
        """Somebody took a CPU, as far as anybody can tell."""
        return any(symptom.has_suspect for symptom in self.group.symptoms)

    @property
    def stolen(self) -> float | None:
        """How much of the core the hypervisor took, where that is the only symptom and nobody held it."""
        taken = [float(symptom.facts["ratio"]) for symptom in self.of_kind("steal")]
        return max(taken) if taken and not self._onsets else None

    @property
    def kernel_took_time(self) -> bool:
        """Something says so that needs no names of functions: a core's own counters, or a network card."""
        return bool(self.of_kind("core_saturated", "kernel_hog", "nic_starved")) or self.event(*STARVED) is not None

    @property
    def cpus(self) -> tuple[int, ...]:
        """The cores that the symptoms name."""
        return tuple(sorted({symptom.cpu for symptom in self.group.symptoms if symptom.cpu is not None}))

    # --- the hog -----------------------------------------------------------------------------------------------------

    @cached_property
    def in_span(self) -> Mask:
        return self.facts.samples.where(self.from_us, self.to_us)

    @cached_property
    def hog_samples(self) -> Mask:
        """Which samples are the hog's."""
        return HogSearch(self.facts.samples, self.in_span, self.seconds, self.group).samples()

    @cached_property
    def hog_task(self) -> SampledTask | None:
        hottest = self.facts.samples.hottest_task(self.hog_samples)
        return None if hottest is None else hottest[0]

    @cached_property
    def hog(self) -> Actor:
        task = self.hog_task
        if task is None:
            return Actor(cgroup=self.primary.group if self.primary.detector.is_stopped else None)
        cores = int(np.count_nonzero(self.hog_samples)) / self.facts.hz / self.seconds
        name = task.unit or task.container or task.comm or ""
        usual, all_cores = baselines(self.facts).get(name), max(self.facts.cpus, 1)
        return replace(
            task.actor(round(cores, 3)),
            baseline_cores=usual,
            cpu_ratio=round(min(cores / all_cores, 1.0), 4),
            baseline_cpu_ratio=None if usual is None else min(usual / all_cores, 1.0),
        )

    @cached_property
    def hog_kernel_cores(self) -> float:
        """CPUs that the hog spent in the kernel: what the figures of a pattern are to be measured against, and not the
        size of the node."""
        return self.profile.kernel_samples / self.facts.hz / self.seconds

    @property
    def known_hog(self) -> Actor | None:
        """None where nobody was sampled."""
        return None if self.hog_task is None else self.hog

    @property
    def answerable_hog(self) -> Actor | None:
        """The hog as a culprit; None where nobody was sampled, or where it only carries out for others."""
        return self.blamed(self.known_hog)

    def blamed(self, actor: Actor | None, *, makes: bool = False) -> Actor | None:
        """Who answers for what an actor did (blame.py): every culprit of every pattern goes through here."""
        return None if actor is None else answerable(self.facts, actor, (self.from_us, self.to_us), makes=makes)

    @property
    def hog_program(self) -> Actor | None:
        """None where it is a kernel thread, which works for somebody else."""
        return None if self.hog_task is None or is_kernel_thread(self.hog_task) else self.answerable_hog

    @cached_property
    def hog_process_ids(self) -> set[int]:
        """The processes that the hog is."""
        grid = self.facts.samples
        found = (grid.task_of(number).pid for number in np.unique(self._hog_tasks).tolist())
        return {pid for pid in found if pid}

    @cached_property
    def hog_pids(self) -> int:
        """How many processes the hog is; a hundred threads of one are one."""
        grid = self.facts.samples
        return len({grid.task_of(number).pid for number in self._hog_tasks})

    @cached_property
    def hog_comes_and_goes(self) -> bool:
        """It is many processes, and most of them were there for a moment only."""
        if self.hog_pids < SHORT_LIVED_RUNS:
            return False
        return bool(np.median(self.facts.samples.lifetimes_us(self.hog_samples)) <= SHORT_LIFE_US)

    # --- what the kernel did -----------------------------------------------------------------------------------------

    @cached_property
    def profile(self) -> KernelProfile:
        """The hog's."""
        return self.facts.samples.profile(self.hog_samples)

    @cached_property
    def core_profile(self) -> KernelProfile:
        """Of the cores that the symptoms name, whoever ran there; of all cores when none is named."""
        chosen = self.in_span
        if self.cpus:
            chosen = chosen & np.isin(self.facts.samples.cpu, self.cpus)
        return self.facts.samples.profile(chosen)

    @cached_property
    def node_profile(self) -> KernelProfile:
        return self.facts.samples.profile(self.in_span)

    @cached_property
    def frames(self) -> tuple[str, ...]:
        """The hog's hottest kernel path, outermost first, as far as its functions have names."""
        return _hottest(self.profile)

    def frames_of(self, mine: KernelProfile) -> tuple[str, ...]:
        """The same; but where that path is none of those that a pattern stands on, the hottest of them."""
        is_hottest = any(tuple(filter(is_named, path))[: len(self.frames)] == self.frames for path in mine.paths)
        return self.frames if is_hottest or not mine.kernel_samples else _hottest(mine)

    # --- what was not seen -------------------------------------------------------------------------------------------

    def sees(self, profile: KernelProfile) -> bool:
        """Whether the functions of a profile speak for or against anything. Where stacks were not taken, or have no
        names, that a function is not among them means nothing."""
        if profile.kernel_samples:
            return profile.is_named
        return profile.samples > 0 or self._sampler_ran

    @cached_property
    def _sampler_ran(self) -> bool:
        """Stacks of the named cores were taken, if only idle ones, which are counted and not kept."""
        cores, span = self.facts.cores, self.seconds_of_cores()
        if cores is not None and span is not None:
            taken = cores.counts["samples"][self.core_rows(), span[0] : span[1]]
            if taken.size and not np.isnan(taken).all():
                return bool(np.nansum(taken) > 0)
        return self.facts.is_sampled

    @cached_property
    def not_seen(self) -> str | None:
        """What is not known of the kernel functions of this incident, and why; None where they were seen."""
        profile = self.node_profile if not self.cpus else self.core_profile
        if not self.sees(profile) and not profile.kernel_samples:
            return f"what the kernel did was not seen: {self._why_blind('stack samples', 'no stacks were recorded')}"
        if 2 * profile.named_samples >= profile.kernel_samples:
            return None
        nameless = 1 - profile.named_samples / profile.kernel_samples
        where = f" in {nameless * 100:.0f}% of its samples" if profile.named_samples else ""
        why = self._why_blind("kernel symbols", "the kernel's functions have no names")
        return f"what the kernel did was not seen{where}: {why}"

    def _why_blind(self, source: str, otherwise: str) -> str:
        known = (entry.get("why") for entry in self.facts.missing if entry.get("source") == source)
        return str(next(known, None) or otherwise)

    # --- cgroups -----------------------------------------------------------------------------------------------------

    @cached_property
    def cgroups(self) -> CgroupsView:
        """As they were while the symptoms lasted, at their most: whoever fixes a leak removes the evidence, and an
        incident may outlast that. Where they were counted only later, as in an imported copy of /proc/cgroups, that is
        better than nothing."""
        ended_us = min(self.to_us, max((one.to_us for one in self._onsets), default=self.to_us))
        at_us = self.facts.most_cgroups_us(self.from_us, ended_us)
        then = self.facts.cgroups_at(ended_us if at_us is None else at_us)
        return then if then.memory is not None else self.facts.cgroups

    # --- before it ---------------------------------------------------------------------------------------------------

    @cached_property
    def past(self) -> Facts | None:
        """The minute before the incident; None where nothing of it was recorded."""
        return self.facts.before(self.from_us, CASE_PAST_US)

    def cores_before(self, *names: str) -> float:
        """CPU, in cores, that tasks of the hog's names spent below these functions in the seconds before the incident;
        0 where that was not recorded."""
        grid, seconds = self._recent
        if grid is None or not len(grid):
            return 0.0
        comms = {self.facts.samples.task_of(number).comm for number in self._hog_tasks} - {None}
        number, by_name = grid.tasks_by(_name)
        mine = np.isin(number, [by_name[comm] for comm in comms if comm in by_name])[grid.task]
        return int(np.count_nonzero(mine & grid.in_kernel & grid.with_function(*names))) / grid.hz / seconds

    @cached_property
    def _recent(self) -> tuple[SampleGrid | None, float]:
        """Samples of the last seconds before the incident, and how many seconds; of the window where it has some of
        them, because those are read already."""
        from_us = max(self.from_us - CASE_RECENT_US, self.facts.start_us)
        if self.from_us - from_us >= EARLIER_LEAST_US:
            return self.facts.samples_between(from_us, self.from_us), (self.from_us - from_us) / 1e6
        before = self.facts.before(self.from_us, CASE_RECENT_US)
        return (None, 0.0) if before is None else (before.samples, before.seconds)

    @cached_property
    def _hog_tasks(self) -> list[int]:
        found: list[int] = self.facts.samples.tasks_in(self.hog_samples)[0].tolist()
        return found

    # --- numbers -----------------------------------------------------------------------------------------------------

    def count(self, source: str, name: str, key: str | None = None) -> Count | None:
        """What a counter counted during the incident."""
        return self.facts.count(source, name, self.from_us, self.to_us, key)

    def interrupts(self, label: str) -> Count | None:
        return self.facts.interrupts(label, self.from_us, self.to_us)

    def peak(self, source: str, name: str, *, fresh: bool = False) -> int | None:
        """The highest level of a gauge in the incident, or up to the next time that it was read."""
        return self.facts.peak(source, name, self.from_us, self.to_us + GAUGE_LATE_US, fresh=fresh)

    def cores_in(self, *names: str, chosen: Mask | None = None) -> float | None:
        """CPU, in cores, that was spent below one of these kernel functions; on the whole node, or in some samples.
        None where nothing was sampled, or the functions have no names."""
        grid = self.facts.samples
        if not len(grid):
            return None
        counts = self._kernel_counts(chosen)
        if (total := int(counts.sum())) and not tells(int(counts[grid.known.named].sum()), total):
            return None
        return int(counts[grid.known.with_function(frozenset(names))].sum()) / self.facts.hz / self.seconds

    def busiest_core_in(self, *names: str) -> float | None:
        """CPU, in cores, that was spent below these functions on the core that had most of it: what all cores of a
        large node have together says nothing about one. None as in `cores_in`."""
        everywhere = self.cores_in(*names)
        on = self.facts.samples.cpu[self.below(*names)]
        if not everywhere or not len(on) or (on < 0).all():
            return everywhere
        return int(np.bincount(on[on >= 0]).max()) / self.facts.hz / self.seconds

    def _kernel_counts(self, chosen: Mask | None) -> Ints:
        """How often each stack occurs among the kernel samples of the incident, or among some of them: a few thousand
        instead of millions."""
        if chosen is None:
            return self.node_profile.counts
        if chosen is self.hog_samples:
            return self.profile.counts
        grid = self.facts.samples
        return grid.counts(chosen & grid.in_kernel)

    def below(self, *names: str) -> Mask:
        """Samples of the incident in which one of the functions is on the stack."""
        grid = self.facts.samples
        inside: Mask = self.in_span & grid.in_kernel & grid.with_function(*names)
        return inside

    def caller(self, *names: str, makes: bool = False) -> Actor | None:
        """Who is to blame for the time below one of these functions: who spent most of it, and how much. Kernel threads
        work for somebody else. `makes`: below them something is made that a runtime makes for containers only."""
        grid = self.facts.samples
        if not self.cores_in(*names):
            return None
        chosen = self.below(*names)
        best = grid.hottest_group(chosen, _owner_or_name)
        if best is None:
            return None
        task, count = best
        cores = round(count / self.facts.hz / self.seconds, 3)
        return self.blamed(self._behind(chosen, task, cores) or task.actor(cores), makes=makes)

    @cached_property
    def starter(self) -> Starter | None:
        """Who started most of the hog, or is it itself."""
        return self.facts.samples.starter(self.hog_samples, or_itself=True)

    @cached_property
    def family(self) -> Mask:
        """Samples of the hog and of all that descend from the one who started most of it, or from whoever started
        some."""
        grid, starter = self.facts.samples, self.starter
        above = {starter.pid} if starter is not None and starter.started_most else grid.parents(self.hog_samples)
        family: Mask = self.hog_samples | (self.in_span & grid.below(above))
        return family

    def sender(self) -> Actor | None:
        """Who sends most packets, of the tasks of this node."""
        return self.caller(*SENDS)

    def _behind(self, chosen: Mask, task: SampledTask, cores: float) -> Actor | None:
        """Who starts it, where it is a program that is run again and again (iptables-restore, conntrack, mount): the
        parent, and not the last of its children."""
        grid = self.facts.samples
        mine, names = grid.groups(_name)
        own = chosen & (mine == names.index(task.comm)) if task.comm in names else chosen
        lifetimes_us = grid.lifetimes_us(own)
        if len(lifetimes_us) < SHORT_LIVED_RUNS or np.median(lifetimes_us) > SHORT_LIFE_US:
            return None
        starter = grid.starter(own)
        if starter is None:
            return None
        return starter.task.actor(cores) if starter.task is not None and starter.started_most else None

    def cores_of(self, *comms: str) -> float:
        """CPU, in cores, of all tasks with one of these names; a name may end in *."""
        grid = self.facts.samples
        wanted = expanded(frozenset(comms), grid.comms)
        if not wanted:
            return 0.0
        group, names = grid.groups(_name)
        mine = np.isin(group, [number for number, name in enumerate(names) if name in wanted])
        return int(np.count_nonzero(self.in_span & mine)) / grid.hz / self.seconds

    def busiest_of(self, *comms: str) -> Actor | None:
        """The one of these programs that used most CPU, if any ran."""
        wanted = expanded(frozenset(comms), self.facts.samples.comms)
        if not wanted:
            return None
        return self.busiest(lambda task: task.comm if task.comm in wanted else None)

    def busiest(self, key: Callable[[SampledTask], str | None]) -> Actor | None:
        """The group with most samples, by the busiest of its tasks and with what all of it used."""
        grid = self.facts.samples
        best = grid.hottest_group(self.in_span, key)
        return None if best is None else best[0].actor(round(best[1] / grid.hz / self.seconds, 3))

    def seconds_of_cores(self) -> tuple[int, int] | None:
        """[first, last) of the incident in the grid of cores."""
        cores = self.facts.cores
        if cores is None:
            return None
        first = max(0, cores.second(self.from_us))
        return first, max(first + 1, cores.second(self.to_us - 1) + 1)

    def core_rows(self) -> list[int]:
        """Rows of the cores that the symptoms name; of all when they name none."""
        cores = self.facts.cores
        if cores is None:
            return []
        return [row for cpu in self.cpus if (row := cores.row(cpu)) is not None] or list(range(len(cores.cpus)))

    def core_count(self, name: str) -> Count | None:
        """What the named cores counted (softnet_processed, softirq_net_rx) during the incident."""
        cores, span = self.facts.cores, self.seconds_of_cores()
        if cores is None or span is None:
            return None
        part = cores.counts[name][self.core_rows(), span[0] : span[1]]
        known = ~np.isnan(part)
        return Count(int(part[known].sum()), float(known.any(axis=0).sum())) if known.any() else None

    def core_mean(self, mode: str) -> float | None:
        """The mean of a mode over the named cores and the seconds of the incident, 0 to 1."""
        cores, span = self.facts.cores, self.seconds_of_cores()
        if cores is None or span is None:
            return None
        part = cores.ratios[mode][self.core_rows(), span[0] : span[1]]
        return float(np.nanmean(part)) if part.size and not np.isnan(part).all() else None

    def node_mean(self, grid: Grid) -> float | None:
        """The mean over all cores and the seconds of the incident."""
        cores, span = self.facts.cores, self.seconds_of_cores()
        return None if cores is None or span is None else cores.mean(grid, *span)


def _hottest(profile: KernelProfile) -> tuple[str, ...]:
    paths: Counter[tuple[str, ...]] = Counter()
    for path, count in profile.paths.items():
        paths[tuple(filter(is_named, path))] += count
    # Repeating a path by its weight is what hottest_path counts; a few hundred are enough for the shares.
    scale = max(1, profile.kernel_samples // 2000)
    return hottest_path(path for path, count in paths.items() for _ in range(max(1, count // scale)))


def _name(task: SampledTask) -> str | None:
    return task.comm


def _owner_or_name(task: SampledTask) -> str | None:
    return None if is_kernel_thread(task) else task.unit or task.comm


def is_kernel_thread(task: SampledTask) -> bool:
    return not task.pid or task.pid == 2 or task.ppid == 2
