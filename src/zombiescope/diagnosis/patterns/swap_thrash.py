"""What is needed does not fit into memory, and is fetched from swap again and again."""

from __future__ import annotations

from dataclasses import replace

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Actor, Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, counted
from zombiescope.model.plans.step import advice, command, note

_SWAPS_IN = "do_swap_page swap_read_folio swapin_readahead swap_cluster_readahead swap_readpage"


def examine(case: Case) -> Evidence:
    symptom = max(case.of_kind("swapping"), key=lambda one: one.seconds, default=None)
    if symptom is None:
        return Evidence(())
    rate = int(symptom.facts["pages_per_s"])
    culprit = case.caller(*_SWAPS_IN.split()) or _waiter(case)
    whose = f" by {culprit.name}" if culprit is not None else ""
    evidence = (
        *(_swapped(case, what, name) for what, name in (("pages swapped in", "pswpin"), ("and out", "pswpout"))),
        counted("faults that had to wait", "pgmajfault", case.count("vmstat", "pgmajfault"), "counters"),
    )
    summary = f"memory that is needed{whose} is swapped out and in again, {rate * 4096 / 1e6:.0f} MB/s"
    return Evidence(evidence, culprit, summary, _fix())


def _swapped(case: Case, what: str, name: str) -> Measurement:
    found = counted(what, name, case.count("vmstat", name), "counters")
    return replace(found, says="confirms") if found.value else found


def _waiter(case: Case) -> Actor | None:
    """Who was found waiting for swap."""
    waits = [one for one in case.facts.waiting if one.kind == "swap" and not one.kernel_thread]
    return Actor(comm=waits[0].comm, pid=waits[0].pid, cgroup=waits[0].cgroup) if waits else None


def _fix() -> Fix:
    return Fix(
        "give what is needed its memory, or let less of it run at once",
        (
            command("cat /proc/swaps", "where the swap is, and how full"),
            command("grep -H VmSwap /proc/[0-9]*/status | sort -k2 -n", "whose memory is out there"),
            advice("raise the memory limit of the cgroup that is full, or move work to another node"),
            note("without swap the kernel would kill instead: that is better for a job that can start again"),
        ),
    )


PATTERN = Pattern(
    id="swap-thrash",
    title="Memory is swapped out and in again",
    proof="kernel",
    seen_on=("6.18",),
    looks_like="Everything in a cgroup, or on the node, is suddenly slow; tasks wait in page faults (state D) and do "
    "little work.",
    confirmed_by="1,000 pages per second (4 MB/s) go out to swap and as many come back, for 10 s.",
    refuted_by="Pages go out and do not come back: those were not needed.",
    remedy="Give it more memory or less work. Without swap, the kernel would OOM-kill instead.",
    stop_gap="pause the least important work (freeze its cgroup, or stop it), so that the rest fits into memory",
    examine=examine,
    symptoms=frozenset({"swapping"}),
    hog="The process that faults most.",
    culprit="The process that fetches most pages from swap, if that was sampled.",
    known_from="kernel documentation of vmstat; measured on 6.18 in a cgroup at its limit",
)
