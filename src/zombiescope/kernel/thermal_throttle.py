"""/sys/devices/system/cpu/cpuN/thermal_throttle: how often, and for how long, heat slowed a core or its package down.

Fields, summed over each package: {core,package}_throttle_count, since kernel 5.6 also _total_time_ms. Both threads of a
core repeat its number, and all cores of a package repeat the package's: each is read once. Power limits have counters
only where the kernel was booted with int_pln_enable.

Cost: per-CPU variables, two to four files a core, 0.3 ms for 96 cores: every ten seconds. Absence: AMD, Arm and most
virtual machines count nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from zombiescope.kernel.procfile import at, names_in, read_int

DIRECTORY = "sys/devices/system/cpu"
MOST_CPUS = 1024
_CPU = re.compile(r"cpu\d{1,4}")
_CORE = ("core_throttle_count", "core_throttle_total_time_ms", "core_power_limit_count")
_PACKAGE = ("package_throttle_count", "package_throttle_total_time_ms", "package_power_limit_count")


@dataclass(frozen=True, slots=True)
class Places:
    """Directories to read: one for each core and one for each package, by the number of the package."""

    cores: dict[int, tuple[str, ...]]
    packages: dict[int, str]


def places(root: str = "/") -> Places | None:
    """Where to read; None where nothing is counted. Cores that went offline meanwhile answer nothing."""
    base = at(root, DIRECTORY)
    cores: dict[tuple[int, int], str] = {}
    names = [name for name in names_in(base) or () if _CPU.fullmatch(name)]
    for name in sorted(names, key=lambda name: int(name[3:]))[:MOST_CPUS]:
        if names_in(f"{base}/{name}/thermal_throttle") is None:
            continue
        package = read_int(f"{base}/{name}/topology/physical_package_id")
        core = read_int(f"{base}/{name}/topology/core_id")
        if package is not None and core is not None:
            cores.setdefault((package, core), f"{base}/{name}/thermal_throttle")
    if not cores:
        return None
    packages = sorted({package for package, _ in cores})
    by_package = {one: tuple(place for (package, _), place in cores.items() if package == one) for one in packages}
    return Places(by_package, {package: found[0] for package, found in by_package.items()})


def read(found: Places) -> dict[int, dict[str, int]]:
    """Package -> name -> count; what this kernel does not count is left out."""
    return {
        package: {
            **_sums(directories, _CORE),
            **_sums((found.packages[package],), _PACKAGE),
        }
        for package, directories in found.cores.items()
    }


def _sums(directories: tuple[str, ...], names: tuple[str, ...]) -> dict[str, int]:
    found = {name: [read_int(f"{directory}/{name}") for directory in directories] for name in names}
    return {name: sum(filter(None, values)) for name, values in found.items() if any(v is not None for v in values)}
