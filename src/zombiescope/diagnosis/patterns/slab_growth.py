"""The kernel's own memory grows and nobody gives it back: a leak of objects, of namespaces, of cgroups."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern
from zombiescope.diagnosis.thresholds import SLAB_GROWN_DENTRIES, SLAB_MANY_DYING
from zombiescope.model.plans.step import Step, command, note


def examine(case: Case) -> Evidence:
    found = case.of_kind("kernel_memory_growth")
    if not found:
        return Evidence(())
    grown = tuple(
        Measurement(one.text, one.facts["grown"], "bytes", "counters", "confirms", one.from_us,
                    counter=str(one.facts["counter"]))
        for one in found
    )  # fmt: skip
    return Evidence(
        (*grown, *_kept_by(case)),
        None,
        f"{found[0].text}",
        Fix("find out which objects they are, and who makes them", tuple(_steps())),
    )


def _kept_by(case: Case) -> Iterator[Measurement]:
    """What is known to keep such memory."""
    memory = case.cgroups.memory
    if memory is not None and memory.dying is not None and memory.dying >= SLAB_MANY_DYING:
        text = f"{memory.dying:,} removed memory cgroups are still there, each with memory for every CPU"
        yield Measurement(text, memory.dying, "cgroups", "census", "nothing")
    now, before = (case.facts.gauge("dentry", "total", at) for at in (case.to_us, case.from_us))
    if now is not None and before is not None and now - before >= SLAB_GROWN_DENTRIES:
        yield Measurement(f"{now:,} cached names, {now - before:,} more", now, "names", "counters", "nothing")


def _steps() -> Iterator[Step]:
    yield command("slabtop --once --sort=c | head -20", "which objects: their cache has a name")
    yield command("grep -E 'Slab|SUnreclaim|Percpu' /proc/meminfo", "how much it is now")
    yield command("zombiescope cgroups", "removed cgroups keep slab and per-CPU memory")
    yield command("lsns --noheadings --output TYPE | sort | uniq -c", "namespaces that are never removed")
    yield note("a cache whose objects only grow belongs to a leak: its name says of which part of the kernel")


PATTERN = Pattern(
    id="slab-growth",
    title="Kernel memory keeps growing",
    proof="literature",
    looks_like="Available memory falls for hours while no process grows; Slab, SUnreclaim or Percpu rise.",
    confirmed_by="Unreclaimable slab or per-CPU memory rises steadily, by 1% of the node's memory in half an hour or "
    "less, and would use up the available memory within six hours.",
    refuted_by="Nothing: the pattern is only considered when that happens. Dentries and inodes that can be reclaimed "
    "do not count.",
    remedy="Find the cache by its name (slabtop) and the program that creates its objects.",
    no_stop_gap="the growing memory is in use; dropping caches frees only reclaimable memory, which did not grow",
    examine=examine,
    symptoms=frozenset({"kernel_memory_growth"}),
    hog="No process.",
    culprit="Not known: kernel objects do not record which program created them.",
    known_from="mm/slab_common.c; zombie memory cgroups of this project's founding case",
)
