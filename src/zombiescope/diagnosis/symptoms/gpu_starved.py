"""A GPU did less than in the minute before while threads of its process waited for a core that others had.

That a GPU does less is no symptom: an evaluation, a checkpoint, the end of a job, a slow input and nobody's interest
all look the same. The witness is a full core on whose run queue tasks waited, and threads of the GPU's process that
belong to that core and ran less there than before (held_up.py). The GPU is compared with its own past, never with a
constant: 9% may be all that a training needs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from zombiescope.base.time import SECOND_US
from zombiescope.diagnosis import held_up
from zombiescope.diagnosis.core_grid import CoreGrid
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.gpu_loss import GpuLoss, clause, of_gpu
from zombiescope.diagnosis.held_up import Witness
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.tenant_names import TenantNames
from zombiescope.diagnosis.thresholds import (
    GPU_STARVED_CORE_RATIO,
    GPU_STARVED_LEAST_S,
    GPU_STARVED_MOST_FALLS,
    GPU_STARVED_WAITED_RATIO,
)
from zombiescope.query.gpu_use import GpuSeries, Tenant, falls

MOST_CORES = 16


def find(facts: Facts) -> Iterator[Symptom]:
    if not facts.gpus or not facts.gpu_tenants or facts.cores is None:
        return
    for gpu, series in sorted(facts.gpus.items()):
        mine = [one for one in facts.gpu_tenants if one.gpu == gpu]
        for from_us, to_us in _spans(facts, series) if mine else ():
            there = [one for one in mine if one.overlaps(from_us, to_us)]
            loss = of_gpu(series, there, from_us, to_us) if there else None
            if loss is not None:
                yield from _starved(facts, loss, there, from_us, to_us)


def _spans(facts: Facts, series: GpuSeries) -> list[tuple[int, int]]:
    """Falls that lie in the window, by what the driver counts as use or, where that does not fall, by power."""
    found: list[tuple[int, int]] = []
    for name in ("utilisation", "power_w"):
        spans = [(series.at_us(first), series.at_us(last)) for first, last in falls(series.figures[name])]
        long = [(max(one[0], facts.start_us), min(one[1], facts.end_us)) for one in spans if one[1] > facts.start_us]
        found += [
            one for one in long if one[1] - one[0] >= GPU_STARVED_LEAST_S * SECOND_US and not _overlap(one, found)
        ]
    return found if len(found) <= GPU_STARVED_MOST_FALLS else []


def _overlap(one: tuple[int, int], others: list[tuple[int, int]]) -> bool:
    return any(one[0] < other[1] and other[0] < one[1] for other in others)


def _starved(facts: Facts, loss: GpuLoss, tenants: list[Tenant], from_us: int, to_us: int) -> Iterator[Symptom]:
    cores = facts.cores
    pids = {one.pid for one in tenants}
    seen = (
        []
        if cores is None
        else [(cpu, held_up.look(facts, pids, (cpu,), from_us, to_us)) for cpu in _full(cores, from_us, to_us)]
    )
    waited = [(cpu, one) for cpu, one in seen if one.state == "waited"]
    if not waited:
        return
    cpu, witness = max(waited, key=lambda pair: pair[1].ran_before - pair[1].ran)
    yield _symptom(loss, TenantNames(facts).of(tenants), cpu, witness, (from_us, to_us))


def _full(cores: CoreGrid, from_us: int, to_us: int) -> list[int]:
    """Cores for which tasks waited in the span, most of it first."""
    first = max(0, cores.second(from_us))
    part = slice(first, max(first + 1, cores.second(to_us - 1) + 1))
    busy, waited = cores.busy[:, part].mean(axis=1), cores.counts["wait_us"][:, part]
    waited_ratio = np.nansum(waited, axis=1) / 1e6 / max(waited.shape[1], 1)
    counted = not np.isnan(waited).all()
    full = (busy >= GPU_STARVED_CORE_RATIO) & ((waited_ratio >= GPU_STARVED_WAITED_RATIO) | (not counted))
    order = np.argsort(-np.where(full, waited_ratio + busy, 0.0), kind="stable")[: int(full.sum())][:MOST_CORES]
    return [cores.cpus[row] for row in order.tolist()]


def _symptom(loss: GpuLoss, whose: str, cpu: int, witness: Witness, span: tuple[int, int]) -> Symptom:
    waited = "" if witness.waited_s is None else f"; tasks waited {witness.waited_s:.1f} s for that core"
    threads = "a thread" if witness.threads == 1 else f"{witness.threads} threads"
    text = (
        f"{clause([loss], whose)} while {threads} of its process had {witness.ran:.2f} of core {cpu} instead of "
        f"{witness.ran_before:.2f}{waited}"
    )
    return Symptom(
        DETECTOR,
        *span,
        text,
        "warning",
        cpu,
        facts={
            "gpu_number": loss.gpu, "pids": list(loss.pids), "usual": loss.usual, "now": loss.now,
            "measure": loss.measure, "gpu_seconds_lost": round(loss.lost_s, 2), "threads": witness.threads,
            "ran": round(witness.ran, 3), "ran_before": round(witness.ran_before, 3), "waited_s": witness.waited_s,
        },
    )  # fmt: skip


DETECTOR = Detector(
    kind="gpu_starved",
    title="a GPU was starved",
    reported_when="a GPU did a fifth less than in the minute before, and by more than it varies, while threads of its "
    "process waited for a full core and ran less there than before",
    find=find,
    source="gpu_seconds",
    role="victim",
    begins="summed",
    weight=5,
    bounds_case=True,
    core_is_taken=True,
    core_rank=3,
    victim="the GPU whose process ran on core {cpu}",
)
