"""What takes the stack samples of this node, and how often: chosen by its width and its PMU, unless a person chose.

cpu-clock is a timer of each core. It fires on idle cores too: 99 a second are 38,000 wake-ups a second on 384 threads,
which cost deep C-states and with them the boost of the busy cores. The cycle counter of a PMU stops when a core halts.

So from WIDE_CPUS on cores are sampled at WIDE_HZ, by cycles where this machine has them. Not on a node with full
dynticks: an event with a frequency keeps the tick alive on all cores (TICK_DEP_BIT_PERF_EVENTS); the kernel turns that
of cpu-clock into a period itself. Cycles that a person asked for there are counted with a fixed period.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from zombiescope.base.time import AUTO, CPU_CLOCK, CYCLES, DEFAULT_HZ
from zombiescope.kernel import cpu, cpufreq, perf_event
from zombiescope.kernel.perf_event import Clock

WIDE_CPUS = 128
WIDE_HZ = 49


@dataclass(frozen=True, slots=True)
class Sampling:
    clock: Clock
    why: str


USUAL = Sampling(Clock(), "the number of cores is not known")


def choose(event: str, hz: int, online: tuple[int, ...], root: str = "/") -> Sampling:
    """`event` AUTO and `hz` 0: not chosen by a person."""
    tickless = bool(cpu.nohz_full(root))
    return chosen(
        event, hz, len(online), tickless=tickless, max_khz=cpufreq.highest_khz(root) if tickless else None,
        has_cycles=lambda: root == "/" and _counts_cycles(min(online, default=0)),
    )  # fmt: skip


def chosen(
    event: str, hz: int, cpus: int, *, tickless: bool, max_khz: int | None, has_cycles: Callable[[], bool]
) -> Sampling:
    wide = cpus >= WIDE_CPUS
    rate = hz or (WIDE_HZ if wide else DEFAULT_HZ)
    if event == CYCLES and tickless:
        if max_khz is None:
            return Sampling(Clock(CPU_CLOCK, rate), "cycles would keep the tick on cores that run without (nohz_full)")
        period = max_khz * 1000 // rate
        return Sampling(Clock(CYCLES, rate, period), "a fixed number of cycles: a frequency would keep the tick on "
                        "cores that run without (nohz_full)")  # fmt: skip
    if event != AUTO:
        return Sampling(Clock(event, rate), "as configured")
    if not wide:
        return Sampling(Clock(CPU_CLOCK, rate), f"fewer than {WIDE_CPUS} cores")
    if tickless:
        return Sampling(Clock(CPU_CLOCK, rate), f"{cpus} cores, some without a tick (nohz_full)")
    if has_cycles():
        return Sampling(Clock(CYCLES, rate), f"{cpus} cores with a cycle counter: idle cores are not woken")
    return Sampling(Clock(CPU_CLOCK, rate), f"{cpus} cores without a cycle counter")


def _counts_cycles(on: int) -> bool:
    try:
        perf_event.probe(on, Clock(CYCLES, WIDE_HZ))
    except OSError:
        return False
    return True
