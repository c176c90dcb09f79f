"""Spans of time in microseconds, the unit of every clock in this package; and the rate of sampling."""

SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
HOUR_US = 60 * MINUTE_US
DAY_US = 24 * HOUR_US
WEEK_US = 7 * DAY_US

DEFAULT_HZ = 99
"""Stacks are sampled this often unless another rate is chosen; not 100, to stay out of step with timers."""
AUTO, CPU_CLOCK, CYCLES = "auto", "cpu-clock", "cycles"
"""What makes a stack sample: a timer of each core, or the cycle counter of its PMU; or chosen by the node's width."""
