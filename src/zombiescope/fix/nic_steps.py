"""The stop-gap for a hog in the kernel: its threads leave the core whose network queue starved.

The work stays as long as it is; that queue does not wait behind it. Only the incident's own cores are left, not every
core that serves a card: on a node where most of them do, the hog would land on the few that ranks are pinned to. Not
where few quiet cores are left, and not for what starts the processes of others: those inherit where it may run.
"""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.base.text import printable
from zombiescope.diagnosis.carriers import is_carrier_unit
from zombiescope.diagnosis.incident import Cause, Incident
from zombiescope.fix import affinity, guard, quiet_cores
from zombiescope.fix.actions.affinity import MoveHog
from zombiescope.fix.step import ActionFailedError, Step, quoted
from zombiescope.kernel.cpu import format_list
from zombiescope.kernel.process import ProcessStat, read_stat

PATTERNS = (
    "zombie-memcg", "cgroup-litter", "smaps-reader", "negative-dentries", "mount-storm", "page-fault-storm",
    "rstat-lock", "audit-flood", "rt-hog", "unknown-kernel-hog",
)  # fmt: skip
"""Where one process holds a core. What reclaims memory for itself, or forks, would do so wherever it is put."""


def steps(incident: Incident, cause: Cause, live: bool) -> Iterator[Step]:
    hog, pid = cause.hog, cause.hog.pid
    stat = read_stat(pid) if live and pid is not None and pid > 1 else None
    if stat is None or stat.is_kernel_thread or printable(hog.comm or "") != stat.comm:
        return
    serving = quiet_cores.nic_cores()
    cores = serving & {symptom.cpu for symptom in incident.symptoms if symptom.cpu is not None}
    if not cores:
        return
    allowed = frozenset(cpu for one in affinity.threads(stat.pid) for cpu in one.cpus)
    if why := quiet_cores.why_too_few(allowed, cores, serving, quiet_cores.pinned_cores(hog=stat.pid)):
        yield _advice(stat, why)
    elif _starts_for_others(stat, hog.unit):
        yield _advice(stat, "what it starts for others would inherit where it may run")
    else:
        yield from _move(stat, guard.unit_of(stat.pid) or hog.unit, cores)


def _starts_for_others(stat: ProcessStat, unit: str | None) -> bool:
    """kubelet does not: it asks a runtime to."""
    if stat.comm == "kubelet" or unit == "kubelet.service":
        return False
    return guard.is_carrier(stat.pid) or is_carrier_unit(unit)


def _move(stat: ProcessStat, unit: str | None, cores: frozenset[int]) -> Iterator[Step]:
    action = MoveHog(stat.pid, stat.start_time_ticks, tuple(cores))
    protected = guard.protected_unit(unit) if unit is not None else None
    try:
        touches = action.touches()
    except ActionFailedError:
        return  # it ended meanwhile
    yield Step(
        id=f"{action.kind}:{stat.comm}",
        kind="change",
        does=f"move {stat.comm} (pid {stat.pid}) off core {format_list(cores)}, whose network queue waits behind it",
        command=quoted(action.command()),
        touches=touches,
        risk="it only moves the work; until it restarts" + (f"; {protected}" if protected else ""),
        undo="--undo gives each thread the cores that it had",
        verify=quoted(("taskset", "-a", "-c", "-p", str(stat.pid))) or "",
        part="stop-gap",
        action=action,
        protects=unit if protected else None,
    )


def _advice(stat: ProcessStat, why: str) -> Step:
    does = f"{stat.comm} (pid {stat.pid}) is not moved off the core whose network queue waits behind it: {why}"
    return Step(f"advice:hog.move:{stat.comm}", "advice", does, part="stop-gap")
