"""When systemd starts a service again, and when it gives up: the settings that count and where they stand.

StartLimitInterval= and StartLimitBurst= in [Service] are older names of those in [Unit] and still count;
StartLimitIntervalSec= in [Service] never did, systemd passes it over. RestartSteps= and RestartMaxDelaySec=
are known since 254. A value that does not parse leaves the one before it in place.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from zombiescope.base import text as _text
from zombiescope.node.systemd.unit_files import exit_status, syntax
from zombiescope.node.systemd.unit_files.exit_status import NO_STATUS, StatusSet
from zombiescope.node.systemd.unit_files.manager import ManagerDefaults
from zombiescope.node.systemd.unit_files.syntax import Assignment
from zombiescope.node.systemd.unit_files.timespan import INFINITY, parse_us
from zombiescope.node.systemd.unit_files.unit import Unit

RESTARTS = frozenset({"no", "always", "on-success", "on-failure", "on-abnormal", "on-abort", "on-watchdog"})
ON_EXIT_CODE = frozenset({"always", "on-failure"})
"""Values of Restart= that start a service again which exited with a status that is no success."""
STEPS_SINCE = 254


@dataclass(frozen=True, slots=True)
class Command:
    """One ExecStart= line: the program, and whether its failure counts."""

    program: str
    ignores_failure: bool
    where: Assignment


@dataclass(frozen=True, slots=True)
class Service:
    name: str
    type: str = "simple"
    restart: str = "no"
    restart_us: int = 100_000
    restart_steps: int = 0
    restart_max_us: int = INFINITY
    interval_us: int = 10_000_000
    burst: int = 5
    start_limit_action: str = "none"
    prevent: StatusSet = NO_STATUS
    force: StatusSet = NO_STATUS
    success: StatusSet = NO_STATUS
    commands: tuple[Command, ...] = ()
    where: dict[str, Assignment] = field(default_factory=dict)
    """Setting -> the assignment that decided it; a default that nobody changed has none."""
    passed_over: tuple[Assignment, ...] = ()
    """Assignments that look as if they limited restarts and do nothing."""

    def delay_us(self, restarts: int) -> int:
        """How long systemd waits before the next start after that many restarts."""
        steps, most = self.restart_steps, self.restart_max_us
        if not steps or most >= INFINITY or self.restart_us >= most or not self.restart_us:
            return self.restart_us
        if restarts >= steps:
            return most
        return int(self.restart_us * (most / self.restart_us) ** (restarts / steps))

    @property
    def has_start_limit(self) -> bool:
        return self.interval_us > 0 and self.burst > 0

    def restarts_after_exit(self, status: int | None = None) -> bool:
        """Whether it is started again after it exited with a status; None is any failure but the listed ones."""
        if status is not None:
            if status in self.prevent.codes:
                return False
            if status in self.force.codes:
                return True
            if status == 0 or status in self.success.codes:
                return self.restart in ("always", "on-success")
        return self.restart in ON_EXIT_CODE

    def is_endless(self, status: int | None = None) -> bool:
        """Whether a service that ends at once, each time, is started for ever and never becomes failed.

        systemd refuses the start that would be the (burst + 1)th within the interval. The delays never
        shrink, so the first `burst` of them are the ones that could come together quickly enough.
        """
        if not self._ever_restarts(status) or self.restart_us >= INFINITY:
            return False
        if not self.has_start_limit:
            return True
        if not self.restart_steps:
            return self.restart_us * self.burst >= self.interval_us
        spent_us = 0
        for restarts in range(min(self.burst, 10_000)):
            spent_us += self.delay_us(restarts)
            if spent_us >= self.interval_us:
                return True
        return False

    def _ever_restarts(self, status: int | None) -> bool:
        if status is not None:
            return self.restarts_after_exit(status)
        return self.restart != "no" or bool(self.force)

    @property
    def is_refused(self) -> bool:
        """systemd does not load a one-shot that would be started again after a success."""
        return self.type == "oneshot" and self.restart in ("always", "on-success")

    @property
    def starts_per_day(self) -> float:
        """How often an endless one that ends at once is started in a day, once its delay has grown."""
        longest_us = self.delay_us(self.restart_steps)
        return 86_400e6 / max(longest_us, 10_000)  # a start takes its time too


def settings(unit: Unit, defaults: ManagerDefaults, systemd_version: int | None = None) -> Service:
    """The effective settings of a service."""
    found = _Reader(unit)
    interval = (("Unit", "StartLimitIntervalSec"), ("Unit", "StartLimitInterval"), ("Service", "StartLimitInterval"))
    knows_steps = systemd_version is None or systemd_version >= STEPS_SINCE
    commands = tuple(filter(None, map(_command, unit.listed("Service", "ExecStart"))))
    service = Service(
        name=unit.name,
        type=_type(found, commands),
        restart=found.choice(RESTARTS, "no", ("Service", "Restart")),
        restart_us=found.span(defaults.restart_us, ("Service", "RestartSec")),
        interval_us=found.span(defaults.start_limit_interval_us, *interval),
        burst=found.number(defaults.start_limit_burst, ("Unit", "StartLimitBurst"), ("Service", "StartLimitBurst")),
        start_limit_action=found.text("none", ("Unit", "StartLimitAction"), ("Service", "StartLimitAction")),
        prevent=found.statuses("RestartPreventExitStatus"),
        force=found.statuses("RestartForceExitStatus"),
        success=found.statuses("SuccessExitStatus"),
        commands=commands,
        where=found.where,
        passed_over=tuple(unit.assigned("Service", "StartLimitIntervalSec")),
    )
    if not knows_steps:
        return service
    return replace(
        service,
        restart_steps=found.number(0, ("Service", "RestartSteps")),
        restart_max_us=found.span(INFINITY, ("Service", "RestartMaxDelaySec")),
    )


def _type(found: _Reader, commands: tuple[Command, ...]) -> str:
    kinds = frozenset({"simple", "exec", "forking", "oneshot", "dbus", "notify", "notify-reload", "idle"})
    # man systemd.service: simple where there is something to start and no bus name
    default = "oneshot" if not commands else "dbus" if found.unit.last("Service", "BusName") else "simple"
    return found.choice(kinds, default, ("Service", "Type"))


def _command(item: Assignment) -> Command | None:
    first = next(iter(syntax.words(item.value)), "")
    program = first.lstrip("@-:+!|")
    prefix = first[: len(first) - len(program)]
    return Command(program, "-" in prefix, item) if program else None


class _Reader:
    """Takes settings out of a unit and remembers where each one stood.

    Of several spellings of a setting the one that was assigned last counts, whatever its name."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.where: dict[str, Assignment] = {}

    def _assigned(self, spellings: tuple[tuple[str, str], ...]) -> list[Assignment]:
        return [item for item in self.unit.assignments if (item.section, item.key) in spellings]

    def span(self, default_us: int, *spellings: tuple[str, str]) -> int:
        value = default_us
        for item in self._assigned(spellings):
            us = parse_us(item.value)
            if us is not None:
                value, self.where[spellings[0][1]] = us, item
        return value

    def number(self, default: int, *spellings: tuple[str, str]) -> int:
        value = default
        for item in self._assigned(spellings):
            said = _text.number(item.value)
            if said is not None and said < 1 << 32:
                value, self.where[spellings[0][1]] = said, item
        return value

    def choice(self, allowed: frozenset[str], default: str, *spellings: tuple[str, str]) -> str:
        value = default
        for item in self._assigned(spellings):
            if item.value in allowed:
                value, self.where[spellings[0][1]] = item.value, item
        return value

    def text(self, default: str, *spellings: tuple[str, str]) -> str:
        items = self._assigned(spellings)
        if not items:
            return default
        self.where[spellings[0][1]] = items[-1]
        return items[-1].value or default

    def statuses(self, key: str) -> StatusSet:
        items = self.unit.listed("Service", key)
        if items:
            self.where[key] = items[-1]
        return exit_status.parse(word for item in items for word in syntax.words(item.value))
