"""Somebody reads smaps, smaps_rollup or pagemap of a large process: the kernel visits every page of it in one call."""

from __future__ import annotations

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix, command
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, cpu_below, level, signature
from zombiescope.diagnosis.plan import shell

LARGE_BYTES = 1 << 30
"""A walk costs 14 ms a GB on 6.18 and 22 ms on older kernels (process-exporter 246), so below one GB it is short."""
SMALL_BYTES = 64 << 20

_WALK = (
    "smap_gather_stats walk_page_range walk_page_vma walk_page_mapping smaps_pte_range smaps_account "
    "smaps_page_accumulate"
    " vm_normal_page pagemap_pmd_range pagemap_read gather_pte_stats clear_refs_pte_range m_next __walk_page_range"
    " pagemap_scan_pmd_entry"
)
_FILES = (
    "show_smaps_rollup show_smap show_smaps show_pid_smap show_numa_map pagemap_read do_pagemap_cmd do_pagemap_scan"
    " clear_refs_write"
)
"""show_pid_smap until 4.18; do_pagemap_scan is PAGEMAP_SCAN, from 6.7 on."""


def examine(case: Case) -> Evidence:
    return Evidence(
        (_mapped(case), cpu_below(case, "reading smaps", _FILES, confirms_from=1e9)),
        case.answerable_hog,
        f"{case.hog.name} reads the page tables of a large process over and over (smaps, smaps_rollup or pagemap)",
        Fix(
            f"turn off in {case.hog.name} what reads smaps: proportional memory (PSS), referenced memory, swap by "
            "process",
            (
                *(
                    (command(shell("ps", "-o", "pid,lstart,args", "-p", case.hog.pid), "how it was started"),)
                    if case.hog.pid
                    else ()
                ),
                command("ps -eo pid,rss,comm --sort=-rss | head", "whose pages are walked: 14 to 22 ms a GB and read"),
            ),
        ),
    )


def _mapped(case: Case) -> Measurement:
    """Anonymous and shared memory of all processes: the most that one walk can visit."""
    parts = [case.peak("meminfo", name, fresh=True) for name in ("anon_pages_bytes", "shmem_bytes")]
    known = [part for part in parts if part is not None]
    largest = max(known, default=None)
    return level(
        "{} bytes of anonymous or shared memory are in use, of which a read may visit all",
        largest,
        "bytes",
        "counters",
        confirms_from=LARGE_BYTES,
        refutes_below=SMALL_BYTES,
    )


PATTERN = Pattern(
    id="smaps-reader",
    title="A monitoring agent walks the pages of a large process",
    proof="kernel",
    seen_on=("6.18",),
    looks_like="An agent that reads /proc/PID/smaps, smaps_rollup or pagemap of a process with many gigabytes holds a "
    "core in the kernel: about 4.5 s for 200 GB, in one system call, at every scrape.",
    confirmed_by="At least 1 GB of anonymous or shared memory in use on the node while the frames of such a read run.",
    refuted_by="Less than 64 MB of it: then no process is large enough for the walk to matter.",
    remedy="Turn off the metric that needs smaps (PSS, referenced memory), or exclude the large processes from it.",
    examine=examine,
    signatures=(signature(_FILES, _WALK, means="the pages of a process are counted for a file in /proc"),),
    hog="The reader.",
    culprit="The reader: the large process only has pages.",
    known_from="process-exporter 246, telegraf 15295, datadog-agent 41946, cadvisor 2622; measured on 6.18",
)
