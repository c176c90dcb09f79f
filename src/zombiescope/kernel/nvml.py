"""libnvidia-ml.so.1, the NVIDIA driver's own library (NVML), called by ctypes: GPUs, their samples, figures, counters.

Every call is an ioctl that takes locks of the driver: it answers in a millisecond, or hangs in a state in which nothing
ends it. So nothing in here may be called by the recorder itself; recorder/gpu_reader.py is a process for it.

Cost, measured on an H200: utilisation, clocks, reasons and temperature about 0.5 ms each, power and ECC 2 ms, the
process list 0.07 ms. Never asked: nvmlDeviceGetPcieThroughput, which measures for 20 ms.

Absence: without the library Library() raises OSError; a call that fails raises NvmlError with the driver's code, also
one that this version of the library does not have. Init is with NO_GPUS, so that a driver without one is no failure.
It must attach the GPUs: with NO_ATTACH the driver counts none and has no handles (seen on an H200 with driver 580).

The library is loaded by its name, from the system's places and then from those in which container images and GKE have
it: never from the current directory.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Iterable, Sequence
from ctypes import byref, c_char, c_int, c_longlong, c_uint, c_ulonglong, c_void_p
from dataclasses import dataclass
from typing import Any

from zombiescope.kernel import nvml_codes as codes

NAME = "libnvidia-ml.so.1"
PLACES = (
    NAME,
    f"/usr/local/nvidia/lib64/{NAME}",
    f"/home/kubernetes/bin/nvidia/lib64/{NAME}",
    f"/run/nvidia/driver/usr/lib/x86_64-linux-gnu/{NAME}",
    f"/run/nvidia/driver/usr/lib/aarch64-linux-gnu/{NAME}",
)
NO_GPUS = 1
MOST_GPUS = 64
MOST_SAMPLES = 1024
MOST_PROCESSES = 64
_TEXT_BYTES = 96
_NOT_AVAILABLE = 0xFFFF_FFFF_FFFF_FFFF


class NvmlError(Exception):
    def __init__(self, code: int, call: str) -> None:
        super().__init__(f"{call}: {codes.meaning(code)}")
        self.code = code
        self.call = call


_SAMPLE = struct.Struct("=QQ")
"""nvmlSample_t: time in microseconds, and eight bytes whose meaning nvmlValueType_t says."""
_KINDS = ("=d", "=I", "=Q", "=Q", "=q", "=i", "=H")
"""nvmlValueType_t."""


class _Field(ctypes.Structure):
    _fields_ = (("id", c_uint), ("scope", c_uint), ("at_us", c_longlong), ("latency_us", c_longlong),
                ("kind", c_uint), ("code", c_uint), ("value", c_ulonglong))  # fmt: skip


class _Memory(ctypes.Structure):
    _fields_ = (("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong))


class _Pci(ctypes.Structure):
    _fields_ = (("legacy", c_char * 16), ("numbers", c_uint * 5), ("bus_id", c_char * 32))


class _Margin(ctypes.Structure):
    _fields_ = (("version", c_uint), ("degrees", c_int))


class _Process(ctypes.Structure):
    _fields_ = (("pid", c_uint), ("used", c_ulonglong), ("instance", c_uint), ("compute", c_uint))


class _Fabric(ctypes.Structure):
    _fields_ = (("cluster", ctypes.c_ubyte * 16), ("status", c_uint), ("clique", c_uint), ("state", ctypes.c_ubyte))


@dataclass(frozen=True, slots=True)
class GpuProcess:
    pid: int
    memory_bytes: int | None


class Library:
    """The library, loaded and not yet initialised. `place` is for tests: a stand-in instead of the driver's."""

    def __init__(self, place: str | None = None) -> None:
        self._library = _load((place,) if place else PLACES)
        self._samples = ctypes.create_string_buffer(MOST_SAMPLES * _SAMPLE.size)
        self._processes = (_Process * MOST_PROCESSES)()

    def call(self, name: str, *arguments: Any) -> None:
        """Raises NvmlError unless it succeeds."""
        try:
            function = getattr(self._library, name)
        except AttributeError:
            raise NvmlError(codes.FUNCTION_NOT_FOUND, name) from None
        code = function(*arguments)
        if code != codes.SUCCESS:
            raise NvmlError(code, name)

    def start(self) -> None:
        self.call("nvmlInitWithFlags", c_uint(NO_GPUS))

    def driver(self) -> str:
        return self._text("nvmlSystemGetDriverVersion")

    def count(self) -> int:
        return self._uint("nvmlDeviceGetCount_v2")

    def device(self, index: int) -> Device:
        handle = c_void_p()
        self.call("nvmlDeviceGetHandleByIndex_v2", c_uint(index), byref(handle))
        return Device(self, handle)

    def device_by_uuid(self, uuid: str) -> Device:
        handle = c_void_p()
        self.call("nvmlDeviceGetHandleByUUID", uuid.encode(), byref(handle))
        return Device(self, handle)

    def _uint(self, name: str, *arguments: Any) -> int:
        found = c_uint()
        self.call(name, *arguments, byref(found))
        return found.value

    def _text(self, name: str, *arguments: Any) -> str:
        buffer = ctypes.create_string_buffer(_TEXT_BYTES)
        self.call(name, *arguments, buffer, c_uint(_TEXT_BYTES))
        return printable(buffer.value)


class Device:
    """One GPU. Each method is one call of the driver."""

    def __init__(self, library: Library, handle: c_void_p) -> None:
        self._library = library
        self._handle = handle

    def uuid(self) -> str:
        return self._library._text("nvmlDeviceGetUUID", self._handle)

    def name(self) -> str:
        return self._library._text("nvmlDeviceGetName", self._handle)

    def pci(self) -> str:
        """The bus address as the kernel writes it: four digits of the domain, lower case."""
        found = _Pci()
        self._library.call("nvmlDeviceGetPciInfo_v3", self._handle, byref(found))
        domain, _, rest = printable(found.bus_id).lower().partition(":")
        return f"{domain[-4:]}:{rest}"

    def memory(self) -> tuple[int, int]:
        """(all of it, used), in bytes."""
        found = _Memory()
        self._library.call("nvmlDeviceGetMemoryInfo", self._handle, byref(found))
        return found.total, found.used

    def mig(self) -> bool:
        now, pending = c_uint(), c_uint()
        self._library.call("nvmlDeviceGetMigMode", self._handle, byref(now), byref(pending))
        return bool(now.value)

    def clock_sm(self) -> int:
        return self._library._uint("nvmlDeviceGetClockInfo", self._handle, c_uint(codes.CLOCK_SM))

    def clock_sm_max(self) -> int:
        return self._library._uint("nvmlDeviceGetMaxClockInfo", self._handle, c_uint(codes.CLOCK_SM))

    def temperature(self) -> int:
        return self._library._uint("nvmlDeviceGetTemperature", self._handle, c_uint(codes.TEMPERATURE_GPU))

    def slowdown_temperature(self) -> int:
        """In degrees Celsius. GPUs since Ada may have no fixed limit, only how far they are from it now."""
        asked = c_uint(codes.SLOWDOWN_THRESHOLD)
        try:
            limit = self._library._uint("nvmlDeviceGetTemperatureThreshold", self._handle, asked)
        except NvmlError as error:
            if error.code not in (codes.NOT_SUPPORTED, codes.FUNCTION_NOT_FOUND, codes.INVALID_ARGUMENT):
                raise
            limit = 0
        return limit or self.temperature() + self._margin()

    def _margin(self) -> int:
        """Degrees up to the nearest limit; below zero beyond it."""
        found = _Margin(version=codes.MARGIN_VERSION)
        self._library.call("nvmlDeviceGetMarginTemperature", self._handle, byref(found))
        return int(found.degrees)

    def power_mw(self) -> int:
        return self._library._uint("nvmlDeviceGetPowerUsage", self._handle)

    def power_limit_mw(self) -> int:
        return self._library._uint("nvmlDeviceGetEnforcedPowerLimit", self._handle)

    def reasons(self) -> int:
        """Bits of why clocks are low now. The call was renamed in driver 535."""
        found = c_ulonglong()
        try:
            self._library.call("nvmlDeviceGetCurrentClocksEventReasons", self._handle, byref(found))
        except NvmlError as error:
            if error.code != codes.FUNCTION_NOT_FOUND:
                raise
            self._library.call("nvmlDeviceGetCurrentClocksThrottleReasons", self._handle, byref(found))
        return found.value

    def samples(self, kind: int, after_us: int) -> list[tuple[int, int]]:
        """(time in Unix microseconds, value) of what the driver sampled after a moment, in the order of time."""
        value_kind, count, buffer = c_uint(), c_uint(MOST_SAMPLES), self._library._samples
        try:
            self._library.call("nvmlDeviceGetSamples", self._handle, c_uint(kind), c_ulonglong(after_us),
                               byref(value_kind), byref(count), buffer)  # fmt: skip
        except NvmlError as error:
            if error.code == codes.NOT_FOUND:  # nothing new
                return []
            raise
        width = min(count.value, MOST_SAMPLES) * _SAMPLE.size
        read = _SAMPLE.iter_unpack(ctypes.string_at(buffer, width))
        return sorted((at_us, int(_number(raw, value_kind.value))) for at_us, raw in read if at_us > after_us)

    def fields(self, wanted: Sequence[int]) -> dict[int, int | NvmlError]:
        """Field -> value, or why there is none: the call succeeds if any of them worked."""
        found = (_Field * len(wanted))()
        for one, number in zip(found, wanted, strict=True):
            one.id = number
        self._library.call("nvmlDeviceGetFieldValues", self._handle, c_int(len(wanted)), found)
        return {
            one.id: NvmlError(one.code, f"field {one.id}") if one.code else int(_number(one.value, one.kind))
            for one in found
        }

    def pcie_width(self) -> int:
        """Lanes in use now."""
        return self._library._uint("nvmlDeviceGetCurrPcieLinkWidth", self._handle)

    def pcie_width_max(self) -> int:
        """Of GPU and slot together."""
        return self._library._uint("nvmlDeviceGetMaxPcieLinkWidth", self._handle)

    def pcie_generation(self) -> int:
        return self._library._uint("nvmlDeviceGetCurrPcieLinkGeneration", self._handle)

    def fabric(self) -> tuple[int, int]:
        """(state, status) of its registration with Fabric Manager; from driver 535 on."""
        found = _Fabric()
        self._library.call("nvmlDeviceGetGpuFabricInfo", self._handle, byref(found))
        return int(found.state), int(found.status)

    def processes(self) -> list[GpuProcess]:
        """Those that compute on it, at most MOST_PROCESSES. Pids are those of the host."""
        count = c_uint(MOST_PROCESSES)
        try:
            self._library.call("nvmlDeviceGetComputeRunningProcesses_v3", self._handle, byref(count),
                               self._library._processes)  # fmt: skip
        except NvmlError as error:
            if error.code != codes.INSUFFICIENT_SIZE:  # it has filled none: there are more than we record
                raise
            return self._first_processes(count.value)
        return _processes(self._library._processes[: min(count.value, MOST_PROCESSES)])

    def _first_processes(self, there: int) -> list[GpuProcess]:
        room = min(4096, there + MOST_PROCESSES)
        count, buffer = c_uint(room), (_Process * room)()
        self._library.call("nvmlDeviceGetComputeRunningProcesses_v3", self._handle, byref(count), buffer)
        return _processes(sorted(buffer[: min(count.value, room)], key=lambda one: -_used(one))[:MOST_PROCESSES])


def printable(data: bytes) -> str:
    """Names that the driver gives, as one line of plain text."""
    text = data.decode("utf-8", "replace")
    return "".join(character if character.isprintable() else "?" for character in text)


def _used(one: _Process) -> int:
    return 0 if one.used == _NOT_AVAILABLE else int(one.used)


def _processes(found: Iterable[_Process]) -> list[GpuProcess]:
    return [GpuProcess(one.pid, None if one.used == _NOT_AVAILABLE else one.used) for one in found]


def _number(raw: int, kind: int) -> float:
    """A value of the union nvmlValue_t: of its eight bytes the first are meant, the rest may be anything."""
    form = _KINDS[kind] if kind < len(_KINDS) else "=I"
    number: float = struct.unpack_from(form, raw.to_bytes(8, sys.byteorder))[0]
    return number


def _load(places: Iterable[str]) -> ctypes.CDLL:
    first: OSError | None = None
    for place in places:
        try:
            return ctypes.CDLL(place)
        except OSError as error:
            first = first or error
    assert first is not None
    raise first
