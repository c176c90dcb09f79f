"""What this machine lacks for a scenario; nothing when it may run here."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from zombiescope.kernel import meminfo
from zombiescope.lab.sandbox import UNITS, Sandbox
from zombiescope.lab.scenario import GB, Scenario

SPARE = 0.5
"""Of the memory that is available, at most this much is taken."""
SWITCHES_ON = {"cpu": "CPUWeight=100", "memory": "MemoryAccounting=yes", "pids": "TasksAccounting=yes"}


@dataclass(frozen=True, slots=True)
class Lack:
    """`what` is missing here; `fix` is the command that helps, None where there is none."""

    what: str
    fix: str | None = None

    def __str__(self) -> str:
        return self.what if self.fix is None else f"{self.what}: {self.fix}"


def lacks(scenario: Scenario) -> list[Lack]:
    return list(_lacks(scenario))


def _lacks(scenario: Scenario) -> Iterator[Lack]:
    needs = scenario.needs
    if scenario.kind == "replay":
        return
    if needs.root and os.geteuid() != 0:
        yield Lack("needs root", f"sudo zombiescope lab run {scenario.id}")
    if needs.node and not in_lab_node():
        yield Lack("would hurt the whole machine", f"zombiescope lab run {scenario.id} --in-node")
    elif needs.systemd and not systemd_runs():
        yield Lack("needs systemd as the machine's init", f"zombiescope lab run {scenario.id} --in-node")
    elif not needs.node:
        yield from _too_small(scenario)
    yield from _not_installed(scenario)
    for controller in needs.controllers:
        if Sandbox(scenario.id).root_of(controller) is None:
            yield Lack(
                f"needs the cgroup controller {controller}, which is not enabled below this machine's root cgroup",
                f"systemctl set-property --runtime system.slice {SWITCHES_ON[controller]}",
            )
    if needs.real_time and os.geteuid() == 0 and not real_time_allowed():
        yield Lack("needs real-time priority, which this machine refuses to root")
    for file in needs.files:
        if not Path(file).exists():
            yield Lack(f"needs {file}, which this kernel does not have")


def _not_installed(scenario: Scenario) -> Iterator[Lack]:
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
    for program, package in scenario.needs.programs:
        if shutil.which(program, path=path) is None:
            yield Lack(f"needs {program}", f"apt-get install {package}")


def only_in_a_node(scenario: Scenario) -> bool:
    """Whether it has to run in a machine of `lab node`, and this is not one."""
    return (scenario.needs.node and not in_lab_node()) or (scenario.needs.systemd and not systemd_runs())


def _too_small(scenario: Scenario) -> Iterator[Lack]:
    needs = scenario.needs
    available = available_bytes()
    if available is not None and needs.memory_bytes > SPARE * available:
        yield Lack(
            f"needs up to {needs.memory_bytes / GB:.1f} GB of memory, and may use at most half of the "
            f"{available / GB:.1f} GB that are available"
        )
    cores = len(os.sched_getaffinity(0))
    if needs.cores > cores:
        yield Lack(f"needs {needs.cores} cores, and this machine has {cores}")


def available_bytes() -> int | None:
    return (meminfo.read() or {}).get("mem_available_bytes")


def systemd_runs() -> bool:
    return UNITS.is_dir()  # sd_booted(3)


def real_time_allowed() -> bool:
    """Asked for and given back at once: a container or a cgroup without a real-time budget refuses it."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:
        return False
    os.sched_setscheduler(0, *before)
    return True


def in_lab_node() -> bool:
    """Whether this is a machine that `lab node` booted."""
    return Path("/dev/virtio-ports/zombiescope.agent").exists()
