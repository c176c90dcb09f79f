"""A unit is stopped and does not start by itself again: `systemctl disable --now`, or mask where it cannot be disabled.

How, is decided by what systemd says of its file:

    enabled, enabled-runtime             disabled: nothing wants it at the next boot
    static, generated, indirect, alias   masked: it has no [Install] section that could be taken back. One whose own
                                         file lies in /etc, where the mask would have to go, is only stopped
    transient, linked, disabled, masked  only stopped: nothing starts it by itself

What requires it stops with it, says systemd; that is listed, noted, and started again by the way back.

What starts it beside that (a socket, a timer, a path) is a step of its own, before this one: see unit_steps.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from zombiescope.base.errors import UserError
from zombiescope.fix.step import ActionFailedError, bounded
from zombiescope.kernel.cgroup_path import normalise
from zombiescope.node.systemd.manager import LoadedUnit, Manager

_NAME = re.compile(r"[A-Za-z0-9:_.\\@][-A-Za-z0-9:_.\\@]{0,254}")
_CAN_DISABLE = ("enabled", "enabled-runtime")
_HAS_TO_BE_MASKED = ("static", "generated", "indirect", "alias")
_OWN_FILES = "/etc/systemd/system/"
MOST_DEPENDENTS = 32
"""Units that stop with one: more are too many to be told."""


def manager() -> Manager:
    """systemd of this machine; tests put their own here."""
    return Manager()


@dataclass(frozen=True, slots=True)
class DisableUnit:
    unit: str
    also: tuple[str, ...] | None = None
    """Units that were shown to stop with it; another one that would by now stops the step. None: nobody was asked."""
    cgroup: str | None = None
    """Where the evidence has it. Another unit of the same name (a container's, a user's) is in another place."""
    kind: ClassVar[str] = "unit.disable"

    def __post_init__(self) -> None:
        if not isinstance(self.unit, str) or _NAME.fullmatch(self.unit) is None or "." not in self.unit:
            raise ValueError(f"{self.unit!r} is not a systemd unit name")
        if self.also is not None:  # from the log it is a list
            object.__setattr__(self, "also", tuple(map(str, self.also)))

    def arguments(self) -> dict[str, Any]:
        known = {} if self.also is None else {"also": list(self.also)}
        return {"unit": self.unit} | known | ({} if self.cgroup is None else {"cgroup": self.cgroup})

    def command(self) -> tuple[str, ...] | None:
        return ("systemctl", "disable", "--now", self.unit)

    def touches(self) -> tuple[str, ...]:
        known = asked(self.unit)
        if not known.exists:
            raise ActionFailedError(f"systemd knows no {self.unit} (any more)")
        refuse_elsewhere(known, self.cgroup)
        lines = [f"{self.unit}: {known.active_state} ({known.sub_state}), {known.file_state or 'without a unit file'}"]
        if known.restarts:
            lines.append(f"it was restarted {known.restarts:,} times so far")
        if known.main_pid:
            lines.append(f"its main process is {known.main_pid}, and all others in {known.control_group} end with it")
        lines += [f"{name} starts it, too" for name in known.triggered_by]
        lines += [f"{name} wants it" for name in known.wanted_by]
        return bounded(lines)

    def before(self) -> dict[str, Any]:
        known = asked(self.unit)
        return {
            "active_state": known.active_state, "is_running": known.is_running, "file_state": known.file_state,
            "load_state": known.load_state, "fragment": known.fragment, "invocation": known.invocation,
            "restarts": known.restarts, "also": list(dependents(known)),
        }  # fmt: skip

    def is_applied(self) -> bool:
        """A unit that is gone altogether is not started any more, either."""
        known = asked(self.unit)
        return not known.is_running and (not known.exists or _how(known.file_state, known.fragment) == "stop")

    def apply(self) -> None:
        """First nothing may start it again, then it is stopped: the other way round it may come back in between."""
        known = asked(self.unit)
        refuse_elsewhere(known, self.cgroup)
        self._refuse_strangers(known)
        how = _how(known.file_state, known.fragment)
        try:
            if how == "disable":
                manager().disable([self.unit])
            elif how == "mask":
                manager().mask([self.unit])
            if asked(self.unit).is_running:
                manager().stop(self.unit)
        except UserError as error:
            raise ActionFailedError(error.what, error.fix) from error

    def _refuse_strangers(self, known: LoadedUnit) -> None:
        new = [] if self.also is None or not known.is_running else sorted({*dependents(known)} - {*self.also})
        if new:
            raise ActionFailedError(f"{new[0]} needs {self.unit} by now and would stop with it", "plan again")

    def undo(self, before: Mapping[str, Any]) -> None:
        """Started again only if it ran; a unit that was removed since cannot be put back by us."""
        known, was = asked(self.unit), str(before.get("file_state") or "")
        how = _how(was, str(before.get("fragment") or ""))
        try:
            if how == "mask" and known.file_state.startswith("masked"):
                manager().unmask([self.unit])
            elif how == "disable" and known.exists and not known.file_state.startswith("enabled"):
                manager().enable([self.unit], runtime=was == "enabled-runtime")
            known = asked(self.unit)
            if not known.exists:
                raise ActionFailedError(f"{self.unit} no longer exists: it was removed")
            if before.get("is_running") and not known.is_running:
                manager().start(self.unit)
            self._start_others(before.get("also"))
        except ActionFailedError:
            raise
        except UserError as error:
            raise ActionFailedError(error.what, error.fix) from error

    def _start_others(self, also: object) -> None:
        """Those that stopped with it; one that is gone since is not ours to bring back."""
        for name in also if isinstance(also, list) else ():
            if isinstance(name, str) and _NAME.fullmatch(name) is not None:
                other = asked(name)
                if other.exists and not other.is_running:
                    manager().start(name)


def refuse_elsewhere(known: LoadedUnit, cgroup: str | None) -> None:
    """Raises ActionFailedError where systemd has the unit in another cgroup than the evidence. One that does not run
    has none, and would be in its slice."""
    place = known.control_group or (f"{slice_path(known.slice)}/{known.name}" if known.slice else "")
    if cgroup is not None and place and normalise(place) != normalise(cgroup):
        raise ActionFailedError(
            f"systemd has {known.name} in {place}, and what was recorded was in {cgroup}: it is another one",
            "look at who made that cgroup",
        )


def slice_path(name: str) -> str:
    """/a.slice/a-b.slice of a-b.slice, as systemd nests them."""
    words = name.removesuffix(".slice").split("-")
    nested = ["-".join(words[: count + 1]) for count in range(len(words))]
    return "" if name == "-.slice" else "".join(f"/{one}.slice" for one in nested)


def commands(unit: str, known: LoadedUnit | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a person would type for the same, and to go back; as for an enabled unit where nothing is known of it."""
    how = "disable" if known is None else _how(known.file_state, known.fragment)
    if how == "stop":
        return ("systemctl", "stop", unit), ("systemctl", "start", unit)
    if how == "mask":  # unmask knows no --now
        return ("systemctl", "mask", "--now", unit), ("systemctl", "unmask", unit)
    return ("systemctl", "disable", "--now", unit), ("systemctl", "enable", "--now", unit)


def _how(file_state: str, fragment: str) -> str:
    if file_state in _CAN_DISABLE:
        return "disable"
    is_in_the_way = fragment.startswith(_OWN_FILES)
    return "mask" if file_state in _HAS_TO_BE_MASKED and not is_in_the_way else "stop"


def dependents(known: LoadedUnit) -> tuple[str, ...]:
    """Running units that systemd stops when it stops this one, those that depend on them included; a target is only a
    name for others. At most MOST_DEPENDENTS. Raises ActionFailedError."""
    met: set[str] = {known.name}
    found: list[str] = []
    pending = list(known.stops_with)
    while pending and len(found) < MOST_DEPENDENTS and len(met) < 4 * MOST_DEPENDENTS:
        name = pending.pop(0)
        if name in met:
            continue
        met.add(name)
        other = asked(name)
        if other.exists and other.is_running:
            pending += other.stops_with
            found += [] if name.endswith(".target") else [name]
    return tuple(found)


def asked(unit: str) -> LoadedUnit:
    """Raises ActionFailedError."""
    try:
        return manager().unit(unit)
    except UserError as error:
        raise ActionFailedError(error.what, error.fix) from error


ACTIONS = (DisableUnit,)
