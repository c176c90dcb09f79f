"""A program starts, ends or passes data on: its memory is filled, shared, pinned or freed. Healthy nodes do that."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis import memory_growth
from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix, FixStep, advice, command
from zombiescope.diagnosis.memory_work import KINDS, NEW, Kind, kinds
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, Signature, cpu_used, measured
from zombiescope.diagnosis.patterns.gpu_monitor import is_monitor
from zombiescope.diagnosis.plan import shell

MOSTLY = 0.6
"""With less of it something else is at work, too, and that is what has to be explained."""
SHOWN = 3
"""Kinds of work that are listed."""


def examine(case: Case) -> Evidence:
    found = _ordinary(case)
    first = next(iter(found), None)
    does = "" if first is None else f"{case.hog.name} {first.does}"
    return Evidence(
        tuple(_measurements(case, found)),
        case.answerable_hog,
        does,
        Fix("nothing has to be done, unless it happens all the time", tuple(_steps(case, found))),
        is_ordinary=True,
    )


def _ordinary(case: Case) -> dict[Kind, float]:
    """The part that each ordinary kind of work has of the hog's kernel time."""
    found = {kind: case.profile.share(count) for kind, count in kinds(case.profile).items()}
    kept = NEW in found and memory_growth.is_kept(case)
    return {kind: share for kind, share in found.items() if kind.is_ordinary or (kept and kind is NEW)}


def _measurements(case: Case, found: dict[Kind, float]) -> Iterator[Measurement]:
    share = sum(found.values())
    cores = case.cores_in(*(name for kind in found for name in kind.functions), chosen=case.hog_samples)
    says = share >= MOSTLY and not is_monitor(case.hog.comm)
    text = f"filling, sharing, pinning or freeing memory is {share * 100:.0f}% of its kernel time: {{}}"
    yield cpu_used(text, cores, says)
    for kind, part in list(found.items())[:SHOWN]:
        yield measured(f"{part * 100:.0f}%: it {kind.does}", round(part, 4), "ratio", "samples", None)


def _steps(case: Case, found: dict[Kind, float]) -> Iterator[FixStep]:
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
    confirmed_by="60% of the hog's kernel time in such work. It is a note (`info`), unless somebody suffers from it.",
    refuted_by="Less than that; or the hog is a GPU monitor.",
    remedy="Nothing, unless it happens all the time; then what to change follows from the kind of work.",
    examine=examine,
    signatures=tuple(Signature(kind.functions, means=kind.does) for kind in KINDS if kind.is_ordinary or kind is NEW),
    culprit="The program itself.",
    known_from="a training node with 16 cores and a GPU, kernel 6.18",
)
