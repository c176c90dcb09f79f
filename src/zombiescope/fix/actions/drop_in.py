"""A unit that must stay is started less often: a drop-in with a start limit, and without restarts after its usual end.

    /etc/systemd/system/UNIT.d/90-zombiescope-fix.conf
        [Unit]     StartLimitIntervalSec=3600, StartLimitBurst=5     five starts an hour, then it is failed
        [Service]  RestartPreventExitStatus=N                        where it keeps ending with the status N

Written with the house's safe functions and read by systemd at once (daemon-reload). A file of that name which somebody
else changed is neither overwritten nor removed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from zombiescope.base import safe_files
from zombiescope.base.errors import UserError
from zombiescope.fix.actions import unit as units
from zombiescope.fix.step import ActionFailedError, bounded

UNIT_FILES = Path("/etc/systemd/system")
NAME = "90-zombiescope-fix.conf"
STARTS, INTERVAL_S = 5, 3600


@dataclass(frozen=True, slots=True)
class LimitRestarts:
    unit: str
    status: int | None = None
    """The exit status after which it is not started again."""
    kind: ClassVar[str] = "unit.limit"

    def __post_init__(self) -> None:
        units.DisableUnit(self.unit)  # the same rules for its name
        if not self.unit.endswith(".service") or not (self.status is None or 1 <= int(self.status) <= 255):
            raise ValueError(f"{self.unit!r} with status {self.status!r} cannot be limited")

    @property
    def path(self) -> Path:
        return UNIT_FILES / f"{self.unit}.d" / NAME

    @property
    def text(self) -> str:
        limit = f"[Unit]\nStartLimitIntervalSec={INTERVAL_S}\nStartLimitBurst={STARTS}\n"
        return limit + (f"[Service]\nRestartPreventExitStatus={self.status}\n" if self.status else "")

    def arguments(self) -> dict[str, Any]:
        return {"unit": self.unit, "status": self.status}

    def command(self) -> tuple[str, ...] | None:
        return None

    def touches(self) -> tuple[str, ...]:
        known = units.asked(self.unit)
        if not known.exists:
            raise ActionFailedError(f"systemd knows no {self.unit} (any more)")
        after = f"; not at all after status {self.status}" if self.status else ""
        return bounded([f"{self.path}: new", f"{self.unit} is started {STARTS} times an hour at most{after}"])

    def before(self) -> dict[str, Any]:
        return {"text": self._read(), "is_running": units.asked(self.unit).is_running}

    def is_applied(self) -> bool:
        return self._read() == self.text

    def apply(self) -> None:
        found = self._read()
        if found not in (None, self.text):
            raise ActionFailedError(f"{self.path} is there already and is not ours", "look at it, and remove it")
        try:
            with suppress(FileExistsError):
                self.path.parent.mkdir(mode=0o755)
            safe_files.replace(self.path, self.text.encode(), sync=True)
        except OSError as error:
            raise ActionFailedError(f"{self.path}: {error.strerror}") from None
        _reload()

    def undo(self, before: Mapping[str, Any]) -> None:
        found = self._read()
        if found not in (None, self.text):
            raise ActionFailedError(f"{self.path} was changed by another program since, and is left alone")
        try:
            safe_files.remove(self.path)
            with suppress(OSError):  # others have drop-ins there
                self.path.parent.rmdir()
        except OSError as error:
            raise ActionFailedError(f"{self.path}: {error.strerror}") from None
        _reload()
        self._start_again(bool(before.get("is_running")))

    def _start_again(self, ran: bool) -> None:
        """It ended because of the limit; a unit that has reached one needs a pardon first."""
        known = units.asked(self.unit)
        if ran and known.exists and not known.is_running:
            try:
                units.manager().reset_failed(self.unit)
                units.manager().start(self.unit)
            except UserError as error:
                raise ActionFailedError(error.what, error.fix) from error

    def _read(self) -> str | None:
        try:
            with os.fdopen(safe_files.open_to_read(self.path), "rb") as file:
                return file.read(65_536).decode("utf-8", "replace")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ActionFailedError(f"{self.path}: {error.strerror}") from None


def _reload() -> None:
    try:
        units.manager().reload()
    except UserError as error:
        raise ActionFailedError(error.what, error.fix) from error


ACTIONS = (LimitRestarts,)
