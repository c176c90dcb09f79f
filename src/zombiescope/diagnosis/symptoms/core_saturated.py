"""A core that the kernel held for a second or more.

Read from the table `cores`: system, irq and softirq time by elapsed time, second by second. On a node whose cores are
all busy everybody waits for everybody, and a few seconds of it are nothing; as many as a network driver waits for are.
A core that was left out of sampling is there for one task, and that it is busy is what it is for.

Whether a full core starves anybody depends on the kernel: without preemption a system call keeps the core until it
ends. A preemptible one (full, lazy, RT) gives it to whoever is due, so there a witness has to say that somebody waited:
the run queue, ksoftirqd, a thread of threaded NAPI, or NET_RX that stood still. Without one nothing is said to be lost,
also where waiting was not measured.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from zombiescope.diagnosis.core_grid import CoreGrid
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.spans import runs
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.symptoms import nic_starved
from zombiescope.diagnosis.thresholds import CORE_WAIT_WITNESS_US, DRIVER_PATIENCE_S, SATURATED_NODE_BUSY_RATIO
from zombiescope.store.thresholds import SATURATED_RATIO

PREEMPTIBLE = ("full", "lazy", "rt")
_MODES = ("system", "softirq", "irq")


def find(facts: Facts) -> Iterator[Symptom]:
    cores = facts.cores
    if cores is None:
        return
    kernel, room, many = cores.kernel, cores.node_busy() < SATURATED_NODE_BUSY_RATIO, len(cores.cpus)
    least_busy_s = min(DRIVER_PATIENCE_S, max(2, int(facts.seconds)))  # all of a window that is shorter
    preemption = _preemption(facts)
    judged = [(row, cpu) for row, cpu in enumerate(cores.cpus) if cpu not in facts.left_out]
    for row, cpu in judged:
        for first, last in runs(kernel[row] >= SATURATED_RATIO, bridge=1):
            if last - first < least_busy_s and not room[first:last].any():
                continue
            shares = {mode: float(np.nanmean(cores.ratios[mode][row, first:last])) for mode in _MODES}
            mode = max(shares, key=lambda mode: shares[mode])
            average = cores.mean(cores.busy, first, last)
            seconds = min(last - first, max(1, round(facts.seconds)))  # the first and the last may have been cut
            if mode == "system" and preemption in PREEMPTIBLE:
                waited = _somebody_waited(facts, cores, row, first, last)
                if not waited:
                    amount = f"{shares[mode] * 100:.0f}% of {seconds} s"
                    yield _shared(cores, row, (first, last), amount, preemption, measured=waited is False)
                    continue
            yield Symptom(
                DETECTOR,
                cores.at_us(first),
                cores.at_us(last),
                f"core {cpu} at {shares[mode] * 100:.0f}% {mode} for {seconds} s"
                + ("" if average is None else f"; the node used {average * many:.1f} of {many} cores"),
                "warning",
                cpu,
                facts={"mode": mode, "ratio": float(np.nanmean(kernel[row, first:last])), "node_busy_ratio": average},
            )


def _preemption(facts: Facts) -> str:
    config = facts.node.get("kernel_config")
    return str(config.get("preempt")) if isinstance(config, dict) else ""


def _somebody_waited(facts: Facts, cores: CoreGrid, row: int, first: int, last: int) -> bool | None:
    """None where nothing of it was measured."""
    from_us, to_us = cores.at_us(first), cores.at_us(last)
    if nic_starved.stood_still(cores, row, first, last) or nic_starved.waited(facts, cores.cpus[row], from_us, to_us):
        return True
    parts = [cores.counts[name][row, first:last] for name in ("wait_us", "ksoftirqd_delay_us")]
    known = [part for part in parts if not np.isnan(part).all()]
    return any(float(np.nanmax(part)) >= CORE_WAIT_WITNESS_US for part in known) if known else None


def _shared(
    cores: CoreGrid, row: int, span: tuple[int, int], amount: str, preemption: str, *, measured: bool
) -> Symptom:
    cpu, (first, last) = cores.cpus[row], span
    waited = "nothing waited" if measured else "whether anything waited was not measured"
    return Symptom(
        DETECTOR,
        cores.at_us(first),
        cores.at_us(last),
        f"core {cpu} worked in the kernel for {amount}; this kernel is preemptible ({preemption}), and {waited}",
        "info",
        cpu,
        facts={"mode": "system", "preemption": preemption, "witness": "no task waited" if measured else None},
    )


DETECTOR = Detector(
    kind="core_saturated",
    title="a core was starved",
    reported_when="the kernel held one core for 95% of a second or more; of five seconds, where all cores together "
    "were 90% busy",
    find=find,
    source="cores",
    role="core",
    begins="onset",
    weight=6,
    bounds_case=True,
    core_rank=0,
    core_is_held=True,
    critical_after_s=DRIVER_PATIENCE_S,
    victim="everything else on core {cpu}",
)
