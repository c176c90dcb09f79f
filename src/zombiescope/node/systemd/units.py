"""What is known of each service of systemd, and what of it is news.

Fed with the properties of the interfaces org.freedesktop.systemd1.Unit and .Service as they arrive; no I/O
here.

A crash loop shows oddly in the signals. Each round the unit is failed for a millisecond, then activating
with SubState auto-restart for RestartSec, then NRestarts rises, then it is inactive for a moment and active
again. So a state is reported only when it has held for half a second, auto-restart is not reported at all, and a
rise of NRestarts, which nothing else causes, is what makes a unit_restart. `systemctl --failed` never lists
such a unit.

NRestarts goes back to 0 when somebody starts the unit or runs `systemctl reset-failed`. systemd before 235
does not have it: there, each coming back from auto-restart counts as one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

UNIT_PATH = "/org/freedesktop/systemd1/unit/"
SERVICE_INTERFACE = "org.freedesktop.systemd1.Service"
UNIT_INTERFACE = "org.freedesktop.systemd1.Unit"

_SETTLE_NS = 500_000_000
_TELL_EVERY_NS = 1_000_000_000
_SERVICES_MAX = 20_000
_JOB_EVERY_NS = 60 * 1_000_000_000
_JOBS_MAX = 1_000
_BAD_JOBS = frozenset({"failed", "timeout", "dependency", "assert", "unsupported"})
_EXIT_CODES = {1: "exited", 2: "killed", 3: "dumped core"}  # CLD_EXITED, CLD_KILLED, CLD_DUMPED

_PROPERTIES = {
    "ActiveState": "active_state",
    "SubState": "sub_state",
    "Result": "result",
    "NRestarts": "n_restarts",
    "ExecMainStatus": "exec_main_status",
    "ExecMainCode": "exec_main_code",
    "ExecMainPID": "exec_main_pid",
    "InvocationID": "invocation_id",
    "ControlGroup": "control_group",
}


@dataclass(frozen=True, slots=True)
class UnitState:
    """A service as systemd last described it; None is not described yet (or not known to this systemd)."""

    unit: str
    active_state: str = "inactive"
    sub_state: str = "dead"
    result: str | None = None
    n_restarts: int | None = None
    exec_main_status: int | None = None
    exec_main_code: int | None = None
    exec_main_pid: int | None = None
    invocation_id: str | None = None
    control_group: str | None = None


@dataclass(frozen=True, slots=True)
class UnitEvent:
    """kind: unit_restart, unit_failed or unit_state. `at_ns` is CLOCK_MONOTONIC."""

    at_ns: int
    kind: str
    severity: str
    unit: str
    text: str
    fields: dict[str, str | int | None]


@dataclass(slots=True)
class _Service:
    state: UnitState
    told_state: str | None = None
    told_invocation: str | None = None
    changed_ns: int | None = None  # when the state began to differ from the one that was reported
    moved: bool = False  # the state was another one in between, even if it is back by now
    restarted: bool = False  # since the state was last reported
    untold_restarts: int = 0
    restart_state: UnitState | None = None
    restart_ns: int = 0
    told_restart_ns: int = -_TELL_EVERY_NS
    waits_for_restart: bool = False  # only followed where there is no NRestarts


def unit_name(path: str) -> str:
    """crash_2dloop_2eservice -> crash-loop.service"""
    first, *rest = path.rpartition("/")[2].split("_")
    return first + "".join(chr(int(piece[:2], 16)) + piece[2:] for piece in rest if piece)


def group_of_slice(slice_name: str, unit: str) -> str:
    """The control group of a unit that has none just now: a-b.slice is inside a.slice."""
    parts = slice_name.removesuffix(".slice").split("-")
    if slice_name == "-.slice":
        return f"/{unit}"
    slices = ["-".join(parts[: depth + 1]) + ".slice" for depth in range(len(parts))]
    return "/" + "/".join([*slices, unit])


class UnitBook:
    """The services, and the events that are still to be reported."""

    def __init__(self) -> None:
        self._services: dict[str, _Service] = {}
        self._untold: set[str] = set()
        self._jobs_told_ns: dict[str, int] = {}
        self._filled = False
        self.overflow = 0

    def snapshot(self) -> list[UnitState]:
        return [service.state for service in list(self._services.values())]

    def __contains__(self, unit: str) -> bool:
        return unit in self._services

    def listed(self, unit: str, active_state: str, sub_state: str, now_ns: int) -> list[UnitEvent]:
        """A row of ListUnits. In the first list a unit's state is where we begin, not news. One that only a later list
        shows was loaded in between, and its UnitNew is late or was not heard."""
        if self._filled:
            self.appeared(unit)
        if unit not in self._services or not self._filled:
            service = self._services.get(unit) or self._add(unit, None)
            if service is not None:
                service.state = replace(service.state, active_state=active_state, sub_state=sub_state)
                service.told_state = active_state
            return []
        return self.changed(unit, {"ActiveState": active_state, "SubState": sub_state}, now_ns)

    def appeared(self, unit: str) -> None:
        """UnitNew: systemd has loaded it just now, so it has not been restarted yet.

        Before the first list it means nothing of the kind: systemd announces every unit as new to the first subscriber
        when it first changes, a crash loop of 138 rounds too.
        """
        if unit not in self._services:
            self._add(unit, 0 if self._filled else None)

    def removed(self, unit: str, now_ns: int) -> list[UnitEvent]:
        """UnitRemoved: what is still untold of it, and then it is forgotten."""
        service = self._services.pop(unit, None)
        if service is None:
            return []
        self._untold.discard(unit)
        events = self._tell_state(service, now_ns) if service.changed_ns is not None else []
        return [*self._tell_restarts(service, now_ns), *events]

    def list_ended(self) -> None:
        """All rows of a list were read: a unit that is not known now was not loaded now."""
        self._filled = True

    def keep_only(self, units: set[str]) -> None:
        """After a reconnect: forget those that were removed while nobody listened."""
        for unit in [unit for unit in self._services if unit not in units]:
            del self._services[unit]
            self._untold.discard(unit)

    def changed(self, unit: str, properties: Mapping[str, Any], now_ns: int) -> list[UnitEvent]:
        """New values of any of the properties, from a signal or an answer; the events that cannot wait. A
        unit that is not known was removed: an answer about it may come later than its UnitRemoved."""
        service = self._services.get(unit)
        if service is None:
            return []
        old = service.state
        service.state = new = replace(old, **_wanted(properties, old))
        self._count_restarts(service, old, now_ns)
        moved = new.active_state != service.told_state
        service.moved = service.moved or moved
        if service.changed_ns is None and (moved or new.invocation_id != service.told_invocation):
            service.changed_ns = now_ns
        if service.changed_ns is not None or service.untold_restarts:
            self._untold.add(unit)
        if service.untold_restarts and now_ns - service.told_restart_ns >= _TELL_EVERY_NS:
            return self._tell_restarts(service, now_ns)
        return []

    def job_removed(self, unit: str, result: str, now_ns: int) -> list[UnitEvent]:
        """A job of any unit that ended badly; of one that is tried over and over, once a minute."""
        if result not in _BAD_JOBS or now_ns - self._jobs_told_ns.get(unit, -_JOB_EVERY_NS) < _JOB_EVERY_NS:
            return []
        if len(self._jobs_told_ns) >= _JOBS_MAX:
            self._jobs_told_ns.clear()
        self._jobs_told_ns[unit] = now_ns
        text = f"{unit}: its job ended with {result}"
        fields: dict[str, str | int | None] = {"unit": unit, "job_result": result}
        return [UnitEvent(now_ns, "unit_state", "warning", unit, text, fields)]

    def due(self, now_ns: int) -> list[UnitEvent]:
        """The states that have settled, and the restarts that were held back."""
        events: list[UnitEvent] = []
        for unit in list(self._untold):
            service = self._services[unit]
            if service.untold_restarts and now_ns - service.told_restart_ns >= _TELL_EVERY_NS:
                events += self._tell_restarts(service, now_ns)
            if service.changed_ns is not None and now_ns - service.changed_ns >= _SETTLE_NS:
                events += self._tell_state(service, now_ns)
            if service.changed_ns is None and not service.untold_restarts:
                self._untold.discard(unit)
        return events

    def next_due_ns(self) -> int | None:
        untold = [self._services[unit] for unit in self._untold]
        times = [service.changed_ns + _SETTLE_NS for service in untold if service.changed_ns is not None]
        times += [service.told_restart_ns + _TELL_EVERY_NS for service in untold if service.untold_restarts]
        return min(times, default=None)

    def restarting(self) -> list[str]:
        """Services that systemd is bringing up at this moment."""
        return [unit for unit, service in self._services.items() if service.state.active_state == "activating"]

    def _add(self, unit: str, n_restarts: int | None) -> _Service | None:
        if len(self._services) >= _SERVICES_MAX:
            self.overflow += 1
            return None
        service = self._services[unit] = _Service(UnitState(unit, n_restarts=n_restarts), told_state="inactive")
        return service

    def _count_restarts(self, service: _Service, old: UnitState, now_ns: int) -> None:
        rise = _rise(old.n_restarts, service.state.n_restarts)
        if service.state.n_restarts is None:
            rise = self._came_back(service)
        if rise:
            service.restarted = True
            service.untold_restarts += rise
            service.restart_state, service.restart_ns = service.state, now_ns

    def _came_back(self, service: _Service) -> int:
        state = service.state
        if state.sub_state == "auto-restart":
            service.waits_for_restart = True
            return 0
        if service.waits_for_restart and state.active_state in ("active", "activating"):
            service.waits_for_restart = False
            return 1
        return 0

    def _tell_restarts(self, service: _Service, now_ns: int) -> list[UnitEvent]:
        state, count = service.restart_state, service.untold_restarts
        if state is None or not count:
            return []
        service.untold_restarts, service.told_restart_ns = 0, now_ns
        times = "restarted" if count == 1 else f"restarted {count} times"
        so_far = "" if state.n_restarts is None else f", {state.n_restarts} so far"
        text = f"{state.unit} {times}{so_far}: {_ending(state)}"
        fields = _fields(replace(state, control_group=service.state.control_group or state.control_group))
        fields["delta"] = count
        return [UnitEvent(service.restart_ns, "unit_restart", "warning", state.unit, text, fields)]

    def _tell_state(self, service: _Service, now_ns: int) -> list[UnitEvent]:
        state, at_ns = service.state, service.changed_ns if service.changed_ns is not None else now_ns
        service.changed_ns = None
        if state.sub_state.endswith("auto-restart"):  # also failed-before-auto-restart of systemd 254
            return []
        before, told_invocation, restarted = service.told_state, service.told_invocation, service.restarted
        new_run = state.invocation_id != told_invocation and (told_invocation is not None or service.moved)
        news = before != state.active_state or ((new_run or service.moved) and not restarted)
        service.told_state, service.told_invocation = state.active_state, state.invocation_id
        service.restarted = service.moved = False
        if not news:
            return []
        if state.active_state == "failed":
            return [_event(at_ns, "unit_failed", "warning", state, f"failed: {_ending(state)}", before)]
        if restarted:
            return []
        return [_event(at_ns, "unit_state", "info", state, _told(before, state, new_run), before)]


def _wanted(properties: Mapping[str, Any], old: UnitState) -> dict[str, Any]:
    values = {ours: properties[theirs] for theirs, ours in _PROPERTIES.items() if theirs in properties}
    if isinstance(values.get("invocation_id"), bytes):
        values["invocation_id"] = values["invocation_id"].hex() or None
    if "control_group" in values and not values["control_group"]:
        # A unit between two runs has no group; the one that it had is where its zombies are.
        slice_name = properties.get("Slice")
        derived = group_of_slice(slice_name, old.unit) if isinstance(slice_name, str) and slice_name else None
        values["control_group"] = old.control_group or derived
    if _is_late(old.n_restarts, values.get("n_restarts")):
        del values["n_restarts"]
    return values


def _is_late(known: int | None, said: int | None) -> bool:
    """Answers and signals overtake each other while a unit restarts ten times a second: what was asked for at 69
    restarts comes after the signal of the 70th. A counter that somebody set back begins at nothing."""
    return known is not None and said is not None and said < known < 2 * said


def _rise(old: int | None, new: int | None) -> int:
    """How often it was restarted between two values of a counter that may have been reset in between."""
    if old is None or new is None or new == old:
        return 0
    return new - old if new > old else new


def _ending(state: UnitState) -> str:
    how = _EXIT_CODES.get(state.exec_main_code or 0)
    if how is None or state.exec_main_status is None:
        return state.result or "result not known"
    unit = "status" if state.exec_main_code == 1 else "signal"
    return f"{state.result or 'result not known'}, {how} with {unit} {state.exec_main_status}"


def _told(before: str | None, state: UnitState, new_run: bool) -> str:
    if state.active_state == "active" and before in ("active", "reloading"):
        return "restarted" if new_run else "reloaded"
    if before == state.active_state:
        return f"ran and ended: {_ending(state)}"
    if state.active_state == "active":
        return "started"
    words = {
        "inactive": f"stopped: {_ending(state)}",
        "activating": "is starting",
        "deactivating": "is stopping",
    }
    return words.get(state.active_state, f"is {state.active_state}")


def _event(at_ns: int, kind: str, severity: str, state: UnitState, what: str, before: str | None) -> UnitEvent:
    return UnitEvent(at_ns, kind, severity, state.unit, f"{state.unit} {what}", {**_fields(state), "before": before})


def _fields(state: UnitState) -> dict[str, str | int | None]:
    return {
        "unit": state.unit,
        "active_state": state.active_state,
        "sub_state": state.sub_state,
        "n_restarts": state.n_restarts,
        "result": state.result,
        "exec_main_status": state.exec_main_status,
        "exec_main_code": state.exec_main_code,
        "exec_main_pid": state.exec_main_pid,
        "invocation_id": state.invocation_id,
        "control_group": state.control_group,
    }
