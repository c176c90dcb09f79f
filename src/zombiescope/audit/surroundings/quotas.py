"""Cgroups that used up their CPU quota in the window, and so had to wait although cores were free.

No sample shows that: a throttled task does not run. So every cgroup with a quota is read before and after. A node has
few of them; the walk that finds them is cut short on one with very many directories, and that is said.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from zombiescope.kernel import cgroup
from zombiescope.kernel.cgroup_census import walk_directories
from zombiescope.kernel.cgroup_leaf import CpuQuota, cpu_quota

WALK_BUDGET_S = 1.0
MOST_QUOTAS = 512


@dataclass(frozen=True, slots=True)
class Quotas:
    """Path -> quota of every cgroup that has one; `whole` is False when the walk was cut short."""

    found: dict[str, CpuQuota]
    whole: bool
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Throttled:
    """A cgroup with a quota that it used up in `throttled` of `periods`, and waited `seconds` for the next."""

    cgroup: str
    quota_cores: float
    periods: int
    throttled: int
    seconds: float

    @property
    def ratio(self) -> float:
        return self.throttled / self.periods if self.periods else 0.0


def read(root: str = "/") -> Quotas:
    hierarchy = cgroup.of_controller("cpu", cgroup.hierarchies(root))
    if hierarchy is None or hierarchy.mount is None:
        return Quotas({}, False, "no cgroup hierarchy with the cpu controller is mounted here")
    deadline = time.monotonic() + WALK_BUDGET_S
    found: dict[str, CpuQuota] = {}
    for _, path in walk_directories(hierarchy.mount, per_second=None):
        quota = cpu_quota(hierarchy.mount + path) if path != "/" else None
        if quota is not None:
            found[path] = quota
        if time.monotonic() > deadline or len(found) >= MOST_QUOTAS:
            return Quotas(found, False, f"only the first {len(found)} cgroups with a quota were read")
    return Quotas(found, True)


def throttled(before: Quotas, after: Quotas) -> tuple[Throttled, ...]:
    """Those that were throttled at all, by the part of their periods."""
    found = []
    for path, new in after.found.items():
        old = before.found.get(path) or CpuQuota(new.cores, 0, 0, 0)
        times = new.nr_throttled - old.nr_throttled
        if times > 0:
            waited_s = max(0, new.throttled_us - old.throttled_us) / 1e6
            found.append(Throttled(path, new.cores, max(0, new.nr_periods - old.nr_periods), times, waited_s))
    return tuple(sorted(found, key=lambda one: (-one.ratio, -one.seconds, one.cgroup)))
