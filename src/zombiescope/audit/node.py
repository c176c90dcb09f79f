"""What the rules look at: a node or an image, read once."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from zombiescope.audit.catalogue import Catalogue
from zombiescope.audit.finding import EvidenceLine
from zombiescope.audit.kernel_facts import KernelFacts
from zombiescope.audit.platform import Platform
from zombiescope.audit.surroundings import Surroundings
from zombiescope.node.systemd.root import Root
from zombiescope.node.systemd.show import RunningUnit
from zombiescope.node.systemd.unit_files import Service, UnitFiles, exit_status
from zombiescope.node.systemd.unit_files.starts import FIRST_BOOT, Start
from zombiescope.node.systemd.unit_files.syntax import Assignment

_SPANS = {"RestartUSec": "restart_us", "StartLimitIntervalUSec": "interval_us", "RestartMaxDelayUSec": "restart_max_us"}
_NUMBERS = {"StartLimitBurst": "burst", "RestartSteps": "restart_steps"}
_TEXTS = {"Restart": "restart", "Type": "type", "StartLimitAction": "start_limit_action"}
_STATUSES = {
    "RestartPreventExitStatus": "prevent",
    "RestartForceExitStatus": "force",
    "SuccessExitStatus": "success",
}

TEXT_MAX = 400
"""A line of a unit file may have a megabyte; as evidence its begin is enough, the file and the line are named."""


@dataclass(slots=True)
class Node:
    root: Root
    files: UnitFiles
    starts: dict[str, Start]
    """Units that start by themselves, and why."""
    running: dict[str, RunningUnit] | None
    """None: the running systemd was not asked, or there is none."""
    kernel: KernelFacts
    platform: Platform
    catalogue: Catalogue
    surroundings: Surroundings = field(default_factory=Surroundings)
    """Of a running node; nothing of an image."""

    def started_services(self) -> Iterator[Service]:
        """Services that start without anybody asking, and on a running node those that are loaded and not idle."""
        found = {name for name in self.starts if name.endswith(".service")}
        for name, unit in (self.running or {}).items():
            if name.endswith(".service") and unit.active_state != "inactive":
                found.add(name)
        for name in sorted(found):
            service = self.service(name)
            if service is not None:
                yield service

    def service(self, name: str) -> Service | None:
        """Its settings: from the running systemd where that has the unit loaded, else from the files."""
        service = self.files.service(name)
        unit = (self.running or {}).get(name)
        if unit is None or not unit.properties:
            return service
        return _as_running(service or Service(name), unit.properties)

    def evidence_of(self, name: str) -> tuple[EvidenceLine, ...]:
        """Why the unit starts, as evidence; nothing for what was started by hand."""
        start = self.starts.get(name)
        if start is None or not start.file:
            return ()
        return (EvidenceLine(start.file, start.line, start.text),)

    def systemctl(self, *arguments: str) -> str:
        """The command that acts on this root."""
        command = ["systemctl", *arguments]
        if not self.root.is_this_machine:
            command.insert(1, f"--root={self.root.path}")
        return shlex.join(command)

    def disable(self, unit: str) -> str:
        """The command that keeps a unit from starting by itself."""
        now = ["--now"] if self.root.is_this_machine else []
        if (self.files.state(unit) or "").startswith("enabled"):
            return self.systemctl("disable", *now, unit)
        start = self.starts.get(unit)
        if start is not None and start.by == FIRST_BOOT:
            return self.write("/etc/systemd/system-preset", f"10-off-{unit}.preset", f"disable {unit}")
        return self.systemctl("mask", *now, unit)

    def drop_in(self, unit: str, name: str, *lines: str) -> tuple[str, ...]:
        """The commands that change a unit, on this machine or in an image (`systemctl edit` knows no image)."""
        wrote = self.write(f"/etc/systemd/system/{unit}.d", f"{name}.conf", *lines)
        return (wrote, "systemctl daemon-reload") if self.root.is_this_machine else (wrote,)

    def write(self, directory: str, name: str, *lines: str) -> str:
        """The command that writes a small file."""
        place = self.path(directory)
        text = "".join(line.replace("\\", "\\\\").replace("%", "%%") + "\\n" for line in lines)
        return f"mkdir -p {shlex.quote(place)} && printf {shlex.quote(text)} > {shlex.quote(f'{place}/{name}')}"

    def path(self, inside: str) -> str:
        """A path of the root as it is reached from here."""
        return inside if self.root.is_this_machine else self.root.path.rstrip("/") + inside


def shown(assignment: Assignment) -> EvidenceLine:
    text = f"{assignment.key}={assignment.value}"
    if len(text) > TEXT_MAX:
        text = f"{text[:TEXT_MAX]}... ({len(text):,} characters)"
    return EvidenceLine(assignment.file, assignment.line, text)


def _as_running(service: Service, properties: dict[str, Any]) -> Service:
    changed: dict[str, Any] = {}
    for theirs, ours in (_SPANS | _NUMBERS | _TEXTS).items():
        value = properties.get(theirs)
        if isinstance(value, str if theirs in _TEXTS else int):
            changed[ours] = value
    for theirs, ours in _STATUSES.items():
        value = properties.get(theirs)
        if isinstance(value, (list, tuple)) and len(value) == 2:
            changed[ours] = exit_status.from_numbers(value[0], value[1])
    return replace(service, **changed)
