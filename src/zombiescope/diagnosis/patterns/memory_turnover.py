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
    title="Memory of a program is filled, pinned or freed",
    proof="literature",
    looks_like="A job that starts touches and pins its memory; a data loader passes its batches through shared memory; "
    "a mapped file is read; a job that ends has its memory freed and closes its GPU. A core may be in the "
    "kernel for it for seconds, on every healthy node.",
    confirmed_by="40% of the hog's kernel time in such work, and more than in taking memory and giving it back. It is "
    "a note (`info`), unless somebody suffers from it.",
    refuted_by="Less than that; the hog is a GPU monitor; or it forks with a large heap (large-fork).",
    remedy="Nothing, unless it happens all the time; then what to change follows from the kind of work.",
    no_stop_gap="it is ordinary work, and nobody suffers from it unless another incident says so",
    examine=examine,
    signatures=tuple(Signature(kind.functions, means=kind.does) for kind in KINDS if kind.is_ordinary or kind is NEW),
    culprit="The program itself.",
    known_from="a training node with 16 cores and a GPU, kernel 6.18",
)
