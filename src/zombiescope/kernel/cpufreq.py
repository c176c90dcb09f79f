"""/sys/devices/system/cpu/cpuN/cpufreq and cooling devices: how fast cores run, what limits them, and who lowered it.

Fields, of each core: scaling_cur_freq, scaling_max_freq (the limit of now: the kernel's thermal cooling and firmware
lower it), cpuinfo_max_freq, base_frequency (intel_pstate); /sys/devices/system/cpu/cpufreq/boost; in
/sys/class/thermal cooling devices of processors (type Processor, cpufreq-*), whose cur_state is above 0 while heat
slows a core down. These are what AMD and Arm have: thermal_throttle counters are Intel's.

Cost: scaling_cur_freq is a number in memory on x86 from 6.0 on (fb4c77c21aba); before, and on Arm, each read interrupts
that core, so there only limits and cooling are read. About 5 us a file. Absence: virtual machines have none of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from zombiescope.kernel import host
from zombiescope.kernel.procfile import at, names_in, read_int, read_text
from zombiescope.kernel.release import kernel_version

_CPUS = "sys/devices/system/cpu"
_THERMAL = "sys/class/thermal"
MOST_CPUS = 1024
MOST_DEVICES = 2048
_CPU = re.compile(r"cpu\d{1,4}")
_COOLS_CPU = re.compile(r"Processor|cpufreq-|cpu-cluster|thermal-cpufreq")
_CHEAP_SINCE = (6, 0)


@dataclass(frozen=True, slots=True)
class Places:
    """Directories of cores with a frequency, by package; cooling devices of processors; whether speed is cheap."""

    packages: dict[int, tuple[str, ...]]
    cooling: tuple[str, ...]
    reads_speed: bool


def places(root: str = "/") -> Places | None:
    """Where to read; None where this machine tells nothing."""
    base, packages = at(root, _CPUS), dict[int, list[str]]()
    names = [name for name in names_in(base) or () if _CPU.fullmatch(name)]
    for name in sorted(names, key=lambda name: int(name[3:]))[:MOST_CPUS]:
        if read_int(f"{base}/{name}/cpufreq/cpuinfo_max_freq") is not None:
            package = read_int(f"{base}/{name}/topology/physical_package_id") or 0
            packages.setdefault(max(package, 0), []).append(f"{base}/{name}/cpufreq")
    cooling = tuple(_cooling(root))
    if not packages and not cooling:
        return None
    return Places({package: tuple(found) for package, found in packages.items()}, cooling, _is_cheap(root))


def is_there(root: str = "/") -> bool:
    """Whether the first core has a frequency, or a processor a cooling device."""
    return read_int(at(root, f"{_CPUS}/cpu0/cpufreq/cpuinfo_max_freq")) is not None or bool(_cooling(root))


def _cooling(root: str) -> list[str]:
    base = at(root, _THERMAL)
    names = [name for name in names_in(base) or () if name.startswith("cooling_device")][:MOST_DEVICES]
    return [f"{base}/{name}" for name in sorted(names) if _COOLS_CPU.match(read_text(f"{base}/{name}/type") or "")]


def _is_cheap(root: str) -> bool:
    here = host.read(root)
    version = kernel_version(here.release)
    return here.machine in ("x86_64", "i686") and version is not None and version >= _CHEAP_SINCE


def read(found: Places, root: str = "/") -> dict[int | None, dict[str, int]]:
    """Package -> name -> kHz: `speed` of its fastest core, `limit` and `most` of the highest, `base` where it is told.
    Under None: how many processors are `cooled`, and whether `boost` is on."""
    told: dict[int | None, dict[str, int]] = {}
    for package, directories in found.packages.items():
        wanted = {"limit": "scaling_max_freq", "most": "cpuinfo_max_freq", "base": "base_frequency"}
        if found.reads_speed:
            wanted["speed"] = "scaling_cur_freq"
        told[package] = {name: value for name, file in wanted.items() if (value := _highest(directories, file))}
    node: dict[str, int] = {}
    if found.cooling:
        node["cooled"] = sum(1 for place in found.cooling if (read_int(f"{place}/cur_state") or 0) > 0)
    if (boost := read_int(at(root, f"{_CPUS}/cpufreq/boost"))) is not None:
        node["boost"] = boost
    return {**told, None: node} if node else told


def _highest(directories: tuple[str, ...], file: str) -> int | None:
    return max((value for place in directories if (value := read_int(f"{place}/{file}")) is not None), default=None)


def highest_khz(root: str = "/") -> int | None:
    """What the fastest core may run at; None where it is not told."""
    found = places(root)
    cores = [place for directories in found.packages.values() for place in directories] if found else []
    return _highest(tuple(cores), "cpuinfo_max_freq") if cores else None
