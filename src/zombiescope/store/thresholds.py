"""From which numbers on something counts as trouble: one set for the recorder's alarm and for the diagnosis.

The alarm sees ticks and sums, the detectors everything that was recorded. Where both look at the same number they have
to agree, or the doctor is called for what it will not find, or is not called for what it would.
"""

from __future__ import annotations

HOG_RATIO = 0.9
"""Of one CPU, spent in the kernel for a second."""
MODERATE_RATIO = 0.4
"""Likewise for seconds: a shell that starts processes, and every busy web server."""
MODERATE_OF_ALL = 0.05
NODE_RATIO = 0.25
"""Of all cores, of one unit for seconds and of everybody together. Only the alarm's: the diagnosis tells what is usual
on a large node by what was there before."""
MOSTLY_KERNEL = 0.5
"""Of a group's own time; sixty training processes with a little kernel time each are no hog."""
REAL_TIME_RATIO = 0.85
"""Of one CPU; real-time throttling leaves 5% to the others."""
THROTTLED_PERIODS = 0.2
"""Of the periods of a CPU quota."""
HOLE_US = 100_000
"""Without any sample of a core that was not idle: interrupts were off, or the core was taken away."""
STOLEN_RATIO = 0.3
"""Of a core, by the hypervisor."""
LITTLE_STOLEN = 0.05
"""Less than this explains nothing."""
CALLS_PER_CORE_PER_S = 5_000
"""Interrupts with which cores call each other, on average: what the alarm goes by, which sees their sum."""
CALLS_ON_A_CORE_PER_S = 10_000
"""Likewise on one core: 1 to 5% of it, and the senders wait for each."""
NEAR_LIMIT = 0.85
"""Of what the kernel allows of something: tasks, open files."""


# --- saturation -------------------------------------------------------------------------------------------------------
# When a core counts as saturated: the one rule for the rollups, `cores` and `top`.
#
# A tick is saturated when the kernel (system, irq and softirq time together) held the core for 95% of it.
# Time is divided by what elapsed, not by the sum of the modes: with tick accounting /proc/stat loses time.
# Its steps are a timer tick long, so a core at 100% reads 0.90 to 1.10 over a tenth of a second and 0.99 to
# 1.01 over a second: ticks shorter than half a second are judged together until they make up half a second.

SATURATED_RATIO = 0.95
JUDGED_OVER_US = 500_000

KERNEL_MODES = ("system", "irq", "softirq")
KERNEL_COLUMNS = tuple(f"{mode}_ms" for mode in KERNEL_MODES)
BUSY_MODES = ("user", "nice", "system", "irq", "softirq", "steal")
"""Everything but idle and iowait. Stolen time counts: the core was wanted and not to be had."""


def ticks_judged_together(interval_us: int) -> int:
    return max(1, -(-JUDGED_OVER_US // max(1, interval_us)))
