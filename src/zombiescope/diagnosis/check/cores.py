"""Each core over the window, the mean that hides it, and who held those that the kernel held."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zombiescope.diagnosis import core_grid
from zombiescope.diagnosis.core_grid import CoreGrid
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.incident import Actor
from zombiescope.diagnosis.sample_grid import SampleGrid
from zombiescope.model.modes import ModesBusy
from zombiescope.query.cores import Core, cores
from zombiescope.query.recent import CoreTick, mean
from zombiescope.store.columns import Mask
from zombiescope.store.stacks import hottest_path

NAMED = 4
"""Cores of which it is looked up who held them."""

_MODES = ("user", "nice", "system", "irq", "softirq", "steal", "iowait")


@dataclass(frozen=True, slots=True)
class TickSpan:
    """From the start of the first tick to the end of the last."""

    start_us: int
    end_us: int

    @property
    def seconds(self) -> float:
        return (self.end_us - self.start_us) / 1e6


@dataclass(frozen=True, slots=True)
class Holder:
    """Who had most of some samples. `path` is the hottest kernel path, outermost first; empty without kernel time."""

    actor: Actor
    tid: int | None
    cpu_s: float
    kernel_s: float
    path: tuple[str, ...]
    rt_priority: int | None = None
    longest_s: float | None = None
    """How long without a break; None where that was not asked."""
    pids: int = 1


@dataclass(frozen=True, slots=True)
class HeldCore:
    """`hog` is looked up only on the cores that the kernel held longest."""

    core: Core
    strip: tuple[CoreTick | None, ...]
    hog: Holder | None

    @property
    def heat(self) -> tuple[float, float, float, int]:
        kernel = sum(getattr(self.core.modes, mode) or 0.0 for mode in ("system", "irq", "softirq"))
        return self.core.longest_saturation_s or 0.0, kernel, self.core.modes.busy or 0.0, -self.core.cpu


@dataclass(frozen=True, slots=True)
class HeldCores:
    aggregate: ModesBusy
    cores: tuple[HeldCore, ...]
    average_strip: tuple[CoreTick | None, ...]

    def worst_first(self) -> list[HeldCore]:
        return sorted(self.cores, key=lambda held: held.heat, reverse=True)


def held_cores(facts: Facts, window: TickSpan) -> HeldCores:
    view = cores(facts.recording, window.start_us, window.end_us)
    strips = _strips(core_grid.load(facts.recording, window.start_us, window.end_us, _MODES, ()), window)
    plain = [HeldCore(core, strips.get(core.cpu, ()), None) for core in view.cores]
    hot = {held.core.cpu for held in sorted(plain, key=lambda held: held.heat, reverse=True)[:NAMED]}
    grid = facts.samples
    held = tuple(
        HeldCore(one.core, one.strip, holder_on(grid, one.core.cpu) if one.core.cpu in hot else None) for one in plain
    )
    return HeldCores(view.aggregate, held, _average([one.strip for one in held]))


def holder_on(grid: SampleGrid, cpu: int) -> Holder | None:
    """Who was in the kernel most on this core, or ran there most where nobody was."""
    here: Mask = grid.cpu == cpu
    in_kernel = here & grid.in_kernel
    hottest = grid.hottest_task(in_kernel if in_kernel.any() else here)
    if hottest is None:
        return None
    mine, _ = grid.groups(lambda task: "it" if task == hottest[0] else None)
    return holder(grid, here & (mine >= 0))


def holder(grid: SampleGrid, chosen: Mask) -> Holder | None:
    hottest = grid.hottest_task(chosen)
    if hottest is None:
        return None
    task = hottest[0]
    profile = grid.profile(chosen)
    path = hottest_path(path for path, count in profile.paths.items() for _ in range(count))
    spent_s = int(np.count_nonzero(chosen)) / grid.hz
    return Holder(task.actor(), task.tid, spent_s, profile.kernel_samples / grid.hz, path, task.rt_priority)


def _strips(grid: CoreGrid | None, window: TickSpan) -> dict[int, tuple[CoreTick | None, ...]]:
    """Per core one cell a second, oldest first; a cell without a tick is None. Less than half a second is no cell."""
    if grid is None:
        return {}
    ratios = {mode: np.nan_to_num(grid.ratios[mode]) for mode in _MODES}
    cells = min(grid.seconds, max(1, round(window.seconds)))
    return {
        cpu: tuple(
            CoreTick(
                float(ratios["user"][row, cell] + ratios["nice"][row, cell]),
                *(float(ratios[mode][row, cell]) for mode in _MODES[2:]),
            )
            if grid.measured[row, cell]
            else None
            for cell in range(cells)
        )
        for row, cpu in enumerate(grid.cpus)
    }


def _average(strips: list[tuple[CoreTick | None, ...]]) -> tuple[CoreTick | None, ...]:
    cells = max((len(strip) for strip in strips), default=0)
    return tuple(
        mean([tick for strip in strips if place < len(strip) and (tick := strip[place]) is not None])
        for place in range(cells)
    )
