"""Units that restart, and whether zombies come in their rhythm: in the same slice, and as fast.

A unit that restarts every two seconds and leaves a cgroup behind each time is found by both: its cgroup is a child of
the slice in which the zombies were, and there is about one zombie a restart. Either alone fits every node that has a
restarting unit somewhere.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from zombiescope.base.time import HOUR_US
from zombiescope.diagnosis.carriers import is_carrier_unit
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.thresholds import RESTARTS_FIT_ZOMBIES, RESTARTS_LEAST, RESTARTS_MANY
from zombiescope.query.cgroups import CgroupsView
from zombiescope.query.events import events


@dataclass(frozen=True, slots=True)
class Restarts:
    """Of one unit, in the hour before the window's end."""

    unit: str
    count: int
    per_hour: float
    ever: int | None
    """As systemd counts them."""
    cgroup: str | None

    @property
    def slice(self) -> str:
        """The directory that its cgroup is in; where that was not recorded, the one that systemd gives by default."""
        if self.cgroup:
            return self.cgroup.rpartition("/")[0] or "/"
        name, _, _ = self.unit.rpartition(".")
        template = name.partition("@")[0] if "@" in name else ""
        return f"/system.slice/system-{template}.slice" if template else "/system.slice"


@dataclass(frozen=True, slots=True)
class Match:
    unit: str
    said: str
    value: float
    value_unit: str


def matching_unit(facts: Facts, view: CgroupsView, where: str | None) -> Match | None:
    """The unit whose restarts leave the zombies of a directory. Of zombies whose place nobody saw, only one that
    restarted as often as there are zombies."""
    for one in unit_restarts(facts):
        if is_carrier_unit(one.unit) or (where is not None and not _is_there(one, where)):
            continue
        if (match := _same_rhythm(one, view) if where is not None else _as_many(one, view)) is not None:
            return match
    return None


def _is_there(one: Restarts, where: str) -> bool:
    """Zombies directly below its slice, as it leaves them itself, or inside its own cgroup."""
    own = f"{one.slice.rstrip('/')}/{one.unit}"
    return where == one.slice or where == own or where.startswith(f"{own}/")


def _same_rhythm(one: Restarts, view: CgroupsView) -> Match | None:
    growth = view.growth_per_hour
    if growth is None:
        return _as_many(one, view)
    if one.count < RESTARTS_LEAST or not RESTARTS_FIT_ZOMBIES[0] <= growth / one.per_hour <= RESTARTS_FIT_ZOMBIES[1]:
        return None
    said = f"{one.unit} restarts {one.per_hour:,.0f} times an hour and zombies grow by {growth:,.0f} an hour"
    return Match(one.unit, said, round(one.per_hour, 1), "restarts/hour")


def _as_many(one: Restarts, view: CgroupsView) -> Match | None:
    """Restarted as often as there are zombies, by systemd's own count: the same match, over all of the time."""
    dying = None if view.memory is None else view.memory.dying
    if (
        view.growth_per_hour is not None
        and not RESTARTS_FIT_ZOMBIES[0] <= view.growth_per_hour / one.per_hour <= RESTARTS_FIT_ZOMBIES[1]
    ):
        return None
    if (
        not dying
        or one.ever is None
        or one.ever < RESTARTS_MANY
        or not RESTARTS_FIT_ZOMBIES[0] <= dying / one.ever <= RESTARTS_FIT_ZOMBIES[1]
    ):
        return None
    said = f"{one.unit} restarted {one.ever:,} times and left {dying:,} dead memory cgroups"
    return Match(one.unit, said, one.ever, "restarts")


def unit_restarts(facts: Facts) -> list[Restarts]:
    """The most frequent first."""
    return facts.always(("restarts", facts.end_us), lambda: _unit_restarts(facts))


def restarts_per_hour(facts: Facts) -> list[tuple[str, float]]:
    """Units by how often they restarted in the hour before the window's end; the most frequent first."""
    return [(one.unit, one.per_hour) for one in unit_restarts(facts)]


def _unit_restarts(facts: Facts) -> list[Restarts]:
    start_us = max(facts.recording.start_us, facts.end_us - HOUR_US)
    counts: Counter[str] = Counter()
    ever: dict[str, int] = {}
    cgroups: dict[str, str] = {}
    for event in events(facts.recording, start_us, facts.end_us, kinds={"unit_restart"}):
        unit, fields = event.fields.get("unit"), event.fields
        if not isinstance(unit, str):
            continue
        times, total, cgroup = (fields.get(name) for name in ("delta", "n_restarts", "control_group"))
        counts[unit] += times if isinstance(times, int) and times > 0 else 1
        if isinstance(total, int):
            ever[unit] = max(total, ever.get(unit, 0))
        if isinstance(cgroup, str) and cgroup.startswith("/"):
            cgroups[unit] = cgroup
    hours = max(facts.end_us - start_us, 1) / HOUR_US
    return [
        Restarts(unit, count, count / hours, ever.get(unit), cgroups.get(unit)) for unit, count in counts.most_common()
    ]
