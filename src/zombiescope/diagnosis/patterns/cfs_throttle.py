"""A cgroup that its CPU quota stops: nothing is in the samples, because a throttled task does not run."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Actor, Fix
from zombiescope.diagnosis.leak import unit_of
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, cpu_used, measured
from zombiescope.diagnosis.plan import cgroup_file, is_plain, shell
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.model.plans.step import Step, advice, command
from zombiescope.store.thresholds import THROTTLED_PERIODS

_UNTHROTTLE = (
    "sched_cfs_period_timer distribute_cfs_runtime unthrottle_cfs_rq tg_unthrottle_up walk_tg_tree_from "
    "__cfsb_csd_unthrottle"
)


def examine(case: Case) -> Evidence:
    stopped = case.of_kind("throttled")
    if not stopped:
        return Evidence((_nobody(case),))
    worst = max(stopped, key=lambda symptom: float(symptom.facts["ratio"]))
    unthrottling = case.cores_in(*_UNTHROTTLE.split())
    found = [_periods(worst), _stood(worst)]
    if unthrottling:
        found.append(cpu_used("unthrottling cgroups took {}", unthrottling, None))
    cgroup = worst.group or ""
    return Evidence(
        tuple(found),
        case.blamed(_actor(case, cgroup)),
        f"{cgroup} was stopped by its own CPU limit in {worst.facts['ratio'] * 100:.0f}% of its periods",
        Fix(
            f"raise or remove the CPU limit of {cgroup}",
            tuple(_steps(case, cgroup)),
        ),
    )


def _steps(case: Case, cgroup: str) -> Iterator[Step]:
    look = cgroup_file(case.cgroups, cgroup, "cpu.stat", "cpu/cpu.stat", "nr_throttled of nr_periods")
    if look is not None:
        yield look
    unit = unit_of(cgroup)
    if unit is not None and is_plain(unit) and not unit.endswith(".slice"):
        yield command(shell("systemctl", "show", "-p", "CPUQuotaPerSecUSec", unit), "the limit, if systemd has set it")
    yield advice("Kubernetes: raise resources.limits.cpu, or leave it out and keep the request")
    yield advice("systemd: CPUQuota= of the unit")


def _periods(worst: Symptom) -> Measurement:
    throttled, periods = int(worst.facts["throttled"]), int(worst.facts["periods"])
    return measured(
        f"{worst.group} was throttled in {throttled:,} of {periods:,} periods",
        throttled,
        "periods",
        "cgroup_stats",
        True,
    )


def _stood(worst: Symptom) -> Measurement:
    us = int(worst.facts["throttled_us"])
    return measured(f"its tasks were stopped for {us / 1e6:.1f} s, summed over cores", us, "us", "cgroup_stats", None)


def _nobody(case: Case) -> Measurement:
    rows = [row for row in case.facts.cgroup_stats if row["nr_periods"]]
    if not rows:
        return Measurement("no cgroup with a CPU quota was sampled", None, "periods", "cgroup_stats", "nothing")
    worst = max(rows, key=lambda row: (row["nr_throttled"] or 0) / row["nr_periods"])
    stopped = worst["nr_throttled"] or 0
    periods = f"{stopped:,} of {worst['nr_periods']:,} periods"
    text = f"no CPU limit was in the way: {worst['cgroup']} was throttled in {periods}"
    often = stopped >= THROTTLED_PERIODS * worst["nr_periods"]
    return measured(text, stopped, "periods", "cgroup_stats", None if often else False)


def _actor(case: Case, cgroup: str) -> Actor:
    busiest = case.busiest(lambda task: task.comm if task.cgroup == cgroup else None)
    return busiest or Actor(unit=unit_of(cgroup), cgroup=cgroup)


PATTERN = Pattern(
    id="cfs-throttle",
    title="A CPU limit throttles a cgroup",
    proof="kernel",
    seen_on=("6.18", "6.1 (emulated)"),
    looks_like="A container is paused for tens of milliseconds at a time although cores are idle. No core is busy and "
    "no kernel function is hot.",
    confirmed_by="The cgroup was throttled in 20% or more of its periods (nr_throttled in cpu.stat).",
    refuted_by="No cgroup with a quota was throttled in 20% of its periods.",
    remedy="Raise or remove the CPU limit; keep the request.",
    stop_gap="raise the quota of the cgroup that runs, where systemd has set it: set-property --runtime "
    "with a larger CPUQuota=; it lasts until the next boot",
    examine=examine,
    hog="No process: a throttled task does not run.",
    culprit="The cgroup whose quota is too small.",
    suspected_first=True,
    known_from="cpu.stat of the kernel; measured on 6.18 (48 of 48 periods)",
)
