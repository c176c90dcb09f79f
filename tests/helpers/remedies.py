"""For tests of `fix`: an action on a real file, a systemd that is none, and a process that is killed between two steps.

python -m tests.helpers.remedies [--unit UNIT] DIRECTORY WHERE STEP
    applies a plan of three steps, or that which ends a unit, and kills itself there
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from zombiescope.fix import actions, apply, log, unit_steps
from zombiescope.fix.actions import unit
from zombiescope.fix.step import ActionFailedError, Step
from zombiescope.model.plans.plan import Plan
from zombiescope.node.systemd.manager import LoadedUnit

TARGET = "incident:test"
STEPS = ("one", "two", "three")


@dataclass(frozen=True, slots=True)
class WriteFile:
    """A real change of a real file, which can be looked at from another process."""

    path: str
    kind: ClassVar[str] = "test.file"

    def arguments(self) -> dict[str, Any]:
        return {"path": self.path}

    def command(self) -> tuple[str, ...] | None:
        return ("touch", self.path)

    def touches(self) -> tuple[str, ...]:
        return (self.path,)

    def before(self) -> dict[str, Any]:
        return {"text": Path(self.path).read_text()}

    def is_applied(self) -> bool:
        return Path(self.path).read_text() == "new"

    def apply(self) -> None:
        try:
            Path(self.path).write_text("new")
        except OSError as error:
            raise ActionFailedError(f"{self.path}: {error.strerror}") from None

    def undo(self, before: Mapping[str, Any]) -> None:
        Path(self.path).write_text(before["text"])


def plan_of(directory: Path) -> Plan:
    """Three steps, each with a file of its own that says "old"."""
    actions.kinds()["test.file"] = WriteFile
    steps = []
    for name in STEPS:
        path = directory / name
        if not path.exists():
            path.write_text(f"old {name}")
        steps.append(Step(name, "change", f"write {name}", action=WriteFile(str(path))))
    return Plan(TARGET, "three files", tuple(steps))


def yes(_: object) -> bool:
    return True


def texts(directory: Path) -> list[str]:
    return [(directory / name).read_text() for name in STEPS]


def main(directory: Path, where: str, step: str, unit_name: str | None = None) -> None:
    """With a unit: of the systemd that $DBUS_SYSTEM_BUS_ADDRESS names, and the step is of the unit `step`."""

    def kill(at: str, name: str) -> None:
        if (at, name.partition("unit.disable:")[2] or name) == (where, step):
            os.kill(os.getpid(), signal.SIGKILL)

    apply.STOP_POINTS.append(kill)
    made = plan_of(directory)
    if unit_name is not None:
        made = Plan(f"test:{unit_name}", "end it", tuple(unit_steps.steps(unit_name)))
    with log.opened(directory / "log") as held:
        apply.apply(made, held, yes)


# --- a systemd that is none ------------------------------------------------------------------------------------------


@dataclass
class StandInManager:
    """What a real systemd does with files and states, as far as steps ask for it. tests/node/test_fix.py has the real
    one; this is for what a test cannot make it do: refuse in the middle, forget a unit, be changed in between."""

    units: dict[str, LoadedUnit] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    refuses: dict[str, Exception] = field(default_factory=dict)
    comes_back: bool = False

    def add(self, name: str, **values: Any) -> LoadedUnit:
        blank = LoadedUnit(name, "loaded", "active", "running", "enabled", f"/lib/systemd/system/{name}", (), (), "ab",
                           f"/system.slice/{name}", 7, 4711, 5, False)  # fmt: skip
        self.units[name] = replace(blank, **values)
        return self.units[name]

    def unit(self, name: str) -> LoadedUnit:
        self._called("unit", name)
        gone = LoadedUnit(name, "not-found", "inactive", "dead", "", "", (), (), "", "", None, None, None, False)
        return self.units.get(name, gone)

    def stop(self, name: str) -> LoadedUnit:
        self._called("stop", name)
        if not self.comes_back:
            self._set(name, active_state="inactive", has_job=False)
        return self.units[name]

    def start(self, name: str) -> None:
        self._called("start", name)
        self._set(name, active_state="active")

    def disable(self, names: list[str]) -> None:
        self._called("disable", names[0])
        self._set(names[0], file_state="disabled")

    def enable(self, names: list[str], *, runtime: bool = False) -> None:
        self._called("enable", names[0])
        self._set(names[0], file_state="enabled-runtime" if runtime else "enabled")

    def mask(self, names: list[str]) -> None:
        self._called("mask", names[0])
        self._set(names[0], file_state="masked")

    def unmask(self, names: list[str]) -> None:
        self._called("unmask", names[0])
        self._set(names[0], file_state="static")

    def reload(self) -> None:
        self._called("reload", "")

    def reset_failed(self, name: str) -> None:
        self._called("reset_failed", name)

    def changes(self) -> list[str]:
        return [call for call in self.calls if not call.startswith("unit ")]

    def _called(self, what: str, name: str) -> None:
        self.calls.append(f"{what} {name}".strip())
        if what in self.refuses:
            raise self.refuses[what]

    def _set(self, name: str, **values: Any) -> None:
        self.units[name] = replace(self.units[name], **values)


@contextmanager
def systemd() -> Iterator[StandInManager]:
    made, real = StandInManager(), unit.manager
    unit.manager = lambda: made  # type: ignore[assignment, return-value]
    try:
        yield made
    finally:
        unit.manager = real


if __name__ == "__main__":
    words = sys.argv[1:]
    named = words[1] if words[0] == "--unit" else None
    place, point, which = words[2:] if named else words
    main(Path(place), point, which, named)
