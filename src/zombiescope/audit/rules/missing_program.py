"""A service whose program is not there: it fails at every start with status 203, and with Restart= in a loop."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.audit.finding import Finding
from zombiescope.audit.node import Node, shown
from zombiescope.node.systemd.unit_files import Service, Unit
from zombiescope.node.systemd.unit_files.exit_status import EXEC
from zombiescope.node.systemd.unit_files.service import Command
from zombiescope.node.systemd.unit_files.specifiers import expand

ID = "missing-program"
TITLE = "A service whose program does not exist"

_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
_ELSEWHERE = ("/run/", "/proc/", "/sys/", "/dev/", "/var/run/", "/snap/")
"""What is made or mounted at run time cannot be missed in an image."""
_OTHER_ROOT = ("RootDirectory", "RootImage", "BindPaths", "BindReadOnlyPaths", "MountImages", "ExtensionImages")
_CONDITIONS = {
    "ConditionPathExists": "status", "ConditionFileIsExecutable": "is_executable",
    "ConditionPathIsDirectory": "is_directory", "ConditionDirectoryNotEmpty": "names", "ConditionFileNotEmpty": "read",
}  # fmt: skip


def find(node: Node) -> Iterator[Finding]:
    for service in node.started_services():
        unit = node.files.unit(service.name)
        if unit is None or any(unit.last("Service", key) for key in _OTHER_ROOT) or is_skipped(node, unit):
            continue
        for command in service.commands:
            if not command.ignores_failure and _is_missing(node, command, service.name):
                yield _finding(node, service, command)
                break


def _is_missing(node: Node, command: Command, unit: str) -> bool:
    program = expand(command.program, unit)
    if program is None or "$" in program or program.startswith(_ELSEWHERE):
        return False
    if program.startswith("/"):
        return not node.root.is_executable(program)
    return "/" not in program and not any(node.root.is_executable(f"{place}/{program}") for place in _PATH)


def is_skipped(node: Node, unit: Unit) -> bool:
    """Whether a condition on a file keeps it from starting. One that holds of several with | is enough."""
    one_of: list[bool] = []
    for key, question in _CONDITIONS.items():
        for item in unit.listed("Unit", key):
            value = item.value
            triggering, value = value.startswith("|"), value.removeprefix("|").strip()
            negated, value = value.startswith("!"), value.removeprefix("!").strip()
            paths = [expand(text, unit.name) for text in _for_each_kernel(node, value)]
            if any(path is None or "*" in path or path.startswith(_ELSEWHERE) for path in paths):
                continue
            holds = any(getattr(node.root, question)(path) for path in paths) != negated
            if triggering:
                one_of.append(holds)
            elif not holds:
                return True
    return bool(one_of) and not any(one_of)


def _for_each_kernel(node: Node, value: str) -> list[str]:
    """%v is the release of the running kernel; an image may have several, or none."""
    if "%v" not in value:
        return [value]
    return [value.replace("%v", release) for release, _ in node.kernel.releases]


def _finding(node: Node, service: Service, command: Command) -> Finding:
    endless = service.is_endless(EXEC)
    loop = f" With Restart={service.restart} this repeats without end." if endless else ""
    there = node.root.status(command.program) is not None
    what = "is not executable" if there else "does not exist"
    return Finding(
        id=f"{ID}:{service.name}",
        rule=ID,
        unit=service.name,
        severity="critical" if endless else "warning",
        why=f"Its program {command.program} {what}, so each start fails with status 203.{loop}",
        evidence=(shown(command.where), *node.evidence_of(service.name)),
        fix=(node.disable(service.name), f"# or install the package that provides {command.program}"),
    )
