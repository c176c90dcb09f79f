"""GPUs in the recording: rows that the reader's process sends, events of what happens to them, and when it is silent.

Once a second its pipe is read (gpu_process.py); nothing here calls the driver. Where no driver is loaded nothing is
started and nothing is missing; once a minute is looked whether that is still so. A driver that cannot be asked, or does
not answer, is a gap of the source `gpu`.

Every segment says the GPUs and the living processes on them again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from zombiescope.base.severity import Severity
from zombiescope.kernel import gpu_driver
from zombiescope.kernel import nvml_codes as codes
from zombiescope.recorder.gpu_process import GpuReaderProcess, Silence
from zombiescope.recorder.sources import Sources
from zombiescope.store import gpu_rules, schema
from zombiescope.store.batch import Batch
from zombiescope.store.event import Event
from zombiescope.store.gpu_rules import SLOWDOWN_GAUGE, clock_text, is_cool, is_low, temperature_text

SOURCE = "gpu"
LOOK_US = 60_000_000
FAULT_REST_US = 300_000_000
RELEASE_REST_US = 60_000_000
"""After this time it is looked whether the GPU was reset; that takes a second."""
OLDEST_US = 35_000_000
"""A row that is older than this is not found by readers, who look 40 s further."""
MOST_ROWS = 64 * 64
"""Of one table in one message."""
MOST_LIMITS = 64
_GRANTS = {
    codes.VERSION_MISMATCH: "reboot, or unload and load the nvidia modules: the driver was upgraded under them",
    codes.NO_PERMISSION: "access to /dev/nvidiactl and /dev/nvidia*",
    -1: "libnvidia-ml.so.1 where the linker finds it (in a container: NVIDIA_DRIVER_CAPABILITIES=utility)",
}
_TOLD = {
    "lost": ("gpu_lost", "critical", "has fallen off the bus: the driver cannot reach it any more"),
    "reset_required": ("gpu_reset_required", "critical", "does not work before it is reset"),
    "unreadable": ("gpu_unreadable", "warning", "answers no question any more"),
    "ok": ("gpu_back", "info", "answers again"),
}


class GpuTracker:
    def __init__(
        self,
        batch: Batch,
        sources: Sources,
        root: str = "/",
        library: str | None = None,
        lock_file: Path | None = None,
        gauge: Callable[[int, str, str, str | None, int], None] | None = None,
    ) -> None:
        self.process = GpuReaderProcess(library, lock_file=lock_file)
        self.driver = "stand-in" if library else gpu_driver.read(root)
        self._batch = batch
        self._sources = sources
        self._is_live = root == "/"
        self._look_us = 0
        self._gpus: dict[int, dict[str, Any]] = {}
        self._tenants: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self._silence: Silence | None = None
        self._has_stand_in = library is not None
        self._throttling = Throttling()
        self._gauge = gauge
        self._slowdown_c: dict[int, int] = {}
        self.runtime: Path | None = None
        """Where a request to let go of the driver is looked for."""
        self._released_until_us = 0

    # --- once a second ------------------------------------------------------------------------------------------------

    def second(self, now_us: int) -> list[Event]:
        """Rows that came go into the batch; gives what is worth an event. Raises OSError when it cannot be started."""
        if not self._is_live:
            return []
        self._follow_request(now_us)
        events = [event for message in self.process.listen(now_us) for event in self._take(message, now_us)]
        events += self._watch(now_us)
        if self.process.due(now_us) and self._has_driver(now_us) and not self.process.start(now_us):
            why = "the GPU driver does not answer a reader that a recorder before this one started"
            self._sources.lacks(SOURCE, why, "a driver that answers; often only a reboot helps", now_us)
        return events

    def _follow_request(self, now_us: int) -> None:
        """A request to let go of the driver, for a reset or another driver."""
        until_s = None if self.runtime is None else gpu_rules.until_s(self.runtime, now_us / 1e6)
        if until_s is None:
            if self._released_until_us:
                self._released_until_us = 0
                self._sources.has(SOURCE, now_us)
            return
        until_us = int(until_s * 1e6)
        if self.process.running and not self._released_until_us:
            self.process.let_go()
        self.process.rest(until_us)
        self._released_until_us = until_us
        why = f"released on request until {_clock(until_us)} UTC"
        self._sources.lacks(SOURCE, why, "nothing: it is read again after that", now_us)

    def _has_driver(self, now_us: int) -> bool:
        if not self._has_stand_in and now_us >= self._look_us:
            self._look_us = now_us + LOOK_US
            self.driver = gpu_driver.read()
            if self.driver is None:
                self._sources.has(SOURCE, now_us)
                self.process.pulse.is_off("no GPU driver is loaded")
        return self.driver is not None

    def _watch(self, now_us: int) -> Iterator[Event]:
        """Of a reader that ended or hangs the heartbeats tell; of a driver that does not answer it, this."""
        self.process.ended()
        silent = self.process.silence()
        if silent is not None:
            yield from self._hangs(silent, now_us)

    def _hangs(self, silent: Silence, now_us: int) -> Iterator[Event]:
        where = f" (it waits in {silent.place})" if silent.place else ""
        why = f"the GPU driver has not answered ({silent.asks}) since {_clock(silent.since_us)} UTC{where}"
        if self._silence is not None:
            return
        grant = "often only a reboot helps" if silent.state == "D" else "`nvidia-smi` says whether it answers others"
        self._sources.lacks(SOURCE, why, f"a driver that answers; {grant}", silent.since_us)
        self._silence = silent
        fields = {"since_us": silent.since_us, "state": silent.state, "waits_in": silent.place}
        yield Event(now_us, "gpu_driver_unresponsive", SOURCE, "critical", why, fields)

    # --- what it says -------------------------------------------------------------------------------------------------

    def _take(self, message: dict[str, Any], now_us: int) -> Iterator[Event]:
        if "fault" in message:
            self._fault(message, now_us)
            return
        if "released" in message:
            self.process.rest(now_us + RELEASE_REST_US)
            which = ", ".join(str(one) for one in message["released"])
            why = f"GPU {which} has to be reset and is not in use: the driver was released"
            self._sources.lacks(SOURCE, why, f"nvidia-smi --gpu-reset -i {which.replace(' ', '')}", now_us)
            return
        if self._silence is not None:
            lasted_s = (now_us - self._silence.since_us) / 1e6
            text = f"the GPU driver answers again, after {lasted_s:.0f} s"
            yield Event(now_us, "gpu_driver_answers", SOURCE, "info", text, {"seconds": round(lasted_s, 1)})
            self._silence = None
        self._sources.has(SOURCE, now_us)
        if message.get("lacks"):
            what = ", ".join(str(one) for one in message["lacks"])
            yield Event(now_us, "gpu_not_supported", SOURCE, "info", f"not recorded, as the driver has none: {what}")
        tables = message.get("tables") or {}
        gpus = _rows(tables, schema.GPUS)
        self._limits(message.get("slowdown_c"), now_us)
        self._links(message.get("links"), now_us)
        if message.get("first"):
            gpus += self._vanished(gpus, now_us)
            self._end_those_gone(_rows(tables, schema.GPU_PROCESSES), now_us)
        for row in gpus:
            yield from self._gpu(row)
        for row in _rows(tables, schema.GPU_SECONDS):
            yield from self._gpu_second(row, now_us)
        for row in _rows(tables, schema.GPU_PROCESSES):
            self._process(row)

    def _links(self, told: object, now_us: int) -> None:
        """How each GPU is connected: gpu_link, by its number."""
        for gpu, links in list(told.items())[:MOST_LIMITS] if isinstance(told, dict) else ():
            for name, value in links.items() if isinstance(links, dict) else ():
                if isinstance(value, int) and self._gauge is not None:
                    self._gauge(now_us, "gpu_link", str(name), str(gpu), value)

    def _fault(self, message: dict[str, Any], now_us: int) -> None:
        """It had nothing to ask. A driver that is not loaded is no fault."""
        self.process.rest(now_us + FAULT_REST_US)
        code = message.get("fault")
        if code == codes.DRIVER_NOT_LOADED:
            self._sources.has(SOURCE, now_us)
            return
        grant = _GRANTS.get(code if isinstance(code, int) else 0, "a driver that answers; `nvidia-smi` says more")
        self._sources.lacks(SOURCE, str(message.get("why") or code)[:200], grant, now_us)

    def _gpu(self, row: tuple[Any, ...]) -> Iterator[Event]:
        now = dict(zip(schema.GPUS.names, row, strict=True))
        before = self._gpus.get(now["gpu"])
        self._gpus[now["gpu"]] = now
        self._batch.add(schema.GPUS, row)
        state = now["state"]
        if state != (before["state"] if before else "ok") and state in _TOLD:
            kind, severity, text = _TOLD[state]
            fields = {name: now[name] for name in ("gpu", "uuid", "pci")}
            yield Event(now["time"], kind, SOURCE, severity, f"{self._label(now['gpu'])} {text}", fields)

    def _gpu_second(self, row: tuple[Any, ...], now_us: int) -> Iterator[Event]:
        if not now_us - OLDEST_US <= row[0] <= now_us + LOOK_US:
            return
        self._batch.add(schema.GPU_SECONDS, row)
        known = dict(zip(schema.GPU_SECONDS.names, row, strict=True))
        most_mhz = (self._gpus.get(known["gpu"]) or {}).get("clock_sm_max_mhz")
        found = self._throttling.second(known, self._slowdown_c.get(known["gpu"]), most_mhz)
        if found is not None:
            text = f"{self._label(found.gpu)} {found.text}"
            yield Event(row[0], "gpu_throttled", SOURCE, found.severity, text, found.fields)

    def _limits(self, said: object, now_us: int) -> None:
        limits = said.items() if isinstance(said, dict) else ()
        found = {int(gpu): limit for gpu, limit in limits if str(gpu).isdigit() and isinstance(limit, int)}
        if found and found != self._slowdown_c:
            self._slowdown_c = dict(list(found.items())[:MOST_LIMITS])
            self._write_limits(now_us)

    def _write_limits(self, now_us: int) -> None:
        if self._gauge is None:
            return
        for gpu, limit in self._slowdown_c.items():
            self._gauge(now_us, *SLOWDOWN_GAUGE, str(gpu), limit)

    def _vanished(self, found: list[tuple[Any, ...]], now_us: int) -> list[tuple[Any, ...]]:
        """A reader that was started anew has new numbers: GPUs that it does not know are lost, under a free one."""
        uuid = schema.GPUS.names.index("uuid")
        here = {row[uuid] for row in found}
        gone = [gpu for gpu in self._gpus.values() if gpu["uuid"] is not None and gpu["uuid"] not in here]
        taken = {row[1] for row in found}
        free = (number for number in count() if number not in taken)
        self._gpus = {number: gpu for number, gpu in self._gpus.items() if gpu["uuid"] in here}
        lost = [{**gpu, "time": now_us, "gpu": next(free), "state": "lost"} for gpu in gone]
        return [tuple(gpu[name] for name in schema.GPUS.names) for gpu in lost]

    def _end_those_gone(self, found: list[tuple[Any, ...]], now_us: int) -> None:
        """Processes that left while no reader was there."""
        here = {row[1:4] for row in found}
        for row in [row for key, row in self._tenants.items() if key not in here]:
            self._process((now_us, *row[1:-1], 1))

    def _process(self, row: tuple[Any, ...]) -> None:
        key = row[1:4]  # gpu, pid, start
        if row[-1]:
            self._tenants.pop(key, None)
        else:
            self._tenants[key] = row
        self._batch.add(schema.GPU_PROCESSES, row)

    def _label(self, gpu: int) -> str:
        name = (self._gpus.get(gpu) or {}).get("name")
        return f"GPU {gpu} ({name})" if name else f"GPU {gpu}"

    # --- segments -----------------------------------------------------------------------------------------------------

    def restart(self, now_us: int) -> None:
        """A new segment says what holds."""
        for gpu in self._gpus.values():
            self._batch.add(schema.GPUS, (now_us, *(gpu[name] for name in schema.GPUS.names[1:])))
        for row in self._tenants.values():
            self._batch.add(schema.GPU_PROCESSES, (now_us, *row[1:]))
        self._write_limits(now_us)

    @property
    def pids(self) -> list[int]:
        """The living processes on them."""
        return [pid for _, pid, _ in self._tenants]

    @property
    def names(self) -> list[str]:
        return [self._label(gpu) for gpu in sorted(self._gpus)]


def _rows(tables: dict[str, Any], table: schema.Table) -> list[tuple[Any, ...]]:
    width = len(table.names)
    return [tuple(row) for row in (tables.get(table.name) or [])[:MOST_ROWS] if len(row) == width]


def _clock(at_us: int) -> str:
    return time.strftime("%H:%M:%S", time.gmtime(at_us // 1_000_000))


# --- throttling -------------------------------------------------------------------------------------------------------
# GPUs whose clocks are held down by heat or by the power supply, from the driver's own nanosecond counters.
#
# Not by a power cap, which is normal at full load, and not by polled bits, which miss what is between two questions.
# One event when it begins; the next one only after it was over for QUIET_US. What the driver counts as heat is checked
# against the temperature (store/gpu_rules.py): locked clocks are counted there, too.

SHARE = 0.05
"""Of the time since the counters were last read."""
QUIET_US = 60_000_000
CAUSES = {
    "hw_thermal_ns": "it is too hot (hardware slowdown)",
    "sw_thermal_ns": "it is too hot (the driver's own limit)",
    "power_brake_ns": "the power supply asked for it (power brake)",
}
HEAT = frozenset({"hw_thermal_ns", "sw_thermal_ns"})


@dataclass(frozen=True, slots=True)
class Throttled:
    gpu: int
    text: str
    severity: Severity
    fields: dict[str, Any]


class Throttling:
    def __init__(self) -> None:
        self._read_us: dict[int, int] = {}
        self._last_us: dict[tuple[int, str], int] = {}

    def second(self, row: dict[str, Any], limit_c: int | None = None, max_mhz: int | None = None) -> Throttled | None:
        """From a row of `gpu_seconds`; None unless something begins."""
        if all(row[name] is None for name in CAUSES):
            return None
        gpu, at_us = row["gpu"], row["time"]
        before_us = self._read_us.get(gpu)
        self._read_us[gpu] = at_us
        if before_us is None or at_us <= before_us:
            return None
        began = [name for name in CAUSES if self._begins(gpu, name, at_us, row[name], at_us - before_us)]
        if not began:
            return None
        worst = max(began, key=lambda name: int(row[name]))
        held_s, of_s = row[worst] / 1e9, (at_us - before_us) / 1e6
        fields = {"gpu": gpu, "reason": worst.removesuffix("_ns"), "held_ms": row[worst] // 1_000_000}
        ran = f"ran with lowered clocks for {min(held_s, of_s):.1f} of {of_s:.0f} s"
        if worst in HEAT and is_cool(row["temperature_c"], limit_c, row["memory_temperature_c"]):
            text, fields = f"{ran}: {_not_heat(row, limit_c, max_mhz)}", {**fields, **_facts(row, limit_c, max_mhz)}
            return Throttled(gpu, text, "info", fields)
        text = f"{ran}: {CAUSES[worst]}"
        if row["temperature_c"] is not None:
            text += f", {row['temperature_c']} °C"
        return Throttled(gpu, text, "warning", fields)

    def _begins(self, gpu: int, name: str, at_us: int, held_ns: int | None, of_us: int) -> bool:
        if held_ns is None or held_ns < SHARE * of_us * 1000:
            return False
        last_us = self._last_us.get((gpu, name))
        self._last_us[gpu, name] = at_us
        return last_us is None or at_us - last_us > QUIET_US


def _not_heat(row: dict[str, Any], limit_c: int | None, max_mhz: int | None) -> str:
    """Of a GPU that is cool, whatever its driver calls the reason."""
    cool = f"the driver counts it as heat, but it is at {temperature_text(row['temperature_c'], limit_c)}"
    if not is_low(row["clock_sm_mhz"], max_mhz):
        return f"{cool}; the reason is not known"
    undo = f"nvidia-smi -i {row['gpu']} -rgc resets that"
    return f"{cool} and at {clock_text(row['clock_sm_mhz'], max_mhz)}: its clocks are locked, as it seems; {undo}"


def _facts(row: dict[str, Any], limit_c: int | None, max_mhz: int | None) -> dict[str, Any]:
    known = {"temperature_c": row["temperature_c"], "limit_c": limit_c, "clock_mhz": row["clock_sm_mhz"],
             "clock_max_mhz": max_mhz, "locked": int(is_low(row["clock_sm_mhz"], max_mhz))}  # fmt: skip
    return {name: value for name, value in known.items() if value is not None}
