"""Counters of the hardware on their way in: figures into the batch, what cannot be read into the missing sources, and
the events that only a change of state tells (a link that went down or came back, a driver that does not answer)."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, ClassVar

from zombiescope.base import python as _python
from zombiescope.kernel import cpufreq, ebs_nvme, edac, infiniband, thermal_throttle
from zombiescope.kernel.infiniband import ACTIVE
from zombiescope.kernel.infiniband_counters import FULL, is_rare
from zombiescope.kernel.procfile import at, names_in
from zombiescope.recorder.hardware_reader import EVERY_S, MACHINE, OFF_WORD
from zombiescope.recorder.piped_process import MEGABYTE, PipedProcess, Restarts
from zombiescope.recorder.sources import Sources
from zombiescope.store.event import Event

Put = Callable[[str, Iterable[tuple[str, str | None, int | None, bool]]], None]

REFUSED = "RDMA counters"
READER = "counters of the hardware"
MOST_NAMED = 8
STOOD_STILL_US = 60_000_000
STATES = {1: "down", 2: "initialising", 3: "armed", 4: "active", 5: "deferring"}
REFUSAL = "driver_refusal"
"""The kind of the event by which a driver's log line tells that its firmware refused a command."""
COMMANDS = frozenset({"ACCESS_REG", "QUERY_VPORT_COUNTER", "QUERY_Q_COUNTER", "QUERY_CONG_STATISTICS"})
"""Those of mlx5 by which its counters are read."""


class Hardware:
    """`put` is where figures go: (source, figures)."""

    def __init__(self, sources: Sources, put: Put, root: str = "/") -> None:
        self._sources = sources
        self._put = put
        self.process = HardwareProcess(root)
        self.tell: Callable[[Event], None] = lambda _: None
        self._links: dict[str, int] = {}
        self._full: dict[str, list[str]] = {}
        self._refused: dict[str, str] = {}
        self._values: dict[tuple[str, str, str], tuple[int, int]] = {}
        """Of counters that stand still while all is well: the last value, and when it moved."""
        self._suspects: list[str] = []

    def tick(self, wall_us: int, now_s: float) -> None:
        for said in self.process.turn(now_s):
            self._take(said, wall_us)
        hanging = self.process.stuck(now_s)
        if hanging is not None:
            self._hangs(*hanging, wall_us)

    def _take(self, said: dict[str, Any], wall_us: int) -> None:
        of, figures = str(said.get("of")), said.get("figures") or ()
        for source, name, key, value, is_gauge in figures:
            self._put(source, ((name, key, value, is_gauge),))
            if is_rare(source, name):
                self._moved(source, name, key, value, wall_us)
            if source == "cpufreq":
                self._slowed(name, key, value)
            if (source, name) == ("infiniband_link", "state"):
                self._link(key, value, wall_us)
        self._note_full(of, [str(name) for name in said.get("full") or ()], wall_us)
        if said.get("off"):
            self._refuse(of, str(said["off"])[:100], wall_us)

    def _moved(self, source: str, name: str, key: str, value: int, wall_us: int) -> None:
        """A counter that stood still for a while and rose is worth a look of the doctor."""
        before = self._values.get((source, name, key))
        rose = before is not None and value > before[0]
        if before is not None and rose and wall_us - before[1] > STOOD_STILL_US and len(self._suspects) < MOST_NAMED:
            self._suspects.append(f"{source} {key}")
        self._values[source, name, key] = value, wall_us if rose or before is None else before[1]

    def _slowed(self, name: str, key: str, value: int) -> None:
        """A processor that begins to be cooled, and a limit that fell, are worth a look as well."""
        before, _ = self._values.get(("cpufreq", name, key), (value, 0))
        fell = name == "limit" and value < before
        if (fell or (name == "cooled" and value > before)) and len(self._suspects) < MOST_NAMED:
            self._suspects.append(f"cpufreq {key}")
        self._values["cpufreq", name, key] = value, 0

    def take_suspects(self) -> list[str]:
        suspects, self._suspects = self._suspects, []
        return suspects

    def _link(self, port: str, state: int, wall_us: int) -> None:
        """A note: a switch that is rebooted takes its links down once. Diagnosis judges how often, and for how long."""
        before = self._links.get(port)
        self._links[port] = state
        if before is None or (before == ACTIVE) == (state == ACTIVE):
            return
        kind = "link_up" if state == ACTIVE else "link_down"
        text = f"the RDMA port {port} is {STATES.get(state, state)}, it was {STATES.get(before, before)}"
        self.tell(Event(wall_us, kind, "infiniband", "info", text, {"interface": port, "state": state}))

    def _note_full(self, of: str, names: list[str], wall_us: int) -> None:
        if names:
            self._full[of] = names
        else:
            self._full.pop(of, None)
        listed = [f"{port} {name}" for port, full in self._full.items() for name in full]
        if not listed:
            self._sources.has(FULL, wall_us)
            return
        why = f"{', '.join(listed[:MOST_NAMED])}{' ..' if len(listed) > MOST_NAMED else ''}: full, they count no more"
        self._sources.lacks(FULL, why, "reset them: perfquery -R (infiniband-diags)", wall_us)

    def refused(self, event: Event) -> None:
        """A driver logged that it refuses what was asked of it: its card is not asked again."""
        card = str(event.fields.get("bus") or "")
        reads = event.fields.get("command") in COMMANDS
        if event.kind == REFUSAL and reads and card and self.process.switch_off(card):
            self._refuse(card, "its driver logs an error at each reading", event.at_us)

    def _refuse(self, what: str, why: str, wall_us: int) -> None:
        """Said once; what is off stays off while this recorder runs."""
        self._refused[what] = why
        named = [f"{what} is not read any more ({why})" for what, why in list(self._refused.items())[:MOST_NAMED]]
        grant = "a driver and firmware that allow it; tried again when the recorder starts again"
        self._sources.lacks(REFUSED, "; ".join(named), grant, wall_us)

    def _hangs(self, what: str, seconds: float, wall_us: int) -> None:
        text = f"the driver of {what} has not answered for {seconds:.0f} s: its counters are not read any more"
        self._refuse(what, f"no answer for {seconds:.0f} s", wall_us)
        fields = {"interface": what, "seconds": round(seconds)}
        self.tell(Event(wall_us, "driver_unresponsive", "recorder", "warning", text, fields))

    def close(self) -> None:
        self.process.stop()


# --- its process ------------------------------------------------------------------------------------------------------
# The reader of hardware counters as the recorder sees it: started where there is hardware, listened to, never waited
# for.
#
# One that has said what it asks and then says nothing for STUCK_S hangs in that driver. It is killed, which may do
# nothing for as long as the driver hangs; no second one is started before it is gone, and the next one leaves that port
# alone. What else may happen to it is told by its pulse (piped_process.py).

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
