"""A service whose program starts something again and again by itself: systemd counts no restart, and no start limit
applies.

The supervisor inside stays healthy: ecs-init creates its container anew whenever it ends, a script loops around
`docker run`, supervisord restarts its programs. NRestarts stays 0, `systemctl` shows the unit as active, and each round
may leave a cgroup behind. Known by the catalogue (`supervises`), by the program's name, or by the script itself: a loop
in which a container or a scope is started. Scripts are read in the image, up to READ_BYTES; nothing is executed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from zombiescope.audit.finding import EvidenceLine, Finding
from zombiescope.audit.node import Node, shown
from zombiescope.audit.protected import protection
from zombiescope.node.systemd.unit_files import Service
from zombiescope.node.systemd.unit_files.service import Command

ID = "inner-restart"
TITLE = "A service that restarts something inside, unseen by systemd"

READ_BYTES = 65_536
_SUPERVISORS = frozenset(
    {
        "supervisord", "s6-svscan", "runsvdir", "svscan", "monit", "circusd", "pm2", "forever", "god", "immortal",
        "docker-compose", "podman-compose",
    }
)  # fmt: skip
_SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh"})
_LOOP = re.compile(r"(?:^|[;\n({]|\bdo\b)\s*(?:while|until|for)\b", re.M)
_STARTS = re.compile(
    r"(?<![\w/-])(?:[\w./-]{0,64}/)?(?:docker|podman|nerdctl|ctr|crictl|systemd-run|runc|crun)\s[^\n]{0,200}?"
    r"(?<![\w-])(?:run|start|up|create|compose|--scope)\b|(?<![\w/-])(?:[\w./-]{0,64}/)?systemd-run\s"
)
_COMMENT = re.compile(r"(?m)^\s*#.*$")


def find(node: Node) -> Iterator[Finding]:
    for service in node.started_services():
        agent = node.catalogue.agent(service.name)
        if agent is not None and agent.supervises:
            why = f"{agent.name} starts its program again by itself whenever it ends: {agent.supervises}."
            yield _finding(node, service, "info" if _is_at_home(node, agent.belongs_to) else "warning", why, ())
            continue
        for command in service.commands:
            if (found := _inside(node, command)) is not None:
                severity, why, line = found
                yield _finding(node, service, severity, why, (shown(command.where), *line))
                break


def _is_at_home(node: Node, platform: str | None) -> bool:
    return platform is None or platform in (*node.platform.of_kind("orchestrator"), *node.platform.of_kind("cloud"))


def _inside(node: Node, command: Command) -> tuple[str, str, tuple[EvidenceLine, ...]] | None:
    name = command.program.rpartition("/")[2]
    if name in _SUPERVISORS:
        return "info", f"{name} starts its programs again by itself whenever they end.", ()
    words = _words(command.where.value)
    text, path = _script(node, command, name, words)
    if text is None:
        return None
    plain = _COMMENT.sub("", text)
    loop = _LOOP.search(plain)
    started = _STARTS.search(plain, loop.end() if loop is not None else 0) if loop is not None else None
    if started is None:
        return None
    line = text[: text.find(started[0])].count("\n") + 1 if path else None
    shown_line = (EvidenceLine(path, line, started[0].strip()[:200]),) if path else ()
    return "warning", "Its script starts a container or a scope in a loop.", shown_line


def _words(value: str) -> list[str]:
    try:
        return shlex.split(value)
    except ValueError:
        return value.split()


def _script(node: Node, command: Command, name: str, words: list[str]) -> tuple[str | None, str]:
    """The text of a shell script, and the file that it is in."""
    if name in _SHELLS:
        rest = words[1:]
        for place, word in enumerate(rest):
            if word.startswith("-") and "c" in word.lstrip("-") and not word.startswith("--"):
                return (rest[place + 1] if place + 1 < len(rest) else None), ""
            if word.startswith("/"):
                return _text(node, word), word
        return None, ""
    text = _text(node, command.program)
    return (text, command.program) if text is not None and text.startswith("#!") else (None, "")


def _text(node: Node, path: str) -> str | None:
    data = node.root.read(path, READ_BYTES) if path.startswith("/") else None
    return None if data is None or b"\0" in data else data.decode("utf-8", "replace")


def _finding(node: Node, service: Service, severity: str, why: str, evidence: tuple[EvidenceLine, ...]) -> Finding:
    can_stop = protection(service.name) is None
    return Finding(
        id=f"{ID}:{service.name}",
        rule=ID,
        unit=service.name,
        severity="warning" if severity == "warning" else "info",
        why=f"{why} systemd counts no restart of it (NRestarts stays 0), its start limit does not apply, and the unit "
        "is shown as active. zombiescope cgroups shows whether each round leaves a cgroup behind.",
        evidence=(*evidence, *node.evidence_of(service.name)),
        fix=(
            *([f"# if it is not needed: {node.disable(service.name)}"] if can_stop else []),
            "# else let systemd do the restarts, with a start limit: run the program in the foreground as ExecStart=",
        ),
    )
