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
"""Of all cores: half a CPU is a quarter of a small machine, and next to nothing of a large one."""
NODE_RATIO = 0.25
"""Of all cores, by everybody together: every healthy node uses some for the kernel."""
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
"""Interrupts with which cores call each other."""
