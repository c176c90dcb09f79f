"""A service that systemd restarts for ever: it never becomes failed, and no list of failed units shows it.

systemd gives up when a service was started StartLimitBurst times within StartLimitIntervalSec. With RestartSec=10s
and the defaults (5 starts in 10 s) that cannot happen. Each start makes a cgroup, and a page of a log file is enough
to keep it as a zombie after the service has ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from zombiescope.audit.catalogue import Agent
from zombiescope.audit.finding import EvidenceLine, Finding
from zombiescope.audit.node import Node, shown
from zombiescope.audit.protected import protection
from zombiescope.node.systemd.unit_files import Service
from zombiescope.node.systemd.unit_files.timespan import human

ID = "endless-restart"
TITLE = "A service that would restart without end"

RARE_PER_DAY = 288
"""One start in five minutes; slower loops are worth knowing and no more."""
_SETTINGS = (
    "Restart", "RestartSec", "RestartSteps", "RestartMaxDelaySec", "StartLimitIntervalSec", "StartLimitBurst",
    "RestartPreventExitStatus",
)  # fmt: skip
_ON = {
    "always": "it ends",
    "on-success": "it ends well",
    "on-failure": "it fails",
    "on-abnormal": "it is killed by a signal or times out",
    "on-abort": "it is killed by a signal",
    "on-watchdog": "its watchdog fires",
}


def find(node: Node) -> Iterator[Finding]:
    for service in node.started_services():
        if service.is_endless() and not service.is_refused:
            yield _finding(node, service, node.catalogue.agent(service.name))


def _finding(node: Node, service: Service, agent: Agent | None) -> Finding:
    ends = agent is not None and agent.terminal_status and set(agent.terminal_status) <= service.prevent.codes
    by_design = agent is not None and agent.endless_by_design
    rare = service.starts_per_day <= RARE_PER_DAY
    return Finding(
        id=f"{ID}:{service.name}",
        rule=ID,
        unit=service.name,
        severity="info" if ends or by_design or rare else "warning",
        why=_why(service, agent if ends or by_design else None),
        evidence=_evidence(node, service),
        fix=_fix(node, service, agent),
    )


def _why(service: Service, agent: Agent | None) -> str:
    wait = human(service.delay_us(service.restart_steps))
    when = _ON.get(service.restart, "it ends with a status that forces it")
    if service.has_start_limit:
        limit = f"and never reaches its start limit ({service.burst} starts within {human(service.interval_us)})"
    else:
        limit = "and its start limit is switched off"
    per_day = f"{service.starts_per_day:,.0f}"
    first = human(service.restart_us)
    grows = f"at first {first} and finally " if first != wait else ""
    text = f"It is restarted {grows}{wait} after {when}, {limit}: "
    text += f"up to {per_day} starts a day, each with its own cgroup, and it is never shown as failed."
    if service.prevent:
        text += f" It does stay stopped after {'status ' if service.prevent.codes else ''}{service.prevent}."
    if agent is not None and agent.endless_by_design:
        text += f" That is by design: {agent.why[0].lower() + agent.why[1:]}"
    elif agent is not None:
        text += f" That is the status with which {agent.name} asks not to be restarted."
    return text


def _evidence(node: Node, service: Service) -> tuple[EvidenceLine, ...]:
    found = [shown(service.where[key]) for key in _SETTINGS if key in service.where]
    default = node.files.defaults.source(
        "DefaultStartLimitIntervalSec", "DefaultStartLimitInterval", "DefaultRestartSec"
    )
    if default is not None:
        found.append(shown(default))
    unit = (node.running or {}).get(service.name)
    if not found and unit is not None:
        found.append(EvidenceLine(f"systemd: {service.name}", None, f"Restart={service.restart}"))
    return (*found, *node.evidence_of(service.name))


def _fix(node: Node, service: Service, agent: Agent | None) -> tuple[str, ...]:
    if agent is not None and agent.endless_by_design:
        return ("# nothing: accept it with --allow",)
    lines = ["[Unit]", f"StartLimitIntervalSec={_interval_s(service)}", f"StartLimitBurst={service.burst or 5}"]
    if agent is not None and agent.terminal_status and not set(agent.terminal_status) <= service.prevent.codes:
        lines += ["[Service]", f"RestartPreventExitStatus={' '.join(map(str, agent.terminal_status))}"]
    return (
        *([f"# if it is not needed: {node.disable(service.name)}"] if protection(service.name) is None else []),
        *node.drop_in(service.name, "50-start-limit", *lines),
    )


def _interval_s(service: Service) -> int:
    """Twice as long as `burst` quick failures take, in whole minutes."""
    quick_us = service.delay_us(service.restart_steps) * (service.burst or 5)
    return max(60, ceil(2 * quick_us / 60e6) * 60)
