"""A setting of the kernel: one word into a file below /proc/sys or /sys. It lasts until the next boot."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from zombiescope.fix.step import ActionFailedError, bounded

_PLACES = ("/proc/sys/", "/proc/irq/", "/sys/")
_LONGEST = 4096


@dataclass(frozen=True, slots=True)
class WriteSetting:
    path: str
    value: str
    kind: ClassVar[str] = "setting"

    def __post_init__(self) -> None:
        plain = isinstance(self.path, str) and posixpath.normpath(self.path) == self.path
        if not plain or not self.path.startswith(_PLACES) or not self.path.isprintable():
            raise ValueError(f"{self.path!r} is not a kernel setting")
        if not isinstance(self.value, str) or not self.value.isprintable() or not 0 < len(self.value) <= _LONGEST:
            raise ValueError(f"{self.value!r} cannot be written to a setting")

    def arguments(self) -> dict[str, Any]:
        return {"path": self.path, "value": self.value}

    def command(self) -> tuple[str, ...] | None:
        if self.path.startswith("/proc/sys/"):
            return ("sysctl", "-w", f"{self.path.removeprefix('/proc/sys/').replace('/', '.')}={self.value}")
        return None

    def touches(self) -> tuple[str, ...]:
        return bounded([f"{self.path}: {self._read()} becomes {self.value}, until the next boot"])

    def before(self) -> dict[str, Any]:
        return {"value": self._read()}

    def is_applied(self) -> bool:
        return self._read().split() == self.value.split()

    def apply(self) -> None:
        self._write(self.value)

    def undo(self, before: Mapping[str, Any]) -> None:
        """Not where somebody has set another value since: that is his."""
        if not self.is_applied():
            if self._read().split() == str(before.get("value")).split():
                return
            raise ActionFailedError(f"{self.path} says {self._read()} by now, which is not ours; it is left alone")
        self._write(str(before.get("value")))

    def _read(self) -> str:
        """Of a list of choices ("always [madvise] never") the one that is chosen."""
        try:
            text = Path(self.path).read_text(errors="replace")[:_LONGEST].strip()
        except OSError as error:
            raise ActionFailedError(f"{self.path}: {error.strerror}") from None
        chosen = [word[1:-1] for word in text.split() if word[0] == "[" and word[-1] == "]"]
        return chosen[0] if len(chosen) == 1 else text

    def _write(self, text: str) -> None:
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(descriptor, text.encode() + b"\n")
            finally:
                os.close(descriptor)
        except OSError as error:
            raise ActionFailedError(f"{self.path}: {error.strerror}", "run it as root") from None


ACTIONS = (WriteSetting,)
