"""How long the tasks of a cgroup waited: the pressure files (PSI) of the cgroups that were sampled most.

Read every ten seconds, of the same cgroups whose statistics are read (cgroups.py), so the cost does not grow with the
number of cgroups. `cgroup_stats` has the time in which some task waited for the CPU or for memory; this adds waiting
for I/O, and the time in which every task that could run waited ("full"): `counters` of the source "cgroup_pressure",
with the cgroup as key. A cgroup without a row waited for nothing; the gauge `cgroups` says how many were read.

Absence: cgroup v1 has no such files, and then nothing is missing. On cgroup v2 they are missing where PSI is off.
"""

from __future__ import annotations

from zombiescope.kernel import pressure
from zombiescope.kernel.pressure import Pressure
from zombiescope.kernel.procfile import read_file
from zombiescope.recorder.source import Context, Source
from zombiescope.recorder.tick import Tick

SOURCE = "cgroup_pressure"
MOST = 64
"""Cgroups at one reading."""


class CgroupPressure(Source):
    name = "cgroup pressure"
    grant = "boot with psi=1 (CONFIG_PSI)"
    every_s = 10.0

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._before: dict[str, dict[str, int]] = {}

    def forget(self) -> None:
        self._before.clear()

    def tick(self, tick: Tick) -> str | None:
        directories = dict(list(self.context.leaves().items())[:MOST])
        before, self._before = self._before, {}
        for path, directory in directories.items():
            totals = _totals(pressure.of_cgroup(directory))
            if totals:
                self._before[path] = totals
                self._write(tick.wall_us, path, before.get(path, {}), totals)
        if not self._before and any(read_file(f"{at}/cgroup.controllers") is not None for at in directories.values()):
            return "no cgroup has pressure files"
        self.context.gauge(tick.wall_us, SOURCE, "cgroups", None, len(self._before))
        return None

    def _write(self, now_us: int, path: str, before: dict[str, int], totals: dict[str, int]) -> None:
        for name, total in totals.items():
            added = total - before.get(name, total)
            if added > 0:
                self.context.count(now_us, SOURCE, name, path, added)


def _totals(found: dict[str, Pressure]) -> dict[str, int]:
    """Microseconds since the cgroup was made, by name; what `cgroup_stats` has is left out."""
    known = {f"{resource}_full_us": waited.full_us for resource, waited in found.items()}
    if "io" in found:
        known["io_some_us"] = found["io"].some_us
    return {name: value for name, value in known.items() if value is not None}
