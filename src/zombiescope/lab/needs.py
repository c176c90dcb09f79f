"""What this machine lacks for a scenario, in words; nothing when it may run here."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from zombiescope.lab.place import UNITS, Place
from zombiescope.lab.scenario import GB, Scenario

SPARE = 0.5
"""Of the memory that is available, at most this much is taken."""
SWITCHES_ON = {"cpu": "CPUWeight=100", "memory": "MemoryAccounting=yes", "pids": "TasksAccounting=yes"}


def lacks(scenario: Scenario) -> list[str]:
    return list(_lacks(scenario))


def _lacks(scenario: Scenario) -> Iterator[str]:
    needs = scenario.needs
    if scenario.kind == "replay":
        return
    if needs.root and os.geteuid() != 0:
        yield f"needs root: sudo zombiescope lab run {scenario.id}"
    if needs.node and not in_lab_node():
        yield f"would hurt the whole machine: zombiescope lab run {scenario.id} --in-node"
    elif needs.systemd and not systemd_runs():
        yield f"needs systemd as the machine's init: zombiescope lab run {scenario.id} --in-node"
    elif not needs.node:
        yield from _too_small(scenario)
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
    for program, package in needs.programs:
        if shutil.which(program, path=path) is None:
            yield f"needs {program}: apt-get install {package}"
    for controller in needs.controllers:
        if Place(scenario.id).root_of(controller) is None:
            yield (
                f"needs the cgroup controller {controller}, which this machine does not pass down from the root: "
                f"systemctl set-property --runtime system.slice {SWITCHES_ON[controller]}"
            )
    for file in needs.files:
        if not Path(file).exists():
            yield f"needs {file}, which this kernel does not have"


def only_in_a_node(scenario: Scenario) -> bool:
    """Whether it has to run in a machine of `lab node`, and this is none."""
    return (scenario.needs.node and not in_lab_node()) or (scenario.needs.systemd and not systemd_runs())


def _too_small(scenario: Scenario) -> Iterator[str]:
    needs = scenario.needs
    available = available_bytes()
    if available is not None and needs.memory_bytes > SPARE * available:
        yield (
            f"takes up to {needs.memory_bytes / GB:.1f} GB of memory, and half of the {available / GB:.1f} GB that are "
            "available is the most that it may"
        )
    cores = len(os.sched_getaffinity(0))
    if needs.cores > cores:
        yield f"needs {needs.cores} cores, and here {'is one' if cores == 1 else f'are {cores}'}"


def available_bytes(meminfo: Path = Path("/proc/meminfo")) -> int | None:
    try:
        lines = meminfo.read_text().splitlines()
    except OSError:
        return None
    found = [int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")]
    return found[0] if found else None


def systemd_runs() -> bool:
    return UNITS.is_dir()  # sd_booted(3)


def in_lab_node() -> bool:
    """Whether this is a machine that `lab node` booted."""
    return Path("/dev/virtio-ports/zombiescope.agent").exists()
