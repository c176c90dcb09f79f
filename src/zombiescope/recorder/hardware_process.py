"""The reader of hardware counters as the recorder sees it: started where there is hardware, listened to, never waited
for.

One that has said what it asks and then says nothing for STUCK_S hangs in that driver. It is killed, which may do
nothing for as long as the driver hangs; no second one is started before it is gone, and the next one leaves that port
alone. What else may happen to it is told by its pulse (piped_process.py).
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import Any, ClassVar

from zombiescope.base import python as _python
from zombiescope.kernel import cpufreq, ebs_nvme, edac, infiniband, thermal_throttle
from zombiescope.kernel.procfile import at, names_in
from zombiescope.recorder.hardware_reader import EVERY_S, MACHINE, OFF_WORD
from zombiescope.recorder.piped_process import MEGABYTE, PipedProcess, Restarts

MODULE = "zombiescope.recorder.hardware_reader"
NAME = "hardware reader"
STUCK_S = 30.0
LOOK_EVERY_S = 60.0
FIRST_WAIT_S, MOST_WAIT_S = 1, 600
MOST_LINE = 1 << 20
END_S = 0.5


class HardwareProcess(PipedProcess):
    MEMORY_BYTES: ClassVar = 256 * MEGABYTE

    def __init__(self, root: str = "/", every_s: float = EVERY_S, module: str = MODULE) -> None:
        super().__init__(NAME)
        self._module = module
        self._root = root
        self._every_s = every_s
        self._restarts = Restarts(FIRST_WAIT_S, MOST_WAIT_S)
        self._asks: str | None = None
        self._told_s = 0.0
        self.off: set[str] = set()

    def turn(self, now_s: float) -> list[dict[str, Any]]:
        """What it told since the last turn; started when there is something to read. Raises OSError."""
        if self._pid is None:
            self._start_if_due(now_s)
            return []
        told = self._take(now_s)
        if self._reaped():
            self._restarts.hold(now_s)
        return told

    def stuck(self, now_s: float) -> tuple[str, float] | None:
        """What it asks, and for how long, once, when that is too long. It is killed then."""
        if self._pid is None or self._asks is None or self._is_killed or now_s - self._told_s < STUCK_S:
            return None
        self.off.add(self._asks)
        self._hangs(self._doing(now_s - self._told_s))
        self._kill()
        return self._asks, now_s - self._told_s

    def switch_off(self, card: str) -> bool:
        """A card, by its address, that is not asked any more. False when that is no news."""
        if card in self.off:
            return False
        self.off.add(card)
        if self._pid is not None:
            with suppress(OSError):
                os.write(self._to, f"{OFF_WORD} {card}\n".encode("ascii", "replace"))
        return True

    # --- its life -----------------------------------------------------------------------------------------------------

    def _start_if_due(self, now_s: float) -> None:
        if not self._restarts.is_due(now_s):
            return
        self._restarts.next = now_s + LOOK_EVERY_S
        if not has_hardware(self._root):
            self.pulse.is_off("this machine has no hardware that it reads")
            return
        self._spawn(_python.module(self._module, self._root, str(self._every_s), *sorted(self.off)))
        self._asks, self._told_s = None, now_s

    def _take(self, now_s: float) -> list[dict[str, Any]]:
        if self._hear(MOST_LINE):
            self._told_s = now_s
        return [said for line in self._lines() if (said := self._understood(line)) is not None]

    def _understood(self, line: bytes) -> dict[str, Any] | None:
        said = self._message(line)
        return None if said is None else self._noted(said)

    def _noted(self, said: dict[str, Any]) -> dict[str, Any] | None:
        if "asks" in said:
            self._asks = str(said["asks"])
            return None
        if "cpu_us" in said:  # the end of a round
            self._cpu_us, self._asks = int(said["cpu_us"]), None
            self._restarts.worked()
            self._worked()
            return None
        return said

    def _doing(self, silent_s: float) -> str:
        if self._asks is None or self._asks == MACHINE:
            return super()._doing(silent_s)
        return f"has been waiting for the driver of {self._asks} for {silent_s:.0f} s"

    def _forget(self, cpu_us: int) -> None:
        super()._forget(cpu_us)
        self._asks = None

    def stop(self) -> None:
        """Ends it. One that hangs in a driver is left behind: it ends when the driver lets go of it."""
        if self._pid is not None:
            self._signal(signal.SIGKILL)
            self._gone_within(END_S)


def has_hardware(root: str = "/") -> bool:
    """Whether this machine has anything that it reads: some directories are listed."""
    throttling = at(root, f"{thermal_throttle.DIRECTORY}/cpu0/thermal_throttle")
    modules = [name for name in names_in(at(root, edac.DIRECTORY)) or () if name.startswith("mc")]
    return bool(
        names_in(at(root, infiniband.CLASS))
        or names_in(throttling)
        or modules
        or cpufreq.is_there(root)
        or ebs_nvme.volumes(root)
    )
