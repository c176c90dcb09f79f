"""A program starts, ends or passes data on: its memory is filled, shared, pinned or freed. Healthy nodes do that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.memory_balance import Balance, balance
from zombiescope.diagnosis.memory_work import KINDS, NEW, Kind
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, Signature, cpu_used, measured
from zombiescope.diagnosis.patterns import large_fork
from zombiescope.diagnosis.patterns.gpu_monitor import is_monitor
from zombiescope.diagnosis.plan import shell
from zombiescope.model.plans.step import Step, advice, command

SHOWN = 3
"""Kinds of work that are listed."""


def examine(case: Case) -> Evidence:
    found = balance(case)
    first = next(iter(found.ordinary), None)
    does = "" if first is None else f"{case.hog.name} {first.does}"
    return Evidence(
        tuple(_measurements(case, found)),
        case.answerable_hog,
        does,
        Fix("nothing has to be done, unless it happens all the time", tuple(_steps(case, found.ordinary))),
        is_ordinary=True,
    )


def _measurements(case: Case, found: Balance) -> Iterator[Measurement]:
    cores = case.cores_in(*(name for kind in found.ordinary for name in kind.functions), chosen=case.hog_samples)
    says = found.is_ordinary and not is_monitor(case.hog.comm) and not large_fork.is_one(case)
    text = f"filling, sharing, pinning or freeing memory is {found.share * 100:.0f}% of its kernel time: {{}}"
    yield cpu_used(text, cores, says)
    for kind, part in list(found.ordinary.items())[:SHOWN]:
        yield measured(f"{part * 100:.0f}%: it {kind.does}", round(part, 4), "ratio", "samples", None)


def _steps(case: Case, found: Mapping[Kind, float]) -> Iterator[Step]:
    if case.hog.pid:
        yield command(shell("ps", "-o", "pid,lstart,rss,args", "-p", case.hog.pid), "what it is, if it still runs")
    for kind in list(found)[:SHOWN]:
        if kind.advice:
            yield advice(kind.advice)


PATTERN = Pattern(
    id="memory-turnover",
    title="A program fills, pins or frees memory",
    proof="literature",
    looks_like="A starting job touches and pins its memory; a data loader passes batches through shared memory; a "
    "mapped file is read; the memory of an exiting job is freed and its GPU closed. On every healthy node "
    "this may keep a core in the kernel for seconds.",
    confirmed_by="Such work takes 40% of the hog's kernel time, and more than allocating and freeing do. Reported as a "
    "note (`info`) unless something suffers from it.",
    refuted_by="Less than that; the hog is a GPU monitor; or it forks with a large heap (large-fork).",
    remedy="Nothing, unless it happens all the time; then the fix depends on the kind of work.",
    no_stop_gap="it is ordinary work, and harmless unless another incident is reported",
    examine=examine,
    signatures=tuple(Signature(kind.functions, means=kind.does) for kind in KINDS if kind.is_ordinary or kind is NEW),
    culprit="The program itself.",
    known_from="a training node with 16 cores and a GPU, kernel 6.18",
)
