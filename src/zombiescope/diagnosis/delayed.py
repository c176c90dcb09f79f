"""Whom the hog of an incident delayed, as the schedule of its cores measured it: links of the chain.

Symptoms are joined by place and time, which is a suspicion. Where a snapshot of the schedule (query/delays.py) covers
the incident, it says who could have run while the hog ran on the same core, and for how long: that confirms the link.
Where it covers most of the incident on the cores that the symptoms name, and nobody waited there for the hog, that is
said too. Without a snapshot nothing is said: then nothing was measured.

Told of first are softirqs of network cards, then threads of processes on GPUs, then whoever waited longest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Cause, Link
from zombiescope.diagnosis.thresholds import DELAY_KNOWN_SHARE, DELAY_NOTABLE_S, DELAY_TOLD_S
from zombiescope.query.delays import Delay, Delays, delays, sentence, with_frames

MOST_TOLD = 3
MOST_PIDS = 1_000
NET = ("net_rx", "net_tx")


def told(case: Case, causes: tuple[Cause, ...]) -> tuple[Cause, ...]:
    """The same causes; the chain of the first says whom its hog delayed."""
    if not causes or case.hog_task is None:
        return causes
    found = delays(case.facts.recording, case.from_us, case.to_us, least_s=DELAY_TOLD_S)
    if not found.watched:
        return causes
    worst = with_frames(case.facts.recording, _worst(case, found)[:MOST_TOLD])
    links = tuple(map(_link, worst)) or tuple(_nobody(case, found))
    first = replace(causes[0], chain=(*causes[0].chain, *links))
    if worst and worst[0].seconds >= DELAY_NOTABLE_S:
        first = replace(first, summary=f"{first.summary}; measured: {sentence(worst[0])}")
    return (first, *causes[1:])


def hog_pids(case: Case) -> set[int]:
    samples = case.facts.samples
    tasks = np.unique(samples.task[case.hog_samples]).tolist()[:MOST_PIDS]
    return {task.pid for task in map(samples.task_of, tasks) if task.pid}


def _worst(case: Case, found: Delays) -> list[Delay]:
    hogs = hog_pids(case)
    tenants = {one.pid for one in case.facts.gpu_tenants if one.overlaps(case.from_us, case.to_us)}
    caused = [one for one in found.by(hogs) if one.victim.softirq is not None or one.victim.pid not in hogs]

    def order(one: Delay) -> tuple[bool, bool, bool, float]:
        of_a_card = one.victim.softirq in NET
        return bool(one.through), not of_a_card, one.victim.pid not in tenants, -one.seconds

    return sorted(caused, key=order)


def _link(one: Delay) -> Link:
    where = f", in {' > '.join(one.frames[-3:])}" if one.frames else ""
    value = round(one.seconds * 1000, 1)
    return Link("delay", sentence(one) + where, value, "ms", one.from_us, "schedule", path=tuple(one.frames or ())[-4:])


def _nobody(case: Case, found: Delays) -> Iterator[Link]:
    """Only of cores that symptoms name, and that were watched for most of the time."""
    for cpu in case.cpus:
        known_s = sum(one.to_us - one.from_us for one in found.watched if one.cpu == cpu) / 1e6
        if known_s >= DELAY_KNOWN_SHARE * case.seconds:
            fact = f"no task waited for core {cpu} while {case.hog.name} ran there; {known_s:.1f} s of it were watched"
            yield Link("delay", fact, 0.0, "ms", case.from_us, "schedule")
