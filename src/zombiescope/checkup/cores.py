"""Each core over the window, the mean that hides it, and who held those that the kernel held."""

from __future__ import annotations

from dataclasses import dataclass

from zombiescope.checkup.sampled import Hog, Sampled
from zombiescope.recording.columns import numbers, records
from zombiescope.recording.reader import Recording
from zombiescope.views.cores import Core, Modes, cores
from zombiescope.views.recent import CoreTick, core_tick

NAMED = 4
"""Cores whose hog is looked for."""

_MODES = ("user", "nice", "system", "irq", "softirq", "steal", "iowait")


@dataclass(frozen=True, slots=True)
class Window:
    """From the start of the first tick to the end of the last."""

    start_us: int
    end_us: int

    @property
    def seconds(self) -> float:
        return (self.end_us - self.start_us) / 1e6


@dataclass(frozen=True, slots=True)
class CoreSeen:
    """`hog` is looked for only on the cores that the kernel held longest."""

    core: Core
    strip: tuple[CoreTick | None, ...]
    hog: Hog | None

    @property
    def kernel_ratio(self) -> float | None:
        known = [ratio for ratio in (self.core.modes.system, self.core.modes.irq, self.core.modes.softirq) if ratio]
        return sum(known) if self.core.modes.system is not None else None

    @property
    def kernel_mode(self) -> str:
        """What the kernel did most: system, softirq or irq."""
        return max(("system", "softirq", "irq"), key=lambda mode: getattr(self.core.modes, mode) or 0.0)


@dataclass(frozen=True, slots=True)
class CoresSeen:
    aggregate: Modes
    cores: tuple[CoreSeen, ...]
    average_strip: tuple[CoreTick | None, ...]

    def worst_first(self) -> list[CoreSeen]:
        return sorted(self.cores, key=_heat, reverse=True)


def _heat(seen: CoreSeen) -> tuple[float, float, float, int]:
    core = seen.core
    return (core.longest_saturation_s or 0.0, seen.kernel_ratio or 0.0, core.modes.busy or 0.0, -core.cpu)


def window_of(recording: Recording) -> Window | None:
    """What the ticks cover; None when there is no tick."""
    rows = recording.table("cores", columns=("time", "interval_us"))
    if not len(rows):
        return None
    ends = numbers(rows.column("time"))
    return Window(int((ends - numbers(rows.column("interval_us"))).min()), int(ends.max()))


def cores_seen(recording: Recording, window: Window, sampled: Sampled) -> CoresSeen:
    view = cores(recording, window.start_us, window.end_us)
    strips = _strips(recording, window)
    plain = [CoreSeen(core, strips.get(core.cpu, ()), None) for core in view.cores]
    hot = {seen.core.cpu for seen in sorted(plain, key=_heat, reverse=True)[:NAMED]}
    seen = tuple(
        CoreSeen(one.core, one.strip, sampled.hog_on(one.core.cpu) if one.core.cpu in hot else None) for one in plain
    )
    return CoresSeen(view.aggregate, seen, _average([one.strip for one in seen]))


def _strips(recording: Recording, window: Window) -> dict[int, tuple[CoreTick | None, ...]]:
    """Per core one cell a second, oldest first; a cell without a tick is None."""
    columns = ("time", "interval_us", "cpu", *(f"{mode}_ms" for mode in _MODES))
    cells = max(1, round(window.seconds))
    sums: dict[int, list[list[int]]] = {}
    for row in records(recording.table("cores", window.start_us + 1, window.end_us + 1, columns)):
        modes = [row[f"{mode}_ms"] for mode in _MODES]
        if modes[0] is None or modes[2] is None:
            continue
        cell = min(cells - 1, (row["time"] - row["interval_us"] // 2 - window.start_us) * cells // _length(window))
        kept = sums.setdefault(row["cpu"], [[0] * (len(_MODES) + 1) for _ in range(cells)])[cell]
        for place, value in enumerate((row["interval_us"], *modes)):
            kept[place] += value or 0
    return {cpu: tuple(core_tick(cell[1:], cell[0]) for cell in strip) for cpu, strip in sums.items()}


def _length(window: Window) -> int:
    return max(1, window.end_us - window.start_us)


def _average(strips: list[tuple[CoreTick | None, ...]]) -> tuple[CoreTick | None, ...]:
    from zombiescope.views.recent import mean

    cells = max((len(strip) for strip in strips), default=0)
    return tuple(
        mean([tick for strip in strips if place < len(strip) and (tick := strip[place]) is not None])
        for place in range(cells)
    )
