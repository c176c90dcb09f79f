"""One NUMA node is full while another has memory: whoever runs there gets memory that is farther away."""

from __future__ import annotations

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern
from zombiescope.model.plans.step import advice, command


def examine(case: Case) -> Evidence:
    found = case.of_kind("numa_misses")
    if not found:
        return Evidence(())
    misses = tuple(
        Measurement(one.text, one.facts["added"], "pages", "counters", "confirms", one.from_us, counter="numa_miss")
        for one in found
    )
    return Evidence(
        misses,
        None,
        f"{found[0].facts['fullest']} is full while another NUMA node has memory: tasks there get memory that is far",
        Fix(
            "spread the memory, or bind tasks and their memory together",
            (
                command("numastat -m | head -20", "what fills the node: files, huge pages or programs"),
                command("numastat -c", "whose memory is where"),
                advice("page cache fills the node that reads files: read them on all nodes (numactl --interleave)"),
                advice("bind a trainer to the cores and the memory next to its GPU (numactl, topology manager)"),
            ),
        ),
    )


PATTERN = Pattern(
    id="numa-imbalance",
    title="One NUMA node is full, another is not",
    proof="literature",
    looks_like="Tasks on some cores are slower than the same tasks on others, and memory is free.",
    confirmed_by="One node has less than 5% free memory and another 20%, and more pages than before were allocated on "
    "a different node than intended (numa_miss).",
    refuted_by="Nothing: the pattern is only considered on machines with more than one NUMA node, when both are true.",
    remedy="Interleave the memory of the program that fills the node, or bind tasks and memory together.",
    stop_gap="move the memory of the program that fills the node to another one (migratepages); the process is slow "
    "during the move",
    examine=examine,
    symptoms=frozenset({"numa_misses"}),
    hog="No process.",
    culprit="Not known: memory does not record which program filled the node.",
    known_from="mm/vmstat.c, Documentation/admin-guide/numastat.rst",
)
