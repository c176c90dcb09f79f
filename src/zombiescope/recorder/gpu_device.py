"""One GPU over time, asked through NVML: what to ask, what it does not have, and whether it is still there.

Codes are handled one by one. Unsupported (and unknown to this driver, and not permitted): that question is off for
good, and said once. Lost and reset required: the state, and nothing more is asked but, once a minute, whether it is
back. Everything else costs that one answer. A GPU none of whose questions is answered is "unreadable".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

from zombiescope.kernel import nvml_codes as codes
from zombiescope.kernel.nvml import Device, GpuProcess, Library, NvmlError
from zombiescope.store import schema

OK, LOST, RESET_REQUIRED, UNREADABLE = "ok", "lost", "reset_required", "unreadable"
_FINAL = frozenset({codes.INVALID_ARGUMENT, codes.NOT_SUPPORTED, codes.NO_PERMISSION, codes.FUNCTION_NOT_FOUND})
_STATES = {codes.GPU_IS_LOST: LOST, codes.RESET_REQUIRED: RESET_REQUIRED}
_SAMPLED = {
    "utilisation": codes.UTILISATION_SAMPLES,
    "memory_utilisation": codes.MEMORY_SAMPLES,
    "power_mw": codes.POWER_SAMPLES,
}
_RARE = frozenset({"fabric", "PCIe link"})
"""What only some have, or only new drivers tell: not worth a word."""
MIG = "utilisation (MIG is on)"

P = ParamSpec("P")
T = TypeVar("T")


class WatchedGpu:
    def __init__(self, library: Library, index: int, now_us: int) -> None:
        self.index = index
        self.state = OK
        self.off: set[str] = set()
        """What it was found not to have."""
        self.book = SecondBook(index)
        self.about: dict[str, Any] = {}
        self.slowdown_c: int | None = None
        """The temperature at which its hardware slows it down."""
        self.links: dict[str, int] = {}
        """Of its connections, since the counters were asked for last; taken with each message."""
        self._library = library
        self._device: Device | None = None
        self._seen_us = dict.fromkeys(_SAMPLED, now_us)
        self._lost_ns: dict[str, int] = {}
        self._answers = self._failures = 0
        self.find()

    # --- is it there --------------------------------------------------------------------------------------------------

    def find(self) -> None:
        """Looks it up, by its UUID if that is known: indices are given anew when another one is gone."""
        uuid = self.about.get("uuid")
        self.state = OK
        if uuid:
            self._device = self._try("handle", self._library.device_by_uuid, uuid)
        else:
            self._device = self._try("handle", self._library.device, self.index)
        if self._device is None and self.state == OK:
            self.state = LOST if uuid else UNREADABLE
        if self._device is not None:
            self.describe(self._device)

    def describe(self, device: Device) -> None:
        """What does not change while the driver runs."""
        memory = self._try("memory", device.memory)
        power_mw = self._try("power limit", device.power_limit_mw)
        mig = self._try("MIG", device.mig)
        self.about |= {
            "uuid": self._try("uuid", device.uuid) or self.about.get("uuid"),
            "name": self._try("name", device.name) or self.about.get("name"),
            "pci": self._try("bus address", device.pci) or self.about.get("pci"),
            "memory_bytes": memory[0] if memory else self.about.get("memory_bytes"),
            "mig": int(bool(mig)) if mig is not None or "MIG" in self.off else None,
            "power_limit_w": None if power_mw is None else round(power_mw / 1000),
            "clock_sm_max_mhz": self._try("maximum clock", device.clock_sm_max),
        }
        self.slowdown_c = self._try("temperature limit", device.slowdown_temperature)
        self.off.discard("MIG")  # most GPUs have none: not worth a word
        if self.about["mig"]:
            self.off |= {MIG, "utilisation", "memory_utilisation"}

    @property
    def device(self) -> Device | None:
        """To be asked; None while there is no use in it."""
        return self._device if self.state in (OK, UNREADABLE) else None

    def begin(self) -> None:
        self._answers = self._failures = 0

    def settle(self) -> None:
        """After a round of questions: a GPU that answered none of them is not well."""
        if self.state in (OK, UNREADABLE) and self._answers + self._failures:
            self.state = OK if self._answers else UNREADABLE

    def _try(self, what: str, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        if what in self.off or self.state not in (OK, UNREADABLE):
            return None
        try:
            answer = call(*args, **kwargs)
        except NvmlError as error:
            self._failed(what, error)
            return None
        self._answers += 1
        return answer

    def _failed(self, what: str, error: NvmlError) -> None:
        if error.code in _FINAL:
            self.off.add(what)
        elif error.code in _STATES:
            self.state = _STATES[error.code]
        else:
            self._failures += 1

    # --- what is asked ------------------------------------------------------------------------------------------------

    def ask_samples(self, now_us: int) -> None:
        self.book.asked_us = now_us
        for column, kind in _SAMPLED.items():
            device = self.device
            if device is None:
                return
            found = self._try(column, device.samples, kind, self._seen_us[column])
            if found:
                self._seen_us[column] = found[-1][0]
                self.book.add_samples(column, found)

    def ask_figures(self, now_us: int) -> None:
        """What the driver does not sample: the values of this moment, and lost clocks since the last one."""
        if (device := self.device) is None:
            return
        memory = self._try("memory", device.memory)
        fields = self._fields(
            device, "counters of lost clocks", [*codes.LOST_CLOCKS.values(), codes.MEMORY_TEMPERATURE]
        )
        figures = {
            "memory_used_bytes": memory[1] if memory else None,
            "clock_sm_mhz": self._try("clocks", device.clock_sm),
            "temperature_c": self._try("temperature", device.temperature),
            "memory_temperature_c": fields.get(codes.MEMORY_TEMPERATURE) or None,
            "reasons": self._try("clocks event reasons", device.reasons),
            **{name: self._added(name, fields.get(field)) for name, field in codes.LOST_CLOCKS.items()},
        }
        if "power_mw" in self.off:
            power_mw = self._try("power", device.power_mw)
            figures["power_w"] = None if power_mw is None else round(power_mw / 1000)
        if any(value is not None for value in figures.values()):
            self.book.add_figures(now_us, figures)

    def _added(self, name: str, now: int | None) -> int | None:
        """To a counter since it was last read. One that fell was reset, or wrapped: nobody knows by how much."""
        before = self._lost_ns.pop(name, None)
        if now is None:
            return None
        self._lost_ns[name] = now
        return now - before if before is not None and now >= before else None

    def ask_counters(self) -> None:
        if (device := self.device) is None:
            return
        wanted = [field for several in codes.COUNTERS.values() for field in several]
        fields = self._fields(device, "counters of errors", wanted)
        for name, several in codes.COUNTERS.items():
            known = [fields[field] for field in several if field in fields]
            self.about[name] = sum(known) if known else self.about.get(name)
        self._ask_links(device)

    def _ask_links(self, device: Device) -> None:
        fabric = self._try("fabric", device.fabric)
        found = {
            "pcie_width": self._try("PCIe link", device.pcie_width),
            "pcie_width_max": self._try("PCIe link", device.pcie_width_max),
            "pcie_generation": self._try("PCIe link", device.pcie_generation),
            "fabric_state": fabric[0] if fabric else None,
            "fabric_status": fabric[1] if fabric else None,
        }
        self.links = {name: value for name, value in found.items() if value is not None}

    def _fields(self, device: Device, what: str, wanted: Iterable[int]) -> dict[int, int]:
        asked = [number for number in wanted if _name(number) not in self.off]
        if not asked:
            return {}
        found: dict[int, int] = {}
        for number, value in (self._try(what, device.fields, asked) or {}).items():
            if isinstance(value, NvmlError):
                self._failed(_name(number), value)
            else:
                found[number] = value
        return found

    def ask_processes(self) -> list[GpuProcess] | None:
        device = self.device
        return None if device is None else self._try("processes", device.processes)

    def forget_time(self, now_us: int) -> None:
        """The clock was set."""
        self._seen_us = dict.fromkeys(_SAMPLED, now_us)
        self.book.forget()

    def row(self, now_us: int, driver: str | None) -> tuple[Any, ...]:
        values = {**self.about, "time": now_us, "gpu": self.index, "driver": driver, "state": self.state}
        return tuple(values.get(name) for name in schema.GPUS.names)

    @property
    def lacks(self) -> set[str]:
        """What it does not have, in words for people: fields that only some generations have are not worth one."""
        return {what for what in self.off if not what.startswith("field ") and what not in _RARE} - (
            {"utilisation", "memory_utilisation"} if MIG in self.off else set()
        )


def _name(field: int) -> str:
    return f"field {field}"


# --- seconds ----------------------------------------------------------------------------------------------------------
# Samples of one GPU by the second they belong to, until that second is over: rows of `gpu_seconds`.
#
# The driver stamps its samples with the wall clock in microseconds. A second is handed out once, LATE_US after its end,
# when nothing of it can still come; what comes later all the same is dropped. Bounded: MOST_SECONDS wait.

SECOND_US = 1_000_000
LATE_US = 1_000_000
MOST_SECONDS = 64
MOST_SAMPLES = 64
"""Of a second; the driver takes about five."""


@dataclass(slots=True)
class _Second:
    samples: dict[str, list[int]] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)


class SecondBook:
    def __init__(self, gpu: int) -> None:
        self._gpu = gpu
        self._seconds: dict[int, _Second] = {}
        self._handed_out_us = 0
        self.asked_us: int | None = None
        """When its samples were last asked for, which may be five seconds ago: what came after that is not known yet.
        None: nobody asks for samples."""

    def add_samples(self, column: str, samples: Iterable[tuple[int, int]]) -> None:
        """(time in microseconds, value) in the order of time."""
        for at_us, value in samples:
            second = self._second(at_us)
            if second is not None:
                values = second.samples.setdefault(column, [])
                if len(values) < MOST_SAMPLES:
                    values.append(value)

    def add_figures(self, at_us: int, figures: dict[str, Any]) -> None:
        """What was asked at that moment."""
        second = self._second(at_us)
        if second is not None:
            second.figures.update(figures)

    def _second(self, at_us: int) -> _Second | None:
        end_us = -(-at_us // SECOND_US) * SECOND_US
        if end_us <= self._handed_out_us:
            return None
        found = self._seconds.setdefault(end_us, _Second())
        if len(self._seconds) > MOST_SECONDS:
            del self._seconds[min(self._seconds)]
        return found

    def take(self, now_us: int) -> list[tuple[Any, ...]]:
        """Rows of the seconds that are over."""
        known_us = now_us if self.asked_us is None else self.asked_us
        over = sorted(end_us for end_us in self._seconds if end_us <= known_us and end_us + LATE_US <= now_us)
        if over:
            self._handed_out_us = over[-1]
        return [self._row(end_us, self._seconds.pop(end_us)) for end_us in over]

    def forget(self) -> None:
        """The clock was set: what waits belongs to another time."""
        self._seconds.clear()
        self._handed_out_us = 0
        self.asked_us = None

    def _row(self, end_us: int, second: _Second) -> tuple[Any, ...]:
        used = second.samples.get("utilisation")
        power_mw = _mean(second.samples.get("power_mw"))
        values: dict[str, Any] = {
            "power_w": None if power_mw is None else round(power_mw / 1000),
            **second.figures,
            "time": end_us,
            "gpu": self._gpu,
            "utilisation": _rounded(used),
            "utilisation_samples": used,
            "memory_utilisation": _rounded(second.samples.get("memory_utilisation")),
        }
        return tuple(values.get(name) for name in schema.GPU_SECONDS.names)


def _mean(values: list[int] | None) -> float | None:
    return sum(values) / len(values) if values else None


def _rounded(values: list[int] | None) -> int | None:
    mean = _mean(values)
    return None if mean is None else round(mean)
