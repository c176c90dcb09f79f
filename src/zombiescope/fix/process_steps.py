"""The step for a culprit that is a plain process: in no unit that systemd has, and in no container.

Nobody but its starter could start it again, so it is not ended: it is suspended, which can be taken back, and only
where a person names it (--force-unit COMM): others may wait for it, as a cluster does for a raylet. A path may
hold the name of a unit that this systemd does not have (another one's, inside a container, or a name like one), and on
some nodes there is no systemd at all; then the process is what there is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from zombiescope.base.errors import UserError
from zombiescope.base.text import printable
from zombiescope.base.time import SECOND_US
from zombiescope.diagnosis.incident import Actor, Cause, Incident
from zombiescope.fix import guard, holds
from zombiescope.fix.actions import unit as units
from zombiescope.fix.actions.suspend import SuspendProcess
from zombiescope.fix.step import Step, bounded, quoted
from zombiescope.kernel.process import ProcessStat, read_stat
from zombiescope.kernel.procfile import read_file

PATTERNS = ("zombie-memcg", "cgroup-litter", "cgroup-churn")
"""Where the culprit makes cgroups: what it made before stays as it is while it stands still."""


def steps(incident: Incident, cause: Cause, live: bool) -> Iterator[Step]:
    culprit = cause.culprit
    if not live or culprit is None or culprit.container or culprit.pod or is_of_a_unit(culprit):
        return
    stat = _process(culprit, incident)
    if stat is not None:
        yield _suspended(stat, culprit)


def _suspended(stat: ProcessStat, culprit: Actor) -> Step:
    """Never what computes on an accelerator, or started what does: its job would miss its heartbeats and fail."""
    tenant = holds.uses_accelerator(holds.descendants(stat.pid))
    if tenant is None:
        return _suspend(stat, culprit, _unit_that_needs_it(stat.pid))
    name = f"{stat.comm} (pid {stat.pid})"
    whose = "it computes" if tenant == stat.pid else f"its process {tenant} computes"
    return Step(
        f"advice:process.suspend:{stat.comm}", "advice",
        printable(f"{name} makes these cgroups, and is not suspended: {whose} on an accelerator; ask who started it"),
        part="stop-gap",
    )  # fmt: skip


def _unit_that_needs_it(pid: int) -> tuple[str, str] | None:
    """The protected unit that it is in, whatever was recorded of it, and why."""
    unit = guard.unit_of(pid)
    why = guard.protected_unit(unit) if unit is not None and is_of_a_unit(Actor(unit=unit)) else None
    return (unit, why) if unit is not None and why is not None else None


def is_one(step: Step) -> bool:
    return isinstance(step.action, SuspendProcess)


def is_of_a_unit(culprit: Actor | None) -> bool:
    """Whether systemd has its unit; not known counts as yes where there is a systemd."""
    if culprit is None or culprit.unit is None:
        return False
    try:
        return units.manager().unit(culprit.unit).exists
    except UserError:
        return os.path.isdir("/run/systemd/system")  # noqa: PTH112  as sd_booted(3)


def _process(culprit: Actor, incident: Incident) -> ProcessStat | None:
    """The one that was recorded, if it lives; a later one that has its number is somebody else."""
    stat = read_stat(culprit.pid) if culprit.pid is not None and culprit.pid > 1 else None
    if stat is None or stat.is_kernel_thread or stat.comm != printable(culprit.comm or ""):
        return None
    if guard.is_carrier(stat.pid) or guard.is_our_ancestor(stat.pid):
        return None
    started = _started_us(stat)
    return stat if started is not None and started <= incident.to_us else None


def _started_us(stat: ProcessStat) -> int | None:
    rows = (read_file("/proc/stat") or b"").split(b"\n")
    boot = next((row.split()[1] for row in rows if row.startswith(b"btime ")), None)
    if boot is None:
        return None
    return int(boot) * SECOND_US + stat.start_time_ticks * SECOND_US // os.sysconf("SC_CLK_TCK")


def _suspend(stat: ProcessStat, culprit: Actor, of: tuple[str, str] | None) -> Step:
    """`of`: the protected unit that it is a part of, and why."""
    action = SuspendProcess(stat.pid, stat.start_time_ticks)
    name = f"{stat.comm} (pid {stat.pid})"
    where = f", below {culprit.cgroup}" if culprit.cgroup else ""
    return Step(
        id=f"{action.kind}:{stat.comm}:{stat.pid}",
        kind="change",
        does=printable(f"suspend {name}, which makes these cgroups{where}; no unit starts it, so it is not ended"),
        command=quoted(action.command()),
        touches=bounded([f"{name} is paused; its child processes continue"]),
        risk="what waits for it waits, and what it has locked stays locked; ask who started it to end it"
        + (f"; it is in {of[0]}: {of[1]}" if of else ""),
        undo=quoted(("kill", "-CONT", str(stat.pid))) or "",
        verify=quoted(("ps", "-o", "pid,stat,comm", "-p", str(stat.pid))) or "",
        part="stop-gap",
        action=action,
        protects=of[0] if of else stat.comm,
    )
