"""Saturated seconds of cores, the longest saturation, and seconds in which a network card was starved.

Saturated is what it is everywhere in this product (store/thresholds.py): the kernel held the core for 95% of half a
second or more. A card counts as starved in a second in which a core that usually polls it did not while the kernel kept
it busy, or in which packets were dropped because a core's backlog was full: two of the proofs of the diagnosis
(diagnosis/symptoms/nic_starved.py), which can be had second by second.
"""

from __future__ import annotations

from collections import deque

from zombiescope.agent.metrics import families
from zombiescope.agent.tally import Tally
from zombiescope.base.baseline import RunningBaseline
from zombiescope.store.log import Block
from zombiescope.store.thresholds import JUDGED_OVER_US, KERNEL_COLUMNS, SATURATED_RATIO

RX_SERVES_PER_S = 50
RX_STILL = 0.05
BUSY_RATIO = 0.9
DROPS_PER_S = 100
USUAL_S, LEARNED_S = 60, 10
"""A minute without packets is not usual yet."""
_COLUMNS = ("time", "interval_us", "cpu", *KERNEL_COLUMNS, "softirq_net_rx", "softnet_dropped")


class _Core:
    __slots__ = ("dropped", "interval_us", "kernel_ms", "run_us", "rx", "usual_rx")

    def __init__(self) -> None:
        self.kernel_ms = self.interval_us = self.rx = self.dropped = 0
        self.run_us = 0
        self.usual_rx = RunningBaseline(USUAL_S, LEARNED_S)


class CoresAccount:
    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._cores: dict[int, _Core] = {}
        self._ended: deque[tuple[int, int]] = deque(maxlen=4096)
        """When a saturation ended, and how long it was."""
        self._newest_us = 0

    def update(self, block: Block, counted: bool) -> None:
        columns = [block.column(name) for name in _COLUMNS]
        starved: dict[int, int] = {}
        for at_us, interval_us, cpu, system, irq, softirq, rx, dropped in zip(*columns, strict=True):
            if system is None or not interval_us or cpu is None:
                continue
            core = self._core(cpu, at_us, interval_us)
            core.kernel_ms += system + (irq or 0) + (softirq or 0)
            core.interval_us += interval_us
            core.rx += rx or 0
            core.dropped += dropped or 0
            if core.interval_us >= JUDGED_OVER_US and self._judge(cpu, core, at_us, counted):
                starved[at_us] = interval_us
        if counted and starved:
            self._tally.add(families.NIC_STARVED, sum(starved.values()) / 1e6)

    def _core(self, cpu: int, at_us: int, interval_us: int) -> _Core:
        if self._newest_us and at_us - self._newest_us > 3 * interval_us:
            self._end_runs(self._newest_us)
        self._newest_us = max(self._newest_us, at_us)
        core = self._cores.get(cpu)
        if core is None:
            core = self._cores[cpu] = _Core()
            self._tally.add(families.SATURATED, 0.0, str(cpu))
        return core

    def _judge(self, cpu: int, core: _Core, at_us: int, counted: bool) -> bool:
        """Whether the core left its network card alone."""
        ratio = core.kernel_ms * 1000 / core.interval_us
        if ratio >= SATURATED_RATIO:
            core.run_us += core.interval_us
            if counted:
                self._tally.add(families.SATURATED, core.interval_us / 1e6, str(cpu))
        elif core.run_us:
            self._ended.append((at_us, core.run_us))
            core.run_us = 0
        starved = self._starves(core, ratio)
        core.kernel_ms = core.interval_us = core.rx = core.dropped = 0
        return starved

    def _starves(self, core: _Core, ratio: float) -> bool:
        per_s = 1e6 / core.interval_us
        rx, dropped = core.rx * per_s, core.dropped * per_s
        still = (
            core.usual_rx.is_learned
            and core.usual_rx.mean >= RX_SERVES_PER_S
            and rx < core.usual_rx.mean * RX_STILL
            and ratio >= BUSY_RATIO
        )
        core.usual_rx.learn(rx)
        return still or dropped >= DROPS_PER_S

    def _end_runs(self, at_us: int) -> None:
        """A hole in time: what was before it is over."""
        for core in self._cores.values():
            if core.run_us:
                self._ended.append((at_us, core.run_us))
            core.run_us = core.kernel_ms = core.interval_us = core.rx = core.dropped = 0

    def publish(self) -> None:
        """What is a matter of the last minutes."""
        if not self._cores:
            return
        oldest_us = self._newest_us - families.LONGEST_WINDOW_S * 1_000_000
        while self._ended and self._ended[0][0] < oldest_us:
            self._ended.popleft()
        longest_us = max((core.run_us for core in self._cores.values()), default=0)
        longest_us = max([longest_us, *(run_us for _, run_us in self._ended)])
        self._tally.set(families.LONGEST, longest_us / 1e6)
