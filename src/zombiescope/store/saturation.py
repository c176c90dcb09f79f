"""When a core counts as saturated: the one rule for the rollups, `cores` and `top`.

A tick is saturated when the kernel (system, irq and softirq time together) held the core for 95% of it.
Time is divided by what elapsed, not by the sum of the modes: with tick accounting /proc/stat loses time.
Its steps are a timer tick long, so a core at 100% reads 0.90 to 1.10 over a tenth of a second and 0.99 to
1.01 over a second: ticks shorter than half a second are judged together until they make up half a second.
"""

from __future__ import annotations

SATURATED_RATIO = 0.95
JUDGED_OVER_US = 500_000

KERNEL_MODES = ("system", "irq", "softirq")
KERNEL_COLUMNS = tuple(f"{mode}_ms" for mode in KERNEL_MODES)
BUSY_MODES = ("user", "nice", "system", "irq", "softirq", "steal")
"""Everything but idle and iowait. Stolen time counts: the core was wanted and not to be had."""


def ticks_judged_together(interval_us: int) -> int:
    return max(1, -(-JUDGED_OVER_US // max(1, interval_us)))
