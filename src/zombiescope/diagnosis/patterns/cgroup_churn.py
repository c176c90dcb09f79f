"""Cgroups are constantly created and removed; none is left behind, and creating them is the work."""

from __future__ import annotations

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.excess import judge
from zombiescope.diagnosis.incident import Actor, Fix
from zombiescope.diagnosis.leak import charged
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, Says, signature
from zombiescope.diagnosis.thresholds import CGROUP_CHURN_FEW_PER_S, CGROUP_CHURN_MANY_PER_S
from zombiescope.model.plans.step import advice, command
from zombiescope.query.cgroups import Leak

_MAKES = (
    "cgroup_mkdir cgroup_create cgroup_apply_control_enable css_create create_css mem_cgroup_css_alloc mem_cgroup_alloc"
)
_REMOVES = (
    "cgroup_rmdir cgroup_destroy_locked css_free_rwork_fn css_killed_work_fn cgroup_addrm_files kernfs_remove "
    "css_release_work_fn mem_cgroup_css_free css_free_work_fn mem_cgroup_css_offline"
)


def examine(case: Case) -> Evidence:
    line = max(case.cgroups.leaks, key=lambda one: min(one.created or 0, one.removed or 0), default=None)
    culprit = _culprit(case, line)
    return Evidence(
        (_rate(case),),
        culprit,
        f"{culprit.subject if culprit else 'somebody'} keeps the kernel busy with cgroups that it creates and removes",
        Fix(
            "start fewer containers, scopes or sandboxes: let one do the work of many",
            (
                command("zombiescope cgroups", "where they are created, and by whom"),
                advice("run jobs of about a second each in one container that lives longer"),
            ),
        ),
    )


def _rate(case: Case) -> Measurement:
    """Made and removed in the same time; what is made only is a leak, or a node that starts."""
    census = case.facts.cgroup_rates(case.from_us, case.to_us)
    if census is None:
        return Measurement("cgroups were not counted", None, "cgroups", "census", "nothing")
    made, removed = census
    both = min(made, removed, key=lambda count: count.rate)
    found = judge(
        case,
        both,
        lambda past: past.cgroup_churn_rates(),
        f"{_MAKES} {_REMOVES}",
        CGROUP_CHURN_MANY_PER_S,
        case.in_span,
    )
    says: Says = "refutes" if both.rate < CGROUP_CHURN_FEW_PER_S else found.says
    text = f"{made.rate:,.0f} cgroups a second were created, and {removed.rate:,.0f} removed{found.words}"
    return Measurement(text, made.added, "cgroups", "census", says, weight=found.weight)


def _culprit(case: Case, line: Leak | None) -> Actor | None:
    """Who was seen making them; else whom the ledger charges with most, since it was begun."""
    maker = case.caller("cgroup_mkdir", makes=True)
    if maker is not None or line is None or not line.path or not line.created:
        return maker
    return charged(case.facts, line)


PATTERN = Pattern(
    id="cgroup-churn",
    title="Cgroups are constantly created and removed",
    proof="kernel",
    seen_on=("6.18",),
    looks_like="Kernel time in creating and removing cgroups, in the task that asks for it and in kworkers that clean "
    "up (cgroup_destroy, cgroup_free). Each one has a structure for every controller and every core.",
    confirmed_by="20 more cgroups per second than usual were created, and as many removed; without a baseline this "
    "counts half.",
    refuted_by="Less than one per second.",
    remedy="Start fewer containers, scopes or sandboxes.",
    stop_gap="lower how many jobs start at once: each start costs the whole node a moment",
    examine=examine,
    numbers_tell=True,
    signatures=(signature(f"{_MAKES} {_REMOVES}", means="cgroups are created and removed"),),
    scope="node",
    culprit="The process that creates them.",
    known_from="measured on 6.18",
)
